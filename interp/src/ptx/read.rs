//! PTX text to a program.

use std::collections::HashMap;
use std::fmt;

use ptxc_ir::Space;
use ptxc_targets::{
    Checker, Declaration, Declarations, Diagnostic, Node, NodeKind, Place, PtxVersion, RegType, Sink, Span, SpecialReg,
    Statement, Target as Machine,
};

use super::families;
use super::initial::{self, Element};
use super::instruction::{Constants, Instruction, Target};
use super::operand::{Base, FRAME, Operand, Register, Slot, Symbol};
use super::program::{Code, Function, Operation, Passed, Step, Variable};

/// Most registers of a function that are used.
const MOST_REGISTERS: u32 = 1 << 20;
/// Most bytes of a variable.
const MOST_BYTES: u64 = 1 << 30;

/// Why a text is no program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// What is wrong.
    pub message: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ReadError {}

/// A PTX module, ready to be launched.
pub struct Program {
    pub(super) text: String,
    pub(super) functions: Vec<Function>,
    pub(super) variables: Vec<Variable>,
    /// Steps of all functions.
    pub(super) places: usize,
    /// Instructions that no family knows.
    refused: Vec<Span>,
}

impl Program {
    /// Reads a PTX module.
    ///
    /// # Errors
    /// The first thing that is no PTX, with its place. What the emulator does not know is no error here but where it is
    /// reached.
    pub fn read(text: &str) -> Result<Program, ReadError> {
        let target = Machine::ALL.last().copied();
        let target = target.ok_or_else(|| ReadError { message: "there are no targets".into(), line: 1, column: 1 })?;
        let mut reading = Reading {
            program: Program {
                text: text.to_string(),
                functions: Vec::new(),
                variables: Vec::new(),
                places: 0,
                refused: Vec::new(),
            },
            checker: Checker::new(target, PtxVersion::MAX),
            scopes: vec![Scope::default()],
            open: None,
            error: None,
        };
        ptxc_targets::walk_module(text, &mut reading);
        match reading.error {
            Some((message, at)) => {
                let (line, column) = ptxc_targets::line_and_column(text, at);
                Err(ReadError { message, line, column })
            }
            None => Ok(reading.program),
        }
    }

    /// Names of the kernels, in the text's order.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().filter(|f| f.kernel && f.code.is_some()).map(|f| f.name.as_str())
    }

    /// The mnemonics of instructions that are not executed, as written, in the text's order: they are errors when they
    /// are reached.
    pub fn refused(&self) -> impl Iterator<Item = &str> {
        self.refused.iter().filter_map(|span| {
            let start = span.start as usize;
            self.text.get(start..start + span.len as usize)
        })
    }

    /// Names a place: instruction, function, line and column.
    pub(super) fn describe(&self, place: u32) -> String {
        for function in &self.functions {
            let Some(code) = &function.code else { continue };
            let step = place.checked_sub(code.first_place).and_then(|at| code.steps.get(at as usize));
            if let Some(step) = step {
                let (start, len) = (step.span.0 as usize, step.span.1 as usize);
                let mnemonic = self.text.get(start..start + len).unwrap_or("?");
                let (line, column) = ptxc_targets::line_and_column(&self.text, step.span.0);
                return format!("`{mnemonic}` of `{}`, {line}:{column}", function.name);
            }
        }
        String::new()
    }
}

/// What a name stands for.
#[derive(Clone, Debug)]
enum Name {
    /// A scalar or the lanes of a vector.
    Registers(Vec<Register>),
    /// A variable and the bytes of its elements.
    Symbol(Symbol, u64),
    /// A texture and the like.
    Opaque,
}

/// `%r<8>`: registers get slots when they are first named.
#[derive(Clone, Debug)]
struct Range {
    count: u32,
    ty: RegType,
    lanes: u8,
    used: HashMap<u32, Vec<Register>>,
}

#[derive(Default)]
struct Scope {
    names: HashMap<String, Name>,
    ranges: HashMap<String, Range>,
}

/// A statement whose labels are not known yet.
struct Raw {
    pieces: Vec<&'static str>,
    operands: Vec<Operand>,
    guard: Option<(Slot, bool)>,
    span: Span,
}

/// The function that is being read.
struct Open {
    index: usize,
    kernel: bool,
    steps: Vec<Raw>,
    labels: HashMap<String, Target>,
    /// Lists of labels, which may come later in the text.
    lists: HashMap<String, Vec<String>>,
    /// The label that stands before a directive.
    last_label: String,
    /// Width in bits of each slot.
    widths: Vec<u32>,
    /// Bytes and alignment of the frame, or of a kernel's parameters while these are read.
    frame: (u64, u64),
}

