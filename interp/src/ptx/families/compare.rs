//! Comparison and selection (PTX ISA 9.7.7, 9.7.8).

use std::cmp::Ordering;

use crate::float;
use crate::ptx::instruction::Instruction;
use crate::ptx::operand::Slot;
use crate::ptx::program::Operation;
use crate::ptx::types::{Class, Type, low_bits, sign_extend};

/// Decodes the family.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    Ok(Some(match i.head() {
        "setp" => setp(i)?,
        "set" => set(i)?,
        "selp" => {
            let ty = i.ty()?;
            let (d, a, b) = (i.dest(0)?.slot, i.source(1, ty)?, i.source(2, ty)?);
            let (p, flip) = i.predicate(3)?;
            let flip = u64::from(flip);
            Operation::compute(move |at| at.map3(d, a, b, p, |x, y, p| if (p ^ flip) & 1 != 0 { x } else { y }))
        }
        "slct" => slct(i)?,
        _ => return Ok(None),
    }))
}

const CODES: [&str; 18] = [
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
];

/// Which outcomes a comparison accepts: less, equal, greater, unordered.
#[derive(Clone, Copy)]
struct Accepts {
    less: bool,
    equal: bool,
    greater: bool,
    unordered: bool,
}

impl Accepts {
    fn of(code: &str) -> Accepts {
        let unordered = matches!(code, "equ" | "neu" | "ltu" | "leu" | "gtu" | "geu" | "nan");
        let (less, equal, greater) = match code {
            "eq" | "equ" => (false, true, false),
            "ne" | "neu" => (true, false, true),
            "lt" | "ltu" | "lo" => (true, false, false),
            "le" | "leu" | "ls" => (true, true, false),
            "gt" | "gtu" | "hi" => (false, false, true),
            "ge" | "geu" | "hs" => (false, true, true),
            "num" => (true, true, true),
            _ => (false, false, false),
        };
        Accepts { less, equal, greater, unordered }
    }

    fn order(self, order: Option<Ordering>) -> bool {
        match order {
            Some(Ordering::Less) => self.less,
            Some(Ordering::Equal) => self.equal,
            Some(Ordering::Greater) => self.greater,
            None => self.unordered,
        }
    }
}

