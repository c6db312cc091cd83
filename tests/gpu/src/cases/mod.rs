//! The kernels under test, each with its inputs, its launches and a reference computed on the host.
//!
//! A reference is written from the definition of what the kernel computes, not from the kernel. Sizes are no multiples of
//! the block sizes wherever the kernel allows that.

mod linear_algebra;
mod numbers;
mod programs;
mod rows;
mod sequences;
mod simulation;

use crate::compare::Agreement;
use crate::device::{Error, Gpu, Module};

/// What a test found: how well the result agrees and the best time of its launches.
pub struct Outcome {
    /// Agreement with the reference.
    pub agreement: Agreement,
    /// Microseconds, where they are of interest.
    pub time: Option<f32>,
}

/// Why a test failed.
pub enum Failure {
    /// Something on the GPU went wrong.
    Device(Error),
    /// The result is not the reference.
    Result(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Device(error)
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Failure::Result(text)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Device(error) => error.fmt(f),
            Failure::Result(text) => text.fmt(f),
        }
    }
}

/// One example and its test.
pub struct Case {
    /// The name of the example's file, without suffix.
    pub name: &'static str,
    /// What is computed, for the table.
    pub size: &'static str,
    /// The example's IR.
    pub source: &'static str,
    /// Runs the test on a loaded module.
    pub test: fn(&Gpu, &Module) -> Result<Outcome, Failure>,
}

macro_rules! case {
    ($name:literal, $size:literal, $test:path) => {
        Case {
            name: $name,
            size: $size,
            source: include_str!(concat!("../../../../examples/", $name, ".ir")),
            test: $test,
        }
    };
}

/// All tests, in the order of the table.
pub const CASES: &[Case] = &[
    case!("saxpy", "10,000,019 floats", sequences::saxpy),
    case!("reduce", "5,000,003 floats", sequences::reduce),
    case!("scan", "3,000,001 integers", sequences::scan),
    case!("transpose", "1,999 x 3,001", linear_algebra::transpose),
    case!("sgemm", "700 x 900 x 500", linear_algebra::sgemm),
    case!("gemm_bf16", "1,001 x 1,032 x 1,000", linear_algebra::gemm_bf16),
    case!("softmax", "999 x 1,777", rows::softmax),
    case!("layernorm", "999 x 1,777", rows::layernorm),
    case!("histogram", "5,000,003 bytes", sequences::histogram),
    case!("stencil3d", "250 x 131 x 67", simulation::stencil3d),
    case!("nbody", "5,003 bodies", simulation::nbody),
    case!("mandelbrot", "1,003 x 517, 500 steps", simulation::mandelbrot),
    case!("spmv", "20,011 rows", linear_algebra::spmv),
    case!("radix_sort", "1,000,003 pairs", sequences::radix_sort),
    case!("sha256", "10,007 x 192 bytes", programs::sha256),
    case!("interpreter", "20,003 inputs", programs::interpreter),
    case!("structs", "505 x 303 rays", programs::structs),
    case!("black_scholes", "1,000,003 options", numbers::black_scholes),
    case!("half_blend", "2,000,008 halves", numbers::half_blend),
    case!("hash_table", "1,000,003 pairs", numbers::hash_table),
    case!("mod_power", "50,021 powers", numbers::mod_power),
];

/// How many blocks of `size` cover `n` elements.
fn blocks(n: usize, size: usize) -> usize {
    n.div_ceil(size)
}
