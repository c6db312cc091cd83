//! Arithmetic.

use ptxc_ir::{Extra, Flags, FloatKind, IntCC, Opcode, Type as IrType, Value};

use super::word;
use crate::model::Flags as SourceFlags;
use crate::translate::body::Writer;
use crate::translate::intrinsics::Site;
use crate::translate::intrinsics::template::Template;
use crate::translate::{Fault, Result};

impl<'m> Writer<'_, 'm> {
    /// The type of the one part of the result.
    pub(super) fn wanted(&mut self, site: &Site<'m>) -> Result<IrType> {
        self.result_type(site)?.ok_or_else(|| Fault::new("it has no result"))
    }

    pub(super) fn arg(&mut self, site: &Site<'m>, index: usize) -> Result<Value> {
        self.value(site.argument(index)?)
    }

    /// Defines the one part of the result.
    pub(super) fn give(&mut self, site: &Site<'m>, value: Value) -> Result<()> {
        self.finish(site.result, vec![value])
    }

    /// A float operation with the flags of the call.
    fn float(&mut self, site: &Site<'m>, op: Opcode, extra: Flags, args: &[Value]) -> Value {
        let ty = self.b.ty(args[0]);
        let flags = self.site_flags(extra, op, ty, site);
        self.op(op, flags, ty, args)
    }

    fn constant_float(&mut self, ty: IrType, number: f64) -> Result<Value> {
        let bits = match ty.float_kind() {
            Some(FloatKind::F64) => number.to_bits(),
            Some(FloatKind::F32) => u64::from((number as f32).to_bits()),
            _ => return Err(Fault::new(format!("it has no form for {ty}"))),
        };
        Ok(self.b.bits(ty, u128::from(bits)))
    }

    /// Refuses functions that need a library, unless approximations are allowed on a type that has them.
    fn approximates(&self, site: &Site<'m>, ty: IrType) -> Result<()> {
        if ty.float_kind() == Some(FloatKind::F32) && site.call.flags.has(SourceFlags::AFN) {
            return Ok(());
        }
        Err(Fault::new("it needs a math library (link libdevice); only `afn` on float is approximated"))
    }
}

/// `scmp`, `ucmp`: -1, 0 or 1.
pub(super) fn three_way<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let (a, b, ty) = (w.arg(site, 0)?, w.arg(site, 1)?, w.wanted(site)?);
    let (less, more) = if word(words) == "s" { (IntCC::Slt, IntCC::Sgt) } else { (IntCC::Ult, IntCC::Ugt) };
    let (less, more) = (w.b.icmp(less, a, b), w.b.icmp(more, a, b));
    let (less, more) = (w.b.convert(Opcode::Zext, less, ty), w.b.convert(Opcode::Zext, more, ty));
    let value = w.b.binary(Opcode::Sub, more, less);
    w.give(site, value)
}

/// `abs`, `ctlz`, `cttz`: an operation on the first argument; the second says that one operand makes poison, which is the
/// flag that the line names.
pub(super) fn promised<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let x = w.arg(site, 0)?;
    let op = Opcode::from_text(word(words)).ok_or_else(|| Fault::new("its operation is not known"))?;
    let flag = words.get(1).and_then(|name| Flags::NAMES.iter().find(|(_, text)| text == name));
    let promises = site.arguments.get(1).and_then(|operand| w.number(*operand)).is_some_and(|number| number & 1 == 1);
    let flags = flag.filter(|_| promises).map_or(Flags::EMPTY, |(flag, _)| *flag);
    let value = w.b.unary_flags(op, flags, x);
    w.give(site, value)
}

fn factor(words: &[String]) -> Result<f64> {
    word(words).parse().map_err(|_| Fault::new("its factor is no number"))
}

/// `exp`, `exp10` as 2^(x·k).
pub(super) fn exponential<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let x = w.arg(site, 0)?;
    let ty = w.b.ty(x);
    w.approximates(site, ty)?;
    let k = w.constant_float(ty, factor(words)?)?;
    let product = w.float(site, Opcode::Fmul, Flags::EMPTY, &[x, k]);
    let value = w.float(site, Opcode::Fexp2, Flags::AFN, &[product]);
    w.give(site, value)
}