/// The outcome of a comparison of two elements of a type.
fn compare(code: &'static str, ty: Type, ftz: bool) -> impl Fn(u64, u64) -> bool + Send + Sync + 'static {
    let accepts = Accepts::of(code);
    let unused = 64 - ty.element.clamp(1, 64);
    move |x, y| match ty.class {
        Class::Float(kind) => accepts.order(float::compare(kind, x, y, ftz)),
        Class::Signed => accepts.order(Some(((x << unused) as i64).cmp(&((y << unused) as i64)))),
        _ => accepts.order(Some((x << unused).cmp(&(y << unused)))),
    }
}

fn code(i: &Instruction<'_>) -> Result<&'static str, String> {
    let code = i.pieces.get(1).and_then(|piece| CODES.iter().find(|c| *c == piece));
    code.copied().ok_or_else(|| "no comparison is named".to_string())
}

/// `and`, `or` or `xor` with a further predicate, if the mnemonic has one of them.
fn combination(i: &mut Instruction<'_>, index: usize) -> Result<Option<(&'static str, Slot, bool)>, String> {
    let Some(with) = i.any(&["and", "or", "xor"]) else { return Ok(None) };
    let with = match with {
        "and" => "and",
        "or" => "or",
        _ => "xor",
    };
    let (slot, flip) = i.predicate(index)?;
    Ok(Some((with, slot, flip)))
}

fn combined(with: &str, x: bool, y: bool) -> bool {
    match with {
        "and" => x && y,
        "or" => x || y,
        _ => x != y,
    }
}

fn setp(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let ty = i.ty()?;
    let code = code(i)?;
    let [p, q] = i.dest_pair(0)?;
    let (a, b) = (i.source(1, ty)?, i.source(2, ty)?);
    let with = combination(i, 3)?;
    if let (Some(p), None, None, 1) = (p, q, with, ty.count)
        && ty.is_integer()
    {
        return Ok(integers(p.slot, a, b, code, ty));
    }
    let holds = compare(code, Type { count: 1, ..ty }, i.has("ftz"));
    Ok(Operation::compute(move |at| {
        for lane in at.lanes() {
            let (x, y) = (at.lane(a, lane), at.lane(b, lane));
            let first = holds(x & ty.mask(), y & ty.mask());
            // The second result is the opposite, or that of the upper half.
            let second = if ty.count == 2 { holds(x >> 16 & ty.mask(), y >> 16 & ty.mask()) } else { !first };
            let other = with.map(|(with, slot, flip)| (with, (at.lane(slot, lane) & 1 != 0) != flip));
            for (register, value) in [(p, first), (q, second)] {
                let value = other.map_or(value, |(with, other)| combined(with, value, other));
                if let Some(register) = register {
                    at.put(register.slot, lane, value.into());
                }
            }
        }
    }))
}

/// A comparison of integers with one result: the common case.
fn integers(p: Slot, a: Slot, b: Slot, code: &'static str, ty: Type) -> Operation {
    let unused = 64 - ty.element;
    let signed = move |x: u64| (x << unused) as i64;
    macro_rules! each {
        ($f:expr) => {{
            let f = $f;
            Operation::compute(move |at| at.map2(p, a, b, |x, y| u64::from(f(x, y))))
        }};
    }
    match (code, ty.is_signed()) {
        ("eq", _) => each!(|x: u64, y: u64| x == y),
        ("ne", _) => each!(|x: u64, y: u64| x != y),
        ("lt", true) => each!(move |x, y| signed(x) < signed(y)),
        ("le", true) => each!(move |x, y| signed(x) <= signed(y)),
        ("gt", true) => each!(move |x, y| signed(x) > signed(y)),
        ("ge", true) => each!(move |x, y| signed(x) >= signed(y)),
        ("lt" | "lo", _) => each!(|x: u64, y: u64| x < y),
        ("le" | "ls", _) => each!(|x: u64, y: u64| x <= y),
        ("gt" | "hi", _) => each!(|x: u64, y: u64| x > y),
        _ => each!(|x: u64, y: u64| x >= y),
    }
}

/// `set`: all ones or 1.0 where the comparison holds, for each element.
fn set(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let types = i.types();
    let (to, ty) = match types[..] {
        [to, ty] => (to, ty),
        [ty] => (ty, ty),
        _ => return Err("two types are needed".to_string()),
    };
    let code = code(i)?;
    let d = i.dest(0)?;
    let (a, b) = (i.source(1, ty)?, i.source(2, ty)?);
    let with = combination(i, 3)?;
    let holds = compare(code, Type { count: 1, ..ty }, i.has("ftz"));
    // The result has as many elements as the operands; `set.u32.f16x2` fills the halves of a word.
    let element = d.bits() / ty.count.max(1);
    let yes = match to.class {
        Class::Float(kind) => float::one(kind),
        _ => low_bits(element),
    };
    Ok(Operation::compute(move |at| {
        for lane in at.lanes() {
            let (x, y) = (at.lane(a, lane), at.lane(b, lane));
            let other = with.map(|(with, slot, flip)| (with, (at.lane(slot, lane) & 1 != 0) != flip));
            let bits = (0..ty.count).fold(0, |bits, e| {
                let shift = e * ty.element;
                let value = holds(x >> shift & ty.mask(), y >> shift & ty.mask());
                let value = other.map_or(value, |(with, other)| combined(with, value, other));
                bits | if value { yes << (e * element) } else { 0 }
            });
            at.put(d.slot, lane, bits);
        }
    }))
}

/// `slct`: the first where the third is not negative, and is a number.
fn slct(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let types = i.types();
    let [ty, by] = types[..] else { return Err("two types are needed".to_string()) };
    let (d, a, b, c) = (i.dest(0)?.slot, i.source(1, ty)?, i.source(2, ty)?, i.source(3, by)?);
    let ftz = i.has("ftz");
    let first = move |c: u64| match by.class {
        Class::Float(kind) => float::compare(kind, c, 0, ftz).is_some_and(Ordering::is_ge),
        _ => sign_extend(c, by.element) >= 0,
    };
    Ok(Operation::compute(move |at| {
        at.each(d, |at, lane| at.lane(if first(at.lane(c, lane)) { a } else { b }, lane));
    }))
}
