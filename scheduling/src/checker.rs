//! Accepts or rejects an order of a block's instructions, or of those of a chain of blocks.
//!
//! It shares with the graph what an instruction touches (`facts`) and nothing else: it walks the block in its old order
//! and remembers, for everything that two instructions may have in common, the latest *new* place of those it has seen.
//! An instruction is well placed when its new place is behind all of them. Of chains it asks in addition that each block is
//! entered from the one before it alone, that what went past a way out may be executed or left out there, and that the
//! readers of what went down come after it on every way.

use crate::facts::{Access, Base, Chains, Facts, FunctionFacts};
use cranelift_entity::SecondaryMap;
use ptxc_mir::{Block, Cfg, Function, Inst, Object, RegUse, Terminator, VReg};
use rustc_hash::FxHashMap;

/// A fault of an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The new order has not the old one's instructions.
    #[error("{0} instructions became {1}, or not the same ones")]
    NotAPermutation(usize, usize),
    /// An instruction stands before another that it has to follow.
    #[error("instruction {inst} of {block} comes before another that it has to follow: {reason}")]
    Order {
        /// The block.
        block: Block,
        /// Place of the instruction in the old order.
        inst: usize,
        /// What orders them.
        reason: &'static str,
    },
    /// The end of a block reads what is written later.
    #[error("the end of {0} reads a register that is written after it")]
    End(Block),
    /// A block is entered from elsewhere, or is in two chains.
    #[error("{0} is not entered from the block before it alone")]
    NotAChain(Block),
    /// What was made again is not what it was.
    #[error("{block}: {reason}")]
    Copies {
        /// The block.
        block: Block,
        /// What is wrong.
        reason: &'static str,
    },
    /// A register is read where it may not have been written.
    #[error("{block} reads a register that is written in {home}, which does not come before it on every way")]
    Missing {
        /// The block that reads.
        block: Block,
        /// The block that writes.
        home: Block,
    },
}

/// The latest new place of something; 0 is "nowhere", places count from 1.
type Place = u32;

/// Latest reads and writes.
#[derive(Clone, Copy, Default)]
struct Latest {
    read: Place,
    write: Place,
}

impl Latest {
    fn note(&mut self, write: bool, place: Place) {
        let latest = if write { &mut self.write } else { &mut self.read };
        *latest = (*latest).max(place);
    }

    /// Behind what a read or a write has to be.
    fn before(self, write: bool) -> Place {
        if write { self.read.max(self.write) } else { self.write }
    }
}

/// Latest accesses to an object from the base that has them, and from any other.
#[derive(Clone, Copy, Default)]
struct ByBase {
    first: (u32, Place),
    second: Place,
}

impl ByBase {
    fn note(&mut self, base: u32, place: Place) {
        if base == self.first.0 {
            self.first.1 = self.first.1.max(place);
        } else if place > self.first.1 {
            self.second = self.first.1;
            self.first = (base, place);
        } else {
            self.second = self.second.max(place);
        }
    }

    fn besides(self, base: u32) -> Place {
        if base == self.first.0 { self.second } else { self.first.1 }
    }
}

/// Checks that the instructions of a block may be in the order `new` instead of `old`.
///
/// # Errors
/// The first fault, in the old order.
pub fn check(
    func: &Function,
    facts: &FunctionFacts<'_>,
    block: Block,
    old: &[Inst],
    new: &[Inst],
) -> Result<(), Violation> {
    check_chain(func, facts, &[block], &|_| old, &|_| new).map(|_| ())
}

/// Checks that the instructions of a function may be where they are, instead of where `old` has them. Within a chain they
/// may have changed their block; all others are in their blocks.
///
/// # Errors
/// The first fault, chain by chain in the old order.
pub fn check_function<'a>(
    func: &Function,
    facts: &FunctionFacts<'_>,
    old: &SecondaryMap<Block, Vec<Inst>>,
    chains: impl Iterator<Item = &'a [Block]>,
) -> Result<(), Violation> {
    let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
    let mut sunk: FxHashMap<VReg, Block> = FxHashMap::default();
    let mut one_chain = |chain: &[Block]| {
        for &block in chain {
            if std::mem::replace(&mut seen[block], true) {
                return Err(Violation::NotAChain(block));
            }
        }
        let moved = check_chain(func, facts, chain, &|block| &old[block], &|block| &func.blocks[block].insts)?;
        sunk.extend(moved);
        Ok(())
    };
    let ways_in = count_ways_in(func);
    for chain in chains {
        for pair in chain.windows(2) {
            let mut enters = 0;
            func.blocks[pair[0]].terminator.for_each_target(|target| enters += u32::from(target.block == pair[1]));
            if enters != 1 || ways_in[pair[1]] != 1 {
                return Err(Violation::NotAChain(pair[1]));
            }
        }
        one_chain(chain)?;
    }
    let rest: Vec<Block> = func.layout.iter().copied().filter(|block| !seen[*block]).collect();
    for block in rest {
        check_chain(func, facts, &[block], &|block| &old[block], &|block| &func.blocks[block].insts)?;
    }
    if sunk.is_empty() { Ok(()) } else { check_readers(func, &sunk) }
}

