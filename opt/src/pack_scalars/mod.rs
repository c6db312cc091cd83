//! Computes scalars of f16, bf16 and f32 in pairs, where the machine computes on pairs and their lanes come together for free.
//!
//! ptxas makes one instruction of a packed operation and hardly ever packs scalars itself. Two operations of a block may
//! be computed as one when they are the same operation with the same flags and neither needs the other's result. Whether they should
//! is a matter of cost in machine instructions: every pair saves one, and what takes two values together or a lane out of a pair
//! may cost one ([`cost`]). Trees of pairs ([`tree`]) are grown toward the operands from
//!
//! * lanes that are put together in a vector (what [`crate::merge_accesses`] makes of neighbouring stores),
//! * operations on two lanes of one vector (what it makes of neighbouring loads), and
//! * what loops carry from round to round ([`carry`]),
//!
//! and packed when they save more than they cost ([`place`]). Operands of sums keep their order, no sum is reassociated,
//! and both lanes round, flush and treat NaN as the scalars did.

mod carry;
mod cost;
mod lanes;
mod place;
mod tree;

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, Cfg, Flags, Function, Inst, Opcode, Type, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::edit::{resolve_all_uses, resolve_uses_of};
use crate::pass::Context;
use crate::rules::Rule;
use lanes::{Lane, lane_of, lanes_built, scalar_of};
use tree::Tree;

/// Users of a lane that are looked at.
const MAX_USERS: usize = 8;

/// The pass.
pub fn pack_scalars(func: &mut Function, ctx: &Context<'_>) -> bool {
    let mut changed = carry::carry_pairs(func, ctx);
    let order: Vec<Block> = Cfg::new(func).rpo().to_vec();
    let mut packer = Packer::new(func, ctx);
    for block in order {
        changed |= packer.pack_block(func, block);
    }
    if changed {
        resolve_all_uses(func);
    }
    changed
}

/// What is known of the function while its blocks are packed.
struct Packer<'a> {
    ctx: &'a Context<'a>,
    /// The instructions that use a value, one entry for each use.
    users: SecondaryMap<Value, SmallVec<[Inst; 4]>>,
    /// The place of each instruction of the block, from 1 on. What the pass makes has the place of what it stands behind.
    position: SecondaryMap<Inst, u32>,
    /// The block as it was found.
    order: Vec<Inst>,
    /// The pair that a value was taken into.
    gathered: FxHashMap<Value, (Value, Value)>,
    /// What the pass has put together in the block, and behind which position.
    built: FxHashMap<(Value, Value), (Value, u32)>,
    block: Option<Block>,
}

