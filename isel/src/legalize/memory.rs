//! Loads and stores: accesses that the target has, of values that it has.
//!
//! An access is split into pieces that are naturally aligned to their full width by what is known of the address: a
//! register, or 2, 4 (8) registers of 32 or 64 bits side by side, 128 bits (256 in global memory, where the target has
//! it) at most. Bytes and halves of vectors travel in 32-bit words. An `iN` fills its storage with zeros above bit N when
//! stored, and what it finds above bit N when loaded does not matter.

use ptxc_ir::{Extra, Inst, MemAttrs, Opcode, Ordering, Space, Type, Value};
use smallvec::SmallVec;

use super::bits::BitString;
use super::context::Context;
use super::parts::{Lane, Parts, Repr, lane_type, repr};
use crate::rules::Pattern;

/// One access: `count` registers of `unit` bytes at a byte offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// Bytes from the address of the whole.
    pub offset: u64,
    /// Bytes of one register.
    pub unit: u64,
    /// Registers.
    pub count: u32,
}

/// Splits `size` bytes at an address of this alignment into accesses with units of at most `unit` bytes and at most
/// `widest` bytes each.
pub(super) fn plan(size: u64, align: u64, unit: u64, widest: u64) -> SmallVec<[Piece; 4]> {
    let mut pieces = SmallVec::new();
    let mut offset = 0;
    while offset < size {
        let known = if offset == 0 { align } else { align.min(offset & offset.wrapping_neg()) };
        let rest = size - offset;
        let largest = unit.min(known).min(rest).max(1);
        let unit = 1 << (63 - largest.leading_zeros());
        let mut count = 1;
        while unit >= 4 && count < 8 && unit * count * 2 <= widest.min(known).min(rest) {
            count *= 2;
        }
        pieces.push(Piece { offset, unit, count: count as u32 });
        offset += unit * count;
    }
    pieces
}

/// Bits that a scalar takes in memory.
fn storage_bits(scalar: Type) -> u32 {
    scalar.size() as u32 * 8
}

