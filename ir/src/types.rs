//! Value types and memory types.
//!
//! Decides how a type is represented (one `u32`), how large it is in memory and how it is aligned. It does not decide
//! which register class holds it (selection does) nor how a parameter is passed (the ABI module of selection does).

use std::fmt;

use crate::entities::AggId;

/// Memory spaces of PTX (PTX ISA chapter 5.1, 9.7.10).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Space {
    /// Any space, resolved by the address at run time.
    Generic = 0,
    /// Device memory.
    Global = 1,
    /// The thread block's shared memory (`.shared::cta`).
    Shared = 2,
    /// Shared memory of any thread block in the cluster (`.shared::cluster`).
    SharedCluster = 3,
    /// Constant banks.
    Const = 4,
    /// Per-thread stack.
    Local = 5,
    /// Kernel or function parameters.
    Param = 6,
    /// Tensor memory of the fifth-generation tensor core (32-bit addresses).
    Tensor = 7,
}

impl Space {
    /// All spaces, in encoding order.
    pub const ALL: [Space; 8] = [
        Space::Generic,
        Space::Global,
        Space::Shared,
        Space::SharedCluster,
        Space::Const,
        Space::Local,
        Space::Param,
        Space::Tensor,
    ];

    /// The name in IR text.
    pub fn name(self) -> &'static str {
        match self {
            Space::Generic => "generic",
            Space::Global => "global",
            Space::Shared => "shared",
            Space::SharedCluster => "shared_cluster",
            Space::Const => "const",
            Space::Local => "local",
            Space::Param => "param",
            Space::Tensor => "tensor",
        }
    }

    /// The space with this name in IR text.
    pub fn from_name(name: &str) -> Option<Space> {
        Space::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// Scalar float formats.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum FloatKind {
    /// IEEE binary16.
    F16 = 0,
    /// bfloat16.
    Bf16 = 1,
    /// TensorFloat-32, stored in 32 bits.
    Tf32 = 2,
    /// IEEE binary32.
    F32 = 3,
    /// IEEE binary64.
    F64 = 4,
    /// 8 bit: 4 exponent, 3 mantissa.
    E4m3 = 5,
    /// 8 bit: 5 exponent, 2 mantissa.
    E5m2 = 6,
    /// 6 bit: 2 exponent, 3 mantissa.
    E2m3 = 7,
    /// 6 bit: 3 exponent, 2 mantissa.
    E3m2 = 8,
    /// 4 bit: 2 exponent, 1 mantissa.
    E2m1 = 9,
    /// 8 bit exponent-only scale factor.
    Ue8m0 = 10,
}

impl FloatKind {
    /// All formats, in encoding order.
    pub const ALL: [FloatKind; 11] = [
        FloatKind::F16,
        FloatKind::Bf16,
        FloatKind::Tf32,
        FloatKind::F32,
        FloatKind::F64,
        FloatKind::E4m3,
        FloatKind::E5m2,
        FloatKind::E2m3,
        FloatKind::E3m2,
        FloatKind::E2m1,
        FloatKind::Ue8m0,
    ];

    /// The name in IR text.
    pub fn name(self) -> &'static str {
        match self {
            FloatKind::F16 => "f16",
            FloatKind::Bf16 => "bf16",
            FloatKind::Tf32 => "tf32",
            FloatKind::F32 => "f32",
            FloatKind::F64 => "f64",
            FloatKind::E4m3 => "e4m3",
            FloatKind::E5m2 => "e5m2",
            FloatKind::E2m3 => "e2m3",
            FloatKind::E3m2 => "e3m2",
            FloatKind::E2m1 => "e2m1",
            FloatKind::Ue8m0 => "ue8m0",
        }
    }

    /// Bits of storage of a scalar (narrow floats take a byte).
    pub fn storage_bits(self) -> u32 {
        match self {
            FloatKind::F16 | FloatKind::Bf16 => 16,
            FloatKind::Tf32 | FloatKind::F32 => 32,
            FloatKind::F64 => 64,
            _ => 8,
        }
    }

    /// True for the 4, 6 and 8-bit formats, which have no arithmetic.
    pub fn is_narrow(self) -> bool {
        self as u8 >= FloatKind::E4m3 as u8
    }
}

/// Widest integer type.
pub const MAX_INT_BITS: u32 = 128;
/// Most lanes of a vector type.
pub const MAX_LANES: u32 = 1024;

