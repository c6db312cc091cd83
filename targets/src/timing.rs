//! What instructions cost on the machines: classes, units, latencies.
//!
//! `models/classes.model` says of which [`Class`] an instruction is, the other files there what a class costs on
//! which machine. [`Model::of`] is the machine of a target, [`Model::timing`] what an instruction costs on it.

pub use crate::occupancy::{LaunchBounds, Limit, Occupancy, WARP_SIZE};
use crate::tables;
use crate::{Target, Tok};
use std::fmt;

/// A line `class` or `unit`.
pub(crate) struct NamedRow {
    pub name: &'static str,
    pub text: &'static str,
    pub asynchronous: bool,
}

/// What the cost of an instruction grows with.
#[derive(Clone, Copy)]
pub(crate) enum Measure {
    None,
    /// 32-bit words: elements of the vector and bits of the type.
    Words,
    /// The number of a piece `x4`.
    Number,
    /// `n` of a shape.
    Columns,
    /// `k` of a shape.
    Depth,
}

/// A line `HEADS : CONDITIONS -> CLASS`.
pub(crate) struct ClassRule {
    pub conditions: (u32, u32),
    pub class: u8,
    pub measure: Measure,
    pub divisor: u16,
}

/// A number of cycles: the first, and the second for each of a count.
type Linear = (u16, u16);

/// What one class costs on one machine.
pub(crate) struct CostRow {
    pub unit: u8,
    pub latency: Linear,
    pub interval: Linear,
    pub issue: Linear,
}

/// One machine.
pub(crate) struct ModelRow {
    pub name: &'static str,
    pub registers: u32,
    pub register_unit: u32,
    pub warps: u32,
    pub blocks: u32,
    pub shared_kib: u32,
    pub shared_reserved: u32,
    pub shared_unit: u32,
    pub partitions: u32,
    pub cached: u16,
    pub second_level: u16,
    pub memory: u16,
    pub costs: &'static [CostRow],
}

mod generated {
    use super::{ClassRule, CostRow, Measure, ModelRow, NamedRow};
    include!(concat!(env!("OUT_DIR"), "/models.rs"));
}

/// What instructions that cost the same are called, such as `load_shared`.
///
/// Numbers may change between builds; store [`Class::name`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(u8);

impl Class {
    /// How many classes there are.
    pub const COUNT: usize = generated::CLASSES.len();

    /// Every class, in the table's order.
    pub fn all() -> impl Iterator<Item = Class> {
        (0..Class::COUNT).map(|index| Class(index as u8))
    }

    /// The class of the instruction `toks`, whatever its operands. Pieces that begin no instruction are [`Class::OTHER`].
    pub fn of(toks: &[Tok]) -> Class {
        rule(toks).map_or(Class::OTHER, |rule| Class(rule.class))
    }

    /// The class of that name.
    pub fn named(name: &str) -> Option<Class> {
        Class::all().find(|class| class.name() == name)
    }

    /// Reads of special registers (`mov.u32 %r1, %tid.x`), which their mnemonic does not tell from copies.
    pub const SPECIAL_REGISTER: Class = Class::constant("special_register");
    /// Calls and returns.
    pub const CALL: Class = Class::constant("call");
    /// Branches.
    pub const BRANCH: Class = Class::constant("branch");
    /// What stands for text that is no known instruction.
    pub const OTHER: Class = Class::constant("move");

    /// [`Class::named`] at build time; the first class if there is none.
    const fn constant(name: &str) -> Class {
        let mut index = 0;
        while index < Class::COUNT {
            if same_text(generated::CLASSES[index].name, name) {
                return Class(index as u8);
            }
            index += 1;
        }
        panic!("models/classes.model lacks a class that the source names")
    }

    fn row(self) -> &'static NamedRow {
        &generated::CLASSES[usize::from(self.0)]
    }

    /// The name in the tables.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What it holds, in words.
    pub fn description(self) -> &'static str {
        self.row().text
    }

    /// Whether the operation goes on after its instruction: its latency is then that until it is complete, which
    /// something has to wait for.
    pub fn is_asynchronous(self) -> bool {
        self.row().asynchronous
    }

    /// Position in [`Class::all`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

const fn same_text(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut index = 0;
    while index < a.len() {
        if a[index] != b[index] {
            return false;
        }
        index += 1;
    }
    true
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A part of the multiprocessor that instructions occupy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unit(u8);

impl Unit {
    /// How many units there are.
    pub const COUNT: usize = generated::UNITS.len();

    /// Every unit, in the table's order.
    pub fn all() -> impl Iterator<Item = Unit> {
        (0..Unit::COUNT).map(|index| Unit(index as u8))
    }

    /// The name in the tables, such as `tensor`.
    pub fn name(self) -> &'static str {
        generated::UNITS[usize::from(self.0)].name
    }

    /// What it does, in words.
    pub fn description(self) -> &'static str {
        generated::UNITS[usize::from(self.0)].text
    }

    /// Position in [`Unit::all`], below [`Unit::COUNT`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Debug for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What one instruction costs a warp, in cycles of the multiprocessor's clock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Timing {
    /// What it is timed as.
    pub class: Class,
    /// What it occupies.
    pub unit: Unit,
    /// From its issue until an instruction that reads its results can be issued; for an asynchronous operation
    /// ([`Class::is_asynchronous`]) until it is complete; for a store or a barrier, until what waits for it can go on.
    pub latency: u16,
    /// How long it keeps its unit from the same warp's next instruction there.
    pub interval: u16,
    /// How many issue slots it takes, or how long it keeps the warp from going on: the instructions of the machine that
    /// the assembler makes of it. 0 where it makes none, and only renames.
    pub issue: u16,
}

