//! Cuts of a network of logic: the sets of up to five values that a value is a function of, each with its truth table and
//! what computing the value from them costs. (Cut enumeration and area flow, as in technology mapping for FPGAs, whose
//! lookup tables of three inputs are `lop3` here.)

use super::table::{self, INPUT, MAX_INPUTS, Split};

/// Cost of one instruction. Divisible by the small numbers of uses that share it.
pub(super) const INSTRUCTION: u32 = 12;
/// Cost of a second constant in one instruction: it needs a register.
const CONSTANT: u32 = 6;
/// Cuts kept of a value, the cheapest first.
const KEPT: usize = 6;

/// Where a leaf's value comes from, as far as the cost of having it matters.
#[derive(Clone, Copy)]
pub(super) struct Leaf {
    /// Number of the value: orders leaves.
    pub number: u32,
    /// Share of the cost of computing it.
    pub cost: u32,
    /// It is a constant.
    pub constant: bool,
}

/// How a value is computed from the leaves of a cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// It is the leaf, or 0, or all ones.
    Free,
    /// One table.
    One,
    /// Two tables.
    Two(Split),
    /// More than this module makes; other cuts may contain it.
    Many,
}

/// A value as a function of leaves.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    leaves: [Leaf; MAX_INPUTS],
    len: u8,
    /// Bits that do not depend on inputs from `len` on.
    pub table: u32,
    /// How it is computed.
    pub form: Form,
    /// Cost of the value and its share of the leaves.
    pub cost: u32,
}

impl Cut {
    /// A constant: 0 or all ones.
    pub fn constant(ones: bool) -> Cut {
        let leaf = Leaf { number: 0, cost: 0, constant: true };
        Cut { leaves: [leaf; MAX_INPUTS], len: 0, table: if ones { u32::MAX } else { 0 }, form: Form::Free, cost: 0 }
    }

    /// The value as its own leaf.
    pub fn leaf(leaf: Leaf) -> Cut {
        Cut { leaves: [leaf; MAX_INPUTS], len: 1, table: INPUT[0], form: Form::Free, cost: leaf.cost }
    }

    /// The complement of a leaf: no instruction where it goes into a table.
    pub fn complement(mut self) -> Cut {
        self.table = !self.table;
        self
    }

    /// Whether the value is zero whatever the leaves are.
    pub fn is_zero(&self) -> bool {
        self.len == 0 && self.table == 0
    }

    /// The leaves, ascending.
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves[..usize::from(self.len)]
    }

    /// The result of a function of two values cut; `None` when the leaves are more than a table has inputs.
    fn merge(a: &Cut, b: &Cut, function: impl Fn(u32, u32) -> u32) -> Option<Cut> {
        let mut merged = *a;
        let (mut from_a, mut from_b) = ([0u8; MAX_INPUTS], [0u8; MAX_INPUTS]);
        let (mut i, mut j, mut len) = (0, 0, 0);
        let (left, right) = (a.leaves(), b.leaves());
        while i < left.len() || j < right.len() {
            let at = *merged.leaves.get(len).map(|_| &len)?;
            let take_a = i < left.len() && (j == right.len() || left[i].number <= right[j].number);
            let take_b = j < right.len() && (i == left.len() || right[j].number <= left[i].number);
            merged.leaves[at] = if take_a { left[i] } else { right[j] };
            if take_a {
                from_a[i] = at as u8;
                i += 1;
            }
            if take_b {
                from_b[j] = at as u8;
                j += 1;
            }
            len += 1;
        }
        let spread = |table: u32, from: &[u8]| {
            // From the highest on, so that no place is taken.
            from.iter().enumerate().rev().fold(table, |t, (k, to)| table::move_up(t, k, usize::from(*to)))
        };
        merged.table = function(spread(a.table, &from_a[..left.len()]), spread(b.table, &from_b[..right.len()]));
        merged.len = len as u8;
        merged.drop_idle_leaves();
        merged.judge();
        Some(merged)
    }

    /// Leaves out those that the table does not depend on.
    fn drop_idle_leaves(&mut self) {
        let len = usize::from(self.len);
        if (0..len).all(|k| table::depends_on(self.table, k)) {
            return;
        }
        let mut order = [0u8; MAX_INPUTS];
        let mut kept = 0;
        for k in 0..len {
            if table::depends_on(self.table, k) {
                self.leaves[kept] = self.leaves[k];
                order[kept] = k as u8;
                kept += 1;
            }
        }
        self.table = table::reorder(self.table, &order[..kept]);
        self.len = kept as u8;
    }

    /// Finds the form and the cost.
    fn judge(&mut self) {
        let len = usize::from(self.len);
        self.form = match len {
            0 => Form::Free,
            1 if self.table == INPUT[0] => Form::Free,
            1..=3 => Form::One,
            _ => table::split(self.table, len).map_or(Form::Many, Form::Two),
        };
        let instructions = match self.form {
            Form::Free => 0,
            Form::One => 1,
            Form::Two(_) => 2,
            Form::Many => 3,
        };
        let constants = self.leaves().iter().filter(|l| l.constant).count() as u32;
        let shared = self.leaves().iter().map(|l| l.cost).fold(0, u32::saturating_add);
        self.cost = shared.saturating_add(instructions * INSTRUCTION + constants.saturating_sub(1) * CONSTANT);
    }

    fn same_leaves(&self, other: &Cut) -> bool {
        self.leaves().iter().map(|l| l.number).eq(other.leaves().iter().map(|l| l.number))
    }
}

/// The cuts kept of a value, the cheapest first.
#[derive(Clone, Copy)]
pub(super) struct Cuts {
    cuts: [Cut; KEPT],
    len: u8,
}

impl Cuts {
    /// Just one.
    pub fn one(cut: Cut) -> Cuts {
        Cuts { cuts: [cut; KEPT], len: 1 }
    }

    /// Those of a function of two values.
    pub fn of(a: &Cuts, b: &Cuts, function: impl Fn(u32, u32) -> u32) -> Cuts {
        let mut out = Cuts { cuts: [Cut::constant(false); KEPT], len: 0 };
        for x in a.as_slice() {
            for y in b.as_slice() {
                if let Some(cut) = Cut::merge(x, y, &function) {
                    out.keep(cut);
                }
            }
        }
        out
    }

    /// The cuts.
    pub fn as_slice(&self) -> &[Cut] {
        &self.cuts[..usize::from(self.len)]
    }

    /// The cheapest that can be computed.
    pub fn best(&self) -> Option<&Cut> {
        self.as_slice().iter().find(|cut| cut.form != Form::Many)
    }

    /// Adds a cut; of two with the same leaves the table is the same, so one is enough.
    pub fn keep(&mut self, cut: Cut) {
        let rank = |c: &Cut| (c.cost, c.len);
        let len = usize::from(self.len);
        if self.as_slice().iter().any(|c| c.same_leaves(&cut)) {
            return;
        }
        let at = self.as_slice().iter().position(|c| rank(&cut) < rank(c)).unwrap_or(len);
        if at >= KEPT {
            return;
        }
        let last = len.min(KEPT - 1);
        self.cuts.copy_within(at..last, at + 1);
        self.cuts[at] = cut;
        self.len = (last + 1) as u8;
    }
}