/// `log`, `log10` as log2(x)·k.
pub(super) fn logarithm<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let x = w.arg(site, 0)?;
    let ty = w.b.ty(x);
    w.approximates(site, ty)?;
    let k = w.constant_float(ty, factor(words)?)?;
    let log = w.float(site, Opcode::Flog2, Flags::AFN, &[x]);
    let value = w.float(site, Opcode::Fmul, Flags::EMPTY, &[log, k]);
    w.give(site, value)
}

/// `pow` as 2^(y·log2(x)).
pub(super) fn power<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let (x, y) = (w.arg(site, 0)?, w.arg(site, 1)?);
    let ty = w.b.ty(x);
    w.approximates(site, ty)?;
    let log = w.float(site, Opcode::Flog2, Flags::AFN, &[x]);
    let product = w.float(site, Opcode::Fmul, Flags::EMPTY, &[log, y]);
    let value = w.float(site, Opcode::Fexp2, Flags::AFN, &[product]);
    w.give(site, value)
}

/// `powi` with a constant exponent: squares.
pub(super) fn integer_power<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let x = w.arg(site, 0)?;
    let exponent = w.number(site.argument(1)?).filter(|n| n.unsigned_abs() <= 1 << 16);
    let Some(exponent) = exponent else {
        return Err(Fault::new("it needs a math library unless the exponent is a small constant"));
    };
    let ty = w.b.ty(x);
    let one = w.constant_float(ty.scalar(), 1.0)?;
    let one = if ty.is_vector() { w.op(Opcode::Splat, Flags::EMPTY, ty, &[one]) } else { one };
    let (mut left, mut square, mut product) = (exponent.unsigned_abs(), x, None);
    while left > 0 {
        if left & 1 != 0 {
            product = Some(match product {
                Some(value) => w.float(site, Opcode::Fmul, Flags::EMPTY, &[value, square]),
                None => square,
            });
        }
        left >>= 1;
        if left > 0 {
            square = w.float(site, Opcode::Fmul, Flags::EMPTY, &[square, square]);
        }
    }
    let mut value = product.unwrap_or(one);
    if exponent < 0 {
        value = w.float(site, Opcode::Fdiv, Flags::EMPTY, &[one, value]);
    }
    w.give(site, value)
}

/// Bits of a float format: of the fraction, and the bias of the exponent.
fn format(ty: IrType) -> Result<(u32, i64)> {
    match ty.float_kind() {
        Some(FloatKind::F32) => Ok((23, 127)),
        Some(FloatKind::F64) => Ok((52, 1023)),
        _ => Err(Fault::new(format!("it has no form for {ty}"))),
    }
}

/// `ldexp`: multiplications by powers of two that round only once, also into subnormal results.
pub(super) fn scale_by_power<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let (x, n) = (w.arg(site, 0)?, w.arg(site, 1)?);
    let (given, ints) = (w.b.ty(x), w.b.ty(n));
    if given.is_vector() {
        let (xs, ns) = (w.lanes(x), w.lanes(n));
        let mut lanes = Vec::with_capacity(xs.len());
        for (x, n) in xs.into_iter().zip(ns) {
            let n = w.resize(n, IrType::I32, true);
            lanes.push(scaled(w, x, n)?);
        }
        let value = w.b.vector(given, &lanes);
        return w.give(site, value);
    }
    if ints.scalar_bits() > 32 {
        return Err(Fault::new("its exponent is wider than 32 bits"));
    }
    let n = w.resize(n, IrType::I32, true);
    let value = scaled(w, x, n)?;
    w.give(site, value)
}

