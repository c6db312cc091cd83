//! The executable semantics of ptxc: what a program means, as a program.
//!
//! [`float`] is exact arithmetic on bit patterns, [`memory`] the spaces of a grid with their rules, [`launch`] what is
//! executed and what comes of it.

pub mod float;
pub mod launch;
pub mod memory;
