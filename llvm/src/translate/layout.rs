//! Sizes and alignments of LLVM types by the module's data layout.

use super::types::MAX_DEPTH;
use super::{Fault, Result};
use crate::model::{Module, Type, TypeId};

/// What the layout string of NVPTX says, for modules that have none.
const DEFAULT: &str = "e-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64";

/// The data layout.
#[derive(Clone, Debug)]
pub(super) struct DataLayout {
    /// (bits, alignment in bytes), by bits.
    integers: Vec<(u32, u64)>,
    /// (bits, alignment in bytes), by bits.
    vectors: Vec<(u32, u64)>,
    /// Address space, size in bytes and alignment of pointers that differ from 64 bits.
    pointers: Vec<(u32, u64, u64)>,
    default_pointer: (u64, u64),
}

/// Size and alignment in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// Bytes that a store writes.
    pub store: u64,
    /// Bytes from one element of an array to the next.
    pub size: u64,
    /// Alignment.
    pub align: u64,
}

impl Layout {
    fn new(store: u64, align: u64) -> Layout {
        Layout { store, size: store.checked_next_multiple_of(align).unwrap_or(u64::MAX), align }
    }
}

impl DataLayout {
    /// Reads a layout string; what does not concern sizes is passed over. Entries later in the string win, as in LLVM.
    pub fn parse(text: &str) -> DataLayout {
        let integers = vec![(1, 1), (8, 1), (16, 2), (32, 4), (64, 8), (128, 16), (256, 32)];
        let mut out = DataLayout { integers, vectors: Vec::new(), pointers: Vec::new(), default_pointer: (8, 8) };
        for entry in DEFAULT.split('-').chain(text.split('-')) {
            out.entry(entry);
        }
        out.integers.sort_unstable();
        out
    }

    fn entry(&mut self, entry: &str) {
        let mut fields = entry.split(':');
        let head = fields.next().unwrap_or("");
        let numbers: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
        let Some(kind) = head.chars().next() else { return };
        let index: u32 = head[kind.len_utf8()..].parse().unwrap_or(0);
        let bytes = |bits: u64| (bits / 8).max(1).next_power_of_two().min(1 << 16);
        match (kind, numbers.as_slice()) {
            ('p', [size, align, ..]) if head.len() == 1 => self.default_pointer = (size.div_ceil(8), bytes(*align)),
            ('p', [size, align, ..]) => self.pointers.push((index, size.div_ceil(8), bytes(*align))),
            ('i', [align, ..]) => set(&mut self.integers, index, bytes(*align)),
            ('v', [align, ..]) => set(&mut self.vectors, index, bytes(*align)),
            _ => {}
        }
    }

    /// Size and alignment of pointers of that address space.
    pub fn pointer(&self, space: u32) -> (u64, u64) {
        let found = self.pointers.iter().rev().find(|(s, ..)| *s == space);
        found.map_or(self.default_pointer, |(_, size, align)| (*size, *align))
    }

    fn integer_align(&self, bits: u32) -> u64 {
        let wide_enough = self.integers.iter().find(|(width, _)| *width >= bits);
        wide_enough.or(self.integers.last()).map_or(1, |(_, align)| *align)
    }

    /// Size and alignment of a type.
    ///
    /// # Errors
    /// The type has no size, or is nested too deeply.
    pub fn of(&self, module: &Module, ty: TypeId) -> Result<Layout> {
        self.at_depth(module, ty, 0)
    }