/// A value type in 32 bits: kind (bits 0–2), payload (3–15: integer width, float kind or space), lanes (16–31; 0 means scalar).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Type(u32);

/// The kinds of scalar a [`Type`] is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scalar {
    /// Integer of this many bits.
    Int(u32),
    /// Float.
    Float(FloatKind),
    /// Pointer.
    Ptr(Space),
}

const KIND_INT: u32 = 1;
const KIND_FLOAT: u32 = 2;
const KIND_PTR: u32 = 3;

impl Type {
    /// No type: the controlling type of instructions that have none.
    pub const INVALID: Type = Type(0);
    /// Predicate.
    pub const I1: Type = Type::int(1);
    /// 8-bit integer.
    pub const I8: Type = Type::int(8);
    /// 16-bit integer.
    pub const I16: Type = Type::int(16);
    /// 32-bit integer.
    pub const I32: Type = Type::int(32);
    /// 64-bit integer.
    pub const I64: Type = Type::int(64);
    /// 128-bit integer.
    pub const I128: Type = Type::int(128);
    /// Half.
    pub const F16: Type = Type::float(FloatKind::F16);
    /// bfloat16.
    pub const BF16: Type = Type::float(FloatKind::Bf16);
    /// TensorFloat-32.
    pub const TF32: Type = Type::float(FloatKind::Tf32);
    /// Single.
    pub const F32: Type = Type::float(FloatKind::F32);
    /// Double.
    pub const F64: Type = Type::float(FloatKind::F64);
    /// Generic pointer.
    pub const PTR: Type = Type::ptr(Space::Generic);

    /// Integer of `bits` bits, 1 to [`MAX_INT_BITS`] (the reader and builder check the range).
    pub const fn int(bits: u32) -> Type {
        Type(KIND_INT | (bits << 3))
    }

    /// Float of this format.
    pub const fn float(kind: FloatKind) -> Type {
        Type(KIND_FLOAT | ((kind as u32) << 3))
    }

    /// Pointer into this space.
    pub const fn ptr(space: Space) -> Type {
        Type(KIND_PTR | ((space as u32) << 3))
    }

    /// Vector of `lanes` of this scalar; `lanes` 0 gives the scalar itself.
    pub const fn with_lanes(self, lanes: u32) -> Type {
        Type((self.0 & 0xffff) | (lanes << 16))
    }

    /// The element type of a vector, or the type itself.
    pub const fn scalar(self) -> Type {
        Type(self.0 & 0xffff)
    }

    /// Lanes of a vector; 1 for a scalar.
    pub const fn lanes(self) -> u32 {
        let n = self.0 >> 16;
        if n == 0 { 1 } else { n }
    }

    /// True for `<n x T>`, also with one lane.
    pub const fn is_vector(self) -> bool {
        self.0 >> 16 != 0
    }

    /// True for [`Type::INVALID`].
    pub const fn is_invalid(self) -> bool {
        self.0 == 0
    }

    /// The scalar kind with its payload; `None` for the invalid type.
    pub fn kind(self) -> Option<Scalar> {
        let payload = (self.0 >> 3) & 0x1fff;
        match self.0 & 7 {
            KIND_INT => Some(Scalar::Int(payload)),
            KIND_FLOAT => FloatKind::ALL.get(payload as usize).map(|k| Scalar::Float(*k)),
            KIND_PTR => Space::ALL.get(payload as usize).map(|s| Scalar::Ptr(*s)),
            _ => None,
        }
    }

    /// True for an integer scalar (not a vector).
    pub fn is_int(self) -> bool {
        self.0 & 7 == KIND_INT && !self.is_vector()
    }

    /// True for a float scalar (not a vector).
    pub fn is_float(self) -> bool {
        self.0 & 7 == KIND_FLOAT && !self.is_vector()
    }

    /// True for a pointer scalar (not a vector).
    pub fn is_ptr(self) -> bool {
        self.0 & 7 == KIND_PTR && !self.is_vector()
    }

    /// True when the scalar or the vector's element is an integer.
    pub fn is_int_like(self) -> bool {
        self.0 & 7 == KIND_INT
    }

    /// True when the scalar or the vector's element is a float.
    pub fn is_float_like(self) -> bool {
        self.0 & 7 == KIND_FLOAT
    }

    /// True when the scalar or the vector's element is a pointer.
    pub fn is_ptr_like(self) -> bool {
        self.0 & 7 == KIND_PTR
    }

