//! Sums of integers as multiples of their terms.

use ptxc_ir::{Function, FunctionBuilder, Inst, Opcode, Type, Value, ValueDef};
use smallvec::SmallVec;

use super::{MOST_OPERATIONS, Uses, before, operands};
use crate::rules::{Found, Rule};

/// A part of a tree: what it is, and where its operands stand in the list.
struct Node {
    part: Part,
    operands: [usize; 2],
}

enum Part {
    Constant,
    /// A value that stays as it is.
    Leaf,
    /// The same, extended from half the width.
    Extended,
    /// A product of two values, computed for this sum alone.
    Product,
    /// A multiple by a constant.
    Multiple(u64),
    Sum,
    Difference,
}

/// A term and how often it is taken.
struct Term {
    value: Value,
    times: u64,
    is_product: bool,
    /// Extended from half the width.
    is_extended: bool,
}

/// What a tree comes to.
struct Sum {
    terms: SmallVec<[Term; 8]>,
    constant: u64,
    /// Terms and constants were found more than once.
    repeats: bool,
    ty: Type,
}

/// A sum or difference by fewer instructions.
pub(super) fn rewrite(func: &mut Function, uses: &Uses, root: Inst) -> Option<Found> {
    let result = func.dfg.first_result(root)?;
    let ty = func.dfg.ty(result);
    if !matches!(ty, Type::I32 | Type::I64) || is_inner(func, uses, root) {
        return None;
    }
    let (nodes, sum) = collect(func, uses, root, ty)?;
    // Sums of different values alone are as good one way as the other, and may be part of something else.
    let gathers = sum.repeats || sum.terms.iter().any(|term| !sum.is_plain(term));
    if !gathers
        || lengthens_loop(func, root, &sum)
        || sum.cost() >= cost_of_tree(&nodes, &sum)
        || leaves_address(func, uses, root, &sum)
    {
        return None;
    }
    let mut builder = before(func, root);
    Some((Rule::CollectTerms, sum.emit(&mut builder)))
}

/// Whether a sum adds several products to what a loop carries, which then would wait for each of them.
fn lengthens_loop(func: &Function, root: Inst, sum: &Sum) -> bool {
    let block = func.layout.inst_block(root).filter(|block| Some(*block) != func.layout.entry());
    let carried = |value: Value| matches!(func.dfg.def(value), ValueDef::Param(of, _) if Some(of) == block);
    let factors = sum.terms.iter().filter(|term| !sum.is_plain(term)).count();
    !sum.repeats && factors > 1 && sum.terms.iter().any(|term| sum.is_plain(term) && carried(term.value))
}

/// Whether what alone uses a sum takes it into its own tree.
fn is_inner(func: &Function, uses: &Uses, inst: Inst) -> bool {
    if uses.is_abandoned(func, inst) {
        return true;
    }
    let Some(user) = uses.only_user(func, inst) else { return false };
    match func.dfg.insts[user].op {
        Opcode::Add | Opcode::Sub => true,
        // A multiple is a part of a sum, not a root.
        Opcode::Shl | Opcode::Mul => {
            let is_multiple = operands(func, user).is_some_and(|[_, by]| func.dfg.as_bits(by).is_some());
            let next = uses.only_user(func, user).map(|next| func.dfg.insts[next].op);
            is_multiple && matches!(next, Some(Opcode::Add | Opcode::Sub | Opcode::Shl | Opcode::Mul))
        }
        _ => false,
    }
}

/// Whether a sum is an index, whose parts become parts of the address as its promises and constants allow.
fn leaves_address(func: &Function, uses: &Uses, root: Inst, sum: &Sum) -> bool {
    let Some(user) = func.dfg.first_result(root).and_then(|result| uses.by[result]) else { return false };
    match func.dfg.insts[user].op {
        Opcode::Gep | Opcode::Sext | Opcode::Inttoptr => true,
        Opcode::Zext => sum.constant != 0,
        _ => false,
    }
}

/// The tree below a sum, and the terms with how often each is in it.
fn collect(func: &Function, uses: &Uses, root: Inst, ty: Type) -> Option<(Vec<Node>, Sum)> {
    let block = func.layout.inst_block(root);
    let all = u64::MAX >> (64 - ty.bits());
    let mut sum = Sum { terms: SmallVec::new(), constant: 0, repeats: false, ty };
    let mut nodes = vec![Node { part: Part::Leaf, operands: [0; 2] }];
    let mut work: Vec<(usize, Value, Option<Inst>, u64)> = vec![(0, func.dfg.first_result(root)?, Some(root), 1)];
    while let Some((at, value, inst, times)) = work.pop() {
        if let Some(bits) = func.dfg.as_bits(value) {
            nodes[at].part = Part::Constant;
            sum.repeats |= sum.constant != 0;
            sum.constant = sum.constant.wrapping_add((bits as u64).wrapping_mul(times)) & all;
            continue;
        }
        let part = inst.and_then(|inst| part_of(func, inst, ty));
        match part {
            Some((part @ (Part::Sum | Part::Difference), [a, b])) if nodes.len() < MOST_OPERATIONS => {
                let second = if matches!(part, Part::Sum) { times } else { times.wrapping_neg() & all };
                let first = nodes.len();
                nodes[at] = Node { part, operands: [first, first + 1] };
                nodes.extend([a, b].map(|_| Node { part: Part::Leaf, operands: [0; 2] }));
                work.push((first + 1, b, uses.only(func, b, block), second));
                work.push((first, a, uses.only(func, a, block), times));
            }
            Some((Part::Multiple(by), [a, _])) if nodes.len() < MOST_OPERATIONS => {
                let first = nodes.len();
                nodes[at] = Node { part: Part::Multiple(by), operands: [first; 2] };
                nodes.push(Node { part: Part::Leaf, operands: [0; 2] });
                work.push((first, a, uses.only(func, a, block), times.wrapping_mul(by) & all));
            }
            other => {
                let is_product = matches!(other, Some((Part::Product, _)));
                let is_extended = sum.add(func, value, times, is_product);
                nodes[at].part = match (is_product, is_extended) {
                    (true, _) => Part::Product,
                    (_, true) => Part::Extended,
                    _ => Part::Leaf,
                };
            }
        }
    }
    (nodes.len() > 3).then_some((nodes, sum))
}

