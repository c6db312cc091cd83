//! The operations that are compared, by family.

use super::{compare, targets};

const INTS: &[&str] = &["i1", "i3", "i8", "i13", "i16", "i24", "i32", "i47", "i64", "i65", "i96", "i127", "i128"];
const VECTORS: &[&str] = &["<3 x i8>", "<2 x i16>", "<5 x i1>", "<2 x i128>", "<4 x i32>", "<2 x i17>", "<1 x i64>"];

fn int_types() -> impl Iterator<Item = &'static str> {
    INTS.iter().chain(VECTORS).copied()
}

/// Integer code hardly depends on the target.
fn two_targets() -> Vec<ptxc_targets::Target> {
    let all = targets();
    vec![all[0], all[4]]
}

fn bool_of(ty: &str) -> String {
    match ty.split_once(" x ") {
        Some((lanes, _)) => format!("{lanes} x i1>"),
        None => "i1".into(),
    }
}

#[test]
fn integer_binary() {
    let ops = [
        "add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "udiv", "sdiv", "urem", "srem", "smin", "smax",
        "umin", "umax", "umulh", "smulh", "uadd_sat", "sadd_sat", "usub_sat", "ssub_sat", "ushl_sat", "sshl_sat",
    ];
    for ty in int_types() {
        for op in ops {
            let text =
                format!("func @f(%a: {ty}, %b: {ty}) -> {ty} {{\nentry:\n  %r = {op} {ty} %a, %b\n  ret %r\n}}\n");
            two_targets().into_iter().for_each(|target| compare(&text, target, 60));
        }
    }
}

#[test]
fn integer_unary() {
    for ty in int_types() {
        for op in ["abs", "ctpop", "ctlz", "cttz", "bitreverse", "freeze"] {
            let text = format!("func @f(%a: {ty}) -> {ty} {{\nentry:\n  %r = {op} {ty} %a\n  ret %r\n}}\n");
            two_targets().into_iter().for_each(|target| compare(&text, target, 60));
        }
    }
    for ty in ["i16", "i32", "i48", "i64", "i80", "i112", "i128", "<2 x i32>"] {
        let text = format!("func @f(%a: {ty}) -> {ty} {{\nentry:\n  %r = bswap {ty} %a\n  ret %r\n}}\n");
        two_targets().into_iter().for_each(|target| compare(&text, target, 60));
    }
}

#[test]
fn integer_overflow() {
    for ty in int_types() {
        let flag = bool_of(ty);
        for op in ["uadd", "sadd", "usub", "ssub", "umul", "smul"] {
            let text = format!(
                "func @f(%a: {ty}, %b: {ty}) -> {{{ty}, {flag}}} {{\nentry:\n  %r, %o = {op}_overflow {ty} %a, %b\n  ret %r, %o\n}}\n"
            );
            two_targets().into_iter().for_each(|target| compare(&text, target, 60));
        }
    }
}

#[test]
fn funnel_shifts() {
    for ty in int_types() {
        for op in ["fshl", "fshr"] {
            let text = format!(
                "func @f(%a: {ty}, %b: {ty}, %c: {ty}) -> {ty} {{\nentry:\n  %r = {op} {ty} %a, %b, %c\n  ret %r\n}}\n"
            );
            two_targets().into_iter().for_each(|target| compare(&text, target, 60));
        }
    }
}

#[test]
fn constant_shifts() {
    for ty in ["i64", "i96", "i128"] {
        for amount in [0, 1, 31, 32, 33, 63] {
            for op in ["shl", "lshr", "ashr"] {
                let text =
                    format!("func @f(%a: {ty}) -> {ty} {{\nentry:\n  %r = {op} {ty} %a, {amount}\n  ret %r\n}}\n");
                compare(&text, targets()[1], 30);
            }
            for op in ["fshl", "fshr"] {
                let text = format!(
                    "func @f(%a: {ty}, %b: {ty}) -> {ty} {{\nentry:\n  %r = {op} {ty} %a, %b, {amount}\n  ret %r\n}}\n"
                );
                compare(&text, targets()[1], 30);
            }
        }
    }
}

#[test]
fn integer_compare_and_select() {
    for ty in int_types() {
        let flag = bool_of(ty);
        for cc in ["eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge"] {
            let text = format!(
                "func @f(%a: {ty}, %b: {ty}) -> {flag} {{\nentry:\n  %r = icmp {cc} {ty} %a, %b\n  ret %r\n}}\n"
            );
            two_targets().into_iter().for_each(|target| compare(&text, target, 60));
        }
        for cond in ["i1", flag.as_str()] {
            let text = format!(
                "func @f(%c: {cond}, %a: {ty}, %b: {ty}) -> {ty} {{\nentry:\n  %r = select {cond} %c, {ty} %a, %b\n  ret %r\n}}\n"
            );
            two_targets().into_iter().for_each(|target| compare(&text, target, 20));
        }
    }
}

