//! Kernels about numbers: option prices, half precision, 64-bit keys in a hash table, 128-bit products.

use std::collections::HashMap;

use half::f16;

use super::{Failure, Outcome, blocks};
use crate::compare;
use crate::device::{Gpu, Launch, Module};
use crate::random::Random;

/// Distribution function of the normal distribution, by its Taylor series around 0 (Marsaglia 2004).
fn normal_cdf(d: f64) -> f64 {
    if d.abs() > 8.0 {
        return if d > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum, mut odd) = (d, d, 1.0);
    while term.abs() > 1e-18 {
        odd += 2.0;
        term *= d * d / odd;
        sum += term;
    }
    0.5 + sum * (-0.5 * d * d).exp() / std::f64::consts::TAU.sqrt()
}

pub fn black_scholes(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let n = 1_000_003;
    let (rate, volatility) = (0.02f32, 0.3f32);
    let mut random = Random::new(51);
    let price = random.floats(n, 5.0, 30.0);
    let strike = random.floats(n, 1.0, 100.0);
    let years = random.floats(n, 0.25, 10.0);
    let (d_price, d_strike, d_years) = (gpu.upload(&price)?, gpu.upload(&strike)?, gpu.upload(&years)?);
    let (call, put) = (gpu.zeros::<f32>(n)?, gpu.zeros::<f32>(n)?);
    let launch = Launch::new("black_scholes", (1056, 1), (256, 1))
        .int(n)
        .float(rate)
        .float(volatility)
        .buffer(&d_price)
        .buffer(&d_strike)
        .buffer(&d_years)
        .buffer(&call)
        .buffer(&put);
    gpu.run(module, &launch)?;
    let (r, v) = (f64::from(rate), f64::from(volatility));
    let (mut want_call, mut want_put) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for i in 0..n {
        let (s, x, t) = (f64::from(price[i]), f64::from(strike[i]), f64::from(years[i]));
        let d1 = ((s / x).ln() + (r + v * v / 2.0) * t) / (v * t.sqrt());
        let d2 = d1 - v * t.sqrt();
        let discounted = x * (-r * t).exp();
        want_call.push(s * normal_cdf(d1) - discounted * normal_cdf(d2));
        want_put.push(discounted * normal_cdf(-d2) - s * normal_cdf(-d1));
    }
    // Relative to the amounts that are subtracted from each other.
    let first = compare::close(&call.read()?, &want_call, 30.0, 2e-6)?;
    let second = compare::close(&put.read()?, &want_put, 100.0, 2e-6)?;
    let time = Some(gpu.best_time(module, &[launch], || Ok(()))?);
    Ok(Outcome { agreement: compare::both(first, second), time })
}

pub fn half_blend(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let n = 2_000_008;
    let a = 0.3f32;
    let mut random = Random::new(52);
    let mut image = || -> Vec<f16> { (0..n).map(|_| f16::from_f32(random.float(-0.4, 1.2))).collect() };
    let (x, y) = (image(), image());
    let bits = |image: &[f16]| -> Vec<u16> { image.iter().map(|value| value.to_bits()).collect() };
    let (dx, dy) = (gpu.upload(&bits(&x))?, gpu.upload(&bits(&y))?);
    let (out, peak) = (gpu.zeros::<u16>(n)?, gpu.zeros::<u32>(1)?);
    let launch = Launch::new("half_blend", (blocks(n, 1024), 1), (128, 1))
        .int(n)
        .float(a)
        .buffer(&dx)
        .buffer(&dy)
        .buffer(&out)
        .buffer(&peak);
    gpu.run(module, &launch)?;
    // A sum or product of two halves, computed in f32 and rounded to half, is rounded once: f32 has twice the digits
    // and two more.
    let round = |value: f32| f16::from_f32(value).to_f32();
    let a = round(a);
    let rest = round(1.0 - a);
    let want: Vec<u16> = x
        .iter()
        .zip(&y)
        .map(|(x, y)| round(round(a * x.to_f32()) + round(rest * y.to_f32())).clamp(0.0, 1.0))
        .map(|value| f16::from_f32(value).to_bits())
        .collect();
    // The kernel may give either zero where it cuts off: compare without the sign.
    let got: Vec<u16> = out.read()?.into_iter().map(|bits| if bits == 0x8000 { 0 } else { bits }).collect();
    let want: Vec<u16> = want.into_iter().map(|bits| if bits == 0x8000 { 0 } else { bits }).collect();
    let agreement = compare::exact(&got, &want)?;
    let largest = u32::from(want.iter().copied().max().unwrap_or(0));
    compare::exact(&peak.read()?, &[largest]).map_err(|text| format!("peak: {text}"))?;
    let time = Some(gpu.best_time(module, &[launch], || Ok(()))?);
    Ok(Outcome { agreement, time })
}

