//! Random programs with defined results, and the drivers that compare what the compiler makes of them.
//!
//! [`generate()`] makes a program from a seed; [`features`] says what it may hold. [`program`] runs one, [`check()`]
//! compares what it does before and after the [`steps`] of the compiler: in the interpreter after the passes and after
//! legalization, in the emulator on the PTX. [`campaign`] does so for many seeds, [`report`] says what was found and
//! makes it smaller. [`coverage`] counts the rules that programs reach. [`readers`] mutates text.

pub mod campaign;
pub mod check;
pub mod coverage;
pub mod features;
pub mod generate;
pub mod program;
pub mod readers;
pub mod report;
pub mod steps;

pub use check::{Finding, Verdict, check};
pub use features::Features;
pub use generate::generate;
pub use program::Program;