#[test]
fn integer_conversions() {
    let width = |ty: &str| ty[1..].parse::<u32>().expect("a width");
    for from in INTS {
        for to in INTS {
            let ops: &[&str] = match width(from).cmp(&width(to)) {
                std::cmp::Ordering::Less => &["zext", "sext"],
                std::cmp::Ordering::Greater => &["trunc"],
                std::cmp::Ordering::Equal => continue,
            };
            for op in ops {
                let text =
                    format!("func @f(%a: {from}) -> {to} {{\nentry:\n  %r = {op} {from} %a to {to}\n  ret %r\n}}\n");
                compare(&text, targets()[1], 40);
                let text = format!(
                    "func @f(%a: <3 x {from}>) -> <3 x {to}> {{\nentry:\n  %r = {op} <3 x {from}> %a to <3 x {to}>\n  ret %r\n}}\n"
                );
                compare(&text, targets()[1], 10);
            }
        }
    }
}

#[test]
fn bitcasts() {
    let groups: &[&[&str]] = &[
        &["i16", "<2 x i8>", "f16", "<16 x i1>", "<2 x e4m3>", "<1 x bf16>"],
        &["i24", "<3 x i8>", "<24 x i1>", "<2 x i12>"],
        &["i32", "<4 x i8>", "<2 x f16>", "f32", "<32 x i1>", "<2 x i16>", "<4 x e5m2>", "<8 x i4>"],
        &["i64", "<8 x i8>", "<4 x f16>", "<2 x f32>", "f64", "<2 x i32>", "<64 x i1>", "<4 x bf16>"],
        &["i96", "<3 x f32>", "<6 x f16>", "<12 x i8>", "<4 x i24>"],
        &["i128", "<16 x i8>", "<4 x f32>", "<2 x i64>", "<8 x f16>", "<2 x f64>", "<128 x i1>"],
        &["<2 x i128>", "<8 x f32>", "<4 x i64>"],
    ];
    for group in groups {
        for from in *group {
            for to in *group {
                let text =
                    format!("func @f(%a: {from}) -> {to} {{\nentry:\n  %r = bitcast {from} %a to {to}\n  ret %r\n}}\n");
                two_targets().into_iter().for_each(|target| compare(&text, target, 10));
            }
        }
    }
}

#[test]
fn vector_lanes() {
    for (ty, element) in [
        ("<4 x i8>", "i8"),
        ("<3 x f16>", "f16"),
        ("<4 x f32>", "f32"),
        ("<2 x i128>", "i128"),
        ("<5 x i1>", "i1"),
        ("<6 x bf16>", "bf16"),
    ] {
        let texts = [
            format!("func @f(%v: {ty}, %i: i32) -> {element} {{\nentry:\n  %r = extract {ty} %v, %i\n  ret %r\n}}\n"),
            format!("func @f(%v: {ty}) -> {element} {{\nentry:\n  %r = extract {ty} %v, 1\n  ret %r\n}}\n"),
            format!(
                "func @f(%v: {ty}, %x: {element}, %i: i8) -> {ty} {{\nentry:\n  %r = insert {ty} %v, %x, %i\n  ret %r\n}}\n"
            ),
            format!(
                "func @f(%v: {ty}, %x: {element}) -> {ty} {{\nentry:\n  %r = insert {ty} %v, %x, 1\n  ret %r\n}}\n"
            ),
            format!("func @f(%x: {element}) -> {ty} {{\nentry:\n  %r = splat {ty} %x\n  ret %r\n}}\n"),
            format!(
                "func @f(%v: {ty}, %w: {ty}) -> <3 x {element}> {{\nentry:\n  %r = shuffle {ty} %v, %w, [3, poison, 0]\n  ret %r\n}}\n"
            ),
        ];
        for text in texts {
            two_targets().into_iter().for_each(|target| compare(&text, target, 20));
        }
    }
}

