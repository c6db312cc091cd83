//! Accepts or rejects an order of a block's instructions.
//!
//! It shares with the graph what an instruction touches (`facts`) and nothing else: it walks the block in its old order
//! and remembers, for everything that two instructions may have in common, the latest *new* place of those it has seen.
//! An instruction is well placed when its new place is behind all of them.

use crate::facts::{Access, Base, Chains, Facts, FunctionFacts};
use cranelift_entity::SecondaryMap;
use ptxc_mir::{Block, Function, Inst, Object, RegUse, VReg};
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
    let mut places: FxHashMap<Inst, Place> = FxHashMap::default();
    for (index, &inst) in new.iter().enumerate() {
        places.insert(inst, index as Place + 1);
    }
    let same = old.len() == new.len() && places.len() == new.len() && old.iter().all(|inst| places.contains_key(inst));
    if !same {
        return Err(Violation::NotAPermutation(old.len(), new.len()));
    }
    let mut checker = Checker { func, ..Checker::new(func, block) };
    for (index, inst) in old.iter().enumerate() {
        let place = places[inst];
        let fault = checker.follow(*inst, &facts.of(func, *inst), place);
        if let Some(reason) = fault {
            return Err(Violation::Order { block, inst: index, reason });
        }
    }
    Ok(())
}

struct Checker<'a> {
    func: &'a Function,
    /// Places of definitions.
    defs: SecondaryMap<VReg, Place>,
    /// Latest reads of registers.
    uses: SecondaryMap<VReg, Place>,
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
    fn new(func: &'a Function, block: Block) -> Checker<'a> {
        let mut carried = FxHashMap::default();
        func.blocks[block].terminator.for_each_target(|target| {
            for (&param, &arg) in func.blocks[target.block].params.iter().zip(func.call_args(target)) {
                if param == arg {
                    carried.remove(&arg);
                } else {
                    carried.insert(arg, param);
                }
            }
        });
        Checker {
            func,
            defs: SecondaryMap::new(),
            uses: SecondaryMap::new(),
            carried,
            chains: [Latest::default(); Chains::COUNT],
            all: 0,
            boundary: 0,
            objects: FxHashMap::default(),
            bytes: FxHashMap::default(),
            bases: FxHashMap::default(),
            next_base: 1,
        }
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
        func.for_each_use(inst, |reg| early |= place < self.defs[reg]);
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
        if replaced.iter().any(|reg| place < self.uses[*reg]) {
            return Some("it writes the register that the other reads");
        }
        func.for_each_use(inst, |reg| self.uses[reg] = self.uses[reg].max(place));
        func.for_each_def(inst, |reg| self.defs[reg] = place);
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
