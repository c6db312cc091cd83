//! What branches found so far, in nested scopes.

use ptxc_ir::{Extra, Function, Inst, IntCC, Opcode, Type, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Most conditions that one condition is taken apart into.
const MOST_PARTS: usize = 16;

/// How two numbers may lie to each other: a set.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Order(u8);

impl Order {
    const LESS: Order = Order(1);
    const EQUAL: Order = Order(2);
    const GREATER: Order = Order(4);
    const ANY: Order = Order(7);

    fn of(cc: IntCC) -> Order {
        match cc {
            IntCC::Eq => Order::EQUAL,
            IntCC::Ne => Order(Order::LESS.0 | Order::GREATER.0),
            IntCC::Ult | IntCC::Slt => Order::LESS,
            IntCC::Ule | IntCC::Sle => Order(Order::LESS.0 | Order::EQUAL.0),
            IntCC::Ugt | IntCC::Sgt => Order::GREATER,
            IntCC::Uge | IntCC::Sge => Order(Order::GREATER.0 | Order::EQUAL.0),
        }
    }

    fn and(self, other: Order) -> Order {
        Order(self.0 & other.0)
    }

    /// Whether a comparison that holds for `asked` holds for all of these, or for none.
    fn decides(self, asked: Order) -> Option<bool> {
        match self.and(asked) {
            _ if self.0 == 0 => None,
            both if both == self => Some(true),
            Order(0) => Some(false),
            _ => None,
        }
    }
}

/// How two numbers lie to each other, read without sign and with it.
#[derive(Clone, Copy)]
struct Relation {
    unsigned: Order,
    signed: Order,
}

impl Relation {
    const ANY: Relation = Relation { unsigned: Order::ANY, signed: Order::ANY };

    fn with(self, cc: IntCC) -> Relation {
        let Relation { mut unsigned, mut signed } = self;
        let order = Order::of(cc);
        if matches!(cc, IntCC::Eq | IntCC::Ne) {
            (unsigned, signed) = (unsigned.and(order), signed.and(order));
        } else if cc.is_signed() {
            signed = signed.and(order);
        } else {
            unsigned = unsigned.and(order);
        }
        // Equal is equal, however the numbers are read.
        let same = |order: Order| match order {
            Order::EQUAL => Order::EQUAL,
            _ if order.and(Order::EQUAL).0 == 0 => Order::of(IntCC::Ne),
            _ => Order::ANY,
        };
        (unsigned, signed) = (unsigned.and(same(signed)), signed.and(same(unsigned)));
        Relation { unsigned, signed }
    }

    fn decides(self, cc: IntCC) -> Option<bool> {
        let order = Order::of(cc);
        let signed = || self.signed.decides(order);
        match cc {
            IntCC::Eq | IntCC::Ne => self.unsigned.decides(order).or_else(signed),
            _ if cc.is_signed() => signed(),
            _ => self.unsigned.decides(order),
        }
    }
}

/// Bounds of a number of up to 64 bits, read without sign and with it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Range {
    unsigned: (u64, u64),
    signed: (i64, i64),
}

impl Range {
    fn all(width: u32) -> Range {
        let ones = u64::MAX >> (64 - width);
        Range { unsigned: (0, ones), signed: (-((ones >> 1) as i64) - 1, (ones >> 1) as i64) }
    }

    /// The bounds where a comparison with a number holds too. Bounds that exclude each other are of code that is never
    /// executed, where the former ones serve as well.
    fn with(self, cc: IntCC, bits: u64, width: u32) -> Range {
        let number = sign_extended(bits, width);
        let Range { unsigned: (low, high), signed: (least, most) } = self;
        let mut to = self;
        match cc {
            IntCC::Eq => (to.unsigned, to.signed) = ((bits, bits), (number, number)),
            IntCC::Ne => {
                to.unsigned =
                    (low + u64::from(low == bits && low < high), high - u64::from(high == bits && low < high));
                to.signed = (
                    least + i64::from(least == number && least < most),
                    most - i64::from(most == number && least < most),
                );
            }
            IntCC::Ult => to.unsigned.1 = high.min(bits.saturating_sub(1)),
            IntCC::Ule => to.unsigned.1 = high.min(bits),
            IntCC::Ugt => to.unsigned.0 = low.max(bits.saturating_add(1)),
            IntCC::Uge => to.unsigned.0 = low.max(bits),
            IntCC::Slt => to.signed.1 = most.min(number.saturating_sub(1)),
            IntCC::Sle => to.signed.1 = most.min(number),
            IntCC::Sgt => to.signed.0 = least.max(number.saturating_add(1)),
            IntCC::Sge => to.signed.0 = least.max(number),
        }
        to = to.meet(width);
        if to.unsigned.0 <= to.unsigned.1 && to.signed.0 <= to.signed.1 { to } else { self }
    }

    /// What one reading says about the other, where the sign is known.
    fn meet(self, width: u32) -> Range {
        let Range { unsigned: (mut low, mut high), signed: (mut least, mut most) } = self;
        let positive = u64::MAX >> (64 - width) >> 1;
        if least >= 0 || high <= positive {
            least = least.max(low.min(positive) as i64);
            most = most.min(high.min(positive) as i64);
            low = low.max(least.max(0) as u64);
            high = high.min(most.max(0) as u64);
        }
        Range { unsigned: (low, high), signed: (least, most) }
    }

