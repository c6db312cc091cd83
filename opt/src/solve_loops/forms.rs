//! What the values of a loop are in each round, as functions of the number of the round.

use ptxc_ir::{Extra, Function, Inst, IntCC, Opcode, Value, ValueDef};

use super::shape::Ring;
use super::width_of;
use crate::widths::mask;

/// `start + step * round`: how far something is moved, or which bit is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Steps {
    pub start: i64,
    pub step: i64,
}

impl Steps {
    /// The same in every round.
    pub const fn fixed(start: i64) -> Steps {
        Steps { start, step: 0 }
    }

    fn plus(self, more: i64) -> Steps {
        Steps { start: self.start + more, ..self }
    }

    /// `from - self`.
    fn less_than(self, from: i64) -> Steps {
        Steps { start: from - self.start, step: -self.step }
    }
}

/// A bit of a value that does not change; zero where the value has none at that place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BitOf {
    pub base: Value,
    pub at: Steps,
}

/// A value, moved up, where a bit is set; else zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Copied {
    /// The value; none for 1.
    pub of: Option<Value>,
    pub by: Steps,
    pub bit: BitOf,
}

/// A value in each round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// The same in each.
    Fixed(Value),
    /// `from + plus + step * round`, without `from` where there is none.
    Counter { from: Option<Value>, plus: u64, step: u64 },
    /// A counter that was extended: right where it is an amount of a shift that is not poison.
    Amount(Steps),
    /// A value moved up or down.
    Moved { base: Value, up: bool, by: Steps },
    /// The low bits of a value moved down.
    Part { base: Value, by: Steps },
    /// A value without its lowest ones: as many as rounds, and some more.
    Cleared { base: Value, ahead: i64 },
    /// Whether a bit is set, or is not.
    Flag { bit: BitOf, set: bool },
    /// All ones where a bit is set, else zero.
    Mask(BitOf),
    /// A copy for a bit.
    Copy(Copied),
    /// What `op` makes of a value and a copy for each earlier round; `doubled` before each.
    Sum { start: Value, op: Opcode, copy: Copied, doubled: bool },
    /// `start`, in odd rounds with the bits of `by` changed.
    Flipped { start: Value, by: Value },
}

/// The forms of a loop's values.
pub(super) struct Forms<'f> {
    func: &'f Function,
    ring: &'f Ring,
    /// A few dozen at most.
    known: Vec<(Value, Option<Form>)>,
}

