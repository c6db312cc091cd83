//! Values as strings of bits: the common ground of `bitcast`, loads and stores.
//!
//! Parts are pushed in order, least significant first, and taken out again in other sizes. Pieces of one register that
//! lie side by side are joined again without instructions, so a byte vector that is loaded and stored unchanged costs
//! nothing. Registers are split by unpacking moves or shifts and joined by packing moves, `prmt` (PTX ISA 9.7.9.7) or,
//! for widths that no instruction knows, by shifts and `or`.

use std::collections::VecDeque;

use ptxc_ir::{ConstData, Inst, IntCC, Opcode, TargetOp, TargetOperand, Type, Value};
use ptxc_targets::tok;
use smallvec::SmallVec;

use super::context::Context;
use super::parts::{Parts, Repr, container, repr};
use crate::rules::Pattern;

/// Bits `offset` to `offset + bits - 1` of an integer in a register.
#[derive(Clone, Copy, Debug)]
struct Atom {
    value: Value,
    offset: u32,
    bits: u32,
}

impl Atom {
    /// Its bytes, of a piece of whole ones.
    fn bytes(self) -> impl Iterator<Item = Atom> {
        (0..self.bits / 8).map(move |index| Atom { offset: self.offset + 8 * index, bits: 8, ..self })
    }
}

/// A string of bits in registers.
#[derive(Default)]
pub(super) struct BitString {
    atoms: VecDeque<Atom>,
}

