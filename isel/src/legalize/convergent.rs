//! Exchange between threads of values that are not one 32-bit register.
//!
//! The pieces of a value are exchanged one after the other by the same operation with the same lanes and mask, in the
//! same block: no operation gains or loses control dependence.

use ptxc_ir::{Extra, Flags, Inst, IntCC, Opcode, Type, Value};

use super::bits::BitString;
use super::context::Context;
use crate::rules::Pattern;

impl Context<'_> {
    /// `shfl.*`, `match.any`, `match.all`.
    pub fn visit_exchange(&mut self, inst: Inst) {
        match self.func.dfg.insts[inst].op {
            Opcode::MatchAny | Opcode::MatchAll => self.visit_match(inst),
            _ => self.visit_shuffle(inst),
        }
    }

    fn visit_shuffle(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        if data.ty.bits() == 32 && self.features.legal_value(data.ty) {
            return;
        }
        let args = self.args(inst);
        let parts = self.parts_of(args[0]);
        let mut source = self.bits_of_parts(data.ty, &parts);
        self.note(Pattern::LegalExchangeWords);
        let mut received = BitString::default();
        let mut in_range = None;
        let mut left = data.ty.bits();
        let with_predicate = self.func.dfg.num_results(inst) == 2;
        while left > 0 {
            let bits = left.min(32);
            left -= bits;
            let piece = self.take_bits(&mut source, bits);
            let word = self.resize(piece, Type::I32);
            let want = with_predicate && in_range.is_none();
            let types: &[Type] = if want { &[Type::I32, Type::I1] } else { &[Type::I32] };
            let operands = [word, args[1], args[2], args[3]];
            let new = self.builder().inst_with_results(data.op, data.flags, Type::I32, &operands, Extra::None, types);
            if want {
                in_range = Some(self.func.dfg.result(new, 1));
            }
            let word = self.func.dfg.result(new, 0);
            self.push_bits(&mut received, word, bits);
        }
        let parts = self.parts_from_bits(&mut received, data.ty);
        if let Some(predicate) = in_range {
            let old = self.func.dfg.result(inst, 1);
            self.func.dfg.alias(old, predicate);
        }
        self.set_parts(self.func.dfg.result(inst, 0), &parts);
        self.func.layout.remove_inst(inst);
    }

    /// Values match when all their pieces do.
    fn visit_match(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        if matches!(data.ty, Type::I32 | Type::I64) {
            return;
        }
        self.note(Pattern::LegalMatchPieces);
        let all = data.op == Opcode::MatchAll;
        let args = self.args(inst);
        let parts = self.parts_of(args[0]);
        let mut source = self.bits_of_parts(data.ty, &parts);
        let mut left = data.ty.bits();
        let (mut mask, mut predicate): (Option<Value>, Option<Value>) = (None, None);
        while left > 0 {
            let bits = left.min(64);
            left -= bits;
            let piece = self.take_bits(&mut source, bits);
            let ty = if bits <= 32 { Type::I32 } else { Type::I64 };
            let piece = if bits < self.ty(piece).bits() { self.zero_extended(piece, bits) } else { piece };
            let piece = self.resize(piece, ty);
            let found = self.inst(data.op, Flags::EMPTY, ty, &[piece, args[1]], Extra::None);
            let here = self.func.dfg.result(found, 0);
            mask = Some(mask.map_or(here, |before| self.bin(Opcode::And, before, here)));
            if all {
                let here = self.func.dfg.result(found, 1);
                predicate = Some(predicate.map_or(here, |before| self.bin(Opcode::And, before, here)));
            }
        }
        let Some(mask) = mask else { return };
        // Every piece gives the whole mask or nothing, so their intersection is the answer in both forms.
        match predicate {
            Some(predicate) => self.replace(inst, &[mask, predicate]),
            None => self.replace(inst, &[mask]),
        }
    }

    /// `redux` over all 32 lanes, by exchanging with lanes further and further away.
    pub fn butterfly(&mut self, op: Opcode, value: Value, mask: Value) -> Value {
        self.note(Pattern::LegalReduxButterfly);
        let mut acc = value;
        let ty = self.ty(value);
        let clamp = self.imm(Type::I32, 31);
        for distance in [16, 8, 4, 2, 1] {
            let lane = self.imm(Type::I32, distance);
            let operands = [acc, lane, clamp, mask];
            let new =
                self.builder().inst_with_results(Opcode::ShflBfly, Flags::EMPTY, ty, &operands, Extra::None, &[ty]);
            let other = self.func.dfg.result(new, 0);
            acc = self.bin_flags(op, Flags::EMPTY, acc, other);
        }
        acc
    }

    /// `elect` where the target lacks it: the lowest lane of the mask, after all of them have arrived.
    pub fn elect_lowest(&mut self, inst: Inst) {
        self.note(Pattern::LegalElectLowest);
        let mask = self.args(inst)[0];
        self.inst(Opcode::BarrierWarp, Flags::EMPTY, Type::INVALID, &[mask], Extra::None);
        let lowest = self.un(Opcode::Cttz, mask);
        let Some(register) = ptxc_targets::SpecialReg::from_name("laneid") else { return };
        let lane = self.builder().sreg(register, Type::I32);
        let elected = self.icmp(IntCC::Eq, lane, lowest);
        self.replace(inst, &[lowest, elected]);
    }
}
