//! `ptxc stats` says what `ptxas -v` says.
#![cfg(test)]

use ptxc::resources::{Resources, read_cubin};
use ptxc::targets::Target;
use ptxc_test_support::assemble;

/// Two kernels: one with shared and constant memory, one whose many live doubles do not fit 32 registers.
fn module(target: Target) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        ".version {}\n.target {target}\n.address_size 64
.global .align 4 .b8 global_table[64];
.const .align 4 .b8 constant_table[100] = {{1, 2, 3}};
.visible .entry plain(.param .u64 out) {{
    .reg .b64 %rd<3>; .reg .b32 %r<5>;
    .shared .align 4 .b8 tile[1000];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    st.shared.b32 [tile], %r1;
    bar.sync 0;
    ld.shared.b32 %r2, [tile+4];
    ld.const.b32 %r3, [constant_table+4];
    add.s32 %r2, %r2, %r3;
    st.global.b32 [%rd1], %r2;
    ret;
}}
.visible .entry spilling(.param .u64 in, .param .u32 unused) .maxntid 1024 {{
    .reg .b64 %rd<3>; .reg .f64 %fd<64>; .reg .b32 %r<40>;
    ld.param.u64 %rd1, [in];
",
        target.min_ptx()
    );
    for i in 0..64 {
        let _ = writeln!(text, "    ld.volatile.global.f64 %fd{i}, [%rd1+{}];", 8 * i);
    }
    for i in 0..40 {
        let _ = writeln!(text, "    ld.volatile.global.b32 %r{i}, [%rd1+{}];", 1024 + 4 * i);
    }
    text.push_str("    bar.sync 0;\n");
    for i in (0..40).rev() {
        let _ = writeln!(text, "    st.volatile.global.b32 [%rd1+{}], %r{i};", 2048 + 4 * i);
    }
    for i in (0..64).rev() {
        let _ = writeln!(text, "    st.volatile.global.f64 [%rd1+{}], %fd{i};", 4096 + 8 * i);
    }
    text.push_str("    ret;\n}\n");
    text
}

/// The number in front of `unit` in what `ptxas -v` says about a function.
fn reported(messages: &str, function: &str, unit: &str) -> u64 {
    let start = messages.find(&format!("entry function '{function}'")).unwrap();
    let rest = &messages[start..];
    let end = rest[1..].find("entry function").map_or(rest.len(), |at| at + 1);
    let Some(at) = rest[..end].find(unit) else { return 0 };
    let digits = rest[..at].trim_end().rsplit(|c: char| !c.is_ascii_digit()).next().unwrap();
    digits.parse().unwrap()
}

fn check(function: &Resources, messages: &str, target: Target) {
    let report = |unit| reported(messages, &function.name, unit);
    let context = format!("{} for {target}: {messages}", function.name);
    assert_eq!(u64::from(function.registers), report(" registers"), "registers of {context}");
    assert_eq!(function.shared_bytes, report(" bytes smem"), "shared memory of {context}");
    assert_eq!(function.local_bytes, report(" bytes stack frame"), "frame of {context}");
    assert_eq!(function.spill_store_bytes, report(" bytes spill stores"), "spill stores of {context}");
    assert_eq!(function.spill_load_bytes, report(" bytes spill loads"), "spill loads of {context}");
    // Newer targets keep bank 0 out of the report.
    if messages.contains("bytes cmem[0]") {
        assert_eq!(function.constant_bytes, report(" bytes cmem[0]"), "constant bank 0 of {context}");
    }
}

#[test]
fn resources_agree_with_the_assembler_on_every_target() {
    for &target in Target::ALL {
        let outcome = assemble(&module(target), target, &["-v", "-maxrregcount=32"]).unwrap();
        let cubin = outcome.cubin.unwrap_or_else(|| panic!("{target}: {}", outcome.messages));
        let resources = read_cubin(&cubin).unwrap();
        assert_eq!(resources.sm, u32::from(target.sm()));
        assert_eq!(resources.functions.len(), 2);
        for function in &resources.functions {
            check(function, &outcome.messages, target);
        }
        let find = |name: &str| resources.functions.iter().find(|function| function.name == name).unwrap();
        assert_eq!((find("plain").parameter_bytes, find("spilling").parameter_bytes), (8, 12));
        assert!(find("spilling").spill_store_bytes > 0, "{target} does not spill: {}", outcome.messages);
        assert_eq!(resources.global_bytes, 64);
    }
}
