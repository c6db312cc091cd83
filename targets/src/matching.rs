//! Which forms a mnemonic may be: pieces into slots, in order or out of it.

use crate::expression::evaluate;
use crate::tables::{self, FormRow, OperandRow, SlotRow, flag};
use crate::{Effects, Space, Target, Tok};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::rc::Rc;

/// No piece in a slot.
pub(crate) const EMPTY: u16 = u16::MAX;

/// No mnemonic has more pieces.
pub(crate) const MAX_PIECES: usize = 40;

/// The piece in each slot of a form.
#[derive(Clone, Debug)]
pub(crate) struct Binding(SmallVec<[u16; 24]>);

impl Binding {
    /// The pieces of every slot, [`EMPTY`] where there is none.
    pub(crate) fn from_pieces(pieces: &[u16]) -> Binding {
        Binding(pieces.iter().copied().collect())
    }

    pub(crate) fn get(&self, slot: u16) -> u16 {
        self.0[usize::from(slot)]
    }

    /// The pieces in the specification's order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Tok> + '_ {
        self.0.iter().filter(|piece| **piece != EMPTY).map(|piece| Tok(*piece))
    }
}

/// Whether an operand is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Presence {
    Always,
    Never,
    Maybe,
}

/// What one operand must be, with the mnemonic's modifiers filled in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperandCheck {
    pub row: &'static OperandRow,
    /// Number in [`tables::TYPES`], or `u16::MAX`.
    pub ty: u16,
    pub len: u16,
    pub presence: Presence,
    /// Type of the first element of a vector, as `ty`.
    pub first: u16,
    /// A 32-bit address register will do.
    pub small: bool,
    /// The space that a variable in the address must be in.
    pub space: Option<Space>,
}

/// A form whose slots the mnemonic fills.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub form: u16,
    pub binding: Binding,
    pub checks: Vec<OperandCheck>,
    /// Message of the rule that forbids the combination.
    pub forbidden: Option<&'static str>,
    pub effects: Effects,
    pub requirements: SmallVec<[u16; 4]>,
    /// Lowest version by target, `u8::MAX` where refused.
    pub versions: [u8; tables::TARGETS.len()],
    /// Some rule depends on the operands.
    pub dynamic: bool,
}

pub(crate) fn row(form: u16) -> &'static FormRow {
    &tables::FORMS[usize::from(form)]
}

fn part<T>(all: &'static [T], (start, len): (u32, u32)) -> &'static [T] {
    &all[start as usize..(start + len) as usize]
}

pub(crate) fn slots(form: u16) -> &'static [SlotRow] {
    part(tables::SLOTS, row(form).slots)
}

pub(crate) fn operands(form: u16) -> &'static [OperandRow] {
    part(tables::OPERANDS, row(form).operands)
}

fn rules(form: u16) -> &'static [tables::RuleRow] {
    part(tables::RULES, row(form).rules)
}

pub(crate) fn alternatives(slot: &SlotRow) -> &'static [u16] {
    part(tables::PIECES, (slot.start, slot.len))
}

/// The forms of the instruction `head`.
pub(crate) fn forms_of(head: Tok) -> &'static [u16] {
    let (start, len) = tables::HEADS[head.index()];
    part(tables::HEAD_FORMS, (u32::from(start), u32::from(len)))
}

/// Every form that `toks` fill, in the table's order. Some modifiers may be repeated.
pub(crate) fn candidates(toks: &[Tok]) -> Vec<Candidate> {
    let found = exact_candidates(toks);
    if !found.is_empty() || toks.len() > MAX_PIECES {
        return found;
    }
    let once: SmallVec<[Tok; 24]> = toks
        .iter()
        .enumerate()
        .filter(|(at, piece)| !(repeatable(**piece) && toks[..*at].contains(piece)))
        .map(|(_, piece)| *piece)
        .collect();
    if once.len() < toks.len() { exact_candidates(&once) } else { found }
}

/// Candidates by mnemonic.
type Found = FxHashMap<Box<[Tok]>, Rc<[Candidate]>>;

thread_local! {
    /// What [`remembered`] found, by mnemonic.
    static FOUND: RefCell<Found> = RefCell::default();
}

/// A program has few mnemonics; input that has more than this may be slow.
const MAX_REMEMBERED: usize = 4096;

