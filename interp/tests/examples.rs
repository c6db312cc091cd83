//! The example kernels against references on the host: as they are written, after every pass, and made legal.

use cranelift_entity::PrimaryMap;
use ptxc_interp::ir::run;
use ptxc_interp::launch::{Argument, Buffer, Launch, Options};
use ptxc_ir::{FuncAttrs, FuncId, Module};

fn read(text: &str) -> Module {
    match ptxc_ir::read_module(text) {
        Ok(module) => module,
        Err(errors) => panic!("{:?}", errors.iter().map(|e| e.with_position(text)).collect::<Vec<_>>()),
    }
}

fn optimized(mut module: Module) -> Module {
    for _ in 0..2 {
        for pass in ptxc_opt::PASSES {
            let mut funcs = std::mem::take(&mut module.funcs);
            let attrs: PrimaryMap<FuncId, FuncAttrs> = funcs.values().map(|f| f.attrs.clone()).collect();
            let context = ptxc_opt::Context { module: &module, attrs: &attrs };
            for func in funcs.values_mut().filter(|f| !f.is_declaration()) {
                (pass.run)(func, &context);
            }
            module.funcs = funcs;
        }
    }
    module
}

fn legal(mut module: Module) -> Module {
    let target: ptxc_targets::Target = "sm_90".parse().expect("a target");
    if let Err(errors) = ptxc_isel::legalize(&mut module, target) {
        panic!("{}", errors.first().map(|e| format!("{e:?}")).unwrap_or_default());
    }
    module
}

/// The three forms of an example.
fn forms(text: &str) -> [(&'static str, Module); 3] {
    let module = read(text);
    [("written", module.clone()), ("optimized", optimized(module.clone())), ("legal", legal(optimized(module)))]
}

/// Runs launches after one another on the same buffers, in each form; `check` judges the buffers.
fn check(text: &str, launches: &[Launch], buffers: &[Buffer], check: impl Fn(&str, &[Buffer])) {
    for (form, module) in forms(text) {
        let mut buffers = buffers.to_vec();
        for launch in launches {
            match run(&module, launch, &mut buffers, &Options::default()) {
                Ok(outcome) => assert!(outcome.warnings.is_empty(), "{form}: {:?}", outcome.warnings),
                Err(failure) => panic!("{form}: {failure}"),
            }
        }
        check(form, &buffers);
    }
}

fn grid(kernel: &str, grid: [u32; 3], block: [u32; 3], arguments: Vec<Argument>) -> Launch {
    Launch { grid, block, ..Launch::linear(kernel, 1, 1, arguments) }
}

/// Numbers that look random.
fn hash(i: u32) -> u32 {
    let x = i.wrapping_mul(0x9e37_79b9) ^ 0x85eb_ca6b;
    (x ^ (x >> 15)).wrapping_mul(0x2c1b_3c6d) ^ (x >> 7)
}

fn quads(buffer: &Buffer) -> Vec<u64> {
    buffer.bytes.chunks_exact(8).map(|c| c.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))).collect()
}

fn longs(name: &str, values: impl IntoIterator<Item = u64>) -> Buffer {
    Buffer::new(name, values.into_iter().flat_map(u64::to_le_bytes).collect())
}

#[test]
fn saxpy() {
    let n = 300u32;
    let (x, y) = (|i: u32| i as f32 * 0.37, |i: u32| 5.0 - i as f32);
    let bits = |f: &dyn Fn(u32) -> f32| (0..n).map(|i| f(i).to_bits()).collect::<Vec<u32>>();
    let buffers = [Buffer::words("x", bits(&x)), Buffer::words("y", bits(&y))];
    let arguments = vec![Argument::i32(n as i32), Argument::f32(1.7), Argument::buffer(0), Argument::buffer(1)];
    let launch = Launch::linear("saxpy", 2, 256, arguments);
    check(include_str!("../../examples/saxpy.ir"), &[launch], &buffers, |form, buffers| {
        assert_eq!(buffers[1].to_words(), bits(&|i| 1.7 * x(i) + y(i)), "{form}");
    });
}