/// A machine: what instructions cost and what a multiprocessor holds.
#[derive(Clone, Copy)]
pub struct Model {
    pub(crate) row: &'static ModelRow,
}

impl Model {
    /// The machine of `target`.
    pub fn of(target: Target) -> &'static Model {
        &MODELS[usize::from(generated::TARGET_MODELS[target.index()])]
    }

    /// Every machine, in the order of the tables.
    pub fn all() -> &'static [Model] {
        &MODELS
    }

    /// The machine's name in the tables, such as `hopper`.
    pub fn name(&self) -> &'static str {
        self.row.name
    }

    /// What the instruction with the pieces `toks` costs. It looks at every piece: ask once for each opcode.
    pub fn timing(&self, toks: &[Tok]) -> Timing {
        match rule(toks) {
            Some(rule) => self.cost(Class(rule.class), count(toks, rule)),
            None => self.cost(Class::OTHER, 1),
        }
    }

    /// What an instruction of `class` costs; of a class whose cost grows with a count, one of count 1.
    pub fn timing_of_class(&self, class: Class) -> Timing {
        self.cost(class, 1)
    }

    fn cost(&self, class: Class, count: u16) -> Timing {
        let row = &self.row.costs[class.index()];
        let at = |(base, step): Linear| base.saturating_add(step.saturating_mul(count));
        Timing {
            class,
            unit: Unit(row.unit),
            latency: at(row.latency),
            interval: at(row.interval),
            issue: at(row.issue),
        }
    }

    /// Cycles of a load that the first-level cache holds.
    pub fn cached_latency(&self) -> u16 {
        self.row.cached
    }

    /// Cycles of a load that the second-level cache holds.
    pub fn second_level_latency(&self) -> u16 {
        self.row.second_level
    }

    /// Cycles of a load from memory.
    pub fn memory_latency(&self) -> u16 {
        self.row.memory
    }
}

static MODELS: [Model; generated::MODELS.len()] = {
    let mut all = [Model { row: &generated::MODELS[0] }; generated::MODELS.len()];
    let mut index = 0;
    while index < all.len() {
        all[index] = Model { row: &generated::MODELS[index] };
        index += 1;
    }
    all
};

/// The first rule of the instruction whose conditions hold; the build script saw to it that the last has none.
fn rule(toks: &[Tok]) -> Option<&'static ClassRule> {
    let head = toks.first()?;
    let (start, len) = generated::CLASS_HEADS[head.index()];
    let rules = &generated::CLASS_HEAD_RULES[usize::from(start)..usize::from(start) + usize::from(len)];
    let holds = |(negated, start, len): (bool, u32, u32)| {
        let pieces = &generated::CLASS_PIECES[start as usize..(start + len) as usize];
        toks[1..].iter().any(|tok| pieces.contains(&tok.0)) != negated
    };
    rules.iter().map(|&index| &generated::CLASS_RULES[usize::from(index)]).find(|rule| {
        let (start, len) = rule.conditions;
        generated::CLASS_CONDITIONS[start as usize..(start + len) as usize].iter().all(|&condition| holds(condition))
    })
}

/// How many of what its rule measures the instruction has; at least 1.
fn count(toks: &[Tok], rule: &ClassRule) -> u16 {
    let number = |tok: &Tok| tables::TOKEN_NUMBER[tok.index()];
    let side = |side: usize| toks.iter().map(|tok| tables::TOKEN_SHAPE[tok.index()][side]).max().unwrap_or(1);
    let count = match rule.measure {
        Measure::None => 1,
        Measure::Words => {
            let is_type = |tok: &&Tok| tables::TOKEN_TYPE[tok.index()] != u16::MAX;
            let bits = toks.iter().rfind(is_type).map_or(32, number);
            let lanes = toks.iter().find(|tok| matches!(tok.text(), "v2" | "v4" | "v8")).map_or(1, number);
            bits.saturating_mul(lanes).div_ceil(32)
        }
        Measure::Number => {
            let repeats = |tok: &&Tok| tok.text().strip_prefix('x').is_some_and(|rest| rest.parse::<u16>().is_ok());
            toks.iter().find(repeats).map_or(1, number)
        }
        Measure::Columns => side(1),
        Measure::Depth => side(2),
    };
    (count / rule.divisor).max(1)
}