pub fn hash_table(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let (n, slots, different) = (1_000_003, 1 << 18, 200_000);
    let mut random = Random::new(53);
    let pool: Vec<u64> = (0..different).map(|_| random.bits() >> 1).collect();
    let keys: Vec<u64> = (0..n).map(|_| pool[random.below(different)]).collect();
    let values = random.words(n);
    let (d_keys, d_values) = (gpu.upload(&keys)?, gpu.upload(&values)?);
    let empty = vec![u64::MAX; slots];
    let (slot_key, slot_sum) = (gpu.upload(&empty)?, gpu.zeros::<u64>(slots)?);
    let failed = gpu.zeros::<u32>(1)?;
    let launch = Launch::new("hash_insert", (blocks(n, 256), 1), (256, 1))
        .int(n)
        .int(slots - 1)
        .buffer(&d_keys)
        .buffer(&d_values)
        .buffer(&slot_key)
        .buffer(&slot_sum)
        .buffer(&failed);
    gpu.run(module, &launch)?;
    let mut sums: HashMap<u64, u64> = HashMap::new();
    for (&key, &value) in keys.iter().zip(&values) {
        *sums.entry(key).or_default() += u64::from(value);
    }
    let mut want: Vec<(u64, u64)> = sums.into_iter().collect();
    want.sort_unstable();
    let mut got: Vec<(u64, u64)> =
        slot_key.read()?.into_iter().zip(slot_sum.read()?).filter(|&(key, _)| key != u64::MAX).collect();
    got.sort_unstable();
    compare::exact(&failed.read()?, &[0]).map_err(|text| format!("failed: {text}"))?;
    let agreement = compare::exact(&got, &want)?;
    let time = Some(gpu.best_time(module, &[launch], || {
        slot_key.write(&empty)?;
        slot_sum.clear()
    })?);
    Ok(Outcome { agreement, time })
}

/// `base ^ exponent mod modulus`, by division.
fn power(base: u64, mut exponent: u64, modulus: u64) -> u64 {
    let modulus = u128::from(modulus);
    let (mut square, mut result) = (u128::from(base), 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * square % modulus;
        }
        square = square * square % modulus;
        exponent >>= 1;
    }
    result as u64
}

pub fn mod_power(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let n = 50_021;
    // Close to 2^64: the sums in the kernel need 129 bits.
    let modulus = 0xFFFF_FFFF_FFFF_FFC5u64;
    let mut random = Random::new(54);
    let base: Vec<u64> = (0..n).map(|_| random.bits() % modulus).collect();
    let exponent: Vec<u64> = (0..n).map(|_| random.bits() >> random.below(64)).collect();
    // Newton's iteration doubles the correct low bits of the inverse; any odd number is its own inverse in three bits.
    let mut inverse = modulus;
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(modulus.wrapping_mul(inverse)));
    }
    let r2 = ((u128::MAX % u128::from(modulus) + 1) % u128::from(modulus)) as u64;
    let (d_base, d_exponent) = (gpu.upload(&base)?, gpu.upload(&exponent)?);
    let result = gpu.zeros::<u64>(n)?;
    let launch = Launch::new("mod_power", (blocks(n, 256), 1), (256, 1))
        .int(n)
        .bytes(&modulus.to_le_bytes())
        .bytes(&inverse.wrapping_neg().to_le_bytes())
        .bytes(&r2.to_le_bytes())
        .buffer(&d_base)
        .buffer(&d_exponent)
        .buffer(&result);
    gpu.run(module, &launch)?;
    let want: Vec<u64> = base.iter().zip(&exponent).map(|(&base, &exponent)| power(base, exponent, modulus)).collect();
    let agreement = compare::exact(&result.read()?, &want)?;
    let time = Some(gpu.best_time(module, &[launch], || Ok(()))?);
    Ok(Outcome { agreement, time })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_distribution_at_known_points() {
        for (d, want) in [(0.0, 0.5), (1.0, 0.841_344_746_068_542_9), (-2.0, 0.022_750_131_948_179_2)] {
            assert!((normal_cdf(d) - want).abs() < 1e-14, "{d}");
        }
    }

    #[test]
    fn powers() {
        assert_eq!(power(3, 4, 1000), 81);
        // Fermat's little theorem: the modulus is prime.
        assert_eq!(power(12345, 0xFFFF_FFFF_FFFF_FFC4, 0xFFFF_FFFF_FFFF_FFC5), 1);
    }
}
