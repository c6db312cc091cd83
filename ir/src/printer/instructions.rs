//! Labels and instructions.

use std::fmt::Write as _;

use super::Printer;
use super::constants::write_bits;
use super::names::{FuncNames, quoted_bytes, write_name};
use crate::dfg::ConstData;
use crate::entities::{Block, Inst, Value};
use crate::flags::{Flags, group};
use crate::instruction::{BlockCall, Extra, GroupKind, InstData, MemAttrs, TargetOp, TargetOperand};
use crate::module::Function;
use crate::opcode::{CacheOp, L1Evict, L2Evict, Opcode, Ordering, Scope, Shape};
use crate::target_ops::operand_len;
use crate::types::Type;

impl Printer<'_> {
    pub(super) fn label(&mut self, func: &Function, names: &FuncNames, block: Block, entry: bool) {
        names.block(&mut self.out, block);
        let params = func.dfg.block_params(block);
        if !entry && !params.is_empty() {
            for (index, param) in params.iter().enumerate() {
                self.put(if index > 0 { ", " } else { "(" });
                names.value(&mut self.out, *param);
                let _ = write!(self.out, ": {}", func.dfg.ty(*param));
            }
            self.put(")");
        }
        let hints = func.dfg.blocks[block].hints;
        match hints.unroll {
            Some(u32::MAX) => self.put(" unroll(full)"),
            Some(n) => {
                let _ = write!(self.out, " unroll({n})");
            }
            None => {}
        }
        if let Some(n) = hints.pipeline {
            let _ = write!(self.out, " pipeline(stages={n})");
        }
        self.put(":\n");
    }

    pub(super) fn inst(&mut self, func: &Function, names: &FuncNames, inst: Inst) {
        let mut one = OneInst { p: self, func, names, inst, data: &func.dfg.insts[inst], args: func.dfg.args(inst) };
        one.results();
        one.body();
        let loc = func.dfg.locs[inst];
        if loc.line != 0 {
            let _ = write!(self.out, " loc({}, {}, {})", loc.file, loc.line, loc.col);
        }
    }
}

/// One instruction being printed.
struct OneInst<'x, 'm> {
    p: &'x mut Printer<'m>,
    func: &'x Function,
    names: &'x FuncNames,
    inst: Inst,
    data: &'x InstData,
    args: &'x [Value],
}

impl OneInst<'_, '_> {
    fn put(&mut self, text: &str) {
        self.p.put(text);
    }

    fn results(&mut self) {
        let inst = self.inst;
        for (index, value) in self.func.dfg.results(inst).enumerate() {
            self.put(if index > 0 { ", " } else { "" });
            self.names.value(&mut self.p.out, value);
        }
        if self.func.dfg.num_results(inst) > 0 {
            self.put(" = ");
        }
    }

    /// An operand whose type stands before it or is otherwise known.
    fn value(&mut self, value: Value) {
        let value = self.func.dfg.resolve(value);
        if self.func.dfg.as_const(value).is_some() {
            self.p.constant(&self.func.dfg, value);
        } else {
            self.names.value(&mut self.p.out, value);
        }
    }

    /// Argument `index`; nothing when there is none (the verifier refuses that).
    fn arg(&mut self, index: usize) {
        if let Some(value) = self.args.get(index) {
            self.value(*value);
        }
    }

    /// Arguments from `from` on, each after a comma.
    fn rest(&mut self, from: usize, default: Type) {
        for index in from..self.args.len() {
            self.put(", ");
            self.untyped(index, default);
        }
    }

    /// Argument whose type is not written: a constant that has not the default type gets its type. An address says its
    /// type itself, except in target operations, which have symbols as operands of their own.
    fn untyped(&mut self, index: usize, default: Type) {
        let Some(value) = self.args.get(index).map(|v| self.func.dfg.resolve(*v)) else { return };
        let ty = self.func.dfg.ty(value);
        let is_typed = match self.func.dfg.as_const(value) {
            None => true,
            Some(ConstData::Global(..) | ConstData::Func(_)) => !default.is_invalid(),
            Some(_) => ty == default,
        };
        if !is_typed {
            let _ = write!(self.p.out, "{ty} ");
        }
        self.value(value);
    }

