//! Statements of assembly text to operations over the text's registers.

use std::collections::BTreeMap;

use ptxc_targets::{Kind, Lanes, Node, NodeKind, RegType, Role, SpecialReg, Statement, Tok, tok};
use smallvec::SmallVec;

use super::text::{Part, walk};
use crate::instruction::{GroupKind, TargetOperand};
use crate::module::{GlobalKind, Module, Symbol};
use crate::reader::parse_float;
use crate::target_ops::{register_type, result_type, shapes};
use crate::types::{FloatKind, Type};

/// A text that is understood.
pub(super) struct Assembly {
    /// The text's registers: its results, then what it declares.
    pub registers: Vec<Register>,
    /// In order.
    pub operations: Vec<Operation>,
}

/// A register of the text.
pub(super) struct Register {
    /// Type of the values it holds.
    pub ty: Type,
    /// As the tables see it.
    declared: Option<RegType>,
    written: bool,
}

/// One statement, ready to be placed.
pub(super) struct Operation {
    /// Mnemonic.
    pub toks: SmallVec<[Tok; 12]>,
    /// Index into `args`, and negation.
    pub guard: Option<(u16, bool)>,
    /// Operands.
    pub operands: Vec<TargetOperand>,
    /// What is read.
    pub args: Vec<Source>,
    /// Which registers it writes, in order of its results.
    pub results: Vec<u16>,
}

/// Something that is read.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// An argument of the assembly.
    Arg(u16),
    /// A register that an earlier statement wrote.
    Register(u16),
}

/// How an operand is read.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Read,
    Written,
    /// Read, then written.
    Both,
}

/// Reads the text of an assembly with arguments and results of these types. `None` if it is not understood.
pub(super) fn read(module: &Module, text: &str, args: Vec<Type>, results: Vec<Type>) -> Option<Assembly> {
    let register = |ty: &Type| Register { ty: *ty, declared: register_type(*ty), written: false };
    let num_results = results.len();
    let mut reader = Reading {
        module,
        args,
        num_results,
        registers: results.iter().map(register).collect(),
        scopes: vec![BTreeMap::new()],
    };
    let mut operations = Vec::new();
    let all = walk(text, |part| reader.part(part, &mut operations).is_some());
    let whole = all && reader.scopes.len() == 1 && reader.registers.iter().take(num_results).all(|r| r.written);
    whole.then_some(Assembly { registers: reader.registers, operations })
}

/// What statements are read against.
struct Reading<'x> {
    module: &'x Module,
    args: Vec<Type>,
    num_results: usize,
    registers: Vec<Register>,
    /// Names of declared registers, innermost block last.
    scopes: Vec<BTreeMap<String, u16>>,
}

