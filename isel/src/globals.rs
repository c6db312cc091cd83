//! Globals: initializers as bytes and addresses.

use ptxc_ir::{AggDef, GlobalId, Init, Linkage, MemType, Module, Space, Type};
use ptxc_mir as mir;
use ptxc_mir::{GlobalInit, Relocation};

use crate::module::{Symbols, global_linkage};

/// Largest initializer: what a file of PTX text can reasonably hold.
const MAX_BYTES: u64 = 1 << 30;

/// The machine form of a variable.
///
/// # Errors
/// A space without variables, or an initializer that does not fit its type.
pub(crate) fn variable(module: &Module, symbols: &Symbols, id: GlobalId, space: Space) -> Result<mir::Global, String> {
    let global = &module.globals[id];
    let space = match space {
        Space::Global => mir::Space::Global,
        Space::Const => mir::Space::Const,
        Space::Shared => mir::Space::Shared,
        Space::Local => mir::Space::Local,
        other => return Err(format!("there are no variables in {} memory", other.name())),
    };
    let layout = module.layout_of(global.ty);
    // Only a declaration leaves its size open (dynamic shared memory); an empty object of its own takes a byte.
    let unsized_array = layout.size == 0 && global.linkage == Linkage::Extern;
    let init = match &global.init {
        Some(init) => Some(initializer(module, symbols, global.ty, init)?),
        None => None,
    };
    let align = u32::try_from(global.align.max(layout.align)).map_err(|_| "the alignment is too large".to_owned())?;
    Ok(mir::Global {
        symbol: symbols.global(id),
        space,
        linkage: global_linkage(global.linkage),
        align,
        size: (!unsized_array).then_some(layout.size.max(1)),
        init: init.filter(|i| space != mir::Space::Shared && !is_zero(i)),
        managed: global.managed,
    })
}

/// PTX zeroes variables without an initializer.
fn is_zero(init: &GlobalInit) -> bool {
    init.relocations.is_empty() && init.bytes.iter().all(|b| *b == 0)
}

fn initializer(module: &Module, symbols: &Symbols, ty: MemType, init: &Init) -> Result<GlobalInit, String> {
    let size = module.layout_of(ty).size;
    if size > MAX_BYTES {
        return Err(format!("an initializer of {size} bytes is too large"));
    }
    let bytes = if matches!(init, Init::Zero | Init::Poison) { Vec::new() } else { vec![0; size as usize] };
    let mut writer = Writer { module, symbols, out: GlobalInit { bytes, relocations: Vec::new() } };
    writer.write(ty, init, 0)?;
    writer.out.relocations.sort_by_key(|r| r.offset);
    Ok(writer.out)
}

struct Writer<'a> {
    module: &'a Module,
    symbols: &'a Symbols,
    out: GlobalInit,
}

impl Writer<'_> {
    /// Writes an initializer at an offset. Nesting is bounded by that of the type.
    fn write(&mut self, ty: MemType, init: &Init, at: u64) -> Result<(), String> {
        match init {
            Init::Zero | Init::Poison => Ok(()),
            Init::Bits(bits) => self.bits(ty, *bits, at),
            Init::Bytes(bytes) => self.put(at, bytes),
            Init::Global { global, offset, generic } => {
                let symbol = self.symbols.global(*global);
                self.out.relocations.push(Relocation { offset: at, symbol, addend: *offset, generic: *generic });
                Ok(())
            }
            Init::Func(func) => {
                let symbol = self.symbols.func(*func);
                self.out.relocations.push(Relocation { offset: at, symbol, addend: 0, generic: false });
                Ok(())
            }
            Init::List(items) => self.list(ty, items, at),
        }
    }

    fn list(&mut self, ty: MemType, items: &[Init], at: u64) -> Result<(), String> {
        let module = self.module;
        match ty {
            MemType::Value(ty) if ty.is_vector() && ty.scalar_bits() == 1 => self.bit_vector(items, at),
            MemType::Value(ty) => {
                let lane = ty.scalar();
                for (index, item) in items.iter().enumerate() {
                    self.write(lane.into(), item, at + index as u64 * lane.size())?;
                }
                Ok(())
            }
            MemType::Agg(id) => {
                let agg = module.agg(id);
                for (index, item) in items.iter().enumerate() {
                    let (ty, offset) = match &agg.def {
                        AggDef::Array { elem, .. } => (*elem, index as u64 * module.layout_of(*elem).size),
                        AggDef::Struct { fields, .. } => match (fields.get(index), agg.offsets.get(index)) {
                            (Some(field), Some(offset)) => (*field, *offset),
                            _ => return Err("the initializer has more fields than the type".into()),
                        },
                    };
                    self.write(ty, item, at + offset)?;
                }
                Ok(())
            }
        }
    }

    fn bit_vector(&mut self, items: &[Init], at: u64) -> Result<(), String> {
        for (index, item) in items.iter().enumerate() {
            let byte = (at as usize) + index / 8;
            let slot = self.out.bytes.get_mut(byte).ok_or("the initializer is larger than the type")?;
            if matches!(item, Init::Bits(bits) if bits & 1 != 0) {
                *slot |= 1 << (index % 8);
            }
        }
        Ok(())
    }

    fn bits(&mut self, ty: MemType, bits: u128, at: u64) -> Result<(), String> {
        let MemType::Value(ty) = ty else { return Err("a number initializes an aggregate".into()) };
        if ty == Type::I1 {
            return self.put(at, &[(bits & 1) as u8]);
        }
        let size = ty.scalar().size().min(16) as usize;
        self.put(at, &bits.to_le_bytes()[..size])
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> Result<(), String> {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let slot = start.checked_add(bytes.len()).and_then(|end| self.out.bytes.get_mut(start..end));
        slot.ok_or("the initializer is larger than the type")?.copy_from_slice(bytes);
        Ok(())
    }
}
