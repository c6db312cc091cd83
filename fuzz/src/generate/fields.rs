//! Bits moved within words by masks and shifts that are shared, and words taken out of 64 bits: what
//! `isel/src/legalize/bit_fields.rs` and `narrow_words.rs` compute another way.

use ptxc_ir::{Opcode, Type, Value};

use super::body::{Body, mask};

impl Body<'_> {
    /// A few steps of masks, shifts and logic over one or two inputs; the last result, or a word of it.
    pub(super) fn moved_fields(&mut self) -> Value {
        let ty = self.pick(&[Type::I32, Type::I32, Type::I64], Type::I32);
        let mut values = vec![self.operand(ty)];
        if self.once_in(2) {
            values.push(self.operand(ty));
        }
        if ty == Type::I64 && self.once_in(3) {
            let word = self.operand(Type::I32);
            values.push(self.convert(Opcode::Zext, word, ty));
        }
        let mut joined = values[0];
        for _ in 0..3 + self.rng.below(7) {
            // What is new is used more often, so that trees are deep.
            let recent = values[values.len().saturating_sub(3)..].to_vec();
            let value = self.pick(&recent, joined);
            let made = match self.rng.below(8) {
                0..=2 => self.moved_once(value),
                3 => {
                    let kept = self.field_mask(ty);
                    self.masked(value, kept)
                }
                _ => {
                    let first = values[0];
                    let other = self.pick(&values, first);
                    let op = self.pick(&[Opcode::Or, Opcode::Or, Opcode::Or, Opcode::Xor, Opcode::And], Opcode::Or);
                    joined = self.op(op, &[value, other]);
                    joined
                }
            };
            values.push(made);
        }
        if ty == Type::I32 {
            return joined;
        }
        let by = self.rng.below(64) as i64;
        let moved = self.shift(Opcode::Lshr, joined, by);
        let narrow = self.pick(&[Type::I32, Type::I32, Type::I16, Type::I8], Type::I32);
        self.convert(Opcode::Trunc, moved, narrow)
    }

    /// A value shifted by a constant.
    fn moved_once(&mut self, value: Value) -> Value {
        let width = self.b.ty(value).scalar_bits() as usize;
        let by = if self.once_in(6) { self.rng.below(width) } else { 1 + self.rng.below(12) };
        let op = if self.once_in(2) { Opcode::Shl } else { Opcode::Lshr };
        self.shift(op, value, by as i64)
    }

    /// One field, or any bits now and then.
    fn field_mask(&mut self, ty: Type) -> u128 {
        let width = ty.scalar_bits();
        if self.once_in(6) {
            return self.rng.below(usize::MAX) as u128 & mask(width);
        }
        let bits = 1 + self.rng.below(12) as u32;
        (mask(bits) << self.rng.below(width as usize)) & mask(width)
    }
}