impl Reading<'_> {
    fn part(&mut self, part: Part, operations: &mut Vec<Operation>) -> Option<()> {
        match part {
            Part::Open => self.scopes.push(BTreeMap::new()),
            Part::Close => {
                self.scopes.pop();
                // A brace too many closes the outermost one.
                self.scopes.last()?;
            }
            Part::Registers(ty, names) => {
                for name in names {
                    let index = u16::try_from(self.registers.len()).ok()?;
                    self.registers.push(Register { ty: result_type(ty), declared: Some(ty), written: false });
                    if self.scopes.last_mut()?.insert(name, index).is_some() {
                        return None;
                    }
                }
            }
            Part::Statement(statement) => {
                let operation = self.operation(statement)?;
                for index in &operation.results {
                    self.registers.get_mut(usize::from(*index))?.written = true;
                }
                operations.push(operation);
            }
        }
        Some(())
    }

    fn operation(&self, statement: &Statement) -> Option<Operation> {
        let mut toks: SmallVec<[Tok; 12]> = statement.toks().ok()?.into_iter().collect();
        if statement.unified {
            toks.push(tok::UNIFIED);
        }
        // Destinations stand first in every form; forms of one mnemonic may differ in how many there are.
        let lists = ptxc_targets::operand_lists(&toks);
        let count = |list: &Vec<ptxc_targets::OperandDesc>| list.iter().take_while(|o| o.role == Role::Dest).count();
        let most = lists.iter().map(count).max()?;
        let tied = lists.iter().any(|list| list.first().is_some_and(|first| first.role == Role::ReadWrite));
        let label = lists.iter().flatten().any(|operand| operand.kind == Kind::Label);
        if label {
            return None;
        }
        let both = tied.then_some((1, Use::Both));
        let attempts = (0..=most).rev().map(|count| (count, Use::Written));
        both.into_iter().chain(attempts).find_map(|(count, usage)| {
            let operation = self.with_destinations(statement, &toks, count, usage)?;
            let written = if usage == Use::Both { 0 } else { count };
            self.fits(&operation, written).then_some(operation)
        })
    }

    /// Reads the first `dests` operands as destinations.
    fn with_destinations(&self, statement: &Statement, toks: &[Tok], dests: usize, usage: Use) -> Option<Operation> {
        let mut out = Operation {
            toks: SmallVec::from_slice(toks),
            guard: None,
            operands: Vec::new(),
            args: Vec::new(),
            results: Vec::new(),
        };
        let (mut index, mut at) = (0, 0);
        while at < statement.nodes.len() {
            let halves = if statement.nodes[at].kind == NodeKind::Pair { 2 } else { 1 };
            let usage = if index < dests { usage } else { Use::Read };
            at = self.tree(statement, at, usage, &mut out)?;
            index += halves;
        }
        if let Some(guard) = statement.guard {
            let source = self.source(guard.register)?;
            out.args.push(source);
            out.guard = Some((out.args.len() as u16 - 1, guard.negated));
        }
        Some(out)
    }

    /// One operand with its parts; gives the node after it.
    fn tree(&self, statement: &Statement, at: usize, usage: Use, out: &mut Operation) -> Option<usize> {
        let node = statement.nodes.get(at)?;
        let (kind, count) = match node.kind {
            NodeKind::Vector(count) => (GroupKind::Vector, count),
            NodeKind::Address(count) => (GroupKind::Address, u16::from(count)),
            NodeKind::Pair => (GroupKind::Pair, 2),
            NodeKind::Group(_) => return None,
            _ => {
                self.leaf(node, statement, usage, out)?;
                return Some(at + 1);
            }
        };
        let place = out.operands.len();
        out.operands.push(TargetOperand::Group(kind, count));
        let mut next = at + 1;
        let mut parts = count;
        let usage = if kind == GroupKind::Address { Use::Read } else { usage };
        for _ in 0..count {
            let offset = statement.nodes.get(next)?.offset;
            let before = out.operands.len();
            next = self.tree(statement, next, usage, out)?;
            let is_register = matches!(out.operands.get(before), Some(TargetOperand::Arg(_)));
            if let Some(offset) = offset.filter(|_| is_register) {
                out.operands.push(TargetOperand::Offset(offset));
                parts += 1;
            }
        }
        out.operands[place] = TargetOperand::Group(kind, parts);
        Some(next)
    }

    fn leaf(&self, node: &Node, statement: &Statement, usage: Use, out: &mut Operation) -> Option<()> {
        if node.index {
            return None;
        }
        if node.selector.is_some() || (node.minus && node.kind == NodeKind::Name) {
            return self.lanes(node, usage, out);
        }
        let operand = match node.kind {
            NodeKind::Sink => TargetOperand::Sink,
            NodeKind::Integer(value) => TargetOperand::Imm(value),
            NodeKind::Float(double) => float(node, double, &out.toks)?,
            _ if usage != Use::Read => self.destination(node, usage, statement.guard.is_some(), out)?,
            _ if node.text.starts_with('%') && self.local(node.text).is_none() => {
                TargetOperand::Sreg(SpecialReg::from_name(node.text)?)
            }
            _ => match self.symbol(node.text) {
                Some(Symbol::Global(global)) => {
                    let variable = matches!(self.module.globals[global].kind, GlobalKind::Variable(_));
                    let offset =
                        i32::try_from(node.offset.unwrap_or(0)).ok().filter(|offset| variable || *offset == 0)?;
                    TargetOperand::Global(global, offset)
                }
                Some(Symbol::Func(_)) => return None,
                None => {
                    let index = self.read(node.text, out)?;
                    if node.not { TargetOperand::ArgNot(index) } else { TargetOperand::Arg(index) }
                }
            },
        };
        out.operands.push(operand);
        Some(())
    }

    /// A register that is written. Under a guard it keeps what it held, if it held anything.
    fn destination(&self, node: &Node, usage: Use, guarded: bool, out: &mut Operation) -> Option<TargetOperand> {
        let index = self.register(node.text)?;
        if node.not || out.results.contains(&index) {
            return None;
        }
        out.results.push(index);
        let result = out.results.len() as u16 - 1;
        let written = self.registers.get(usize::from(index))?.written;
        if usage == Use::Both || (guarded && written) {
            return Some(TargetOperand::InOut { result, arg: self.read(node.text, out)? });
        }
        Some(TargetOperand::Result(result))
    }

    /// `$0.b1`, `-$0` and their like.
    fn lanes(&self, node: &Node, usage: Use, out: &mut Operation) -> Option<()> {
        let (text, lanes) = match node.text.split_once('.') {
            Some((text, lanes)) => (text, Some(Lanes::from_text(lanes)?)),
            None => (node.text, None),
        };
        if usage != Use::Read {
            if node.minus || !out.operands.is_empty() {
                return None;
            }
            out.results.push(self.register(text)?);
            out.operands.push(TargetOperand::ResultPart { result: 0, lanes: lanes? });
            return Some(());
        }
        let arg = self.read(text, out)?;
        out.operands.push(TargetOperand::Part { arg, lanes, minus: node.minus });
        Some(())
    }

    /// A variable of the module, unless a register of the text has the name.
    fn symbol(&self, text: &str) -> Option<Symbol> {
        if self.local(text).is_some() || text.starts_with('$') { None } else { self.module.symbol(text) }
    }

    /// A declared register.
    fn local(&self, text: &str) -> Option<u16> {
        self.scopes.iter().rev().find_map(|scope| scope.get(text)).copied()
    }

    /// A register that may be written: a result or a declared one.
    fn register(&self, text: &str) -> Option<u16> {
        self.local(text).or_else(|| placeholder(text).filter(|index| usize::from(*index) < self.num_results))
    }

    /// Adds an argument for something that is read.
    fn read(&self, text: &str, out: &mut Operation) -> Option<u16> {
        let source = self.source(text)?;
        out.args.push(source);
        u16::try_from(out.args.len() - 1).ok()
    }

    /// Something that is read: an argument, or a register that is written already.
    fn source(&self, text: &str) -> Option<Source> {
        if let Some(index) = self.register(text) {
            return self.registers.get(usize::from(index))?.written.then_some(Source::Register(index));
        }
        let arg = usize::from(placeholder(text)?).checked_sub(self.num_results)?;
        (arg < self.args.len()).then_some(Source::Arg(arg as u16))
    }

    fn declared(&self, source: Source) -> Option<RegType> {
        match source {
            Source::Arg(index) => register_type(*self.args.get(usize::from(index))?),
            Source::Register(index) => self.registers.get(usize::from(index))?.declared,
        }
    }

    /// The table takes the operation with the declared types, and has as many destinations.
    fn fits(&self, operation: &Operation, dests: usize) -> bool {
        let arg = |index: u16| self.declared(*operation.args.get(usize::from(index))?);
        let result = |index: u16| self.declared(Source::Register(*operation.results.get(usize::from(index))?));
        let guard = operation.guard.is_none_or(|(index, _)| arg(index) == Some(RegType::Pred));
        let shapes = shapes(self.module, &operation.operands, &arg, &result);
        let form = shapes.and_then(|shapes| ptxc_targets::resolve(&operation.toks, &shapes).ok());
        let count = |form: &ptxc_targets::Form| form.operands().iter().filter(|o| o.role == Role::Dest).count();
        guard && form.is_some_and(|form| count(&form) == dests)
    }
}

/// A floating point constant; a decimal one is of the type that the mnemonic speaks of.
fn float(node: &Node, double: Option<bool>, toks: &[Tok]) -> Option<TargetOperand> {
    let double = double.unwrap_or_else(|| toks.iter().any(|tok| matches!(*tok, tok::F64 | tok::B64)));
    // PTX writes the prefix in either case, and a sign before it.
    let text = match node.text.as_bytes() {
        [b'0', b'F' | b'D', ..] => node.text.replacen('F', "f", 1).replacen('D', "d", 1),
        _ => node.text.to_owned(),
    };
    let bits = parse_float(&text, if double { FloatKind::F64 } else { FloatKind::F32 })?;
    let sign = u128::from(node.minus) << if double { 63 } else { 31 };
    let bits = bits ^ sign;
    Some(if double { TargetOperand::F64(bits as u64) } else { TargetOperand::F32(bits as u32) })
}

/// The number of `$n`.
fn placeholder(text: &str) -> Option<u16> {
    let digits = text.strip_prefix('$')?;
    let plain = !digits.is_empty() && digits.len() <= 4 && digits.bytes().all(|b| b.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}
