//! Communication between threads and special registers (PTX ISA 9.7.14 barriers, 9.7.9 shuffles, chapter 10).

use ptxc_ir::{Extra, Flags, Inst, Opcode, Space, Type};
use ptxc_mir::{GroupKind, Operand, RegClass};
use ptxc_targets::{Tok, tok};
use smallvec::SmallVec;

use super::memory::untyped_tok;
use super::{Lower, space_tok};
use crate::rules::Pattern;

type Operands = SmallVec<[Operand; 8]>;

impl Lower<'_> {
    /// Barriers, shuffles, votes, and reads of special registers.
    pub(super) fn thread_op(&mut self, inst: Inst) {
        use Opcode::*;
        let op = self.ir.dfg.insts[inst].op;
        match op {
            Sreg => self.special_register(inst),
            IsSpace => self.is_space(inst),
            Breakpoint => self.emit_toks(&[tok::BRKPT], &[]),
            BarrierSync | BarrierArrive | BarrierRedPopc | BarrierRedAnd | BarrierRedOr => self.barrier(inst),
            BarrierWarp => self.simple(inst, &[tok::BAR, tok::WARP, tok::SYNC]),
            ShflIdx => self.with_predicate(inst, &[tok::SHFL, tok::SYNC, tok::IDX, tok::B32]),
            ShflUp => self.with_predicate(inst, &[tok::SHFL, tok::SYNC, tok::UP, tok::B32]),
            ShflDown => self.with_predicate(inst, &[tok::SHFL, tok::SYNC, tok::DOWN, tok::B32]),
            ShflBfly => self.with_predicate(inst, &[tok::SHFL, tok::SYNC, tok::BFLY, tok::B32]),
            VoteAll => self.simple(inst, &[tok::VOTE, tok::SYNC, tok::ALL, tok::PRED]),
            VoteAny => self.simple(inst, &[tok::VOTE, tok::SYNC, tok::ANY, tok::PRED]),
            VoteUni => self.simple(inst, &[tok::VOTE, tok::SYNC, tok::UNI, tok::PRED]),
            VoteBallot => self.simple(inst, &[tok::VOTE, tok::SYNC, tok::BALLOT, tok::B32]),
            MatchAny => {
                let width = self.match_width(inst);
                self.simple(inst, &[tok::MATCH, tok::ANY, tok::SYNC, width]);
            }
            MatchAll => {
                let width = self.match_width(inst);
                self.with_predicate(inst, &[tok::MATCH, tok::ALL, tok::SYNC, width]);
            }
            ActiveMask => self.simple(inst, &[tok::ACTIVEMASK, tok::B32]),
            ReduxAdd => self.simple(inst, &[tok::REDUX, tok::SYNC, tok::ADD, tok::S32]),
            ReduxSmin => self.simple(inst, &[tok::REDUX, tok::SYNC, tok::MIN, tok::S32]),
            ReduxSmax => self.simple(inst, &[tok::REDUX, tok::SYNC, tok::MAX, tok::S32]),
            ReduxUmin => self.simple(inst, &[tok::REDUX, tok::SYNC, tok::MIN, tok::U32]),
            ReduxUmax => self.simple(inst, &[tok::REDUX, tok::SYNC, tok::MAX, tok::U32]),
            ReduxAnd => self.simple(inst, &[tok::REDUX, tok::SYNC, tok::AND, tok::B32]),
            ReduxOr => self.simple(inst, &[tok::REDUX, tok::SYNC, tok::OR, tok::B32]),
            ReduxXor => self.simple(inst, &[tok::REDUX, tok::SYNC, tok::XOR, tok::B32]),
            ReduxFmin => self.redux_float(inst, &[tok::MIN]),
            ReduxFmax => self.redux_float(inst, &[tok::MAX]),
            ReduxFminimum => self.redux_float(inst, &[tok::MIN, tok::PROPAGATE_NAN]),
            ReduxFmaximum => self.redux_float(inst, &[tok::MAX, tok::PROPAGATE_NAN]),
            Elect => self.with_predicate(inst, &[tok::ELECT, tok::SYNC]),
            _ => {
                let message = self.no_rule(inst);
                self.error(inst, message);
            }
        }
    }

    fn match_width(&self, inst: Inst) -> Tok {
        if self.arg_type(inst, 0).bits() == 64 { tok::B64 } else { tok::B32 }
    }

    /// All arguments as sources, in order; untyped.
    fn push_sources(&mut self, inst: Inst, operands: &mut Operands) {
        for index in 0..self.ir.dfg.args(inst).len() {
            let value = self.arg(inst, index);
            let source = self.bit_source(value);
            operands.push(source);
        }
    }

    /// An instruction with the IR's operands in order and at most one result.
    fn simple(&mut self, inst: Inst, toks: &[Tok]) {
        let mut operands = Operands::new();
        if let Some(result) = self.ir.dfg.first_result(inst) {
            operands.push(Operand::Def(self.def_regs(result)[0]));
        }
        self.push_sources(inst, &mut operands);
        self.emit_toks(toks, &operands);
    }

    /// `redux` of f32, of magnitudes where it takes them itself.
    fn redux_float(&mut self, inst: Inst, operation: &[Tok]) {
        let value = self.arg(inst, 0);
        let magnitude = self.pure_def(value).filter(|def| {
            let data = &self.ir.dfg.insts[*def];
            data.op == Opcode::Fabs && !data.flags.contains(Flags::FTZ)
        });
        let mut toks: SmallVec<[Tok; 8]> = SmallVec::from_slice(&[tok::REDUX, tok::SYNC, operation[0]]);
        toks.extend(magnitude.map(|_| tok::ABS));
        toks.extend_from_slice(&operation[1..]);
        toks.push(tok::F32);
        let value = match magnitude {
            Some(def) => {
                self.note(Pattern::ReduxMagnitude);
                self.arg(def, 0)
            }
            None => value,
        };
        let Some(result) = self.ir.dfg.first_result(inst) else { return };
        let dest = self.def_regs(result)[0];
        let source = self.reg_of(value);
        let mask = self.arg(inst, 1);
        let mask = self.bit_source(mask);
        self.emit_toks(&toks, &[Operand::Def(dest), Operand::Use(source), mask]);
    }

    /// An instruction with destination `d|p`; `p` is left out where nobody reads it and PTX allows that.
    fn with_predicate(&mut self, inst: Inst, toks: &[Tok]) {
        let mut operands = Operands::new();
        let results: SmallVec<[ptxc_ir::Value; 2]> = self.ir.dfg.results(inst).collect();
        let is_elect = self.ir.dfg.insts[inst].op == Opcode::Elect;
        let value = results.first().map(|v| (self.def_regs(*v)[0], self.is_used(*v)));
        match (value, results.get(1)) {
            (Some((reg, used)), Some(flag)) if is_elect || self.is_used(*flag) => {
                operands.push(Operand::Open(GroupKind::Pair, 2));
                operands.push(if used || !is_elect { Operand::Def(reg) } else { Operand::Sink });
                operands.push(Operand::Def(self.def_regs(*flag)[0]));
            }
            (Some((reg, _)), _) => operands.push(Operand::Def(reg)),
            (None, _) => {}
        }
        self.push_sources(inst, &mut operands);
        self.emit_toks(toks, &operands);
    }

    fn is_used(&self, value: ptxc_ir::Value) -> bool {
        self.uses[value] != super::Uses::NONE
    }

    /// `bar` is the aligned form, `barrier` the one that needs no convergence.
    fn barrier(&mut self, inst: Inst) {
        let data = &self.ir.dfg.insts[inst];
        let aligned = data.flags.contains(Flags::ALIGNED);
        let mut toks: SmallVec<[Tok; 4]> = SmallVec::new();
        toks.push(if aligned { tok::BAR } else { tok::BARRIER });
        toks.extend_from_slice(match data.op {
            Opcode::BarrierSync => &[tok::SYNC],
            Opcode::BarrierArrive => &[tok::ARRIVE],
            Opcode::BarrierRedPopc => &[tok::RED, tok::POPC, tok::U32],
            Opcode::BarrierRedAnd => &[tok::RED, tok::AND, tok::PRED],
            _ => &[tok::RED, tok::OR, tok::PRED],
        });
        self.simple(inst, &toks);
    }

    fn special_register(&mut self, inst: Inst) {
        let Extra::Sreg(register) = self.ir.dfg.insts[inst].extra else { return };
        let Some(result) = self.ir.dfg.first_result(inst) else { return };
        let name = || register.name().to_owned();
        if let Some(refusal) = self.env.dialect.judge(register.requirement(self.env.target), name) {
            self.error(inst, refusal);
            return;
        }
        let dest = self.def_regs(result);
        let class = self.func.class(dest[0]);
        if register.lanes() > 1 {
            self.error(inst, format!("{register} is a vector; read one component, as in {register}.x"));
            return;
        }
        let suffix = match class {
            RegClass::B32 => tok::U32,
            RegClass::B64 => tok::U64,
            _ => untyped_tok(class),
        };
        self.emit_toks(&[tok::MOV, suffix], &[Operand::Def(dest[0]), Operand::SReg(register)]);
    }

    fn is_space(&mut self, inst: Inst) {
        let Extra::Space(space) = self.ir.dfg.insts[inst].extra else { return };
        let Some(result) = self.ir.dfg.first_result(inst) else { return };
        let Some(piece) = space_tok(space).filter(|_| space != Space::Tensor) else {
            self.error(inst, format!("`isspace {}` is not a question PTX answers", space.name()));
            return;
        };
        let value = self.arg(inst, 0);
        if self.ty(value) != Type::PTR {
            self.error(inst, "`isspace` takes a generic pointer");
            return;
        }
        let source = self.reg_of(value);
        let dest = self.def_regs(result);
        self.emit_toks(&[tok::ISSPACEP, piece], &[Operand::Def(dest[0]), Operand::Use(source)]);
    }
}