    /// The float format of the scalar or of the vector's element.
    pub fn float_kind(self) -> Option<FloatKind> {
        match self.kind() {
            Some(Scalar::Float(k)) => Some(k),
            _ => None,
        }
    }

    /// The space of a pointer, or of a vector of pointers.
    pub fn space(self) -> Option<Space> {
        match self.kind() {
            Some(Scalar::Ptr(s)) => Some(s),
            _ => None,
        }
    }

    /// Bits of one scalar as a value: integer width, float storage bits, 64 for pointers (32 in tensor memory).
    pub fn scalar_bits(self) -> u32 {
        match self.kind() {
            Some(Scalar::Int(n)) => n,
            Some(Scalar::Float(k)) => k.storage_bits(),
            Some(Scalar::Ptr(Space::Tensor)) => 32,
            Some(Scalar::Ptr(_)) => 64,
            None => 0,
        }
    }

    /// Bits of the whole value: scalar bits times lanes. This is what `bitcast` compares.
    pub fn bits(self) -> u32 {
        self.scalar_bits() * self.lanes()
    }

    /// The type that `icmp`/`fcmp` on this type gives: `i1`, or a vector of `i1` with the same lanes.
    pub fn as_bool(self) -> Type {
        Type(Type::I1.0 | (self.0 & 0xffff_0000))
    }

    /// The same lanes with another scalar.
    pub fn with_scalar(self, scalar: Type) -> Type {
        Type(scalar.scalar().0 | (self.0 & 0xffff_0000))
    }

    /// Bytes in memory.
    pub fn size(self) -> u64 {
        let scalar = self.scalar_bits();
        if self.is_vector() && scalar == 1 {
            return u64::from(self.lanes().div_ceil(8));
        }
        scalar_bytes(scalar) * u64::from(self.lanes())
    }

    /// Natural alignment in bytes: a power of two, at most 16.
    pub fn align(self) -> u64 {
        self.size().next_power_of_two().clamp(1, 16)
    }

    /// The raw encoding, for hashing and compact tables.
    pub const fn raw(self) -> u32 {
        self.0
    }
}

/// Bytes that a scalar of this many bits takes in memory: the next power of two of its bytes.
fn scalar_bytes(bits: u32) -> u64 {
    u64::from(bits.div_ceil(8)).next_power_of_two()
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_vector() {
            write!(f, "<{} x ", self.0 >> 16)?;
        }
        match self.kind() {
            Some(Scalar::Int(n)) => write!(f, "i{n}")?,
            Some(Scalar::Float(k)) => f.write_str(k.name())?,
            Some(Scalar::Ptr(Space::Generic)) => f.write_str("ptr")?,
            Some(Scalar::Ptr(s)) => write!(f, "ptr<{}>", s.name())?,
            None => f.write_str("void")?,
        }
        if self.is_vector() {
            f.write_str(">")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A type as memory holds it: a value type or an aggregate of the module's aggregate table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemType {
    /// A value type.
    Value(Type),
    /// A struct or array.
    Agg(AggId),
}

impl From<Type> for MemType {
    fn from(ty: Type) -> MemType {
        MemType::Value(ty)
    }
}

/// Definition of an aggregate.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum AggDef {
    /// Fields in order; packed structs have alignment 1 and no padding.
    Struct {
        /// Field types.
        fields: Vec<MemType>,
        /// No padding.
        packed: bool,
    },
    /// `len` elements.
    Array {
        /// Element type.
        elem: MemType,
        /// Number of elements; 0 is allowed (dynamic shared memory).
        len: u64,
    },
}

/// Size and alignment of a memory type, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Bytes including tail padding. Saturates at `u64::MAX` for absurd arrays, which the verifier refuses.
    pub size: u64,
    /// Alignment, a power of two.
    pub align: u64,
}

/// One aggregate with its layout, computed once when it is interned.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// `%Name` it was declared under, if any.
    pub name: Option<String>,
    /// What it is.
    pub def: AggDef,
    /// Size and alignment.
    pub layout: Layout,
    /// Byte offset of each struct field; empty for arrays.
    pub offsets: Vec<u64>,
    /// Number of scalar or vector leaves, saturating.
    pub leaves: u64,
    /// Nesting depth; leaves of depth 0 are value types. Bounded by the reader.
    pub depth: u32,
}
