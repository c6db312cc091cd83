//! Atomic operations and fences (PTX ISA 9.7.14, atom and red; 9.7.13, membar and fence).

use ptxc_ir::{AtomicOp, Extra, Inst, MemAttrs, Ordering, Scalar, Space, Type};
use ptxc_mir::{GroupKind, Operand, RegClass, VReg};
use ptxc_targets::{Tok, tok};
use smallvec::SmallVec;

use super::memory::{FenceKind, Toks, push_vector, scope_tok, untyped_tok, vector_tok};
use super::{Lower, space_tok};
use crate::rules::Pattern;

/// Spelling of the order of an atomic operation, and the fences it needs around it.
struct Order {
    toks: SmallVec<[Tok; 2]>,
    before: Option<FenceKind>,
    after: Option<FenceKind>,
}

impl Lower<'_> {
    pub(super) fn atomic_rmw(&mut self, inst: Inst) {
        let Extra::Rmw(op, attrs) = self.ir.dfg.insts[inst].extra else { return };
        let ty = self.ir.dfg.insts[inst].ty;
        let (ptr, value) = (self.arg(inst, 0), self.arg(inst, 1));
        let Some(op_toks) = rmw_toks(op, ty) else {
            self.error(inst, format!("`atomicrmw {} {ty}` is not an operation of {}", op.text(), self.env.target));
            return;
        };
        let result = self.ir.dfg.first_result(inst).filter(|v| self.is_assigned(*v));
        let acquires = matches!(attrs.order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst);
        let has_red = !matches!(op, AtomicOp::Xchg) && (!acquires || self.env.target.sm() < 70);
        let is_red = result.is_none() && has_red;
        let address = self.address(ptr);
        if self.refuse_access(inst, address) {
            return;
        }
        self.note_address(ptr, address);
        self.note_rmw(op, ty, is_red);
        if ty.is_vector() && ty.bits() > 32 {
            self.vector_rmw(inst, &op_toks, is_red);
            return;
        }
        let order = self.order(attrs, address.space);
        let source = self.rmw_source(op, ty, value);
        self.emit_fence(order.before);
        let mut toks: Toks = SmallVec::new();
        toks.push(if is_red { tok::RED } else { tok::ATOM });
        toks.extend(order.toks);
        toks.extend(space_tok(address.space));
        toks.extend(op_toks);
        let attrs = self.insert_cache_hint(&mut toks, attrs, 1);
        let mut operands: SmallVec<[Operand; 16]> = SmallVec::new();
        let wide = ty.bits() == 128;
        let class = if wide { RegClass::B128 } else { self.class_of(ty) };
        let mut loaded = None;
        if !is_red {
            let reg = match result {
                Some(v) if !wide => self.def_regs(v)[0],
                _ => self.new_reg(class),
            };
            loaded = Some(reg);
            operands.push(Operand::Def(reg));
        }
        self.bracketed(address, &mut operands);
        operands.push(source);
        self.push_policy(inst, attrs, 2, &mut operands);
        self.memory = Some(self.memory_ref(ptr, false));
        self.emit_toks(&toks, &operands);
        self.emit_fence(order.after);
        if let (true, Some(reg), Some(result)) = (wide, loaded, result) {
            let halves = self.unpack(reg, RegClass::B64);
            self.bind_value(result, &halves);
        }
    }

    /// An operation on several registers side by side, each of them an atomic object (PTX ISA 9.7.14.5).
    fn vector_rmw(&mut self, inst: Inst, op_toks: &[Tok], is_red: bool) {
        let Extra::Rmw(_, attrs) = self.ir.dfg.insts[inst].extra else { return };
        let (ptr, value) = (self.arg(inst, 0), self.arg(inst, 1));
        let address = self.address(ptr);
        let order = self.order(attrs, address.space);
        let mut sources = self.regs_of(value);
        // Two floats that are computed with as a pair lie in one register.
        let packed = sources.len() == 1 && self.func.class(sources[0]) == RegClass::B64;
        if packed {
            sources = self.unpack(sources[0], RegClass::B32);
        }
        self.emit_fence(order.before);
        let mut toks: Toks = SmallVec::new();
        toks.push(if is_red { tok::RED } else { tok::ATOM });
        toks.extend(order.toks);
        toks.extend(space_tok(address.space));
        let Some((element, operation)) = op_toks.split_last() else { return };
        toks.extend_from_slice(operation);
        toks.extend(vector_tok(sources.len()));
        toks.push(*element);
        let attrs = self.insert_cache_hint(&mut toks, attrs, 2);
        let mut operands: SmallVec<[Operand; 16]> = SmallVec::new();
        let mut loaded = super::Output::new();
        if !is_red {
            loaded = sources.iter().map(|_| self.new_reg(RegClass::B32)).collect();
            push_vector(&mut operands, loaded.iter().map(|reg| Operand::Def(*reg)));
        }
        self.bracketed(address, &mut operands);
        push_vector(&mut operands, sources.iter().map(|reg| Operand::Use(*reg)));
        self.push_policy(inst, attrs, 2, &mut operands);
        self.memory = Some(self.memory_ref(ptr, false));
        self.emit_toks(&toks, &operands);
        self.emit_fence(order.after);
        if let (false, Some(result)) = (is_red, self.ir.dfg.first_result(inst).filter(|v| self.is_assigned(*v))) {
            let regs = if packed { SmallVec::from_slice(&[self.pack(RegClass::B64, &loaded)]) } else { loaded };
            self.bind_value(result, &regs);
        }
    }

    /// Names what is special about a read-modify-write.
    fn note_rmw(&mut self, op: AtomicOp, ty: Type, is_red: bool) {
        let halves = ty.scalar().bits() == 16 && op == AtomicOp::Fadd;
        let notes = [
            (is_red, Pattern::AtomicReduction),
            (op == AtomicOp::Sub, Pattern::AtomicNegated),
            (halves, Pattern::AtomicUnflushed),
            (halves && ty.is_vector(), Pattern::AtomicPair),
            (ty.is_vector() && ty.bits() > 32, Pattern::AtomicVector),
        ];
        for (applies, pattern) in notes {
            if applies {
                self.note(pattern);
            }
        }
    }

    fn class_of(&mut self, ty: Type) -> RegClass {
        self.layout(ty).class
    }

    /// The operand of a read-modify-write: negated for a subtraction, in one register.
    fn rmw_source(&mut self, op: AtomicOp, ty: Type, value: ptxc_ir::Value) -> Operand {
        if ty.bits() == 128 {
            let regs = self.regs_of(value);
            return Operand::Use(self.pack(RegClass::B128, &regs));
        }
        if op != AtomicOp::Sub {
            // An untyped exchange takes float constants as bits.
            return if op == AtomicOp::Xchg { self.bit_source(value) } else { self.source(value) };
        }
        if let Some(n) = self.const_i64(value) {
            return Operand::Imm(n.wrapping_neg());
        }
        let reg = self.reg_of(value);
        let suffix = if self.func.class(reg) == RegClass::B64 { tok::S64 } else { tok::S32 };
        let class = self.func.class(reg);
        Operand::Use(self.convert_register(reg, class, &[tok::NEG, suffix]))
    }

    pub(super) fn cmpxchg(&mut self, inst: Inst) {
        let Extra::Cmpxchg(mut attrs, failure) = self.ir.dfg.insts[inst].extra else { return };
        attrs.order = join_orders(attrs.order, failure);
        let ty = self.ir.dfg.insts[inst].ty;
        let address = self.address(self.arg(inst, 0));
        if self.refuse_access(inst, address) {
            return;
        }
        self.note_address(self.arg(inst, 0), address);
        let order = self.order(attrs, address.space);
        let wide = ty.bits() == 128;
        let class = if wide { RegClass::B128 } else { self.class_of(ty) };
        let expected = self.cas_source(inst, 1, wide);
        let desired = self.cas_source(inst, 2, wide);
        self.emit_fence(order.before);
        let mut toks: Toks = SmallVec::from_slice(&[tok::ATOM]);
        toks.extend(order.toks);
        toks.extend(space_tok(address.space));
        toks.push(tok::CAS);
        toks.push(untyped_tok(class));
        let attrs = self.insert_cache_hint(&mut toks, attrs, 1);
        let old = self.new_reg(class);
        let mut operands: SmallVec<[Operand; 16]> = SmallVec::new();
        operands.push(Operand::Def(old));
        self.bracketed(address, &mut operands);
        operands.extend([expected, desired]);
        self.push_policy(inst, attrs, 3, &mut operands);
        self.memory = Some(self.memory_ref(self.arg(inst, 0), false));
        self.emit_toks(&toks, &operands);
        self.emit_fence(order.after);
        let old_regs = if wide { self.unpack(old, RegClass::B64) } else { SmallVec::from_slice(&[old]) };
        let mut results = self.ir.dfg.results(inst);
        if let Some(value) = results.next() {
            self.bind_value(value, &old_regs);
        }
        if let Some(success) = results.next().filter(|v| self.is_assigned(*v)) {
            let equal = self.equals(inst, &old_regs, 1);
            self.bind_value(success, &[equal]);
        }
    }

    fn cas_source(&mut self, inst: Inst, index: usize, wide: bool) -> Operand {
        let value = self.arg(inst, index);
        if wide {
            let regs = self.regs_of(value);
            return Operand::Use(self.pack(RegClass::B128, &regs));
        }
        self.bit_source(value)
    }

    /// Whether registers equal argument `index`, as a predicate.
    fn equals(&mut self, inst: Inst, regs: &[VReg], index: usize) -> VReg {
        let value = self.arg(inst, index);
        let sources: SmallVec<[Operand; 2]> = match regs {
            [_] => SmallVec::from_slice(&[self.bit_source(value)]),
            _ => self.regs_of(value).iter().map(|r| Operand::Use(*r)).collect(),
        };
        let mut all: Option<VReg> = None;
        for (reg, source) in regs.iter().zip(sources) {
            let equal = self.new_reg(RegClass::Pred);
            let suffix = untyped_tok(self.func.class(*reg));
            self.emit_toks(&[tok::SETP, tok::EQ, suffix], &[Operand::Def(equal), Operand::Use(*reg), source]);
            all = Some(match all {
                None => equal,
                Some(before) => {
                    let both = self.new_reg(RegClass::Pred);
                    let operands = [Operand::Def(both), Operand::Use(before), Operand::Use(equal)];
                    self.emit_toks(&[tok::AND, tok::PRED], &operands);
                    both
                }
            });
        }
        all.unwrap_or_else(|| self.new_reg(RegClass::Pred))
    }

    /// Order and scope pieces on this target. Before sm_70 an atomic is relaxed and fences give the order; before
    /// sm_60 it has the scope of the GPU.
    fn order(&self, attrs: MemAttrs, space: Space) -> Order {
        let mut order = Order { toks: SmallVec::new(), before: None, after: None };
        let scope = attrs.scope;
        let sm = self.env.target.sm();
        if sm >= 70 {
            order.toks.push(match attrs.order {
                Ordering::Release => tok::RELEASE,
                Ordering::AcqRel => tok::ACQ_REL,
                Ordering::Acquire | Ordering::SeqCst => tok::ACQUIRE,
                Ordering::Relaxed | Ordering::NotAtomic => tok::RELAXED,
            });
            order.toks.push(scope_tok(scope));
            if attrs.order == Ordering::SeqCst {
                order.before = Some(FenceKind::Sc(scope));
            }
            return order;
        }
        if sm >= 60 && space != Space::Shared {
            order.toks.push(scope_tok(scope));
        }
        if matches!(attrs.order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst) {
            order.before = Some(FenceKind::AcqRel(scope));
        }
        if matches!(attrs.order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst) {
            order.after = Some(FenceKind::AcqRel(scope));
        }
        order
    }

    pub(super) fn fence(&mut self, inst: Inst) {
        let Extra::Fence(order, scope) = self.ir.dfg.insts[inst].extra else { return };
        let kind = if order == Ordering::SeqCst { FenceKind::Sc(scope) } else { FenceKind::AcqRel(scope) };
        self.emit_fence(Some(kind));
    }

    /// One register out of several of half, a quarter or an eighth of its width, low first.
    pub(super) fn pack(&mut self, class: RegClass, parts: &[VReg]) -> VReg {
        let out = self.new_reg(class);
        let mut operands: SmallVec<[Operand; 8]> = SmallVec::new();
        operands.push(Operand::Def(out));
        operands.push(Operand::Open(GroupKind::Vector, parts.len() as u16));
        operands.extend(parts.iter().map(|r| Operand::Use(*r)));
        self.emit_toks(&[tok::MOV, untyped_tok(class)], &operands);
        out
    }

    /// The parts of a register, low first.
    pub(super) fn unpack(&mut self, reg: VReg, part: RegClass) -> super::Output {
        let class = self.func.class(reg);
        let count = class.bits() / part.bits();
        let parts: super::Output = (0..count).map(|_| self.new_reg(part)).collect();
        let mut operands: SmallVec<[Operand; 8]> = SmallVec::new();
        operands.push(Operand::Open(GroupKind::Vector, count as u16));
        operands.extend(parts.iter().map(|r| Operand::Def(*r)));
        operands.push(Operand::Use(reg));
        self.emit_toks(&[tok::MOV, untyped_tok(class)], &operands);
        parts
    }

    /// Puts `.L2::cache_hint` in front of the last `tail` pieces, which are the type and what belongs to it, where the
    /// instruction takes it; else the attributes lose the policy.
    fn insert_cache_hint(&mut self, toks: &mut Toks, attrs: MemAttrs, tail: usize) -> MemAttrs {
        let without = MemAttrs { has_policy: false, ..attrs };
        let (true, Some(at)) = (attrs.has_policy, toks.len().checked_sub(tail)) else { return without };
        let mut hinted = toks.clone();
        hinted.insert(at, tok::L2__CACHE_HINT);
        if !self.env.dialect.has_some_form(&hinted) {
            return without;
        }
        *toks = hinted;
        self.note(Pattern::AtomicHinted);
        attrs
    }
}

