//! Registers cut into smaller ones, for fields of packed aggregates that are passed at unaligned offsets.

use ptxc_ir::Value;
use ptxc_mir::{Operand, RegClass, VReg};
use ptxc_targets::tok;
use smallvec::SmallVec;

use super::{Lower, Output};

impl Lower<'_> {
    /// The registers of a value in `ratio` parts each, low first. Parts of a byte are 16-bit registers whose upper half
    /// is unspecified.
    pub(super) fn split_value(&mut self, value: Value, ratio: u32) -> SmallVec<[Operand; 8]> {
        let mut regs = self.regs_of(value);
        let mut left = ratio;
        while left > 1 {
            let mut parts = Output::new();
            for reg in regs {
                let halves = self.halves(reg);
                parts.extend(halves);
            }
            regs = parts;
            left /= 2;
        }
        regs.into_iter().map(Operand::Use).collect()
    }

    fn halves(&mut self, reg: VReg) -> [VReg; 2] {
        let part = match self.func.class(reg) {
            RegClass::B64 => RegClass::B32,
            RegClass::B32 => RegClass::B16,
            _ => return [reg, self.binary_imm(&[tok::SHR, tok::U16], reg, 8)],
        };
        let parts = self.unpack(reg, part);
        [parts[0], parts[1]]
    }

    /// Joins groups of `ratio` parts to registers of this class. Byte parts are zero-extended.
    pub(super) fn join_parts(&mut self, parts: &[VReg], ratio: u32, class: RegClass) -> Output {
        let mut regs: Output = parts.iter().copied().collect();
        let mut left = ratio;
        let mut bytes = class.bits() / ratio == 8;
        while left > 1 {
            let mut joined = Output::new();
            for pair in regs.chunks_exact(2) {
                let reg = if bytes { self.join_bytes(pair[0], pair[1]) } else { self.join_pair(pair) };
                joined.push(reg);
            }
            regs = joined;
            bytes = false;
            left /= 2;
        }
        regs
    }

    fn join_pair(&mut self, pair: &[VReg]) -> VReg {
        let class = match self.func.class(pair[0]) {
            RegClass::B16 => RegClass::B32,
            _ => RegClass::B64,
        };
        self.pack(class, pair)
    }

    fn join_bytes(&mut self, low: VReg, high: VReg) -> VReg {
        let shifted = self.binary_imm(&[tok::SHL, tok::B16], high, 8);
        let out = self.new_reg(RegClass::B16);
        self.emit_toks(&[tok::OR, tok::B16], &[Operand::Def(out), Operand::Use(low), Operand::Use(shifted)]);
        out
    }
}
