//! Memory.

use ptxc_ir::{
    ConstData, Extra, Flags, GlobalKind, MemAttrs, Opcode, Ordering, Scope, Space, TargetOp, Type as IrType, Value,
};

use super::word;
use crate::model::{AttributeValue, Operand};
use crate::translate::body::Writer;
use crate::translate::intrinsics::Site;
use crate::translate::intrinsics::template::Template;
use crate::translate::{Fault, Result, Symbol};

impl<'m> Writer<'_, 'm> {
    /// `align` of an argument of a call; 1 without.
    fn align_of(&self, site: &Site<'m>, index: usize) -> u32 {
        let source = self.cx.source;
        let attributes = source.attributes.param(site.call.attributes, index);
        let align = attributes.iter().find_map(|attribute| match attribute.value {
            AttributeValue::Number(bytes) if source.names.bytes(attribute.name) == b"align" => Some(bytes),
            _ => None,
        });
        align.and_then(|bytes| u32::try_from(bytes).ok()).filter(|a| a.is_power_of_two()).unwrap_or(1).min(1 << 30)
    }

    /// Values computed only where a condition holds; `otherwise` elsewhere.
    fn when(
        &mut self,
        condition: Value,
        otherwise: &[Value],
        work: impl FnOnce(&mut Self) -> Result<Vec<Value>>,
    ) -> Result<Vec<Value>> {
        match self.b.func.dfg.as_bits(condition) {
            Some(0) => return Ok(otherwise.to_vec()),
            Some(_) => return work(self),
            None => {}
        }
        let (then, after) = (self.b.append_block(), self.b.append_block());
        let results: Vec<Value> = otherwise
            .iter()
            .map(|value| {
                let ty = self.b.ty(*value);
                self.b.block_param(after, ty)
            })
            .collect();
        self.b.br(condition, (then, &[]), (after, otherwise));
        self.b.switch_to(then);
        let values = work(self)?;
        self.b.jump(after, &values);
        self.b.switch_to(after);
        Ok(results)
    }

    /// The lanes of a mask, constants as constants.
    fn mask_lanes(&mut self, mask: Value) -> Vec<Value> {
        match self.b.func.dfg.as_const(mask) {
            Some(ConstData::Vector(lanes)) => lanes.clone(),
            _ => self.lanes(mask),
        }
    }
}

/// `memcpy`, `memmove`, `memset`.
pub(super) fn block<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let op = Opcode::from_text(word(words)).ok_or_else(|| Fault::new("its kind is not known"))?;
    let to = w.address(site.argument(0)?)?;
    let from = if op == Opcode::Memset { w.arg(site, 1)? } else { w.address(site.argument(1)?)? };
    let len = w.arg(site, 2)?;
    let len = if w.b.ty(len) == IrType::I32 { len } else { w.resize(len, IrType::I64, false) };
    let volatile = w.number(site.argument(3)?).is_some_and(|flag| flag != 0);
    let src_align = if op == Opcode::Memset { 1 } else { w.align_of(site, 1) };
    let extra = Extra::Copy { dst_align: w.align_of(site, 0), src_align, volatile };
    w.b.inst(op, Flags::EMPTY, IrType::INVALID, &[to, from, len], extra);
    Ok(())
}

/// `masked.load`, `store`, `gather`, `scatter`, `expandload`, `compressstore`: lane by lane.
pub(super) fn masked<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let kind = word(words);
    let stores = matches!(kind, "store" | "scatter" | "compressstore");
    let packed = matches!(kind, "expandload" | "compressstore");
    let scattered = matches!(kind, "gather" | "scatter");
    // Older LLVM passes the alignment as an argument, newer as an attribute of the address.
    let address_at = usize::from(stores);
    let given = site.arguments.len() == if packed { usize::MAX } else { 4 };
    let align = if given { w.number(site.argument(address_at + 1)?) } else { None };
    let align = align.and_then(|n| u64::try_from(n).ok()).unwrap_or_else(|| u64::from(w.align_of(site, address_at)));
    let next = address_at + 1 + usize::from(given);
    let mask = w.arg(site, next)?;
    let other: Operand = site.argument(if stores { 0 } else { next + 1 })?;
    let vector = w.value(other)?;
    let ty = w.b.ty(vector);
    let size = ty.scalar().size();
    let base = w.address(site.argument(address_at)?)?;
    let bases = if scattered { w.lanes(base) } else { Vec::new() };
    let (conditions, values) = (w.mask_lanes(mask), w.lanes(vector));
    let mut loaded = Vec::with_capacity(values.len());
    let mut at = base;
    for (lane, (condition, value)) in conditions.into_iter().zip(values).enumerate() {
        let offset = lane as u64 * size;
        let address = match bases.get(lane) {
            Some(address) => *address,
            None if packed => at,
            None => w.b.byte_offset(base, offset as i64),
        };
        let known = if scattered || offset == 0 { align } else { align.min(1 << offset.trailing_zeros()) };
        let attrs = MemAttrs::aligned(if packed { align.min(size.max(1)) } else { known.max(1) });
        let mut otherwise = if stores { Vec::new() } else { vec![value] };
        if packed {
            otherwise.push(at);
        }
        let results = w.when(condition, &otherwise, |w| {
            let mut out = Vec::new();
            if stores {
                w.b.store(value, address, attrs);
            } else {
                out.push(w.b.load(ty.scalar(), address, attrs));
            }
            if packed {
                out.push(w.b.byte_offset(address, size as i64));
            }
            Ok(out)
        })?;
        if packed {
            at = results.last().copied().unwrap_or(at);
        }
        if !stores {
            loaded.extend(results.first().copied());
        }
    }
    if stores {
        return Ok(());
    }
    let value = w.b.vector(ty, &loaded);
    w.give(site, value)
}