/// [`candidates`], remembered on this thread: a program repeats its mnemonics.
pub(crate) fn remembered(toks: &[Tok]) -> Rc<[Candidate]> {
    FOUND.with_borrow_mut(|found| {
        if let Some(candidates) = found.get(toks) {
            return Rc::clone(candidates);
        }
        if found.len() >= MAX_REMEMBERED {
            found.clear();
        }
        let candidates: Rc<[Candidate]> = candidates(toks).into();
        found.insert(toks.into(), Rc::clone(&candidates));
        candidates
    })
}

/// Modifiers that the assembler takes twice.
fn repeatable(piece: Tok) -> bool {
    matches!(piece.text(), "sync" | "uni" | "sat" | "cc" | "relu" | "NaN" | "approx" | "shiftamt" | "satfinite")
}

fn exact_candidates(toks: &[Tok]) -> Vec<Candidate> {
    let Some(&head) = toks.first() else {
        return Vec::new();
    };
    if toks.len() > MAX_PIECES {
        return Vec::new();
    }
    let mut found = Vec::new();
    for &form in forms_of(head) {
        if let Some(binding) = bind(form, toks) {
            found.push(Candidate::new(form, binding));
        }
    }
    found
}

/// Puts every piece into a slot; in order if that is possible.
fn bind(form: u16, toks: &[Tok]) -> Option<Binding> {
    let slots = slots(form);
    let mandatory = slots.iter().filter(|slot| !slot.optional).count();
    if toks.len() < mandatory || toks.len() > slots.len() {
        return None;
    }
    let mut search = Search { slots, toks, filled: SmallVec::from_elem(EMPTY, slots.len()), ordered: true };
    if search.place(0, [0; 5]) {
        return Some(Binding(search.filled));
    }
    if !names_first(slots, toks) {
        return None;
    }
    search.ordered = false;
    search.filled.fill(EMPTY);
    search.place(0, [0; 5]).then_some(Binding(search.filled))
}

/// Whether the pieces of the instruction's name come first: `cp.async.bulk`, `mbarrier.arrive`.
fn names_first(slots: &[SlotRow], toks: &[Tok]) -> bool {
    let is_name =
        |slot: &SlotRow| !slot.optional && alternatives(slot).iter().all(|piece| NAMES.contains(&Tok(*piece).text()));
    let mut named = slots.iter().zip(toks).skip(1).take_while(|(slot, _)| is_name(slot));
    named.all(|(slot, piece)| alternatives(slot).contains(&piece.0))
}

/// Pieces that are part of an instruction's name where they follow its first piece.
const NAMES: [&str; 42] = [
    "alloc",
    "arrive",
    "arrive_drop",
    "async",
    "bulk",
    "check_layout",
    "commit",
    "commit_group",
    "complete_tx",
    "cp",
    "cp_fenceproxy",
    "dealloc",
    "expect_tx",
    "fence",
    "idx",
    "init",
    "inval",
    "ld",
    "ld_reduce",
    "load",
    "mma",
    "mma_async",
    "pack",
    "pending_count",
    "query_cancel",
    "red",
    "reduce",
    "relinquish_alloc_permit",
    "replace",
    "shift",
    "st",
    "store",
    "submit",
    "tensor",
    "test_wait",
    "try_atom",
    "try_cancel",
    "try_get",
    "try_pullred",
    "try_put",
    "try_red",
    "try_wait",
];

struct Search<'a> {
    slots: &'static [SlotRow],
    toks: &'a [Tok],
    filled: SmallVec<[u16; 24]>,
    ordered: bool,
}

/// The first slot that is free for each class of pieces whose order matters.
type Froms = [u8; 5];

impl Search<'_> {
    /// Places the pieces from `at` on. In order, only slots after the last are free; out of order that
    /// holds within each class of [`order_class`], and the other pieces go anywhere.
    fn place(&mut self, at: usize, froms: Froms) -> bool {
        let Some(&piece) = self.toks.get(at) else {
            return self.slots.iter().zip(&self.filled).all(|(slot, held)| slot.optional || *held != EMPTY);
        };
        let class = if self.ordered || at == 0 { 1 } else { order_class(piece) };
        let start = if class > 0 { usize::from(froms[class]) } else { 0 };
        for index in start..self.slots.len() {
            let free = self.filled[index] == EMPTY;
            if free && alternatives(&self.slots[index]).contains(&piece.0) {
                self.filled[index] = piece.0;
                let mut next = froms;
                next[class] = (index + 1) as u8;
                if self.place(at + 1, next) {
                    return true;
                }
                self.filled[index] = EMPTY;
            }
            if at == 0 || self.ordered && free && !self.slots[index].optional {
                break;
            }
        }
        false
    }
}

