//! Instructions that only compute.

use ptxc_ir::{Flags, FloatKind, Opcode, Shape};

use super::decode::narrow;
use super::element;
use super::frame::Frame;
use super::integer::{self, Nothing};
use super::program::{Code, Fast, LANES, Lanes, More, Step, Val};
use crate::float;
use crate::machine::{Stop, lanes};

/// A step with the frame it works on and the lanes that execute it.
pub struct At<'a> {
    /// Instruction.
    pub step: &'a Step,
    /// Its function.
    pub code: &'a Code,
    /// Values.
    pub frame: &'a mut Frame,
    /// Lanes that execute it.
    pub mask: u32,
}

impl At<'_> {
    /// Operand `index`.
    pub fn arg(&self, index: usize) -> Result<Val, Stop> {
        self.step.args.get(index).copied().ok_or_else(|| Stop::new("the instruction lacks an operand"))
    }

    /// Result `index`.
    pub fn result(&self, index: usize) -> Result<Val, Stop> {
        self.step.results.get(index).copied().ok_or_else(|| Stop::new("the instruction lacks a result"))
    }

    /// One lane of an operand's element; `None` when poison.
    pub fn read(&self, val: Val, element: u32, lane: usize) -> Option<u128> {
        self.frame.read(self.code, val, element, lane)
    }

    /// One lane of a scalar that must not be poison.
    pub fn need(&self, val: Val, lane: usize, what: &str) -> Result<u64, Stop> {
        self.read(val, 0, lane).map(|v| v as u64).ok_or_else(|| Stop::lane(format!("{what} is poison"), lane))
    }
}

fn settle(result: Result<u128, Nothing>, lane: usize) -> Result<Option<u128>, Stop> {
    match result {
        Ok(bits) => Ok(Some(bits)),
        Err(Nothing::Poison) => Ok(None),
        Err(Nothing::Undefined(what)) => Err(Stop::lane(what, lane)),
    }
}

/// Executes a step that has a tight loop.
pub fn fast(kind: Fast, at: &mut At<'_>) -> Result<(), Stop> {
    let (step, mask) = (at.step, at.mask);
    let out = at.result(0)?;
    let width = step.ty.scalar_bits();
    let (a, pa) = at.frame.slot(at.code, at.arg(0)?.slot);
    let (a, bits) = (*a, integer::mask(width.min(64)) as u64);
    let mut r: Lanes = [0; LANES];
    let unary = |r: &mut Lanes, f: &dyn Fn(u64) -> u64| (0..LANES).for_each(|i| r[i] = f(a[i]));
    match kind {
        Fast::Mask => {
            unary(&mut r, &|x| x & bits);
            at.frame.set(out.slot, &r, pa, mask);
            return Ok(());
        }
        Fast::Sext(from) => {
            let unused = 64 - from.min(64);
            for i in 0..LANES {
                r[i] = ((a[i] << unused) as i64 >> unused) as u64 & bits;
            }
            at.frame.set(out.slot, &r, pa, mask);
            return Ok(());
        }
        _ => {}
    }
    let (b, pb) = at.frame.slot(at.code, at.arg(1)?.slot);
    let b = *b;
    if let Fast::Select = kind {
        let (c, pc) = at.frame.slot(at.code, at.arg(2)?.slot);
        let mut poison = pa;
        for i in 0..LANES {
            let taken = a[i] & 1 != 0;
            r[i] = if taken { b[i] } else { c[i] };
            poison |= (if taken { pb } else { pc }) & 1 << i;
        }
        at.frame.set(out.slot, &r, poison, mask);
        return Ok(());
    }
    let mut poison = pa | pb;
    match kind {
        Fast::SingleFma => {
            let (c, pc) = at.frame.slot(at.code, at.arg(2)?.slot);
            poison |= pc;
            for i in lanes(mask) {
                r[i] = float::fma(FloatKind::F32, a[i], b[i], c[i], float::Mode::default());
            }
        }
        Fast::Compare(cc) => {
            let width = at.arg(0)?.ty.scalar_bits();
            compare(cc, width, &a, &b, &mut r);
        }
        Fast::Single => {
            for i in 0..LANES {
                let (x, y) = (f32::from_bits(a[i] as u32), f32::from_bits(b[i] as u32));
                let z = match step.op {
                    Opcode::Fadd => x + y,
                    Opcode::Fsub => x - y,
                    _ => x * y,
                };
                r[i] = if z.is_nan() { float::nan(FloatKind::F32) } else { z.to_bits().into() };
            }
        }
        _ => poison |= integers(step, width, bits, &a, &b, &mut r),
    }
    at.frame.set(out.slot, &r, poison, mask);
    Ok(())
}

