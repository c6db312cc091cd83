//! Selects what has a plan.

use ptxc_ir::{Inst, Value};
use ptxc_mir::{Operand, RegClass, VReg};
use ptxc_targets::{Tok, tok};
use smallvec::SmallVec;

use super::bytes::{self, Word, WordPlan};
use super::dot::{Dot, Kind, Term};
use super::{Plan, Source};
use crate::lower::Lower;
use crate::rules::Pattern;

impl Lower<'_> {
    /// Selects an operation that has a plan. Tells whether it did.
    pub(in crate::lower) fn planned(&mut self, inst: Inst) -> bool {
        let Some(plan) = self.network.plans.get(&inst).cloned() else { return false };
        self.note_plan(&plan, inst);
        if let Plan::Bytes(words) = &plan {
            let parts: SmallVec<[VReg; 2]> = words.iter().map(|word| self.emit_word(word)).collect();
            let result = if let [only] = parts[..] { only } else { self.pack(RegClass::B64, &parts) };
            self.bind(inst, &[result]);
            return true;
        }
        if let Plan::Dot(dot) = &plan {
            let result = self.emit_dot(dot);
            self.bind(inst, &[result]);
            return true;
        }
        let result = match self.planned_class(inst) {
            Some(RegClass::B32) => {
                let operands = plan.sources().map(|source| self.word(source)).collect();
                let result = self.emit_tables(&plan, operands);
                self.word_register(result)
            }
            Some(RegClass::B64) => {
                let halves: SmallVec<[[Operand; 2]; 5]> =
                    plan.sources().map(|source| self.word_halves(source)).collect();
                let parts = [0, 1].map(|half| {
                    let result = self.emit_tables(&plan, halves.iter().map(|h| h[half]).collect());
                    self.word_register(result)
                });
                self.pack(RegClass::B64, &parts)
            }
            _ => return false,
        };
        self.bind(inst, &[result]);
        true
    }

    fn note_plan(&mut self, plan: &Plan, inst: Inst) {
        match plan {
            Plan::One(_, sources) if sources.len() < 3 => self.note(Pattern::Lop3OfTwo),
            Plan::One(..) => self.note(Pattern::Lop3),
            Plan::Two(..) => self.note(Pattern::Lop3Twice),
            Plan::Bytes(words) => {
                for word in words {
                    self.note(match word {
                        WordPlan::Ready(_) => Pattern::PrmtWord,
                        WordPlan::Steps(steps) if steps.len() == 1 => Pattern::Prmt,
                        WordPlan::Steps(_) => Pattern::PrmtSteps,
                    });
                }
                if words.len() > 1 {
                    self.note(Pattern::PrmtHalves);
                }
                return;
            }
            Plan::Dot(dot) => return self.note_dot(dot),
        }
        if self.planned_class(inst) == Some(RegClass::B64) {
            self.note(Pattern::Lop3Halves);
        }
    }

    fn note_dot(&mut self, dot: &Dot) {
        for group in &dot.groups {
            let ones = |word: &WordPlan| matches!(word, WordPlan::Ready(Word::Constant(n)) if n & !0x0101_0101 == 0);
            if group.kind == Kind::Products && group.words.iter().any(ones) {
                self.note(Pattern::Dp4aBytes);
            }
            if group.high {
                self.note(Pattern::Dp2aHigh);
            }
            self.note(match (group.kind, group.signed) {
                (Kind::Differences, _) => Pattern::SadBytes,
                (Kind::Halves, [false, false]) => Pattern::Dp2aUnsigned,
                (Kind::Halves, [true, true]) => Pattern::Dp2aSigned,
                (Kind::Halves, _) => Pattern::Dp2aMixed,
                (Kind::Products, [false, false]) => Pattern::Dp4aUnsigned,
                (Kind::Products, [true, true]) => Pattern::Dp4aSigned,
                (Kind::Products, _) => Pattern::Dp4aMixed,
            });
        }
        if dot.groups.len() > 1 {
            self.note(Pattern::Dp4aChain);
        }
        if dot.rest.iter().any(|term| matches!(term, Term::Product(..))) {
            self.note(Pattern::Dp4aProduct);
        }
    }

    pub(super) fn word(&mut self, source: Source) -> Operand {
        match source {
            Source::Constant(bits) => Operand::Imm(bits),
            Source::Value(value) => Operand::Use(self.reg_of(value)),
        }
    }

    /// The low and the high word of 64 bits.
    fn word_halves(&mut self, source: Source) -> [Operand; 2] {
        match source {
            Source::Constant(bits) => [Operand::Imm(i64::from(bits as i32)), Operand::Imm(bits >> 32)],
            Source::Value(value) => {
                let reg = self.reg_of(value);
                let parts = self.unpack(reg, RegClass::B32);
                [Operand::Use(parts[0]), Operand::Use(parts[1])]
            }
        }
    }

    fn emit_tables(&mut self, plan: &Plan, operands: SmallVec<[Operand; 5]>) -> Operand {
        match plan {
            Plan::One(table, _) => self.emit_table(*table, &operands),
            Plan::Two(inner, _, outer, _) => {
                let (inside, beside) = operands.split_at(3);
                let inner = self.emit_table(*inner, inside);
                let mut operands: SmallVec<[Operand; 3]> = SmallVec::from_slice(&[inner]);
                operands.extend_from_slice(beside);
                self.emit_table(*outer, &operands)
            }
            Plan::Bytes(_) | Plan::Dot(_) => Operand::Imm(0),
        }
    }

    fn word_register(&mut self, operand: Operand) -> VReg {
        match operand {
            Operand::Imm(bits) => self.load_immediate(RegClass::B32, bits),
            other => other.used().unwrap_or_else(|| self.new_reg(RegClass::B32)),
        }
    }

    /// `lop3`, or the plain instruction that a table of fewer than three operands is. The table is the one of PTX. Of a
    /// constant of 64 bits a half may be all zeros or ones: that operand goes, and perhaps the instruction.
    pub(super) fn emit_table(&mut self, mut table: u8, operands: &[Operand]) -> Operand {
        let mut operands: SmallVec<[Operand; 4]> = SmallVec::from_slice(operands);
        while let Some(at) = operands.iter().position(|o| matches!(o, Operand::Imm(0 | -1))) {
            table = without_operand(table, at, operands[at] == Operand::Imm(-1));
            operands.remove(at);
        }
        match (table, &operands[..]) {
            (0x00, _) => return Operand::Imm(0),
            (0xff, _) => return Operand::Imm(-1),
            (0xf0, [only, ..]) | (0xcc, [_, only, ..]) => return *only,
            _ => {}
        }
        let out = self.new_reg(RegClass::B32);
        let plain = match (&operands[..], table) {
            ([_, _], 0xc0) => Some(tok::AND),
            ([_, _], 0xfc) => Some(tok::OR),
            ([_, _], 0x3c) => Some(tok::XOR),
            ([_], 0x0f) => Some(tok::NOT),
            _ => None,
        };
        let mut list: SmallVec<[Operand; 6]> = SmallVec::from_slice(&[Operand::Def(out)]);
        list.extend_from_slice(&operands);
        match plain {
            Some(head) => self.emit_toks(&[head, tok::B32], &list),
            None => {
                list.resize(4, filler(&operands));
                list.push(Operand::Imm(i64::from(table)));
                self.emit_toks(&[tok::LOP3, tok::B32], &list);
            }
        }
        Operand::Use(out)
    }

    fn emit_dot(&mut self, dot: &Dot) -> VReg {
        let mut sum: Option<Operand> = None;
        for term in &dot.rest {
            sum = Some(match (*term, sum) {
                (Term::Value(value), None) => self.source(value),
                (Term::Value(value), Some(sum)) => {
                    let value = self.source(value);
                    self.emit_sum(&[tok::ADD, tok::S32], &[sum, value])
                }
                (Term::Product(a, b), sum) => {
                    let (a, b) = (self.source(a), self.source(b));
                    self.emit_sum(&[tok::MAD, tok::LO, tok::S32], &[a, b, sum.unwrap_or(Operand::Imm(0))])
                }
            });
        }
        let mut sum = sum.unwrap_or(Operand::Imm(0));
        for group in &dot.groups {
            let [a, b] = [0, 1].map(|side| Operand::Use(self.emit_word(&group.words[side])));
            let kind = group.signed.map(|signed| if signed { tok::S32 } else { tok::U32 });
            sum = match group.kind {
                Kind::Products => self.emit_sum(&[tok::DP4A, kind[0], kind[1]], &[a, b, sum]),
                Kind::Halves => {
                    let half = if group.high { tok::HI } else { tok::LO };
                    self.emit_sum(&[tok::DP2A, half, kind[0], kind[1]], &[a, b, sum])
                }
                Kind::Differences => {
                    // It takes no immediate.
                    let sum = match sum {
                        Operand::Imm(bits) => Operand::Use(self.load_immediate(RegClass::B32, bits)),
                        other => other,
                    };
                    self.emit_sum(&[tok::VABSDIFF4, tok::U32, kind[0], kind[1], tok::ADD], &[a, b, sum])
                }
            };
        }
        sum.used().unwrap_or_else(|| self.new_reg(RegClass::B32))
    }

    fn emit_sum(&mut self, toks: &[Tok], sources: &[Operand]) -> Operand {
        let out = self.new_reg(RegClass::B32);
        let mut operands: SmallVec<[Operand; 4]> = SmallVec::from_slice(&[Operand::Def(out)]);
        operands.extend_from_slice(sources);
        self.emit_toks(toks, &operands);
        Operand::Use(out)
    }

    /// The register of a word arranged from bytes.
    fn emit_word(&mut self, plan: &WordPlan) -> VReg {
        let steps = match plan {
            WordPlan::Ready(Word::Constant(bits)) => {
                return self.load_immediate(RegClass::B32, i64::from(*bits as i32));
            }
            WordPlan::Ready(word) => {
                let operand = self.word_operand(*word);
                return operand.used().unwrap_or_else(|| self.new_reg(RegClass::B32));
            }
            WordPlan::Steps(steps) => steps,
        };
        let mut results: SmallVec<[VReg; 4]> = SmallVec::new();
        for step in steps {
            let [a, b] = [step.a, step.b].map(|source| match source {
                bytes::Source::Word(word) => self.word_operand(word),
                bytes::Source::Step(number) => Operand::Use(results[usize::from(number)]),
            });
            let out = self.new_reg(RegClass::B32);
            let selector = Operand::Imm(i64::from(step.selector));
            self.emit_toks(&[tok::PRMT, tok::B32], &[Operand::Def(out), a, b, selector]);
            results.push(out);
        }
        results.last().copied().unwrap_or_else(|| self.new_reg(RegClass::B32))
    }

    fn word_operand(&mut self, word: Word) -> Operand {
        match word {
            Word::Constant(bits) => Operand::Imm(i64::from(bits as i32)),
            Word::Of(number, half) => {
                let reg = self.reg_of(Value::from_u32(number));
                match self.func.class(reg) {
                    RegClass::B64 => Operand::Use(self.unpack(reg, RegClass::B32)[usize::from(half)]),
                    _ => Operand::Use(reg),
                }
            }
        }
    }
}

