//! Values of one type made from the memory image of another.
//!
//! The memory image of a value is an integer of eight bits per byte it takes in memory, first byte lowest. This is what
//! storing one type and loading another does, without the memory.

use ptxc_ir::{Extra, Flags, FunctionBuilder, Opcode, Scalar, Space, Type, Value};

/// Largest value with an image, in bytes.
const MAX_IMAGE: u64 = 16;

/// True when values of the type can be turned into their image and back.
pub fn has_image(ty: Type) -> bool {
    let whole_bytes = ty.scalar_bits().is_multiple_of(8) && u64::from(ty.scalar_bits()) == ty.scalar().size() * 8;
    let lanes_fit = match ty.kind() {
        Some(Scalar::Ptr(Space::Tensor)) | None => false,
        Some(Scalar::Ptr(_)) => !ty.is_vector(),
        Some(Scalar::Int(bits)) => !ty.is_vector() || whole_bytes || bits == 1,
        Some(Scalar::Float(_)) => true,
    };
    lanes_fit && ty.size() <= MAX_IMAGE
}

/// The image's type.
fn image_type(ty: Type) -> Type {
    Type::int(ty.size() as u32 * 8)
}

/// A value's image. The type must have one ([`has_image`]).
pub fn image(b: &mut FunctionBuilder<'_>, value: Value) -> Value {
    let ty = b.ty(value);
    let whole = image_type(ty);
    if ty == whole {
        return value;
    }
    if ty.is_ptr() {
        return b.convert(Opcode::Ptrtoint, value, whole);
    }
    let bits = Type::int(ty.bits());
    let plain = if ty == bits { value } else { b.convert(Opcode::Bitcast, value, bits) };
    if bits == whole { plain } else { b.convert(Opcode::Zext, plain, whole) }
}

/// The value of type `ty` whose image this is.
pub fn from_image(b: &mut FunctionBuilder<'_>, image: Value, ty: Type) -> Value {
    let whole = b.ty(image);
    if ty == whole {
        return image;
    }
    if ty.is_ptr() {
        return b.convert(Opcode::Inttoptr, image, ty);
    }
    let bits = Type::int(ty.bits());
    let plain = if bits == whole { image } else { b.convert(Opcode::Trunc, image, bits) };
    if ty == bits { plain } else { b.convert(Opcode::Bitcast, plain, ty) }
}

/// A value as another type of the same size in memory. Types that differ must both have images.
pub fn reinterpret(b: &mut FunctionBuilder<'_>, value: Value, ty: Type) -> Value {
    let from = b.ty(value);
    if from == ty {
        return value;
    }
    if from.bits() == ty.bits() && !from.is_ptr_like() && !ty.is_ptr_like() {
        return b.convert(Opcode::Bitcast, value, ty);
    }
    let image = image(b, value);
    from_image(b, image, ty)
}

/// True when values of the type can be made of copies of one byte.
pub fn is_fillable(ty: Type) -> bool {
    has_image(if ty.is_vector() && ty.scalar_bits() != 1 { ty.scalar() } else { ty })
}

/// The value of type `ty` whose every byte is `byte`. The type must be fillable ([`is_fillable`]).
pub fn filled(b: &mut FunctionBuilder<'_>, byte: Value, ty: Type) -> Value {
    if b.func.dfg.as_bits(byte) == Some(0) {
        return b.bits(ty, 0);
    }
    if ty.is_vector() && ty.scalar_bits() != 1 {
        let lane = filled(b, byte, ty.scalar());
        let splat = b.inst(Opcode::Splat, Flags::EMPTY, ty, &[lane], Extra::None);
        return b.func.dfg.result(splat, 0);
    }
    let whole = image_type(ty);
    const ONES: u128 = u128::from_le_bytes([1; 16]);
    let image = match b.func.dfg.as_bits(byte) {
        Some(byte) => b.bits(whole, (byte & 0xff) * ONES),
        None if whole == Type::I8 => byte,
        None => {
            let wide = b.convert(Opcode::Zext, byte, whole);
            let ones = b.bits(whole, ONES);
            b.binary(Opcode::Mul, wide, ones)
        }
    };
    from_image(b, image, ty)
}
