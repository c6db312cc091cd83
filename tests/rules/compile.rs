//! Compiles the files: with the passes that they ask for, or as legal IR.

use std::collections::{BTreeMap, BTreeSet};

use ptxc::ir::Module;
use ptxc::targets::{PtxVersion, Target};
use ptxc::{Options, compile_text};

use crate::functions::File;

/// Names of the rules that are applied to each function.
pub type Applied = BTreeMap<String, BTreeSet<&'static str>>;

/// The rules that are applied to the functions of a file.
pub fn applied(file: &File) -> Result<Applied, String> {
    let mut out = Applied::new();
    if file.legal {
        let module = read(&file.text)?;
        let mut remarks = Vec::new();
        select(file, &module, Some(&mut remarks))?;
        for remark in remarks {
            out.entry(module.funcs[remark.func].name.clone()).or_default().insert(remark.rule.name);
        }
        return Ok(out);
    }
    let options = Options { remarks: true, passes: Some(file.passes.clone()), ..Options::new(file.target) };
    let output = compile_text(&file.name, &file.text, &options).map_err(|errors| errors.to_string())?;
    for remark in output.remarks {
        out.entry(remark.function).or_default().insert(remark.rule);
    }
    Ok(out)
}

/// The PTX of a text, compiled as a file's.
pub fn ptx(file: &File, text: &str) -> Result<String, String> {
    if file.legal {
        let mut machine = select(file, &read(text)?, None)?;
        let kinds = ptxc_regalloc::Kinds::new(&machine.opcodes);
        for func in &mut machine.functions {
            ptxc_regalloc::run(func, &kinds).map_err(|error| error.to_string())?;
        }
        return ptxc_emit::emit_module(&machine, &Default::default()).map_err(|error| error.to_string());
    }
    let options = Options { passes: Some(file.passes.clone()), ..Options::new(file.target) };
    compile_text(&file.name, text, &options).map(|output| output.text).map_err(|errors| errors.to_string())
}

/// The PTX of a file for another target in a version of PTX, or why there is none.
pub fn versioned(file: &File, target: Target, version: PtxVersion) -> Result<String, String> {
    let options = Options { passes: Some(file.passes.clone()), ptx_version: Some(version), ..Options::new(target) };
    compile_text(&file.name, &file.text, &options).map(|output| output.text).map_err(|errors| errors.to_string())
}

/// Reads a module.
pub fn read(text: &str) -> Result<Module, String> {
    ptxc::ir::read_module(text).map_err(|errors| {
        let place = |at: usize| format!("line {}", text[..at].lines().count());
        errors.into_iter().map(|error| format!("{}: {}\n", place(error.span.start), error.message)).collect()
    })
}

fn select(
    file: &File,
    module: &Module,
    remarks: Option<&mut Vec<ptxc_isel::rules::Remark>>,
) -> Result<ptxc::mir::Module, String> {
    let options = ptxc_isel::Options::default();
    ptxc_isel::select_with_remarks(module, file.target, &options, remarks)
        .map_err(|errors| errors.iter().map(|error| format!("{}: {error}\n", file.name)).collect())
}
