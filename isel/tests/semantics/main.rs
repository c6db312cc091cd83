//! Legalization keeps the meaning of every operation: each is run on edge cases and random numbers before and after, on
//! types that are legal and types that are not, for targets that have it and targets that do not.

mod cases;
mod floats;
mod integers;
mod machine;

use machine::{BASE, Lanes, Machine};
use ptxc_ir::{FuncId, Module, Scalar, Type, has_errors, print_module, read_module, verify_module};
use ptxc_targets::Target;

/// A generator of numbers, the same in every run.
pub struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    /// A number that is likely to be at an edge of its type.
    fn scalar(&mut self, ty: Type) -> u128 {
        let width = ty.scalar_bits();
        let mask = integers::mask(width);
        if let Some(kind) = ty.float_kind() {
            let exponent = match kind {
                ptxc_ir::FloatKind::F16 => 5,
                ptxc_ir::FloatKind::F64 => 11,
                ptxc_ir::FloatKind::E4m3 => 4,
                ptxc_ir::FloatKind::E5m2 => 5,
                _ => 8,
            };
            let fraction = width - 1 - exponent;
            let sign = u128::from(self.next() & 1) << (width - 1);
            let magnitude = match self.next() % 10 {
                0 => 0,
                1 => u128::from(self.next() % 4),
                2 => integers::mask(exponent) << fraction,
                3 => integers::mask(exponent) << fraction | 1 << (fraction - 1),
                4 | 5 => {
                    (integers::mask(exponent - 1) + u128::from(self.next() % 8)) << fraction
                        | self.wide()
                            & integers::mask(fraction)
                            & (integers::mask(fraction) << (self.next() % u64::from(fraction)))
                }
                6 => (self.wide() & integers::mask(exponent)) << fraction,
                7 => (1 << fraction) - 2 + u128::from(self.next() % 4),
                _ => self.wide(),
            };
            return sign | magnitude & integers::mask(width - 1);
        }
        let near = u128::from(self.next() % 5);
        let value = match self.next() % 9 {
            0 => near,
            1 => mask.wrapping_sub(near),
            2 => (mask >> 1).wrapping_sub(near).wrapping_add(2),
            3 => 1u128.wrapping_shl(self.next() as u32 % width),
            4 => u128::from(self.next()) % u128::from(width),
            5 => self.wide() >> (self.next() % 120),
            6 => (self.wide() | u128::MAX << 40).rotate_left(self.next() as u32 % 128),
            _ => self.wide(),
        };
        value & mask
    }

    fn lanes(&mut self, ty: Type) -> Lanes {
        (0..ty.lanes()).map(|_| Some(self.scalar(ty.scalar()))).collect()
    }
}

/// A value as the legal signature passes it; bits that the type does not say are noise.
fn pass(numbers: &mut Numbers, lanes: &Lanes, ty: Type, to: Type) -> Lanes {
    if ty == to {
        return lanes.clone();
    }
    let (n, m) = (ty.scalar_bits(), to.scalar_bits());
    if ty.is_vector() && n == 1 {
        let per = m as usize;
        return lanes
            .chunks(per)
            .map(|bits| Some(bits.iter().enumerate().fold(0, |acc, (i, bit)| acc | bit.unwrap_or(0) << i)))
            .collect();
    }
    lanes.iter().map(|lane| Some(lane.unwrap_or(0) | (numbers.wide() << n) & integers::mask(m))).collect()
}

/// A result of the legal signature as a value of the type.
fn receive(lanes: &Lanes, ty: Type, from: Type) -> Lanes {
    if ty == from {
        return lanes.clone();
    }
    if ty.is_vector() && ty.scalar_bits() == 1 {
        let per = from.scalar_bits() as usize;
        return (0..ty.lanes() as usize).map(|i| lanes[i / per].map(|word| word >> (i % per) & 1)).collect();
    }
    lanes.iter().map(|lane| lane.map(|l| l & integers::mask(ty.scalar_bits()))).collect()
}

fn agree(ty: Type, before: &Lanes, after: &Lanes) -> bool {
    before.len() == after.len()
        && before.iter().zip(after).all(|(b, a)| match (b, a) {
            (None, _) => true,
            (Some(b), Some(a)) => b == a || (machine::is_nan(ty, *b) && machine::is_nan(ty, *a)),
            (Some(_), None) => false,
        })
}

