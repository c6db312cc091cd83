//! The tables against what they speak of.

use ptxc_ir::{Flags, Opcode};

use super::rule::Rule;
use super::table;

#[test]
fn every_line_says_something_that_exists() {
    let all = table::all();
    assert!(all.len() > 2500, "{}", all.len());
    for (name, what) in all {
        match Rule::parse(&what) {
            Ok(Rule::Generic { op, flags, .. }) => {
                let known = Flags::from_bits(flags.bits() & op.info().flags);
                assert_eq!(known, flags, "{name}: `{}` does not take all of the flags `{flags}`", op.text());
            }
            Ok(_) => {}
            Err(error) => panic!("{name} : {what}: {error}"),
        }
    }
}

#[test]
fn names_lead_to_their_operation() {
    let op = |name: &str| match Rule::find(name) {
        Some(Rule::Generic { op, flags, .. }) => (op, flags),
        other => panic!("{name} is {other:?}"),
    };
    assert_eq!(op("nvvm.add.rz.ftz.f"), (Opcode::Fadd, Flags::RZ | Flags::FTZ));
    assert_eq!(op("nvvm.fma.rn.relu.bf16x2"), (Opcode::Fma, Flags::RELU));
    assert_eq!(op("nvvm.barrier.cta.sync.aligned.all"), (Opcode::BarrierSync, Flags::ALIGNED));
    assert_eq!(op("uadd.with.overflow.i32"), (Opcode::UaddOverflow, Flags::EMPTY));
    assert_eq!(op("fptosi.sat.i32.f64"), (Opcode::FptosiSat, Flags::EMPTY));
    assert!(matches!(Rule::find("nvvm.atomic.cas.gen.i.sys.i32.p0"), Some(Rule::Expand(..))));
    assert!(matches!(Rule::find("nvvm.mbarrier.arrive.shared"), Some(Rule::Ptx(_))));
}

/// Enough operands for every line: each argument is one register and the constant 1.
struct Plenty;

impl super::template::Operands for Plenty {
    fn results(&self) -> usize {
        130
    }
    fn arguments(&self) -> usize {
        64
    }
    fn lanes(&self, _: usize) -> usize {
        1
    }
    fn constant(&self, _: usize) -> Option<i128> {
        Some(1)
    }
    fn space(&self, _: usize, cta: bool) -> &'static str {
        if cta { ".shared::cta" } else { "" }
    }
}

#[test]
fn the_instruction_tables_have_every_mnemonic() {
    let mut unknown = Vec::new();
    for (name, what) in table::all() {
        let Ok(Rule::Ptx(template)) = Rule::parse(&what) else { continue };
        let text = template.fill(&Plenty).unwrap_or_else(|error| panic!("{name}: {error}")).text;
        // In a block of declarations the statements follow those.
        let start = if text.starts_with('{') { text.find(';').map_or(0, |at| at + 1) } else { 0 };
        let mut statement = ptxc_targets::Statement::default();
        let read = statement.read(&text, start + text[start..].len() - text[start..].trim_start().len());
        assert!(read.is_ok(), "{name}: {text}");
        let known = statement.toks().is_ok_and(|toks| !ptxc_targets::operand_lists(&toks).is_empty());
        // What older PTX had, or only LLVM: read, and left to the assembler.
        let obsolete = name.starts_with("nvvm.wmma.") && name.ends_with(".satfinite")
            || matches!(&*name, "nvvm.mma.m16n8k16.row.col.f16.f32" | "nvvm.mma.m16n8k16.row.col.f32.f16");
        if !known && !obsolete {
            unknown.push(name);
        }
    }
    assert!(unknown.is_empty(), "{} are unknown:\n{}", unknown.len(), unknown.join("\n"));
}
