//! What directives and expressions mean, and what is said of wrong ones.
#![cfg(test)]

use std::path::Path;

use ptxc_run::{Executor as _, Interpreter, RunFile, prepare};

/// Runs directives around a kernel that does nothing; gives the first thing that is wrong.
fn run(directives: &str) -> Result<(), String> {
    run_with(directives, "kernel @k() {\nentry:\n  ret\n}\n", ";! launch @k()\n")
}

fn run_with(directives: &str, kernel: &str, launch: &str) -> Result<(), String> {
    let lines: String = directives.lines().map(|line| format!(";! {line}\n")).collect();
    let text = format!("{lines}{launch}{kernel}");
    let file = RunFile::read(&text).map_err(|error| error.with_position(&text))?;
    let module = ptxc_ir::read_module(kernel).map_err(|errors| format!("{:?}", errors.first()))?;
    let case = file.cases.first().ok_or("no case")?;
    let prepared = prepare(&file, case, &module, Path::new("."));
    let mut prepared = prepared.map_err(|error| error.with_position(&text))?;
    let mut buffers = prepared.buffers.clone();
    let executor = Interpreter::new(module);
    executor.run(&prepared.launches, &mut buffers).map_err(|failure| failure.to_string())?;
    let found = prepared.judge(&buffers).map_err(|error| error.with_position(&text))?;
    match found.first() {
        None => Ok(()),
        Some(mismatch) => {
            let (line, column) = ptxc_ir::line_col(&text, mismatch.span.start);
            Err(format!("{line}:{column}: {}", mismatch.message))
        }
    }
}

fn holds(expression: &str) {
    assert_eq!(run(&format!("check {expression}")), Ok(()), "{expression}");
}

fn refused(directives: &str, message: &str) {
    assert_eq!(run(directives), Err(message.to_owned()));
}

#[test]
fn operators_bind_as_they_should() {
    holds("1 + 2 * 3 == 7 and 7 & 3 == 3 or false");
    holds("1 << 2 + 1 == 8 and 6 ^ 2 | 1 == 5");
    holds("not 1 == 2 and -2 * -3 == 6 and !0 == -1");
    holds("(if 1 < 2 then 3 else 4) + 1 == 4");
    holds("let (a, b) = (3, 4) in let c = a * b in c - a == 9");
}

#[test]
fn integers_wrap_in_their_type_and_whole_numbers_do_not() {
    holds("u8(200) + 100 == 44 and i8(127) + 1 == -128 and 200 + 100 == 300");
    holds("u8(300) == 44 and i8(200) == -56 and u32(-1) == 0xffffffff");
    holds("i32(-7) / 2 == -3 and i32(-7) % 2 == -1 and i8(-128) / -1 == -128");
    holds("i8(-128) >> 3 == -16 and u8(0x80) >> 3 == 16 and u8(1) << 9 == 0");
    holds("u128(1) << 127 > 0 and i128(1) << 127 < 0");
    refused("check (1 << 126) * 4 == 0", "1:10: the whole number has more than 127 bits; give it a type");
    refused("check 1 / (1 - 1) == 0", "1:10: division by zero");
}

#[test]
fn floats_are_rounded_once_an_operation() {
    holds("f16(2048) + 1 == 2048 and f16(2048) + 3 == 2052");
    holds("f32(16777216) + 1.0 == 16777216.0 and 16777216.0 + 1.0 == 16777217.0");
    holds("fma(f32(16777217), 1, 1) == fma(f32(16777216), 1, 1)");
    holds("is_nan(f32(inf) - inf) and nan != nan and not nan < 1.0");
    holds("min(f32(nan), 1) == 1 and is_nan(minimum(f32(nan), 1)) and bits(max(f32(-0.0), 0)) == 0");
    holds("i8(f32(1000)) == 127 and u8(f32(-3)) == 0 and i32(f32(-2.9)) == -2 and i32(f32(nan)) == 0");
    holds("bits(f32(1)) == 0x3f800000 and f16_of_bits(0x3c00) == 1 and f32(e4m3_of_bits(0x7e)) == 448");
}