impl Context<'_> {
    fn widest(&self, ptr: Value) -> u64 {
        let global = self.ty(ptr).space() == Some(Space::Global);
        if self.features.wide_memory && global { 32 } else { 16 }
    }

    /// The unit that a value of this type is accessed in, where alignment allows.
    fn unit(&self, ty: Type) -> u64 {
        let scalar = ty.scalar();
        let element = scalar.size();
        if !ty.is_vector() {
            return element.min(8);
        }
        let pair = self.features.paired(scalar) && element == 4;
        if pair && ty.lanes() > 1 { 8 } else { element.clamp(4, 8) }
    }

    /// True when the access is one instruction on a legal type.
    fn is_legal_access(&self, ty: Type, attrs: MemAttrs) -> bool {
        self.features.legal_value(ty) && ty != Type::I1 && attrs.align() >= ty.size()
    }

    /// An atomic access must be one register wide; the type it is done in.
    fn atomic_access_type(&mut self, what: &str, ty: Type, attrs: MemAttrs) -> Option<Type> {
        if attrs.order == Ordering::NotAtomic {
            return None;
        }
        let size = ty.size();
        if size > 16 || !size.is_power_of_two() {
            self.error(format!("atomic {what} of {ty}: {size} bytes are not one access"));
            return None;
        }
        if attrs.align() < size {
            self.error(format!("atomic {what} of {ty} needs an alignment of {size}, has {}", attrs.align()));
            return None;
        }
        if size == 16
            && let Some(why) = self.features.lacks_whole_128()
        {
            self.error(format!("atomic {what} of {ty}: {why}"));
            return None;
        }
        Some(Type::int(size as u32 * 8))
    }

    /// A load.
    pub fn visit_load(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        let Extra::Mem(attrs) = data.extra else { return };
        let args = self.args(inst);
        let policy = args.get(1).copied();
        let ty = data.ty;
        if self.is_legal_access(ty, attrs) {
            return;
        }
        let parts = match self.atomic_access_type("load", ty, attrs) {
            Some(int) => {
                let value = self.load(int, args[0], policy, attrs);
                let mut string = BitString::default();
                self.push_boundary(&mut string, value);
                self.parts_from_memory(string, ty)
            }
            None => self.load_parts(ty, args[0], policy, attrs),
        };
        self.set_parts(self.func.dfg.result(inst, 0), &parts);
        self.func.layout.remove_inst(inst);
    }

    /// Appends a value of type `i8`, `i16` … `i128` whole.
    pub fn push_boundary(&mut self, string: &mut BitString, value: Value) {
        match self.ty(value) {
            Type::I128 => {
                let limbs = self.bitcast(value, Type::I64.with_lanes(2));
                for index in 0..2 {
                    let limb = self.extract(limbs, index);
                    self.push_bits(string, limb, 64);
                }
            }
            Type::I8 => {
                let word = self.conv(Opcode::Zext, value, Type::I32);
                self.fits_unsigned(word, 8);
                self.push_bits(string, word, 8);
            }
            ty => self.push_bits(string, value, ty.bits()),
        }
    }

    /// Loads the parts of a value, piece by piece.
    pub fn load_parts(&mut self, ty: Type, ptr: Value, policy: Option<Value>, attrs: MemAttrs) -> Parts {
        let pieces = plan(ty.size(), attrs.align(), self.unit(ty), self.widest(ptr));
        if pieces.len() > 1 {
            self.note(Pattern::LegalPieces);
        }
        let element = self.plain_element(ty, &pieces);
        let mut string = BitString::default();
        let mut plain = Parts::new();
        for piece in pieces {
            let address = self.offset(ptr, piece.offset as i64);
            let register = element.unwrap_or(Type::int(piece.unit as u32 * 8));
            let attrs = piece_attrs(attrs, piece);
            let loaded = self.load(bundle(register, piece.count), address, policy, attrs);
            for index in 0..piece.count {
                let value = if piece.count == 1 { loaded } else { self.extract(loaded, index) };
                if element.is_some() {
                    plain.push(value);
                } else {
                    self.push_boundary(&mut string, value);
                }
            }
        }
        if element.is_some() { plain } else { self.parts_from_memory(string, ty) }
    }

    /// The element type when every register of every piece is one part of the value as it is.
    fn plain_element(&self, ty: Type, pieces: &[Piece]) -> Option<Type> {
        let scalar = ty.scalar();
        let single =
            repr(scalar) == Repr::Legal && scalar != Type::I1 && !(ty.is_vector() && self.features.paired(scalar));
        (single && pieces.iter().all(|p| p.unit == scalar.size())).then_some(scalar)
    }

    /// The parts of a value from the bits of its memory.
    fn parts_from_memory(&mut self, mut string: BitString, ty: Type) -> Parts {
        let scalar = ty.scalar();
        let packed_bits = ty.is_vector() && scalar == Type::I1;
        if packed_bits || scalar.scalar_bits() == storage_bits(scalar) {
            return self.parts_from_bits(&mut string, ty);
        }
        let mut parts = Parts::new();
        for _ in 0..ty.lanes() {
            let mut left = storage_bits(scalar);
            while left > 0 {
                let value = self.take_bits(&mut string, left.min(64));
                left -= left.min(64);
                if scalar == Type::I1 {
                    let bit = self.bin_imm(Opcode::And, value, 1);
                    parts.push(self.icmp_imm(ptxc_ir::IntCC::Ne, bit, 0));
                } else {
                    let part = if storage_bits(scalar) > 64 { Type::I64 } else { lane_type(scalar) };
                    parts.push(self.resize(value, part));
                }
            }
        }
        parts
    }

    /// The bits that a value has in memory.
    pub fn memory_bits(&mut self, ty: Type, parts: &[Value]) -> BitString {
        let scalar = ty.scalar();
        let packed_bits = ty.is_vector() && scalar == Type::I1;
        if packed_bits || scalar.scalar_bits() == storage_bits(scalar) {
            let mut string = self.bits_of_parts(ty, parts);
            let spare = (ty.size() * 8) as u32 - ty.bits().min((ty.size() * 8) as u32);
            if spare > 0 {
                let zero = self.imm(Type::I32, 0);
                self.push_bits(&mut string, zero, spare);
            }
            return string;
        }
        let mut string = BitString::default();
        let lanes = self.lanes_from_parts(ty, parts);
        for lane in lanes {
            let lane = self.clear_above(scalar, lane);
            let storage = storage_bits(scalar);
            self.push_bits(&mut string, lane.lo, storage.min(64));
            if let Some(hi) = lane.hi {
                self.push_bits(&mut string, hi, 64);
            }
        }
        string
    }

    /// An odd integer with zeros in the rest of its storage.
    fn clear_above(&mut self, scalar: Type, lane: Lane) -> Lane {
        match repr(scalar) {
            Repr::Int(bits) => self.zero_extended(lane.lo, bits).into(),
            Repr::Wide(bits) => {
                let limbs = self.limbs(lane);
                let limbs = self.wide_extended(false, bits, limbs);
                Lane { lo: limbs.0, hi: Some(limbs.1) }
            }
            Repr::Legal if scalar == Type::I1 => self.conv(Opcode::Zext, lane.lo, Type::I32).into(),
            Repr::Legal => lane,
        }
    }

    /// A store.
    pub fn visit_store(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        let Extra::Mem(attrs) = data.extra else { return };
        let args = self.args(inst);
        let (value, ptr, policy) = (args[0], args[1], args.get(2).copied());
        if self.is_legal_access(data.ty, attrs) {
            return;
        }
        let parts = self.parts_of(value);
        match self.atomic_access_type("store", data.ty, attrs) {
            Some(int) => {
                let mut string = self.memory_bits(data.ty, &parts);
                let value = self.take_boundary(&mut string, int);
                self.store(value, ptr, policy, attrs);
            }
            None => self.store_parts(data.ty, &parts, ptr, policy, attrs),
        }
        self.func.layout.remove_inst(inst);
    }

    /// Takes a whole value of type `i8`, `i16` … `i128`.
    pub fn take_boundary(&mut self, string: &mut BitString, ty: Type) -> Value {
        if ty == Type::I128 {
            let limbs = [self.take_bits(string, 64), self.take_bits(string, 64)];
            let pair = self.vector(Type::I64.with_lanes(2), &limbs);
            return self.bitcast(pair, ty);
        }
        let value = self.take_bits(string, ty.bits());
        if self.ty(value) == ty { value } else { self.narrowed(value, ty) }
    }

    fn store_parts(&mut self, ty: Type, parts: &[Value], ptr: Value, policy: Option<Value>, attrs: MemAttrs) {
        let pieces = plan(ty.size(), attrs.align(), self.unit(ty), self.widest(ptr));
        if pieces.len() > 1 {
            self.note(Pattern::LegalPieces);
        }
        let element = self.plain_element(ty, &pieces);
        let mut string = if element.is_some() { BitString::default() } else { self.memory_bits(ty, parts) };
        let mut plain = parts.iter();
        for piece in pieces {
            let register = element.unwrap_or(Type::int(piece.unit as u32 * 8));
            let mut values: SmallVec<[Value; 8]> = SmallVec::new();
            for _ in 0..piece.count {
                let value = match element {
                    Some(_) => plain.next().copied(),
                    None => Some(self.take_boundary(&mut string, register)),
                };
                values.extend(value);
            }
            let value = match values[..] {
                [one] => one,
                _ => self.vector(bundle(register, piece.count), &values),
            };
            let address = self.offset(ptr, piece.offset as i64);
            self.store(value, address, policy, piece_attrs(attrs, piece));
        }
    }
}

