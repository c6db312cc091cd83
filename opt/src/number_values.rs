//! Replaces an instruction by an equal one that dominates it.
//!
//! Walks the dominator tree with a scoped table from operation and operands to the instruction that computed them
//! first. Only instructions that are functions of their operands take part: no loads, nothing convergent, no clocks.
//! An instruction that may be undefined (division) is replaced only by one that was executed before it with the same
//! operands, so nothing is executed where it was not.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, Cfg, DominatorTree, Extra, Flags, Function, Inst, MemType, Opcode, Type, Value, flags::group};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::edit::{resolve_all_uses, resolve_uses_of};
use crate::effects::is_function_of_operands;
use crate::pass::Context;

/// Flags that change the result. All others only make some results poison, and are intersected when merging.
pub(crate) const VALUE_FLAGS: u32 = group::ROUND | group::FTZ | group::SAT | group::RELU;

/// What an instruction computes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    op: Opcode,
    flags: u32,
    ty: Type,
    result: Type,
    extra: ExtraKey,
    args: SmallVec<[Value; 4]>,
}

/// [`Extra`] as far as instructions without effects carry it.
#[derive(Clone, PartialEq, Eq, Hash)]
enum ExtraKey {
    None,
    Number(u64),
    Mask(Box<[i32]>),
    Gep(MemType),
}

/// The pass.
pub fn number_values(func: &mut Function, _ctx: &Context<'_>) -> bool {
    let Some(entry) = func.layout.entry() else { return false };
    let children = dominated(func);
    let mut table = Table::default();
    let mut changed = false;
    // Each block twice: on the way down, and when its scope ends.
    let mut work: Vec<(Block, bool)> = vec![(entry, true)];
    while let Some((block, entering)) = work.pop() {
        if !entering {
            table.leave();
            continue;
        }
        table.enter();
        changed |= number_block(func, &mut table, block);
        work.push((block, false));
        work.extend(children[block].iter().rev().map(|child| (*child, true)));
    }
    if changed {
        resolve_all_uses(func);
    }
    changed
}

/// The blocks that each block dominates immediately, in reverse postorder.
fn dominated(func: &Function) -> SecondaryMap<Block, SmallVec<[Block; 2]>> {
    let cfg = Cfg::new(func);
    let tree = DominatorTree::new(&cfg);
    let mut children: SecondaryMap<Block, SmallVec<[Block; 2]>> = SecondaryMap::new();
    for block in cfg.rpo() {
        if let Some(parent) = tree.idom(&cfg, *block) {
            children[parent].push(*block);
        }
    }
    children
}

fn number_block(func: &mut Function, table: &mut Table, block: Block) -> bool {
    let mut changed = false;
    let mut next = func.layout.first_inst(block);
    while let Some(inst) = next {
        next = func.layout.next_inst(inst);
        resolve_uses_of(func, inst);
        if !is_function_of_operands(func, inst) {
            continue;
        }
        let Some(key) = key(func, inst, |value| value) else { continue };
        if let Some(leader) = table.find_or_insert(key, inst) {
            merge_into(func, leader, inst);
            changed = true;
        }
    }
    changed
}

/// Removes `inst` in favour of `leader`.
fn merge_into(func: &mut Function, leader: Inst, inst: Inst) {
    let flags = func.dfg.insts[inst].flags;
    let kept = Flags::from_bits(flags.bits() | VALUE_FLAGS);
    let leading = &mut func.dfg.insts[leader];
    leading.flags = leading.flags.intersect(kept);
    let pairs: SmallVec<[(Value, Value); 2]> = func.dfg.results(inst).zip(func.dfg.results(leader)).collect();
    for (from, to) in pairs {
        func.dfg.alias(from, to);
    }
    func.layout.remove_inst(inst);
}

/// Describes an instruction, operands by what stands for them, those of commutative operations in a fixed order.
pub(crate) fn key(func: &Function, inst: Inst, number: impl Fn(Value) -> Value) -> Option<Key> {
    let data = &func.dfg.insts[inst];
    let mut args: SmallVec<[Value; 4]> = func.dfg.args(inst).iter().map(|arg| number(*arg)).collect();
    let mut extra = match data.extra {
        Extra::None => ExtraKey::None,
        Extra::IntCC(cc) => ExtraKey::Number(cc as u64),
        Extra::FloatCC(cc) => ExtraKey::Number(cc as u64),
        Extra::Imm(number) => ExtraKey::Number(number),
        Extra::Space(space) => ExtraKey::Number(space as u64),
        Extra::Sreg(register) => ExtraKey::Number(register.index() as u64),
        Extra::Mask(mask) => ExtraKey::Mask(func.dfg.masks[mask].as_slice().into()),
        Extra::Gep(ty) => ExtraKey::Gep(ty),
        _ => return None,
    };
    if let Some((first, rest)) = args.split_first_mut()
        && let Some(second) = rest.first_mut()
        && *first > *second
    {
        if is_commutative(data.op) {
            std::mem::swap(first, second);
        } else if let Extra::IntCC(cc) = data.extra {
            std::mem::swap(first, second);
            extra = ExtraKey::Number(cc.swap() as u64);
        }
    }
    let result = func.dfg.first_result(inst).map_or(Type::INVALID, |value| func.dfg.ty(value));
    Some(Key { op: data.op, flags: data.flags.bits() & VALUE_FLAGS, ty: data.ty, result, extra, args })
}

/// Whether the first two operands may be exchanged.
fn is_commutative(op: Opcode) -> bool {
    use Opcode::*;
    matches!(
        op,
        Add | Mul
            | And
            | Or
            | Xor
            | Smin
            | Smax
            | Umin
            | Umax
            | Umulh
            | Smulh
            | Clmul
            | UaddSat
            | SaddSat
            | UaddOverflow
            | SaddOverflow
            | UmulOverflow
            | SmulOverflow
            | Fadd
            | Fmul
            | Fma
            | Fmin
            | Fmax
            | Fminimum
            | Fmaximum
    )
}

/// Instructions by what they compute, in nested scopes.
#[derive(Default)]
struct Table {
    known: FxHashMap<Key, Inst>,
    /// Keys in order of insertion, to forget when their scope ends.
    added: Vec<Key>,
    /// Length of `added` at the start of each open scope.
    scopes: Vec<usize>,
}

impl Table {
    fn enter(&mut self) {
        self.scopes.push(self.added.len());
    }

    fn leave(&mut self) {
        let start = self.scopes.pop().unwrap_or(0);
        for key in self.added.drain(start..) {
            self.known.remove(&key);
        }
    }

    /// The known instruction, or `None` after making `inst` known.
    fn find_or_insert(&mut self, key: Key, inst: Inst) -> Option<Inst> {
        if let Some(leader) = self.known.get(&key) {
            return Some(*leader);
        }
        self.added.push(key.clone());
        self.known.insert(key, inst);
        None
    }
}