fn compare(cc: ptxc_ir::IntCC, width: u32, a: &Lanes, b: &Lanes, r: &mut Lanes) {
    use ptxc_ir::IntCC::*;
    let unused = 64 - width.clamp(1, 64);
    let signed = |x: u64| (x << unused) as i64;
    for i in 0..LANES {
        let (x, y) = (a[i], b[i]);
        r[i] = u64::from(match cc {
            Eq => x == y,
            Ne => x != y,
            Ult => x < y,
            Ule => x <= y,
            Ugt => x > y,
            Uge => x >= y,
            Slt => signed(x) < signed(y),
            Sle => signed(x) <= signed(y),
            Sgt => signed(x) > signed(y),
            Sge => signed(x) >= signed(y),
        });
    }
}

/// Gives the lanes that are poison by themselves.
fn integers(step: &Step, width: u32, bits: u64, a: &Lanes, b: &Lanes, r: &mut Lanes) -> u32 {
    let mut poison = 0;
    let unused = 64 - width.clamp(1, 64);
    macro_rules! each {
        ($f:expr) => {{
            let f = $f;
            for i in 0..LANES {
                r[i] = f(a[i], b[i]) & bits;
            }
        }};
    }
    match step.op {
        Opcode::Add => each!(|x: u64, y: u64| x.wrapping_add(y)),
        Opcode::Sub => each!(|x: u64, y: u64| x.wrapping_sub(y)),
        Opcode::Mul => each!(|x: u64, y: u64| x.wrapping_mul(y)),
        Opcode::And => each!(|x: u64, y: u64| x & y),
        Opcode::Or => each!(|x: u64, y: u64| x | y),
        Opcode::Xor => each!(|x: u64, y: u64| x ^ y),
        Opcode::Shl => each!(|x: u64, y: u64| x << (y & 63)),
        Opcode::Lshr => each!(|x: u64, y: u64| x >> (y & 63)),
        _ => each!(|x: u64, y: u64| (((x << unused) as i64 >> unused) >> (y & 63)) as u64),
    }
    if matches!(step.op, Opcode::Shl | Opcode::Lshr | Opcode::Ashr) {
        poison = (0..LANES).fold(0, |p, i| p | u32::from(b[i] >= u64::from(width)) << i);
    }
    if !step.flags.is_empty() {
        for i in 0..LANES {
            if poison >> i & 1 == 0 && integer::wraps(step.op, step.flags, width, a[i].into(), b[i].into()) {
                poison |= 1 << i;
            }
        }
    }
    poison
}

/// Executes a step that only computes and has no tight loop.
pub fn execute(at: &mut At<'_>) -> Result<(), Stop> {
    match at.step.op.shape() {
        Shape::Unary if at.step.op == Opcode::Freeze => {
            per_element(at, |at, lane, e| Ok(Some(at.read(at.arg(0)?, e, lane).unwrap_or(0))))
        }
        Shape::Unary | Shape::Binary | Shape::Ternary => per_element(at, same_type),
        Shape::BinaryOverflow => overflow(at),
        Shape::FloatClass => per_element(at, |at, lane, e| {
            let More::Class(mask) = at.step.more else { return Ok(None) };
            let kind = at.step.ty.float_kind().ok_or_else(|| Stop::new("`fclass` takes floats"))?;
            let bits = at.read(at.arg(0)?, e, lane);
            Ok(bits.map(|bits| u128::from(mask >> float::class(kind, bits as u64) & 1)))
        }),
        Shape::IntCompare => per_element(at, |at, lane, e| {
            let (More::IntCC(cc), a, b) = (&at.step.more, at.arg(0)?, at.arg(1)?) else { return Ok(None) };
            let (x, y) = (at.read(a, e, lane), at.read(b, e, lane));
            Ok(x.zip(y).map(|(x, y)| integer::compare(*cc, a.ty.scalar_bits(), x, y).into()))
        }),
        Shape::FloatCompare => per_element(at, float_compare),
        Shape::Select => per_element(at, select),
        Shape::Convert => convert(at),
        Shape::ConvertRandom => per_element(at, stochastic),
        Shape::Gep => gep(at),
        Shape::BuildVector | Shape::Splat | Shape::Extract | Shape::Insert | Shape::Shuffle | Shape::Reduce => {
            vector(at)
        }
        _ => Err(Stop::new("this instruction is not interpreted")),
    }
}

