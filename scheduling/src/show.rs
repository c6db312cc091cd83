//! Timelines as text: one line an instruction, with the cycle in which it issues.

use crate::Context;
use crate::timeline::Timeline;
use ptxc_mir::{Block, Function, Module, print_inst, print_terminator};
use std::fmt::Write as _;

/// The timelines of a module's functions, block by block.
///
/// The title of a block has its cycles as it stands, and `assembled`, when the assembler has put independent
/// computations where they wait least. Each line has the cycle of issue, the cycle in which the result is there or the asynchronous operation complete
/// (`~`), the unit, the live 32-bit registers after it, and the instruction.
pub fn show_module(module: &Module, context: &Context) -> String {
    let mut out = String::new();
    for func in &module.functions {
        let separator = if out.is_empty() { "" } else { "\n" };
        let name = module.symbols.name(func.name);
        let _ = writeln!(out, "{separator}@{name} on {} ({})", module.target, context.machine.model().name());
        let assembled = context.assembled(func);
        for ((block, timeline), assembled) in context.timelines(func).into_iter().zip(assembled) {
            show_block(module, func, (block, &timeline, assembled), &mut out);
        }
    }
    out
}

/// What a block comes to, in one line.
pub(crate) fn title(block: Block, timeline: &Timeline, assembled: u32) -> String {
    let count = timeline.slots.len();
    let noun = if count == 1 { "instruction" } else { "instructions" };
    let (cycles, peak) = (timeline.cycles, timeline.peak);
    format!("{block}: {count} {noun}, at most {peak} registers live, {cycles} cycles, {assembled} assembled")
}

fn show_block(module: &Module, func: &Function, shown: (Block, &Timeline, u32), out: &mut String) {
    let (block, timeline, assembled) = shown;
    let _ = writeln!(out, "{}", title(block, timeline, assembled));
    if !timeline.slots.is_empty() {
        out.push_str("   cycle   done  unit     live  instruction\n");
    }
    for slot in &timeline.slots {
        let done = slot.start + u32::from(slot.timing.latency);
        let mark = if slot.timing.class.is_asynchronous() { '~' } else { ' ' };
        let text = print_inst(func, slot.inst, &module.opcodes, &module.symbols);
        let unit = slot.timing.unit.name();
        let _ = writeln!(out, "  {:6} {done:6}{mark} {unit:8} {:4}  {text}", slot.start, slot.live);
    }
    let text = print_terminator(func, block, &module.opcodes, &module.symbols);
    let _ = writeln!(out, "  {:6}{:24}{text}", timeline.cycles, "");
}