impl<'f> Forms<'f> {
    /// Finds them. `initial` is what the header receives from outside.
    pub fn new(func: &'f Function, ring: &'f Ring, initial: &[Value]) -> Forms<'f> {
        let mut forms = Forms { func, ring, known: Vec::new() };
        let params = func.dfg.block_params(ring.header());
        let changes =
            || params.iter().zip(initial).zip(&ring.next).map(|((param, first), next)| (*param, *first, *next));
        for (param, first, next) in changes() {
            let form = forms.carried(param, first, next);
            forms.known.push((param, form));
        }
        for inst in ring.blocks.iter().flat_map(|block| func.layout.insts(*block)) {
            if let Some(result) = func.dfg.first_result(inst) {
                let form = forms.computed(inst, result);
                forms.known.push((result, form));
            }
        }
        for (at, (param, first, next)) in changes().enumerate() {
            if forms.known[at].1.is_none() {
                forms.known[at].1 = forms.summed(param, first, next);
            }
        }
        forms
    }

    /// Whether a value is computed in the loop.
    pub fn is_inside(&self, value: Value) -> bool {
        match self.func.dfg.def(self.func.dfg.resolve(value)) {
            ValueDef::Result(inst, _) => {
                self.func.layout.inst_block(inst).is_some_and(|block| self.ring.blocks.contains(&block))
            }
            ValueDef::Param(block, _) => self.ring.blocks.contains(&block),
            ValueDef::Const(_) | ValueDef::Alias(_) => false,
        }
    }

    /// The form of a value, if it has one.
    pub fn form(&self, value: Value) -> Option<Form> {
        let value = self.func.dfg.resolve(value);
        match self.known.iter().find(|(known, _)| *known == value) {
            Some((_, form)) => *form,
            None => (!self.is_inside(value)).then_some(Form::Fixed(value)),
        }
    }

    /// The bits of a constant of at most 64.
    fn number(&self, value: Value) -> Option<u64> {
        width_of(self.func.dfg.ty(value))?;
        self.func.dfg.as_bits(self.func.dfg.resolve(value)).map(|bits| bits as u64)
    }

    fn is(&self, value: Value, number: u64) -> bool {
        self.number(value) == Some(number)
    }

    /// An instruction of the loop with two operands.
    fn two(&self, value: Value) -> Option<(Opcode, Value, Value)> {
        let inst = self.func.dfg.def_inst(value).filter(|_| self.is_inside(value))?;
        let &[a, b] = self.func.dfg.args(inst) else { return None };
        Some((self.func.dfg.insts[inst].op, self.func.dfg.resolve(a), self.func.dfg.resolve(b)))
    }

    /// `value` is `of + of`.
    fn is_double(&self, value: Value, of: Value) -> bool {
        match self.two(value) {
            Some((Opcode::Shl, a, b)) => a == of && self.is(b, 1),
            Some((Opcode::Mul, a, b)) => a == of && self.is(b, 2),
            Some((Opcode::Add, a, b)) => a == of && b == of,
            _ => false,
        }
    }

    /// A parameter that is changed by itself alone.
    fn carried(&self, param: Value, first: Value, next: Value) -> Option<Form> {
        let width = width_of(self.func.dfg.ty(param))?;
        let moved = |up| Form::Moved { base: first, up, by: Steps { start: 0, step: 1 } };
        if next == param {
            return Some(Form::Fixed(first));
        }
        if self.is_double(next, param) {
            return Some(moved(true));
        }
        let counter = |step: u64| match self.number(first) {
            Some(plus) => Form::Counter { from: None, plus, step },
            None => Form::Counter { from: Some(first), plus: 0, step },
        };
        let (op, a, b) = self.two(next)?;
        let (a, b) = if b == param && op != Opcode::Sub { (b, a) } else { (a, b) };
        if a != param {
            return None;
        }
        match (op, self.number(b)) {
            (Opcode::Add, Some(step)) => Some(counter(step)),
            (Opcode::Sub, Some(step)) => Some(counter(step.wrapping_neg() & mask(width))),
            (Opcode::Lshr, Some(1)) | (Opcode::Udiv, Some(2)) => Some(moved(false)),
            (Opcode::Xor, Some(_)) => Some(Form::Flipped { start: first, by: b }),
            (Opcode::And, None) if self.is_one_less(b, a) => Some(Form::Cleared { base: first, ahead: 0 }),
            _ => None,
        }
    }

    /// `value` is `of - 1`.
    fn is_one_less(&self, value: Value, of: Value) -> bool {
        match (self.two(value), width_of(self.func.dfg.ty(value))) {
            (Some((Opcode::Add, a, b)), Some(width)) => a == of && self.is(b, mask(width)),
            (Some((Opcode::Sub, a, b)), _) => a == of && self.is(b, 1),
            _ => false,
        }
    }

    /// A parameter that a copy is added to in each round.
    fn summed(&self, param: Value, start: Value, next: Value) -> Option<Form> {
        let ty = self.func.dfg.ty(param);
        width_of(ty)?;
        // The parameter, or twice it: which it is.
        let kept = |value: Value| match value == param {
            true => Some(false),
            false => self.is_double(value, param).then_some(true),
        };
        let inst = self.func.dfg.def_inst(next).filter(|_| self.is_inside(next))?;
        if let &[flag, yes, no] = self.func.dfg.args(inst) {
            let Some(Form::Flag { bit, set }) = self.form(flag) else { return None };
            let (yes, no) = (self.func.dfg.resolve(yes), self.func.dfg.resolve(no));
            let (yes, no) = if set { (yes, no) } else { (no, yes) };
            let doubled = kept(no)?;
            let (op, a, b) = self.two(yes).filter(|(op, ..)| is_sum(*op))?;
            let other = if a == no {
                b
            } else if b == no {
                a
            } else {
                return None;
            };
            let copy = self.copy_of(self.form(other)?, bit)?;
            return (!doubled || copy.by.step == 0).then_some(Form::Sum { start, op, copy, doubled });
        }
        let (op, a, b) = self.two(next)?;
        if let (Opcode::Sub, Some(Form::Mask(bit))) = (op, self.form(b)) {
            let copy = Copied { of: None, by: Steps::fixed(0), bit };
            return (a == param).then_some(Form::Sum { start, op: Opcode::Add, copy, doubled: false });
        }
        if !is_sum(op) {
            return None;
        }
        [(a, b), (b, a)].into_iter().find_map(|(sum, added)| {
            let doubled = kept(sum)?;
            let copy = match self.form(added)? {
                Form::Copy(copy) => copy,
                Form::Flag { bit, set: true } if op == Opcode::Xor => Copied { of: None, by: Steps::fixed(0), bit },
                _ => return None,
            };
            (!doubled || copy.by.step == 0).then_some(Form::Sum { start, op, copy, doubled })
        })
    }

    /// What is copied where a bit is set.
    fn copy_of(&self, form: Form, bit: BitOf) -> Option<Copied> {
        let one = |base: Value| (!self.is(base, 1)).then_some(base);
        match form {
            Form::Fixed(base) => Some(Copied { of: one(base), by: Steps::fixed(0), bit }),
            Form::Moved { base, up: true, by } => Some(Copied { of: one(base), by, bit }),
            _ => None,
        }
    }

    /// An amount of a shift.
    fn steps(&self, value: Value) -> Option<Steps> {
        let width = width_of(self.func.dfg.ty(value))?;
        match self.form(value)? {
            Form::Amount(steps) => Some(steps),
            Form::Counter { from: None, plus, step } => {
                let start = i64::try_from(plus).ok().filter(|start| *start <= 64 && width >= 8)?;
                let step = if step == 1 {
                    1
                } else if step == mask(width) {
                    -1
                } else {
                    return None;
                };
                Some(Steps { start, step })
            }
            _ => None,
        }
    }

    /// The form of an instruction's result.
    fn computed(&self, inst: Inst, result: Value) -> Option<Form> {
        let data = &self.func.dfg.insts[inst];
        let width = width_of(self.func.dfg.ty(result))?;
        match *self.func.dfg.args(inst) {
            [a] => self.converted(data.op, a, width),
            [a, b] => {
                let (a, b) = (self.func.dfg.resolve(a), self.func.dfg.resolve(b));
                match data.extra {
                    Extra::IntCC(cc) => self.compared(cc, a, b),
                    _ => self.binary(data.op, a, b, width),
                }
            }
            [flag, yes, no] if data.op == Opcode::Select => {
                let Form::Flag { bit, set } = self.form(flag)? else { return None };
                let (yes, no) = if set { (yes, no) } else { (no, yes) };
                (self.is(no, 0)).then(|| self.copy_of(self.form(yes)?, bit).map(Form::Copy))?
            }
            _ => None,
        }
    }

    fn binary(&self, op: Opcode, a: Value, b: Value, width: u32) -> Option<Form> {
        let last = i64::from(width) - 1;
        match op {
            Opcode::Add if a == b => self.moved_up(a, 1),
            Opcode::Add => self.counted(a, self.number(b)?, width),
            Opcode::Sub if self.is(a, 0) && matches!(self.form(b)?, Form::Copy(_)) => match self.form(b)? {
                Form::Copy(copy) if copy.of.is_none() && copy.by == Steps::fixed(0) => Some(Form::Mask(copy.bit)),
                _ => None,
            },
            Opcode::Sub => match self.number(b) {
                Some(less) => self.counted(a, less.wrapping_neg() & mask(width), width),
                None => match self.form(b)? {
                    Form::Counter { from: None, plus, step } => {
                        let plus = self.number(a)?.wrapping_sub(plus) & mask(width);
                        Some(Form::Counter { from: None, plus, step: step.wrapping_neg() & mask(width) })
                    }
                    _ => None,
                },
            },
            Opcode::Shl => match self.number(b) {
                Some(by) => self.moved_up(a, i64::try_from(by).ok().filter(|by| *by <= last)?),
                None => {
                    let by = self.steps(b)?;
                    match self.form(a)? {
                        Form::Fixed(base) => Some(Form::Moved { base, up: true, by }),
                        Form::Copy(copy) if copy.of.is_none() && copy.by.step == 0 => {
                            Some(Form::Copy(Copied { by: by.plus(copy.by.start), ..copy }))
                        }
                        _ => None,
                    }
                }
            },
            Opcode::Lshr | Opcode::Udiv => self.moved_down(op, a, b, last),
            Opcode::Ashr => match self.form(a)? {
                Form::Moved { base, up: true, by } if self.number(b) == Some(last as u64) => {
                    Some(Form::Mask(BitOf { base, at: by.less_than(last) }))
                }
                _ => None,
            },
            Opcode::And => self.masked(a, b).or_else(|| self.masked(b, a)),
            Opcode::Urem if self.is(b, 2) => self.masked_by(self.form(a)?, 1),
            Opcode::Mul => [(a, b), (b, a)].into_iter().find_map(|(copied, bit)| match self.form(bit)? {
                Form::Copy(copy) if copy.of.is_none() && copy.by == Steps::fixed(0) => {
                    self.copy_of(self.form(copied)?, copy.bit).map(Form::Copy)
                }
                _ => None,
            }),
            Opcode::Xor if width == 1 && self.is(b, 1) => match self.form(a)? {
                Form::Flag { bit, set } => Some(Form::Flag { bit, set: !set }),
                _ => None,
            },
            _ => None,
        }
    }

    /// A constant added to a counter.
    fn counted(&self, counter: Value, more: u64, width: u32) -> Option<Form> {
        match self.form(counter)? {
            Form::Counter { from, plus, step } => {
                Some(Form::Counter { from, plus: plus.wrapping_add(more) & mask(width), step })
            }
            _ => None,
        }
    }

    fn moved_up(&self, value: Value, more: i64) -> Option<Form> {
        match self.form(value)? {
            Form::Moved { base, up: true, by } => Some(Form::Moved { base, up: true, by: by.plus(more) }),
            Form::Copy(copy) => Some(Form::Copy(Copied { by: copy.by.plus(more), ..copy })),
            _ => None,
        }
    }

    /// `lshr`, or `udiv` by a power of two.
    fn moved_down(&self, op: Opcode, a: Value, b: Value, last: i64) -> Option<Form> {
        let amount = match (op, self.number(b)) {
            (Opcode::Udiv, Some(by)) if by.is_power_of_two() => Some(i64::from(by.trailing_zeros())),
            (Opcode::Lshr, Some(by)) => Some(i64::try_from(by).ok().filter(|by| *by <= last)?),
            (Opcode::Lshr, None) => None,
            _ => return None,
        };
        match (self.form(a)?, amount) {
            (Form::Moved { base, up: false, by }, Some(more)) => {
                Some(Form::Moved { base, up: false, by: by.plus(more) })
            }
            (Form::Moved { base, up: true, by }, Some(more)) if more == last => {
                let bit = BitOf { base, at: by.less_than(last) };
                Some(Form::Copy(Copied { of: None, by: Steps::fixed(0), bit }))
            }
            (Form::Fixed(base), None) => Some(Form::Moved { base, up: false, by: self.steps(b)? }),
            _ => None,
        }
    }

    /// `a & b`, in this order.
    fn masked(&self, a: Value, b: Value) -> Option<Form> {
        if let Some(kept) = self.number(b) {
            return self.masked_by(self.form(a)?, kept);
        }
        if let Form::Cleared { base, ahead } = self.form(a)? {
            return self.is_one_less(b, a).then_some(Form::Cleared { base, ahead: ahead + 1 });
        }
        match (self.form(a)?, self.form(b)?) {
            (Form::Mask(bit), copied) => self.copy_of(copied, bit).map(Form::Copy),
            (Form::Moved { base, up: true, by }, Form::Fixed(bits)) if self.is(base, 1) => {
                Some(Form::Copy(Copied { of: None, by, bit: BitOf { base: bits, at: by } }))
            }
            _ => None,
        }
    }

    /// One bit where it stands.
    fn masked_by(&self, form: Form, kept: u64) -> Option<Form> {
        if !kept.is_power_of_two() {
            return None;
        }
        let place = i64::from(kept.trailing_zeros());
        let bit = match form {
            Form::Moved { base, up: false, by } | Form::Part { base, by } => BitOf { base, at: by.plus(place) },
            Form::Moved { base, up: true, by } => BitOf { base, at: by.less_than(place) },
            _ => return None,
        };
        Some(Form::Copy(Copied { of: None, by: Steps::fixed(place), bit }))
    }

    fn converted(&self, op: Opcode, a: Value, width: u32) -> Option<Form> {
        match (op, self.form(a)?) {
            (Opcode::Zext | Opcode::Sext, Form::Counter { from: None, .. }) => Some(Form::Amount(self.steps(a)?)),
            (Opcode::Zext, Form::Flag { bit, set: true }) => {
                Some(Form::Copy(Copied { of: None, by: Steps::fixed(0), bit }))
            }
            (Opcode::Sext, Form::Flag { bit, set: true }) => Some(Form::Mask(bit)),
            (Opcode::Sext, Form::Mask(bit)) => Some(Form::Mask(bit)),
            // The bit stays where it is.
            (Opcode::Zext | Opcode::Trunc, Form::Copy(copy))
                if copy.of.is_none()
                    && copy.by.step == 0
                    && width > 1
                    && copy.by.start < i64::from(width)
                    && copy.by.start < i64::from(width_of(self.func.dfg.ty(a))?) =>
            {
                Some(Form::Copy(copy))
            }
            (Opcode::Trunc, Form::Copy(copy)) if width == 1 && copy.of.is_none() && copy.by == Steps::fixed(0) => {
                Some(Form::Flag { bit: copy.bit, set: true })
            }
            (Opcode::Zext, Form::Moved { base, up: false, by }) => Some(Form::Part { base, by }),
            (Opcode::Trunc, Form::Moved { base, up: false, by } | Form::Part { base, by }) => Some(match width {
                1 => Form::Flag { bit: BitOf { base, at: by }, set: true },
                _ => Form::Part { base, by },
            }),
            (Opcode::Trunc, Form::Counter { from: None, plus, step }) => {
                Some(Form::Counter { from: None, plus: plus & mask(width), step: step & mask(width) })
            }
            _ => None,
        }
    }

    fn compared(&self, cc: IntCC, a: Value, b: Value) -> Option<Form> {
        let width = width_of(self.func.dfg.ty(a))?;
        let last = i64::from(width) - 1;
        match (self.form(a)?, cc, self.number(b)?) {
            // One bit, where it is in the number.
            (Form::Copy(copy), IntCC::Eq | IntCC::Ne, 0) if copy.of.is_none() => {
                let stays = copy.by.step == 0 && (0..=last).contains(&copy.by.start);
                let set = cc == IntCC::Ne;
                (stays || copy.by == copy.bit.at).then_some(Form::Flag { bit: copy.bit, set })
            }
            (Form::Copy(copy), IntCC::Eq | IntCC::Ne, 1) if copy.of.is_none() && copy.by == Steps::fixed(0) => {
                Some(Form::Flag { bit: copy.bit, set: cc == IntCC::Eq })
            }
            (Form::Moved { base, up: true, by }, cc, number) => {
                let set = match (cc, number) {
                    (IntCC::Slt, 0) => true,
                    (IntCC::Sge, 0) => false,
                    (IntCC::Sgt, ones) if ones == mask(width) => false,
                    (IntCC::Sle, ones) if ones == mask(width) => true,
                    _ => return None,
                };
                Some(Form::Flag { bit: BitOf { base, at: by.less_than(last) }, set })
            }
            _ => None,
        }
    }
}

/// Whether an operation puts copies together.
fn is_sum(op: Opcode) -> bool {
    matches!(op, Opcode::Xor | Opcode::Or | Opcode::Add)
}
