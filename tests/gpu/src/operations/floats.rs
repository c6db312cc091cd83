//! Float operations, with their meanings in software arithmetic.

use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use rustc_apfloat::{Category, Float, FloatConvert, Round};

use super::{Operation, Type};

/// Applies a function generic in the float type to a [`Type`].
macro_rules! for_type {
    ($ty:expr, $function:ident($($argument:expr),*)) => {
        match $ty {
            Type::F16 => $function::<Half>($($argument),*),
            Type::Bf16 => $function::<BFloat>($($argument),*),
            Type::F32 => $function::<Single>($($argument),*),
            Type::F64 | Type::Int(_) => $function::<Double>($($argument),*),
        }
    };
}
pub(super) use for_type;

/// The rounding modes as the IR spells them; nearest is not spelled.
pub const ROUNDINGS: [(&str, Round); 4] = [
    ("", Round::NearestTiesToEven),
    ("rz ", Round::TowardZero),
    ("rm ", Round::TowardNegative),
    ("rp ", Round::TowardPositive),
];

/// All float operations for a type.
pub fn operations(ty: Type) -> Vec<Operation> {
    let mut list = for_type!(ty, exact_operations(ty));
    list.extend(comparisons(ty));
    list
}

/// An operation on up to three floats.
type Function<F> = fn(F, F, F) -> F;
/// An operation on two floats that rounds.
type Rounded<F> = fn(F, F, Round) -> F;

fn exact_operations<F: Float + FloatConvert<Double> + 'static>(ty: Type) -> Vec<Operation>
where
    Double: FloatConvert<F>,
{
    let name = ty.name();
    let operation = |count: usize, text: String, meaning: Box<dyn Fn(F, F, F) -> F>| {
        Operation::new(&[ty; 3][..count], ty, text, move |x, y, z| {
            Some(meaning(F::from_bits(x), F::from_bits(y), F::from_bits(z)).to_bits())
        })
    };
    let mut list = Vec::new();
    for (mode, round) in ROUNDINGS {
        // Directed rounding exists where PTX has it.
        if !mode.is_empty() && !matches!(ty, Type::F32 | Type::F64) {
            continue;
        }
        let binary: [(&str, Rounded<F>); 4] = [
            ("fadd", |x, y, round| x.add_r(y, round).value),
            ("fsub", |x, y, round| x.sub_r(y, round).value),
            ("fmul", |x, y, round| x.mul_r(y, round).value),
            ("fdiv", |x, y, round| x.div_r(y, round).value),
        ];
        for (op, meaning) in binary {
            let text = format!("%r = {op} {mode}{name} %x, %y");
            list.push(operation(2, text, Box::new(move |x, y, _| meaning(x, y, round))));
        }
        let text = format!("%r = fma {mode}{name} %x, %y, %z");
        list.push(operation(3, text, Box::new(move |x, y, z| x.mul_add_r(y, z, round).value)));
    }
    let unary: [(&str, Function<F>); 10] = [
        ("fneg", |x, _, _| -x),
        ("fabs", |x, _, _| x.abs()),
        ("fsqrt", |x, _, _| square_root(x)),
        ("frcp", |x, _, _| F::from_u128(1).value.div_r(x, Round::NearestTiesToEven).value),
        ("ffloor", |x, _, _| x.round_to_integral(Round::TowardNegative).value),
        ("fceil", |x, _, _| x.round_to_integral(Round::TowardPositive).value),
        ("ftrunc", |x, _, _| x.round_to_integral(Round::TowardZero).value),
        ("frint", |x, _, _| x.round_to_integral(Round::NearestTiesToEven).value),
        ("fround", |x, _, _| x.round_to_integral(Round::NearestTiesToAway).value),
        ("freeze", |x, _, _| x),
    ];
    for (op, meaning) in unary {
        list.push(operation(1, format!("%r = {op} {name} %x"), Box::new(meaning)));
    }
    let binary: [(&str, Function<F>); 6] = [
        ("fmin", |x, y, _| number_choice(x, y, true)),
        ("fmax", |x, y, _| number_choice(x, y, false)),
        ("fminimum", |x, y, _| if x.is_nan() || y.is_nan() { F::NAN } else { number_choice(x, y, true) }),
        ("fmaximum", |x, y, _| if x.is_nan() || y.is_nan() { F::NAN } else { number_choice(x, y, false) }),
        ("copysign", |x, y, _| x.copy_sign(y)),
        ("frem", |x, y, _| x.c_fmod(y).value),
    ];
    for (op, meaning) in binary {
        list.push(operation(2, format!("%r = {op} {name} %x, %y"), Box::new(meaning)));
    }
    list
}