/// A module with the function `f`, to be compared on `rounds` inputs.
pub fn compare(text: &str, target: Target, rounds: u32) {
    let before = read_module(text).unwrap_or_else(|e| panic!("{}\n{text}", e[0].with_position(text)));
    let errors = verify_module(&before);
    assert!(!has_errors(&errors), "{errors:?}\n{text}");
    let mut after = before.clone();
    if let Err(errors) = ptxc_isel::legalize(&mut after, target, None) {
        panic!("{target}: {}\n{text}", errors[0]);
    }
    let printed = print_module(&after);
    let errors = verify_module(&after);
    assert!(!has_errors(&errors), "{target}: {errors:?}\n{text}\n{printed}");
    check_legal(&after, &printed);
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15 ^ text.len() as u64);
    for _ in 0..rounds {
        if let Err(message) = compare_once(&before, &after, &mut numbers) {
            panic!("{target}: {message}\n{text}\n{printed}");
        }
    }
}

fn compare_once(before: &Module, after: &Module, numbers: &mut Numbers) -> Result<(), String> {
    let Some(ptxc_ir::Symbol::Func(id)) = before.symbol("f") else { return Err("no function f".into()) };
    let types = |module: &Module, id: FuncId| {
        let sig = &module.funcs[id].sig;
        (module.sig_params(sig), module.sig_results(sig))
    };
    let ((params, results), (legal_params, legal_results)) = (types(before, id), types(after, id));
    let memory: Vec<u8> = (0..256).map(|_| numbers.next() as u8).collect();
    let mut args = Vec::new();
    for ty in &params {
        let pointer = ty.is_ptr();
        args.push(if pointer { vec![Some(u128::from(BASE + 64))] } else { numbers.lanes(*ty) });
    }
    let passed: Vec<Lanes> =
        args.iter().zip(params.iter().zip(&legal_params)).map(|(v, (a, b))| pass(numbers, v, *a, *b)).collect();
    let mut first = Machine::new(before, memory.clone(), false);
    // Undefined behaviour in the original (division by zero) leaves nothing to compare.
    let Ok(expected) = first.call(id, args.clone()) else { return Ok(()) };
    let mut second = Machine::new(after, memory, true);
    let found = second.call(id, passed).map_err(|e| format!("{e} on {args:x?}"))?;
    for (index, ty) in results.iter().enumerate() {
        let found = receive(&found[index], *ty, legal_results[index]);
        if !agree(*ty, &expected[index], &found) {
            return Err(format!("result {index} of {args:x?} is {found:x?}, expected {:x?}", expected[index]));
        }
    }
    if first.memory != second.memory && !same_nan(&params, &first.memory, &second.memory) {
        let at = first.memory.iter().zip(&second.memory).position(|(a, b)| a != b);
        return Err(format!("memory differs at {at:?} after {args:x?}"));
    }
    Ok(())
}

/// Whether the objects that the atomic tests change differ only in which NaN they hold.
fn same_nan(params: &[Type], first: &[u8], second: &[u8]) -> bool {
    let Some(ty) = params.last().filter(|ty| ty.is_float_like()) else { return false };
    let size = ty.scalar().size() as usize;
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0u128, |acc, b| acc << 8 | u128::from(*b));
    first
        .chunks(size)
        .zip(second.chunks(size))
        .all(|(a, b)| a == b || (machine::is_nan(*ty, number(a)) && machine::is_nan(*ty, number(b))))
}

/// Section 1 of `LEGAL.md`: no value has a type that registers cannot hold.
fn check_legal(module: &Module, printed: &str) {
    for func in module.funcs.values() {
        for block in func.layout.blocks() {
            for inst in func.layout.insts(block) {
                for value in func.dfg.results(inst).chain(func.dfg.args(inst).iter().copied()) {
                    let ty = func.dfg.ty(value);
                    let odd = matches!(ty.kind(), Some(Scalar::Int(n)) if !matches!(n, 1 | 8 | 16 | 32 | 64 | 128));
                    assert!(!odd, "{value} of type {ty} is not legal\n{printed}");
                }
            }
        }
    }
}

/// Oldest, and one for each step of capability.
pub fn targets() -> Vec<Target> {
    ["sm_52", "sm_75", "sm_80", "sm_90", "sm_100a"].iter().map(|name| name.parse().expect("a target")).collect()
}
