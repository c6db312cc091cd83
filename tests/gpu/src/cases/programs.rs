//! Kernels that are small programs: SHA-256, the byte-code interpreter, the ray caster with structs by value.

use super::{Failure, Outcome, blocks};
use crate::compare;
use crate::device::{Gpu, Launch, Module};
use crate::random::Random;

/// Pads a message as FIPS 180-4, section 5.1.1, says.
fn pad(message: &[u8]) -> Vec<u8> {
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize((message.len() + 9).next_multiple_of(64) - 8, 0);
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    padded
}

/// The first 32 bits of the fractional parts of the square (2) or cube (3) roots of the first `count` primes, which
/// is where the constants of SHA-256 come from.
fn root_fractions(count: usize, root: u32) -> Vec<u32> {
    let is_prime = |n: u128| (2..n).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
    let fraction = |prime: u128| {
        // The largest r with r^root <= prime * 2^(32 * root), bit by bit.
        let target = prime << (32 * root);
        let mut r = 0u128;
        for bit in (0..37).rev() {
            let candidate = r | 1 << bit;
            if candidate.pow(root) <= target {
                r = candidate;
            }
        }
        r as u32
    };
    (2u128..).filter(|&n| is_prime(n)).take(count).map(fraction).collect()
}

/// The digest of a padded message.
fn digest(padded: &[u8], start: &[u32], constants: &[u32]) -> Vec<u32> {
    let mut state = start.to_vec();
    for block in padded.chunks_exact(64) {
        let mut w: Vec<u32> = block.chunks_exact(4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]])).collect();
        for t in 16..64 {
            let (x, y) = (w[t - 15], w[t - 2]);
            let s0 = x.rotate_right(7) ^ x.rotate_right(18) ^ (x >> 3);
            let s1 = y.rotate_right(17) ^ y.rotate_right(19) ^ (y >> 10);
            w.push(w[t - 16].wrapping_add(s0).wrapping_add(w[t - 7]).wrapping_add(s1));
        }
        let mut v = state.clone();
        for t in 0..64 {
            let s1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
            let choice = (v[4] & v[5]) | (!v[4] & v[6]);
            let t1 = [s1, choice, constants[t], w[t]].into_iter().fold(v[7], u32::wrapping_add);
            let s0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
            let majority = (v[0] & v[1]) | (v[2] & (v[0] | v[1]));
            v[3] = v[3].wrapping_add(t1);
            v[7] = t1.wrapping_add(s0).wrapping_add(majority);
            v.rotate_right(1);
        }
        for (sum, part) in state.iter_mut().zip(v) {
            *sum = sum.wrapping_add(part);
        }
    }
    state
}

pub fn sha256(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let (n, length) = (10_007, 150);
    let mut random = Random::new(41);
    let (start, constants) = (root_fractions(8, 2), root_fractions(64, 3));
    let mut messages = Vec::new();
    let mut want = Vec::with_capacity(32 * n);
    for _ in 0..n {
        let text: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
        let padded = pad(&text);
        want.extend(digest(&padded, &start, &constants).into_iter().flat_map(u32::to_be_bytes));
        messages.extend(padded);
    }
    let (input, output) = (gpu.upload(&messages)?, gpu.zeros::<u8>(32 * n)?);
    let per_message = messages.len() / n / 64;
    let launch =
        Launch::new("sha256", (blocks(n, 128), 1), (128, 1)).int(n).int(per_message).buffer(&input).buffer(&output);
    gpu.run(module, &launch)?;
    let agreement = compare::exact(&output.read()?, &want)?;
    let time = Some(gpu.best_time(module, &[launch], || Ok(()))?);
    Ok(Outcome { agreement, time })
}

