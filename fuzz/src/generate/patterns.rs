//! Shapes of code that selection looks for, with the small deviations that it must not overlook.

use ptxc_ir::{IntCC, Opcode, Type, Value};

use super::body::Body;

impl Body<'_> {
    /// One pattern, its result kept. False when none is wanted.
    pub fn pattern(&mut self) -> bool {
        let f = *self.features;
        let value = match self.rng.below(16) {
            0 if f.byte_shuffles => self.bytes(),
            1 if f.logic_trees => self.logic(),
            2 if f.dot_products => self.dot_product(),
            3 if f.carry_chains => self.carries(),
            4 if f.packed_halves => self.packed(),
            5 if f.bit_fields => self.field(),
            6 if f.comparisons => self.comparison(),
            7 if f.conversions => self.converted(),
            8 if f.pairs => self.paired(),
            9 if f.many_words => self.many_words(),
            10 | 11 if f.idioms => self.idiom(),
            12 | 13 if f.spellings => self.spelled(),
            14 | 15 if f.halves => self.halves(),
            _ => return false,
        };
        self.keep(value);
        true
    }

    pub(super) fn shift(&mut self, op: Opcode, value: Value, amount: i64) -> Value {
        let amount = self.int(self.b.ty(value), amount);
        self.op(op, &[value, amount])
    }

    /// A word put together from bytes of two others.
    fn bytes(&mut self) -> Value {
        let sources = [self.operand(Type::I32), self.operand(Type::I32)];
        let mut sum = self.int(Type::I32, 0);
        for position in 0..4 {
            let source = self.pick(&sources, sources[0]);
            let byte = self.rng.below(4) as i64;
            let piece = match self.rng.below(5) {
                0 => {
                    let narrow = self.shift(Opcode::Lshr, source, 8 * byte);
                    let narrow = self.convert(Opcode::Trunc, narrow, Type::I8);
                    self.convert(Opcode::Zext, narrow, Type::I32)
                }
                1 => {
                    let top = self.shift(Opcode::Ashr, source, 8 * byte + 7);
                    self.masked(top, 0xff)
                }
                _ => {
                    let low = self.shift(Opcode::Lshr, source, 8 * byte);
                    self.masked(low, 0xff)
                }
            };
            let placed = self.shift(Opcode::Shl, piece, 8 * position);
            let op = if self.once_in(6) { Opcode::Add } else { Opcode::Or };
            sum = self.op(op, &[sum, placed]);
        }
        sum
    }

    /// A tree of logic over three or four values.
    fn logic(&mut self) -> Value {
        let ty = self.pick(&[Type::I32, Type::I32, Type::I32, Type::I64, Type::I1, Type::I16], Type::I32);
        let ty = if self.once_in(6) { self.widened(ty) } else { ty };
        let mut values: Vec<Value> = (0..3 + self.rng.below(2)).map(|_| self.operand(ty)).collect();
        for _ in 0..3 + self.rng.below(6) {
            let first = values[0];
            let (a, b) = (self.pick(&values, first), self.pick(&values, first));
            let value = match self.rng.below(5) {
                0 => {
                    let ones = self.int(ty, -1);
                    self.op(Opcode::Xor, &[a, ones])
                }
                n => self.op([Opcode::And, Opcode::Or, Opcode::Xor][n % 3], &[a, b]),
            };
            values.push(value);
        }
        values.pop().unwrap_or_else(|| self.int(ty, 0))
    }

    /// A sum of products of four bytes or two halves of words.
    fn dot_product(&mut self) -> Value {
        let (a, b) = (self.operand(Type::I32), self.operand(Type::I32));
        let mut sum = self.operand(Type::I32);
        let (lanes, narrow) = if self.once_in(2) { (4, Type::I8) } else { (2, Type::I16) };
        let extends = [self.extension(), self.extension()];
        let bytes_of_second = (lanes == 2 && !self.once_in(4)).then(|| self.rng.below(4) as i64);
        for lane in 0..lanes {
            let part = |body: &mut Self, word: Value, bits: i64, ty: Type, op: Opcode| {
                let low = body.shift(Opcode::Lshr, word, bits);
                let low = body.convert(Opcode::Trunc, low, ty);
                body.convert(op, low, Type::I32)
            };
            let bits = i64::from(narrow.scalar_bits()) * lane;
            let x = part(self, a, bits, narrow, extends[0]);
            let y = match bytes_of_second {
                // dp2a takes bytes of the second operand: the lower or the upper ones, or others.
                Some(first) => part(self, b, 8 * ((first + lane) % 4), Type::I8, extends[1]),
                None => part(self, b, bits, narrow, extends[1]),
            };
            let product = self.op(Opcode::Mul, &[x, y]);
            sum = self.op(Opcode::Add, &[sum, product]);
        }
        sum
    }

    fn extension(&mut self) -> Opcode {
        if self.once_in(2) { Opcode::Zext } else { Opcode::Sext }
    }

    /// A sum or difference over two or three words; the highest word.
    fn carries(&mut self) -> Value {
        let ty = self.pick(&[Type::I32, Type::I64], Type::I32);
        let adds = self.once_in(2);
        let (op, carries) =
            if adds { (Opcode::Add, Opcode::UaddOverflow) } else { (Opcode::Sub, Opcode::UsubOverflow) };
        let mut carry: Option<Value> = None;
        let mut last = self.int(ty, 0);
        for _ in 0..2 + self.rng.below(2) {
            let (a, b) = (self.operand(ty), self.operand(ty));
            let (mut sum, mut lost) = self.overflows(carries, a, b);
            if let Some(carry) = carry {
                let carry = self.convert(Opcode::Zext, carry, ty);
                let with = self.op(op, &[sum, carry]);
                let again = if adds { self.icmp(IntCC::Ult, with, sum) } else { self.icmp(IntCC::Ult, sum, with) };
                lost = self.op(Opcode::Or, &[lost, again]);
                sum = with;
            }
            self.keep(sum);
            (carry, last) = (Some(lost), sum);
        }
        last
    }

    /// Arithmetic on the parts of packed words.
    fn packed(&mut self) -> Value {
        let mut types = vec![Type::I16.with_lanes(2), Type::I8.with_lanes(4), Type::I16.with_lanes(4)];
        for half in [Type::F16, Type::BF16] {
            if self.floats.contains(&half) {
                types.extend([half.with_lanes(2), half.with_lanes(4)]);
            }
        }
        let ty = self.pick(&types, types[0]);
        let float = ty.is_float_like();
        let (a, b, c) = (self.operand(ty), self.operand(ty), self.operand(ty));
        let ops: &[Opcode] = if float {
            &[Opcode::Fadd, Opcode::Fmul, Opcode::Fmin, Opcode::Fmax, Opcode::Fsub]
        } else {
            &[
                Opcode::Add,
                Opcode::Sub,
                Opcode::Smin,
                Opcode::Smax,
                Opcode::Umin,
                Opcode::Umax,
                Opcode::Mul,
                Opcode::SaddSat,
                Opcode::UaddSat,
                Opcode::SsubSat,
                Opcode::UsubSat,
                Opcode::Xor,
            ]
        };
        let (first, second) = (self.pick(ops, ops[0]), self.pick(ops, ops[0]));
        let x = self.op(first, &[a, b]);
        let value = if float && self.once_in(3) { self.op(Opcode::Fma, &[x, b, c]) } else { self.op(second, &[x, c]) };
        if self.once_in(2) {
            return value;
        }
        let value = self.settled(value);
        self.convert(Opcode::Bitcast, value, Type::int(ty.bits()))
    }

    /// A field of a word taken out or put in, or a rotation.
    fn field(&mut self) -> Value {
        let ty = self.pick(&[Type::I32, Type::I64], Type::I32);
        let width = ty.scalar_bits() as usize;
        let value = self.operand(ty);
        let low = self.rng.below(width) as i64;
        let bits = 1 + self.rng.below(width - low as usize) as i64;
        let above = width as i64 - low - bits;
        match self.rng.below(8) {
            5.. => self.moved_fields(),
            0 => {
                let shifted = self.shift(Opcode::Lshr, value, low);
                self.masked(shifted, (1u128 << bits) - 1)
            }
            1 | 2 => {
                let high = self.shift(Opcode::Shl, value, above);
                let op = if self.once_in(2) { Opcode::Ashr } else { Opcode::Lshr };
                self.shift(op, high, width as i64 - bits)
            }
            3 => {
                let field = ((1u128 << bits) - 1) << low;
                let inserted = self.operand(ty);
                let inserted = self.shift(Opcode::Shl, inserted, low);
                let (inserted, rest) = (self.masked(inserted, field), self.masked(value, !field));
                self.op(Opcode::Or, &[inserted, rest])
            }
            _ => {
                let amount = self.shift_amount(ty);
                let size = self.int(ty, width as i64);
                let back = self.op(Opcode::Sub, &[size, amount]);
                // Rotation by 0 shifts back by the width: masked.
                let back = self.masked(back, width as u128 - 1);
                let (up, down) = (self.op(Opcode::Shl, &[value, amount]), self.op(Opcode::Lshr, &[value, back]));
                self.op(Opcode::Or, &[up, down])
            }
        }
    }

    /// Chains of minima and maxima, absolute differences, selects between what is compared.
    fn comparison(&mut self) -> Value {
        let float = !self.floats.is_empty() && self.once_in(3);
        if float {
            let floats = std::mem::take(&mut self.floats);
            let ty = self.pick(&floats, Type::F32);
            self.floats = floats;
            let ops = [Opcode::Fmin, Opcode::Fmax, Opcode::Fminimum, Opcode::Fmaximum];
            let (a, b, c) = (self.operand(ty), self.operand(ty), self.operand(ty));
            let (first, second) = (self.pick(&ops, Opcode::Fmin), self.pick(&ops, Opcode::Fmax));
            let x = self.op(first, &[a, b]);
            return self.op(second, &[x, c]);
        }
        let ty = self.int_type();
        let (a, b, c) = (self.operand(ty), self.operand(ty), self.operand(ty));
        let ops = [Opcode::Smin, Opcode::Smax, Opcode::Umin, Opcode::Umax];
        match self.rng.below(4) {
            0 => {
                let (first, second) = (self.pick(&ops, Opcode::Smin), self.pick(&ops, Opcode::Umax));
                let x = self.op(first, &[a, b]);
                self.op(second, &[x, c])
            }
            1 => {
                // sad
                let (more, less) = (self.pick(&ops, Opcode::Smax), self.pick(&ops, Opcode::Smin));
                let (x, y) = (self.op(more, &[a, b]), self.op(less, &[a, b]));
                let difference = self.op(Opcode::Sub, &[x, y]);
                self.op(Opcode::Add, &[difference, c])
            }
            2 => {
                // mad
                let product = self.op(Opcode::Mul, &[a, b]);
                let op = if self.once_in(3) { Opcode::Sub } else { Opcode::Add };
                self.op(op, &[product, c])
            }
            _ => {
                let cc = self.pick(IntCC::ALL, IntCC::Slt);
                let holds = self.icmp(cc, a, b);
                let (x, y) = self.pick(&[(a, b), (b, a), (a, c), (c, b)], (a, b));
                self.select(holds, x, y)
            }
        }
    }
}
