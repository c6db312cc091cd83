//! Keeps stack objects in values instead of memory.
//!
//! Objects whose every access is known ([`objects`]) are cut into slots ([`slots`]), and each slot becomes a value that
//! block parameters carry between blocks ([`rename`]). Structs and arrays with constant indices are taken apart on the
//! way; copies between objects vanish. A slot that is read before it is written holds zero: memory that was never
//! written has one unspecified value, not poison, so that setting one bit-field of an object leaves the others usable.
//!
//! The time is linear in the size of the function and, per slot, in the number of blocks where the slot is alive.

mod bits;
mod objects;
mod rename;
mod slots;

use ptxc_ir::{Cfg, Function, Opcode};

use crate::edit::resolve_all_uses;
use crate::pass::Context;

/// The pass.
pub fn promote_allocas(func: &mut Function, ctx: &Context<'_>) -> bool {
    let Some(entry) = func.layout.entry() else { return false };
    if !func.layout.insts(entry).any(|inst| func.dfg.insts[inst].op == Opcode::Alloca) {
        return false;
    }
    resolve_all_uses(func);
    let cfg = Cfg::new(func);
    let mut found = objects::find(func, ctx.module, &cfg);
    let slots = slots::cut(&mut found);
    if found.objects.iter().all(|object| object.escaped) {
        return false;
    }
    rename::rename(func, &cfg, &found, &slots);
    for derived in found.derived.iter().rev() {
        if !found.objects[derived.object as usize].escaped {
            func.layout.remove_inst(derived.inst);
        }
    }
    for object in found.objects.iter().filter(|object| !object.escaped) {
        func.layout.remove_inst(object.alloca);
    }
    resolve_all_uses(func);
    true
}
