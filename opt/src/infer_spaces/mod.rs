//! Gives generic pointers the type of the one space that they can point into.
//!
//! A pointer that `gep`, `select`, `freeze` and block parameters derive from casts of pointers into one space points into that
//! space, around loops too. Accesses through it are then of that space, which is cheaper than a generic access: no window is
//! looked up, and only accesses of global memory can be read through its own path.
//!
//! What is known is found optimistically ([`states`]): every pointer begins with nothing known and is refined at most three
//! times, so the time is linear. Only pointers that an access gains by change their type; where one of them is used in
//! another way, it is cast to the generic space right there.

mod states;

use cranelift_entity::SecondaryMap;
use ptxc_ir::{
    Block, CacheOp, ConstData, Extra, Function, FunctionBuilder, Inst, IntCC, L1Evict, L2Evict, MemAttrs, Opcode,
    Space, Type, Value, ValueDef,
};
use smallvec::SmallVec;

use crate::edit::{for_each_inst, incoming_arguments, resolve_all_uses};
use crate::pass::Context;
use crate::rules::Rule;
use states::States;

/// The pass.
pub fn infer_spaces(func: &mut Function, ctx: &Context<'_>) -> bool {
    let mut casts = false;
    for_each_inst(func, |inst| casts |= states::space_of_cast(func, inst).is_some());
    if !casts {
        return false;
    }
    resolve_all_uses(func);
    let states = States::find(func);
    let wanted = wanted(func, ctx, &states);
    if wanted.values.is_empty() {
        return false;
    }
    for value in &wanted.values {
        retype(func, *value, &states);
    }
    let mut rewriter =
        Rewriter { states: &states, wanted: &wanted.marks, casts: SecondaryMap::new(), done: Vec::new() };
    let mut block = func.layout.entry();
    while let Some(current) = block {
        let mut next = func.layout.first_inst(current);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            rewriter.instruction(func, current, inst);
        }
        block = func.layout.next_block(current);
    }
    for inst in rewriter.done {
        func.layout.remove_inst(inst);
    }
    resolve_all_uses(func);
    true
}

/// The pointers that change their type.
struct Wanted {
    marks: SecondaryMap<Value, bool>,
    values: Vec<Value>,
}

/// Finds the pointers of known space that an access, or a cast to that space, gains by.
fn wanted(func: &Function, ctx: &Context<'_>, states: &States) -> Wanted {
    let mut wanted = Wanted { marks: SecondaryMap::new(), values: Vec::new() };
    let mut work: Vec<Value> = Vec::new();
    for_each_inst(func, |inst| {
        let mut gains = false;
        for (index, value) in func.dfg.args(inst).iter().enumerate() {
            if let Some(space) = states.space(*value)
                && use_of(func, inst, index, space) == Use::Gains
            {
                work.push(*value);
                gains = true;
            }
        }
        if gains {
            ctx.note(inst, Rule::SpaceInferred);
        }
    });
    if work.is_empty() {
        return wanted;
    }
    let incoming = incoming_arguments(func);
    while let Some(value) = work.pop() {
        if states.space(value).is_none() || std::mem::replace(&mut wanted.marks[value], true) {
            continue;
        }
        wanted.values.push(value);
        match func.dfg.def(value) {
            ValueDef::Param(block, index) => {
                work.extend(incoming[block].iter().filter_map(|args| args.get(usize::from(index), &func.dfg.pool)));
            }
            ValueDef::Result(inst, _) => work.extend(states::derived_from(func, inst).iter().copied()),
            ValueDef::Const(_) | ValueDef::Alias(_) => {}
        }
    }
    wanted
}

/// Changes the type of a pointer, and of the instruction that makes it. A cast stays: what it casts takes its place.
fn retype(func: &mut Function, value: Value, states: &States) {
    let Some(space) = states.space(value) else { return };
    let inst = match func.dfg.def(value) {
        ValueDef::Result(inst, _) => Some(inst),
        _ => None,
    };
    match inst.map(|inst| (inst, func.dfg.insts[inst].op)) {
        Some((_, Opcode::Addrspacecast)) => return,
        Some((inst, Opcode::Select | Opcode::Freeze)) => func.dfg.insts[inst].ty = Type::ptr(space),
        _ => {}
    }
    func.dfg.set_ty(value, Type::ptr(space));
}