fn per_element(at: &mut At<'_>, f: impl Fn(&At<'_>, usize, u32) -> Result<Option<u128>, Stop>) -> Result<(), Stop> {
    let out = at.result(0)?;
    for element in 0..out.elements() {
        for lane in lanes(at.mask) {
            let bits = f(at, lane, element)?;
            at.frame.write(out, element, lane, bits);
        }
    }
    Ok(())
}

fn same_type(at: &At<'_>, lane: usize, element: u32) -> Result<Option<u128>, Stop> {
    let mut operands = [0u128; 3];
    let count = at.step.args.len().min(3);
    let divides = matches!(at.step.op, Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem);
    for (index, arg) in at.step.args.iter().enumerate().take(3) {
        match at.read(*arg, element, lane) {
            Some(bits) => operands[index] = bits,
            None if divides && index == 1 => return Err(Stop::lane("the divisor is poison", lane)),
            None => return Ok(None),
        }
    }
    settle(element::same_type(at.step.op, at.step.flags, at.step.ty, &operands[..count]), lane)
}

fn overflow(at: &mut At<'_>) -> Result<(), Stop> {
    let (a, b, out, flag) = (at.arg(0)?, at.arg(1)?, at.result(0)?, at.result(1)?);
    for element in 0..out.elements() {
        for lane in lanes(at.mask) {
            let operands = at.read(a, element, lane).zip(at.read(b, element, lane));
            let both = operands.and_then(|(x, y)| integer::overflow(at.step.op, a.ty.scalar_bits(), x, y));
            at.frame.write(out, element, lane, both.map(|(r, _)| r));
            at.frame.write(flag, element, lane, both.map(|(_, o)| o.into()));
        }
    }
    Ok(())
}

fn float_compare(at: &At<'_>, lane: usize, element: u32) -> Result<Option<u128>, Stop> {
    let (a, b) = (at.arg(0)?, at.arg(1)?);
    let (More::FloatCC(cc), Some(kind)) = (&at.step.more, a.ty.float_kind()) else { return Ok(None) };
    let Some((x, y)) = at.read(a, element, lane).zip(at.read(b, element, lane)) else { return Ok(None) };
    let (x, y, flags) = (x as u64, y as u64, at.step.flags);
    if element::forbidden(flags, kind, x) || element::forbidden(flags, kind, y) {
        return Ok(None);
    }
    Ok(Some(element::float_compare(*cc, kind, x, y, flags.contains(Flags::FTZ)).into()))
}

fn select(at: &At<'_>, lane: usize, element: u32) -> Result<Option<u128>, Stop> {
    let condition = at.arg(0)?;
    let which = if condition.ty.is_vector() { element } else { 0 };
    let Some(taken) = at.read(condition, which, lane) else { return Ok(None) };
    let bits = at.read(at.arg(if taken & 1 != 0 { 1 } else { 2 })?, element, lane);
    let bad = |bits: &u128| at.step.ty.float_kind().is_some_and(|k| element::forbidden(at.step.flags, k, *bits as u64));
    Ok(bits.filter(|bits| !bad(bits)))
}

fn convert(at: &mut At<'_>) -> Result<(), Stop> {
    let from = at.arg(0)?.ty;
    match at.step.op {
        Opcode::Bitcast => bitcast(at),
        Opcode::Addrspacecast => per_element(at, |at, lane, e| {
            let spaces = from.space().zip(at.step.ty.space());
            let bits = at.read(at.arg(0)?, e, lane);
            Ok(bits.zip(spaces).map(|(bits, (from, to))| {
                let generic = crate::memory::to_generic(from, bits as u64);
                if to == ptxc_ir::Space::Generic { generic } else { crate::memory::to_space(to, generic) }.into()
            }))
        }),
        op => per_element(at, |at, lane, e| match at.read(at.arg(0)?, e, lane) {
            Some(bits) => settle(element::convert(op, at.step.flags, from, at.step.ty, bits), lane),
            None => Ok(None),
        }),
    }
}

/// Rounds by random bits, of which each element has some.
fn stochastic(at: &At<'_>, lane: usize, element: u32) -> Result<Option<u128>, Stop> {
    let Some(kind) = at.step.ty.float_kind() else { return Ok(None) };
    let (number, word) = (at.read(at.arg(0)?, element, lane), at.read(at.arg(1)?, 0, lane));
    Ok(number.zip(word).map(|(number, word)| {
        let random = float::random_bits(kind, word as u32, element);
        let flags = at.step.flags;
        let mode = float::Mode {
            relu: flags.contains(Flags::RELU),
            finite: flags.contains(Flags::SAT),
            ..float::Mode::default()
        };
        float::convert_stochastic(kind, number as u32, random, mode).into()
    }))
}

