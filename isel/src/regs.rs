//! Which registers hold a value of a type: the one place that decides it.
//!
//! `isel/LEGAL.md`, section 1 is this file in prose.

use ptxc_ir::{FloatKind, Scalar, Space, Type};
use ptxc_mir::RegClass;
use ptxc_targets::Target;

/// The registers of a value: `count` registers of one class, each holding `lanes` lanes of the type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegLayout {
    /// Class of every register.
    pub class: RegClass,
    /// How many registers.
    pub count: u32,
    /// Lanes of the IR type in each register; 1 for scalars, 0 where a lane takes two registers (`i128`).
    pub lanes: u32,
}

/// Whether the target has arithmetic on pairs of f32 in 64-bit registers (PTX ISA 9.7.3, `add.f32x2`).
pub fn has_f32x2(target: Target) -> bool {
    target.sm() >= 100
}

/// The class of one scalar; `None` for the invalid type and for integers that no register holds alone.
pub fn scalar_class(ty: Type) -> Option<RegClass> {
    match ty.kind()? {
        Scalar::Int(1) => Some(RegClass::Pred),
        Scalar::Int(bits) if bits > 64 => None,
        Scalar::Ptr(Space::Tensor) => Some(RegClass::B32),
        _ => RegClass::for_bits(ty.scalar_bits()),
    }
}

/// The registers that hold a value of this type on the target; `None` for types that legal IR does not have.
pub fn layout(ty: Type, target: Target) -> Option<RegLayout> {
    let one = |class| Some(RegLayout { class, count: 1, lanes: ty.lanes() });
    let bits = ty.scalar_bits();
    if matches!(ty.kind(), Some(Scalar::Int(128))) {
        let lanes = if ty.is_vector() { ty.lanes() } else { 1 };
        return Some(RegLayout { class: RegClass::B64, count: 2 * lanes, lanes: 0 });
    }
    if matches!(ty.kind(), Some(Scalar::Int(n)) if !matches!(n, 1 | 8 | 16 | 32 | 64)) {
        return None;
    }
    let scalar = scalar_class(ty.scalar())?;
    if !ty.is_vector() || ty.lanes() == 1 {
        return one(scalar);
    }
    let lanes = ty.lanes();
    let narrow = ty.float_kind().is_some_and(FloatKind::is_narrow);
    if narrow && lanes == 2 {
        return one(RegClass::B16);
    }
    if narrow && lanes == 4 {
        return one(RegClass::B32);
    }
    if bits == 16 && lanes.is_multiple_of(2) {
        return Some(RegLayout { class: RegClass::B32, count: lanes / 2, lanes: 2 });
    }
    if ty.scalar() == Type::F32 && lanes == 2 && has_f32x2(target) {
        return one(RegClass::B64);
    }
    Some(RegLayout { class: scalar, count: lanes, lanes: 1 })
}