    fn ty(&mut self, ty: Type) {
        let _ = write!(self.p.out, "{ty} ");
    }

    /// Type of argument `index`, then the argument.
    fn typed(&mut self, index: usize) {
        if let Some(value) = self.args.get(index) {
            self.ty(self.func.dfg.ty(*value));
            self.value(*value);
        }
    }

    /// `OP flags `
    fn head(&mut self, flags: Flags) {
        let _ = write!(self.p.out, "{} {flags}", self.data.op.text());
    }

    fn body(&mut self) {
        let flags = self.data.flags;
        match self.data.op.shape() {
            Shape::Branch => return self.branch(),
            Shape::Target => return self.target_op(),
            Shape::Sreg => {
                if let Extra::Sreg(register) = self.data.extra {
                    let name = register.name();
                    let _ = write!(self.p.out, "sreg.{}", name.strip_prefix('%').unwrap_or(name));
                }
                return;
            }
            Shape::Nullary | Shape::ActiveMask => return self.put(self.data.op.text()),
            Shape::Return if self.args.is_empty() => return self.put("ret"),
            Shape::FloatCompare | Shape::IntCompare => {
                self.head(flags);
                match self.data.extra {
                    Extra::IntCC(cc) => self.put(cc.text()),
                    Extra::FloatCC(cc) => self.put(cc.text()),
                    _ => {}
                }
                self.put(" ");
            }
            _ => self.head(flags),
        }
        self.operands();
    }

    fn operands(&mut self) {
        let ty = self.data.ty;
        match self.data.op.shape() {
            Shape::Unary
            | Shape::Binary
            | Shape::BinaryOverflow
            | Shape::Ternary
            | Shape::FloatClass
            | Shape::IntCompare
            | Shape::FloatCompare
            | Shape::BuildVector
            | Shape::Splat
            | Shape::Reduce
            | Shape::Shuffle
            | Shape::Insert
            | Shape::Extract => self.same_type(),
            Shape::Convert => {
                self.typed(0);
                let _ = write!(self.p.out, " to {ty}");
            }
            Shape::ConvertRandom => {
                self.typed(0);
                self.rest(1, Type::I32);
                let _ = write!(self.p.out, " to {ty}");
            }
            Shape::Select => {
                self.typed(0);
                self.put(", ");
                self.ty(ty);
                self.arg(1);
                self.put(", ");
                self.arg(2);
            }
            Shape::Load
            | Shape::Store
            | Shape::AtomicRmw
            | Shape::Cmpxchg
            | Shape::Fence
            | Shape::MemCopy
            | Shape::MemSet
            | Shape::Gep
            | Shape::Alloca
            | Shape::IsSpace => self.memory(),
            Shape::Jump | Shape::Switch | Shape::Return | Shape::Call | Shape::CallIndirect | Shape::Predicate => {
                self.control();
            }
            Shape::Asm => self.inline_assembly(),
            Shape::Shuffle4 | Shape::MatchAny | Shape::MatchAll | Shape::Redux => {
                self.ty(ty);
                self.arg(0);
                self.rest(1, Type::I32);
            }
            Shape::Vote | Shape::Ballot => {
                self.arg(0);
                self.rest(1, Type::I32);
            }
            Shape::BarrierReduce => {
                let last = self.args.len().saturating_sub(1);
                for index in 0..last {
                    self.untyped(index, Type::I32);
                    self.put(", ");
                }
                self.arg(last);
            }
            _ => {
                self.untyped(0, Type::I32);
                self.rest(1, Type::I32);
            }
        }
    }