/// `x · 2^n` of a scalar.
fn scaled(w: &mut Writer<'_, '_>, x: Value, n: Value) -> Result<Value> {
    let given = w.b.ty(x);
    if matches!(given, IrType::F16 | IrType::BF16) {
        let wide = w.b.convert(Opcode::Fpext, x, IrType::F32);
        let value = scaled(w, wide, n)?;
        return Ok(w.b.convert(Opcode::Fptrunc, value, given));
    }
    let (fraction, bias) = format(given)?;
    let int = IrType::int(given.bits());
    let power = |exponent: i64| (exponent + bias) as u64 as u128;
    // Down in steps that leave room for all bits of the fraction, so that only the last step rounds.
    let down = bias - 1 - i64::from(fraction) - 1;
    let (mut x, mut n) = (x, n);
    for _ in 0..2 {
        let above = w.b.icmp_imm(IntCC::Sgt, n, bias);
        let below = w.b.icmp_imm(IntCC::Slt, n, 1 - bias);
        let [up, low, one] = [power(bias), power(-down), power(0)].map(|e| e << fraction);
        let [up, low, one] = [up, low, one].map(|bits| w.b.bits(given, bits));
        let small = w.b.select(below, low, one);
        let by = w.b.select(above, up, small);
        x = w.b.binary(Opcode::Fmul, x, by);
        let [minus, plus, zero] = [-bias, down, 0].map(|step| w.b.iconst(IrType::I32, step));
        let step = w.b.select(below, plus, zero);
        let step = w.b.select(above, minus, step);
        n = w.b.binary(Opcode::Add, n, step);
    }
    let (most, least) = (w.b.iconst(IrType::I32, bias), w.b.iconst(IrType::I32, 1 - bias));
    n = w.b.binary(Opcode::Smin, n, most);
    n = w.b.binary(Opcode::Smax, n, least);
    let biased = w.b.binary_imm(Opcode::Add, n, bias);
    let wide = w.resize(biased, int, false);
    let bits = w.b.binary_imm(Opcode::Shl, wide, i64::from(fraction));
    let factor = w.b.convert(Opcode::Bitcast, bits, given);
    Ok(w.b.binary(Opcode::Fmul, x, factor))
}

/// `frexp`: a fraction from 0.5 to 1, and the exponent.
pub(super) fn split_exponent<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let given = w.arg(site, 0)?;
    let narrow = w.b.ty(given);
    let x = match narrow {
        IrType::F16 | IrType::BF16 => w.b.convert(Opcode::Fpext, given, IrType::F32),
        _ => given,
    };
    let ty = w.b.ty(x);
    if ty.is_vector() {
        return Err(Fault::new("it has no form for vectors"));
    }
    let exponent_type = match site.result {
        Some(result) => w.cx.shape(w.body.values[result].ty)?.parts.get(1).map(|part| part.ty),
        None => return Ok(()),
    };
    let exponent_type = exponent_type.ok_or_else(|| Fault::new("its result has no exponent"))?;
    let (fraction, bias) = format(ty)?;
    let int = IrType::int(ty.bits());
    let scale = i64::from(fraction) + 1;
    // Subnormal numbers are made normal first; zero, infinities and NaN stay as they are.
    let factor = w.b.bits(ty, ((scale + bias) as u128) << fraction);
    let normal = w.b.binary(Opcode::Fmul, x, factor);
    let subnormal = w.with_extra(Opcode::Fclass, ty, &[x], Extra::Imm(1 << 4 | 1 << 7));
    let special = w.with_extra(Opcode::Fclass, ty, &[x], Extra::Imm(0b10_0110_0111));
    let number = w.b.select(subnormal, normal, x);
    let bits = w.b.convert(Opcode::Bitcast, number, int);
    let shifted = w.b.binary_imm(Opcode::Lshr, bits, i64::from(fraction));
    let exponent = w.resize(shifted, IrType::I32, false);
    let mask = (1i64 << (ty.bits() - 1 - fraction)) - 1;
    let exponent = w.b.binary_imm(Opcode::And, exponent, mask);
    let exponent = w.b.binary_imm(Opcode::Sub, exponent, bias - 1);
    let lower = w.b.binary_imm(Opcode::Sub, exponent, scale);
    let exponent = w.b.select(subnormal, lower, exponent);
    let zero = w.b.iconst(IrType::I32, 0);
    let exponent = w.b.select(special, zero, exponent);
    let keep = !(mask << fraction);
    let kept = w.b.binary_imm(Opcode::And, bits, keep);
    let half = w.b.binary_imm(Opcode::Or, kept, (bias - 1) << fraction);
    let half = w.b.convert(Opcode::Bitcast, half, ty);
    let value = w.b.select(special, x, half);
    let value = if narrow == ty { value } else { w.b.convert(Opcode::Fptrunc, value, narrow) };
    let exponent = w.resize(exponent, exponent_type, true);
    w.finish(site.result, vec![value, exponent])
}

/// `modf`: fraction and whole part, both with the sign of the number.
pub(super) fn split_fraction<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let x = w.arg(site, 0)?;
    let ty = w.b.ty(x);
    let whole = w.b.unary(Opcode::Ftrunc, x);
    let rest = w.b.binary(Opcode::Fsub, x, whole);
    let infinite = w.with_extra(Opcode::Fclass, ty, &[x], Extra::Imm(1 << 2 | 1 << 9));
    let zero = w.b.bits(ty, 0);
    let rest = w.b.select(infinite, zero, rest);
    let rest = w.b.binary(Opcode::Copysign, rest, x);
    w.finish(site.result, vec![rest, whole])
}

