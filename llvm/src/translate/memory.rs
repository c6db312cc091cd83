//! Loads, stores, stack objects and address arithmetic, by LLVM's data layout.

use ptxc_ir::{
    CacheOp, ConstData, Cursor, Extra, Flags as IrFlags, MemAttrs, MemType, Opcode, Ordering as IrOrdering, Scope,
    Space, TargetOp, Type as IrType, Value,
};

use super::body::Writer;
use super::constants::Step;
use super::rounds::Made;
use super::types::Part;
use super::{Fault, Result};
use crate::model::{Access, Alignment, Flags, InstId, Name, Operand, Ordering, Type, TypeId, ValueId};

/// What the host passes where a generic pointer is expected.
const GLOBAL_POINTER: IrType = IrType::ptr(Space::Global);
/// The largest alignment that an access states.
const MAX_ALIGN: u64 = 1 << 30;

impl Writer<'_, '_> {
    /// The scope of that name; `None` for a single thread, which sees its own accesses in order.
    pub fn scope(&self, name: Name) -> Result<Option<Scope>> {
        Ok(Some(match self.cx.source.names.bytes(name) {
            b"" | b"system" => Scope::Sys,
            b"device" | b"agent" | b"gpu" => Scope::Gpu,
            b"cluster" => Scope::Cluster,
            b"block" | b"workgroup" | b"cta" => Scope::Cta,
            b"singlethread" | b"wavefront" | b"subgroup" | b"warp" => return Ok(None),
            other => {
                let other = String::from_utf8_lossy(other).into_owned();
                return Err(Fault::new(format!("there is no synchronization scope `{other}`")));
            }
        }))
    }

    /// The order of an atomic access; unordered accesses are relaxed ones.
    pub fn ordering(ordering: Ordering) -> IrOrdering {
        match ordering {
            Ordering::NotAtomic => IrOrdering::NotAtomic,
            Ordering::Unordered | Ordering::Monotonic => IrOrdering::Relaxed,
            Ordering::Acquire => IrOrdering::Acquire,
            Ordering::Release => IrOrdering::Release,
            Ordering::AcqRel => IrOrdering::AcqRel,
            Ordering::SeqCst => IrOrdering::SeqCst,
        }
    }

    /// What an access of an object of type `ty` at `address` says.
    fn access(&self, inst: InstId, access: Access, ty: TypeId, address: Value) -> Result<MemAttrs> {
        let natural = self.cx.layout.of(self.cx.source, ty)?.align;
        let mut attrs = MemAttrs::aligned(access.align.bytes().unwrap_or(natural).min(MAX_ALIGN));
        attrs.volatile = access.volatile;
        let space = self.b.ty(address).space().unwrap_or(Space::Generic);
        let shared_with_others = !matches!(space, Space::Local | Space::Const | Space::Param);
        if access.ordering != Ordering::NotAtomic
            && shared_with_others
            && let Some(scope) = self.scope(access.scope)?
        {
            attrs.order = Self::ordering(access.ordering);
            attrs.scope = scope;
            return Ok(attrs);
        }
        attrs.volatile &= shared_with_others;
        if !attrs.volatile && !self.body.attachments.is_empty() {
            for (_, kind, _) in self.body.attachments(inst) {
                match self.cx.source.names.bytes(*kind) {
                    b"invariant.load" => attrs.invariant = true,
                    b"nontemporal" if matches!(space, Space::Global | Space::Generic) => attrs.cache = CacheOp::Cs,
                    _ => {}
                }
            }
        }
        Ok(attrs)
    }

    /// `load`.
    pub fn load(&mut self, inst: InstId, result: Option<ValueId>, address: Operand, access: Access) -> Result<()> {
        let result = result.ok_or_else(|| Fault::new("a load has no result"))?;
        let ty = self.body.values[result].ty;
        let address = self.address(address)?;
        let attrs = self.access(inst, access, ty, address)?;
        let parts = match self.cx.value_type(ty) {
            Ok(IrType::PTR) if self.is_passed_object(address) => vec![self.b.load(GLOBAL_POINTER, address, attrs)],
            _ => self.load_value(ty, address, attrs)?,
        };
        self.define(result, &parts);
        Ok(())
    }

    /// Loads a value of any type.
    pub fn load_value(&mut self, ty: TypeId, address: Value, attrs: MemAttrs) -> Result<Vec<Value>> {
        let shape = self.cx.shape(ty)?;
        let mut parts = Vec::with_capacity(shape.parts.len());
        for part in &shape.parts {
            let at = self.b.byte_offset(address, part.offset as i64);
            parts.push(self.load_part(*part, at, at_offset(attrs, part.offset))?);
        }
        Ok(parts)
    }

