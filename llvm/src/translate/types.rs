//! LLVM types as types of the IR.
//!
//! A value of LLVM is a list of *parts*: a scalar or vector is one, a struct or array has one for each scalar or vector
//! in it, depth first.

use std::rc::Rc;

use ptxc_ir::{AggDef, MemType, Space, Type as IrType};

use super::{Context, Fault, Result};
use crate::model::{Type, TypeId};

/// Deepest nesting of types and constants that is followed.
pub(super) const MAX_DEPTH: u32 = 64;
/// Most parts of a value.
const MAX_PARTS: usize = 1 << 14;

/// One part of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    /// Type of the part.
    pub ty: IrType,
    /// Byte offset in memory.
    pub offset: u64,
    /// The LLVM type.
    pub source: TypeId,
}

/// What the translation knows of a type that values have.
#[derive(Debug)]
pub(super) struct Shape {
    /// Parts, in order.
    pub parts: Vec<Part>,
    /// Of a struct: the first part of each field.
    starts: Vec<u32>,
}

impl Context<'_> {
    /// The space of an LLVM address space.
    pub fn space(&self, number: u32) -> Result<Space> {
        Ok(match number {
            0 => Space::Generic,
            1 => Space::Global,
            3 => Space::Shared,
            4 => Space::Const,
            5 => Space::Local,
            6 => Space::Tensor,
            7 => Space::SharedCluster,
            101 => Space::Param,
            _ => return Err(Fault::new(format!("NVPTX has no address space {number}"))),
        })
    }

    /// The IR type of a scalar or vector.
    pub fn value_type(&self, ty: TypeId) -> Result<IrType> {
        Ok(match self.source.types.get(ty) {
            Type::Vector { len, scalable, element } => {
                let scalar = self.value_type(element)?;
                if scalable || len == 0 || len > ptxc_ir::types::MAX_LANES || scalar.is_vector() {
                    let what = if scalable { "a scalable vector" } else { "such a vector" };
                    return Err(Fault::new(format!("{what} ({len} lanes) has no equivalent")));
                }
                scalar.with_lanes(len)
            }
            Type::Integer(bits) | Type::Byte(bits) if bits <= ptxc_ir::types::MAX_INT_BITS => IrType::int(bits),
            Type::Integer(bits) | Type::Byte(bits) => {
                return Err(Fault::new(format!("integers of {bits} bits are wider than 128 bits")));
            }
            Type::Half => IrType::F16,
            Type::BFloat => IrType::BF16,
            Type::Float => IrType::F32,
            Type::Double => IrType::F64,
            Type::Pointer(space) => IrType::ptr(self.space(space)?),
            Type::Target { .. } => IrType::I64,
            Type::X86Fp80 | Type::Fp128 | Type::PpcFp128 => {
                return Err(Fault::new("floats wider than 64 bits have no equivalent"));
            }
            other => return Err(Fault::new(format!("values of type {} have no equivalent", word(other)))),
        })
    }

    /// The parts of a type; computed once.
    pub fn shape(&mut self, ty: TypeId) -> Result<Rc<Shape>> {
        if let Some(shape) = &self.shapes[ty] {
            return Ok(Rc::clone(shape));
        }
        let mut parts = Vec::new();
        self.collect(ty, 0, 0, &mut parts)?;
        let mut starts = Vec::new();
        let source = self.source;
        if let Some((_, fields)) = source.types.fields(ty) {
            let mut at = 0;
            for field in fields {
                starts.push(at);
                at += self.shape(*field)?.parts.len() as u32;
            }
        }
        let shape = Rc::new(Shape { parts, starts });
        self.shapes[ty] = Some(Rc::clone(&shape));
        Ok(shape)
    }

    fn collect(&self, ty: TypeId, offset: u64, depth: u32, parts: &mut Vec<Part>) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Fault::new(format!("a type is nested deeper than {MAX_DEPTH}")));
        }
        match self.source.types.get(ty) {
            Type::Void | Type::Token | Type::Metadata | Type::Label => {}
            Type::Array { len, element } => {
                let stride = self.layout.of(self.source, element)?.size;
                for index in 0..len {
                    let before = parts.len();
                    self.collect(element, offset.saturating_add(index.saturating_mul(stride)), depth + 1, parts)?;
                    if parts.len() == before {
                        break;
                    }
                }
            }
            Type::Struct { .. } | Type::Named(_) => {
                let (_, offsets) = self.layout.structure(self.source, ty, depth)?;
                let fields = self.source.types.fields(ty).map_or(&[][..], |(_, fields)| fields);
                for (field, at) in fields.iter().zip(offsets) {
                    self.collect(*field, offset.saturating_add(at), depth + 1, parts)?;
                }
            }
            _ => parts.push(Part { ty: self.value_type(ty)?, offset, source: ty }),
        }
        if parts.len() > MAX_PARTS {
            return Err(Fault::new(format!("a value of more than {MAX_PARTS} parts; use memory for it")));
        }
        Ok(())
    }

    /// Number of parts before the part that a path of indices leads to, and that part's type.
    pub fn path(&mut self, ty: TypeId, indices: &[u32]) -> Result<(usize, TypeId)> {
        let (mut ty, mut first) = (ty, 0);
        for index in indices {
            let missing = || Fault::new(format!("there is no part {index}"));
            match self.source.types.get(ty) {
                Type::Array { len, element } => {
                    if u64::from(*index) >= len {
                        return Err(missing());
                    }
                    first += *index as usize * self.shape(element)?.parts.len();
                    ty = element;
                }
                _ => {
                    let start = self.shape(ty)?.starts.get(*index as usize).copied();
                    first += start.ok_or_else(missing)? as usize;
                    ty = self.source.types.part(ty, u64::from(*index)).ok_or_else(missing)?;
                }
            }
        }
        Ok((first, ty))
    }

    /// The memory type for objects of this type: the natural one where the IR lays it out as LLVM does, else bytes.
    pub fn mem_type(&mut self, ty: TypeId) -> Result<MemType> {
        let layout = self.layout.of(self.source, ty)?;
        if let Some(natural) = self.natural(ty, true, 0)?
            && self.module.layout_of(natural).size == layout.size
        {
            return Ok(natural);
        }
        self.bytes(layout.size)
    }

    /// An array of bytes.
    pub fn bytes(&mut self, len: u64) -> Result<MemType> {
        self.array(IrType::I8.into(), len)
    }

    /// An array.
    pub fn array(&mut self, elem: MemType, len: u64) -> Result<MemType> {
        self.aggregate(AggDef::Array { elem, len })
    }

    /// An aggregate.
    pub fn aggregate(&mut self, def: AggDef) -> Result<MemType> {
        let id = self.module.aggregate(def);
        id.map(MemType::Agg).ok_or_else(|| Fault::new(format!("a type is nested deeper than {MAX_DEPTH}")))
    }

    /// The IR's own type of that structure. `exact`: only if every offset in it is LLVM's.
    pub fn natural(&mut self, ty: TypeId, exact: bool, depth: u32) -> Result<Option<MemType>> {
        if depth > MAX_DEPTH {
            return Err(Fault::new(format!("a type is nested deeper than {MAX_DEPTH}")));
        }
        Ok(match self.source.types.get(ty) {
            Type::Array { len, element } => {
                let Some(elem) = self.natural(element, exact, depth + 1)? else { return Ok(None) };
                let same = self.module.layout_of(elem).size == self.layout.of(self.source, element)?.size;
                if same || !exact { Some(self.array(elem, len)?) } else { None }
            }
            Type::Struct { .. } | Type::Named(_) => self.natural_struct(ty, exact, depth)?,
            Type::Pointer(space) if self.layout.pointer(space).0 != 8 => Some(self.short_pointer(space).into()),
            _ => self.value_type(ty).ok().map(MemType::Value),
        })
    }

    fn natural_struct(&mut self, ty: TypeId, exact: bool, depth: u32) -> Result<Option<MemType>> {
        let source = self.source;
        let Some((packed, list)) = source.types.fields(ty) else { return Ok(None) };
        let mut fields = Vec::with_capacity(list.len());
        for field in list {
            let Some(field) = self.natural(*field, exact, depth + 1)? else { return Ok(None) };
            fields.push(field);
        }
        let natural = self.aggregate(AggDef::Struct { fields, packed })?;
        if let MemType::Agg(id) = natural
            && exact
            && self.module.agg(id).offsets != self.layout.structure(source, ty, depth)?.1
        {
            return Ok(None);
        }
        Ok(Some(natural))
    }

    /// The integer that holds a pointer of less than 64 bits in memory.
    pub fn short_pointer(&self, space: u32) -> IrType {
        IrType::int(u32::try_from(self.layout.pointer(space).0 * 8).unwrap_or(32).clamp(8, 64))
    }
}

/// The word for a type in messages.
pub(super) fn word(ty: Type) -> &'static str {
    match ty {
        Type::Void => "void",
        Type::Label => "label",
        Type::Metadata => "metadata",
        Type::Token => "token",
        Type::Function { .. } => "function",
        Type::Array { .. } => "array",
        Type::Struct { .. } | Type::Named(_) => "struct",
        Type::X86Vector => "x86_amx",
        _ => "this kind",
    }
}