/// The byte code of [`meaning`]: opcode and argument of each instruction.
fn byte_code() -> Vec<u32> {
    const RETURN: (u32, i32) = (0, 0);
    const DUP: (u32, i32) = (2, 0);
    const SWAP: (u32, i32) = (3, 0);
    const POP: (u32, i32) = (4, 0);
    const INPUT: (u32, i32) = (5, 0);
    let push = |value: i32| (1, value);
    let alu = |operation: &str| {
        let names = ["add", "sub", "mul", "xor", "min", "max", "shr", "and"];
        (6, names.iter().position(|name| *name == operation).map_or(0, |at| at as i32))
    };
    let if_zero = |target: i32| (7, target);
    let jump = |target: i32| (8, target);
    let call = |target: i32| (9, target);
    const LOOP: i32 = 12;
    const END: i32 = 25;
    const FIBONACCI: i32 = 33;
    #[rustfmt::skip]
    let program = [
        // 0: fibonacci((input & 7) + 4), then the counter (input >> 8) & 15.
        INPUT, push(7), alu("and"), push(4), alu("add"), call(FIBONACCI),
        INPUT, push(8), alu("shr"), push(15), alu("and"), DUP,
        // 12 (LOOP): sum, counter and a second copy of the counter, which the test takes, are on the stack.
        if_zero(END), push(1), alu("sub"), SWAP, push(1103), alu("mul"), push(12345), alu("add"), INPUT, alu("xor"),
        SWAP, DUP, jump(LOOP),
        // 25 (END).
        POP, push(3), alu("shr"), push(-5000), alu("max"), push(8_000_000), alu("min"), RETURN,
        // 33 (FIBONACCI): bit 31 of input - 2 tells whether the input is below 2.
        INPUT, push(2), alu("sub"), push(31), alu("shr"), if_zero(FIBONACCI + 8), INPUT, RETURN,
        INPUT, push(1), alu("sub"), call(FIBONACCI), INPUT, push(2), alu("sub"), call(FIBONACCI), alu("add"), RETURN,
    ];
    program.into_iter().map(|(opcode, argument)| (argument << 8) as u32 | opcode).collect()
}

/// What the program computes, said in Rust.
fn meaning(input: u32) -> u32 {
    let (mut a, mut b) = (0u32, 1u32);
    for _ in 0..(input & 7) + 4 {
        (a, b) = (b, a + b);
    }
    for _ in 0..input >> 8 & 15 {
        a = a.wrapping_mul(1103).wrapping_add(12345) ^ input;
    }
    ((a >> 3) as i32).clamp(-5000, 8_000_000) as u32
}

pub fn interpreter(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let n = 20_003;
    let inputs = Random::new(42).words(n);
    let code = gpu.upload(&byte_code())?;
    let (input, output) = (gpu.upload(&inputs)?, gpu.zeros::<u32>(n)?);
    let launch =
        Launch::new("interpret", (blocks(n, 128), 1), (128, 1)).int(n).buffer(&code).buffer(&input).buffer(&output);
    gpu.run(module, &launch)?;
    let want: Vec<u32> = inputs.iter().map(|&input| meaning(input)).collect();
    let agreement = compare::exact(&output.read()?, &want)?;
    let time = Some(gpu.best_time(module, &[launch], || Ok(()))?);
    Ok(Outcome { agreement, time })
}

type Vector = [f32; 3];

struct Sphere {
    centre: Vector,
    radius: f32,
    material: u8,
    shine: i16,
}

fn dot(a: Vector, b: Vector) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn normalize(v: Vector) -> Vector {
    let length = dot(v, v).sqrt();
    v.map(|x| x / length)
}

/// Colour and number of the sphere that a ray from the origin meets first.
fn trace(ray: Vector, spheres: &[Sphere], light: Vector, ambient: f64) -> (f32, i32) {
    let mut nearest: Option<(f32, usize)> = None;
    for (number, sphere) in spheres.iter().enumerate() {
        let along = dot(ray, sphere.centre);
        let beyond = dot(sphere.centre, sphere.centre) - sphere.radius * sphere.radius;
        let inside = along * along - beyond;
        if inside > 0.0 {
            let distance = along - inside.sqrt();
            if distance > 0.0 && nearest.is_none_or(|(best, _)| distance < best) {
                nearest = Some((distance, number));
            }
        }
    }
    let Some((distance, number)) = nearest else {
        return (0.0, -1);
    };
    let sphere = &spheres[number];
    let normal = normalize(std::array::from_fn(|axis| ray[axis] * distance - sphere.centre[axis]));
    let lit = dot(normal, light).max(0.0);
    let body = lit * f32::from(sphere.material) * f32::from(sphere.shine);
    ((f64::from(body) + ambient) as f32, number as i32)
}