    fn load_part(&mut self, part: Part, address: Value, attrs: MemAttrs) -> Result<Value> {
        let stored = self.stored_type(part)?;
        let bytes = u64::from(stored.scalar_bits().div_ceil(8));
        let split = stored.is_int() && !bytes.is_power_of_two();
        if stored == part.ty && !split {
            return Ok(self.b.load(stored, address, attrs));
        }
        if !split {
            let raw = self.b.load(stored, address, attrs);
            return self.as_value(raw, part.ty);
        }
        // An integer of three bytes, say, is two and one.
        let mut whole: Option<Value> = None;
        for (offset, len) in pieces(bytes) {
            let at = self.b.byte_offset(address, offset as i64);
            let piece = self.b.load(IrType::int(8 * len as u32), at, at_offset(attrs, offset));
            let wide = self.resize(piece, stored, false);
            let shifted = if offset == 0 { wide } else { self.b.binary_imm(Opcode::Shl, wide, 8 * offset as i64) };
            whole = Some(match whole {
                Some(low) => self.b.binary(Opcode::Or, low, shifted),
                None => shifted,
            });
        }
        let whole = whole.ok_or_else(|| Fault::new("an integer without bits is loaded"))?;
        self.as_value(whole, part.ty)
    }

    /// `store`.
    pub fn store(&mut self, inst: InstId, value: Operand, address: Operand, access: Access) -> Result<()> {
        let ty = self.type_of(value)?;
        let run = self.exact_parts(value)?;
        let address = self.address(address)?;
        let attrs = self.access(inst, access, ty, address)?;
        let parts = self.parts[run.range()].to_vec();
        self.store_value(ty, &parts, address, attrs)
    }

    /// Stores a value of any type.
    pub fn store_value(&mut self, ty: TypeId, parts: &[Value], address: Value, attrs: MemAttrs) -> Result<()> {
        let shape = self.cx.shape(ty)?;
        for (value, part) in parts.iter().zip(&shape.parts) {
            let at = self.b.byte_offset(address, part.offset as i64);
            self.store_part(*value, *part, at, at_offset(attrs, part.offset))?;
        }
        Ok(())
    }

    fn store_part(&mut self, value: Value, part: Part, address: Value, attrs: MemAttrs) -> Result<()> {
        let stored = self.stored_type(part)?;
        let bytes = u64::from(stored.scalar_bits().div_ceil(8));
        let split = stored.is_int() && !bytes.is_power_of_two();
        if stored == part.ty && !split {
            self.b.store(value, address, attrs);
            return Ok(());
        }
        let raw = self.as_stored(value, stored)?;
        if !split {
            self.b.store(raw, address, attrs);
            return Ok(());
        }
        for (offset, len) in pieces(bytes) {
            let shifted = if offset == 0 { raw } else { self.b.binary_imm(Opcode::Lshr, raw, 8 * offset as i64) };
            let piece = self.resize(shifted, IrType::int(8 * len as u32), false);
            let at = self.b.byte_offset(address, offset as i64);
            self.b.store(piece, at, at_offset(attrs, offset));
        }
        Ok(())
    }

    /// The type that a part has in memory: integers where the IR's own layout is not LLVM's.
    fn stored_type(&self, part: Part) -> Result<IrType> {
        let ty = part.ty;
        let scalar = ty.scalar();
        if scalar.is_ptr() && ty.space() != Some(Space::Tensor) {
            let source = self.cx.source.types.scalar(part.source);
            if let Type::Pointer(space) = self.cx.source.types.get(source) {
                let short = self.cx.short_pointer(space);
                return Ok(if short.scalar_bits() == 64 { ty } else { ty.with_scalar(short) });
            }
            return Ok(ty);
        }
        if !scalar.is_int() {
            return Ok(ty);
        }
        let bits = scalar.scalar_bits();
        let whole = bits.is_multiple_of(8) && (bits / 8).is_power_of_two();
        if whole || bits == 1 {
            return Ok(ty);
        }
        if !ty.is_vector() {
            // Rounded up to bytes; the bits above are zero in memory.
            return Ok(IrType::int(bits.next_multiple_of(8)));
        }
        match ty.bits() {
            all if all <= 128 => Ok(IrType::int(all.next_multiple_of(8).min(128))),
            _ => Err(Fault::new(format!("a vector {ty} in memory is wider than 128 bits"))),
        }
    }

