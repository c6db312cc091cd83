//! Kernels over one long array: saxpy, reduction, scan, histogram, radix sort.

use super::{Failure, Outcome, blocks};
use crate::compare;
use crate::device::{Gpu, Launch, Module};
use crate::random::Random;

pub fn saxpy(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let n = 10_000_019;
    let a = 1.75f32;
    let mut random = Random::new(1);
    let (x, y) = (random.floats(n, -10.0, 10.0), random.floats(n, -10.0, 10.0));
    let (dx, dy) = (gpu.upload(&x)?, gpu.upload(&y)?);
    let launch = Launch::new("saxpy", (blocks(n, 256), 1), (256, 1)).int(n).float(a).buffer(&dx).buffer(&dy);
    gpu.run(module, &launch)?;
    let want: Vec<f64> = x.iter().zip(&y).map(|(&x, &y)| f64::from(a) * f64::from(x) + f64::from(y)).collect();
    let agreement = compare::close(&dy.read()?, &want, 1.0, 2e-6)?;
    let time = Some(gpu.best_time(module, &[launch], || Ok(()))?);
    Ok(Outcome { agreement, time })
}

pub fn reduce(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let n = 5_000_003;
    let x = Random::new(2).floats(n, 0.0, 1.0);
    let (dx, out) = (gpu.upload(&x)?, gpu.zeros::<f32>(1)?);
    let launch = Launch::new("reduce_sum", (528, 1), (256, 1)).int(n).buffer(&dx).buffer(&out);
    gpu.run(module, &launch)?;
    let want = x.iter().map(|&x| f64::from(x)).sum();
    let agreement = compare::close(&out.read()?, &[want], 1.0, 1e-5)?;
    let time = Some(gpu.best_time(module, &[launch], || out.clear())?);
    Ok(Outcome { agreement, time })
}

pub fn scan(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let n = 3_000_001;
    let tiles = blocks(n, 1024);
    let x = Random::new(3).words(n);
    let (dx, dy) = (gpu.upload(&x)?, gpu.zeros::<u32>(n)?);
    let (status, ticket) = (gpu.zeros::<u64>(tiles)?, gpu.zeros::<u32>(1)?);
    let launch = Launch::new("inclusive_scan", (tiles, 1), (256, 1))
        .int(n)
        .buffer(&dx)
        .buffer(&dy)
        .buffer(&status)
        .buffer(&ticket);
    gpu.run(module, &launch)?;
    let mut sum = 0u32;
    let want: Vec<u32> = x
        .iter()
        .map(|&x| {
            sum = sum.wrapping_add(x);
            sum
        })
        .collect();
    let agreement = compare::exact(&dy.read()?, &want)?;
    status.read()?;
    let time = Some(gpu.best_time(module, &[launch], || {
        status.clear()?;
        ticket.clear()
    })?);
    Ok(Outcome { agreement, time })
}

pub fn histogram(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let n = 5_000_003;
    let mut random = Random::new(4);
    // The smaller of two bytes: low values are frequent, high ones rare.
    let data: Vec<u8> = (0..n).map(|_| (random.word() as u8).min(random.word() as u8)).collect();
    let (input, bins) = (gpu.upload(&data)?, gpu.zeros::<u32>(256)?);
    let launch = Launch::new("histogram", (264, 1), (256, 1)).int(n).buffer(&input).buffer(&bins);
    gpu.run(module, &launch)?;
    let mut want = vec![0u32; 256];
    for &byte in &data {
        want[usize::from(byte)] += 1;
    }
    let agreement = compare::exact(&bins.read()?, &want)?;
    let time = Some(gpu.best_time(module, &[launch], || bins.clear())?);
    Ok(Outcome { agreement, time })
}

/// Eight passes sort the keys; sorting with pairs by a stable sort shows that each pass is stable. The time is that of
/// one pass.
pub fn radix_sort(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let n = 1_000_003;
    let tiles = blocks(n, 1024);
    let mut random = Random::new(5);
    // Twenty random bits, in the upper half of the word too: many equal keys.
    let keys: Vec<u32> = (0..n).map(|_| (random.word() & 0xFFC0_03FF).rotate_left(3)).collect();
    let values: Vec<u32> = (0..n as u32).collect();
    let (mut from_keys, mut from_values) = (gpu.upload(&keys)?, gpu.upload(&values)?);
    let (mut to_keys, mut to_values) = (gpu.zeros::<u32>(n)?, gpu.zeros::<u32>(n)?);
    let counts = gpu.zeros::<u32>(16 * tiles)?;
    let mut pass = Vec::new();
    for shift in (0..32).step_by(4) {
        pass = vec![
            Launch::new("radix_count", (tiles, 1), (256, 1))
                .int(n)
                .int(shift)
                .int(tiles)
                .buffer(&from_keys)
                .buffer(&counts),
            Launch::new("radix_offsets", (1, 1), (512, 1)).int(16 * tiles).buffer(&counts),
            Launch::new("radix_scatter", (tiles, 1), (256, 1))
                .int(n)
                .int(shift)
                .int(tiles)
                .buffer(&from_keys)
                .buffer(&from_values)
                .buffer(&counts)
                .buffer(&to_keys)
                .buffer(&to_values),
        ];
        for launch in &pass {
            gpu.run(module, launch)?;
        }
        std::mem::swap(&mut from_keys, &mut to_keys);
        std::mem::swap(&mut from_values, &mut to_values);
    }
    let mut pairs: Vec<(u32, u32)> = keys.into_iter().zip(values).collect();
    pairs.sort_by_key(|&(key, _)| key);
    let (want_keys, want_values): (Vec<u32>, Vec<u32>) = pairs.into_iter().unzip();
    compare::exact(&from_keys.read()?, &want_keys).map_err(|text| format!("keys: {text}"))?;
    let agreement = compare::exact(&from_values.read()?, &want_values).map_err(|text| format!("values: {text}"))?;
    to_keys.read()?;
    to_values.read()?;
    let time = Some(gpu.best_time(module, &pass, || Ok(()))?);
    Ok(Outcome { agreement, time })
}
