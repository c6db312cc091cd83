//! What selection joins or does in pairs: conversions that round and saturate, halves in pairs, sums over many words.

use ptxc_ir::{Extra, Flags, FloatKind, IntCC, Opcode, Type, Value};

use super::body::{Body, mask};

impl Body<'_> {
    /// A conversion with the operations around it that one instruction may do as well.
    pub fn converted(&mut self) -> Value {
        if self.floats.is_empty() {
            return self.clamped();
        }
        match self.rng.below(6) {
            0 => self.clamped(),
            5 => self.clamped_pack(),
            1 => self.whole(),
            2 => self.integer_as_float(),
            3 => self.unit(),
            _ => self.shortened(),
        }
    }

    /// An integer brought into the range of a narrower type, and made one.
    fn clamped(&mut self) -> Value {
        let wide = self.pick(&[Type::I32, Type::I32, Type::I64, Type::I16], Type::I32);
        let narrow = self.pick(&[Type::I8, Type::I16, Type::I32], Type::I8);
        let wide = if narrow.scalar_bits() >= wide.scalar_bits() { Type::I64 } else { wide };
        let wide = self.widened(wide);
        let bits = narrow.scalar_bits();
        let value = self.operand(wide);
        let low = self.b.bits(wide, (1u128 << (bits - 1)).wrapping_neg());
        let high = self.b.bits(wide, mask(bits - 1));
        let (zero, all) = (self.int(wide, 0), self.b.bits(wide, mask(bits)));
        let inside = match self.rng.below(4) {
            0 => self.op(Opcode::Umin, &[value, all]),
            1 => {
                let above = self.op(Opcode::Smax, &[value, zero]);
                self.op(Opcode::Smin, &[above, all])
            }
            2 => {
                let below = self.op(Opcode::Smin, &[value, high]);
                self.op(Opcode::Smax, &[below, low])
            }
            _ => {
                // As comparisons.
                let above = self.icmp(IntCC::Slt, value, low);
                let value = self.select(above, low, value);
                let below = self.icmp(IntCC::Sgt, value, high);
                self.select(below, high, value)
            }
        };
        let narrow = self.convert(Opcode::Trunc, inside, wide.with_scalar(narrow));
        if self.once_in(2) {
            return narrow;
        }
        let op = if self.once_in(2) { Opcode::Sext } else { Opcode::Zext };
        self.convert(op, narrow, wide)
    }

    /// Words brought into the range of bytes or halves and put together, with a wrong bound or place now and then.
    fn clamped_pack(&mut self) -> Value {
        let (bits, signed) = (self.pick(&[8, 8, 16], 8), self.once_in(2));
        let count = if bits == 16 { 2 } else { 2 + self.rng.below(3) as u32 };
        let (low, high) = if signed { (-(1i64 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1i64 << bits) - 1) };
        let mut sum: Option<Value> = None;
        for part in 0..count {
            let (low, high) = if self.once_in(16) { (low + 1, high) } else { (low, high) };
            let (low, high) = (self.int(Type::I32, low), self.int(Type::I32, high));
            let mut value = self.operand(Type::I32);
            let order = if self.once_in(2) {
                [(Opcode::Smax, low), (Opcode::Smin, high)]
            } else {
                [(Opcode::Smin, high), (Opcode::Smax, low)]
            };
            for (op, bound) in order {
                value = self.op(op, &[value, bound]);
            }
            if signed {
                value = self.masked(value, mask(bits));
            }
            let place = if self.once_in(16) { part } else { bits * part };
            let place = self.int(Type::I32, place.into());
            value = self.op(Opcode::Shl, &[value, place]);
            sum = Some(match sum {
                Some(sum) => self.op(Opcode::Or, &[sum, value]),
                None => value,
            });
        }
        match sum {
            Some(sum) => sum,
            None => self.clamped(),
        }
    }

    /// A float made whole, and then an integer.
    fn whole(&mut self) -> Value {
        let ty = self.float_type();
        let value = self.operand(ty);
        let round = [Opcode::Ffloor, Opcode::Fceil, Opcode::Ftrunc, Opcode::Frint, Opcode::Fround];
        let round = self.pick(&round, Opcode::Frint);
        let value = if self.once_in(4) { value } else { self.op(round, &[value]) };
        let to = self.pick(&[Type::I8, Type::I16, Type::I32, Type::I64], Type::I32);
        let op = if self.once_in(2) { Opcode::FptosiSat } else { Opcode::FptouiSat };
        let flags = self.rounding(Flags::EMPTY);
        self.emit(op, flags, to, &[value], Extra::None)
    }

    fn rounding(&mut self, otherwise: Flags) -> Flags {
        let modes = [Flags::EMPTY, Flags::RN, Flags::RZ, Flags::RM, Flags::RP];
        if self.features.rounding { self.pick(&modes, otherwise) } else { otherwise }
    }

    /// An integer, of which some bits may be known, made a float.
    fn integer_as_float(&mut self) -> Value {
        let ty = self.float_type();
        let int = self.pick(&[Type::I8, Type::I16, Type::I32, Type::I64], Type::I32);
        let value = self.operand(int);
        let op = if self.once_in(2) { Opcode::Sitofp } else { Opcode::Uitofp };
        let value = if self.once_in(3) { self.masked(value, mask(7)) } else { value };
        let rounds = matches!(ty.float_kind(), Some(FloatKind::F32 | FloatKind::F64));
        let flags = if rounds { self.rounding(Flags::EMPTY) } else { Flags::EMPTY };
        self.emit(op, flags, ty, &[value], Extra::None)
    }

    /// A float brought between zero and one after an operation.
    fn unit(&mut self) -> Value {
        let ty = self.float_type();
        let (a, b, c) = (self.operand(ty), self.operand(ty), self.operand(ty));
        let value = match self.rng.below(4) {
            0 => self.op(Opcode::Fadd, &[a, b]),
            1 => self.op(Opcode::Fmul, &[a, b]),
            2 => self.op(Opcode::Fma, &[a, b, c]),
            _ => a,
        };
        let (zero, one) = (self.small(ty, 0), self.small(ty, 1));
        match self.rng.below(3) {
            0 => self.op(Opcode::Fmax, &[value, zero]),
            1 => {
                let below = self.op(Opcode::Fmin, &[value, one]);
                self.op(Opcode::Fmax, &[below, zero])
            }
            _ => {
                let above = self.op(Opcode::Fmax, &[value, zero]);
                self.op(Opcode::Fmin, &[above, one])
            }
        }
    }

    /// Two floats made halves, and a pair of them.
    fn shortened(&mut self) -> Value {
        let halves: Vec<Type> = self.floats.iter().copied().filter(|ty| ty.scalar_bits() == 16).collect();
        if halves.is_empty() || !self.floats.contains(&Type::F32) {
            return self.unit();
        }
        let half = self.pick(&halves, Type::F16);
        let parts: Vec<Value> = (0..2)
            .map(|_| {
                let value = self.operand(Type::F32);
                let zero = self.small(Type::F32, 0);
                let value = if self.once_in(3) { self.op(Opcode::Fmax, &[value, zero]) } else { value };
                self.convert(Opcode::Fptrunc, value, half)
            })
            .collect();
        let pair = self.emit(Opcode::Vector, Flags::EMPTY, half.with_lanes(2), &parts, Extra::None);
        let pair = self.settled(pair);
        if self.once_in(2) { pair } else { self.convert(Opcode::Bitcast, pair, Type::I32) }
    }

    /// Operations on two scalars each, whose results become the lanes of a vector.
    pub fn paired(&mut self) -> Value {
        let mut types = vec![Type::I16, Type::I8];
        types.extend(self.floats.iter().copied());
        let ty = self.pick(&types, Type::I16);
        let count = if ty == Type::I8 { 4 } else { 2 };
        let vectors: Vec<Value> = (0..3).map(|_| self.operand(ty.with_lanes(count))).collect();
        let ops: &[Opcode] = if ty.is_float() {
            &[Opcode::Fadd, Opcode::Fmul, Opcode::Fsub, Opcode::Fma, Opcode::Fmin, Opcode::Fmax]
        } else {
            &[Opcode::Add, Opcode::Sub, Opcode::Mul, Opcode::Smin, Opcode::Umax, Opcode::UaddSat, Opcode::SsubSat]
        };
        let op = self.pick(ops, ops[0]);
        let arity = if op == Opcode::Fma { 3 } else { 2 };
        let mut lanes: Vec<Value> = Vec::new();
        for lane in 0..count {
            // Rarely another lane, or another operation.
            let from = if self.once_in(8) { self.rng.below(count as usize) as u32 } else { lane };
            let from = self.int(Type::I32, from.into());
            let args: Vec<Value> = vectors
                .iter()
                .take(arity)
                .map(|v| self.emit(Opcode::Extract, Flags::EMPTY, ty.with_lanes(count), &[*v, from], Extra::None))
                .collect();
            let op = if arity == 2 && self.once_in(12) { self.pick(&ops[..3], op) } else { op };
            lanes.push(self.op(op, &args));
        }
        if self.once_in(6) {
            lanes.reverse();
        }
        self.emit(Opcode::Vector, Flags::EMPTY, ty.with_lanes(count), &lanes, Extra::None)
    }

    /// A sum or difference over up to six words, of products perhaps, by operations that say what they carry. The words
    /// are kept; the carry out of the last is the result.
    pub fn many_words(&mut self) -> Value {
        let ty = self.pick(&[Type::I32, Type::I64], Type::I32);
        let adds = self.once_in(2);
        let op = if adds { Opcode::UaddOverflow } else { Opcode::UsubOverflow };
        let join = self.pick(&[Opcode::Or, Opcode::Xor, Opcode::Or, Opcode::Umax], Opcode::Or);
        let factor = if self.once_in(3) { Some(self.operand(ty)) } else { None };
        let words = 2 + self.rng.below(5);
        let mut carry: Option<Value> = None;
        let mut high = self.int(ty, 0);
        for _ in 0..words {
            let (a, mut b) = (self.operand(ty), self.operand(ty));
            if let Some(factor) = factor {
                let low = self.op(Opcode::Mul, &[b, factor]);
                let (sum, lost) = self.overflows(Opcode::UaddOverflow, low, high);
                let upper = self.op(Opcode::Umulh, &[b, factor]);
                let lost = self.convert(Opcode::Zext, lost, ty);
                high = self.op(Opcode::Add, &[upper, lost]);
                b = sum;
            }
            let (mut sum, mut out) = self.overflows(op, a, b);
            if let Some(carry) = carry {
                let carry = self.convert(Opcode::Zext, carry, ty);
                let (with, again) = self.overflows(op, sum, carry);
                out = self.op(join, &[out, again]);
                sum = with;
            }
            self.keep(sum);
            carry = Some(out);
        }
        carry.unwrap_or(high)
    }

    /// The result of an operation and whether it overflows.
    pub fn overflows(&mut self, op: Opcode, a: Value, b: Value) -> (Value, Value) {
        let ty = self.b.ty(a);
        let inst = self.b.inst(op, Flags::EMPTY, ty, &[a, b], Extra::None);
        let (result, lost) = (self.b.func.dfg.result(inst, 0), self.b.func.dfg.result(inst, 1));
        if self.is_uniform(a) && self.is_uniform(b) {
            self.uniform.insert(result);
            self.uniform.insert(lost);
        }
        (result, lost)
    }
}