#[test]
fn ranges_are_gathered() {
    holds("sum(k in 0..5: k) == 10 and product(k in 1..5: k) == 24 and sum(k in 3..3: u8(k)) == 0");
    holds("min(k in 0..5: (k - 2) * (k - 2)) == 0 and max(k in 0..5: k % 3) == 2");
    holds("count(k in 0..10: k % 3 == 0) == 4 and all(k in 0..0: false) and not any(k in 0..9: k == 9)");
    holds("fold(x = u8(1), k in 0..9: x * 2) == 0");
    holds("let (a, b) = fold((a, b) = (0, 1), k in 0..10: (b, a + b)) in a == 55 and b == 89");
}

#[test]
fn functions_recurse() {
    assert_eq!(run("def f(n, s) = if n == 0 then s else f(n - 1, s + n)\ncheck f(100000, 0) == 5000050000"), Ok(()));
    assert_eq!(run("def f(n) = if n < 2 then n else f(n - 1) + f(n - 2)\ncheck f(15) == 610"), Ok(()));
    refused("def f(n) = 1 + f(n)\ncheck f(1) == 0", "1:21: the expression recurses too deep");
}

#[test]
fn arrays_use_their_own_elements() {
    assert_eq!(run("array f: u64[50] = if i < 2 then i else f[i - 1] + f[i - 2]\ncheck f[49] == 7778742049"), Ok(()));
    refused("array f: u8[3] = f[i]", "1:21: element 0 of an array of 0");
    assert_eq!(run("array t: u8[3] = \"a\\00\\ff\"\ncheck t[2] == 255 and len(t) == 3"), Ok(()));
    assert_eq!(run("array t: u16[2] = hex \"0102 0304\"\ncheck t[1] == 0x0403"), Ok(()));
    refused("array t: u16[2] = [1, 2, 3]", "1:22: 3 values for 2 elements");
    refused("array t: u8[2] = 256", "1:21: 256 does not fit into u8");
    refused("array t: u8[2] = file \"not there\"", "1:21: ./not there: No such file or directory (os error 2)");
}

#[test]
fn random_numbers_stay_within_their_bounds_and_are_the_same_every_time() {
    let directives = "array r: i32[200] = random(7, -3, 4)\narray f: f32[200] = random(7, 1, 2)\n\
         check all(k in 0..200: r[k] >= -3 and r[k] < 4) and any(k in 0..200: r[k] == 3)\n\
         check all(k in 0..200: f[k] >= 1 and f[k] < 2)\narray x: u32[2] = random(1)\ncheck x[0] == 1949917470";
    assert_eq!(run(directives), Ok(()));
}

const COPY: &str = "kernel @copy(%x: ptr<global>, %y: ptr<global>, %k: i32) {\nentry:\n  %v = load i32, %x\n  \
     %w = add i32 %v, %k\n  store i32 %w, %y\n  ret\n}\n";

#[test]
fn expectations_name_what_differs() {
    let setup = "buffer x: i32[4] = 5 + i\nbuffer y: i32[4] = 0\nlaunch @copy(x + 1, y + 2, 10)\n";
    let check = |rest: &str| run_with(&format!("{setup}{rest}"), COPY, "");
    assert_eq!(check("expect y = if i == 2 then 16 else 0\nexpect x = 5 + i"), Ok(()));
    assert_eq!(check("expect y[0..2] = [0, 0]\nexpect y[2] = x[1] + 10"), Ok(()));
    assert_eq!(check("expect y = 9 where i > 9"), Ok(()));
    assert_eq!(check("expect y = 0"), Err("4:11: y[2] is 16, expected 0; 1 of 4 differ".to_owned()));
    assert_eq!(check("check y'[2] == 0 \"no sum\""), Err("4:10: no sum".to_owned()));
    assert_eq!(check("expect y[3..9] = 0"), Err("4:11: 3..9 of an array of 4 elements".to_owned()));
}

