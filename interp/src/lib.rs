//! The executable semantics of ptxc: what a program means, as a program.
//!
//! [`ir`] interprets launches of kernels in the IR, [`ptx`] emulates those of PTX modules. [`float`] is exact arithmetic on
//! bit patterns, [`memory`] the spaces of a grid with their rules, [`machine`] how warps and blocks take turns, [`launch`]
//! what is executed and what comes of it.

pub mod asynchronous;
pub mod float;
pub mod ir;
pub mod launch;
pub mod machine;
pub mod matrix;
pub mod memory;
pub mod ptx;