/// The order that is at least as strong as both.
fn join_orders(a: Ordering, b: Ordering) -> Ordering {
    match (a, b) {
        (Ordering::Release, Ordering::Acquire) | (Ordering::Acquire, Ordering::Release) => Ordering::AcqRel,
        _ => a.max(b),
    }
}

/// Operation and type pieces of a read-modify-write; `None` for what PTX does not have on any target.
fn rmw_toks(op: AtomicOp, ty: Type) -> Option<SmallVec<[Tok; 3]>> {
    let bits = ty.bits();
    let untyped = match bits {
        16 => tok::B16,
        32 => tok::B32,
        64 => tok::B64,
        _ => tok::B128,
    };
    let int = |narrow: Tok, wide: Tok| match bits {
        32 => Some(narrow),
        64 => Some(wide),
        _ => None,
    };
    let is_float = matches!(ty.kind(), Some(Scalar::Float(_)));
    let toks: SmallVec<[Tok; 3]> = match op {
        AtomicOp::Xchg if matches!(bits, 16 | 32 | 64 | 128) => SmallVec::from_slice(&[tok::EXCH, untyped]),
        AtomicOp::Xchg => return None,
        _ if is_float != matches!(op, AtomicOp::Fadd | AtomicOp::Fsub | AtomicOp::Fmax | AtomicOp::Fmin) => {
            return None;
        }
        AtomicOp::Add | AtomicOp::Sub => SmallVec::from_slice(&[tok::ADD, int(tok::U32, tok::U64)?]),
        AtomicOp::And => SmallVec::from_slice(&[tok::AND, int(tok::B32, tok::B64)?]),
        AtomicOp::Or => SmallVec::from_slice(&[tok::OR, int(tok::B32, tok::B64)?]),
        AtomicOp::Xor => SmallVec::from_slice(&[tok::XOR, int(tok::B32, tok::B64)?]),
        AtomicOp::Smax => SmallVec::from_slice(&[tok::MAX, int(tok::S32, tok::S64)?]),
        AtomicOp::Smin => SmallVec::from_slice(&[tok::MIN, int(tok::S32, tok::S64)?]),
        AtomicOp::Umax => SmallVec::from_slice(&[tok::MAX, int(tok::U32, tok::U64)?]),
        AtomicOp::Umin => SmallVec::from_slice(&[tok::MIN, int(tok::U32, tok::U64)?]),
        AtomicOp::UincWrap if bits == 32 => SmallVec::from_slice(&[tok::INC, tok::U32]),
        AtomicOp::UdecWrap if bits == 32 => SmallVec::from_slice(&[tok::DEC, tok::U32]),
        AtomicOp::Fadd => {
            // Of a vector: its elements, which are pairs of halves.
            let element =
                if ty.is_vector() && ty.scalar().bits() == 16 { ty.scalar().with_lanes(2) } else { ty.scalar() };
            let suffix = super::mnemonic::float_tok(element);
            match ty.scalar().bits() {
                32 | 64 => SmallVec::from_slice(&[tok::ADD, suffix]),
                _ => SmallVec::from_slice(&[tok::ADD, tok::NOFTZ, suffix]),
            }
        }
        _ => return None,
    };
    Some(toks)
}