#[test]
fn reductions() {
    for op in ["add", "mul", "and", "or", "xor", "smin", "smax", "umin", "umax"] {
        for (ty, element) in [("<4 x i32>", "i32"), ("<3 x i8>", "i8"), ("<2 x i100>", "i100"), ("<7 x i1>", "i1")] {
            let text = format!("func @f(%v: {ty}) -> {element} {{\nentry:\n  %r = reduce.{op} {ty} %v\n  ret %r\n}}\n");
            two_targets().into_iter().for_each(|target| compare(&text, target, 20));
        }
    }
    for op in ["fadd", "fmul", "fmin", "fmax", "fminimum", "fmaximum"] {
        for (ty, element) in [("<4 x f32>", "f32"), ("<3 x f16>", "f16"), ("<4 x bf16>", "bf16")] {
            let text = format!("func @f(%v: {ty}) -> {element} {{\nentry:\n  %r = reduce.{op} {ty} %v\n  ret %r\n}}\n");
            targets().into_iter().for_each(|target| compare(&text, target, 20));
        }
    }
}

const FLOATS: &[&str] = &["f16", "bf16", "f32", "f64", "<2 x f16>", "<3 x bf16>", "<4 x f32>"];

#[test]
fn float_arithmetic() {
    for ty in FLOATS {
        for op in ["fadd", "fsub", "fmul", "fdiv", "fmin", "fmax", "fminimum", "fmaximum", "copysign"] {
            let text =
                format!("func @f(%a: {ty}, %b: {ty}) -> {ty} {{\nentry:\n  %r = {op} {ty} %a, %b\n  ret %r\n}}\n");
            targets().into_iter().for_each(|target| compare(&text, target, 80));
        }
        for op in ["fadd rz", "fsub rp", "fmul rm", "fadd sat"] {
            if op.contains("sat") && (ty.contains("bf16") || *ty == "f64") {
                continue;
            }
            let text =
                format!("func @f(%a: {ty}, %b: {ty}) -> {ty} {{\nentry:\n  %r = {op} {ty} %a, %b\n  ret %r\n}}\n");
            targets().into_iter().for_each(|target| compare(&text, target, 100));
        }
        let text = format!(
            "func @f(%a: {ty}, %b: {ty}, %c: {ty}) -> {ty} {{\nentry:\n  %r = fma {ty} %a, %b, %c\n  ret %r\n}}\n"
        );
        targets().into_iter().for_each(|target| compare(&text, target, 600));
    }
    for ty in ["f16", "bf16"] {
        let text = format!(
            "func @f(%a: {ty}, %b: {ty}, %c: {ty}) -> {ty} {{\nentry:\n  %r = fma relu {ty} %a, %b, %c\n  ret %r\n}}\n"
        );
        targets().into_iter().for_each(|target| compare(&text, target, 80));
    }
}

#[test]
fn float_remainder() {
    for ty in ["f16", "f32", "f64", "<2 x f32>"] {
        let text = format!("func @f(%a: {ty}, %b: {ty}) -> {ty} {{\nentry:\n  %r = frem {ty} %a, %b\n  ret %r\n}}\n");
        compare(&text, targets()[2], 400);
    }
}

#[test]
fn float_unary() {
    for ty in FLOATS {
        for op in ["fneg", "fabs", "ffloor", "fceil", "ftrunc", "frint", "fround", "frcp", "fsqrt"] {
            let text = format!("func @f(%a: {ty}) -> {ty} {{\nentry:\n  %r = {op} {ty} %a\n  ret %r\n}}\n");
            targets().into_iter().for_each(|target| compare(&text, target, 80));
        }
    }
}

#[test]
fn float_compare_and_class() {
    let codes = [
        "oeq", "one", "olt", "ole", "ogt", "oge", "ord", "uno", "ueq", "une", "ult", "ule", "ugt", "uge", "true",
        "false",
    ];
    for ty in FLOATS {
        let flag = bool_of(ty);
        for cc in codes {
            let text = format!(
                "func @f(%a: {ty}, %b: {ty}) -> {flag} {{\nentry:\n  %r = fcmp {cc} {ty} %a, %b\n  ret %r\n}}\n"
            );
            targets().into_iter().for_each(|target| compare(&text, target, 60));
        }
        for mask in (0..1024).step_by(37).chain([1, 2, 3, 516, 504, 96, 264, 144, 1023, 0]) {
            let text = format!("func @f(%a: {ty}) -> {flag} {{\nentry:\n  %r = fclass {ty} %a, {mask}\n  ret %r\n}}\n");
            compare(&text, targets()[2], 40);
        }
    }
}

