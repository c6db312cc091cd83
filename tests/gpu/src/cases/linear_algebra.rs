//! Kernels over matrices: transpose, the two matrix products, the sparse product.

use half::bf16;

use super::{Failure, Outcome, blocks};
use crate::compare;
use crate::device::{Gpu, Launch, Module};
use crate::random::Random;

pub fn transpose(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let (width, height) = (1999, 3001);
    let input = Random::new(11).floats(width * height, -1.0, 1.0);
    let (from, to) = (gpu.upload(&input)?, gpu.zeros::<f32>(width * height)?);
    let launch = Launch::new("transpose", (blocks(width, 32), blocks(height, 32)), (32, 8))
        .int(width)
        .int(height)
        .buffer(&from)
        .buffer(&to);
    gpu.run(module, &launch)?;
    let mut want = Vec::with_capacity(input.len());
    for x in 0..width {
        want.extend((0..height).map(|y| input[y * width + x]));
    }
    let agreement = compare::exact(&to.read()?, &want)?;
    let time = Some(gpu.best_time(module, &[launch], || Ok(()))?);
    Ok(Outcome { agreement, time })
}

/// The product of an m x k and a k x n matrix in double precision.
fn product(a: &[f64], b: &[f64], m: usize, n: usize, k: usize) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    for (row, out) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)) {
        for (&left, line) in row.iter().zip(b.chunks_exact(n)) {
            for (sum, &right) in out.iter_mut().zip(line) {
                *sum += left * right;
            }
        }
    }
    c
}

pub fn sgemm(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let (m, n, k) = (700, 900, 500);
    let (alpha, beta) = (1.5f32, -0.25f32);
    let mut random = Random::new(12);
    let a = random.floats(m * k, -1.0, 1.0);
    let b = random.floats(k * n, -1.0, 1.0);
    let c = random.floats(m * n, -1.0, 1.0);
    let (da, db, dc) = (gpu.upload(&a)?, gpu.upload(&b)?, gpu.upload(&c)?);
    let launch = Launch::new("sgemm", (blocks(n, 128), blocks(m, 128)), (256, 1))
        .int(m)
        .int(n)
        .int(k)
        .float(alpha)
        .float(beta)
        .buffer(&da)
        .buffer(&db)
        .buffer(&dc);
    gpu.run(module, &launch)?;
    let wide = |values: &[f32]| -> Vec<f64> { values.iter().map(|&value| f64::from(value)).collect() };
    let mut want = product(&wide(&a), &wide(&b), m, n, k);
    for (sum, &old) in want.iter_mut().zip(&c) {
        *sum = f64::from(alpha) * *sum + f64::from(beta) * f64::from(old);
    }
    // Rounding grows with the root of the number of terms, which is also the size of a typical sum.
    let agreement = compare::close(&dc.read()?, &want, (k as f64).sqrt(), 1e-5)?;
    let time = Some(gpu.best_time(module, &[launch], || dc.write(&c))?);
    Ok(Outcome { agreement, time })
}

pub fn gemm_bf16(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let (m, n, k) = (1001, 1032, 1000);
    let mut random = Random::new(13);
    let mut matrix = |len: usize| -> (Vec<u16>, Vec<f64>) {
        let values: Vec<bf16> = (0..len).map(|_| bf16::from_f32(random.float(-1.0, 1.0))).collect();
        (values.iter().map(|value| value.to_bits()).collect(), values.iter().map(|value| value.to_f64()).collect())
    };
    let (a_bits, a) = matrix(m * k);
    let (b_bits, b) = matrix(k * n);
    let (da, db, dc) = (gpu.upload(&a_bits)?, gpu.upload(&b_bits)?, gpu.zeros::<f32>(m * n)?);
    let launch = Launch::new("gemm_bf16", (blocks(n, 128), blocks(m, 128)), (256, 1))
        .int(m)
        .int(n)
        .int(k)
        .buffer(&da)
        .buffer(&db)
        .buffer(&dc);
    gpu.run(module, &launch)?;
    let want = product(&a, &b, m, n, k);
    let agreement = compare::close(&dc.read()?, &want, (k as f64).sqrt(), 1e-5)?;
    let time = Some(gpu.best_time(module, &[launch], || Ok(()))?);
    Ok(Outcome { agreement, time })
}

pub fn spmv(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let (rows, columns) = (20_011, 30_011);
    let mut random = Random::new(14);
    let mut row_start = vec![0u32];
    let mut column = Vec::new();
    for _ in 0..rows {
        // Some rows are empty, most are short, a few have hundreds of elements.
        let len = match random.below(20) {
            0 => 0,
            1 => random.below(500),
            _ => random.below(60),
        };
        column.extend((0..len).map(|_| random.below(columns) as u32));
        row_start.push(column.len() as u32);
    }
    let value = random.floats(column.len(), -1.0, 1.0);
    let x = random.floats(columns, -1.0, 1.0);
    let (d_start, d_column, d_value) = (gpu.upload(&row_start)?, gpu.upload(&column)?, gpu.upload(&value)?);
    let (dx, dy) = (gpu.upload(&x)?, gpu.upload(&vec![f32::NAN; rows])?);
    let launch = Launch::new("spmv_csr", (blocks(rows, 8), 1), (256, 1))
        .int(rows)
        .buffer(&d_start)
        .buffer(&d_column)
        .buffer(&d_value)
        .buffer(&dx)
        .buffer(&dy);
    gpu.run(module, &launch)?;
    let want: Vec<f64> = row_start
        .windows(2)
        .map(|ends| {
            (ends[0] as usize..ends[1] as usize)
                .map(|at| f64::from(value[at]) * f64::from(x[column[at] as usize]))
                .sum()
        })
        .collect();
    let agreement = compare::close(&dy.read()?, &want, 1.0, 1e-5)?;
    let time = Some(gpu.best_time(module, &[launch], || Ok(()))?);
    Ok(Outcome { agreement, time })
}
