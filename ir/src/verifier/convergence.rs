//! Barriers that some threads of a warp may not reach together.

use super::Report;
use crate::module::{Function, Module};

pub(super) fn check(_module: &Module, _func: &Function, _report: &mut Report) {}