    /// `T %a, %b, …` and what follows.
    fn same_type(&mut self) {
        self.ty(self.data.ty);
        self.arg(0);
        match self.data.op.shape() {
            Shape::Extract => self.rest(1, Type::I32),
            Shape::Insert => {
                self.put(", ");
                self.arg(1);
                self.rest(2, Type::I32);
            }
            _ => {
                for index in 1..self.args.len() {
                    self.put(", ");
                    self.arg(index);
                }
            }
        }
        match self.data.extra {
            Extra::Imm(mask) => {
                let _ = write!(self.p.out, ", {mask}");
            }
            Extra::Mask(id) => {
                for (index, lane) in self.func.dfg.masks[id].iter().enumerate() {
                    self.put(if index > 0 { ", " } else { ", [" });
                    let _ = match lane {
                        0.. => write!(self.p.out, "{lane}"),
                        _ => write!(self.p.out, "poison"),
                    };
                }
                self.put("]");
            }
            _ => {}
        }
    }

    fn attributes(&mut self, mem: MemAttrs, natural: u64, failure: Option<Ordering>) {
        if mem.order != Ordering::NotAtomic {
            let _ = write!(self.p.out, ", {}", mem.order.text());
        }
        if let Some(order) = failure {
            let _ = write!(self.p.out, ", {}", order.text());
        }
        if mem.scope != Scope::Sys {
            let _ = write!(self.p.out, ", scope({})", mem.scope.text());
        }
        if mem.align() != natural {
            let _ = write!(self.p.out, ", align {}", mem.align());
        }
        self.put(if mem.volatile { ", volatile" } else { "" });
        self.put(if mem.invariant { ", invariant" } else { "" });
        if mem.cache != CacheOp::None {
            let _ = write!(self.p.out, ", cache({})", mem.cache.text());
        }
        if mem.l1 != L1Evict::None {
            let _ = write!(self.p.out, ", l1({})", mem.l1.text());
        }
        if mem.l2 != L2Evict::None {
            let _ = write!(self.p.out, ", l2({})", mem.l2.text());
        }
        if mem.prefetch != 0 {
            let _ = write!(self.p.out, ", prefetch({})", mem.prefetch);
        }
        if mem.has_policy && !self.args.is_empty() {
            self.put(", policy(");
            self.arg(self.args.len() - 1);
            self.put(")");
        }
    }

    fn memory(&mut self) {
        let ty = self.data.ty;
        let op = self.data.op;
        match self.data.extra {
            Extra::Mem(mem) => {
                let _ = write!(self.p.out, "{ty}");
                let pointer = usize::from(op == Opcode::Store);
                if op == Opcode::Store {
                    self.put(" ");
                    self.arg(0);
                }
                self.put(", ");
                self.untyped(pointer, Type::PTR);
                self.attributes(mem, ty.align(), None);
            }
            Extra::Rmw(_, mem) | Extra::Cmpxchg(mem, _) => {
                let (count, failure) = match self.data.extra {
                    Extra::Rmw(rmw, _) => {
                        let _ = write!(self.p.out, "{} ", rmw.text());
                        (2, None)
                    }
                    Extra::Cmpxchg(_, failure) => (3, Some(failure)),
                    _ => (2, None),
                };
                self.ty(ty);
                self.untyped(0, Type::PTR);
                for index in 1..count {
                    self.put(", ");
                    self.arg(index);
                }
                self.attributes(mem, ty.align(), failure);
            }
            Extra::Fence(order, scope) => {
                self.put(order.text());
                if scope != Scope::Sys {
                    let _ = write!(self.p.out, ", scope({})", scope.text());
                }
            }
            Extra::Copy { dst_align, src_align, volatile } => {
                self.untyped(0, Type::PTR);
                self.put(", ");
                self.untyped(1, if op == Opcode::Memset { Type::I8 } else { Type::PTR });
                self.put(", ");
                self.untyped(2, Type::I64);
                let _ = write!(self.p.out, ", align {dst_align}");
                if op != Opcode::Memset {
                    let _ = write!(self.p.out, ", align {src_align}");
                }
                self.put(if volatile { ", volatile" } else { "" });
            }
            Extra::Gep(over) => {
                self.p.mem_type(over);
                self.put(", ");
                self.untyped(0, Type::PTR);
                self.rest(1, Type::I64);
            }
            Extra::Alloca { ty, count, align } => {
                self.p.mem_type(ty);
                if count != 1 {
                    let _ = write!(self.p.out, ", count {count}");
                }
                if u64::from(align) != self.p.module.layout_of(ty).align {
                    let _ = write!(self.p.out, ", align {align}");
                }
            }
            Extra::Space(space) => {
                let _ = write!(self.p.out, "{} ", space.name());
                self.untyped(0, Type::PTR);
            }
            _ => {}
        }
    }

