//! The tables against what they speak of.

use ptxc_ir::{Flags, Opcode};

use super::rule::Rule;
use super::table;

#[test]
fn every_line_says_something_that_exists() {
    let all = table::all();
    assert!(all.len() > 4000, "{}", all.len());
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