/// `sincos`.
pub(super) fn sine_and_cosine<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let x = w.arg(site, 0)?;
    let sine = w.float(site, Opcode::Fsin, Flags::EMPTY, &[x]);
    let cosine = w.float(site, Opcode::Fcos, Flags::EMPTY, &[x]);
    w.finish(site.result, vec![sine, cosine])
}

/// `canonicalize`: multiplication by one, which quiets NaN and flushes where the function flushes.
pub(super) fn canonicalize<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let x = w.arg(site, 0)?;
    let ty = w.b.ty(x);
    let one = match ty.float_kind() {
        Some(FloatKind::F16) => 0x3c00,
        Some(FloatKind::Bf16) => 0x3f80,
        Some(FloatKind::F32) => 0x3f80_0000,
        Some(FloatKind::F64) => 0x3ff0_0000_0000_0000,
        _ => return Err(Fault::new(format!("it has no form for {ty}"))),
    };
    let one = w.b.bits(ty, one);
    let flags = w.flags(SourceFlags::NONE, Opcode::Fmul, ty);
    let value = w.op(Opcode::Fmul, flags, ty, &[x, one]);
    w.give(site, value)
}

/// `is.fpclass`: the bits of LLVM's mask are those of `fclass`.
pub(super) fn classify<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let x = w.arg(site, 0)?;
    let ty = w.b.ty(x);
    let mask = w.number(site.argument(1)?).and_then(|mask| u64::try_from(mask & 0x3ff).ok());
    let mask = mask.ok_or_else(|| Fault::new("its classes are no constant"))?;
    let value = w.with_extra(Opcode::Fclass, ty, &[x], Extra::Imm(mask));
    w.give(site, value)
}

/// `lrint` and the like: rounded, then converted.
pub(super) fn to_integer<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let (x, ty) = (w.arg(site, 0)?, w.wanted(site)?);
    let op = Opcode::from_text(word(words)).ok_or_else(|| Fault::new("its rounding is not known"))?;
    let whole = w.b.unary(op, x);
    let value = w.b.convert(Opcode::Fptosi, whole, ty);
    w.give(site, value)
}

/// `convert.to.fp16`: the bits of a half as an integer.
pub(super) fn to_half<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let (x, ty) = (w.arg(site, 0)?, w.wanted(site)?);
    let half = w.b.convert(Opcode::Fptrunc, x, IrType::F16);
    let value = w.bit_cast(half, ty)?;
    w.give(site, value)
}

/// `convert.from.fp16`.
pub(super) fn from_half<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let (x, ty) = (w.arg(site, 0)?, w.wanted(site)?);
    let half = w.bit_cast(x, IrType::F16)?;
    let value = w.b.convert(Opcode::Fpext, half, ty);
    w.give(site, value)
}

/// `bf2h.rn`: through float, which holds every bfloat.
pub(super) fn bfloat_to_half<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let (x, ty) = (w.arg(site, 0)?, w.wanted(site)?);
    let wide = w.b.convert(Opcode::Fpext, x, IrType::F32);
    let half = w.b.convert(Opcode::Fptrunc, wide, IrType::F16);
    let value = w.bit_cast(half, ty)?;
    w.give(site, value)
}

/// `ex2.approx` of any type.
pub(super) fn exp2_approx<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let x = w.arg(site, 0)?;
    let ty = w.b.ty(x);
    let ftz = word(words) == ".ftz";
    if ty == IrType::F32 {
        let flags = if ftz { Flags::AFN | Flags::FTZ } else { Flags::AFN };
        let value = w.op(Opcode::Fexp2, flags, ty, &[x]);
        return w.give(site, value);
    }
    let pair = if ty.lanes() == 2 { "x2" } else { "" };
    let name = match ty.float_kind() {
        Some(FloatKind::F16) => format!("ex2.approx.f16{pair}"),
        Some(FloatKind::Bf16) => format!("ex2.approx.ftz.bf16{pair}"),
        _ => return Err(Fault::new(format!("there is no such instruction for {ty}"))),
    };
    let template = Template::parse(&format!("{name} $r, $a;")).map_err(Fault::new)?;
    w.ptx(&template, site)
}

