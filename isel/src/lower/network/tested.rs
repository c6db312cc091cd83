//! Logic that is only compared with zero, joined with another condition: `lop3` gives the predicate as well (PTX ISA 9.7.8, lop3).

use ptxc_ir::{Extra, Inst, IntCC, Opcode, Type, Value};
use ptxc_mir::{GroupKind, Operand, RegClass};
use ptxc_targets::{Tok, tok};
use smallvec::SmallVec;

use super::Plan;
use super::emit::filler;
use crate::lower::Lower;
use crate::rules::Pattern;

/// A condition on the result of logic, and the one that it is joined with.
struct Tested {
    /// The operation on both conditions.
    joins: Tok,
    /// The logic.
    logic: Inst,
    /// The other condition.
    other: Value,
}

impl Lower<'_> {
    /// Selects two joined conditions one of which asks whether the result of logic is not zero. Tells whether it did.
    pub(in crate::lower) fn tested_logic(&mut self, inst: Inst) -> bool {
        let Some(tested) = self.find_tested(inst) else { return false };
        let toks = [tok::LOP3, tested.joins, tok::B32];
        if !self.env.dialect.has_some_form(&toks) {
            return false;
        }
        let Some((table, mut operands)) = self.last_table(tested.logic) else { return false };
        operands.resize(3, filler(&operands));
        let (other, result) = (self.reg_of(tested.other), self.new_reg(RegClass::Pred));
        let mut list: SmallVec<[Operand; 8]> =
            SmallVec::from_slice(&[Operand::Open(GroupKind::Pair, 2), Operand::Sink, Operand::Def(result)]);
        list.extend_from_slice(&operands);
        list.extend_from_slice(&[Operand::Imm(i64::from(table)), Operand::Use(other)]);
        self.note(Pattern::Lop3Tested);
        self.emit_toks(&toks, &list);
        self.bind(inst, &[result]);
        true
    }

    /// The two conditions of an `and` or `or`, or of a choice that is one.
    fn find_tested(&self, inst: Inst) -> Option<Tested> {
        let data = &self.ir.dfg.insts[inst];
        if data.ty != Type::I1 {
            return None;
        }
        let (a, b) = (self.arg(inst, 0), self.arg(inst, 1));
        let (joins, a, b) = match data.op {
            Opcode::And => (tok::AND, a, b),
            Opcode::Or => (tok::OR, a, b),
            Opcode::Select => {
                let c = self.arg(inst, 2);
                if self.const_i64(c) == Some(0) {
                    (tok::AND, a, b)
                } else if self.ir.dfg.as_bits(b) == Some(1) {
                    (tok::OR, a, c)
                } else {
                    return None;
                }
            }
            _ => return None,
        };
        [(a, b), (b, a)].into_iter().find_map(|(test, other)| {
            let logic = self.logic_not_zero(test)?;
            self.ir.dfg.as_const(other).is_none().then_some(Tested { joins, logic, other })
        })
    }

    /// The logic of 32 bits that a condition alone compares with zero.
    fn logic_not_zero(&self, test: Value) -> Option<Inst> {
        let compare = self.single_use(test)?;
        let data = &self.ir.dfg.insts[compare];
        let differs = data.op == Opcode::Icmp && matches!(data.extra, Extra::IntCC(IntCC::Ne));
        if !differs || self.const_i64(self.arg(compare, 1)) != Some(0) {
            return None;
        }
        let logic = self.single_use(self.arg(compare, 0))?;
        let data = &self.ir.dfg.insts[logic];
        let is_logic = matches!(data.op, Opcode::And | Opcode::Or | Opcode::Xor) && data.ty == Type::I32;
        let planned = match self.network.plans.get(&logic) {
            None | Some(Plan::One(..) | Plan::Two(..)) => true,
            Some(Plan::Bytes(_) | Plan::Dot(_)) => false,
        };
        (is_logic && planned).then_some(logic)
    }

    /// The table of a logic operation and what it reads, all before it computed.
    fn last_table(&mut self, logic: Inst) -> Option<(u8, SmallVec<[Operand; 4]>)> {
        match self.network.plans.get(&logic).cloned() {
            Some(Plan::One(table, sources)) => Some((table, sources.iter().map(|source| self.word(*source)).collect())),
            Some(Plan::Two(inner, sources, outer, beside)) => {
                let inside: SmallVec<[Operand; 3]> = sources.iter().map(|source| self.word(*source)).collect();
                let mut operands: SmallVec<[Operand; 4]> = SmallVec::from_slice(&[self.emit_table(inner, &inside)]);
                operands.extend(beside.iter().map(|source| self.word(*source)));
                Some((outer, operands))
            }
            Some(_) => None,
            None => {
                let (a, b) = (self.arg(logic, 0), self.arg(logic, 1));
                let table = match self.ir.dfg.insts[logic].op {
                    Opcode::And => 0xc0,
                    Opcode::Or => 0xfc,
                    _ => 0x3c,
                };
                Some((table, SmallVec::from_slice(&[Operand::Use(self.reg_of(a)), self.source(b)])))
            }
        }
    }
}
