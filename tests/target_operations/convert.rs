//! From a PTX statement to a function of IR text around the same target operation.
//!
//! Registers that are read come from memory, results go there, so that nothing of it can be left out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ptxc::ir::target_ops::result_type;
use ptxc::targets::{
    Declarations, Diagnostic, NodeKind, RegType, Role, Shape, Sink, SpecialReg, Statement, Symbol, Tok, resolve,
    walk_module,
};

use crate::record::Record;

/// A function of IR text.
pub struct Converted {
    /// The function, named `@kN`.
    pub text: String,
    /// Lines of the module that it needs, by the name of the variable.
    pub globals: BTreeMap<String, String>,
    /// Pieces of the mnemonic, sorted.
    pub pieces: Vec<String>,
}

/// Why a form has no IR of its own.
pub type Reason = &'static str;

/// A PTX module with the statement in it.
fn module(record: &Record) -> String {
    let Record { module, declarations, statement, .. } = record;
    let head = match record.around.split_at(1) {
        ("f", parameters) => format!(".visible .func f({parameters})"),
        (_, parameters) => format!(".visible .entry k({parameters})"),
    };
    format!("{module}\n{head} {{ {declarations}\n{statement}\n}}\n")
}

/// Converts a record to the function `@kINDEX`.
pub fn convert(record: &Record, index: usize) -> Result<Converted, Reason> {
    let ptx = module(record);
    let mut first = First { record, index, result: None };
    walk_module(&ptx, &mut first);
    first.result.unwrap_or(Err("declarations alone, or a block"))
}

struct First<'r> {
    record: &'r Record,
    index: usize,
    result: Option<Result<Converted, Reason>>,
}

impl Sink for First<'_> {
    fn statement(&mut self, statement: &Statement, declarations: &Declarations) {
        // The statements of functions that are called stand before.
        let callee = statement.mnemonic == "ret" && !self.record.statement.contains("ret");
        if !callee {
            let several = self.result.is_some();
            let result = Conversion::new(self.record, statement, declarations).convert(self.index);
            self.result = Some(if several { Err("declarations alone, or a block") } else { result });
        }
    }

    fn error(&mut self, _: Diagnostic) -> bool {
        self.result = Some(Err("not read by the tables"));
        false
    }
}

struct Conversion<'c> {
    record: &'c Record,
    statement: &'c Statement<'c>,
    declarations: &'c Declarations<'c>,
    /// Lines before the operation.
    before: String,
    /// Lines after it.
    after: String,
    /// Names left of `=`.
    results: Vec<String>,
    globals: BTreeMap<String, String>,
    parameters: String,
    values: usize,
}