impl Context<'_> {
    /// A legal scalar or pair as an integer of the same size.
    pub fn as_integer(&mut self, value: Value) -> Value {
        let ty = self.ty(value);
        if ty.is_int() {
            return value;
        }
        let int = Type::int(ty.bits());
        if ty.is_ptr() { self.conv(Opcode::Ptrtoint, value, int) } else { self.bitcast(value, int) }
    }

    /// An integer as a legal scalar or pair of the same size.
    pub fn integer_as(&mut self, value: Value, ty: Type) -> Value {
        if ty.is_int() {
            return self.resize(value, ty);
        }
        let op = if ty.is_ptr() { Opcode::Inttoptr } else { Opcode::Bitcast };
        self.conv(op, value, ty)
    }

    /// Appends the low bits of a legal value.
    pub fn push_bits(&mut self, string: &mut BitString, value: Value, bits: u32) {
        let mut value = self.as_integer(value);
        if let Some(ConstData::Poison) = self.func.dfg.as_const(value) {
            // A poison lane must not spoil the lanes it shares a register with.
            let ty = self.ty(value);
            value = self.bits(ty, 0);
        }
        let atom = self.origin(Atom { value, offset: 0, bits });
        if let Some(last) = string.atoms.back_mut()
            && last.value == atom.value
            && last.offset + last.bits == atom.offset
        {
            last.bits += atom.bits;
            return;
        }
        string.atoms.push_back(atom);
    }

    /// Looks through shifts, masks and unpacking to the register that the bits come from.
    fn origin(&self, mut atom: Atom) -> Atom {
        for _ in 0..8 {
            let Some((inst, op)) = self.def(atom.value) else { break };
            let args = self.args(inst);
            let constant = args.get(1).and_then(|v| self.func.dfg.as_bits(*v));
            let Some(source) = args.first().copied() else { break };
            let next = match (op, constant) {
                (Opcode::Lshr, Some(k)) => Atom { value: source, offset: atom.offset + k as u32, bits: atom.bits },
                (Opcode::And, Some(mask)) if (mask >> atom.offset).trailing_ones() >= atom.bits => {
                    Atom { value: source, ..atom }
                }
                (Opcode::Zext | Opcode::Trunc, _) => Atom { value: source, ..atom },
                (Opcode::Extract, Some(k)) => {
                    let Some((cast, Opcode::Bitcast)) = self.def(source) else { break };
                    let whole = self.args(cast)[0];
                    let lane = self.ty(source).scalar_bits();
                    Atom { value: whole, offset: atom.offset + lane * k as u32, bits: atom.bits }
                }
                _ => break,
            };
            let ty = self.ty(next.value);
            if !matches!(ty, Type::I16 | Type::I32 | Type::I64) || next.offset + next.bits > ty.bits() {
                break;
            }
            atom = next;
        }
        atom
    }

    /// The string as words, where each is a whole register or half of one.
    pub fn whole_words(&mut self, mut string: BitString) -> Option<SmallVec<[Value; 4]>> {
        let whole = |atom: &Atom| atom.bits.is_multiple_of(32) && atom.offset.is_multiple_of(32);
        if !string.atoms.iter().all(whole) {
            return None;
        }
        let count = string.atoms.iter().map(|atom| atom.bits / 32).sum::<u32>();
        Some((0..count).map(|_| self.take_bits(&mut string, 32)).collect())
    }

    /// Takes the next `bits` bits (at most 64) as an integer in their container, upper bits unspecified.
    pub fn take_bits(&mut self, string: &mut BitString, bits: u32) -> Value {
        let mut pieces: SmallVec<[Atom; 4]> = SmallVec::new();
        let mut have = 0;
        while have < bits {
            let Some(front) = string.atoms.front_mut() else { break };
            let want = bits - have;
            if front.bits <= want {
                have += front.bits;
                pieces.extend(string.atoms.pop_front());
                continue;
            }
            pieces.push(Atom { bits: want, ..*front });
            front.offset += want;
            front.bits -= want;
            have = bits;
        }
        match pieces[..] {
            [] => self.bits(container(bits), 0),
            [one] => self.piece(one),
            _ => self.join(&pieces, bits),
        }
    }

    /// One piece of a register in the container of its width.
    fn piece(&mut self, atom: Atom) -> Value {
        let from = self.ty(atom.value);
        let to = container(atom.bits);
        if atom.offset == 0 && from == to {
            return atom.value;
        }
        if atom.bits == 1 {
            if from == Type::I1 {
                return atom.value;
            }
            let mask = self.bits(from, 1 << atom.offset);
            let bit = self.bin(Opcode::And, atom.value, mask);
            return self.icmp_imm(IntCC::Ne, bit, 0);
        }
        if atom.offset % 32 + atom.bits <= 32 && from == Type::I64 && atom.bits != 16 {
            let half = self.half(atom.value, atom.offset / 32);
            return self.piece_of_word(half, atom.offset % 32, atom.bits);
        }
        if atom.bits == 16 && atom.offset.is_multiple_of(16) && from != Type::I16 {
            let lanes = Type::I16.with_lanes(from.bits() / 16);
            let halves = self.bitcast(atom.value, lanes);
            return self.extract(halves, atom.offset / 16);
        }
        if from == Type::I64 {
            let shifted = self.bin_imm(Opcode::Lshr, atom.value, atom.offset.into());
            return self.resize(shifted, to);
        }
        let word = self.resize(atom.value, Type::I32);
        self.piece_of_word(word, atom.offset, atom.bits)
    }

    fn half(&mut self, value: Value, index: u32) -> Value {
        if self.func.dfg.as_bits(value).is_some() {
            let shifted = self.bin_imm(Opcode::Lshr, value, i64::from(index) * 32);
            return self.conv(Opcode::Trunc, shifted, Type::I32);
        }
        let halves = self.bitcast(value, Type::I32.with_lanes(2));
        self.extract(halves, index)
    }

    fn piece_of_word(&mut self, word: Value, offset: u32, bits: u32) -> Value {
        let shifted = self.bin_imm(Opcode::Lshr, word, offset.into());
        if offset != 0 {
            self.fits_unsigned(shifted, 32 - offset);
        }
        self.resize(shifted, container(bits))
    }

    /// Several pieces, `bits` together, as one integer.
    fn join(&mut self, pieces: &[Atom], bits: u32) -> Value {
        if bits == 64
            && pieces.iter().any(|p| p.bits < 32)
            && let Some(words) = self.join_words(pieces)
        {
            return words;
        }
        let size = pieces[0].bits;
        if pieces.iter().all(|p| p.bits == size) && matches!((size, bits), (16, 32 | 64) | (32, 64)) {
            let lane = Type::int(size);
            let lanes: SmallVec<[Value; 4]> = pieces.iter().map(|p| self.piece(*p)).collect();
            let lanes = self.vector(lane.with_lanes(lanes.len() as u32), &lanes);
            return self.bitcast(lanes, Type::int(bits));
        }
        let bytes = |p: &Atom| p.bits.is_multiple_of(8) && p.offset.is_multiple_of(8);
        if bits <= 32 && bits.is_multiple_of(8) && pieces.iter().all(bytes) {
            let pieces: SmallVec<[Atom; 4]> = pieces.iter().flat_map(|piece| piece.bytes()).collect();
            let word = self.join_bytes(&pieces);
            return self.resize(word, container(bits));
        }
        self.join_by_shifts(pieces, bits)
    }

    /// Two 32-bit words of pieces that do not straddle them, as an `i64`. Whole bytes are cut where they do.
    fn join_words(&mut self, pieces: &[Atom]) -> Option<Value> {
        let in_bytes = pieces.iter().all(|p| p.bits.is_multiple_of(8) && p.offset.is_multiple_of(8));
        let mut at = 0;
        let cut = |piece: &Atom| {
            let low = if in_bytes && at < 32 && at + piece.bits > 32 { 32 - at } else { piece.bits };
            at += piece.bits;
            let high = Atom { offset: piece.offset + low, bits: piece.bits - low, ..*piece };
            [Atom { bits: low, ..*piece }, high].into_iter().filter(|piece| piece.bits > 0)
        };
        let pieces: &[Atom] = &pieces.iter().flat_map(cut).collect::<SmallVec<[Atom; 8]>>();
        let mut have = 0;
        let middle = pieces.iter().position(|p| {
            have += p.bits;
            have >= 32
        })?;
        if have != 32 {
            return None;
        }
        let word = |this: &mut Self, pieces: &[Atom]| match pieces {
            [one] => this.piece(*one),
            _ => this.join(pieces, 32),
        };
        let low = word(self, &pieces[..=middle]);
        let high = word(self, &pieces[middle + 1..]);
        let pair = self.vector(Type::I32.with_lanes(2), &[low, high]);
        Some(self.bitcast(pair, Type::I64))
    }

    /// Two to four bytes as an `i32`, by byte permutation. Bytes that are constant are put in after the others: a permutation
    /// takes its selector as a constant, and no second one.
    fn join_bytes(&mut self, pieces: &[Atom]) -> Value {
        self.note(Pattern::LegalJoinBytes);
        let mut constant = 0;
        let mut others: SmallVec<[Atom; 4]> = SmallVec::from_slice(pieces);
        let zero = self.bits(Type::I32, 0);
        for (place, piece) in others.iter_mut().enumerate() {
            if let Some(bits) = self.func.dfg.as_bits(piece.value) {
                constant |= (bits >> piece.offset & 0xff) << (8 * place);
                *piece = Atom { value: zero, offset: 0, bits: 8 };
            }
        }
        let word = self.permuted_bytes(&others);
        if constant == 0 {
            return word;
        }
        let constant = self.bits(Type::I32, constant);
        self.bin(Opcode::Or, word, constant)
    }

    fn permuted_bytes(&mut self, pieces: &[Atom]) -> Value {
        let pairs: SmallVec<[Value; 2]> = pieces.chunks(2).map(|pair| self.join_two_bytes(pair)).collect();
        match pairs[..] {
            [low, high] => self.permute(low, high, 0x5410),
            _ => pairs[0],
        }
    }

    fn join_two_bytes(&mut self, pair: &[Atom]) -> Value {
        let (first, from) = self.byte_source(pair[0]);
        match pair.get(1) {
            Some(second) => {
                let (second, byte) = self.byte_source(*second);
                self.permute(first, second, i64::from(from | (4 + byte) << 4))
            }
            None => self.bin_imm(Opcode::Lshr, first, i64::from(from) * 8),
        }
    }

    /// The 32-bit register that holds a byte, and which byte of it.
    fn byte_source(&mut self, atom: Atom) -> (Value, u32) {
        let word = match self.ty(atom.value) {
            Type::I64 => self.half(atom.value, atom.offset / 32),
            _ => self.resize(atom.value, Type::I32),
        };
        (word, atom.offset % 32 / 8)
    }

    /// `prmt.b32`: four bytes chosen from two registers.
    pub fn permute(&mut self, a: Value, b: Value, selector: i64) -> Value {
        if let (Some(x), Some(y)) = (self.func.dfg.as_bits(a), self.func.dfg.as_bits(b)) {
            let source = x | y << 32;
            let byte = |i: u32| {
                let nibble = selector >> (4 * i);
                let byte = (source >> (8 * (nibble & 7))) & 0xff;
                // The upper bit of a nibble asks for the byte's sign.
                if nibble & 8 == 0 { byte } else { 0xff * (byte >> 7) }
            };
            let result = (0..4).fold(0, |acc, i| acc | byte(i) << (8 * i));
            return self.bits(Type::I32, result);
        }
        let operands =
            vec![TargetOperand::Result(0), TargetOperand::Arg(0), TargetOperand::Arg(1), TargetOperand::Imm(selector)];
        let op = TargetOp::Known { toks: SmallVec::from_slice(&[tok::PRMT, tok::B32]), guard: None, operands };
        let inst = self.builder().target(op, &[a, b], &[Type::I32]);
        self.func.dfg.result(inst, 0)
    }

    fn join_by_shifts(&mut self, pieces: &[Atom], bits: u32) -> Value {
        self.note(Pattern::LegalJoinShifts);
        let ty = if bits <= 32 { Type::I32 } else { Type::I64 };
        let (mut at, mut result) = (0, self.imm(ty, 0));
        for piece in pieces {
            let value = self.piece(*piece);
            let last = at + piece.bits == bits;
            let value =
                if last || self.ty(value).bits() == piece.bits { value } else { self.zero_extended(value, piece.bits) };
            let value = self.resize(value, ty);
            let shifted = self.bin_imm(Opcode::Shl, value, at.into());
            result = self.bin(Opcode::Or, result, shifted);
            at += piece.bits;
        }
        self.resize(result, container(bits))
    }

    /// The bits of a value given by its parts.
    pub fn bits_of_parts(&mut self, ty: Type, parts: &[Value]) -> BitString {
        let mut string = BitString::default();
        let scalar = ty.scalar();
        for (index, part) in parts.iter().enumerate() {
            let bits = match repr(scalar) {
                Repr::Legal => self.ty(*part).bits(),
                Repr::Int(bits) => bits,
                Repr::Wide(bits) if index % 2 == 1 => bits - 64,
                Repr::Wide(_) => 64,
            };
            self.push_bits(&mut string, *part, bits);
        }
        string
    }

    /// The parts of a value of this type from its bits.
    pub fn parts_from_bits(&mut self, string: &mut BitString, ty: Type) -> Parts {
        let scalar = ty.scalar();
        let types = self.part_types(ty);
        types
            .iter()
            .enumerate()
            .map(|(index, part)| {
                let bits = match repr(scalar) {
                    Repr::Legal => part.bits(),
                    Repr::Int(bits) => bits,
                    Repr::Wide(bits) if index % 2 == 1 => bits - 64,
                    Repr::Wide(_) => 64,
                };
                let value = self.take_bits(string, bits);
                match repr(scalar) {
                    Repr::Legal => self.integer_as(value, *part),
                    _ => self.resize(value, *part),
                }
            })
            .collect()
    }

    /// `bitcast`.
    pub fn visit_bitcast(&mut self, inst: Inst) {
        let args = self.args(inst);
        let (from, to) = (self.ty(args[0]), self.func.dfg.insts[inst].ty);
        let (legal_from, legal_to) = (self.features.legal_value(from), self.features.legal_value(to));
        if legal_from && legal_to && from.scalar_bits() != 1 && to.scalar_bits() != 1 {
            return;
        }
        let parts = self.parts_of(args[0]);
        let result = self.func.dfg.result(inst, 0);
        let mut string = self.bits_of_parts(from, &parts);
        let parts = self.parts_from_bits(&mut string, to);
        self.set_parts(result, &parts);
        self.func.layout.remove_inst(inst);
    }
}