/// What an instruction is in a tree, with its operands; of a multiple the first counts.
fn part_of(func: &Function, inst: Inst, ty: Type) -> Option<(Part, [Value; 2])> {
    let [a, b] = operands(func, inst)?;
    let part = match func.dfg.insts[inst].op {
        Opcode::Add => Part::Sum,
        Opcode::Sub if is_distance(func, a, b) => return None,
        Opcode::Sub => Part::Difference,
        Opcode::Shl => {
            let by = func.dfg.as_bits(b).filter(|by| *by < u128::from(ty.bits()))?;
            Part::Multiple(1 << by)
        }
        Opcode::Mul => match (func.dfg.as_bits(a), func.dfg.as_bits(b)) {
            (None, Some(by)) => Part::Multiple(by as u64),
            (Some(by), None) => return Some((Part::Multiple(by as u64), [b, a])),
            _ => Part::Product,
        },
        _ => return None,
    };
    Some((part, [a, b]))
}

/// The greater number less the lesser one, which is one operation.
fn is_distance(func: &Function, a: Value, b: Value) -> bool {
    let op = |value: Value| func.dfg.def_inst(value).map(|inst| func.dfg.insts[inst].op);
    matches!((op(a), op(b)), (Some(Opcode::Umax), Some(Opcode::Umin)) | (Some(Opcode::Smax), Some(Opcode::Smin)))
}

/// What a part of a tree can be joined with.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Constant,
    Plain,
    /// A multiple or product, which the next sum is part of.
    Factor,
    /// A multiple by a constant, which leaves no room for another one.
    Multiple,
    /// A sum of two, to which the same instruction adds a third.
    Two,
    Joined,
}

/// Instructions that a tree takes as it stands. Operands come after their users in the list.
fn cost_of_tree(nodes: &[Node], sum: &Sum) -> u32 {
    let add = sum.add_cost();
    let mut costs: Vec<(u32, Shape)> = vec![(0, Shape::Plain); nodes.len()];
    for (at, node) in nodes.iter().enumerate().rev() {
        let (a, b) = (costs[node.operands[0]], costs[node.operands[1]]);
        costs[at] = match node.part {
            Part::Constant => (0, Shape::Constant),
            Part::Leaf | Part::Extended => (0, Shape::Plain),
            Part::Product => (0, Shape::Factor),
            Part::Multiple(by) => {
                let is_extended = matches!(nodes[node.operands[0]].part, Part::Extended);
                match by.is_power_of_two() && !is_extended {
                    true => (a.0 + add, Shape::Factor),
                    false => (a.0 + sum.multiply_cost(by, is_extended), Shape::Multiple),
                }
            }
            Part::Sum | Part::Difference => {
                let is = |shape: Shape| a.1 == shape || b.1 == shape;
                let total = a.0 + b.0;
                match () {
                    () if is(Shape::Multiple) && !is(Shape::Constant) || is(Shape::Factor) => (total, Shape::Joined),
                    () if is(Shape::Two) => (total, Shape::Joined),
                    () => (total + add, Shape::Two),
                }
            }
        };
    }
    costs[0].0
}

impl Sum {
    /// Adds so many times a value. Tells whether it is extended from half the width.
    fn add(&mut self, func: &Function, value: Value, times: u64, is_product: bool) -> bool {
        let all = u64::MAX >> (64 - self.ty.bits());
        if let Some(term) = self.terms.iter_mut().find(|term| term.value == value) {
            term.times = term.times.wrapping_add(times) & all;
            self.repeats = true;
            return term.is_extended;
        }
        let is_extended = self.ty == Type::I64 && is_half(func, value);
        self.terms.push(Term { value, times: times & all, is_product, is_extended });
        is_extended
    }

    /// Words of a number.
    fn add_cost(&self) -> u32 {
        self.ty.bits() / 32
    }