impl<'c> Conversion<'c> {
    fn new(record: &'c Record, statement: &'c Statement<'c>, declarations: &'c Declarations<'c>) -> Conversion<'c> {
        Conversion {
            record,
            statement,
            declarations,
            before: String::new(),
            after: String::new(),
            results: Vec::new(),
            globals: BTreeMap::new(),
            parameters: String::new(),
            values: 0,
        }
    }

    fn convert(mut self, index: usize) -> Result<Converted, Reason> {
        let statement = self.statement;
        let mnemonic =
            if statement.unified { format!("{}.unified", statement.mnemonic) } else { statement.mnemonic.to_owned() };
        if matches!(mnemonic.split('.').next(), Some("bra" | "brx")) {
            return Err("labels");
        }
        if mnemonic.starts_with("call") {
            return Err("calls");
        }
        let toks: Vec<Tok> = mnemonic.split('.').filter_map(Tok::from_text).collect();
        let form = resolve(&toks, &self.shapes()?).map_err(|_| "not taken by the tables")?;
        let written: Vec<(Role, RegType)> = form
            .operands()
            .iter()
            .filter(|operand| matches!(operand.role, Role::Dest | Role::ReadWrite))
            .map(|operand| (operand.role, operand.ty))
            .collect();
        let mut operands = Vec::new();
        let (mut at, mut half) = (0, 0);
        while at < statement.nodes.len() {
            let node = &statement.nodes[at];
            if node.kind == NodeKind::Pair && half < written.len() {
                at = self.destination(at + 1, written[half], &mut operands)?;
                // The second half is there, and may be a sink.
                let second = *written.get(half + 1).ok_or("a pair of one")?;
                // A second half that is not wanted is left out.
                at = match statement.nodes.get(at).map(|node| node.kind) {
                    Some(NodeKind::Sink) => at + 1,
                    _ => self.destination(at, second, &mut operands)?,
                };
                half += 2;
            } else if half < written.len() {
                at = self.destination(at, written[half], &mut operands)?;
                half += 1;
            } else {
                let mut text = String::new();
                at = self.source(at, &mut text)?;
                operands.push(text);
            }
        }
        let guard = match statement.guard {
            Some(guard) => {
                let value = self.load(RegType::Pred);
                format!("@{}{value} ", if guard.negated { "!" } else { "" })
            }
            None => String::new(),
        };
        let left = if self.results.is_empty() { String::new() } else { format!("{} = ", self.results.join(", ")) };
        let head = if self.record.around.starts_with('f') { "func" } else { "kernel" };
        let text = format!(
            "{head} @k{index}(%in: ptr<global>, %out: ptr<global>{}) {{\nentry:\n{}  {left}ptx.{guard}{mnemonic} {}\n{}  ret\n}}\n",
            self.parameters,
            self.before,
            operands.join(", "),
            self.after
        );
        let mut pieces: Vec<String> = mnemonic.split('.').map(str::to_owned).collect();
        pieces.sort();
        Ok(Converted { text, globals: self.globals, pieces })
    }

    /// The operands' shapes, as the tables ask for them.
    fn shapes(&self) -> Result<Vec<Shape>, Reason> {
        let mut shapes = Vec::new();
        for (at, node) in self.statement.nodes.iter().enumerate() {
            shapes.push(match node.kind {
                NodeKind::Name => match self.declarations.lookup(node.text) {
                    Some(Symbol::Register(ty)) if node.minus => Shape::Minus(ty, None),
                    Some(Symbol::Register(_)) if node.not => Shape::NegatedPredicate,
                    Some(Symbol::Register(ty)) => Shape::Register(ty),
                    Some(Symbol::Vector(ty, lanes)) => Shape::WideRegister(ty, lanes),
                    Some(Symbol::Variable(space)) if node.index && !self.in_brackets(at) => Shape::Element(space),
                    Some(Symbol::Variable(space)) => Shape::Variable(space),
                    Some(Symbol::Opaque(ty)) => Shape::Opaque(ty),
                    Some(Symbol::Function) => Shape::Symbol,
                    Some(Symbol::Label) => Shape::Label,
                    None => self.component(node)?,
                },
                NodeKind::Integer(value) => Shape::Integer(value),
                NodeKind::Float(double) => Shape::Float(double),
                NodeKind::Sink => Shape::Sink,
                NodeKind::Vector(count) => Shape::Vector(count),
                NodeKind::Group(count) => Shape::Group(count),
                NodeKind::Pair => Shape::Pair,
                NodeKind::Address(count) => Shape::Address(count),
            });
        }
        Ok(shapes)
    }

    /// Whether a node is the base of an address.
    fn in_brackets(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|before| self.statement.nodes.get(before));
        before.is_some_and(|node| matches!(node.kind, NodeKind::Address(_)))
    }

    fn component(&self, node: &ptxc::targets::Node) -> Result<Shape, Reason> {
        if let Some(register) = SpecialReg::from_name(node.text) {
            return Ok(match register.lanes() {
                1 => Shape::SpecialOf(register.ty()),
                lanes => Shape::WideRegister(register.ty(), lanes),
            });
        }
        let (base, selector) = (node.text.split('.').next().unwrap_or(""), node.selector);
        match (self.declarations.lookup(base), selector) {
            (Some(Symbol::Register(ty)), Some(selector)) if node.minus => Ok(Shape::Minus(ty, Some(selector))),
            (Some(Symbol::Register(ty)), Some(selector)) => Ok(Shape::Selected(ty, selector)),
            (Some(Symbol::Vector(ty, _)), None) => Ok(Shape::Register(ty)),
            _ => Err("unknown name"),
        }
    }