    fn decides(self, cc: IntCC, bits: u64, width: u32) -> Option<bool> {
        let number = sign_extended(bits, width);
        let Range { unsigned: (low, high), signed: (least, most) } = self;
        let unsigned = || order_of(low, high, bits);
        let signed = || order_of(least, most, number);
        let asked = Order::of(cc);
        match cc {
            IntCC::Eq | IntCC::Ne => unsigned().decides(asked).or_else(|| signed().decides(asked)),
            _ if cc.is_signed() => signed().decides(asked),
            _ => unsigned().decides(asked),
        }
    }
}

/// How the numbers from `low` to `high` may lie to a number.
fn order_of<T: Ord>(low: T, high: T, number: T) -> Order {
    let mut order = Order(0);
    if low < number {
        order.0 |= Order::LESS.0;
    }
    if high > number {
        order.0 |= Order::GREATER.0;
    }
    if low <= number && number <= high {
        order.0 |= Order::EQUAL.0;
    }
    order
}

fn sign_extended(bits: u64, width: u32) -> i64 {
    let shift = 64 - width;
    (bits << shift) as i64 >> shift
}

/// What was known before a fact was added.
enum Undo {
    Value(Value),
    Relation((Value, Value), Option<Relation>),
    Range(Value, Option<Range>),
}

/// What is known where the walk is.
#[derive(Default)]
pub(super) struct Facts {
    values: FxHashMap<Value, Value>,
    relations: FxHashMap<(Value, Value), Relation>,
    ranges: FxHashMap<Value, Range>,
    added: Vec<Undo>,
    /// Length of `added` at the start of each open scope.
    scopes: Vec<usize>,
}

impl Facts {
    /// Begins a scope.
    pub(super) fn enter(&mut self) {
        self.scopes.push(self.added.len());
    }

    /// Forgets what the last scope added.
    pub(super) fn leave(&mut self) {
        let start = self.scopes.pop().unwrap_or(0);
        for undo in self.added.drain(start..).rev() {
            match undo {
                Undo::Value(value) => {
                    self.values.remove(&value);
                }
                Undo::Relation(pair, before) => restore(&mut self.relations, pair, before),
                Undo::Range(value, before) => restore(&mut self.ranges, value, before),
            }
        }
    }

    /// Nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty()
    }

    /// The constant that a value is.
    pub(super) fn value(&self, value: Value) -> Option<Value> {
        self.values.get(&value).copied()
    }

    /// A condition holds, or does not.
    pub(super) fn assume(&mut self, func: &mut Function, condition: Value, truth: bool) {
        let mut work: SmallVec<[(Value, bool); 8]> = SmallVec::new();
        work.push((condition, truth));
        for _ in 0..MOST_PARTS {
            let Some((condition, truth)) = work.pop() else { break };
            let condition = func.dfg.resolve(condition);
            if func.dfg.ty(condition) != Type::I1 || func.dfg.as_const(condition).is_some() {
                continue;
            }
            let known = func.dfg.int(Type::I1, -i64::from(truth));
            self.set(condition, known);
            let Some(inst) = func.dfg.def_inst(condition) else { continue };
            let is = |value: Value, bit: u128| func.dfg.as_bits(func.dfg.resolve(value)) == Some(bit);
            match (func.dfg.insts[inst].op, func.dfg.args(inst)) {
                (Opcode::And, &[a, b]) if truth => work.extend([(a, true), (b, true)]),
                (Opcode::Or, &[a, b]) if !truth => work.extend([(a, false), (b, false)]),
                // `a && b` and `a || b`.
                (Opcode::Select, &[a, b, c]) if truth && is(c, 0) => work.extend([(a, true), (b, true)]),
                (Opcode::Select, &[a, b, c]) if !truth && is(b, 1) => work.extend([(a, false), (c, false)]),
                (Opcode::Xor, &[a, b]) if is(b, 1) => work.push((a, !truth)),
                (Opcode::Icmp, &[a, b]) => {
                    if let Extra::IntCC(cc) = func.dfg.insts[inst].extra {
                        self.compare(func, if truth { cc } else { cc.inverse() }, a, b);
                    }
                }
                _ => {}
            }
        }
    }

    /// A number is a constant.
    pub(super) fn assume_equal(&mut self, func: &Function, value: Value, number: Value) {
        self.compare(func, IntCC::Eq, value, number);
    }

    /// A comparison holds.
    fn compare(&mut self, func: &Function, cc: IntCC, a: Value, b: Value) {
        let Some((a, b, cc)) = ordered(func, a, b, cc) else { return };
        if let Some(bits) = func.dfg.as_bits(b) {
            let ty = func.dfg.ty(a);
            if cc == IntCC::Eq && ty.is_int() {
                self.set(a, b);
            }
            if let Some(width) = range_width(ty) {
                let before = self.ranges.get(&a).copied();
                let after = before.unwrap_or(Range::all(width)).with(cc, bits as u64, width);
                self.added.push(Undo::Range(a, before));
                self.ranges.insert(a, after);
            }
            return;
        }
        let before = self.relations.get(&(a, b)).copied();
        self.added.push(Undo::Relation((a, b), before));
        self.relations.insert((a, b), before.unwrap_or(Relation::ANY).with(cc));
    }

    fn set(&mut self, value: Value, known: Value) {
        if self.values.contains_key(&value) {
            return;
        }
        self.values.insert(value, known);
        self.added.push(Undo::Value(value));
    }

    /// Whether an instruction is a comparison whose result follows.
    pub(super) fn decided(&self, func: &Function, inst: Inst) -> Option<bool> {
        let data = &func.dfg.insts[inst];
        let (Opcode::Icmp, Extra::IntCC(cc), &[a, b]) = (data.op, data.extra, func.dfg.args(inst)) else { return None };
        let (a, b, cc) = ordered(func, a, b, cc)?;
        if let Some(bits) = func.dfg.as_bits(b) {
            let width = range_width(func.dfg.ty(a))?;
            return self.ranges.get(&a)?.decides(cc, bits as u64, width);
        }
        self.relations.get(&(a, b))?.decides(cc)
    }
}