/// How many ways lead into each block; the start of the function is one.
fn count_ways_in(func: &Function) -> SecondaryMap<Block, u32> {
    let mut ways: SecondaryMap<Block, u32> = SecondaryMap::with_capacity(func.blocks.len());
    func.entry().into_iter().for_each(|entry| ways[entry] += 1);
    for &block in &func.layout {
        func.blocks[block].terminator.for_each_target(|target| ways[target.block] += 1);
    }
    ways
}

/// Checks that what reads the results of instructions that went down comes after them on every way. Within a block the
/// order tells.
fn check_readers(func: &Function, sunk: &FxHashMap<VReg, Block>) -> Result<(), Violation> {
    let cfg = Cfg::compute(func);
    let mut fault = None;
    for &block in &func.layout {
        let mut read = |reg: VReg| {
            if let Some(&home) = sunk.get(&reg)
                && home != block
                && !cfg.dominates(home, block)
            {
                fault.get_or_insert(Violation::Missing { block, home });
            }
        };
        func.blocks[block].insts.iter().for_each(|&inst| func.for_each_use(inst, &mut read));
        func.for_each_terminator_use(block, &mut read);
    }
    fault.map_or(Ok(()), Err)
}

/// Checks blocks each of which is entered from the one before it only. Gives the registers that are now written further
/// down, and where.
fn check_chain<'a>(
    func: &Function,
    facts: &FunctionFacts<'_>,
    chain: &[Block],
    old: &dyn Fn(Block) -> &'a [Inst],
    new: &dyn Fn(Block) -> &'a [Inst],
) -> Result<Vec<(VReg, Block)>, Violation> {
    let mut places: FxHashMap<Inst, (Place, usize)> = FxHashMap::default();
    let (mut ends, mut place, mut made) = (Vec::with_capacity(chain.len()), 0, 0);
    for (index, &block) in chain.iter().enumerate() {
        for &inst in new(block) {
            place += 1;
            made += 1;
            places.insert(inst, (place, index));
        }
        // The end of the block has a place too.
        place += 1;
        ends.push(place);
    }
    let mut before = chain.iter().flat_map(|&block| old(block));
    let count = before.clone().count();
    if count != made || places.len() != made || !before.all(|inst| places.contains_key(inst)) {
        return Err(Violation::NotAPermutation(count, made));
    }
    let mut checker = Checker::new(func);
    let mut sunk = Vec::new();
    for (index, &block) in chain.iter().enumerate() {
        checker.enter(block, index.checked_sub(1).map_or(0, |above| ends[above]));
        for (position, &inst) in old(block).iter().enumerate() {
            let (place, home) = places[&inst];
            let crossed = &chain[index.min(home)..index.max(home)];
            let is_only_way = crossed.iter().all(|block| matches!(func.blocks[*block].terminator, Terminator::Jump(_)));
            let may_leave = match home < index {
                true => facts.may_speculate(func, inst),
                false => facts.may_skip(func, inst),
            };
            let fault = match is_only_way || may_leave {
                true => checker.follow(inst, &facts.of(func, inst), place),
                false => Some("it went past a way out"),
            };
            if let Some(reason) = fault {
                return Err(Violation::Order { block, inst: position, reason });
            }
            if home > index {
                func.for_each_def(inst, |reg| sunk.push((reg, chain[home])));
            }
        }
        if !checker.ends_at(block, ends[index]) {
            return Err(Violation::End(block));
        }
    }
    Ok(sunk)
}

struct Checker<'a> {
    func: &'a Function,
    /// Places of definitions.
    defs: FxHashMap<VReg, Place>,
    /// Latest reads of registers.
    uses: FxHashMap<VReg, Place>,
    /// The parameter that a register becomes.
    carried: FxHashMap<VReg, VReg>,
    chains: [Latest; Chains::COUNT],
    /// Latest place of all, and of boundaries.
    all: Place,
    boundary: Place,
    /// By domain and object.
    objects: FxHashMap<(usize, Object), (ByBase, ByBase, Latest)>,
    /// By domain, object, base and byte.
    bytes: FxHashMap<(usize, Object, u32, i64), Latest>,
    /// Numbers of bases; those that cannot be compared get one each time.
    bases: FxHashMap<Base, u32>,
    next_base: u32,
}

