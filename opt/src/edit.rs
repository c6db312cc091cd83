//! Small edits that several passes share.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, BlockCall, Extra, Flags, Function, Inst, Opcode, Type, Value, ValueList};
use smallvec::SmallVec;

/// Calls `f` on every placed instruction, in layout order.
pub fn for_each_inst(func: &Function, mut f: impl FnMut(Inst)) {
    for block in func.layout.blocks() {
        for inst in func.layout.insts(block) {
            f(inst);
        }
    }
}

/// How often each value is used.
pub fn count_uses(func: &Function) -> SecondaryMap<Value, u32> {
    let mut counts = SecondaryMap::with_capacity(func.dfg.num_values());
    for_each_inst(func, |inst| func.dfg.for_each_use(inst, |value| counts[func.dfg.resolve(value)] += 1));
    counts
}

/// Makes one instruction's uses refer to values, not to aliases.
pub fn resolve_uses_of(func: &mut Function, inst: Inst) {
    // `map_uses` borrows the graph; the few uses of one instruction are resolved beforehand, and only if one is stale.
    let mut stale = false;
    func.dfg.for_each_use(inst, |value| stale |= func.dfg.resolve(value) != value);
    if !stale {
        return;
    }
    let mut resolved: SmallVec<[Value; 8]> = SmallVec::new();
    func.dfg.for_each_use(inst, |value| resolved.push(func.dfg.resolve(value)));
    let mut next = resolved.into_iter();
    func.dfg.map_uses(inst, |value| next.next().unwrap_or(value));
}

/// Makes every use in the function refer to values, not to aliases.
pub fn resolve_all_uses(func: &mut Function) {
    let Function { dfg, layout, .. } = func;
    let mut block = layout.entry();
    while let Some(current) = block {
        let mut next = layout.first_inst(current);
        while let Some(inst) = next {
            next = layout.next_inst(inst);
            let mut resolved: SmallVec<[Value; 8]> = SmallVec::new();
            let mut stale = false;
            dfg.for_each_use(inst, |value| {
                let to = dfg.resolve(value);
                stale |= to != value;
                resolved.push(to);
            });
            if stale {
                let mut resolved = resolved.into_iter();
                dfg.map_uses(inst, |value| resolved.next().unwrap_or(value));
            }
        }
        block = layout.next_block(current);
    }
}

/// Makes a terminator a jump.
pub fn make_jump(func: &mut Function, inst: Inst, target: BlockCall) {
    let data = &mut func.dfg.insts[inst];
    data.op = Opcode::Jump;
    data.ty = Type::INVALID;
    data.flags = Flags::EMPTY;
    data.args = ValueList::new();
    data.extra = Extra::Jump(target);
}

/// The argument lists of every edge into a block, in layout order of the branches.
pub type Incoming = SecondaryMap<Block, SmallVec<[ValueList; 2]>>;

/// Collects the argument lists of all edges. Handles stay valid until a list changes its length.
pub fn incoming_arguments(func: &Function) -> Incoming {
    let mut incoming = Incoming::new();
    for block in func.layout.blocks() {
        if let Some(last) = func.layout.last_inst(block) {
            func.dfg.for_each_target(last, |target| incoming[target.block].push(target.args));
        }
    }
    incoming
}

/// For each block that loses parameters, which of them stay.
pub type KeptParams = SecondaryMap<Block, Option<Vec<bool>>>;

/// Removes the parameters that `kept` drops, and the arguments for them.
pub fn drop_params(func: &mut Function, kept: &KeptParams) {
    let blocks: Vec<Block> = func.layout.blocks().collect();
    for block in &blocks {
        if let Some(flags) = &kept[*block] {
            func.dfg.retain_block_params(*block, |index, _| flags[index]);
        }
    }
    for block in &blocks {
        let Some(last) = func.layout.last_inst(*block) else { continue };
        func.dfg.for_each_target_mut(last, |target, pool| {
            let Some(flags) = &kept[target.block] else { return };
            let args: SmallVec<[Value; 8]> = target.args.as_slice(pool).iter().copied().collect();
            let staying = args.into_iter().zip(flags).filter(|(_, keep)| **keep).map(|(value, _)| value);
            let staying: SmallVec<[Value; 8]> = staying.collect();
            target.args.clear(pool);
            target.args.extend(staying, pool);
        });
    }
}