    fn at_depth(&self, module: &Module, ty: TypeId, depth: u32) -> Result<Layout> {
        if depth > MAX_DEPTH {
            return Err(Fault::new(format!("a type is nested deeper than {MAX_DEPTH}")));
        }
        Ok(match module.types.get(ty) {
            Type::Integer(bits) | Type::Byte(bits) => {
                Layout::new(u64::from(bits.div_ceil(8)), self.integer_align(bits))
            }
            Type::Half | Type::BFloat => Layout::new(2, 2),
            Type::Float => Layout::new(4, 4),
            Type::Double => Layout::new(8, 8),
            Type::X86Fp80 | Type::Fp128 | Type::PpcFp128 => Layout::new(16, 16),
            Type::Pointer(space) => {
                let (size, align) = self.pointer(space);
                Layout::new(size, align)
            }
            Type::Array { len, element } => {
                let element = self.at_depth(module, element, depth + 1)?;
                let size = element.size.saturating_mul(len);
                Layout { store: size, size, align: element.align }
            }
            Type::Vector { len, scalable: false, element } => {
                let bits = u64::from(len) * self.scalar_bits(module, element)?;
                let store = bits.div_ceil(8);
                let exact = self.vectors.iter().find(|(width, _)| u64::from(*width) == bits);
                Layout::new(store, exact.map_or(store.max(1).next_power_of_two(), |(_, align)| *align))
            }
            Type::Struct { .. } | Type::Named(_) => self.structure(module, ty, depth)?.0,
            Type::Target { .. } => Layout::new(8, 8),
            _ => return Err(Fault::new("a type without a size is used in memory")),
        })
    }

    /// Bits of a scalar in a vector, where there is no padding.
    pub fn scalar_bits(&self, module: &Module, ty: TypeId) -> Result<u64> {
        match module.types.get(ty) {
            Type::Integer(bits) | Type::Byte(bits) => Ok(u64::from(bits)),
            _ => Ok(self.at_depth(module, ty, MAX_DEPTH)?.store.saturating_mul(8)),
        }
    }

    /// Layout of a struct with the offsets of its fields.
    pub fn structure(&self, module: &Module, ty: TypeId, depth: u32) -> Result<(Layout, Vec<u64>)> {
        let Some((packed, fields)) = module.types.fields(ty) else {
            return Err(Fault::new("an opaque type is used in memory"));
        };
        let (mut at, mut align, mut offsets) = (0u64, 1, Vec::with_capacity(fields.len()));
        for field in fields {
            let field = self.at_depth(module, *field, depth + 1)?;
            let field_align = if packed { 1 } else { field.align };
            at = at.checked_next_multiple_of(field_align).unwrap_or(u64::MAX);
            offsets.push(at);
            at = at.saturating_add(field.size);
            align = align.max(field_align);
        }
        let size = at.checked_next_multiple_of(align).unwrap_or(u64::MAX);
        Ok((Layout { store: size, size, align }, offsets))
    }
}

fn set(list: &mut Vec<(u32, u64)>, bits: u32, align: u64) {
    match list.iter_mut().find(|(width, _)| *width == bits) {
        Some(entry) => entry.1 = align,
        None => list.push((bits, align)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_layout_string() {
        let mut module = Module::new();
        let layout = DataLayout::parse("e-p3:32:32-i64:64-v16:16-v32:32-n16:32:64");
        let float = module.types.intern(Type::Float);
        let byte = module.types.integer(8);
        let vector = module.types.intern(Type::Vector { len: 3, scalable: false, element: float });
        assert_eq!(layout.of(&module, vector).unwrap(), Layout { store: 12, size: 16, align: 16 });
        let shared = module.types.pointer(3);
        assert_eq!(layout.of(&module, shared).unwrap().size, 4);
        let odd = module.types.integer(24);
        assert_eq!(layout.of(&module, odd).unwrap(), Layout { store: 3, size: 4, align: 4 });
        let wide = module.types.integer(128);
        let pair = module.types.structure(false, &[byte, vector, byte, wide]);
        let (whole, offsets) = layout.structure(&module, pair, 0).unwrap();
        assert_eq!((whole.size, whole.align, offsets), (64, 16, vec![0, 16, 32, 48]));
        let packed = module.types.structure(true, &[byte, float]);
        assert_eq!(layout.of(&module, packed).unwrap().size, 5);
    }

    #[test]
    fn structs_that_hold_themselves_are_refused() {
        let mut module = Module::new();
        let (id, ty) = module.types.named(None);
        module.types.define(id, false, &[ty]);
        assert!(DataLayout::parse("").of(&module, ty).is_err());
    }
}