impl<'a> Checker<'a> {
    fn new(func: &'a Function) -> Checker<'a> {
        Checker {
            func,
            defs: FxHashMap::default(),
            uses: FxHashMap::default(),
            carried: FxHashMap::default(),
            chains: [Latest::default(); Chains::COUNT],
            all: 0,
            boundary: 0,
            objects: FxHashMap::default(),
            bytes: FxHashMap::default(),
            bases: FxHashMap::default(),
            next_base: 1,
        }
    }

    /// Begins a block, which control enters at a place.
    fn enter(&mut self, block: Block, place: Place) {
        let func = self.func;
        self.carried.clear();
        func.blocks[block].params.iter().for_each(|&param| {
            self.defs.insert(param, place);
        });
        func.blocks[block].terminator.for_each_target(|target| {
            for (&param, &arg) in func.blocks[target.block].params.iter().zip(func.call_args(target)) {
                if param == arg {
                    self.carried.remove(&arg);
                } else {
                    self.carried.insert(arg, param);
                }
            }
        });
    }

    /// Whether all that the end of a block reads is written before its place.
    fn ends_at(&self, block: Block, place: Place) -> bool {
        let mut good = true;
        self.func.for_each_terminator_use(block, |reg| good &= latest(&self.defs, reg) <= place);
        good
    }

    /// Takes the next instruction of the old order; a reason when its new place is wrong.
    fn follow(&mut self, inst: Inst, facts: &Facts, place: Place) -> Option<&'static str> {
        if place < self.boundary || (facts.boundary && place < self.all) {
            return Some("nothing moves past a boundary");
        }
        if let Some(reason) = self.registers(inst, place) {
            return Some(reason);
        }
        for number in facts.reads.union(facts.writes).numbers() {
            let writes = facts.writes.numbers().any(|other| other == number);
            if place < self.chains[number].before(writes) {
                return Some("both are in an ordered chain");
            }
        }
        let accesses: Vec<(Access, u32)> =
            facts.accesses.iter().map(|access| (*access, self.base(access.base))).collect();
        if accesses.iter().any(|(access, base)| place < self.behind(access, *base)) {
            return Some("both access memory that may overlap");
        }
        for number in facts.reads.numbers() {
            self.chains[number].note(false, place);
        }
        for number in facts.writes.numbers() {
            self.chains[number].note(true, place);
        }
        if !facts.asynchronous {
            accesses.iter().for_each(|(access, base)| self.note(access, *base, place));
        }
        self.all = self.all.max(place);
        if facts.boundary {
            self.boundary = place;
        }
        None
    }

    fn registers(&mut self, inst: Inst, place: Place) -> Option<&'static str> {
        let func = self.func;
        let mut early = false;
        func.for_each_use(inst, |reg| early |= place < latest(&self.defs, reg));
        if early {
            return Some("it reads a register that the other writes");
        }
        let mut replaced: Vec<VReg> = Vec::new();
        for access in func.inst_operands(inst).iter().filter_map(|operand| operand.reg()) {
            if let RegUse::Tied { used, .. } = access {
                replaced.push(used);
            }
            if let RegUse::Def(def) | RegUse::Tied { def, .. } = access {
                replaced.extend(self.carried.get(&def));
            }
        }
        if replaced.iter().any(|reg| place < latest(&self.uses, *reg)) {
            return Some("it writes the register that the other reads");
        }
        func.for_each_use(inst, |reg| {
            let seen = self.uses.entry(reg).or_default();
            *seen = place.max(*seen);
        });
        func.for_each_def(inst, |reg| {
            self.defs.insert(reg, place);
        });
        None
    }

    fn base(&mut self, base: Base) -> u32 {
        let next = self.next_base;
        let number = match base {
            Base::Anywhere => next,
            _ => *self.bases.entry(base).or_insert(next),
        };
        self.next_base += u32::from(number == next);
        number
    }

    /// The latest place of what an access may overlap.
    fn behind(&self, access: &Access, base: u32) -> Place {
        let mut latest = 0;
        for domain in access.domains.numbers() {
            for (&(other_domain, object), (reads, writes, all)) in &self.objects {
                if other_domain != domain {
                    continue;
                }
                if object == access.object {
                    latest = latest.max(writes.besides(base));
                    if access.write {
                        latest = latest.max(reads.besides(base));
                    }
                } else if may_overlap(object, access.object) {
                    latest = latest.max(all.before(access.write));
                }
            }
            for byte in access.start..access.end {
                if let Some(seen) = self.bytes.get(&(domain, access.object, base, byte)) {
                    latest = latest.max(seen.before(access.write));
                }
            }
        }
        latest
    }

    fn note(&mut self, access: &Access, base: u32, place: Place) {
        for domain in access.domains.numbers() {
            let (reads, writes, all) = self.objects.entry((domain, access.object)).or_default();
            if access.write {
                writes.note(base, place)
            } else {
                reads.note(base, place)
            }
            all.note(access.write, place);
            for byte in access.start..access.end {
                self.bytes.entry((domain, access.object, base, byte)).or_default().note(access.write, place);
            }
        }
    }
}

/// The place of a register's definition or last use; nowhere when there was none.
fn latest(places: &FxHashMap<VReg, Place>, reg: VReg) -> Place {
    places.get(&reg).copied().unwrap_or(0)
}

/// Whether two different objects may overlap.
fn may_overlap(a: Object, b: Object) -> bool {
    use Object::{Frame, NoAlias, Parameters, Symbol, Unknown};
    match (a, b) {
        (Unknown, _) | (_, Unknown) => true,
        (NoAlias(_), _) | (_, NoAlias(_)) => false,
        (Parameters, _) | (_, Parameters) => true,
        (Symbol(_) | Frame(_), Symbol(_) | Frame(_)) => false,
    }
}
