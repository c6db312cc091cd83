//! What is printed and kept of a program that was found.

use std::fmt::Write as _;
use std::path::Path;

use ptxc_interp::launch::Argument;

use crate::check::{Finding, Verdict, check};
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

/// Words about a finding, with a smaller program that shows it too; both are written to a folder where one is given.
///
/// # Errors
/// The folder cannot be written.
pub fn describe(program: &Program, finding: &Finding, reduces: bool, folder: Option<&Path>) -> Result<String, String> {
    let mut out = String::new();
    let _ = writeln!(out, "seed {} for {}:", program.seed, program.target);
    let _ = writeln!(out, "  first wrong after {}", finding.steps.join(","));
    let _ = writeln!(out, "  {}", finding.what);
    if let Some(folder) = folder {
        write(folder, program, finding, "")?;
    }
    if !reduces {
        return Ok(out);
    }
    let (small, finding) = smaller(program, finding);
    if let Some(folder) = folder {
        write(folder, &small, &finding, ".reduced")?;
    }
    let _ = writeln!(out, "  reduced: {}", finding.what);
    for line in ptxc_ir::print_module(&small.module).lines() {
        let _ = writeln!(out, "    {line}");
    }
    Ok(out)
}

fn write(folder: &Path, program: &Program, finding: &Finding, suffix: &str) -> Result<(), String> {
    let steps = finding.steps.join(",");
    let module = ptxc_ir::print_module(&program.module);
    let text = format!("{}; after {steps}: {}\n{module}", header(program), finding.what);
    let path = folder.join(format!("seed_{}{suffix}.ir", program.seed));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// A smaller program with a defined result with which the same steps go wrong in the same way.
pub fn smaller(program: &Program, finding: &Finding) -> (Program, Finding) {
    let list: Vec<&str> = finding.steps.iter().map(String::as_str).collect();
    let mut last = finding.clone();
    let options = ptxc_reduce::Options { tests: 4000, keep_kernels: true };
    let (module, _) = ptxc_reduce::reduce(&program.module, &options, &mut |module| {
        let candidate = Program { module: module.clone(), ..program.clone() };
        match check(&candidate, &[&list]) {
            Verdict::Wrong(found) if found.is_like(finding) => {
                last = found;
                true
            }
            _ => false,
        }
    });
    (Program { module, ..program.clone() }, last)
}
