//! Verifies an assignment without knowing how it was made.
//!
//! Data flow over the result tracks which values of the original every register holds. Where the original defines a
//! value, its register holds that value and no other does any more; a move copies what its source holds; along an edge,
//! a register that holds an argument holds the parameter as well. At a join a register holds what it holds on all
//! ways in. Every read must then find the value the original reads. If all reads do, both functions compute the same,
//! since instructions of the original are all there, in order.

use cranelift_entity::{EntityRef, SecondaryMap};
use ptxc_mir::{Block, BlockCall, Cfg, Function, Inst, Op, Operand, VReg};
use std::collections::BTreeMap;

/// The first read that finds the wrong value, or the first difference in shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{block}: {message}")]
pub struct CheckError {
    /// The block of the original.
    pub block: Block,
    /// What is wrong.
    pub message: String,
}

/// What each register holds. A register that is absent holds nothing of interest.
type State = BTreeMap<VReg, Vec<VReg>>;

/// Verifies that `result` is `original` with registers assigned.
///
/// # Errors
/// The first difference found.
pub fn check(original: &Function, result: &Function) -> Result<(), CheckError> {
    let checker = Checker { original, result, aliases: aliases(original) };
    checker.registers()?;
    checker.run()
}

/// Copies of the original that are gone in the result stand for their source.
fn aliases(original: &Function) -> SecondaryMap<VReg, Option<VReg>> {
    let mut aliases = SecondaryMap::new();
    for &block in &original.layout {
        for &inst in &original.blocks[block].insts {
            let data = &original.insts[inst];
            if let (Op::Copy(_), None, [Operand::Def(to), Operand::Use(from)]) =
                (data.op, data.guard, original.inst_operands(inst))
            {
                aliases[*to] = Some(*from);
            }
        }
    }
    aliases
}

struct Checker<'a> {
    original: &'a Function,
    result: &'a Function,
    aliases: SecondaryMap<VReg, Option<VReg>>,
}

fn error(block: Block, message: String) -> CheckError {
    CheckError { block, message }
}

