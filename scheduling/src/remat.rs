//! Values that are computed again where they are read, instead of being kept where registers are short.
//!
//! Such a value costs one cheap instruction that computes of nothing but literals, symbols and what is constant for the
//! thread, or of literals and one register that is live where it is read anyway. It is made again right before its
//! readers behind the stretch of a block in which more registers are live than there are; the stretch then holds one
//! value less. Nothing is made again in more loops than the stretch is in, nor in many places. Parameters are not read
//! again: the assembler does that by itself, and came to more registers in places where it was done for it.

use crate::facts::FunctionFacts;
use crate::live::{Liveness, words};
use crate::loops::Loops;
use crate::machine::Machine;
use crate::random::Random;
use crate::timeline::Timeline;
use cranelift_entity::SecondaryMap;
use ptxc_mir::{Block, Function, Inst, InstData, Op, Operand, VReg};
use ptxc_targets::timing::Timing;

/// The most places in which a value is made again.
const PLACES: usize = 4;

/// The longest latency of a computation that is done again, in cycles; what has no sources may take longer.
const CHEAP: u16 = 8;

/// A read of a register: the block, and the position in it.
type Read = (Block, u32);

/// The value that an instruction makes.
#[derive(Clone, Copy, Debug)]
struct Value {
    reg: VReg,
    inst: Inst,
    block: Block,
    /// The register it is computed of.
    source: Option<VReg>,
}

/// Where values that can be made again are made and read.
struct Values {
    list: Vec<Value>,
    /// Index into `list`, plus one.
    index: SecondaryMap<VReg, u32>,
    /// Reads of every register, in the order of the layout; those of branches stand behind the last instruction.
    reads: SecondaryMap<VReg, Vec<Read>>,
    /// Registers that a branch reads, which are not made again.
    in_branches: SecondaryMap<VReg, bool>,
}

impl Values {
    fn of(func: &Function, facts: &FunctionFacts<'_>, machine: &Machine) -> Values {
        let mut values = Values {
            list: Vec::new(),
            index: SecondaryMap::with_capacity(func.vregs.len()),
            reads: SecondaryMap::with_capacity(func.vregs.len()),
            in_branches: SecondaryMap::with_capacity(func.vregs.len()),
        };
        for &block in &func.layout {
            let insts = &func.blocks[block].insts;
            for (position, &inst) in insts.iter().enumerate() {
                let position = position as u32;
                func.for_each_use(inst, |reg| values.reads[reg].push((block, position)));
                if let Some((reg, source)) = made_again(func, facts, machine, inst) {
                    values.list.push(Value { reg, inst, block, source });
                    values.index[reg] = values.list.len() as u32;
                }
            }
            func.for_each_terminator_use(block, |reg| {
                values.reads[reg].push((block, insts.len() as u32));
                values.in_branches[reg] = true;
            });
        }
        values
    }

    fn get(&self, reg: VReg) -> Option<Value> {
        self.index[reg].checked_sub(1).map(|index| self.list[index as usize])
    }
}

/// The register that an instruction makes and the one it makes it of, when it is one that can be done again elsewhere.
fn made_again(
    func: &Function,
    facts: &FunctionFacts<'_>,
    machine: &Machine,
    inst: Inst,
) -> Option<(VReg, Option<VReg>)> {
    let data = func.insts[inst];
    if data.guard.is_some() || !matches!(data.op, Op::Ptx(_)) {
        return None;
    }
    let (mut made, mut source) = (None, None);
    for operand in func.inst_operands(inst) {
        match operand {
            Operand::Def(reg) if made.is_none() => made = Some(*reg),
            Operand::Use(reg) if source.is_none() => source = Some(*reg),
            Operand::Param(..) => return None,
            _ if operand.reg().is_some() => return None,
            _ => {}
        }
    }
    let made = made.filter(|reg| words(func.class(*reg)) > 0)?;
    let Timing { latency, class, .. } = machine.timing(func, inst);
    let cheap = source.is_none() || latency <= CHEAP;
    (cheap && !class.is_asynchronous() && facts.may_speculate(func, inst)).then_some((made, source))
}

/// What is read more often, or made of such a value, is not looked at: its readers are looked through for every block.
const MOST_READS: usize = 64;