    fn as_value(&mut self, raw: Value, ty: IrType) -> Result<Value> {
        if ty.is_ptr_like() {
            return Ok(self.integer_to_pointer(raw, ty));
        }
        if !ty.is_vector() {
            return Ok(self.resize(raw, ty, false));
        }
        let exact = self.resize(raw, IrType::int(ty.bits()), false);
        self.bit_cast(exact, ty)
    }

    fn as_stored(&mut self, value: Value, stored: IrType) -> Result<Value> {
        let ty = self.b.ty(value);
        if ty.is_ptr_like() {
            return Ok(self.b.convert(Opcode::Ptrtoint, value, stored));
        }
        let bits = if ty.is_vector() { self.bit_cast(value, IrType::int(ty.bits()))? } else { value };
        Ok(self.resize(bits, stored, false))
    }

    /// `alloca`.
    pub fn alloca(&mut self, result: Option<ValueId>, ty: TypeId, count: Operand, align: Alignment) -> Result<()> {
        let layout = self.cx.layout.of(self.cx.source, ty)?;
        let align = u32::try_from(align.bytes().unwrap_or(layout.align).clamp(1, MAX_ALIGN)).unwrap_or(1);
        let value = match self.number(count) {
            Some(count) => {
                let count =
                    u32::try_from(count).map_err(|_| Fault::new(format!("a stack object of {count} elements")))?;
                let natural = self.cx.mem_type(ty)?;
                let (ty, count) = match (layout.size, count) {
                    (0, _) | (_, 0) => (MemType::Value(IrType::I8), 1),
                    (_, count) => (natural, count),
                };
                let address = self.entry_allocas(ty, count, align);
                let here = match self.b.cursor() {
                    Some(Cursor::End(block)) => Some(block),
                    Some(Cursor::Before(inst)) => self.b.func.layout.inst_block(inst),
                    None => None,
                };
                if let Some(block) = here.filter(|block| Some(*block) != self.b.func.layout.entry()) {
                    let size = layout.size.max(1).saturating_mul(count.into());
                    self.made_late.push(Made { address, block, size, align });
                }
                address
            }
            None => {
                let count = self.value(count)?;
                let count = self.resize(count, IrType::I64, false);
                let size = self.b.binary_imm(Opcode::Mul, count, layout.size as i64);
                self.dynamic_alloca(size, align)
            }
        };
        self.finish(result, vec![value])
    }

    /// A stack object of the function.
    pub fn entry_alloca(&mut self, ty: MemType, align: u32) -> Value {
        self.entry_allocas(ty, 1, align)
    }

    fn entry_allocas(&mut self, ty: MemType, count: u32, align: u32) -> Value {
        let cursor = self.b.cursor();
        self.go_to_entry();
        let value = self.b.alloca(ty, count, align);
        if let Some(cursor) = cursor {
            self.b.set_cursor(cursor);
        }
        value
    }

    /// Memory of the stack whose size is known when it runs (PTX ISA 9.7.19, `alloca`).
    pub fn dynamic_alloca(&mut self, size: Value, align: u32) -> Value {
        let text = format!("alloca.u64 $0, $1, {align};");
        let made = self.b.target(TargetOp::Opaque { text }, &[size], &[IrType::I64]);
        let address = self.b.func.dfg.result(made, 0);
        self.b.convert(Opcode::Inttoptr, address, IrType::ptr(Space::Local))
    }

    /// Moves to the top of the entry block, which may be the present one.
    fn go_to_entry(&mut self) {
        let Some(entry) = self.b.func.layout.entry() else { return };
        match self.b.func.layout.first_inst(entry) {
            Some(first) => self.b.set_cursor(Cursor::Before(first)),
            None => self.b.switch_to(entry),
        }
    }

