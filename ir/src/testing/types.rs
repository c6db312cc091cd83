//! Types to try.

use crate::opcode::{Opcode, Shape, TypeSet};
use crate::types::{FloatKind, Space, Type};
use crate::verifier::in_set;

/// Every scalar type worth trying: all floats, all pointers, and integers of every container and around.
pub fn scalar_types() -> Vec<Type> {
    let ints = [1, 3, 7, 8, 9, 16, 17, 24, 32, 33, 48, 63, 64, 65, 96, 127, 128].into_iter().map(Type::int);
    let floats = FloatKind::ALL.into_iter().map(Type::float);
    ints.chain(floats).chain(Space::ALL.into_iter().map(Type::ptr)).collect()
}

/// Scalars and vectors of few lanes.
pub(super) fn all_types() -> Vec<Type> {
    let scalars = scalar_types();
    let mut out = scalars.clone();
    for lanes in [1, 2, 3, 4, 5, 8, 16] {
        out.extend(scalars.iter().map(|ty| ty.with_lanes(lanes)));
    }
    out
}

/// The types among [`scalar_types`] and vectors of 1 to 16 lanes of them that an opcode may be written with.
pub fn controlling_types(op: Opcode) -> Vec<Type> {
    let set = op.info().types;
    if set == TypeSet::None {
        return vec![Type::INVALID];
    }
    let fits = |ty: &Type| {
        in_set(set, *ty)
            && match op.shape() {
                Shape::Switch => !ty.is_vector(),
                Shape::Shuffle4 => ty.scalar_bits() <= 64,
                Shape::MatchAny | Shape::MatchAll => ty.scalar_bits() <= 64 && !ty.is_vector(),
                Shape::Cmpxchg => !ty.is_vector() && !ty.is_float(),
                _ => true,
            }
    };
    all_types().into_iter().filter(fits).collect()
}
