//! How long products in flight occupy registers that nobody reads any more.
//!
//! From `wgmma.mma_async` to the `wgmma.wait_group` that covers it, all its matrix registers belong to the hardware: those
//! of results that no one reads too, and those of an A fragment that only the product reads (PTX ISA 9.7.17.7). Liveness knows
//! readers alone, so each such register is held by a use at the wait, and at the end of a block that comes first.
//!
//! Groups are counted within the block of the product and on along edges that it dominates. A result that another
//! product goes on with, or a parameter of the next block, is not held beyond: its register has a new owner there.

use crate::fences::{Kind, Kinds};
use crate::liveness::Place;
use cranelift_entity::SecondaryMap;
use ptxc_mir::{Block, Cfg, Function, Inst, Operand, RegClass, VReg};
use std::ops::Range;

/// How many blocks behind that of a product are searched for waits: enough for loops that poll a barrier, and a bound
/// for what a chain of products that are never waited for may cost.
const REACH: u32 = 64;

/// A value whose register is occupied up to a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Held {
    /// The place.
    pub at: Place,
    /// The value.
    pub value: VReg,
    /// The block of the place.
    pub block: Block,
}

/// Where the places of blocks are.
pub(crate) struct Places<'a> {
    /// Reachable blocks in order of their places.
    pub order: &'a [Block],
    /// The place where an instruction of that index in that block reads.
    pub read: &'a dyn Fn(Block, usize) -> Place,
    /// The last place of a block.
    pub end: &'a dyn Fn(Block) -> Place,
}

/// What products hold, in ascending order of places.
pub(crate) fn held(func: &Function, cfg: &Cfg, kinds: &Kinds, places: &Places<'_>) -> Vec<Held> {
    if !kinds.has_products() {
        return Vec::new();
    }
    let mut pass = Pass::new(func, cfg, places);
    if !pass.collect(kinds) {
        return Vec::new();
    }
    for &block in places.order {
        pass.block(block);
    }
    pass.held.sort_unstable();
    pass.held.dedup();
    pass.held
}

/// What happens to groups of products.
#[derive(Clone, Copy)]
enum Event {
    Product(Inst),
    Commit,
    /// Until at most so many groups are in flight.
    Wait(u32),
}

/// A register of a product in flight.
#[derive(Clone, Copy)]
struct Flight {
    /// How many groups of the block were committed before.
    group: u32,
    value: VReg,
    result: bool,
}

struct Pass<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    places: &'a Places<'a>,
    /// Events with their places, block by block.
    events: Vec<(Place, Event)>,
    of_block: SecondaryMap<Block, Range<usize>>,
    /// Values that some product goes on with.
    continued: SecondaryMap<VReg, bool>,
    /// In flight since the start of the block, in order of groups.
    flights: Vec<Flight>,
    /// One more than the index of the last flight of each value; 0 while it has none.
    last: SecondaryMap<VReg, usize>,
    /// The last search that came to each block.
    seen: SecondaryMap<Block, u32>,
    searches: u32,
    held: Vec<Held>,
}