/// What an instruction does with a pointer that could be one into a space.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It accesses memory through it, or casts it to that space.
    Gains,
    /// It takes pointers into the space as well as generic ones.
    Takes,
    /// It makes another pointer of it.
    Derives,
    /// It needs a generic one.
    Generic,
}

fn use_of(func: &Function, inst: Inst, index: usize, space: Space) -> Use {
    let data = &func.dfg.insts[inst];
    let gains = |yes: bool| if yes { Use::Gains } else { Use::Generic };
    match (data.op, &data.extra) {
        (Opcode::Gep, _) if index == 0 => Use::Derives,
        (Opcode::Freeze, _) => Use::Derives,
        (Opcode::Select, _) if index > 0 => Use::Derives,
        (Opcode::Addrspacecast, _) => gains(data.ty == Type::ptr(space)),
        (Opcode::Load, Extra::Mem(mem)) => gains(index == 0 && accessible(space, mem)),
        (Opcode::Store, Extra::Mem(mem)) => gains(index == 1 && writable(space) && accessible(space, mem)),
        (Opcode::AtomicRmw, Extra::Rmw(_, mem)) | (Opcode::Cmpxchg, Extra::Cmpxchg(mem, _)) => {
            let shared = matches!(space, Space::Shared | Space::SharedCluster) && !data.ty.is_vector();
            gains(index == 0 && (space == Space::Global || shared) && accessible(space, mem))
        }
        (Opcode::Memcpy | Opcode::Memmove | Opcode::Memset, Extra::Copy { volatile, .. }) => {
            let reached = index == 0 && writable(space) || index == 1 && data.op != Opcode::Memset;
            gains(reached && (!volatile || space == Space::Global))
        }
        // Addresses of global memory are the same numbers in both spaces.
        (Opcode::Ptrtoint, _) if space == Space::Global => Use::Takes,
        (Opcode::Icmp, Extra::IntCC(cc)) if space == Space::Global || matches!(cc, IntCC::Eq | IntCC::Ne) => Use::Takes,
        _ => Use::Generic,
    }
}

fn writable(space: Space) -> bool {
    !matches!(space, Space::Const | Space::Param)
}

/// Whether the access means the same in a space as through a generic address.
fn accessible(space: Space, mem: &MemAttrs) -> bool {
    let hints = mem.l1 != L1Evict::None || mem.l2 != L2Evict::None || mem.prefetch != 0 || mem.has_policy;
    let plain = !hints && mem.cache == CacheOp::None && !mem.invariant;
    match space {
        Space::Global => true,
        Space::Shared | Space::SharedCluster => plain,
        Space::Const | Space::Local | Space::Param => plain && !mem.is_ordered(),
        Space::Generic | Space::Tensor => false,
    }
}

struct Rewriter<'a> {
    states: &'a States,
    wanted: &'a SecondaryMap<Value, bool>,
    /// The cast to the generic space that a block has made of a pointer.
    casts: SecondaryMap<Value, Option<(Block, Value)>>,
    /// Casts that became names of what they cast.
    done: Vec<Inst>,
}

