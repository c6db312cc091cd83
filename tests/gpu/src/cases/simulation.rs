//! Kernels of the simulation kind: stencil, n-body, Mandelbrot set.

use super::{Failure, Outcome, blocks};
use crate::compare;
use crate::device::{Gpu, Launch, Module};
use crate::random::Random;

pub fn stencil3d(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let (nx, ny, nz) = (250, 131, 67);
    let (centre, side) = (0.4f32, 0.1f32);
    let input = Random::new(31).floats(nx * ny * nz, -1.0, 1.0);
    let (from, to) = (gpu.upload(&input)?, gpu.upload(&vec![f32::NAN; input.len()])?);
    let launch = Launch::new("stencil3d", (blocks(nx, 32), blocks(ny, 8)), (32, 8))
        .int(nx)
        .int(ny)
        .int(nz)
        .float(centre)
        .float(side)
        .buffer(&from)
        .buffer(&to);
    gpu.run(module, &launch)?;
    let mut want: Vec<f64> = input.iter().map(|&x| f64::from(x)).collect();
    for z in 1..nz - 1 {
        for y in 1..ny - 1 {
            for x in 1..nx - 1 {
                let at = (z * ny + y) * nx + x;
                let around: f64 = [at - 1, at + 1, at - nx, at + nx, at - nx * ny, at + nx * ny]
                    .iter()
                    .map(|&at| f64::from(input[at]))
                    .sum();
                want[at] = f64::from(centre) * f64::from(input[at]) + f64::from(side) * around;
            }
        }
    }
    let agreement = compare::close(&to.read()?, &want, 1.0, 1e-6)?;
    let time = Some(gpu.best_time(module, &[launch], || Ok(()))?);
    Ok(Outcome { agreement, time })
}

pub fn nbody(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let n = 5003;
    let (dt, softening) = (0.01f32, 0.05f32);
    let mut random = Random::new(32);
    let mut body = Vec::with_capacity(4 * n);
    let mut velocity = Vec::with_capacity(4 * n);
    for _ in 0..n {
        body.extend(random.floats(3, -1.0, 1.0));
        body.push(random.float(0.5, 1.5) / n as f32);
        velocity.extend(random.floats(3, -0.1, 0.1));
        velocity.push(0.0);
    }
    let (d_body, d_velocity) = (gpu.upload(&body)?, gpu.upload(&velocity)?);
    let moved = gpu.zeros::<f32>(4 * n)?;
    let launch = Launch::new("nbody_step", (blocks(n, 256), 1), (256, 1))
        .int(n)
        .float(dt)
        .float(softening)
        .buffer(&d_body)
        .buffer(&d_velocity)
        .buffer(&moved);
    gpu.run(module, &launch)?;
    let (want_moved, want_velocity) = leap(&body, &velocity, f64::from(dt), f64::from(softening));
    let first = compare::close(&d_velocity.read()?, &want_velocity, 1.0, 1e-5)?;
    let second = compare::close(&moved.read()?, &want_moved, 1.0, 1e-5)?;
    let time = Some(gpu.best_time(module, &[launch], || d_velocity.write(&velocity))?);
    Ok(Outcome { agreement: compare::both(first, second), time })
}

/// New positions (with masses) and velocities after one step, in double precision.
fn leap(body: &[f32], velocity: &[f32], dt: f64, softening: f64) -> (Vec<f64>, Vec<f64>) {
    let wide: Vec<[f64; 4]> = body.chunks_exact(4).map(|b| std::array::from_fn(|i| f64::from(b[i]))).collect();
    let (mut moved, mut speeds) = (Vec::new(), Vec::new());
    for (me, v) in wide.iter().zip(velocity.chunks_exact(4)) {
        let mut pull = [0.0; 3];
        for other in &wide {
            let d = [other[0] - me[0], other[1] - me[1], other[2] - me[2]];
            let square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + softening * softening;
            let strength = other[3] / (square * square.sqrt());
            for axis in 0..3 {
                pull[axis] += d[axis] * strength;
            }
        }
        for axis in 0..3 {
            let speed = f64::from(v[axis]) + pull[axis] * dt;
            speeds.push(speed);
            moved.push(me[axis] + speed * dt);
        }
        speeds.push(0.0);
        moved.push(me[3]);
    }
    (moved, speeds)
}

pub fn mandelbrot(gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
    let (width, height, limit) = (1003, 517, 500);
    let (left, top, step) = (-2.1f32, -0.8f32, 0.003f32);
    let out = gpu.upload(&vec![u32::MAX; width * height])?;
    let launch = Launch::new("mandelbrot", (blocks(width, 32), blocks(height, 8)), (32, 8))
        .int(width)
        .int(height)
        .float(left)
        .float(top)
        .float(step)
        .int(limit)
        .buffer(&out);
    gpu.run(module, &launch)?;
    let mut want = Vec::with_capacity(width * height);
    for y in 0..height {
        for x in 0..width {
            let c = (left + x as f32 * step, top + y as f32 * step);
            let mut z = (0.0f32, 0.0f32);
            let mut count = 0;
            while count < limit && z.0 * z.0 + z.1 * z.1 <= 4.0 {
                z = ((z.0 * z.0 - z.1 * z.1) + c.0, 2.0 * (z.0 * z.1) + c.1);
                count += 1;
            }
            want.push(count as u32);
        }
    }
    let agreement = compare::exact(&out.read()?, &want)?;
    let time = Some(gpu.best_time(module, &[launch], || Ok(()))?);
    Ok(Outcome { agreement, time })
}