    /// Instructions of a multiplication that is no shift. A wide one is of words first, then of the upper halves.
    fn multiply_cost(&self, by: u64, is_extended: bool) -> u32 {
        let is_short = by <= u64::from(u32::MAX);
        match self.ty {
            Type::I64 if is_extended && is_short => 1,
            Type::I64 if is_short => 3,
            Type::I64 => 4,
            _ => 1,
        }
    }

    /// How often, with a sign.
    fn signed(&self, times: u64) -> i64 {
        let unused = 64 - self.ty.bits();
        ((times << unused) as i64) >> unused
    }

    /// Whether a term is added as it is, or subtracted.
    fn is_plain(&self, term: &Term) -> bool {
        !term.is_product && matches!(self.signed(term.times), 1 | -1)
    }

    /// Instructions that the terms take, as [`Sum::emit`] puts them.
    fn cost(&self) -> u32 {
        let terms = || self.terms.iter().filter(|term| term.times != 0);
        let plain = terms().filter(|term| self.is_plain(term)).count() as u32;
        let addends = plain + u32::from(self.constant != 0);
        // Three are added at once.
        let sums = addends.saturating_sub(1).div_ceil(2) * self.add_cost();
        let mut factors = 0;
        let mut takes_constant = false;
        for term in terms().filter(|term| !self.is_plain(term)) {
            let size = self.signed(term.times).unsigned_abs();
            factors += match (term.is_product, size) {
                // It is there already, and adds what it is added to.
                (true, 1) if self.signed(term.times) == 1 => 0,
                (true, 1) => self.add_cost(),
                (_, size) if size.is_power_of_two() && !term.is_extended => self.add_cost(),
                (_, _) => self.multiply_cost(term.times, term.is_extended),
            };
            takes_constant |= term.is_product || size.is_power_of_two();
        }
        let alone = plain == 1 && addends == 1 && factors == 0 && terms().any(|term| self.signed(term.times) == -1);
        let apart = plain == 0 && self.constant != 0 && factors != 0 && !takes_constant;
        sums + factors + if alone || apart { self.add_cost() } else { 0 }
    }

    /// Puts the terms together: those that are added as they are first, then one multiplication after the other, each with the sum
    /// so far.
    fn emit(&self, builder: &mut FunctionBuilder<'_>) -> Value {
        let ty = self.ty;
        let (plain, factors): (SmallVec<[&Term; 8]>, SmallVec<[&Term; 8]>) =
            self.terms.iter().filter(|term| term.times != 0).partition(|term| self.is_plain(term));
        let (added, taken): (SmallVec<[&Term; 8]>, SmallVec<[&Term; 8]>) =
            plain.into_iter().partition(|term| term.times == 1);
        let mut total: Option<Value> = None;
        for term in added {
            total = Some(plus(builder, total, term.value));
        }
        if self.constant != 0 {
            let constant = builder.bits(ty, self.constant.into());
            total = Some(plus(builder, total, constant));
        }
        // Nothing can be taken from nothing: a multiple comes first.
        let mut factors = factors.into_iter();
        if total.is_none() && !taken.is_empty() {
            total = factors.next().map(|term| self.multiple(builder, term, None));
        }
        for term in taken {
            let from = total.unwrap_or_else(|| builder.bits(ty, 0));
            total = Some(builder.binary(Opcode::Sub, from, term.value));
        }
        for term in factors {
            total = Some(self.multiple(builder, term, total));
        }
        total.unwrap_or_else(|| builder.bits(ty, 0))
    }

    /// A multiple of a term, added to the sum so far.
    fn multiple(&self, builder: &mut FunctionBuilder<'_>, term: &Term, to: Option<Value>) -> Value {
        let times = self.signed(term.times);
        let size = times.unsigned_abs();
        let is_power = size.is_power_of_two() && !term.is_extended;
        if is_power && (times > 0 || to.is_some()) {
            let scaled = match size {
                1 => term.value,
                _ => builder.binary_imm(Opcode::Shl, term.value, size.trailing_zeros().into()),
            };
            return match to {
                Some(to) if times < 0 => builder.binary(Opcode::Sub, to, scaled),
                _ => plus(builder, to, scaled),
            };
        }
        let by = builder.bits(self.ty, term.times.into());
        let scaled = builder.binary(Opcode::Mul, term.value, by);
        plus(builder, to, scaled)
    }
}

/// Whether 64 bits are an extended word: by an extension, or the lower or upper one of two by a mask or shift.
fn is_half(func: &Function, value: Value) -> bool {
    let Some(inst) = func.dfg.def_inst(value) else { return false };
    let constant = || func.dfg.args(inst).get(1).and_then(|by| func.dfg.as_bits(*by));
    match func.dfg.insts[inst].op {
        Opcode::Zext | Opcode::Sext => true,
        Opcode::And => constant().is_some_and(|kept| kept <= u32::MAX.into()),
        Opcode::Lshr => constant().is_some_and(|by| (32..64).contains(&by)),
        _ => false,
    }
}

/// A sum with what is there so far, if anything.
fn plus(builder: &mut FunctionBuilder<'_>, to: Option<Value>, value: Value) -> Value {
    match to {
        Some(to) => builder.binary(Opcode::Add, value, to),
        None => value,
    }
}
