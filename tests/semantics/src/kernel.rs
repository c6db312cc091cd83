//! Kernels that apply the variants of a case to its inputs.
//!
//! Parameters are the address of the results, then one address a source. Each thread takes one item. A source lies in
//! memory in its own size, a result in eight bytes: those of variant `v`, result `r` and item `i` at index
//! `(v * results + r) * items + i`. What a result leaves of its eight bytes is zero when the memory was. Behind all
//! results lie eight bytes an item that are scratch.

use std::fmt::Write as _;

use crate::inputs::{BLOCK, Kind};
use crate::row::{Case, Language};

/// The head of a PTX module for kernels of this module.
pub const PTX_HEAD: &str = ".version 8.6\n.target sm_90a\n.address_size 64\n";

/// A column of operands as it lies in memory.
pub fn bytes(kind: Kind, values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes().into_iter().take(kind.bytes())).collect()
}

/// Elements of eight bytes that the results of a case over so many items take, with the scratch.
pub fn result_words(case: &Case, items: usize) -> usize {
    (case.variants.len() * case.results.len() + 1) * items
}

/// The kernel of a case over `items` items, as PTX or as IR, whichever the case is written in.
pub fn text(case: &Case, name: &str, items: usize) -> String {
    // Writing to a string does not fail.
    let mut out = String::new();
    let _ = match case.language {
        Language::Ptx => ptx(&mut out, case, name, items),
        Language::Ir => ir(&mut out, case, name, items),
    };
    out
}

/// The name of an operand without the percent sign.
fn bare(name: &str) -> &str {
    name.trim_start_matches('%')
}

/// The register type that holds a kind.
fn register(kind: Kind) -> &'static str {
    match kind.bits() {
        1 => ".pred",
        // A few instructions take no wider register.
        8 if kind.name() == "b8" => ".b8",
        2..=16 => ".b16",
        17..=32 => ".b32",
        _ => ".b64",
    }
}

fn ptx(out: &mut String, case: &Case, name: &str, items: usize) -> std::fmt::Result {
    write!(out, ".visible .entry {name}(.param .b64 {name}_results")?;
    for source in &case.sources {
        write!(out, ", .param .b64 {name}_{}", bare(&source.name))?;
    }
    writeln!(out, ")\n{{\n\t.reg .b32 %item, %block, %size, %bit;\n\t.reg .b64 %results, %at, %offset;")?;
    for operand in case.sources.iter().chain(&case.results).chain(&case.temporaries) {
        writeln!(out, "\t.reg {} {};", register(operand.kind), operand.name)?;
    }
    writeln!(out, "\tmov.u32 %item, %tid.x;\n\tmov.u32 %block, %ctaid.x;\n\tmov.u32 %size, %ntid.x;")?;
    writeln!(out, "\tmad.lo.s32 %item, %block, %size, %item;")?;
    for source in &case.sources {
        let bytes = source.kind.bytes();
        writeln!(out, "\tld.param.u64 %at, [{name}_{}];", bare(&source.name))?;
        writeln!(out, "\tmul.wide.u32 %offset, %item, {bytes};\n\tadd.s64 %at, %at, %offset;")?;
        match source.kind.bits() {
            1 => writeln!(out, "\tld.global.u8 %bit, [%at];\n\tsetp.ne.s32 {}, %bit, 0;", source.name)?,
            _ => writeln!(out, "\tld.global.u{} {}, [%at];", bytes * 8, source.name)?,
        }
    }
    writeln!(out, "\tld.param.u64 %results, [{name}_results];")?;
    writeln!(out, "\tmul.wide.u32 %offset, %item, 8;\n\tadd.s64 %results, %results, %offset;")?;
    let uses = |name: &str| case.variants.iter().any(|v| v.contains(name));
    if uses("%cell") {
        writeln!(out, "\t.shared .align 16 .b8 cells[{}];\n\t.reg .b32 %cell, %cells;", BLOCK * 16)?;
        writeln!(out, "\tmov.u32 %cells, cells;\n\tmov.u32 %cell, %tid.x;\n\tmad.lo.s32 %cell, %cell, 16, %cells;")?;
    }
    if uses("%global") {
        let offset = case.variants.len() * case.results.len() * items * 8;
        writeln!(out, "\t.reg .b64 %global;\n\tadd.s64 %global, %results, {offset};")?;
    }
    for (index, variant) in case.variants.iter().enumerate() {
        writeln!(out, "\t{variant}")?;
        for (r, result) in case.results.iter().enumerate() {
            let offset = (index * case.results.len() + r) * items * 8;
            match result.kind.bits() {
                1 => writeln!(
                    out,
                    "\tselp.b32 %bit, 1, 0, {};\n\tst.global.u32 [%results+{offset}], %bit;",
                    result.name
                )?,
                _ => writeln!(out, "\tst.global.u{} [%results+{offset}], {};", result.kind.bytes() * 8, result.name)?,
            }
        }
    }
    writeln!(out, "\tret;\n}}")
}

fn ir(out: &mut String, case: &Case, name: &str, items: usize) -> std::fmt::Result {
    write!(out, "kernel @{name}(%results: ptr<global>")?;
    for source in &case.sources {
        write!(out, ", %at_{}: ptr<global>", bare(&source.name))?;
    }
    writeln!(out, ") {{\nentry:\n  %thread = sreg.tid.x\n  %block = sreg.ctaid.x\n  %first = mul i32 %block, {BLOCK}")?;
    writeln!(out, "  %item = add i32 %first, %thread\n  %at = gep i64, %results, %item")?;
    for source in &case.sources {
        let (ty, name) = (source.kind.ir_type(), bare(&source.name));
        let memory = if ty == "i1" { "i8" } else { ty };
        writeln!(out, "  %from_{name} = gep {memory}, %at_{name}, %item")?;
        if ty == "i1" {
            writeln!(out, "  %wide_{name} = load i8, %from_{name}\n  %{name} = trunc i8 %wide_{name} to i1")?;
        } else {
            writeln!(out, "  %{name} = load {ty}, %from_{name}")?;
        }
    }
    for (index, variant) in case.variants.iter().enumerate() {
        // Each variant has names of its own for what it computes.
        let mut text = variant.clone();
        for operand in case.results.iter().chain(&case.temporaries) {
            text = text.replace(&operand.name, &format!("{}_{index}", operand.name));
        }
        for line in text.split(';') {
            writeln!(out, "  {}", line.trim())?;
        }
        for (r, result) in case.results.iter().enumerate() {
            let (ty, name) = (result.kind.ir_type(), format!("{}_{index}", bare(&result.name)));
            let at = (index * case.results.len() + r) * items;
            writeln!(out, "  %to_{name} = gep i64, %at, {at}")?;
            if ty == "i1" {
                writeln!(out, "  %wide_{name} = zext i1 %{name} to i8\n  store i8 %wide_{name}, %to_{name}")?;
            } else {
                writeln!(out, "  store {ty} %{name}, %to_{name}")?;
            }
        }
    }
    writeln!(out, "  ret\n}}")
}