fn bundle(register: Type, count: u32) -> Type {
    if count == 1 { register } else { register.with_lanes(count) }
}

fn piece_attrs(attrs: MemAttrs, piece: Piece) -> MemAttrs {
    let offset_align = piece.offset.trailing_zeros().min(63) as u8;
    let align_log2 = if piece.offset == 0 { attrs.align_log2 } else { attrs.align_log2.min(offset_align) };
    MemAttrs { align_log2, ..attrs }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(size: u64, align: u64, unit: u64, widest: u64) -> Vec<(u64, u64, u32)> {
        plan(size, align, unit, widest).iter().map(|p| (p.offset, p.unit, p.count)).collect()
    }

    #[test]
    fn pieces_are_aligned_to_their_width() {
        assert_eq!(shape(16, 16, 4, 16), [(0, 4, 4)]);
        assert_eq!(shape(12, 16, 4, 16), [(0, 4, 2), (8, 4, 1)]);
        assert_eq!(shape(12, 4, 4, 16), [(0, 4, 1), (4, 4, 1), (8, 4, 1)]);
        assert_eq!(shape(32, 32, 4, 32), [(0, 4, 8)]);
        assert_eq!(shape(32, 32, 8, 16), [(0, 8, 2), (16, 8, 2)]);
        assert_eq!(shape(7, 8, 4, 16), [(0, 4, 1), (4, 2, 1), (6, 1, 1)]);
        assert_eq!(shape(8, 1, 8, 16).len(), 8);
    }
}