impl Rewriter<'_> {
    /// The space of a pointer whose type changes.
    fn new_space(&self, value: Value) -> Option<Space> {
        self.states.space(value).filter(|_| self.wanted[value])
    }

    fn instruction(&mut self, func: &mut Function, block: Block, inst: Inst) {
        let op = func.dfg.insts[inst].op;
        if op == Opcode::Icmp {
            self.comparison(func, block, inst);
        } else {
            for index in 0..func.dfg.args(inst).len() {
                let value = func.dfg.args(inst)[index];
                let needed = self.needed(func, inst, index, value);
                let fitting = self.fit(func, block, inst, value, needed);
                func.dfg.args_mut(inst)[index] = fitting;
            }
        }
        if op == Opcode::Addrspacecast {
            let (from, to) = (func.dfg.args(inst)[0], func.dfg.result(inst, 0));
            if func.dfg.ty(from) == func.dfg.ty(to) {
                func.dfg.alias(to, from);
                self.done.push(inst);
            }
            return;
        }
        self.branch(func, block, inst);
    }

    /// The space that argument `index` has to be in; generic where nothing is known to change.
    fn needed(&self, func: &Function, inst: Inst, index: usize, value: Value) -> Space {
        let own = self.new_space(value);
        let result = || func.dfg.first_result(inst).and_then(|result| self.new_space(result));
        // What a value that stays generic is used for matters only where it becomes part of one that does not.
        match use_of(func, inst, index, own.unwrap_or(Space::Generic)) {
            Use::Derives => result().unwrap_or(Space::Generic),
            Use::Gains | Use::Takes => own.unwrap_or(Space::Generic),
            Use::Generic => Space::Generic,
        }
    }

    /// Both sides of a comparison are in one space, or both are generic.
    fn comparison(&mut self, func: &mut Function, block: Block, inst: Inst) {
        if func.dfg.insts[inst].ty != Type::PTR {
            return;
        }
        let [a, b] = [func.dfg.args(inst)[0], func.dfg.args(inst)[1]];
        let is_null = |value| matches!(func.dfg.as_const(value), Some(ConstData::Bits(0)));
        let space = match (self.new_space(a), self.new_space(b)) {
            (Some(space), Some(other)) if space == other => space,
            (Some(Space::Global), None) if is_null(b) => Space::Global,
            (None, Some(Space::Global)) if is_null(a) => Space::Global,
            _ => Space::Generic,
        };
        let takes = space != Space::Generic && use_of(func, inst, 0, space) == Use::Takes;
        let needed = if takes { space } else { Space::Generic };
        for (index, value) in [a, b].into_iter().enumerate() {
            let fitting = self.fit(func, block, inst, value, needed);
            func.dfg.args_mut(inst)[index] = fitting;
        }
        if takes {
            func.dfg.insts[inst].ty = Type::ptr(space);
        }
    }

    /// What a branch passes has the types of the parameters.
    fn branch(&mut self, func: &mut Function, block: Block, inst: Inst) {
        let mut passed: SmallVec<[(Value, Space); 8]> = SmallVec::new();
        let mut changes = false;
        func.dfg.for_each_target(inst, |target| {
            let params = func.dfg.block_params(target.block);
            for (arg, param) in target.args.as_slice(&func.dfg.pool).iter().zip(params) {
                let needed = self.new_space(*param).unwrap_or(Space::Generic);
                changes |= needed != Space::Generic || self.wanted[*arg];
                passed.push((*arg, needed));
            }
        });
        if !changes {
            return;
        }
        let fitting: SmallVec<[Value; 8]> =
            passed.into_iter().map(|(value, needed)| self.fit(func, block, inst, value, needed)).collect();
        let mut fitting = fitting.into_iter();
        func.dfg.for_each_target_mut(inst, |target, pool| {
            for arg in target.args.as_mut_slice(pool) {
                *arg = fitting.next().unwrap_or(*arg);
            }
        });
    }

    /// A value for an instruction that needs a pointer into a space, or what it was if no pointer changes.
    fn fit(&mut self, func: &mut Function, block: Block, before: Inst, value: Value, needed: Space) -> Value {
        let own = self.new_space(value);
        if own.is_none() && needed == Space::Generic {
            return value;
        }
        let root = func.dfg.def_inst(value).filter(|inst| func.dfg.insts[*inst].op == Opcode::Addrspacecast);
        match (own, root) {
            (Some(own), None) if own == needed => value,
            (Some(own), Some(root)) if own == needed => func.dfg.args(root)[0],
            (Some(_), Some(_)) => value,
            (Some(_), None) => self.generic(func, block, before, value),
            (None, _) => specific(func, before, value, needed),
        }
    }

    /// A pointer that changed its type, as a generic one.
    fn generic(&mut self, func: &mut Function, block: Block, before: Inst, value: Value) -> Value {
        if let Some((_, cast)) = self.casts[value].filter(|(made_in, _)| *made_in == block) {
            return cast;
        }
        let cast = FunctionBuilder::before(func, before).convert(Opcode::Addrspacecast, value, Type::PTR);
        self.casts[value] = Some((block, cast));
        cast
    }
}

/// A generic pointer that nothing is known of, or that is a constant, as one of a space.
fn specific(func: &mut Function, before: Inst, value: Value, space: Space) -> Value {
    let ty = Type::ptr(space);
    match func.dfg.as_const(value) {
        Some(ConstData::Poison) => func.dfg.poison(ty),
        Some(ConstData::Bits(0)) if space == Space::Global => func.dfg.bits(ty, 0),
        _ => FunctionBuilder::before(func, before).convert(Opcode::Addrspacecast, value, ty),
    }
}