struct Reading {
    program: Program,
    checker: Checker,
    scopes: Vec<Scope>,
    open: Option<Open>,
    error: Option<(String, u32)>,
}

impl Reading {
    fn fail(&mut self, message: impl Into<String>, at: u32) {
        self.error.get_or_insert((message.into(), at));
    }

    /// Slots for a register of this type.
    fn register(&mut self, ty: RegType) -> Result<Register, String> {
        let Some(open) = &mut self.open else { return Err("registers are declared in functions".to_string()) };
        let slot = open.widths.len() as u32;
        if slot > MOST_REGISTERS {
            return Err("too many registers".to_string());
        }
        let register = Register { slot, ty };
        open.widths.push(register.bits().min(64));
        if register.bits() > 64 {
            open.widths.push(64);
        }
        Ok(register)
    }

    fn registers(&mut self, ty: RegType, lanes: u8) -> Result<Vec<Register>, String> {
        (0..lanes.max(1)).map(|_| self.register(ty)).collect()
    }

    /// What a name stands for, in the innermost scope that has it.
    fn lookup(&mut self, name: &str) -> Result<Option<Name>, String> {
        for depth in (0..self.scopes.len()).rev() {
            if let Some(found) = self.scopes[depth].names.get(name) {
                return Ok(Some(found.clone()));
            }
            let Some((prefix, number)) = self.ranged(depth, name) else { continue };
            let Some(range) = self.scopes[depth].ranges.get(prefix) else { continue };
            if let Some(registers) = range.used.get(&number) {
                return Ok(Some(Name::Registers(registers.clone())));
            }
            let registers = self.registers(range.ty, range.lanes)?;
            if let Some(range) = self.scopes[depth].ranges.get_mut(prefix) {
                range.used.insert(number, registers.clone());
            }
            return Ok(Some(Name::Registers(registers)));
        }
        Ok(None)
    }

