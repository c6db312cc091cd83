//! The executable semantics of ptxc: what a program means, as a program.
//!
//! [`float`] is exact arithmetic on bit patterns.

pub mod float;