pub fn structs(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let (width, height) = (505, 303);
    let light = normalize([1.0, -2.0, -1.5]);
    let ambient = 0.0625f64;
    let sphere = |centre, radius, material, shine| Sphere { centre, radius, material, shine };
    let spheres = [
        sphere([0.0, 0.0, 4.0], 1.0, 200, 3),
        sphere([1.0, 0.5, 3.0], 0.6, 90, -7),
        sphere([-1.5, -0.5, 5.0], 1.8, 255, 300),
        sphere([0.3, 0.2, -2.0], 0.5, 1, 1),
    ];
    // The layout of the C struct, written down by hand: that the kernel finds everything is part of the test.
    let mut scene = Vec::new();
    scene.extend((width as u32).to_le_bytes());
    scene.extend((height as u32).to_le_bytes());
    light.iter().for_each(|x| scene.extend(x.to_le_bytes()));
    for sphere in &spheres {
        sphere.centre.iter().for_each(|x| scene.extend(x.to_le_bytes()));
        scene.extend(sphere.radius.to_le_bytes());
        scene.extend([sphere.material, 0xEE]);
        scene.extend(sphere.shine.to_le_bytes());
    }
    scene.extend([0xEE; 4]);
    scene.extend(ambient.to_le_bytes());
    let colour = gpu.upload(&vec![f32::NAN; width * height])?;
    let hit = gpu.upload(&vec![-2i32; width * height])?;
    let launch = Launch::new("cast_rays", (blocks(width, 16), blocks(height, 16)), (16, 16))
        .bytes(&scene)
        .buffer(&colour)
        .buffer(&hit);
    gpu.run(module, &launch)?;
    let (mut want_colour, mut want_hit) = (Vec::new(), Vec::new());
    for y in 0..height {
        for x in 0..width {
            let at = |i: usize, n: usize| i as f32 / n as f32 * 2.0 - 1.0;
            let (value, number) = trace(normalize([at(x, width), at(y, height), 1.0]), &spheres, light, ambient);
            want_colour.push(value);
            want_hit.push(number);
        }
    }
    compare::exact(&hit.read()?, &want_hit).map_err(|text| format!("hit: {text}"))?;
    let agreement = compare::exact(&colour.read()?, &want_colour).map_err(|text| format!("colour: {text}"))?;
    let time = Some(gpu.best_time(module, &[launch], || Ok(()))?);
    Ok(Outcome { agreement, time })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_abc() {
        let got = digest(&pad(b"abc"), &root_fractions(8, 2), &root_fractions(64, 3));
        let want = [0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223, 0xb00361a3, 0x96177a9c, 0xb410ff61, 0xf20015ad];
        assert_eq!(got, want);
    }

    /// A plain machine for the byte code, so that a wrong program is not blamed on the kernel.
    fn execute(code: &[u32], mut pc: usize, input: u32) -> u32 {
        let mut stack = Vec::new();
        loop {
            let (opcode, argument) = (code[pc] & 255, code[pc] as i32 >> 8);
            pc += 1;
            match opcode {
                0 => return stack.pop().unwrap(),
                1 => stack.push(argument as u32),
                2 => stack.push(*stack.last().unwrap()),
                3 => {
                    let top = stack.len() - 1;
                    stack.swap(top, top - 1);
                }
                4 => drop(stack.pop()),
                5 => stack.push(input),
                6 => {
                    let (b, a) = (stack.pop().unwrap(), stack.pop().unwrap());
                    stack.push(match argument {
                        0 => a.wrapping_add(b),
                        1 => a.wrapping_sub(b),
                        2 => a.wrapping_mul(b),
                        3 => a ^ b,
                        4 => (a as i32).min(b as i32) as u32,
                        5 => (a as i32).max(b as i32) as u32,
                        6 => a >> (b & 31),
                        _ => a & b,
                    });
                }
                7 if stack.pop().unwrap() == 0 => pc = argument as usize,
                7 => {}
                8 => pc = argument as usize,
                9 => {
                    let callee_input = stack.pop().unwrap();
                    stack.push(execute(code, argument as usize, callee_input));
                }
                _ => panic!("opcode {opcode}"),
            }
        }
    }

    #[test]
    fn the_byte_code_means_what_it_should() {
        let code = byte_code();
        let mut random = Random::new(7);
        for input in (0..64).chain((0..1000).map(|_| random.word())) {
            assert_eq!(execute(&code, 0, input), meaning(input), "input {input:#x}");
        }
    }
}