/// The smaller (or larger) operand; -0 is below +0 and a NaN loses.
fn number_choice<F: Float>(x: F, y: F, smaller: bool) -> F {
    if x.is_nan() {
        return y;
    }
    if y.is_nan() {
        return x;
    }
    let x_is_less = if x.is_zero() && y.is_zero() { x.is_negative() } else { x < y };
    if x_is_less == smaller { x } else { y }
}

/// The correctly rounded square root: that of the processor in double precision, which has more than twice the digits
/// of the narrower types, so that rounding twice is harmless.
fn square_root<F: Float + FloatConvert<Double>>(x: F) -> F
where
    Double: FloatConvert<F>,
{
    let mut inexact = false;
    let wide: Double = x.convert(&mut inexact).value;
    let root = f64::from_bits(wide.to_bits() as u64).sqrt();
    Double::from_bits(root.to_bits().into()).convert(&mut inexact).value
}

/// The order of two floats: less, equal, greater, or a NaN among them.
fn compare<F: Float>(x: u128, y: u128) -> Option<std::cmp::Ordering> {
    F::from_bits(x).partial_cmp(&F::from_bits(y))
}

/// The class bits that `fclass` tests.
fn class<F: Float>(x: u128) -> u128 {
    let x = F::from_bits(x);
    let bit = match (x.category(), x.is_negative()) {
        (Category::NaN, _) => u32::from(!x.is_signaling()),
        (Category::Infinity, true) => 2,
        (Category::Normal, true) => 3 + u32::from(x.is_denormal()),
        (Category::Zero, true) => 5,
        (Category::Zero, false) => 6,
        (Category::Normal, false) => 8 - u32::from(x.is_denormal()),
        (Category::Infinity, false) => 9,
    };
    1 << bit
}

fn comparisons(ty: Type) -> Vec<Operation> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let name = ty.name();
    // The code and for which of less, equal, greater, unordered it is true.
    let codes: [(&str, [bool; 4]); 14] = [
        ("oeq", [false, true, false, false]),
        ("one", [true, false, true, false]),
        ("olt", [true, false, false, false]),
        ("ole", [true, true, false, false]),
        ("ogt", [false, false, true, false]),
        ("oge", [false, true, true, false]),
        ("ord", [true, true, true, false]),
        ("uno", [false, false, false, true]),
        ("ueq", [false, true, false, true]),
        ("une", [true, false, true, true]),
        ("ult", [true, false, false, true]),
        ("ule", [true, true, false, true]),
        ("ugt", [false, false, true, true]),
        ("uge", [false, true, true, true]),
    ];
    let mut list = Vec::new();
    for (code, [less, equal, greater, unordered]) in codes {
        list.push(Operation::new(
            &[ty, ty],
            Type::Int(1),
            format!("%r = fcmp {code} {name} %x, %y"),
            move |x, y, _| {
                let holds = match for_type!(ty, compare(x, y)) {
                    Some(Less) => less,
                    Some(Equal) => equal,
                    Some(Greater) => greater,
                    None => unordered,
                };
                Some(u128::from(holds))
            },
        ));
    }
    // The classes that PTX has a test for, the zeros, and some that need arithmetic.
    for mask in [0x1F8u128, 0x204, 0x3FC, 0x003, 0x168, 0x090, 0x060, 0x108, 0x3C0, 0x001, 0x235] {
        list.push(Operation::new(&[ty], Type::Int(1), format!("%r = fclass {name} %x, {mask}"), move |x, _, _| {
            Some(u128::from(for_type!(ty, class(x)) & mask != 0))
        }));
    }
    list
}
