//! Atomic operations that the target lacks: loops around compare-and-exchange.
//!
//! Objects of 8 and 16 bits are changed within the aligned 32-bit word that holds them. The exchange
//! carries the order and scope of the operation; the first load of the loop is relaxed, since the exchange checks what it
//! gave. Only a compare-and-exchange of 16 bits, which a program asks for, is one from sm_70 on.

use ptxc_ir::builder::Cursor;
use ptxc_ir::{AtomicOp, Extra, Inst, IntCC, MemAttrs, Opcode, Ordering, Type, Value};
use smallvec::SmallVec;

use super::context::Context;
use crate::rules::Pattern;

/// Where an object lies within its word.
struct InWord {
    /// Address of the word.
    ptr: Value,
    /// Bits below the object.
    shift: Value,
    /// Ones where the object is.
    mask: Value,
    /// Attributes of an access to the word.
    attrs: MemAttrs,
}

fn relaxed(attrs: MemAttrs) -> MemAttrs {
    MemAttrs { order: Ordering::Relaxed, has_policy: false, ..attrs }
}

impl Context<'_> {
    /// `atomicrmw`.
    pub fn expand_atomic_rmw(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        let Extra::Rmw(op, attrs) = data.extra else { return };
        let args = self.args(inst);
        let (ptr, value) = (args[0], args[1]);
        if self.features.atomic_op(op, data.ty) {
            return;
        }
        if data.ty.is_vector() && data.ty.bits() > 32 {
            let space = self.ty(ptr).space();
            if self.features.vector_atomic(op, data.ty, space, attrs.align()) {
                return;
            }
            if op == AtomicOp::Fsub && self.features.vector_atomic(AtomicOp::Fadd, data.ty, space, attrs.align()) {
                self.add_negated(inst, attrs, &args);
                return;
            }
            self.split_vector_atomic(inst, op, attrs, &args);
            return;
        }
        if op == AtomicOp::Fsub && self.features.atomic_op(AtomicOp::Fadd, data.ty) {
            self.add_negated(inst, attrs, &args);
            return;
        }
        let bits = data.ty.bits();
        if bits == 128
            && let Some(why) = self.features.lacks_exchange_128()
        {
            self.error(format!("atomic {} on {}: {why}", op.text(), data.ty));
            return;
        }
        // `atom.cas.b16` (sm_70) is no instruction of the machine: ptxas makes a loop of each.
        if bits < 32 {
            self.rmw_in_word(inst, op, attrs, ptr, value);
        } else {
            self.rmw_loop(inst, op, attrs, ptr, value);
        }
    }

    /// A subtraction adds the negated value.
    fn add_negated(&mut self, inst: Inst, attrs: MemAttrs, args: &[Value]) {
        self.note(Pattern::LegalAtomicNegated);
        let data = self.func.dfg.insts[inst].clone();
        let mut operands: SmallVec<[Value; 4]> = SmallVec::from_slice(args);
        operands[1] = self.un(Opcode::Fneg, args[1]);
        let extra = Extra::Rmw(AtomicOp::Fadd, attrs);
        let old = self.value(Opcode::AtomicRmw, data.flags, data.ty, &operands, extra);
        self.replace(inst, &[old]);
    }

    /// An atomic operation on a vector is one on each element, in no order (PTX ISA 9.7.13.5): pairs of 16-bit lanes, or
    /// single lanes, one after the other.
    fn split_vector_atomic(&mut self, inst: Inst, op: AtomicOp, attrs: MemAttrs, args: &[Value]) {
        self.note(Pattern::LegalAtomicSplit);
        let ty = self.ty(args[1]);
        let scalar = ty.scalar();
        let per = if scalar.bits() == 16 && ty.lanes().is_multiple_of(2) { 2 } else { 1 };
        let piece = if per == 2 { scalar.with_lanes(2) } else { scalar };
        let mut made: SmallVec<[Inst; 8]> = SmallVec::new();
        let mut lanes: SmallVec<[Value; 16]> = SmallVec::new();
        for first in (0..ty.lanes()).step_by(per as usize) {
            let parts: SmallVec<[Value; 2]> = (first..first + per).map(|lane| self.extract(args[1], lane)).collect();
            let value = if per == 2 { self.vector(piece, &parts) } else { parts[0] };
            let offset = i64::from(first) * scalar.size() as i64;
            let address = self.offset(args[0], offset);
            let align = attrs.align_log2.min(if offset == 0 { 63 } else { offset.trailing_zeros() as u8 });
            let mut operands: SmallVec<[Value; 4]> = SmallVec::from_slice(args);
            (operands[0], operands[1]) = (address, value);
            let extra = Extra::Rmw(op, MemAttrs { align_log2: align, ..attrs });
            let new = self.inst(Opcode::AtomicRmw, ptxc_ir::Flags::EMPTY, piece, &operands, extra);
            made.push(new);
            let old = self.func.dfg.result(new, 0);
            if per == 2 {
                lanes.extend((0..2).map(|lane| self.extract(old, lane)));
            } else {
                lanes.push(old);
            }
        }
        let whole = self.vector(ty, &lanes);
        self.replace(inst, &[whole]);
        // From the last to the first, as everything in this pass.
        for inst in made.into_iter().rev() {
            self.rewrite_at(inst);
            self.expand_atomic_rmw(inst);
        }
    }

    /// What an operation stores.
    fn apply_atomic(&mut self, op: AtomicOp, old: Value, value: Value) -> Value {
        let plain = match op {
            AtomicOp::Xchg => return value,
            AtomicOp::Add => Opcode::Add,
            AtomicOp::Sub => Opcode::Sub,
            AtomicOp::And => Opcode::And,
            AtomicOp::Or => Opcode::Or,
            AtomicOp::Xor => Opcode::Xor,
            AtomicOp::Smax => Opcode::Smax,
            AtomicOp::Smin => Opcode::Smin,
            AtomicOp::Umax => Opcode::Umax,
            AtomicOp::Umin => Opcode::Umin,
            AtomicOp::Fadd => Opcode::Fadd,
            AtomicOp::Fsub => Opcode::Fsub,
            AtomicOp::Fmax => Opcode::Fmax,
            AtomicOp::Fmin => Opcode::Fmin,
            AtomicOp::Nand => {
                let both = self.bin(Opcode::And, old, value);
                return self.bin_imm(Opcode::Xor, both, -1);
            }
            AtomicOp::UincWrap => {
                let next = self.bin_imm(Opcode::Add, old, 1);
                let wraps = self.icmp(IntCC::Uge, old, value);
                let ty = self.ty(old);
                let zero = self.imm(ty, 0);
                return self.select(wraps, zero, next);
            }
            AtomicOp::UdecWrap => {
                let next = self.bin_imm(Opcode::Sub, old, 1);
                let empty = self.icmp_imm(IntCC::Eq, old, 0);
                let above = self.icmp(IntCC::Ugt, old, value);
                let wraps = self.bin(Opcode::Or, empty, above);
                return self.select(wraps, value, next);
            }
        };
        self.bin_flags(plain, ptxc_ir::Flags::EMPTY, old, value)
    }

    fn rmw_loop(&mut self, inst: Inst, op: AtomicOp, attrs: MemAttrs, ptr: Value, value: Value) {
        self.note(Pattern::LegalAtomicLoop);
        let ty = self.ty(value);
        let int = Type::int(ty.bits());
        let Some(tail) = self.split_before(inst) else { return };
        let (looping, params) = self.block_before(tail, &[int]);
        let first = self.load(int, ptr, None, relaxed(attrs));
        self.jump(looping, &[first]);
        self.cursor = Cursor::End(looping);
        let old = self.conv_between(params[0], ty);
        let new = self.apply_atomic(op, old, value);
        let new = self.conv_between(new, int);
        let (seen, done) = self.exchange(ptr, params[0], new, attrs);
        self.branch(done, (tail, &[]), (looping, &[seen]));
        self.replace(inst, &[old]);
    }

    fn conv_between(&mut self, value: Value, ty: Type) -> Value {
        let from = self.ty(value);
        let op = match (from.is_ptr(), ty.is_ptr()) {
            (true, false) => Opcode::Ptrtoint,
            (false, true) => Opcode::Inttoptr,
            _ => Opcode::Bitcast,
        };
        self.conv(op, value, ty)
    }

    fn exchange(&mut self, ptr: Value, expected: Value, new: Value, attrs: MemAttrs) -> (Value, Value) {
        let attrs = MemAttrs { has_policy: false, ..attrs };
        self.builder().cmpxchg(ptr, expected, new, attrs, Ordering::Relaxed)
    }

    /// Finds the aligned word around an object of 8 or 16 bits.
    fn containing_word(&mut self, ptr: Value, bits: u32, attrs: MemAttrs) -> InWord {
        let address = self.conv(Opcode::Ptrtoint, ptr, Type::I64);
        let word = self.bin_imm(Opcode::And, address, -4);
        let ty = self.ty(ptr);
        let word = self.conv(Opcode::Inttoptr, word, ty);
        let low = self.conv(Opcode::Trunc, address, Type::I32);
        let byte = self.bin_imm(Opcode::And, low, 3);
        let shift = self.bin_imm(Opcode::Shl, byte, 3);
        let ones = self.imm(Type::I32, (1 << bits) - 1);
        let mask = self.bin(Opcode::Shl, ones, shift);
        InWord { ptr: word, shift, mask, attrs: MemAttrs { align_log2: 2, has_policy: false, ..attrs } }
    }

    fn field(&mut self, place: &InWord, word: Value, ty: Type) -> Value {
        let shifted = self.bin(Opcode::Lshr, word, place.shift);
        let bits = self.conv(Opcode::Trunc, shifted, Type::int(ty.bits()));
        self.conv_between(bits, ty)
    }

    fn placed(&mut self, place: &InWord, value: Value) -> Value {
        let bits = self.ty(value).bits();
        let int = self.conv_between(value, Type::int(bits));
        let wide = self.conv(Opcode::Zext, int, Type::I32);
        self.bin(Opcode::Shl, wide, place.shift)
    }

    fn merged(&mut self, place: &InWord, word: Value, value: Value) -> Value {
        let outside = self.bin_imm(Opcode::Xor, place.mask, -1);
        let rest = self.bin(Opcode::And, word, outside);
        let value = self.placed(place, value);
        self.bin(Opcode::Or, rest, value)
    }

    fn rmw_in_word(&mut self, inst: Inst, op: AtomicOp, attrs: MemAttrs, ptr: Value, value: Value) {
        self.note(Pattern::LegalAtomicWord);
        let ty = self.ty(value);
        if matches!(op, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor) {
            // Logic on the word leaves the bits beside the object alone.
            let place = self.containing_word(ptr, ty.bits(), attrs);
            let mut operand = self.placed(&place, value);
            if op == AtomicOp::And {
                let outside = self.bin_imm(Opcode::Xor, place.mask, -1);
                operand = self.bin(Opcode::Or, operand, outside);
            }
            let old = self.builder().atomic_rmw(op, place.ptr, operand, place.attrs);
            let old = self.field(&place, old, ty);
            self.replace(inst, &[old]);
            return;
        }
        let Some(tail) = self.split_before(inst) else { return };
        let place = self.containing_word(ptr, ty.bits(), attrs);
        let (looping, params) = self.block_before(tail, &[Type::I32]);
        let first = self.load(Type::I32, place.ptr, None, relaxed(place.attrs));
        self.jump(looping, &[first]);
        self.cursor = Cursor::End(looping);
        let old = self.field(&place, params[0], ty);
        let new = self.apply_atomic(op, old, value);
        let new = self.merged(&place, params[0], new);
        let (seen, done) = self.exchange(place.ptr, params[0], new, place.attrs);
        self.branch(done, (tail, &[]), (looping, &[seen]));
        self.replace(inst, &[old]);
    }

    /// `cmpxchg`.
    pub fn expand_cmpxchg(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        let Extra::Cmpxchg(attrs, failure) = data.extra else { return };
        let args = self.args(inst);
        let bits = data.ty.bits();
        if bits < 32 && !self.features.compare_exchange(bits) {
            self.cmpxchg_in_word(inst, &args, attrs, failure);
        } else if bits == 128
            && let Some(why) = self.features.lacks_exchange_128()
        {
            self.error(format!("cmpxchg on {}: {why}", data.ty));
        }
    }

    /// The word is exchanged while its part compares equal; it is tried again when only the rest of it changed.
    fn cmpxchg_in_word(&mut self, inst: Inst, args: &[Value], attrs: MemAttrs, failure: Ordering) {
        self.note(Pattern::LegalExchangeWord);
        let ty = self.ty(args[1]);
        let int = Type::int(ty.bits());
        let Some(tail) = self.split_before(inst) else { return };
        let place = self.containing_word(args[0], ty.bits(), attrs);
        let expected = self.conv_between(args[1], int);
        let (looping, params) = self.block_before(tail, &[Type::I32]);
        let (attempt, _) = self.block_before(tail, &[]);
        let (done, results) = self.block_before(tail, &[int, Type::I1]);
        // When the first load decides, it is all there is of the failed exchange, so it has the order of one.
        let first_attrs = MemAttrs { order: failure, ..place.attrs };
        let first = self.load(Type::I32, place.ptr, None, first_attrs);
        self.jump(looping, &[first]);
        self.cursor = Cursor::End(looping);
        let field = self.field(&place, params[0], int);
        let same = self.icmp(IntCC::Eq, field, expected);
        let no = self.bool(false);
        self.branch(same, (attempt, &[]), (done, &[field, no]));
        self.cursor = Cursor::End(attempt);
        let new = self.merged(&place, params[0], args[2]);
        let (seen, ok) = self.builder().cmpxchg(place.ptr, params[0], new, place.attrs, failure);
        let yes = self.bool(true);
        self.branch(ok, (done, &[field, yes]), (looping, &[seen]));
        self.cursor = Cursor::End(done);
        let old = self.conv_between(results[0], ty);
        self.jump(tail, &[]);
        self.replace(inst, &[old, results[1]]);
    }
}