impl Checker<'_> {
    /// The value behind copies.
    fn value(&self, mut vreg: VReg) -> VReg {
        while let Some(next) = self.aliases[vreg] {
            vreg = next;
        }
        vreg
    }

    /// Operands differ in registers only, of the same class, and no block has parameters.
    fn registers(&self) -> Result<(), CheckError> {
        for &block in &self.result.layout {
            if !self.result.blocks[block].params.is_empty() {
                return Err(error(block, "still has parameters".into()));
            }
            for &inst in &self.result.blocks[block].insts {
                for operand in self.result.inst_operands(inst) {
                    if let Operand::DefUse { def, used } = operand
                        && def != used
                    {
                        return Err(error(block, format!("{inst}: a tie in two registers")));
                    }
                }
            }
        }
        Ok(())
    }

    fn run(&self) -> Result<(), CheckError> {
        let Some(entry) = self.original.entry() else { return Ok(()) };
        if self.result.entry() != Some(entry) {
            return Err(error(entry, "is no longer the entry".into()));
        }
        let cfg = Cfg::compute(self.original);
        let mut at_entry: SecondaryMap<Block, Option<State>> = SecondaryMap::new();
        at_entry[entry] = Some(State::new());
        // States only lose values, so this ends.
        let mut work = vec![entry];
        let mut queued: SecondaryMap<Block, bool> = SecondaryMap::new();
        while let Some(block) = work.pop() {
            queued[block] = false;
            let Some(mut state) = at_entry[block].clone() else { continue };
            self.block(block, &mut state, None)?;
            let mut failed = None;
            self.edges(block, &state, |target, state| match state {
                Ok(state) => {
                    if join(&mut at_entry[target], state) && !queued[target] {
                        queued[target] = true;
                        work.push(target);
                    }
                }
                Err(e) => failed = failed.take().or(Some(e)),
            });
            if let Some(e) = failed {
                return Err(e);
            }
        }
        // States are final now: reads are judged.
        for block in cfg.reverse_postorder() {
            let Some(mut state) = at_entry[block].clone() else {
                return Err(error(block, "is not reached any more".into()));
            };
            let mut wrong = None;
            self.block(block, &mut state, Some(&mut wrong))?;
            let terminator = &self.original.blocks[block].terminator;
            let found = self.result.blocks[block].terminator.condition();
            if let (Some(value), Some(register)) = (terminator.condition(), found) {
                self.read(block, "the terminator", value, register, &state, &mut wrong);
            }
            if let Some(e) = wrong {
                return Err(e);
            }
        }
        Ok(())
    }

    /// Runs a block's instructions; reads are judged when `wrong` is given.
    fn block(
        &self,
        block: Block,
        state: &mut State,
        mut wrong: Option<&mut Option<CheckError>>,
    ) -> Result<(), CheckError> {
        let is_alias = |inst: Inst| {
            self.original.inst_operands(inst).first().and_then(|o| o.def()).is_some_and(|v| self.aliases[v].is_some())
        };
        let mut expected = self.original.blocks[block].insts.iter().copied().filter(|&inst| !is_alias(inst)).peekable();
        for &inst in &self.result.blocks[block].insts {
            if expected.next_if_eq(&inst).is_some() {
                self.instruction(block, inst, state, wrong.as_deref_mut())?;
            } else {
                self.inserted(block, inst, state)?;
            }
        }
        match expected.next() {
            Some(missing) => Err(error(block, format!("{missing} is missing or out of order"))),
            None => Ok(()),
        }
    }

    /// An instruction that the original does not have must be a move.
    fn inserted(&self, block: Block, inst: Inst, state: &mut State) -> Result<(), CheckError> {
        if inst.index() < self.original.insts.len() {
            return Err(error(block, format!("{inst} is out of order")));
        }
        match (self.result.insts[inst].op, self.result.insts[inst].guard, self.result.inst_operands(inst)) {
            (Op::Copy(class), None, &[Operand::Def(to), Operand::Use(from)]) => {
                if self.result.vregs[to] != class || self.result.vregs[from] != class {
                    return Err(error(block, format!("{inst} moves between classes")));
                }
                let held = state.get(&from).cloned().unwrap_or_default();
                state.insert(to, held);
                Ok(())
            }
            _ => Err(error(block, format!("{inst} is neither of the original nor a move"))),
        }
    }

    fn instruction(
        &self,
        block: Block,
        inst: Inst,
        state: &mut State,
        wrong: Option<&mut Option<CheckError>>,
    ) -> Result<(), CheckError> {
        let (old, new) = (self.original.inst_operands(inst), self.result.inst_operands(inst));
        let mut reads: Vec<(VReg, VReg)> = Vec::new();
        let mut writes: Vec<(VReg, VReg)> = Vec::new();
        match (self.original.insts[inst].guard, self.result.insts[inst].guard) {
            (Some(a), Some(b)) if a.negated == b.negated => reads.push((a.pred, b.pred)),
            (None, None) => {}
            _ => return Err(error(block, format!("{inst} changed its guard"))),
        }
        if old.len() != new.len() {
            return Err(error(block, format!("{inst} changed its operands")));
        }
        for (&a, &b) in old.iter().zip(new) {
            match (a, b) {
                (Operand::Use(v), Operand::Use(r))
                | (Operand::UseNot(v), Operand::UseNot(r))
                | (Operand::UseMinus(v), Operand::UseMinus(r)) => reads.push((v, r)),
                (Operand::Def(v), Operand::Def(r)) => writes.push((v, r)),
                (Operand::DefUse { def, used }, Operand::DefUse { def: r, .. }) => {
                    reads.push((used, r));
                    writes.push((def, r));
                }
                _ if a == b && a.reg().is_none() => {}
                _ => return Err(error(block, format!("{inst} changed an operand"))),
            }
        }
        for &(value, register) in reads.iter().chain(&writes) {
            if self.original.vregs[value] != self.result.vregs[register] {
                return Err(error(block, format!("{inst}: {value} changed its class")));
            }
        }
        if let Some(wrong) = wrong {
            for &(value, register) in &reads {
                self.read(block, "an instruction", value, register, state, wrong);
            }
        }
        let opaque = matches!(self.original.insts[inst].op, Op::Asm(_));
        for (i, &(value, register)) in writes.iter().enumerate() {
            let clash = writes[..i].iter().any(|&(_, other)| other == register)
                || (opaque
                    && reads
                        .iter()
                        .any(|&(v, r)| r == register && !old.contains(&Operand::DefUse { def: value, used: v })));
            if clash {
                return Err(error(block, format!("{inst} writes {register} twice or too early")));
            }
            for held in state.values_mut() {
                held.retain(|&v| v != value);
            }
            state.insert(register, vec![value]);
        }
        Ok(())
    }

    fn read(
        &self,
        block: Block,
        who: &str,
        value: VReg,
        register: VReg,
        state: &State,
        wrong: &mut Option<CheckError>,
    ) {
        let value = self.value(value);
        if wrong.is_none() && !state.get(&register).is_some_and(|held| held.contains(&value)) {
            let held = state.get(&register);
            *wrong = Some(error(block, format!("{who} reads {register} for {value}, which holds {held:?}")));
        }
    }

    /// Calls `f` with each successor of the original and the state at its entry along that edge.
    fn edges(&self, block: Block, state: &State, mut f: impl FnMut(Block, Result<State, CheckError>)) {
        let mut old: Vec<BlockCall> = Vec::new();
        self.original.blocks[block].terminator.for_each_target(|t| old.push(t));
        let mut new: Vec<BlockCall> = Vec::new();
        self.result.blocks[block].terminator.for_each_target(|t| new.push(t));
        if old.len() != new.len() {
            f(block, Err(error(block, "changed its number of targets".into())));
            return;
        }
        for (old, new) in old.into_iter().zip(new) {
            f(old.block, self.edge(block, old, new.block, state.clone()));
        }
    }

    fn edge(&self, block: Block, old: BlockCall, new: Block, mut state: State) -> Result<State, CheckError> {
        if new != old.block {
            // A block on the edge holds moves and a jump.
            for &inst in &self.result.blocks[new].insts {
                self.inserted(block, inst, &mut state)?;
            }
            match &self.result.blocks[new].terminator {
                ptxc_mir::Terminator::Jump(t) if t.block == old.block && new.index() >= self.original.blocks.len() => {}
                _ => return Err(error(block, format!("{new} does not lead to {}", old.block))),
            }
        }
        let params = &self.original.blocks[old.block].params;
        let args: Vec<VReg> = self.original.call_args(old).iter().map(|&a| self.value(a)).collect();
        for held in state.values_mut() {
            let added: Vec<VReg> =
                params.iter().zip(&args).filter(|(_, arg)| held.contains(arg)).map(|(&param, _)| param).collect();
            held.retain(|v| !params.contains(v));
            held.extend(added);
            held.sort_unstable();
        }
        Ok(state)
    }
}

/// Intersects what is held. Returns whether the state at entry changed.
fn join(at_entry: &mut Option<State>, mut incoming: State) -> bool {
    incoming.retain(|_, held| !held.is_empty());
    let Some(state) = at_entry else {
        *at_entry = Some(incoming);
        return true;
    };
    let mut changed = false;
    state.retain(|register, held| {
        let before = held.len();
        match incoming.get(register) {
            Some(other) => held.retain(|v| other.contains(v)),
            None => held.clear(),
        }
        changed |= held.len() != before;
        !held.is_empty()
    });
    changed
}
