//! The interpreter of the IR: whole launches, with divergence, barriers and poison.
//!
//! Functions are decoded once into flat code (module `program`); a warp executes a step for all its lanes at a time
//! (module `interpreter`). Undefined behaviour is an error with its place: access out of bounds, misaligned, races, poison in
//! addresses, conditions and divisors, division by zero, barriers that part, broken promises (`uniform`, `assume`,
//! `unreachable`). Reading memory that was never written is a warning. Not found are broken `inbounds`, `noalias`,
//! `readonly`, `nonnull` and `invariant`. Target operations do what the emulator of PTX does with the instruction (module
//! `target`); what it does not know, and inline assembly, is refused when it is reached.
//!
//! `contract`, `reassoc`, `arcp` and `afn` change nothing: the result is the strict one. `fsin`, `fcos`, `fexp2`,
//! `flog2`, `ftanh` and `frsqrt` are the host's double-precision functions, rounded once more.

mod access;
mod compute;
mod decode;
mod element;
mod frame;
mod grid;
mod integer;
#[cfg(test)]
mod integer_tests;
mod interpreter;
mod program;
mod target;
#[cfg(test)]
mod tests;
mod threads;

pub use grid::run;
use ptxc_ir::{Extra, Module};

/// Names a place: function, instruction, source location.
fn describe(module: &Module, codes: &[program::Code], place: u32) -> String {
    let at = codes.partition_point(|c| c.first_place <= place).checked_sub(1);
    let Some(code) = at.and_then(|i| codes.get(i)) else { return String::new() };
    let func = &module.funcs[code.func];
    let Some(step) = code.steps.get((place - code.first_place) as usize) else { return format!("@{}", func.name) };
    let result = func.dfg.first_result(step.inst).and_then(|v| func.dfg.value_names.get(&v));
    let op = match func.dfg.insts[step.inst].extra {
        Extra::Target(id) => target::name(&func.dfg.target_ops[id]),
        _ => step.op.text().to_string(),
    };
    let mut text = match result {
        Some(name) => format!("@{}, `%{name} = {op}`", func.name),
        None => format!("@{}, `{op}`", func.name),
    };
    let block = func.layout.inst_block(step.inst);
    if let Some(name) = block.and_then(|b| func.dfg.block_names.get(&b)) {
        text.push_str(&format!(" in block {name}"));
    }
    let loc = func.dfg.locs[step.inst];
    if loc.line != 0 {
        let file = module.files.iter().find(|(number, _)| *number == loc.file).map_or("?", |(_, name)| name);
        text.push_str(&format!(", {file}:{}:{}", loc.line, loc.col));
    }
    text
}
