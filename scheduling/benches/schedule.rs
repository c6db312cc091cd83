//! Placeholder; see the benches of the list scheduler.
fn main() {}