#[test]
fn float_conversions() {
    let formats = [("e4m3", 0), ("e5m2", 0), ("f16", 1), ("bf16", 1), ("f32", 2), ("f64", 3)];
    for (from, a) in formats {
        for (to, b) in formats {
            if a == b || (a == 0 && b == 3) || (a == 3 && b == 0) {
                continue;
            }
            let op = if a > b { "fptrunc" } else { "fpext" };
            for (lanes, count) in [("", 120), ("3", 10), ("4", 10)] {
                let (from, to) = match lanes {
                    "" => (from.to_string(), to.to_string()),
                    n => (format!("<{n} x {from}>"), format!("<{n} x {to}>")),
                };
                let text =
                    format!("func @f(%a: {from}) -> {to} {{\nentry:\n  %r = {op} {from} %a to {to}\n  ret %r\n}}\n");
                targets().into_iter().for_each(|target| compare(&text, target, count));
                if a > b && b > 0 {
                    for mode in ["rz", "rm", "rp"] {
                        let text = format!(
                            "func @f(%a: {from}) -> {to} {{\nentry:\n  %r = fptrunc {mode} {from} %a to {to}\n  ret %r\n}}\n"
                        );
                        targets().into_iter().for_each(|target| compare(&text, target, count / 2));
                    }
                }
            }
        }
    }
}

#[test]
fn floats_and_integers() {
    for float in ["f16", "bf16", "f32", "f64"] {
        for int in ["i1", "i8", "i16", "i24", "i32", "i64", "i96", "i128"] {
            for op in ["fptosi", "fptoui", "fptosi_sat", "fptoui_sat", "fptosi rn", "fptoui_sat rp"] {
                let text = format!(
                    "func @f(%a: {float}) -> {int} {{\nentry:\n  %r = {op} {float} %a to {int}\n  ret %r\n}}\n"
                );
                targets().into_iter().for_each(|target| compare(&text, target, 30));
            }
            for op in ["sitofp", "uitofp", "sitofp rz", "uitofp rp", "sitofp rm"] {
                let text = format!(
                    "func @f(%a: {int}) -> {float} {{\nentry:\n  %r = {op} {int} %a to {float}\n  ret %r\n}}\n"
                );
                targets().into_iter().for_each(|target| compare(&text, target, 30));
            }
        }
    }
}

#[test]
fn memory_accesses() {
    let types = [
        "i1",
        "i8",
        "i16",
        "i24",
        "i32",
        "i64",
        "i96",
        "i128",
        "f16",
        "f32",
        "f64",
        "e4m3",
        "<3 x i8>",
        "<16 x i8>",
        "<5 x i1>",
        "<33 x i1>",
        "<3 x f16>",
        "<8 x f16>",
        "<3 x f32>",
        "<4 x f32>",
        "<8 x f32>",
        "<4 x i64>",
        "<2 x i128>",
        "<3 x i24>",
        "<16 x bf16>",
        "<7 x i16>",
    ];
    for ty in types {
        for align in [1, 2, 4, 8, 16, 32] {
            let text = format!(
                "func @f(%p: ptr<global>, %v: {ty}) -> {ty} {{\nentry:\n  %r = load {ty}, %p, align {align}\n  store {ty} %v, %p, align {align}\n  ret %r\n}}\n"
            );
            targets().into_iter().for_each(|target| compare(&text, target, 6));
            let text = format!(
                "func @f(%p: ptr<shared>) {{\nentry:\n  %q = gep i8, %p, 32\n  %r = load {ty}, %q, align {align}\n  store {ty} %r, %p, align {align}, volatile\n  ret\n}}\n"
            );
            compare(&text, targets()[4], 3);
        }
    }
}

#[test]
fn block_copies() {
    for (op, align) in [("memcpy", 1), ("memcpy", 4), ("memcpy", 16), ("memmove", 1), ("memmove", 8)] {
        for length in [0, 1, 3, 7, 16, 33, 64] {
            for distance in [-64i32, -5, 0, 3, 64] {
                if op == "memcpy" && distance.abs() < length {
                    continue;
                }
                let header = "func @f(%p: ptr) {\nentry:\n";
                let straight = format!(
                    "{header}  %q = gep i8, %p, {distance}\n  {op} %p, %q, {length}, align {align}, align {align}\n  ret\n}}\n"
                );
                compare(&straight, targets()[1], 2);
                let looped = format!(
                    "{header}  %q = gep i8, %p, {distance}\n  %n = freeze i32 {length}\n  {op} %q, %p, %n, align {align}, align {align}\n  ret\n}}\n"
                );
                compare(&looped, targets()[1], 2);
            }
        }
        let long = format!(
            "func @f(%p: ptr<global>) {{\nentry:\n  %q = gep i8, %p, -64\n  %z = gep i8, %q, 3\n  {op} %q, %p, 61, align {align}, align {align}\n  {op} %z, %q, 120, align 1, align 1\n  ret\n}}\n"
        );
        if op == "memmove" {
            compare(&long, targets()[1], 2);
        }
    }
    for length in [0, 1, 5, 31, 64, 190] {
        for align in [1, 8, 16] {
            let text =
                format!("func @f(%p: ptr, %b: i8) {{\nentry:\n  memset %p, %b, {length}, align {align}\n  ret\n}}\n");
            compare(&text, targets()[1], 2);
        }
    }
}