/// What stands where a table does not ask: a register, since the machine takes one constant and brings another into a register.
pub(super) fn filler(operands: &[Operand]) -> Operand {
    let register = operands.iter().find(|operand| matches!(operand, Operand::Use(_)));
    register.or(operands.last()).copied().unwrap_or(Operand::Imm(0))
}

/// The table of the other operands where one is all zeros or all ones.
fn without_operand(table: u8, at: usize, ones: bool) -> u8 {
    let mut out = 0;
    for index in 0..8u8 {
        // Bit 2 of an index is the first operand.
        let bit = |operand: usize| index >> (2 - operand) & 1;
        let mut source = 0u8;
        for operand in 0..3 {
            let value = match operand {
                _ if operand == at => u8::from(ones),
                _ if operand > at => bit(operand - 1),
                _ => bit(operand),
            };
            source |= value << (2 - operand);
        }
        out |= (table >> source & 1) << index;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::without_operand;

    #[test]
    fn operands_of_one_value_go() {
        // (a & !c) | b
        let table = (0xf0 & !0xaa) | 0xcc;
        assert_eq!(without_operand(table, 2, false), 0xf0 | 0xcc);
        assert_eq!(without_operand(table, 2, true), 0xcc);
        assert_eq!(without_operand(table, 0, true), !0xcc | 0xf0);
        assert_eq!(without_operand(table, 1, false), 0xf0 & !0xcc);
        assert_eq!(without_operand(0xf0 ^ 0xcc, 0, true), !0xf0);
    }
}