    fn fresh(&mut self) -> usize {
        self.values += 1;
        self.values
    }

    /// A value of that type from memory.
    fn load(&mut self, ty: RegType) -> String {
        let number = self.fresh();
        let _ = match ty {
            RegType::Pred => writeln!(
                self.before,
                "  %w{number} = load i32, %in, volatile\n  %v{number} = icmp slt i32 %w{number}, 5"
            ),
            _ => writeln!(self.before, "  %v{number} = load {}, %in, volatile", result_type(ty)),
        };
        format!("%v{number}")
    }

    /// A result; gives the node after its operand. A register that is read as well is also an operand on the right.
    fn destination(
        &mut self,
        at: usize,
        (role, ty): (Role, RegType),
        operands: &mut Vec<String>,
    ) -> Result<usize, Reason> {
        let node = &self.statement.nodes[at];
        let mut leaves = vec![at];
        let mut next = at + 1;
        if let NodeKind::Vector(count) = node.kind {
            next = at + 1 + usize::from(count);
            leaves = (at + 1..next).collect();
        }
        let mut read = Vec::new();
        for leaf in leaves {
            let leaf = &self.statement.nodes[leaf];
            if leaf.kind == NodeKind::Sink {
                // One `_` is written on the right; in a vector every element has a name.
                if next == at + 1 {
                    operands.push("_".to_owned());
                    return Ok(next);
                }
            }
            let selector = leaf.text.split_once('.').map_or("", |(_, selector)| selector);
            if !selector.is_empty() {
                operands.push(format!("{selector}(_)"));
            }
            if role == Role::ReadWrite {
                read.push(self.load(ty));
            }
            let number = self.fresh();
            self.results.push(format!("%v{number}"));
            let _ = match ty {
                RegType::Pred => writeln!(
                    self.after,
                    "  %w{number} = zext i1 %v{number} to i32\n  store i32 %w{number}, %out, volatile"
                ),
                _ => writeln!(self.after, "  store {} %v{number}, %out, volatile", result_type(ty)),
            };
        }
        if role == Role::ReadWrite {
            let list = read.join(", ");
            operands.push(if next == at + 1 { list } else { format!("{{{list}}}") });
        }
        Ok(next)
    }

    /// An operand that is read; gives the node after it.
    fn source(&mut self, at: usize, text: &mut String) -> Result<usize, Reason> {
        let node = &self.statement.nodes[at];
        let (open, close, count) = match node.kind {
            NodeKind::Vector(count) => ("{", "}", usize::from(count)),
            NodeKind::Address(count) => ("[", "]", usize::from(count)),
            NodeKind::Group(count) => ("(", ")", usize::from(count)),
            NodeKind::Pair => {
                let middle = self.source(at + 1, text)?;
                text.push('|');
                return self.source(middle, text);
            }
            _ => {
                self.leaf(at, text)?;
                return Ok(at + 1);
            }
        };
        text.push_str(open);
        let mut next = at + 1;
        for index in 0..count {
            if index > 0 {
                text.push_str(", ");
            }
            next = self.source(next, text)?;
        }
        text.push_str(close);
        Ok(next)
    }

    fn leaf(&mut self, at: usize, text: &mut String) -> Result<(), Reason> {
        let node = &self.statement.nodes[at];
        // `name[4]` is an address without brackets, but for `mov` and `cvta`, which take the address itself.
        let takes_address = matches!(self.statement.mnemonic.split('.').next(), Some("mov" | "cvta"));
        let bare = node.index && !self.in_brackets(at) && !takes_address;
        let _ = match node.kind {
            NodeKind::Sink => write!(text, "_"),
            NodeKind::Integer(value) => write!(text, "{value}"),
            NodeKind::Float(_) => write!(text, "{}{}", if node.minus { "-" } else { "" }, node.text),
            _ if SpecialReg::from_name(node.text).is_some() && self.declarations.lookup(node.text).is_none() => {
                write!(text, "sreg.{}", &node.text[1..])
            }
            _ => {
                let name = self.name(node)?;
                let sign = if node.not {
                    "!"
                } else if node.minus {
                    "-"
                } else {
                    ""
                };
                if bare {
                    text.push('[');
                }
                write!(text, "{sign}{name}")
            }
        };
        // Parameters and variables of the frame are values of the IR, of which `mov` takes no part.
        if takes_address
            && text.ends_with(&format!("%{}", node.text))
            && self.declarations.lookup(node.text).is_some_and(|s| matches!(s, Symbol::Variable(_)))
        {
            return Err("addresses by name");
        }
        match node.offset {
            Some(offset) if offset < 0 => drop(write!(text, " - {}", offset.unsigned_abs())),
            Some(offset) => drop(write!(text, " + {offset}")),
            None => {}
        }
        if bare {
            text.push(']');
        }
        Ok(())
    }