#[test]
fn atomic_operations() {
    let ints =
        ["xchg", "add", "sub", "and", "nand", "or", "xor", "smax", "smin", "umax", "umin", "uinc_wrap", "udec_wrap"];
    for ty in ["i8", "i16", "i32", "i64"] {
        for op in ints {
            let text = format!(
                "func @f(%p: ptr<global>, %v: {ty}) -> {ty} {{\nentry:\n  %r = atomicrmw {op} {ty} %p, %v, acq_rel, scope(gpu)\n  ret %r\n}}\n"
            );
            targets().into_iter().for_each(|target| compare(&text, target, 10));
        }
        let text = format!(
            "func @f(%p: ptr<shared>, %v: {ty}) -> {{{ty}, i1, {ty}, i1}} {{\nentry:\n  %e = load {ty}, %p\n  %r, %o = cmpxchg {ty} %p, %e, %v, seq_cst, relaxed, scope(cta)\n  %s, %t = cmpxchg {ty} %p, %e, %v, relaxed, relaxed, scope(cta)\n  ret %r, %o, %s, %t\n}}\n"
        );
        targets().into_iter().for_each(|target| compare(&text, target, 10));
    }
    for ty in ["f16", "bf16", "f32", "f64", "<2 x f16>", "<2 x bf16>"] {
        for op in ["fadd", "fsub", "fmax", "fmin"] {
            let text = format!(
                "func @f(%p: ptr<global>, %v: {ty}) -> {ty} {{\nentry:\n  %r = atomicrmw {op} {ty} %p, %v, relaxed, scope(gpu)\n  ret %r\n}}\n"
            );
            targets().into_iter().for_each(|target| compare(&text, target, 20));
        }
    }
    for ty in ["ptr<global>", "f32"] {
        let text = format!(
            "func @f(%p: ptr<global>, %v: {ty}) -> {ty} {{\nentry:\n  %r = atomicrmw xchg {ty} %p, %v, relaxed, scope(gpu)\n  ret %r\n}}\n"
        );
        compare(&text, targets()[1], 5);
    }
    for op in ["xchg", "add", "umax"] {
        let text = format!(
            "func @f(%p: ptr<global>, %v: i128) -> i128 {{\nentry:\n  %r = atomicrmw {op} i128 %p, %v, relaxed, scope(gpu)\n  ret %r\n}}\n"
        );
        compare(&text, targets()[3], 5);
    }
}

#[test]
fn control_flow() {
    let text = "func @f(%n: i8, %a: i128, %v: <3 x f16>) -> {i128, <3 x f16>, i8} {
entry:
  jump head(%n, %a, %v)
head(%i: i8, %acc: i128, %w: <3 x f16>):
  %more = icmp ugt i8 %i, 3
  br %more, body, done
body:
  %j = lshr i8 %i, 1
  %square = mul i128 %acc, %acc
  %x = fadd <3 x f16> %w, %v
  jump head(%j, %square, %x)
done:
  ret %acc, %w, %i
}
";
    targets().into_iter().for_each(|target| compare(text, target, 40));
    for ty in ["i1", "i8", "i16", "i24", "i64", "i128"] {
        let text = format!(
            "func @f(%a: {ty}) -> i32 {{\nentry:\n  switch {ty} %a, other(7) [0: other(1), 1: other(2)]\nother(%r: i32):\n  ret %r\n}}\n"
        );
        compare(&text, targets()[1], 40);
    }
}

#[test]
fn calls() {
    let text = "func @g(%a: i24, %b: <3 x i1>, %c: i128, (%d, %e): {i8, <3 x f16>}) -> {i24, <12 x i1>, i128} {
entry:
  %x = zext i8 %d to i24
  %s = add i24 %a, %x
  %t = zext i24 %s to i128
  %u = add i128 %c, %t
  %l = extract <3 x i1> %b, 1
  %m = splat <12 x i1> %l
  ret %s, %m, %u
}
func @f(%a: i24, %b: <3 x i1>, %c: i128, %d: i8, %e: <3 x f16>) -> {i24, <12 x i1>, i128} {
entry:
  %x, %y, %z = call @g(%a, %b, %c, %d, %e)
  ret %x, %y, %z
}
";
    targets().into_iter().for_each(|target| compare(text, target, 20));
}