    /// The range and the number in it that a name means. A prefix may itself end in digits.
    fn ranged<'n>(&self, depth: usize, name: &'n str) -> Option<(&'n str, u32)> {
        let ranges = &self.scopes[depth].ranges;
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count().min(9);
        (1..=digits).rev().find_map(|length| {
            let (prefix, number) = name.split_at_checked(name.len() - length)?;
            let range = ranges.get(prefix)?;
            let plain = length == 1 || !number.starts_with('0');
            number.parse().ok().filter(|n| plain && *n < range.count).map(|n| (prefix, n))
        })
    }

    fn declare(&mut self, name: &str, what: Name) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(name.to_string(), what);
        }
    }

    /// A variable on the stack of each thread; gives its offset.
    fn on_stack(&mut self, size: u64, align: u64) -> Result<u64, String> {
        let Some(open) = &mut self.open else { return Err("the variable needs a function".to_string()) };
        let at = open.frame.0.next_multiple_of(align);
        open.frame = (at + size, open.frame.1.max(align));
        if open.frame.0 > MOST_BYTES {
            return Err("the variables of the function are too large".to_string());
        }
        Ok(at)
    }

    fn declared(&mut self, d: &Declaration<'_>) -> Result<(), String> {
        use ptxc_targets::Symbol as Kind;
        match d.symbol {
            Kind::Register(ty) | Kind::Vector(ty, _) => {
                if let Some(count) = d.count {
                    let range = Range { count, ty, lanes: d.lanes, used: HashMap::new() };
                    if let Some(scope) = self.scopes.last_mut() {
                        scope.ranges.insert(d.name.to_string(), range);
                    }
                    return Ok(());
                }
                let registers = self.registers(ty, d.lanes)?;
                self.formal(d.place, registers.first().map(|r| Passed::Slot(r.slot, r.bits())));
                self.declare(d.name, Name::Registers(registers));
                Ok(())
            }
            Kind::Variable(space) => self.variable(d, space),
            _ => {
                self.declare(d.name, Name::Opaque);
                Ok(())
            }
        }
    }

    /// Notes a parameter or a result of the function.
    fn formal(&mut self, place: Place, passed: Option<Passed>) {
        let function = self.open.as_ref().and_then(|open| self.program.functions.get_mut(open.index));
        let (Some(function), Some(passed)) = (function, passed) else { return };
        match place {
            Place::Parameter => function.parameters.push(passed),
            Place::Return => function.returns.push(passed),
            _ => {}
        }
    }

    fn variable(&mut self, d: &Declaration<'_>, space: ptxc_targets::Space) -> Result<(), String> {
        let element = u64::from(d.ty.bits()).div_ceil(8);
        let unit = element * u64::from(d.lanes.max(1));
        let (sizes, open_ended) = initial::dimensions(d.dimensions)?;
        let mut size = sizes.iter().try_fold(unit, |n, s| n.checked_mul(*s).filter(|n| *n <= MOST_BYTES));
        if open_ended && d.initializer.is_none() {
            size = Some(0);
        }
        let size = size.ok_or_else(|| format!("`{}` is too large", d.name))?;
        let align = if d.align == 0 { unit.max(1).next_power_of_two() } else { d.align.into() };
        if !align.is_power_of_two() {
            return Err(format!("the alignment of `{}` is no power of two", d.name));
        }
        let kernel = self.open.as_ref().is_some_and(|open| open.kernel);
        let symbol = match space {
            ptxc_targets::Space::Param if kernel && d.place == Place::Parameter => {
                let at = self.on_stack(size, align)?;
                self.formal(d.place, Some(Passed::Bytes(at, size)));
                Symbol::Parameter(at)
            }
            ptxc_targets::Space::Param | ptxc_targets::Space::Local => {
                let at = self.on_stack(size, align)?;
                self.formal(d.place, Some(Passed::Bytes(at, size)));
                Symbol::Frame(at)
            }
            space => {
                let space = match space {
                    ptxc_targets::Space::Shared => Space::Shared,
                    ptxc_targets::Space::Const => Space::Const,
                    _ => Space::Global,
                };
                let mut variable = Variable {
                    name: d.name.to_string(),
                    space,
                    size,
                    align,
                    dynamic: space == Space::Shared && d.external,
                    external: d.external,
                    bytes: Vec::new(),
                    addresses: Vec::new(),
                };
                if let Some(text) = d.initializer {
                    let shape = Element { bytes: element, lanes: d.lanes.max(1).into(), float: d.ty };
                    let lookup = |name: &str| match self.lookup(name) {
                        Ok(Some(Name::Symbol(symbol, _))) => Some(symbol),
                        _ => None,
                    };
                    initial::contents(text, shape, &sizes, open_ended, &mut variable, lookup)?;
                }
                self.program.variables.push(variable);
                Symbol::Variable(self.program.variables.len() - 1, space)
            }
        };
        self.declare(d.name, Name::Symbol(symbol, element));
        Ok(())
    }

    /// One operand and the node after it. The reader of statements limits the depth.
    fn operand(&mut self, nodes: &[Node<'_>], at: usize) -> Result<(Operand, usize), String> {
        let node = nodes.get(at).ok_or_else(|| "an operand is missing".to_string())?;
        let list = |this: &mut Self, count: usize, from: usize| {
            let mut next = from;
            let mut out = Vec::with_capacity(count);
            for _ in 0..count {
                let (operand, after) = this.operand(nodes, next)?;
                out.push(operand);
                next = after;
            }
            Ok::<_, String>((out, next))
        };
        Ok(match node.kind {
            NodeKind::Vector(count) => {
                let (list, next) = list(self, count.into(), at + 1)?;
                (Operand::Vector(list), next)
            }
            NodeKind::Group(count) => {
                let (list, next) = list(self, count.into(), at + 1)?;
                (Operand::Group(list), next)
            }
            NodeKind::Pair => {
                let (both, next) = list(self, 2, at + 1)?;
                let both = <[Operand; 2]>::try_from(both).map_err(|_| "half a pair".to_string())?;
                (Operand::Pair(Box::new(both)), next)
            }
            NodeKind::Address(count) => {
                let (mut parts, next) = list(self, count.into(), at + 1)?;
                if parts.is_empty() {
                    return Err("an address is empty".to_string());
                }
                let first = parts.remove(0);
                let offset = nodes.get(at + 1).and_then(|n| n.offset).unwrap_or(0);
                let base = match first {
                    Operand::Register(register) => (Base::Register(register), offset),
                    Operand::Address(symbol, offset) => (Base::Symbol(symbol), offset),
                    Operand::Integer(value) => (Base::Absolute, value),
                    _ => return Err("an address has no base".to_string()),
                };
                (Operand::Memory(base.0, base.1, parts), next)
            }
            NodeKind::Integer(value) => (Operand::Integer(value), at + 1),
            NodeKind::Float(_) => (initial::float(node.text, node.minus)?, at + 1),
            NodeKind::Sink => (Operand::Sink, at + 1),
            NodeKind::Name => (self.name(node)?, at + 1),
        })
    }

    fn name(&mut self, node: &Node<'_>) -> Result<Operand, String> {
        let text = node.text;
        match self.lookup(text)? {
            Some(Name::Registers(registers)) => {
                return Ok(match registers[..] {
                    [register] if node.minus => Operand::Selected(register, true, String::new()),
                    [register] if node.not => Operand::Not(register),
                    [register] => Operand::Register(register),
                    _ => Operand::Vector(registers.into_iter().map(Operand::Register).collect()),
                });
            }
            Some(Name::Symbol(symbol, element)) => {
                let offset = node.offset.unwrap_or(0);
                let scale = if node.index { element as i64 } else { 1 };
                return Ok(Operand::Address(symbol, offset.wrapping_mul(scale)));
            }
            Some(Name::Opaque) => return Ok(Operand::Label(text.to_string())),
            None => {}
        }
        if let Some(special) = SpecialReg::from_name(text).filter(|_| text.starts_with('%')) {
            if special.lanes() == 1 {
                return Ok(Operand::Special(special));
            }
            let part = |axis: &str| SpecialReg::from_name(&format!("{text}.{axis}")).map(Operand::Special);
            let mut parts: Vec<Operand> = ["x", "y", "z"].into_iter().filter_map(part).collect();
            parts.push(Operand::Integer(0));
            return Ok(Operand::Vector(parts));
        }
        if let Some((base, part)) = text.split_once('.')
            && let Some(Name::Registers(registers)) = self.lookup(base)?
        {
            if let (Some(_), [register]) = (node.selector, &registers[..]) {
                return Ok(Operand::Selected(*register, node.minus, part.to_string()));
            }
            let lane = part.bytes().next().and_then(|letter| b"xyzw".iter().position(|l| *l == letter));
            let lane = lane.or_else(|| part.bytes().next().and_then(|b| b"rgba".iter().position(|l| *l == b)));
            if let Some(register) = lane.and_then(|lane| registers.get(lane)) {
                return Ok(if node.not { Operand::Not(*register) } else { Operand::Register(*register) });
            }
        }
        Ok(Operand::Label(text.to_string()))
    }

    fn read_statement(&mut self, statement: &Statement<'_>, names: &Declarations<'_>) -> Result<(), (String, u32)> {
        let form = self.checker.form(statement, names).map_err(|d| (d.message, d.span.start))?;
        let here = |message| (message, statement.mnemonic_span.start);
        let pieces = form.toks().map(|t| t.text()).collect();
        let mut operands = Vec::new();
        let mut at = 0;
        while at < statement.nodes.len() {
            let (operand, next) = self.operand(&statement.nodes, at).map_err(here)?;
            operands.push(operand);
            at = next;
        }
        let guard = match statement.guard {
            None => None,
            Some(guard) => match self.lookup(guard.register).map_err(here)? {
                Some(Name::Registers(registers)) => registers.first().map(|r| (r.slot, guard.negated)),
                _ => return Err(here(format!("`{}` is no predicate register", guard.register))),
            },
        };
        if let Some(open) = &mut self.open {
            open.steps.push(Raw { pieces, operands, guard, span: statement.mnemonic_span });
        }
        Ok(())
    }

    /// Decodes the function that has been read.
    fn finish(&mut self, open: Open) -> Result<(), (String, u32)> {
        let mut constants = Constants::new(open.widths.len() as u32);
        let find = |name: &str| match open.lists.get(name) {
            Some(list) => {
                let position = |label: &String| match open.labels.get(label) {
                    Some(Target::Position(at)) => Some(*at),
                    _ => None,
                };
                list.iter().map(position).collect::<Option<Vec<u32>>>().map(Target::List)
            }
            None => open.labels.get(name).cloned(),
        };
        let mut steps = Vec::with_capacity(open.steps.len() + 1);
        let mut uses_stack = false;
        for raw in &open.steps {
            let mut instruction = Instruction {
                pieces: &raw.pieces,
                operands: &raw.operands,
                constants: &mut constants,
                kernel: open.kernel,
                labels: &find,
            };
            uses_stack |= matches!(instruction.head(), "alloca" | "stackrestore");
            let operation = families::decode(&mut instruction);
            if operation.is_err() {
                self.program.refused.push(raw.span);
            }
            // What is not known is an error where it is reached.
            let operation = operation.unwrap_or_else(Operation::refused);
            steps.push(Step { operation, guard: raw.guard, span: (raw.span.start, raw.span.len) });
        }
        // The end of the body returns.
        let end = Operation::new(|_| Ok(crate::machine::Flow::Return));
        let span = open.steps.last().map_or((0, 0), |raw| (raw.span.start, raw.span.len));
        steps.push(Step { operation: end, guard: None, span });
        let first_place = self.program.places as u32;
        self.program.places += steps.len();
        let frame = if open.kernel { open.frame } else { (open.frame.0, open.frame.1.max(1)) };
        if let Some(function) = self.program.functions.get_mut(open.index) {
            let constants = constants.into_list();
            function.code = Some(Code { steps, first_place, widths: open.widths, constants, frame, uses_stack });
        }
        Ok(())
    }
}