/// Pieces that say which operand they speak of by their place: types, layouts, spaces and cache
/// priorities keep their order among themselves. Class 0 is free.
fn order_class(piece: Tok) -> usize {
    if tables::TOKEN_TYPE[piece.index()] != u16::MAX {
        return 1;
    }
    match piece.text() {
        "hi" | "lo" | "wide" | "to" => 1,
        "row" | "col" => 2,
        "global" | "shared" | "shared::cta" | "shared::cluster" => 3,
        text if text.starts_with("L2::evict") => 4,
        _ => 0,
    }
}

impl Candidate {
    pub(crate) fn new(form: u16, binding: Binding) -> Candidate {
        let mut new = Candidate {
            form,
            checks: Vec::new(),
            forbidden: None,
            effects: Effects::NONE,
            requirements: SmallVec::new(),
            versions: [0; tables::TARGETS.len()],
            dynamic: false,
            binding,
        };
        for (target, version) in Target::ALL.iter().zip(&mut new.versions) {
            *version = target.min_ptx().number();
        }
        for (slot, held) in slots(form).iter().zip(new.binding.0.clone()) {
            if let Some(at) = alternatives(slot).iter().position(|piece| *piece == held) {
                new.require(tables::PIECE_NEEDS[slot.start as usize + at]);
            }
        }
        for rule in rules(form) {
            if rule.dynamic {
                new.dynamic = true;
            } else if rule.code == 0 || new.value(rule.code) != 0 {
                new.apply(rule);
            }
        }
        new.checks = operands(form).iter().map(|row| new.operand(row)).collect();
        new
    }

    fn value(&self, code: u32) -> i32 {
        evaluate(code, &self.binding, &|_, _| false)
    }

    fn apply(&mut self, rule: &tables::RuleRow) {
        match rule.kind {
            0 => self.forbidden = self.forbidden.or(Some(tables::MESSAGES[rule.value as usize])),
            1 => self.require(rule.value as u16),
            _ => self.effects = self.effects | Effects(rule.value),
        }
    }

    fn require(&mut self, number: u16) {
        if number == 0 {
            return;
        }
        if !self.requirements.contains(&number) {
            self.requirements.push(number);
        }
        let requirement = &tables::REQUIREMENTS[usize::from(number)];
        for (version, needed) in self.versions.iter_mut().zip(requirement.versions) {
            *version = (*version).max(*needed);
        }
    }

    /// The lowest version on target `index` with the operands known, `u8::MAX` where the target or
    /// the combination is refused.
    pub(crate) fn version_with(&self, index: usize, operand: &dyn Fn(crate::expression::Question, u16) -> bool) -> u8 {
        let mut version = self.versions[index];
        if !self.dynamic {
            return version;
        }
        for rule in rules(self.form) {
            if rule.dynamic && rule.kind < 2 && evaluate(rule.code, &self.binding, operand) != 0 {
                version = match rule.kind {
                    0 => u8::MAX,
                    _ => version.max(tables::REQUIREMENTS[rule.value as usize].versions[index]),
                };
            }
        }
        version
    }

    /// Applies the rules that depend on operands.
    pub(crate) fn apply_dynamic(&mut self, operand: &dyn Fn(crate::expression::Question, u16) -> bool) {
        for rule in rules(self.form) {
            if rule.dynamic && evaluate(rule.code, &self.binding, operand) != 0 {
                self.apply(rule);
            }
        }
    }

    fn operand(&self, row: &'static OperandRow) -> OperandCheck {
        let code = |code: u32, absent: i32| if code == 0 { absent } else { self.value(code) };
        let presence = match row.flags & flag::OPTIONAL != 0 {
            false => Presence::Always,
            true if row.cond == 0 => Presence::Maybe,
            true if self.value(row.cond) != 0 => Presence::Always,
            true => Presence::Never,
        };
        OperandCheck {
            row,
            ty: code(row.ty, -1) as u16,
            first: code(row.first, code(row.ty, -1)) as u16,
            len: code(row.len, 1) as u16,
            presence,
            small: code(row.small, 1) != 0,
            space: row.space.checked_sub(1).and_then(|slot| {
                let piece = self.binding.get(u16::from(slot));
                (piece != EMPTY).then(|| space_of(Tok(piece)))?
            }),
        }
    }
}

/// The state space that a piece names.
fn space_of(piece: Tok) -> Option<Space> {
    match piece.text().split("::").next()? {
        "global" => Some(Space::Global),
        "shared" => Some(Space::Shared),
        "local" => Some(Space::Local),
        "const" => Some(Space::Const),
        "param" => Some(Space::Param),
        _ => None,
    }
}
