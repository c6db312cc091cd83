//! Atomics of every kind and width, and accesses with little alignment.

use super::floats::for_type;
use super::integers::signed;
use super::{Operation, Type};
use rustc_apfloat::Float;
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};

/// The new value, before it is cut to the width, from the width, the old value and the operand.
type Update = fn(u32, u128, u128) -> u128;

/// Atomic operations on integers.
const INTEGER_UPDATES: [(&str, Update); 13] = [
    ("xchg", |_, _, y| y),
    ("add", |_, x, y| x.wrapping_add(y)),
    ("sub", |_, x, y| x.wrapping_sub(y)),
    ("and", |_, x, y| x & y),
    ("nand", |_, x, y| !(x & y)),
    ("or", |_, x, y| x | y),
    ("xor", |_, x, y| x ^ y),
    ("smin", |bits, x, y| if signed(bits, x) < signed(bits, y) { x } else { y }),
    ("smax", |bits, x, y| if signed(bits, x) > signed(bits, y) { x } else { y }),
    ("umin", |_, x, y| x.min(y)),
    ("umax", |_, x, y| x.max(y)),
    ("uinc_wrap", |_, x, y| if x >= y { 0 } else { x + 1 }),
    ("udec_wrap", |_, x, y| if x == 0 || x > y { y } else { x - 1 }),
];

/// The sum and difference, the smaller and the larger number.
fn float_update<F: Float>(op: &str, x: u128, y: u128) -> u128 {
    let (a, b) = (F::from_bits(x), F::from_bits(y));
    match op {
        "fadd" => (a + b).value.to_bits(),
        "fsub" => (a - b).value.to_bits(),
        "fmin" => if b < a || a.is_nan() { b } else { a }.to_bits(),
        _ => if b > a || a.is_nan() { b } else { a }.to_bits(),
    }
}

/// `atomicrmw` and `cmpxchg`. Every thread has an element of its own, but elements narrower than a word have
/// neighbours in it that other threads change at the same time.
pub fn atomics() -> Vec<Operation> {
    let mut list = Vec::new();
    for bits in [8, 16, 32, 64] {
        let ty = Type::Int(bits);
        for (op, meaning) in INTEGER_UPDATES {
            let text = format!("%r = atomicrmw {op} i{bits} %at, %y, relaxed, scope(gpu)");
            list.push(Operation::update(&[ty, ty], text, move |x, y, _| Some([x, meaning(bits, x, y) & ty.mask()])));
        }
        let text = format!("%r, %ok = cmpxchg i{bits} %at, %y, %z, acq_rel, acquire, scope(gpu)");
        list.push(Operation::update(&[ty, ty, ty], text, |x, y, z| Some([x, if x == y { z } else { x }])));
    }
    for ty in [Type::F16, Type::Bf16, Type::F32, Type::F64] {
        for op in ["fadd", "fsub", "fmin", "fmax"] {
            let text = format!("%r = atomicrmw {op} {} %at, %y, relaxed, scope(gpu)", ty.name());
            list.push(Operation::update(&[ty, ty], text, move |x, y, _| {
                // Which zero is smaller is not promised here, and hardware additions may flush subnormal numbers.
                let magnitude = ty.mask() >> 1;
                let (_, fraction) = ty.layout();
                let small = |bits: u128| bits & magnitude < 1 << fraction && bits & magnitude != 0;
                let zeros = x & magnitude == 0 && y & magnitude == 0;
                let result = for_type!(ty, float_update(op, x, y));
                (!zeros && ![x, y, result].into_iter().any(small)).then_some([x, result])
            }));
        }
    }
    list
}

/// Loads and stores at odd addresses: the value is stored one byte into a slot of its own, taken back byte by byte and
/// the other way round.
pub fn accesses() -> Vec<Operation> {
    let mut list = Vec::new();
    let types = [16, 24, 32, 48, 64, 96, 128].map(Type::Int);
    for ty in types.into_iter().chain([Type::F16, Type::F32, Type::F64]) {
        let name = ty.name();
        for align in [1, 2, 4] {
            let offset = if align == 1 { 3 } else { align };
            if align >= ty.bytes() {
                continue;
            }
            let text = format!(
                "%slot = alloca [64 x i8], align 16\n%odd = gep i8, %slot, {offset}\nstore {name} %x, %odd, align {align}\n\
                 %r = load {name}, %odd, align {align}"
            );
            list.push(Operation::new(&[ty], ty, text, |x, _, _| Some(x)));
            let text = format!(
                "%slot = alloca [64 x i8], align 16\n%odd = gep i8, %slot, {offset}\n%even = gep i8, %slot, 32\n\
                 store {name} %x, %even\nmemcpy %odd, %even, {size}, align {align}, align 16\n\
                 %r = load {name}, %odd, align {align}",
                size = ty.bytes()
            );
            list.push(Operation::new(&[ty], ty, text, |x, _, _| Some(x)));
        }
    }
    let text = "%slot = alloca [64 x i8], align 16\n%byte = trunc i32 %x to i8\nmemset %slot, %byte, 64, align 16\n\
                %some = gep i8, %slot, 17\n%r = load i32, %some, align 1";
    list.push(Operation::new(&[Type::Int(32)], Type::Int(32), text, |x, _, _| Some((x & 255) * 0x0101_0101)));
    let text = "%slot = alloca [64 x i8], align 16\nstore i64 %x, %slot\n%next = gep i8, %slot, 3\n\
                memmove %next, %slot, 8, align 1, align 8\n%r = load i64, %next, align 1";
    list.push(Operation::new(&[Type::Int(64)], Type::Int(64), text, |x, _, _| Some(x)));
    list
}
