//! What tests of the readers share.

pub mod dump;