/// `.reqntid` among the directives of a kernel.
fn required_threads(directives: &str) -> Option<[u32; 3]> {
    let (_, rest) = directives.split_once(".reqntid")?;
    let list = rest.split(['.', '{', ';']).next()?;
    let mut sizes = [1; 3];
    for (size, text) in sizes.iter_mut().zip(list.split(',')) {
        *size = text.trim().parse().ok()?;
    }
    Some(sizes)
}

impl Sink for Reading {
    fn function(&mut self, name: &str, kernel: bool, _span: Span) {
        let functions = &mut self.program.functions;
        let known = functions.iter().position(|f| f.name == name);
        let index = known.unwrap_or(functions.len());
        let (parameters, returns) = (Vec::new(), Vec::new());
        if index == functions.len() {
            let name = name.to_string();
            functions.push(Function {
                name,
                kernel,
                parameters,
                returns,
                code: None,
                required_threads: None,
                block: (0, 1),
            });
        } else {
            (functions[index].parameters, functions[index].returns) = (parameters, returns);
        }
        if let Some(scope) = self.scopes.first_mut() {
            scope.names.insert(name.to_string(), Name::Symbol(Symbol::Function(index), 1));
        }
        self.scopes.push(Scope::default());
        let widths = vec![64; FRAME as usize + 1];
        self.open = Some(Open {
            index,
            kernel,
            steps: Vec::new(),
            labels: HashMap::new(),
            lists: HashMap::new(),
            last_label: String::new(),
            widths,
            frame: (0, 1),
        });
    }

