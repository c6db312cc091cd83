//! How far an approximation is from the function it approximates.
//!
//! Errors are in units of the last place of the exact result in the result's format; of sine, cosine and logarithm, whose
//! results near zero have no small relative error, in units of the last place of one at least. The exact result is the
//! host's in double precision.

/// A floating-point format: bits of the exponent and of the fraction.
type Format = (u32, u32);

/// The format that a mnemonic ends with.
fn format(key: &str) -> Format {
    match key.rsplit('.').next() {
        Some("f16") => (5, 10),
        Some("bf16") => (8, 7),
        Some("f64") => (11, 52),
        _ => (8, 23),
    }
}

/// The number that a bit pattern stands for.
fn value((exponent_bits, fraction_bits): Format, bits: u64) -> f64 {
    if exponent_bits == 11 {
        return f64::from_bits(bits);
    }
    let fraction = bits & ((1 << fraction_bits) - 1);
    let top = (1u64 << exponent_bits) - 1;
    let exponent = bits >> fraction_bits & top;
    let bias = (top >> 1) as i32;
    let magnitude = match (exponent, fraction) {
        (e, 0) if e == top => f64::INFINITY,
        (e, _) if e == top => f64::NAN,
        (0, f) => f as f64 * power(1 - bias - fraction_bits as i32),
        (e, f) => (f | 1 << fraction_bits) as f64 * power(e as i32 - bias - fraction_bits as i32),
    };
    if bits >> (exponent_bits + fraction_bits) & 1 != 0 { -magnitude } else { magnitude }
}

/// The smallest normal number.
fn least((exponent_bits, _): Format) -> f64 {
    power(2 - (1 << (exponent_bits - 1)))
}

/// The exact result, and from which magnitude on its last place counts. `None` where the manual promises nothing.
fn exact(key: &str, x: f64, y: f64) -> Option<(f64, f64)> {
    let function = key.split('.').next().unwrap_or_default();
    Some(match function {
        "rcp" => (1.0 / x, 0.0),
        "sqrt" => (x.sqrt(), 0.0),
        "rsqrt" => (1.0 / x.sqrt(), 0.0),
        "sin" | "cos" if x.abs() > std::f64::consts::TAU && x.is_finite() => return None,
        "sin" => (x.sin(), 1.0),
        "cos" => (x.cos(), 1.0),
        "lg2" => (x.log2(), 1.0),
        "ex2" => (x.exp2(), 0.0),
        "tanh" => (x.tanh(), 0.0),
        // Beyond, the quotient is zero.
        "div" if key.contains(".approx") && y.abs() > 2f64.powi(126) => return None,
        "div" => (x / y, 0.0),
        _ => return None,
    })
}

/// The error of one result, of the instruction with this text. Infinite where a NaN, an infinity or a zero should be
/// and is not.
pub fn error(key: &str, operands: &[u64], got: u64) -> f64 {
    let format = format(key);
    let ftz = key.contains(".ftz");
    let least = least(format);
    let flushed = |v: f64| if ftz && v.abs() < least { v * 0.0 } else { v };
    // Of f64 those that flush look at the upper half alone.
    let seen = if ftz && format.0 == 11 { !0xffff_ffff } else { !0 };
    let operand = |index: usize| flushed(value(format, operands.get(index).copied().unwrap_or(0) & seen));
    let Some((exact, floor)) = exact(key, operand(0), operand(1)) else { return 0.0 };
    let got = value(format, got);
    if exact.is_nan() || got.is_nan() {
        return if exact.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if exact.is_infinite() || exact == 0.0 {
        // -0 counts as zero.
        return if exact == got { 0.0 } else { f64::INFINITY };
    }
    if ftz && exact.abs() < least {
        return if got.abs() <= least { 0.0 } else { f64::INFINITY };
    }
    // What is nearly as small may be flushed as well.
    if ftz && exact.abs() < least * (1.0 + 4.0 * power(-(format.1 as i32))) && got == 0.0 {
        return 0.0;
    }
    let largest = 2f64.powi(1 << (format.0 - 1));
    let unit = unit(format, exact.abs().max(floor).max(least));
    if got.is_infinite() {
        let near = exact.abs() >= largest - 4.0 * unit && (got > 0.0) == (exact > 0.0);
        return if near { 0.0 } else { f64::INFINITY };
    }
    if exact.abs() >= largest {
        return f64::INFINITY;
    }
    (got - exact).abs() / unit
}

/// The distance of two numbers of the format at a magnitude.
fn unit((_, fraction_bits): Format, magnitude: f64) -> f64 {
    let exponent = (magnitude.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    power(exponent - fraction_bits as i32)
}

/// Two to a power, subnormal numbers too, which `powi` takes through an overflow.
fn power(exponent: i32) -> f64 {
    if exponent >= -1022 { 2f64.powi(exponent) } else { f64::from_bits(1 << (exponent + 1074).max(0)) }
}

/// Whether the manual promises anything of these operands.
pub fn promised(key: &str, operands: &[u64]) -> bool {
    let format = format(key);
    let operand = |index: usize| value(format, operands.get(index).copied().unwrap_or(0));
    exact(key, operand(0), operand(1)).is_some()
}

/// The distance of two results in units of the last place of the first, at least of `floor`'s as [`error`] measures.
pub fn distance(key: &str, a: u64, b: u64) -> f64 {
    let format = format(key);
    let (x, y) = (value(format, a), value(format, b));
    if x == y || (x.is_nan() && y.is_nan()) {
        return 0.0;
    }
    let floor = if ["sin", "cos", "lg2"].iter().any(|f| key.starts_with(f)) { 1.0 } else { least(format) };
    if x.is_finite() && y.is_finite() { (x - y).abs() / unit(format, x.abs().max(floor)) } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_in_units_of_the_last_place() {
        let bits = |x: f32| u64::from(x.to_bits());
        assert_eq!(error("rcp.approx.f32", &[bits(2.0)], bits(0.5)), 0.0);
        assert_eq!(error("rcp.approx.f32", &[bits(2.0)], bits(0.5) + 2), 2.0);
        assert_eq!(error("rcp.approx.f32", &[bits(0.0)], bits(0.5)), f64::INFINITY);
        assert_eq!(error("sin.approx.f32", &[bits(0.0)], bits(0.0)), 0.0);
        assert_eq!(error("rcp.approx.ftz.f32", &[1], bits(f32::INFINITY)), 0.0);
        assert_eq!(error("ex2.approx.f16", &[0x3c00], 0x4001), 1.0);
        assert_eq!(distance("ex2.approx.f16", 0x4000, 0x4003), 3.0);
        assert_eq!(value((8, 7), 1).to_bits(), 0x37a0_0000u64 << 32);
    }
}
