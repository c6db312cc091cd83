//! Helpers of the register assignment tests: a module of opcodes, a simulator, a generator of random functions.
#![allow(dead_code)] // each test file uses a part

pub mod random;
pub mod simulate;

use ptxc_mir::{FuncKind, Function, Linkage, Signature, SymId};
use ptxc_targets::{Opcode, OpcodeTable};

/// Mnemonics for tests; what they mean is nobody's business here.
pub struct Ops {
    pub table: OpcodeTable,
    pub add: Opcode,
    pub load: Opcode,
    pub mma: Opcode,
    pub setp: Opcode,
}

impl Ops {
    pub fn new() -> Ops {
        let mut table = OpcodeTable::new();
        let mut op = |text: &str| table.intern_text(text).expect("a known mnemonic");
        let (add, load, mma, setp) = (op("add.s32"), op("ld.global.v2.b32"), op("mad.lo.s32"), op("setp.lt.s32"));
        Ops { table, add, load, mma, setp }
    }
}

/// A function without blocks.
pub fn empty() -> Function {
    Function::new(SymId::from_u32(0), FuncKind::Kernel, Linkage::Visible, Signature::default())
}