    fn body(&mut self, directives: &str, defined: bool) {
        let Some(open) = &mut self.open else { return };
        if let Some(function) = self.program.functions.get_mut(open.index) {
            function.required_threads = required_threads(directives);
            if open.kernel {
                // What was laid out so far are the parameters.
                function.block = std::mem::replace(&mut open.frame, (0, 1));
            }
        }
        if !defined {
            self.open = None;
            self.scopes.truncate(1);
        }
    }

    fn end(&mut self) {
        self.scopes.truncate(1);
        if let Some(open) = self.open.take()
            && let Err((message, at)) = self.finish(open)
        {
            self.fail(message, at);
        }
    }

    fn scope(&mut self, open: bool) {
        if open {
            self.scopes.push(Scope::default());
        } else if self.scopes.len() > 1 {
            self.scopes.pop();
        }
    }

    fn label(&mut self, name: &str, _span: Span) {
        if let Some(open) = &mut self.open {
            open.labels.insert(name.to_string(), Target::Position(open.steps.len() as u32));
            open.last_label = name.to_string();
        }
    }

    fn declaration(&mut self, declaration: &Declaration<'_>) {
        if let Err(message) = self.declared(declaration) {
            self.fail(message, declaration.span.start);
        }
    }

    fn list(&mut self, directive: &str, text: &str, _span: Span) {
        let Some(open) = &mut self.open else { return };
        let label = open.last_label.clone();
        if directive == "branchtargets" {
            let labels = text.split(',').map(|t| t.trim().to_string()).collect();
            open.lists.insert(label, labels);
        } else {
            open.labels.insert(label, Target::Prototype);
        }
    }

    fn statement(&mut self, statement: &Statement<'_>, names: &Declarations<'_>) {
        if self.error.is_none()
            && let Err((message, at)) = self.read_statement(statement, names)
        {
            self.fail(message, at);
        }
    }

    fn error(&mut self, diagnostic: Diagnostic) -> bool {
        self.fail(diagnostic.message, diagnostic.span.start);
        false
    }
}