    /// `getelementptr`: the base and what the indices add, the constant part last so that it becomes an offset.
    pub fn element_pointer(&mut self, element: TypeId, operands: &[Operand], flags: Flags) -> Result<Value> {
        let Some((base, indices)) = operands.split_first() else {
            return Err(Fault::new("address arithmetic has no pointer"));
        };
        let mut base = self.address(*base)?;
        let (mut offset, mut terms) = (0i64, Vec::new());
        let mut lanes = self.b.ty(base).is_vector().then(|| self.b.ty(base).lanes());
        let mut steps = self.cx.steps(element);
        for index in indices {
            let constant = self.constant_index(*index).map(|number| number as i64);
            match steps.next(self.cx, constant)? {
                Step::Bytes(bytes) => offset = offset.wrapping_add(bytes),
                Step::Stride(stride) => match constant {
                    Some(index) => offset = offset.wrapping_add(index.wrapping_mul(stride as i64)),
                    None => {
                        let value = self.value(*index)?;
                        let ty = self.b.ty(value);
                        lanes = lanes.or(ty.is_vector().then(|| ty.lanes()));
                        terms.push((value, stride));
                    }
                },
            }
            if lanes.is_none()
                && let Type::Vector { len, .. } = self.cx.source.types.get(self.type_of(*index)?)
            {
                lanes = Some(len);
            }
        }
        if let (Some(lanes), false) = (lanes, self.b.ty(base).is_vector()) {
            let ty = self.b.ty(base).with_lanes(lanes);
            base = self.op(Opcode::Splat, IrFlags::EMPTY, ty, &[base]);
        }
        // Only one step may say that it stays inside: of several, one may lead out and the next back in.
        let single = terms.len() + usize::from(offset != 0) == 1;
        let flags = if flags.has(Flags::INBOUNDS) && single { IrFlags::INBOUNDS } else { IrFlags::EMPTY };
        for (index, stride) in terms {
            base = self.step(base, index, stride, flags)?;
        }
        Ok(self.add_bytes(base, offset, flags))
    }

    /// A constant index; of a vector one that is the same in all lanes.
    fn constant_index(&self, index: Operand) -> Option<i128> {
        if let Some(number) = self.number(index) {
            return Some(number);
        }
        let constants = &self.cx.source.constants;
        let constant = index.constant()?;
        let Type::Vector { element, .. } = self.cx.source.types.get(constants.ty(constant)) else { return None };
        match constants.get(constant) {
            crate::model::Constant::Zero => Some(0),
            crate::model::Constant::Data(list) => {
                let kind = self.cx.source.types.get(element);
                let Type::Integer(bits) = kind else { return None };
                let mut lane = 1;
                let first = constants.data_element(list, kind, 0)?;
                while let Some(other) = constants.data_element(list, kind, lane) {
                    if other != first {
                        return None;
                    }
                    lane += 1;
                }
                Some(super::constants::signed(i128::from(first), bits))
            }
            _ => None,
        }
    }

    /// A pointer plus an index times a number of bytes.
    fn step(&mut self, base: Value, index: Value, stride: u64, flags: IrFlags) -> Result<Value> {
        if stride == 0 {
            return Ok(base);
        }
        let ty = self.b.ty(index);
        let index = if ty.scalar_bits() > 64 { self.resize(index, ty.with_scalar(IrType::I64), true) } else { index };
        let over = match stride {
            1 | 2 | 4 | 8 | 16 => MemType::Value(IrType::int(8 * stride as u32)),
            _ => self.cx.bytes(stride)?,
        };
        let ty = self.b.ty(base);
        let inst =
            self.b.inst_with_results(Opcode::Gep, flags, IrType::INVALID, &[base, index], Extra::Gep(over), &[ty]);
        Ok(self.b.func.dfg.result(inst, 0))
    }

    /// A pointer plus a number of bytes; an address of a variable stays a constant.
    fn add_bytes(&mut self, base: Value, bytes: i64, flags: IrFlags) -> Value {
        if bytes == 0 {
            return base;
        }
        let ty = self.b.ty(base);
        if let Some(ConstData::Global(global, offset)) = self.b.func.dfg.as_const(base) {
            let (global, offset) = (*global, offset.wrapping_add(bytes));
            return self.b.global(global, offset, ty);
        }
        let offset = self.b.iconst(IrType::I64, bytes);
        let over = Extra::Gep(MemType::Value(IrType::I8));
        let inst = self.b.inst_with_results(Opcode::Gep, flags, IrType::INVALID, &[base, offset], over, &[ty]);
        self.b.func.dfg.result(inst, 0)
    }
}

/// The attributes at an offset from an address that has them.
fn at_offset(attrs: MemAttrs, offset: u64) -> MemAttrs {
    if offset == 0 {
        return attrs;
    }
    MemAttrs { align_log2: attrs.align_log2.min(offset.trailing_zeros() as u8), ..attrs }
}

/// Offsets and lengths of powers of two that make up a number of bytes, the largest first.
fn pieces(bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let left = bytes - at;
        (left > 0).then(|| {
            let len = 1 << (63 - left.leading_zeros()).min(3);
            let offset = at;
            at += len;
            (offset, len)
        })
    })
}