impl<'a> Packer<'a> {
    /// Knows all uses.
    fn new(func: &Function, ctx: &'a Context<'a>) -> Packer<'a> {
        let mut packer = Packer {
            ctx,
            users: SecondaryMap::new(),
            position: SecondaryMap::new(),
            order: Vec::new(),
            gathered: FxHashMap::default(),
            built: FxHashMap::default(),
            block: None,
        };
        for block in func.layout.blocks() {
            for inst in func.layout.insts(block) {
                packer.add_uses(func, inst);
            }
        }
        packer
    }

    /// Begins with a block.
    fn enter(&mut self, func: &Function, block: Block) {
        self.block = Some(block);
        self.built.clear();
        self.order = func.layout.insts(block).collect();
        for (index, inst) in self.order.iter().enumerate() {
            self.position[*inst] = index as u32 + 1;
        }
    }

    /// One use of a value less.
    fn forget_use(&mut self, value: Value, user: Inst) {
        let list = &mut self.users[value];
        if let Some(at) = list.iter().position(|inst| *inst == user) {
            list.remove(at);
        }
    }

    fn add_uses(&mut self, func: &Function, inst: Inst) {
        func.dfg.for_each_use(inst, |value| self.users[func.dfg.resolve(value)].push(inst));
    }

    fn pack_block(&mut self, func: &mut Function, block: Block) -> bool {
        self.enter(func, block);
        if !self.order.iter().any(|inst| packable(self.ctx, func, *inst)) {
            return false;
        }
        let mut changed = false;
        let mut vectors: Vec<Value> = Vec::new();
        for inst in self.order.clone() {
            if func.layout.inst_block(inst).is_some() {
                resolve_uses_of(func, inst);
                changed |= self.pack_built(func, inst, &mut vectors);
            }
        }
        for inst in self.order.clone() {
            if func.layout.inst_block(inst).is_none() || func.dfg.insts[inst].op != Opcode::Extract {
                continue;
            }
            if let Some((vector, 0)) = lane_of(func, func.dfg.result(inst, 0)).map(|(v, lane)| (v, lane % 2)) {
                vectors.push(vector);
            }
        }
        vectors.dedup();
        let mut at = 0;
        while let Some(vector) = vectors.get(at).copied() {
            at += 1;
            changed |= self.pack_users(func, vector, &mut vectors);
        }
        changed
    }

    /// Packs what an instruction puts together in a vector.
    fn pack_built(&mut self, func: &mut Function, inst: Inst, vectors: &mut Vec<Value>) -> bool {
        let Some(built) = lanes_built(func, inst) else { return false };
        // Of a chain of insertions, the last is the vector.
        let result = func.dfg.result(inst, 0);
        if let [user] = self.users[result].as_slice()
            && func.dfg.insts[*user].op == Opcode::Insert
            && func.dfg.args(*user).first().map(|v| func.dfg.resolve(*v)) == Some(result)
        {
            return false;
        }
        let mut changed = false;
        for pair in built.chunks_exact(2) {
            if let [Lane::Scalar(a), Lane::Scalar(b)] = *pair
                && let Some(packed) = self.attempt(func, a, b, true)
            {
                self.ctx.note(inst, Rule::PackVector);
                vectors.push(packed);
                changed = true;
            }
        }
        if changed && built.len() == 2 {
            self.replace_built(func, inst);
        }
        changed
    }

    /// A vector of both lanes of a pair is the pair.
    fn replace_built(&mut self, func: &mut Function, inst: Inst) {
        let Some(built) = lanes_built(func, inst) else { return };
        let result = func.dfg.result(inst, 0);
        let whole = match built.as_slice() {
            [Lane::Of(v, 0), Lane::Of(w, 1)] if v == w && func.dfg.ty(*v) == func.dfg.ty(result) => *v,
            _ => return,
        };
        self.drop_uses(func, inst);
        self.rename(func, result, whole);
        func.layout.remove_inst(inst);
    }

    /// Packs operations on neighbouring lanes of a vector.
    fn pack_users(&mut self, func: &mut Function, vector: Value, vectors: &mut Vec<Value>) -> bool {
        let mut changed = false;
        for first in (0..func.dfg.ty(vector).lanes().saturating_sub(1)).step_by(2) {
            let [low, high] = [first, first + 1].map(|lane| self.users_of_lane(func, vector, lane));
            for a in &low {
                for b in &high {
                    let Some((a, b)) = self.root(func, *a, *b) else { continue };
                    let [x, y] = [a, b].map(|inst| func.dfg.result(inst, 0));
                    if let Some(packed) = self.attempt(func, x, y, false) {
                        self.ctx.note(b, Rule::PackLanes);
                        vectors.push(packed);
                        changed = true;
                        break;
                    }
                }
            }
        }
        changed
    }

    /// Instructions of the block that compute with a lane of a vector.
    fn users_of_lane(&self, func: &Function, vector: Value, lane: u32) -> SmallVec<[Inst; MAX_USERS]> {
        let mut found = SmallVec::new();
        for extract in self.users[vector].iter().take(2 * MAX_USERS) {
            let is_lane = func.dfg.insts[*extract].op == Opcode::Extract
                && lane_of(func, func.dfg.result(*extract, 0)) == Some((vector, lane));
            if !is_lane || func.layout.inst_block(*extract).is_none() {
                continue;
            }
            for user in &self.users[func.dfg.resolve(func.dfg.result(*extract, 0))] {
                if found.len() < MAX_USERS && self.is_here(func, *user) && packable(self.ctx, func, *user) {
                    found.push(*user);
                }
            }
        }
        found
    }

    /// The pair to begin with, if two operations can be one: themselves, or the sums that their products are fused into.
    fn root(&self, func: &Function, a: Inst, b: Inst) -> Option<(Inst, Inst)> {
        if !self.is_here(func, a) || !self.is_here(func, b) || !isomorphic(func, a, b) {
            return None;
        }
        match (self.fused_into(func, a), self.fused_into(func, b)) {
            (None, None) => Some((a, b)),
            (Some(x), Some(y)) => {
                (self.is_here(func, x) && self.is_here(func, y) && isomorphic(func, x, y)).then_some((x, y))
            }
            _ => None,
        }
    }

    /// Whether an instruction stands in the block that is packed.
    fn is_here(&self, func: &Function, inst: Inst) -> bool {
        func.layout.inst_block(inst) == self.block
    }

    /// The sum that a product becomes a part of.
    fn fused_into(&self, func: &Function, inst: Inst) -> Option<Inst> {
        let data = &func.dfg.insts[inst];
        if data.op != Opcode::Fmul || !data.flags.contains(Flags::CONTRACT) {
            return None;
        }
        let [user] = self.users[func.dfg.resolve(func.dfg.result(inst, 0))].as_slice() else { return None };
        let sum = &func.dfg.insts[*user];
        let fuses = matches!(sum.op, Opcode::Fadd | Opcode::Fsub) && sum.flags.contains(Flags::CONTRACT);
        fuses.then_some(*user)
    }

    /// Packs two values and what they are made of, if that saves instructions. `built` says that a vector has both as
    /// neighbouring lanes. The packed value.
    fn attempt(&mut self, func: &mut Function, a: Value, b: Value, built: bool) -> Option<Value> {
        let [a, b] = [a, b].map(|v| scalar_of(func, v));
        let mut tree = Tree::new();
        let root = tree.grow(self, func, a, b)?;
        if tree.cost(self, func, root, built) >= 0 {
            return None;
        }
        let places = place::places(self, func, &tree, root)?;
        Some(place::emit(self, func, &tree, root, &places))
    }

    /// Forgets the uses that an instruction makes.
    fn drop_uses(&mut self, func: &Function, inst: Inst) {
        let users = &mut self.users;
        func.dfg.for_each_use(inst, |value| {
            let list = &mut users[func.dfg.resolve(value)];
            if let Some(at) = list.iter().position(|user| *user == inst) {
                list.remove(at);
            }
        });
    }

    /// Makes one value another name of a second.
    fn rename(&mut self, func: &mut Function, old: Value, new: Value) {
        let moved = std::mem::take(&mut self.users[old]);
        self.users[new].extend(moved);
        func.dfg.alias(old, new);
    }
}