#[test]
fn scan_and_histogram() {
    let n = 3000u32;
    let buffers = [
        Buffer::words("x", (0..n).map(hash)),
        Buffer::output("y", n as usize * 4),
        Buffer::words("status", vec![0; 6]),
        Buffer::words("ticket", [0]),
    ];
    let mut arguments = vec![Argument::i32(n as i32)];
    arguments.extend((0..4).map(Argument::buffer));
    let launch = Launch::linear("inclusive_scan", 3, 256, arguments);
    check(include_str!("../../examples/scan.ir"), &[launch], &buffers, |form, buffers| {
        let sums = (0..n).scan(0u32, |sum, i| {
            *sum = sum.wrapping_add(hash(i));
            Some(*sum)
        });
        assert_eq!(buffers[1].to_words(), sums.collect::<Vec<_>>(), "{form}");
    });

    let bytes: Vec<u8> = (0..2051).map(|i| hash(i) as u8).collect();
    let mut want = vec![0u32; 256];
    bytes.iter().for_each(|b| want[usize::from(*b)] += 1);
    let arguments = vec![Argument::i32(bytes.len() as i32), Argument::buffer(0), Argument::buffer(1)];
    let buffers = [Buffer::new("data", bytes), Buffer::words("bins", vec![0; 256])];
    let launch = Launch::linear("histogram", 2, 256, arguments);
    check(include_str!("../../examples/histogram.ir"), &[launch], &buffers, |form, buffers| {
        assert_eq!(buffers[1].to_words(), want, "{form}");
    });
}

#[test]
fn transpose() {
    let (width, height) = (45u32, 70u32);
    let buffers =
        [Buffer::words("in", (0..width * height).map(hash)), Buffer::output("out", (width * height * 4) as usize)];
    let sizes = [Argument::i32(width as i32), Argument::i32(height as i32)];
    let arguments = sizes.into_iter().chain([Argument::buffer(0), Argument::buffer(1)]).collect();
    let launch = grid("transpose", [2, 3, 1], [32, 8, 1], arguments);
    check(include_str!("../../examples/transpose.ir"), &[launch], &buffers, |form, buffers| {
        let want: Vec<u32> = (0..width * height).map(|i| hash(i % height * width + i / height)).collect();
        assert_eq!(buffers[1].to_words(), want, "{form}");
    });
}

#[test]
fn mandelbrot() {
    let (width, height, limit) = (40u32, 10u32, 60);
    let (left, top, step) = (-2.0f32, -1.0f32, 0.07f32);
    let arguments = vec![
        Argument::i32(width as i32),
        Argument::i32(height as i32),
        Argument::f32(left),
        Argument::f32(top),
        Argument::f32(step),
        Argument::i32(limit),
        Argument::buffer(0),
    ];
    let launch = grid("mandelbrot", [2, 2, 1], [32, 8, 1], arguments);
    let buffers = [Buffer::output("out", (width * height * 4) as usize)];
    let first = std::cell::RefCell::new(Vec::new());
    check(include_str!("../../examples/mandelbrot.ir"), &[launch], &buffers, |form, buffers| {
        let words = buffers[0].to_words();
        // The point (-2, -1 + 14 * 0.07) is near the set's tip; far points leave at once.
        assert!(words.contains(&(limit as u32)) && words.iter().any(|w| *w < 4), "{form}");
        let mut first = first.borrow_mut();
        if first.is_empty() {
            *first = words;
        } else {
            assert_eq!(*first, words, "{form}");
        }
    });
}

#[test]
fn mod_power() {
    let n = 70u32;
    let modulus = 0xffff_ffff_ffff_ffc5u64;
    let m = u128::from(modulus);
    let mut inverse = 1u64;
    for _ in 0..6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(modulus.wrapping_mul(inverse)));
    }
    let r = (1u128 << 64) % m;
    let base = |i: u32| u64::from(hash(i)) << 20 | u64::from(hash(i + 7)) >> 12;
    let exponent = |i: u32| u64::from(hash(i + 100)) >> (i % 30);
    let number = |x: u64| Argument::i64(x as i64);
    let mut arguments =
        vec![Argument::i32(n as i32), number(modulus), number(inverse.wrapping_neg()), number((r * r % m) as u64)];
    arguments.extend((0..3).map(Argument::buffer));
    let buffers = [
        longs("base", (0..n).map(base)),
        longs("exponent", (0..n).map(exponent)),
        Buffer::output("result", n as usize * 8),
    ];
    let launch = Launch::linear("mod_power", 1, 256, arguments);
    check(include_str!("../../examples/mod_power.ir"), &[launch], &buffers, |form, buffers| {
        let power = |i: u32| {
            let (mut result, mut square, mut e) = (1u128, u128::from(base(i)), exponent(i));
            while e != 0 {
                if e & 1 != 0 {
                    result = result * square % m;
                }
                square = square * square % m;
                e >>= 1;
            }
            result as u64
        };
        assert_eq!(quads(&buffers[2]), (0..n).map(power).collect::<Vec<_>>(), "{form}");
    });
}