/// Keeps the bits, the first element lowest. An element is poison when a part of it was.
fn bitcast(at: &mut At<'_>) -> Result<(), Stop> {
    let (from, to) = (at.arg(0)?, at.result(0)?);
    let (source, target) = (from.ty.scalar_bits(), to.ty.scalar_bits());
    if source == 0 || target == 0 {
        return Err(Stop::new("`bitcast` of no bits"));
    }
    for lane in lanes(at.mask) {
        for element in 0..to.elements() {
            let first = element * target;
            let mut bits = Some(0u128);
            let mut done = 0;
            while done < target {
                let position = first + done;
                let offset = position % source;
                let count = (source - offset).min(target - done);
                let part = at.read(from, position / source, lane);
                let part = part.map(|p| (p >> offset & integer::mask(count)) << done);
                bits = bits.zip(part).map(|(x, y)| x | y);
                done += count;
            }
            at.frame.write(to, element, lane, bits);
        }
    }
    Ok(())
}

fn gep(at: &mut At<'_>) -> Result<(), Stop> {
    let More::Gep(scaled, fixed) = &at.step.more else { return Err(Stop::new("`gep` without a type")) };
    let (base, out) = (at.arg(0)?, at.result(0)?);
    let width = out.ty.scalar_bits();
    for element in 0..out.elements() {
        let slot_of = |val: Val| val.element(if val.ty.is_vector() { element } else { 0 });
        let (pointer, mut poison) = at.frame.slot(at.code, slot_of(base));
        let mut r = *pointer;
        r.iter_mut().for_each(|x| *x = x.wrapping_add_signed(*fixed));
        for (index, stride) in scaled {
            let val = at.arg(*index)?;
            let (indices, p) = at.frame.slot(at.code, slot_of(val));
            poison |= p;
            let unused = 64 - val.ty.scalar_bits().clamp(1, 64);
            for i in 0..LANES {
                let index = (indices[i] << unused) as i64 >> unused;
                r[i] = r[i].wrapping_add_signed(index.wrapping_mul(*stride));
            }
        }
        r.iter_mut().for_each(|x| *x = narrow(*x, width));
        at.frame.set(out.element(element), &r, poison, at.mask);
    }
    Ok(())
}

fn vector(at: &mut At<'_>) -> Result<(), Stop> {
    let op = at.step.op;
    match op.shape() {
        Shape::BuildVector => per_element(at, |at, lane, e| Ok(at.read(at.arg(e as usize)?, 0, lane))),
        Shape::Splat => per_element(at, |at, lane, _| Ok(at.read(at.arg(0)?, 0, lane))),
        Shape::Extract => per_element(at, |at, lane, _| {
            let vector = at.arg(0)?;
            let index = at.read(at.arg(1)?, 0, lane).filter(|i| *i < vector.elements().into());
            Ok(index.and_then(|i| at.read(vector, i as u32, lane)))
        }),
        Shape::Insert => per_element(at, |at, lane, e| {
            let vector = at.arg(0)?;
            let index = at.read(at.arg(2)?, 0, lane).filter(|i| *i < vector.elements().into());
            Ok(match index {
                Some(i) if i == e.into() => at.read(at.arg(1)?, 0, lane),
                Some(_) => at.read(vector, e, lane),
                None => None,
            })
        }),
        Shape::Shuffle => per_element(at, |at, lane, e| {
            let More::Shuffle(mask) = &at.step.more else { return Ok(None) };
            let (a, b) = (at.arg(0)?, at.arg(1)?);
            let Some(index) = mask.get(e as usize).and_then(|i| u32::try_from(*i).ok()) else { return Ok(None) };
            Ok(match index.checked_sub(a.elements()) {
                None => at.read(a, index, lane),
                Some(index) if index < b.elements() => at.read(b, index, lane),
                Some(_) => None,
            })
        }),
        _ => per_element(at, |at, lane, _| {
            let vector = at.arg(0)?;
            let Some(op) = element::reduction(at.step.op) else { return Ok(None) };
            let mut sum = at.read(vector, 0, lane);
            for e in 1..vector.elements() {
                let Some((x, y)) = sum.zip(at.read(vector, e, lane)) else { return Ok(None) };
                sum = settle(element::same_type(op, at.step.flags, at.step.ty.scalar(), &[x, y]), lane)?;
            }
            Ok(sum)
        }),
    }
}