/// Makes values again behind stretches with more than `limit` live registers. `timelines` are those of the blocks in the
/// order of the layout. Gives how many were made again.
pub(crate) fn relieve(
    func: &mut Function,
    (facts, machine, loops): (&FunctionFacts<'_>, &Machine, &Loops),
    liveness: &Liveness,
    timelines: &[Timeline],
    limit: u32,
) -> u32 {
    if timelines.iter().all(|timeline| timeline.peak <= limit) {
        return 0;
    }
    let values = Values::of(func, facts, machine);
    let mut edits = Edits::default();
    let mut taken = Taken::default();
    for (index, timeline) in timelines.iter().enumerate() {
        let over = |slot: &crate::Slot| slot.live > limit;
        let (Some(first), Some(last)) = (timeline.slots.iter().position(over), timeline.slots.iter().rposition(over))
        else {
            continue;
        };
        let stretch = Stretch { block: func.layout[index], first: first as u32, last: last as u32 };
        let mut excess = timeline.peak.saturating_sub(limit);
        let candidates = stretch.candidates(func, &values, liveness);
        for value in candidates {
            if excess == 0 {
                break;
            }
            if !taken.may_take(value) {
                continue;
            }
            let Some(places) = stretch.places(&values, loops, liveness, value) else { continue };
            taken.take(value);
            excess = excess.saturating_sub(words(func.class(value.reg)));
            places.iter().for_each(|place| edits.make_again(func, value, *place));
        }
    }
    edits.apply(func)
}

/// Which values are made again, and of which. What a value is computed of has to stay as it is.
#[derive(Default)]
struct Taken {
    made: SecondaryMap<VReg, bool>,
    needed: SecondaryMap<VReg, bool>,
}

impl Taken {
    fn may_take(&self, value: Value) -> bool {
        let stays = value.source.is_none_or(|source| !self.made[source]);
        stays && !self.made[value.reg] && !self.needed[value.reg]
    }

    fn take(&mut self, value: Value) {
        self.made[value.reg] = true;
        value.source.into_iter().for_each(|source| self.needed[source] = true);
    }
}

/// The part of a block in which too many registers are live: from one position to another.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    block: Block,
    first: u32,
    last: u32,
}

/// Where a value is made again: in a block, for its readers at these positions.
#[derive(Clone, Copy, Debug)]
struct Place {
    block: Block,
    first: u32,
    last: u32,
}

impl Stretch {
    /// Values that are live through the stretch and not read in it, those with the fewest readers first.
    fn candidates(&self, func: &Function, values: &Values, liveness: &Liveness) -> Vec<Value> {
        let block = &func.blocks[self.block];
        let made_before = block.insts.iter().take(self.first as usize);
        let mut candidates: Vec<Value> =
            liveness.live_in(self.block).iter().filter_map(|&reg| values.get(reg)).collect();
        for &inst in made_before {
            func.for_each_def(inst, |reg| candidates.extend(values.get(reg)));
        }
        candidates.retain(|value| {
            let reads = &values.reads[value.reg];
            let inside = |read: &Read| read.0 == self.block && (self.first..=self.last).contains(&read.1);
            let few =
                reads.len() <= MOST_READS && value.source.is_none_or(|source| values.reads[source].len() <= MOST_READS);
            few && !values.in_branches[value.reg] && !reads.iter().any(inside)
        });
        candidates.sort_by_key(|value| (values.reads[value.reg].len(), value.reg));
        candidates
    }

    /// Where to make a value again so that it is not live through the stretch; nowhere when that costs too much, or makes
    /// its source live longer.
    fn places(&self, values: &Values, loops: &Loops, liveness: &Liveness, value: Value) -> Option<Vec<Place>> {
        let mut places: Vec<Place> = Vec::new();
        for &(block, position) in &values.reads[value.reg] {
            let is_home = block == value.block;
            let is_behind = block == self.block && position > self.last;
            if is_home && !is_behind {
                // Stays with the value as it is; before the stretch, or in another block that it leaves.
                continue;
            }
            match places.last_mut() {
                // One computation serves the readers of a block, but not across the stretch.
                Some(place) if place.block == block && !(is_behind && place.last < self.first) => {
                    place.last = position;
                }
                _ => places.push(Place { block, first: position, last: position }),
            }
        }
        let behind = |place: &Place| match value.source {
            None => true,
            Some(source) => {
                let later = |read: &Read| read.0 == place.block && read.1 > place.last;
                liveness.live_out(place.block).binary_search(&source).is_ok() || values.reads[source].iter().any(later)
            }
        };
        let depth = loops.depth(self.block);
        let good = |place: &Place| loops.depth(place.block) <= depth && behind(place);
        (!places.is_empty() && places.len() <= PLACES && places.iter().all(good)).then_some(places)
    }
}