/// `ptrmask`.
pub(super) fn mask_pointer<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let (pointer, mask) = (w.arg(site, 0)?, w.arg(site, 1)?);
    let ty = w.b.ty(pointer);
    let int = ty.with_scalar(IrType::I64);
    let number = w.b.convert(Opcode::Ptrtoint, pointer, int);
    // A mask of a short pointer leaves the upper bits alone.
    let mask = w.resize(mask, int, true);
    let number = w.b.binary(Opcode::And, number, mask);
    let value = w.b.convert(Opcode::Inttoptr, number, ty);
    w.give(site, value)
}

/// `objectsize`: not known, which is the largest or the smallest number as the call asks.
pub(super) fn object_size<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let ty = w.wanted(site)?;
    let least = w.number(site.argument(1)?).is_some_and(|flag| flag != 0);
    let value = w.b.iconst(ty, if least { 0 } else { -1 });
    w.give(site, value)
}

/// `stacksave`.
pub(super) fn stack_save<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let made = w.b.target(TargetOp::Opaque { text: "stacksave.u64 $0;".to_owned() }, &[], &[IrType::I64]);
    let number = w.b.func.dfg.result(made, 0);
    let value = w.b.convert(Opcode::Inttoptr, number, IrType::ptr(Space::Local));
    w.give(site, value)
}

/// `stackrestore`.
pub(super) fn stack_restore<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let pointer = w.address(site.argument(0)?)?;
    let pointer = w.fit(pointer, IrType::ptr(Space::Local));
    let number = w.b.convert(Opcode::Ptrtoint, pointer, IrType::I64);
    w.b.target(TargetOp::Opaque { text: "stackrestore.u64 $0;".to_owned() }, &[number], &[]);
    Ok(())
}

/// `ptr.gen.to.global` and the like.
pub(super) fn convert_space<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let ty = w.wanted(site)?;
    let pointer = w.raw(site.argument(0)?)?;
    let value = w.fit(pointer, ty);
    w.give(site, value)
}

/// `isspacep`.
pub(super) fn in_space<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let space = Space::from_name(word(words)).ok_or_else(|| Fault::new("its space is not known"))?;
    let pointer = w.arg(site, 0)?;
    let value = w.with_extra(Opcode::IsSpace, IrType::INVALID, &[pointer], Extra::Space(space));
    w.give(site, value)
}

/// `ldg`, `ldu`: a load of memory that nobody writes; the second argument is the alignment.
pub(super) fn load_readonly<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let Some(result) = site.result else { return Ok(()) };
    let ty = w.body.values[result].ty;
    let align = w.number(site.argument(1)?).and_then(|n| u64::try_from(n).ok()).unwrap_or(1);
    let address = w.address(site.argument(0)?)?;
    // Both are of global memory, also by a generic address.
    let address = if w.b.ty(address) == IrType::PTR { w.fit(address, IrType::ptr(Space::Global)) } else { address };
    let attrs = MemAttrs { invariant: true, ..MemAttrs::aligned(align) };
    let parts = w.load_value(ty, address, attrs)?;
    w.define(result, &parts);
    Ok(())
}

/// `atomic.cas.gen.i`: the old value.
pub(super) fn compare_and_swap<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let scope = Scope::from_text(word(words)).ok_or_else(|| Fault::new("its scope is not known"))?;
    let address = w.address(site.argument(0)?)?;
    let (expected, new) = (w.arg(site, 1)?, w.arg(site, 2)?);
    let attrs = MemAttrs { order: Ordering::Relaxed, scope, ..MemAttrs::aligned(w.b.ty(expected).size()) };
    let (old, _) = w.b.cmpxchg(address, expected, new, attrs, Ordering::Relaxed);
    w.give(site, old)
}

/// `texsurf.handle`: the address of a texture, surface or sampler.
pub(super) fn texture_handle<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let index: usize = word(words).parse().unwrap_or(0);
    let operand = site.argument(index)?;
    let address = match operand.constant() {
        Some(constant) => w.cx.address(constant, 0)?,
        None => None,
    };
    let global = match address.map(|address| address.symbol) {
        Some(Symbol::Variable(global)) if !matches!(w.cx.module.globals[global].kind, GlobalKind::Variable(_)) => {
            global
        }
        _ => {
            // A handle that is computed is an address already.
            let pointer = w.arg(site, index)?;
            let value = w.b.convert(Opcode::Ptrtoint, pointer, IrType::I64);
            return w.give(site, value);
        }
    };
    let ty = w.cx.module.global_ptr(global);
    let pointer = w.b.global(global, 0, ty);
    let value = w.b.convert(Opcode::Ptrtoint, pointer, IrType::I64);
    w.give(site, value)
}

/// PTX whose 16-bit arguments are widened to 32 bits first.
pub(super) fn widened<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let template = Template::parse(&words.join(" ")).map_err(Fault::new)?;
    let mut arguments = Vec::with_capacity(site.arguments.len());
    for index in 0..site.arguments.len() {
        let value = w.arg(site, index)?;
        let narrow = w.b.ty(value) == IrType::I16;
        let value = if narrow { w.resize(value, IrType::I32, false) } else { value };
        arguments.push(w.registers_of(value, None));
    }
    w.ptx_values(&template, &arguments, &[])?;
    Ok(())
}

/// `va_start`.
pub(super) fn start_arguments<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    w.start_arguments(site.argument(0)?)
}

/// `va_copy`.
pub(super) fn copy_arguments<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    w.copy_arguments(site.argument(0)?, site.argument(1)?)
}