    fn target(&mut self, target: &BlockCall) {
        self.names.block(&mut self.p.out, target.block);
        let args = target.args.as_slice(&self.func.dfg.pool);
        for (index, arg) in args.iter().enumerate() {
            self.put(if index > 0 { ", " } else { "(" });
            self.value(*arg);
        }
        if !args.is_empty() {
            self.put(")");
        }
    }

    fn branch(&mut self) {
        let Extra::Branch { then, other, weights } = self.data.extra else { return };
        self.head(self.data.flags.without(Flags::UNIFORM));
        self.arg(0);
        self.put(", ");
        self.target(&then);
        self.put(", ");
        self.target(&other);
        if self.data.flags.bits() & group::UNIFORM != 0 {
            self.put(", uniform");
        }
        if weights != (0, 0) {
            let _ = write!(self.p.out, ", weights({}, {})", weights.0, weights.1);
        }
    }

    fn call_args(&mut self, from: usize) {
        self.put("(");
        for index in from..self.args.len() {
            self.put(if index > from { ", " } else { "" });
            self.arg(index);
        }
        self.put(")");
    }

    fn control(&mut self) {
        match &self.data.extra {
            Extra::Jump(target) => self.target(target),
            Extra::Switch(id) => {
                let data = &self.func.dfg.switches[*id];
                self.ty(self.data.ty);
                self.arg(0);
                self.put(", ");
                self.target(&data.default);
                self.put(" [");
                for (index, (bits, target)) in data.cases.iter().enumerate() {
                    self.put(if index > 0 { ", " } else { "" });
                    self.case(*bits);
                    self.put(": ");
                    self.target(target);
                }
                self.put("]");
            }
            Extra::Call(func) => {
                write_name(&mut self.p.out, "@", &self.p.module.funcs[*func].name);
                self.call_args(0);
            }
            Extra::CallIndirect(sig) => {
                self.p.signature(&self.func.dfg.signatures[*sig]);
                self.put(", ");
                self.untyped(0, Type::PTR);
                self.call_args(1);
            }
            // `ret` and `assume`.
            _ => {
                self.arg(0);
                for index in 1..self.args.len() {
                    self.put(", ");
                    self.arg(index);
                }
            }
        }
    }

    /// The value of a case: a number also for i1.
    fn case(&mut self, bits: u128) {
        match self.data.ty {
            Type::I1 => self.put(if bits == 0 { "0" } else { "1" }),
            ty => write_bits(&mut self.p.out, ty, bits),
        }
    }

    fn inline_assembly(&mut self) {
        let Extra::Target(id) = self.data.extra else { return };
        if let TargetOp::Opaque { text } = &self.func.dfg.target_ops[id] {
            let text = quoted_bytes(text.as_bytes());
            self.put(&text);
        }
        self.put(" (");
        for index in 0..self.args.len() {
            self.put(if index > 0 { ", " } else { "" });
            self.typed(index);
        }
        self.put(")");
        for (index, value) in self.func.dfg.results(self.inst).enumerate() {
            self.put(if index > 0 { ", " } else { " -> (" });
            let _ = write!(self.p.out, "{}", self.func.dfg.ty(value));
        }
        if self.func.dfg.num_results(self.inst) > 0 {
            self.put(")");
        }
    }

