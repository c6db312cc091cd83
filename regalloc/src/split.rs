//! Values of a loop that are read behind it too are copied for what is behind.
//!
//! `x` of a round and `x` of the next are in one register if nothing reads the first when there is the second. Where only the
//! way out does, `x` is moved on the way back, and the loop ends with two branches. Copied before the branch, what
//! leaves has a register of its own, and the moves of the way back may go before the branch too
//! (`rewrite/before_branch.rs`), for one move more. Nothing is copied where it would take several.

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use ptxc_mir::{Block, Cfg, Function, Inst, InstData, Op, Operand, Terminator, VReg};

/// A parameter of a loop's head that changes in a round, and the way out.
struct Split {
    value: VReg,
    /// The block that leaves or goes back to the head.
    from: Block,
    /// Where it leaves to.
    out: Block,
    /// Whether what is behind is reached that way alone.
    alone: bool,
    /// Whether anything behind reads the value.
    read: bool,
    /// The copy that is read instead.
    copy: PackedOption<VReg>,
}

/// Something that reads a value a split copies.
enum Reader {
    Guard(Inst),
    /// By index into the operands of the function.
    Operand(usize),
    Condition(Block),
    /// By index into the arguments of the function.
    Argument(usize),
}

/// Copies what loops carry and the way out reads. `depths` says how many loops each block is in.
pub(crate) fn split(func: &mut Function, cfg: &Cfg, depths: &SecondaryMap<Block, u32>) {
    let mut splits = Splits::find(func, cfg, depths);
    if splits.list.is_empty() {
        return;
    }
    for &block in &func.layout {
        splits.readers_in(func, cfg, block);
    }
    splits.make_copies(func);
    for (reader, split) in &splits.readers {
        let Some(copy) = splits.list[*split].copy.expand() else { continue };
        match *reader {
            Reader::Guard(inst) => {
                if let Some(guard) = &mut func.insts[inst].guard {
                    guard.pred = copy;
                }
            }
            Reader::Operand(at) => func.operands[at].set_used(copy),
            Reader::Condition(block) => func.blocks[block].terminator.set_condition(copy),
            Reader::Argument(at) => func.args[at] = copy,
        }
    }
}

/// The splits of a function.
struct Splits {
    /// In order of values, later ways out of a loop behind earlier ones.
    list: Vec<Split>,
    /// One more than the index of the first split of each value; 0 without one.
    first: SecondaryMap<VReg, u32>,
    /// What reads a value behind a way out, and the index of the split.
    readers: Vec<(Reader, usize)>,
}

impl Splits {
    fn find(func: &Function, cfg: &Cfg, depths: &SecondaryMap<Block, u32>) -> Splits {
        let mut list = Vec::new();
        for &from in &func.layout {
            let Terminator::CondBra { then, otherwise, .. } = func.blocks[from].terminator else { continue };
            for (back, out) in [(then, otherwise), (otherwise, then)] {
                let (head, out) = (back.block, out.block);
                if !cfg.dominates(head, from) || depths[out] >= depths[head] {
                    continue;
                }
                let alone = cfg.idom(out) == Some(from) && cfg.predecessors(out).len() == 1;
                for (&value, &next) in func.blocks[head].params.iter().zip(func.call_args(back)) {
                    if value != next {
                        list.push(Split { value, from, out, alone, read: false, copy: None.into() });
                    }
                }
            }
        }
        list.sort_by_key(|split| (split.value, cfg.dominance_number(split.out)));
        let mut first = SecondaryMap::new();
        for (i, split) in list.iter().enumerate().rev() {
            first[split.value] = i as u32 + 1;
        }
        Splits { list, first, readers: Vec::new() }
    }

    /// Notes what a block reads, and passes on, behind a way out.
    fn readers_in(&mut self, func: &Function, cfg: &Cfg, block: Block) {
        let behind = |split: &Split| split.alone && cfg.dominates(split.out, block);
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            if let Some(guard) = data.guard {
                self.note(guard.pred, Reader::Guard(inst), behind);
            }
            for at in data.operands.as_range() {
                if let Some(used) = func.operands[at].used() {
                    self.note(used, Reader::Operand(at), behind);
                }
            }
        }
        let terminator = &func.blocks[block].terminator;
        if let Some(condition) = terminator.condition() {
            self.note(condition, Reader::Condition(block), behind);
        }
        terminator.for_each_target(|target| {
            let out = |split: &Split| split.from == block && split.out == target.block;
            for at in target.as_range() {
                self.note(func.args[at], Reader::Argument(at), |split| behind(split) || out(split));
            }
        });
    }

    /// Notes a reader of `value` if a split `holds` where it is: the last does.
    fn note(&mut self, value: VReg, reader: Reader, holds: impl Fn(&Split) -> bool) {
        let Some(first) = self.first[value].checked_sub(1) else { return };
        let mine = self.list.iter_mut().enumerate().skip(first as usize).take_while(|(_, split)| split.value == value);
        if let Some((index, split)) = mine.filter(|(_, split)| holds(split)).last() {
            split.read = true;
            self.readers.push((reader, index));
        }
    }

    /// Makes the copies, at the ends of blocks that need no more than one.
    fn make_copies(&mut self, func: &mut Function) {
        let mut reads: SecondaryMap<Block, u32> = SecondaryMap::new();
        for split in self.list.iter().filter(|split| split.read) {
            reads[split.from] += 1;
        }
        for split in self.list.iter_mut().filter(|split| split.read && reads[split.from] == 1) {
            let class = func.vregs[split.value];
            let copy = func.vregs.push(class);
            split.copy = copy.into();
            let operands = func.add_operands(&[Operand::Def(copy), Operand::Use(split.value)]);
            let loc = func.blocks[split.from].terminator_loc;
            let inst = func.insts.push(InstData { op: Op::Copy(class), guard: None, operands, loc });
            func.blocks[split.from].insts.push(inst);
        }
    }
}
