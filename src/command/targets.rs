//! `ptxc targets`: the table of targets.

use std::fmt::Write as _;

use ptxc::targets::{Suffix, Target};

use crate::{Failure, files};

/// Prints the table.
pub fn run() -> Result<(), Failure> {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{:8} {:>4}  {:>10}  {:>8}  {:>7}  runs on",
        "target", "PTX", "shared KiB", "clusters", "256-bit"
    );
    for &target in Target::ALL {
        let yes_no = |yes: bool| if yes { "yes" } else { "no" };
        let _ = writeln!(
            out,
            "{:8} {:>4}  {:>10}  {:>8}  {:>7}  {}",
            target.name(),
            target.min_ptx(),
            target.max_shared_bytes() / 1024,
            yes_no(target.has_clusters()),
            yes_no(target.has_256_bit_memory()),
            runs_on(target)
        );
    }
    files::write_output(None, &out)
}

/// On which GPUs code for a target runs, in words.
fn runs_on(target: Target) -> String {
    match target.suffix() {
        Suffix::None => format!("sm_{} and later", target.sm()),
        Suffix::Architecture => format!("sm_{} only", target.sm()),
        Suffix::Family => {
            let members: Vec<String> = Target::ALL
                .iter()
                .filter(|gpu| gpu.suffix() == Suffix::None && target.runs_on(**gpu))
                .map(ToString::to_string)
                .collect();
            members.join(", ")
        }
    }
}
