//! Samples of the IR through legalization, selection, register assignment and emission, and their PTX put together.

use std::collections::BTreeMap;

use ptxc_ir::{Module, has_errors, print_module, verify_module};
use ptxc_targets::{PtxVersion, Target};
use ptxc_test_support::{assemble, parse};

/// Kernels of one text that `ptxas` gets.
pub const BATCH: usize = 400;

/// Refusals that are meant: a part of the message, and why it is right.
pub const REFUSALS: &[(&str, &str)] = &[
    (", target is sm_", "the instruction came with a later architecture and nothing can stand for it"),
    ("has only an approximation", "exact functions are a library's business"),
    ("has no instruction; call a library", "there are no approximations on f64"),
    ("conversion to ue8m0 rounds", "the format has no rounding to nearest in PTX"),
];

/// What became of a sample.
pub enum Compiled {
    /// Its PTX.
    Ptx(String),
    /// The message of legalization, selection or emission.
    Refused(String),
}

/// One sample as PTX of the version that is asked for, its symbols made different from those of all others by `suffix`.
pub fn compile(
    mut module: Module,
    target: Target,
    version: Option<PtxVersion>,
    suffix: usize,
) -> Result<Compiled, String> {
    // What the variables hold and how parameters are aligned is not the instruction's business.
    module.globals.values_mut().for_each(|global| global.init = None);
    module.funcs.values_mut().flat_map(|func| &mut func.sig.params).for_each(|param| param.attrs.align = 0);
    if let Err(errors) = ptxc_isel::legalize(&mut module, target, version) {
        return Ok(Compiled::Refused(errors[0].message.clone()));
    }
    let errors = verify_module(&module);
    if has_errors(&errors) {
        return Err(format!("illegal after legalization: {}\n{}", errors[0].message, print_module(&module)));
    }
    let options = ptxc_isel::Options { ptx_version: version, ..ptxc_isel::Options::default() };
    let mut machine = match ptxc_isel::select(&module, target, &options) {
        Ok(machine) => machine,
        Err(errors) => {
            let message = errors[0].message.clone();
            if version.is_some() || REFUSALS.iter().any(|(part, _)| message.contains(part)) {
                return Ok(Compiled::Refused(message));
            }
            return Err(format!("not selected: {message}\n{}", print_module(&module)));
        }
    };
    machine.opaques.clear();
    machine.files.clear();
    let mut symbols = ptxc_mir::Symbols::default();
    for (_, name) in machine.symbols.iter() {
        symbols.intern(&format!("{name}_{suffix}"));
    }
    machine.symbols = symbols;
    let kinds = ptxc_regalloc::Kinds::new(&machine.opcodes);
    for func in &mut machine.functions {
        if let Err(errors) = ptxc_mir::verify(func) {
            return Err(format!("{errors:?}\n{}", print_module(&module)));
        }
        ptxc_regalloc::run(func, &kinds).map_err(|e| format!("{e}\n{}", print_module(&module)))?;
    }
    match ptxc_emit::emit_module(&machine, &ptxc_emit::EmitOptions::default()) {
        Ok(text) => Ok(Compiled::Ptx(text)),
        Err(error) if version.is_some() => Ok(Compiled::Refused(error.to_string())),
        Err(error) => Err(format!("not emitted: {error}\n{}", print_module(&module))),
    }
}

/// Texts put together under one header, of the highest version among them.
pub fn join(texts: &[String], target: Target) -> String {
    let header = |line: &&str| {
        line.starts_with(".version")
            || line.starts_with(".target")
            || line.starts_with(".address_size")
            || line.starts_with(".file")
    };
    let version =
        texts.iter().flat_map(|t| t.lines()).filter(|l| l.starts_with(".version")).max().unwrap_or(".version 6.3");
    let mut out = format!("{version}\n.target {target}\n.address_size 64\n");
    for text in texts {
        for line in text.lines().filter(|l| !header(l)) {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Whether everything is tried, not a part of it (`PTXC_EXHAUSTIVE`).
pub fn exhaustive() -> bool {
    std::env::var_os("PTXC_EXHAUSTIVE").is_some()
}

/// Errors of `ptxas`, each with its line; one of a kind. Every text is read; those whose number is for `code` are also made into code.
pub fn complaints(batches: &[(usize, String)], target: Target, code: impl Fn(usize) -> bool) -> String {
    let mut kinds: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for (number, batch) in batches {
        let outcome =
            if code(*number) { assemble(batch, target, &["-c"]) } else { parse(batch, target) }.expect("ptxas runs");
        if outcome.cubin.is_some() {
            continue;
        }
        let lines: Vec<&str> = batch.lines().collect();
        for message in outcome.messages.lines().filter(|m| !m.contains("warning")) {
            let number = message.split("line ").nth(1).and_then(|t| t.split(|c: char| !c.is_ascii_digit()).next());
            let line = number.and_then(|n| n.parse::<usize>().ok()).and_then(|n| lines.get(n - 1)).unwrap_or(&"");
            let kind = line.split_whitespace().next().unwrap_or(message).to_string();
            kinds.entry(kind).or_insert_with(|| (0, format!("{message}\n    {line}"))).0 += 1;
        }
    }
    kinds.values().map(|(count, message)| format!("{count} times: {message}\n")).collect()
}