/// Makes values again before any of their readers, one in four. Gives how many were made again.
pub(crate) fn scatter(func: &mut Function, facts: &FunctionFacts<'_>, machine: &Machine, random: &mut Random) -> u32 {
    let values = Values::of(func, facts, machine);
    let mut edits = Edits::default();
    let mut taken = Taken::default();
    for &value in &values.list {
        if !taken.may_take(value) || random.below(4) != 0 {
            continue;
        }
        taken.take(value);
        let mut last: Option<Block> = None;
        for &(block, position) in &values.reads[value.reg] {
            let is_branch = position as usize == func.blocks[block].insts.len();
            if last == Some(block) || is_branch || random.below(2) != 0 {
                continue;
            }
            last = Some(block);
            let reads = values.reads[value.reg].iter().filter(|read| read.0 == block);
            let ends = reads.map(|read| read.1).filter(|at| (*at as usize) < func.blocks[block].insts.len());
            edits.make_again(func, value, Place { block, first: position, last: ends.max().unwrap_or(position) });
        }
    }
    edits.apply(func)
}

/// Instructions to be inserted.
#[derive(Debug, Default)]
struct Edits {
    /// Before which position of which block.
    inserted: Vec<(Block, u32, Inst)>,
    /// Originals, which may have no readers any more.
    originals: Vec<(Block, Inst, VReg)>,
}

impl Edits {
    /// Makes a value again at a place, for its readers there.
    fn make_again(&mut self, func: &mut Function, value: Value, place: Place) {
        let reg = func.new_vreg(func.class(value.reg));
        let mut operands: Vec<Operand> = func.inst_operands(value.inst).to_vec();
        operands.iter_mut().filter(|operand| operand.def().is_some()).for_each(|operand| operand.set_def(reg));
        let operands = func.add_operands(&operands);
        let inst = func.insts.push(InstData { operands, ..func.insts[value.inst] });
        func.memory[inst] = func.memory[value.inst];
        self.inserted.push((place.block, place.first, inst));
        self.originals.push((value.block, value.inst, value.reg));
        for position in place.first..=place.last {
            let Some(&reader) = func.blocks[place.block].insts.get(position as usize) else { continue };
            for operand in func.inst_operands_mut(reader) {
                if operand.used() == Some(value.reg) {
                    operand.set_used(reg);
                }
            }
        }
    }

    /// Inserts what was made, and removes originals without readers.
    fn apply(mut self, func: &mut Function) -> u32 {
        let count = self.inserted.len() as u32;
        if count == 0 {
            return 0;
        }
        let mut read: SecondaryMap<VReg, bool> = SecondaryMap::with_capacity(func.vregs.len());
        let mut lists: SecondaryMap<Block, bool> = SecondaryMap::new();
        for &block in &func.layout {
            func.blocks[block].insts.iter().for_each(|&inst| func.for_each_use(inst, |reg| read[reg] = true));
            func.for_each_terminator_use(block, |reg| read[reg] = true);
        }
        for &(_, _, inst) in &self.inserted {
            func.for_each_use(inst, |reg| read[reg] = true);
        }
        let mut dead: SecondaryMap<Inst, bool> = SecondaryMap::new();
        for &(block, inst, reg) in &self.originals {
            dead[inst] = !read[reg];
            lists[block] |= !read[reg];
        }
        self.inserted.sort_by_key(|&(block, position, inst)| (block, position, inst));
        self.inserted.iter().for_each(|&(block, ..)| lists[block] = true);
        for index in 0..func.layout.len() {
            let block = func.layout[index];
            if !lists[block] {
                continue;
            }
            let old = std::mem::take(&mut func.blocks[block].insts);
            let start = self.inserted.partition_point(|entry| entry.0 < block);
            let mut here = self.inserted[start..].iter().take_while(|entry| entry.0 == block).peekable();
            let mut new = Vec::with_capacity(old.len() + 4);
            for (position, inst) in old.into_iter().enumerate() {
                while let Some(&(_, _, made)) = here.next_if(|entry| entry.1 as usize == position) {
                    new.push(made);
                }
                if !dead[inst] {
                    new.push(inst);
                }
            }
            func.blocks[block].insts = new;
        }
        count
    }
}