    fn name(&mut self, node: &ptxc::targets::Node) -> Result<String, Reason> {
        let (base, part) = node.text.split_once('.').unwrap_or((node.text, ""));
        if node.selector.is_some() {
            let Some(Symbol::Register(ty)) = self.declarations.lookup(base) else { return Err("unknown name") };
            return Ok(format!("{part}({})", self.load(ty)));
        }
        match self.declarations.lookup(base) {
            Some(Symbol::Register(ty)) => Ok(self.load(ty)),
            Some(Symbol::Opaque(ty)) => {
                let keyword = match ty {
                    RegType::Texref => "texture",
                    RegType::Surfref => "surface",
                    _ => "sampler",
                };
                self.globals.insert(base.to_owned(), format!("{keyword} @{base}\n"));
                Ok(format!("@{base}"))
            }
            Some(Symbol::Variable(_)) => self.variable(base),
            Some(Symbol::Function) => Err("calls"),
            Some(Symbol::Label) => Err("labels"),
            _ => Err("vector registers"),
        }
    }

    /// A variable: of the module, of the frame, or a parameter.
    fn variable(&mut self, name: &str) -> Result<String, Reason> {
        let Record { module, around, declarations, .. } = self.record;
        let found = [module, declarations, &around[1..].to_owned()]
            .into_iter()
            .find_map(|text| declaration(text, name))
            .ok_or("undeclared variable")?;
        let (space, align, ty) = found;
        match space.as_str() {
            "param" if around.contains(name) && around.starts_with('f') => Err("parameters of functions"),
            "param" if around.contains(name) && self.statement.mnemonic.contains("param::func") => {
                Err("parameters of functions")
            }
            "param" if around.contains(name) => {
                let _ = write!(self.parameters, ", %{name}: ptr<param> byval({ty}) align {align}");
                Ok(format!("%{name}"))
            }
            "param" => Err("parameters of calls"),
            "local" => {
                let _ = writeln!(self.before, "  %{name} = alloca {ty}, align {align}");
                Ok(format!("%{name}"))
            }
            "shared" => {
                self.globals.insert(name.to_owned(), format!("shared @{name}: {ty}, align {align}\n"));
                Ok(format!("@{name}"))
            }
            "const" | "global" => {
                self.globals.insert(name.to_owned(), format!("{space} @{name}: {ty} = zero, align {align}\n"));
                Ok(format!("@{name}"))
            }
            _ => Err("undeclared variable"),
        }
    }
}

/// Space, alignment and IR type of a variable, from text such as `.shared .align 64 .b8 name[64]`.
fn declaration(text: &str, name: &str) -> Option<(String, u32, String)> {
    let part = text.split([';', ',']).find(|part| {
        let last = part.split_whitespace().next_back().unwrap_or("");
        last.split('[').next() == Some(name)
    })?;
    let words: Vec<&str> = part.split_whitespace().collect();
    let space = words.first()?.trim_start_matches('.').to_owned();
    let ty = words.iter().rev().nth(1)?.trim_start_matches('.');
    let bits: u32 = ty.trim_start_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()?;
    let align = words.iter().position(|word| *word == ".align").and_then(|at| words.get(at + 1)?.parse().ok());
    let ty = match words.last()?.split_once('[') {
        Some((_, count)) => format!("[{} x i{bits}]", count.trim_end_matches(']')),
        None => format!("i{bits}"),
    };
    Some((space, align.unwrap_or(bits / 8), ty))
}
