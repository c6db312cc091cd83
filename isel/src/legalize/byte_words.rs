//! Vectors of bytes that lie in words: operations on four lanes of a word at once.
//!
//! Lanes of bytes are containers of their own ([`super::parts`]). Where the lanes of every operand are the bytes of words
//! that are there, as after a load or a cast, an operation is done on the words: by the instruction for four bytes where
//! the target has it (PTX ISA 9.7.1, `add.u8x4`), else by operations on words in which no lane disturbs its neighbour.
//! What comes out are bytes of a word again, so that a chain of such operations never takes the word apart.

use ptxc_ir::{ConstData, Inst, Opcode, Type, Value};
use ptxc_targets::tok;
use smallvec::SmallVec;

use super::bits::BitString;
use super::context::Context;
use super::parts::Parts;
use super::short_pairs::PAIR;
use crate::rules::Pattern;

/// The words of a vector of bytes, four lanes each.
type Words = SmallVec<[Value; 4]>;

/// `lane` in every byte of a word, as the signed number that `imm` takes.
fn all(lane: u8) -> i64 {
    i64::from((u32::from(lane) * 0x0101_0101) as i32)
}

/// Whether a type is a vector of bytes that fills words.
fn fills_words(ty: Type) -> bool {
    ty.is_vector() && ty.scalar() == Type::I8 && ty.lanes().is_multiple_of(4)
}