impl<'a> Pass<'a> {
    fn new(func: &'a Function, cfg: &'a Cfg, places: &'a Places<'a>) -> Pass<'a> {
        Pass {
            func,
            cfg,
            places,
            events: Vec::new(),
            of_block: SecondaryMap::new(),
            continued: SecondaryMap::new(),
            flights: Vec::new(),
            last: SecondaryMap::new(),
            seen: SecondaryMap::new(),
            searches: 0,
            held: Vec::new(),
        }
    }

    /// Lists events; whether there are products among them.
    fn collect(&mut self, kinds: &Kinds) -> bool {
        let mut products = false;
        for &block in self.places.order {
            let first = self.events.len();
            for (index, &inst) in self.func.blocks[block].insts.iter().enumerate() {
                let event = match kinds.kind(self.func, inst) {
                    Kind::Product => {
                        products = true;
                        self.continues(inst);
                        Event::Product(inst)
                    }
                    Kind::Commit => Event::Commit,
                    Kind::Wait => Event::Wait(groups_left(self.func.inst_operands(inst))),
                    Kind::Move | Kind::Fence | Kind::Other => continue,
                };
                self.events.push(((self.places.read)(block, index), event));
            }
            if self.events.len() > first {
                self.of_block[block] = first..self.events.len();
            }
        }
        products
    }

    fn continues(&mut self, inst: Inst) {
        for operand in self.func.inst_operands(inst) {
            if let Operand::DefUse { used, .. } = *operand {
                self.continued[used] = true;
            }
        }
    }

    /// Holds what products of a block use.
    fn block(&mut self, block: Block) {
        let (mut committed, mut first) = (0, 0);
        for index in self.of_block[block].clone() {
            let (at, event) = self.events[index];
            match event {
                Event::Product(inst) => self.product(inst, committed),
                Event::Commit => committed += 1,
                Event::Wait(left) => {
                    let covered = self.covered(first, committed, left);
                    self.hold(first..covered, block, at, false);
                    first = covered;
                }
            }
        }
        if first < self.flights.len() {
            self.hold(first..self.flights.len(), block, (self.places.end)(block), false);
            self.search(block, first, committed);
        }
        for flight in self.flights.drain(..) {
            self.last[flight.value] = 0;
        }
    }

    fn product(&mut self, inst: Inst, group: u32) {
        let func = self.func;
        for operand in func.inst_operands(inst) {
            if let Operand::DefUse { used, .. } = *operand
                && let Some(index) = self.last[used].checked_sub(1)
                && self.flights[index].result
            {
                self.last[used] = 0;
            }
        }
        for operand in func.inst_operands(inst) {
            let (value, result) = match *operand {
                Operand::Def(def) | Operand::DefUse { def, .. } => (def, true),
                Operand::Use(used) => (used, false),
                _ => continue,
            };
            if func.class(value) == RegClass::B32 {
                self.flights.push(Flight { group, value, result });
                self.last[value] = self.flights.len();
            }
        }
    }

    /// The first flight from `first` on that is not over when at most `left` of so many groups are in flight.
    fn covered(&self, first: usize, committed: u32, left: u32) -> usize {
        let done = committed.saturating_sub(left);
        first + self.flights[first..].partition_point(|flight| flight.group < done)
    }

    /// Holds values up to a place, `beyond` the block of their product or in it.
    fn hold(&mut self, flights: Range<usize>, block: Block, at: Place, beyond: bool) {
        for index in flights {
            let value = self.flights[index].value;
            // Only the last flight of a value counts.
            if self.last[value] == index + 1 && !(beyond && self.continued[value]) {
                self.held.push(Held { at, value, block });
            }
        }
    }

    /// Looks for waits in blocks behind one that ends with products in flight.
    fn search(&mut self, origin: Block, first: usize, committed: u32) {
        self.searches += 1;
        let mut reach = REACH;
        let mut stack = vec![(origin, first, committed)];
        while let Some((block, first, committed)) = stack.pop() {
            self.func.blocks[block].terminator.for_each_target(|target| {
                let next = target.block;
                if reach == 0 || next == origin || !self.cfg.dominates(origin, next) || self.seen[next] == self.searches
                {
                    return;
                }
                if self.func.call_args(target).iter().any(|&arg| self.last[arg] != 0) {
                    return;
                }
                reach -= 1;
                self.seen[next] = self.searches;
                let (first, committed) = self.pass_through(next, first, committed);
                if first < self.flights.len() {
                    stack.push((next, first, committed));
                }
            });
        }
    }

    /// Holds flights at the waits of a block behind; tells what is in flight at its end.
    fn pass_through(&mut self, block: Block, mut first: usize, mut committed: u32) -> (usize, u32) {
        for index in self.of_block[block].clone() {
            match self.events[index] {
                (_, Event::Product(_)) => {}
                (_, Event::Commit) => committed += 1,
                (at, Event::Wait(left)) => {
                    let covered = self.covered(first, committed, left);
                    self.hold(first..covered, block, at, true);
                    first = covered;
                }
            }
        }
        (first, committed)
    }
}

/// The count of a `wgmma.wait_group`.
fn groups_left(operands: &[Operand]) -> u32 {
    let count = operands.iter().find_map(|operand| match operand {
        Operand::Imm(count) => u32::try_from(*count).ok(),
        _ => None,
    });
    count.unwrap_or(0)
}