/// `clz`, `popc` of any width, with a result of 32 bits.
pub(super) fn count<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let (x, ty) = (w.arg(site, 0)?, w.wanted(site)?);
    let op = Opcode::from_text(word(words)).ok_or_else(|| Fault::new("what it counts is not known"))?;
    let value = w.b.unary(op, x);
    let value = w.resize(value, ty, false);
    w.give(site, value)
}

/// `flo`: `bfind`, with `.shiftamt` by the constant argument.
pub(super) fn find_leading<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let x = w.arg(site, 0)?;
    let bits = w.b.ty(x).bits();
    let text = format!("bfind<?1:.shiftamt>.{}{bits} $r, $0;", word(words));
    let template = Template::parse(&text).map_err(Fault::new)?;
    w.ptx(&template, site)
}

/// `rotate`: a funnel shift of the value with itself.
pub(super) fn rotate<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let (x, n) = (w.arg(site, 0)?, w.arg(site, 1)?);
    let ty = w.b.ty(x);
    let n = w.resize(n, ty, false);
    let op = Opcode::from_text(word(words)).ok_or_else(|| Fault::new("its direction is not known"))?;
    let value = w.b.ternary(op, Flags::EMPTY, x, x, n);
    w.give(site, value)
}

/// `swap.lo.hi.b64`.
pub(super) fn swap_halves<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let x = w.arg(site, 0)?;
    let ty = w.b.ty(x);
    let half = w.b.iconst(ty, i64::from(ty.bits() / 2));
    let value = w.b.ternary(Opcode::Fshl, Flags::EMPTY, x, x, half);
    w.give(site, value)
}

/// `d2i.lo`, `d2i.hi`: 32 bits of a double from that bit on.
pub(super) fn half_of_double<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let x = w.arg(site, 0)?;
    let bits = w.bit_cast(x, IrType::I64)?;
    let shift: i64 = word(words).parse().unwrap_or(0);
    let shifted = if shift == 0 { bits } else { w.b.binary_imm(Opcode::Lshr, bits, shift) };
    let value = w.resize(shifted, IrType::I32, false);
    w.give(site, value)
}

/// `fma.rn.sat` of bfloat, which PTX does not have: clamped after it is rounded.
pub(super) fn saturated_fma<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let (a, b, c) = (w.arg(site, 0)?, w.arg(site, 1)?, w.arg(site, 2)?);
    let ty = w.b.ty(a);
    let value = w.b.ternary(Opcode::Fma, Flags::EMPTY, a, b, c);
    let (zero, one) = (w.b.bits(ty, 0), w.b.bits(ty, 0x3f80));
    // NaN becomes 0, which is what the other operand of `fmax` is.
    let value = w.b.binary(Opcode::Fmax, value, zero);
    let value = w.b.binary(Opcode::Fmin, value, one);
    w.give(site, value)
}

/// An approximation of a double by the one of a float.
pub(super) fn through_float<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let op = Opcode::from_text(word(words)).ok_or_else(|| Fault::new("its function is not known"))?;
    let (x, ty) = (w.arg(site, 0)?, w.wanted(site)?);
    let narrow = w.b.convert(Opcode::Fptrunc, x, IrType::F32);
    let value = w.op(op, Flags::AFN, IrType::F32, &[narrow]);
    let value = w.b.convert(Opcode::Fpext, value, ty);
    w.give(site, value)
}

/// A function that f32 has an instruction for; 16-bit formats go through f32.
pub(super) fn function<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let op = Opcode::from_text(word(words)).ok_or_else(|| Fault::new("its function is not known"))?;
    let extra = if words.len() > 1 { Flags::AFN } else { Flags::EMPTY };
    let x = w.arg(site, 0)?;
    let ty = w.b.ty(x);
    let narrow = matches!(ty.float_kind(), Some(FloatKind::F16 | FloatKind::Bf16));
    let direct = ty.lanes() <= 2 && matches!(op, Opcode::Fexp2 | Opcode::Ftanh);
    if !narrow || direct {
        let value = w.float(site, op, extra, &[x]);
        return w.give(site, value);
    }
    let wide = w.b.convert(Opcode::Fpext, x, ty.with_scalar(IrType::F32));
    let value = w.float(site, op, extra, &[wide]);
    let value = w.b.convert(Opcode::Fptrunc, value, ty);
    w.give(site, value)
}