impl Context<'_> {
    /// An operation on vectors of bytes, word by word. Tells whether it was one.
    pub fn visit_byte_words(&mut self, inst: Inst) -> bool {
        let data = &self.func.dfg.insts[inst];
        let (op, ty) = (data.op, data.ty);
        if !fills_words(ty) || !matches!(data.op.shape(), ptxc_ir::Shape::Binary) {
            return false;
        }
        let args = self.args(inst);
        let operands = match self.byte_difference(op, &args) {
            Some(pair) => pair,
            None => [args[0], args[1]],
        };
        let is_difference = operands != [args[0], args[1]];
        let Some(left) = self.words_of_bytes(operands[0]) else { return false };
        let Some(right) = self.words_of_bytes(operands[1]) else { return false };
        let mut string = BitString::default();
        for (a, b) in left.into_iter().zip(right) {
            let word = if is_difference { Some(self.absolute_difference(a, b)) } else { self.byte_word(op, a, b) };
            let Some(word) = word else { return false };
            self.push_bits(&mut string, word, 32);
        }
        let parts = self.parts_from_bits(&mut string, ty);
        self.set_parts(self.func.dfg.result(inst, 0), &parts);
        self.func.layout.remove_inst(inst);
        true
    }

    /// The words whose bytes are the lanes of a value, if there are such.
    fn words_of_bytes(&mut self, value: Value) -> Option<Words> {
        let ty = self.ty(value);
        match self.func.dfg.as_const(value).cloned() {
            Some(ConstData::Vector(lanes)) => {
                let byte = |lane: &Value| self.func.dfg.as_bits(*lane).unwrap_or(0) & 0xff;
                let words: SmallVec<[u128; 4]> = lanes
                    .chunks(4)
                    .map(|four| four.iter().rev().fold(0, |word, lane| word << 8 | byte(lane)))
                    .collect();
                return Some(words.into_iter().map(|word| self.bits(Type::I32, word)).collect());
            }
            Some(_) => return Some(smallvec::smallvec![self.imm(Type::I32, 0); (ty.lanes() / 4) as usize]),
            None => {}
        }
        let parts = self.parts_of(value);
        let string = self.bits_of_parts(ty, &parts);
        self.whole_words(string)
    }

    /// Of `umax(a, b) - umin(a, b)` on bytes the operands, where the target has the instruction for it.
    fn byte_difference(&self, op: Opcode, args: &[Value]) -> Option<[Value; 2]> {
        // From sm_110 on `ptxas` writes it in three instructions.
        let has = (75..110).contains(&self.features.dialect.target.sm());
        if op != Opcode::Sub || !has {
            return None;
        }
        let (most, Opcode::Umax) = self.def(args[0])? else { return None };
        let (least, Opcode::Umin) = self.def(args[1])? else { return None };
        let (a, b) = (self.args(most), self.args(least));
        (a[..] == b[..] || (a[0] == b[1] && a[1] == b[0])).then(|| [a[0], a[1]])
    }

    fn absolute_difference(&mut self, a: Value, b: Value) -> Value {
        self.note(Pattern::LegalBytesDistance);
        let zero = self.imm(Type::I32, 0);
        self.target_op(&[tok::VABSDIFF4, tok::U32, tok::U32, tok::U32], &[a, b, zero], Type::I32)
    }

    /// One word; `None` when its lanes are computed one by one.
    fn byte_word(&mut self, op: Opcode, a: Value, b: Value) -> Option<Value> {
        if self.features.byte_quads
            && let Some(toks) = quad_instruction(op)
        {
            self.note(Pattern::LegalBytesQuad);
            return Some(self.target_op(toks, &[a, b], Type::I32));
        }
        Some(match op {
            Opcode::And | Opcode::Or | Opcode::Xor => {
                self.note(Pattern::LegalBytesLogic);
                self.bin(op, a, b)
            }
            // Without their upper bits the lanes of a sum carry nothing out; these are added without carry.
            Opcode::Add => {
                self.note(Pattern::LegalBytesSum);
                let (low_a, low_b) = (self.bin_imm(Opcode::And, a, all(0x7f)), self.bin_imm(Opcode::And, b, all(0x7f)));
                let low = self.bin(Opcode::Add, low_a, low_b);
                let differs = self.bin(Opcode::Xor, a, b);
                let top = self.bin_imm(Opcode::And, differs, all(0x80));
                self.bin(Opcode::Xor, low, top)
            }
            // With its upper bits set a lane has enough to borrow from.
            Opcode::Sub => {
                self.note(Pattern::LegalBytesSum);
                let (low_a, low_b) = (self.bin_imm(Opcode::Or, a, all(0x80)), self.bin_imm(Opcode::And, b, all(0x7f)));
                let low = self.bin(Opcode::Sub, low_a, low_b);
                let differs = self.bin(Opcode::Xor, a, b);
                let differs = self.bin_imm(Opcode::Xor, differs, -1);
                let top = self.bin_imm(Opcode::And, differs, all(0x80));
                self.bin(Opcode::Xor, low, top)
            }
            Opcode::Smin | Opcode::Smax | Opcode::Umin | Opcode::Umax if self.features.short_pairs => {
                self.byte_extreme(op, a, b)
            }
            Opcode::Shl | Opcode::Lshr | Opcode::Ashr => self.byte_shift(op, a, b)?,
            _ => return None,
        })
    }

    /// The byte on top decides between pairs, whatever stands below it: once for the odd bytes, once for the even ones
    /// moved up.
    fn byte_extreme(&mut self, op: Opcode, a: Value, b: Value) -> Value {
        self.note(Pattern::LegalBytesExtreme);
        let pairs = |this: &mut Self, a: Value, b: Value| {
            let (a, b) = (this.word_pair(a), this.word_pair(b));
            let most = this.value(op, ptxc_ir::Flags::EMPTY, PAIR, &[a, b], ptxc_ir::Extra::None);
            this.pair_word(most)
        };
        let odd = pairs(self, a, b);
        let (up_a, up_b) = (self.bin_imm(Opcode::Shl, a, 8), self.bin_imm(Opcode::Shl, b, 8));
        let even = pairs(self, up_a, up_b);
        self.permute(even, odd, 0x7351)
    }

    /// All lanes shifted by the same constant.
    fn byte_shift(&mut self, op: Opcode, a: Value, amounts: Value) -> Option<Value> {
        let bits = self.func.dfg.as_bits(amounts)? as u32;
        let amount = bits & 0xff;
        if bits != amount * 0x0101_0101 || amount > 7 {
            return None;
        }
        if op == Opcode::Ashr && !matches!(amount, 0 | 7) {
            return None;
        }
        self.note(Pattern::LegalBytesShift);
        let k = i64::from(amount);
        Some(match op {
            _ if amount == 0 => a,
            Opcode::Shl => {
                let shifted = self.bin_imm(Opcode::Shl, a, k);
                self.bin_imm(Opcode::And, shifted, all(0xff << amount))
            }
            Opcode::Lshr => {
                let shifted = self.bin_imm(Opcode::Lshr, a, k);
                self.bin_imm(Opcode::And, shifted, all(0xff >> amount))
            }
            // Signs over their bytes.
            _ if amount == 7 => self.permute(a, a, 0xba98),
            _ => return None,
        })
    }

    /// `zext` and `sext` of bytes of words to 16 bits, `trunc` of pairs to bytes: by byte permutation.
    pub fn convert_byte_words(&mut self, op: Opcode, value: Value, to: Type) -> Option<Parts> {
        let from = self.ty(value);
        if op == Opcode::Trunc && from.scalar() == Type::I16 && fills_words(to) {
            self.note(Pattern::LegalBytesTruncated);
            let parts = self.parts_of(value);
            let mut string = BitString::default();
            for two in parts.chunks(2) {
                let (low, high) = (self.pair_word(two[0]), self.pair_word(*two.get(1)?));
                let word = self.permute(low, high, 0x6420);
                self.push_bits(&mut string, word, 32);
            }
            return Some(self.parts_from_bits(&mut string, to));
        }
        // Zeros come from another word, signs are asked for by the upper bit of a byte's number.
        let selectors = match op {
            Opcode::Zext => [0x4140, 0x4342],
            Opcode::Sext => [0x9180, 0xb3a2],
            _ => return None,
        };
        if !fills_words(from) || to.scalar() != Type::I16 {
            return None;
        }
        let words = self.words_of_bytes(value)?;
        self.note(Pattern::LegalBytesExtended);
        let zero = self.imm(Type::I32, 0);
        let mut parts = Parts::new();
        for word in words {
            for selector in selectors {
                let pair = self.permute(word, zero, selector);
                parts.push(self.word_pair(pair));
            }
        }
        Some(parts)
    }
}

/// The instruction for an operation on four bytes, on targets that have them.
fn quad_instruction(op: Opcode) -> Option<&'static [ptxc_targets::Tok]> {
    Some(match op {
        Opcode::Add => &[tok::ADD, tok::U8X4],
        Opcode::Sub => &[tok::SUB, tok::U8X4],
        Opcode::UaddSat => &[tok::ADD, tok::SAT, tok::U8X4],
        Opcode::SaddSat => &[tok::ADD, tok::SAT, tok::S8X4],
        Opcode::UsubSat => &[tok::SUB, tok::SAT, tok::U8X4],
        Opcode::SsubSat => &[tok::SUB, tok::SAT, tok::S8X4],
        Opcode::Umin => &[tok::MIN, tok::U8X4],
        Opcode::Umax => &[tok::MAX, tok::U8X4],
        Opcode::Smin => &[tok::MIN, tok::S8X4],
        Opcode::Smax => &[tok::MAX, tok::S8X4],
        _ => return None,
    })
}