#[test]
fn launches_have_to_fit_their_kernel() {
    let buffers = "buffer x: i32[1] = 1\nbuffer y: i32[1]\narray z: i32[1] = 1\n";
    let check = |launch: &str| run_with(&format!("{buffers}{launch}"), COPY, "").unwrap_err();
    assert_eq!(check("launch @copy(x, y)"), "4:4: @copy takes 3 arguments, not 2");
    assert_eq!(check("launch @move(x, y, 1)"), "4:4: there is no kernel @move");
    assert_eq!(check("launch @copy(x, z, 1)"), "4:20: `z` is no buffer");
    assert_eq!(check("launch @copy(x, y, x)"), "4:23: the kernel takes no pointer here");
    assert_eq!(check("launch @copy(x, y, 1.5)"), "4:23: a real number is no value for u32");
    assert_eq!(check("launch @copy(x, y, {1, 2})"), "4:23: 2 numbers for a parameter of 1");
    assert_eq!(
        check("launch @copy(x, y, 1) block(0)"),
        "4:4: the block [0, 1, 1] is empty or has more than 1024 elements"
    );
    assert_eq!(check("launch @copy(x, y, 1) grid(-1)"), "4:31: -1 is no size");
}

#[test]
fn wrong_directives_are_refused_with_their_place() {
    refused("buffer x: u7[1]", "1:14: `u7` is no type of elements");
    refused("let sum = 1", "1:8: `sum` has a meaning already");
    refused("let x = y", "1:12: nothing is called `y`");
    refused("let x = random(1)", "1:12: `random` describes elements of an array only");
    refused("check popcount(1, 2)", "1:10: `popcount` takes 1 operands, not 2");
    refused("check u8(1) == i8(1)", "1:10: u8 and i8 do not go together");
    refused("check 1", "1:10: a truth value is wanted here, not a whole number");
    refused("let x = 1 2", "1:14: the directive should end here");
    refused("gap printer \"x\"", "1:8: there is no executor `printer`; there are interpreter, emulator, gpu");
    refused("let x = (1", "1:14: `)` is missing");
    let open = "(".repeat(5000);
    let error = run(&format!("let x = {open}1")).unwrap_err();
    assert!(error.ends_with("the expression is nested too deep"), "{error}");
    let minus = "-".repeat(5000);
    let error = run(&format!("let x = {minus}1")).unwrap_err();
    assert!(error.ends_with("the expression is nested too deep"), "{error}");
}

/// Texts with parts cut out, doubled and exchanged are read or refused, and never more than that.
#[test]
fn mutated_directives_never_panic() {
    let text = "let n = 4\ndef f(a, b) = if a < b then a * 2 else f(a - 1, b)\narray t: u16[n] = [1, 2, f(3, 4), -1]\n\
         buffer x: i32[n] = random(1, -3, 3)\nbuffer y: f32[2 * n]\ncheck all(k in 0..n: x'[k] >= -3 and t[k] != 9)\n\
         expect y[1..n] = let (a, b) = (1, 2.5) in f32(a) + b where i % 2 == 0 ulp 3 relative 1e-5\nprint x[0..2]\n\
         case a\nlaunch @k({1, x}, n, x + 1) grid(n, 2) block(3) shared(0x10)\nfails \"text\"";
    let words: Vec<&str> = text.split_inclusive([' ', '\n', '(', '[']).collect();
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..3000 {
        let mut changed = words.clone();
        for _ in 0..=random(3) {
            let (a, b) = (random(changed.len()), random(changed.len()));
            match random(3) {
                0 => drop(changed.remove(a)),
                1 => changed.insert(a, words[b % words.len()]),
                _ => changed.swap(a, b),
            }
        }
        let _ = run(&changed.concat());
    }
}
