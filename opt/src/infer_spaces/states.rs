//! What is known of the space that each generic pointer points into.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{ConstData, Function, Inst, Opcode, Space, Type, Value};
use smallvec::SmallVec;

use crate::edit::for_each_inst;

/// What is known of a pointer, from nothing to "anything".
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum State {
    /// Nothing has reached it.
    #[default]
    Unknown,
    /// It is null, which is the same number in global memory and in no other space.
    Null,
    /// It points into this space.
    In(Space),
    /// It may point anywhere.
    Generic,
}

impl State {
    /// What holds for a pointer that is one or the other.
    fn join(self, other: State) -> State {
        match (self, other) {
            (State::Unknown, known) | (known, State::Unknown) => known,
            (a, b) if a == b => a,
            (State::Null, State::In(Space::Global)) | (State::In(Space::Global), State::Null) => {
                State::In(Space::Global)
            }
            _ => State::Generic,
        }
    }
}

/// What is known of every generic pointer of a function.
pub struct States {
    of: SecondaryMap<Value, State>,
}

/// One pointer is, or is derived from, another.
#[derive(Clone, Copy)]
struct Step {
    from: Value,
    to: Value,
    /// By address arithmetic. A null pointer that moves is no pointer that is known.
    moved: bool,
}

impl States {
    /// The space that a generic pointer points into, if it is one only.
    pub fn space(&self, value: Value) -> Option<Space> {
        match self.of[value] {
            State::In(space) => Some(space),
            _ => None,
        }
    }

    /// Finds what is known in a function whose uses name no aliases.
    pub fn find(func: &Function) -> States {
        let mut states = States { of: SecondaryMap::with_capacity(func.dfg.num_values()) };
        let mut steps: Vec<Step> = Vec::new();
        if let Some(entry) = func.layout.entry() {
            for param in func.dfg.block_params(entry) {
                states.of[*param] = State::Generic;
            }
        }
        for_each_inst(func, |inst| states.visit(func, inst, &mut steps));
        states.propagate(func, &steps);
        states
    }

    /// Notes what an instruction makes, and what follows from what.
    fn visit(&mut self, func: &Function, inst: Inst, steps: &mut Vec<Step>) {
        let dfg = &func.dfg;
        let derived = derived_from(func, inst);
        if derived.is_empty() {
            for result in dfg.results(inst).filter(|result| dfg.ty(*result) == Type::PTR) {
                self.of[result] = space_of_cast(func, inst).map_or(State::Generic, State::In);
            }
        } else {
            let (to, moved) = (dfg.result(inst, 0), dfg.insts[inst].op == Opcode::Gep);
            steps.extend(derived.iter().map(|from| Step { from: *from, to, moved }));
        }
        dfg.for_each_target(inst, |target| {
            let params = dfg.block_params(target.block);
            for (arg, param) in target.args.as_slice(&dfg.pool).iter().zip(params) {
                if dfg.ty(*param) == Type::PTR {
                    steps.push(Step { from: *arg, to: *param, moved: false });
                }
            }
        });
    }

    /// Follows the steps until nothing changes.
    fn propagate(&mut self, func: &Function, steps: &[Step]) {
        // The steps from each value lie side by side in `order`, from `first` of it on.
        let mut order: Vec<Step> = steps.to_vec();
        order.sort_by_key(|step| step.from);
        let mut first: SecondaryMap<Value, u32> = SecondaryMap::with_capacity(func.dfg.num_values());
        let mut work: Vec<Value> = Vec::new();
        let mut previous = None;
        for (at, step) in order.iter().enumerate() {
            if previous != Some(step.from) {
                previous = Some(step.from);
                first[step.from] = at as u32 + 1;
                if let Some(data) = func.dfg.as_const(step.from) {
                    self.of[step.from] = match data {
                        ConstData::Poison => State::Unknown,
                        ConstData::Bits(0) => State::Null,
                        _ => State::Generic,
                    };
                }
                if self.of[step.from] != State::Unknown {
                    work.push(step.from);
                }
            }
        }
        while let Some(from) = work.pop() {
            let Some(at) = (first[from] as usize).checked_sub(1) else { continue };
            let state = self.of[from];
            for step in order[at..].iter().take_while(|step| step.from == from) {
                let state = if step.moved && state == State::Null { State::Unknown } else { state };
                let joined = self.of[step.to].join(state);
                if joined != self.of[step.to] {
                    self.of[step.to] = joined;
                    work.push(step.to);
                }
            }
        }
    }
}

/// The generic pointers that the generic pointer an instruction makes is one of, or derived from.
pub fn derived_from(func: &Function, inst: Inst) -> SmallVec<[Value; 2]> {
    let dfg = &func.dfg;
    let mut out = SmallVec::new();
    if dfg.first_result(inst).is_none_or(|result| dfg.ty(result) != Type::PTR) {
        return out;
    }
    let args = dfg.args(inst);
    match dfg.insts[inst].op {
        Opcode::Gep | Opcode::Freeze => out.extend(args.first().copied()),
        Opcode::Select => out.extend(args.iter().skip(1).copied()),
        _ => {}
    }
    out
}

/// The space of a pointer that is cast to the generic space.
pub fn space_of_cast(func: &Function, inst: Inst) -> Option<Space> {
    let data = &func.dfg.insts[inst];
    if data.op != Opcode::Addrspacecast || data.ty != Type::PTR {
        return None;
    }
    let from = func.dfg.ty(*func.dfg.args(inst).first()?);
    from.space().filter(|space| !from.is_vector() && !matches!(space, Space::Generic | Space::Tensor))
}