    fn target_op(&mut self) {
        let Extra::Target(id) = self.data.extra else { return };
        let TargetOp::Known { toks, guard, operands } = &self.func.dfg.target_ops[id] else { return };
        self.put("ptx.");
        if let Some((arg, negated)) = guard {
            // `@true` would be the name of a symbol.
            let constant = self.args.get(usize::from(*arg)).is_some_and(|v| self.func.dfg.as_const(*v).is_some());
            self.put(match (negated, constant) {
                (true, _) => "@!",
                (false, true) => "@ ",
                (false, false) => "@",
            });
            self.arg(usize::from(*arg));
            self.put(" ");
        }
        for (index, tok) in toks.iter().enumerate() {
            self.put(if index > 0 { "." } else { "" });
            self.put(tok.text());
        }
        let mut rest = &operands[..];
        let mut first = true;
        while !rest.is_empty() {
            let (operand, after) = rest.split_at(operand_len(rest));
            rest = after;
            if is_destination(operand) {
                continue;
            }
            self.put(if first { " " } else { ", " });
            first = false;
            self.target_operand(operand, 0);
        }
    }

    /// One operand with all its parts.
    fn target_operand(&mut self, operand: &[TargetOperand], depth: u32) {
        let Some((head, mut parts)) = operand.split_first() else { return };
        let _ = match *head {
            TargetOperand::Arg(index) | TargetOperand::InOut { arg: index, .. } => {
                self.untyped(usize::from(index), Type::INVALID);
                Ok(())
            }
            TargetOperand::ArgNot(index) => {
                self.put("!");
                self.arg(usize::from(index));
                Ok(())
            }
            TargetOperand::Part { arg, lanes, minus } => {
                self.put(if minus { "-" } else { "" });
                if let Some(lanes) = lanes {
                    self.put(lanes.text());
                    self.put("(");
                }
                self.untyped(usize::from(arg), Type::INVALID);
                self.put(if lanes.is_some() { ")" } else { "" });
                Ok(())
            }
            TargetOperand::ResultPart { lanes, .. } => write!(self.p.out, "{lanes}(_)"),
            TargetOperand::Imm(n) => write!(self.p.out, "{n}"),
            TargetOperand::F32(bits) => write!(self.p.out, "0f{bits:08X}"),
            TargetOperand::F64(bits) => write!(self.p.out, "0d{bits:016X}"),
            TargetOperand::Sink => write!(self.p.out, "_"),
            TargetOperand::Sreg(register) => write!(self.p.out, "sreg.{}", &register.name()[1..]),
            TargetOperand::Global(global, offset) => {
                write_name(&mut self.p.out, "@", &self.p.module.globals[global].name);
                match offset {
                    0 => Ok(()),
                    1.. => write!(self.p.out, " + {offset}"),
                    _ => write!(self.p.out, " - {}", offset.unsigned_abs()),
                }
            }
            TargetOperand::Offset(n) if n < 0 => write!(self.p.out, " - {}", n.unsigned_abs()),
            TargetOperand::Offset(n) => write!(self.p.out, " + {n}"),
            TargetOperand::Result(_) => Ok(()),
            TargetOperand::Group(kind, _) if depth < 4 => {
                let (open, close, separator) = match kind {
                    GroupKind::Vector => ("{", "}", ", "),
                    GroupKind::Address => ("[", "]", ", "),
                    GroupKind::Pair => ("", "", "|"),
                    GroupKind::Paren => ("(", ")", ", "),
                };
                self.put(open);
                let mut first = true;
                while !parts.is_empty() {
                    let (part, after) = parts.split_at(operand_len(parts));
                    parts = after;
                    let is_offset = matches!(part, [TargetOperand::Offset(_)]);
                    self.put(if first || is_offset { "" } else { separator });
                    first = false;
                    self.target_operand(part, depth + 1);
                }
                self.put(close);
                Ok(())
            }
            TargetOperand::Group(..) => Ok(()),
        };
    }
}

/// True for an operand that is written by results alone: it stands left of `=`.
fn is_destination(operand: &[TargetOperand]) -> bool {
    let mut results = operand.iter().filter(|o| !matches!(o, TargetOperand::Group(..))).peekable();
    results.peek().is_some() && results.all(|o| matches!(o, TargetOperand::Result(_)))
}