#[test]
fn sha256() {
    // "abc", padded; the digest of FIPS 180-4.
    let mut message = vec![0u8; 64];
    message[..4].copy_from_slice(b"abc\x80");
    message[63] = 24;
    let arguments = vec![Argument::i32(1), Argument::i32(1), Argument::buffer(0), Argument::buffer(1)];
    let buffers = [Buffer::new("messages", message), Buffer::output("digests", 32)];
    let launch = Launch::linear("sha256", 1, 128, arguments);
    check(include_str!("../../examples/sha256.ir"), &[launch], &buffers, |form, buffers| {
        let hex: String = buffers[1].bytes.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "{form}");
    });
}

#[test]
fn hash_table() {
    let (n, slots) = (500u32, 256u32);
    let key = |i: u32| u64::from(hash(i) % 150);
    let buffers = [
        longs("keys", (0..n).map(key)),
        Buffer::words("values", 0..n),
        longs("slot_key", vec![u64::MAX; slots as usize]),
        longs("slot_sum", vec![0; slots as usize]),
        Buffer::words("failed", [0]),
    ];
    let mut arguments = vec![Argument::i32(n as i32), Argument::i32(slots as i32 - 1)];
    arguments.extend((0..5).map(Argument::buffer));
    let launch = Launch::linear("hash_insert", 2, 256, arguments);
    check(include_str!("../../examples/hash_table.ir"), &[launch], &buffers, |form, buffers| {
        let mut sums = std::collections::BTreeMap::new();
        (0..n).for_each(|i| *sums.entry(key(i)).or_insert(0) += u64::from(i));
        let pairs = quads(&buffers[2]).into_iter().zip(quads(&buffers[3]));
        let found: std::collections::BTreeMap<u64, u64> = pairs.filter(|(key, _)| *key != u64::MAX).collect();
        assert_eq!(found, sums, "{form}");
    });
}

#[test]
fn radix_sort_pass() {
    let (n, tiles, shift) = (2500u32, 3u32, 8);
    let buffers = [
        Buffer::words("keys", (0..n).map(hash)),
        Buffer::words("values", 0..n),
        Buffer::words("counts", vec![0; 16 * tiles as usize]),
        Buffer::output("keys_out", n as usize * 4),
        Buffer::output("values_out", n as usize * 4),
    ];
    let sizes = || vec![Argument::i32(n as i32), Argument::i32(shift), Argument::i32(tiles as i32)];
    let with = |numbers: &[usize]| sizes().into_iter().chain(numbers.iter().map(|i| Argument::buffer(*i))).collect();
    let launches = [
        Launch::linear("radix_count", tiles, 256, with(&[0, 2])),
        Launch::linear("radix_offsets", 1, 512, vec![Argument::i32(16 * tiles as i32), Argument::buffer(2)]),
        Launch::linear("radix_scatter", tiles, 256, with(&[0, 1, 2, 3, 4])),
    ];
    check(include_str!("../../examples/radix_sort.ir"), &launches, &buffers, |form, buffers| {
        let mut want: Vec<(u32, u32)> = (0..n).map(|i| (hash(i), i)).collect();
        want.sort_by_key(|(key, _)| key >> shift & 15);
        let got: Vec<(u32, u32)> = buffers[3].to_words().into_iter().zip(buffers[4].to_words()).collect();
        assert_eq!(got, want, "{form}");
    });
}

#[test]
fn sparse_matrix() {
    let (rows, columns) = (20u32, 60u32);
    let length = |r: u32| hash(r) % 50 * u32::from(!r.is_multiple_of(5));
    let starts: Vec<u32> = (0..=rows).map(|r| (0..r).map(length).sum()).collect();
    let total = starts[rows as usize];
    // Small integers: sums are exact in any order.
    let value = |i: u32| (hash(i + 1000) % 9) as f32;
    let buffers = [
        Buffer::words("row_start", starts.clone()),
        Buffer::words("column", (0..total).map(|i| hash(i) % columns)),
        Buffer::words("value", (0..total).map(|i| value(i).to_bits())),
        Buffer::words("x", (0..columns).map(|i| (i as f32).to_bits())),
        Buffer::output("y", rows as usize * 4),
    ];
    let mut arguments = vec![Argument::i32(rows as i32)];
    arguments.extend((0..5).map(Argument::buffer));
    let launch = Launch::linear("spmv_csr", rows.div_ceil(8), 256, arguments);
    check(include_str!("../../examples/spmv.ir"), &[launch], &buffers, |form, buffers| {
        let row = |r: u32| {
            (starts[r as usize]..starts[r as usize + 1])
                .map(|i| value(i) * (hash(i) % columns) as f32)
                .fold(0f32, |sum, x| sum + x)
        };
        assert_eq!(buffers[4].to_words(), (0..rows).map(|r| row(r).to_bits()).collect::<Vec<_>>(), "{form}");
    });
}