fn restore<K: std::hash::Hash + Eq, V>(map: &mut FxHashMap<K, V>, key: K, before: Option<V>) {
    match before {
        Some(before) => map.insert(key, before),
        None => map.remove(&key),
    };
}

/// Operands of a comparison of scalars in a fixed order, a constant last.
fn ordered(func: &Function, a: Value, b: Value, cc: IntCC) -> Option<(Value, Value, IntCC)> {
    let (a, b) = (func.dfg.resolve(a), func.dfg.resolve(b));
    let constant = |value: Value| func.dfg.as_const(value).is_some();
    if func.dfg.ty(a).is_vector() || constant(a) && constant(b) {
        return None;
    }
    let swapped = constant(a) || !constant(b) && a > b;
    Some(if swapped { (b, a, cc.swap()) } else { (a, b, cc) })
}

/// The width of numbers whose range is kept.
fn range_width(ty: Type) -> Option<u32> {
    (ty.is_int() && !ty.is_vector() && (1..=64).contains(&ty.bits())).then(|| ty.bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONDITIONS: [IntCC; 10] = [
        IntCC::Eq,
        IntCC::Ne,
        IntCC::Ult,
        IntCC::Ule,
        IntCC::Ugt,
        IntCC::Uge,
        IntCC::Slt,
        IntCC::Sle,
        IntCC::Sgt,
        IntCC::Sge,
    ];

    /// Width 3: every number and every constant can be tried.
    fn holds(cc: IntCC, a: u64, b: u64) -> bool {
        let (x, y) = (sign_extended(a, 3), sign_extended(b, 3));
        match cc {
            IntCC::Eq => a == b,
            IntCC::Ne => a != b,
            IntCC::Ult => a < b,
            IntCC::Ule => a <= b,
            IntCC::Ugt => a > b,
            IntCC::Uge => a >= b,
            IntCC::Slt => x < y,
            IntCC::Sle => x <= y,
            IntCC::Sgt => x > y,
            IntCC::Sge => x >= y,
        }
    }

    #[test]
    fn ranges_follow_from_every_two_comparisons() {
        let mut decided = 0;
        for (first, k) in CONDITIONS.into_iter().flat_map(|cc| (0..8).map(move |k| (cc, k))) {
            for (second, l) in CONDITIONS.into_iter().flat_map(|cc| (0..8).map(move |l| (cc, l))) {
                let range = Range::all(3).with(first, k, 3).with(second, l, 3);
                let numbers: Vec<u64> = (0..8).filter(|x| holds(first, *x, k) && holds(second, *x, l)).collect();
                for (asked, m) in CONDITIONS.into_iter().flat_map(|cc| (0..8).map(move |m| (cc, m))) {
                    if let Some(truth) = range.decides(asked, m, 3) {
                        assert!(
                            numbers.iter().all(|x| holds(asked, *x, m) == truth),
                            "{first:?} {k} {second:?} {l} {asked:?} {m}"
                        );
                        decided += 1;
                    }
                }
            }
        }
        assert!(decided > 100_000, "{decided}");
    }

    #[test]
    fn orders_follow_from_every_two_comparisons() {
        let pairs = || (0..8).flat_map(|a| (0..8).map(move |b| (a, b)));
        for first in CONDITIONS {
            for second in CONDITIONS {
                let relation = Relation::ANY.with(first).with(second);
                for asked in CONDITIONS {
                    let all: Vec<bool> = pairs()
                        .filter(|(a, b)| holds(first, *a, *b) && holds(second, *a, *b))
                        .map(|(a, b)| holds(asked, a, b))
                        .collect();
                    if let Some(truth) = relation.decides(asked) {
                        assert!(all.iter().all(|one| *one == truth), "{first:?} {second:?} {asked:?}");
                    }
                    let same = first == second && first == asked;
                    assert!(!same || relation.decides(asked) == Some(true), "{first:?}");
                }
            }
        }
    }
}