/// Whether an instruction can be one lane of a packed one.
fn packable(ctx: &Context<'_>, func: &Function, inst: Inst) -> bool {
    use Opcode::*;
    let data = &func.dfg.insts[inst];
    let pair = match data.op {
        Fadd | Fsub | Fmul | Fma | Fmin | Fmax | Fminimum | Fmaximum | Fneg | Fabs | Copysign => data.ty,
        Fptrunc if data.flags.intersect(Flags::SAT | Flags::FTZ).is_empty() => data.ty,
        _ => return false,
    };
    let half = matches!(pair, Type::F16 | Type::BF16);
    match data.op {
        Fptrunc => {
            let from = func.dfg.args(inst).first().map(|v| func.dfg.ty(*v));
            half && from == Some(Type::F32) && ctx.has_operation(Fptrunc, data.flags, pair.with_lanes(2))
        }
        // The machine negates both lanes of a pair of f32 where it reads them.
        Fneg if pair == Type::F32 => {
            data.flags.intersect(Flags::FTZ).is_empty() && ctx.has_operation(Fma, Flags::EMPTY, pair.with_lanes(2))
        }
        _ => (half || pair == Type::F32) && ctx.has_operation(data.op, data.flags, pair.with_lanes(2)),
    }
}

/// Whether two instructions do the same with their operands.
fn isomorphic(func: &Function, a: Inst, b: Inst) -> bool {
    let (x, y) = (&func.dfg.insts[a], &func.dfg.insts[b]);
    a != b && x.op == y.op && x.flags == y.flags && x.ty == y.ty
}
