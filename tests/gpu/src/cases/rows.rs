//! Kernels that normalize the rows of a matrix.

use super::{Failure, Outcome};
use crate::compare;
use crate::device::{Gpu, Launch, Module};
use crate::random::Random;

const ROWS: usize = 999;
const COLUMNS: usize = 1777;

pub fn softmax(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let input = Random::new(21).floats(ROWS * COLUMNS, -8.0, 8.0);
    let (from, to) = (gpu.upload(&input)?, gpu.zeros::<f32>(input.len())?);
    let launch = Launch::new("softmax", (ROWS, 1), (256, 1)).int(COLUMNS).buffer(&from).buffer(&to);
    gpu.run(module, &launch)?;
    let mut want = Vec::with_capacity(input.len());
    for row in input.chunks_exact(COLUMNS) {
        let sum: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
        want.extend(row.iter().map(|&x| f64::from(x).exp() / sum));
    }
    // Relative down to the smallest elements: exp(-16) of the largest.
    let agreement = compare::close(&to.read()?, &want, 1e-12, 1e-5)?;
    let time = Some(gpu.best_time(module, &[launch], || Ok(()))?);
    Ok(Outcome { agreement, time })
}

pub fn layernorm(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let eps = 1e-5f32;
    let mut random = Random::new(22);
    // A mean well away from zero shows a variance computed from the sum of squares.
    let input = random.floats(ROWS * COLUMNS, 9.0, 11.0);
    let gamma = random.floats(COLUMNS, 0.5, 1.5);
    let beta = random.floats(COLUMNS, -1.0, 1.0);
    let (from, to) = (gpu.upload(&input)?, gpu.zeros::<f32>(input.len())?);
    let (d_gamma, d_beta) = (gpu.upload(&gamma)?, gpu.upload(&beta)?);
    let launch = Launch::new("layernorm", (ROWS, 1), (256, 1))
        .int(COLUMNS)
        .float(eps)
        .buffer(&from)
        .buffer(&d_gamma)
        .buffer(&d_beta)
        .buffer(&to);
    gpu.run(module, &launch)?;
    let mut want = Vec::with_capacity(input.len());
    for row in input.chunks_exact(COLUMNS) {
        let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / COLUMNS as f64;
        let variance = row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / COLUMNS as f64;
        let scale = 1.0 / (variance + f64::from(eps)).sqrt();
        for ((&x, &gamma), &beta) in row.iter().zip(&gamma).zip(&beta) {
            want.push((f64::from(x) - mean) * scale * f64::from(gamma) + f64::from(beta));
        }
    }
    let agreement = compare::close(&to.read()?, &want, 1.0, 2e-5)?;
    let time = Some(gpu.best_time(module, &[launch], || Ok(()))?);
    Ok(Outcome { agreement, time })
}
