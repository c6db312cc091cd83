//! What is printed and kept of a program that was found.

use std::fmt::Write as _;
use std::path::Path;

use ptxc_interp::launch::Argument;

use crate::check::Finding;
use crate::program::Program;

/// Comment lines that say what a program is launched with.
pub fn header(program: &Program) -> String {
    let launch = &program.launch;
    let mut out = format!("; seed {} for {}\n", program.seed, program.target);
    let _ = writeln!(out, "; grid {:?}, block {:?}", launch.grid, launch.block);
    for argument in &launch.arguments {
        let _ = match argument {
            Argument::Bytes(bytes) => writeln!(out, "; argument {bytes:02x?}"),
            Argument::Buffer { index, offset } => {
                let buffer = program.buffers.get(*index);
                let (name, size) = buffer.map_or(("?", 0), |b| (b.name.as_str(), b.bytes.len()));
                writeln!(out, "; argument `{name}` + {offset}, {size} bytes")
            }
        };
    }
    out
}

/// Words about a finding; programs are written to a folder where one is given.
///
/// # Errors
/// The folder cannot be written.
pub fn describe(program: &Program, finding: &Finding, _reduce: bool, folder: Option<&Path>) -> Result<String, String> {
    let mut out = String::new();
    let _ = writeln!(out, "seed {} for {}:", program.seed, program.target);
    let _ = writeln!(out, "  first wrong after {}", finding.steps.join(","));
    let _ = writeln!(out, "  {}", finding.what);
    if let Some(folder) = folder {
        let text = format!("{}; {}\n{}", header(program), finding.what, ptxc_ir::print_module(&program.module));
        let path = folder.join(format!("seed_{}.ir", program.seed));
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(out)
}
