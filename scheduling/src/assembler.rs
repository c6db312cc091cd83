//! What the assembler does by itself to the order it is given.
//!
//! `ptxas` orders the instructions between two points that it moves nothing past. Where all that waits stands between the
//! same two points, an order of ours changes nothing in the machine code but which registers are chosen, and that for the
//! worse as often as for the better.

use crate::facts::FunctionFacts;
use crate::machine::Machine;
use crate::timeline::Slot;
use ptxc_mir::Function;
use ptxc_targets::timing::Unit;

/// From so many issue slots an instruction is a sequence with branches of its own: division, roots.
const EXPANSION: u16 = 24;

/// From so many cycles of latency it matters where an instruction stands that does not load.
const LONG: u16 = 24;

/// Percent of a block's cycles from which a busy unit counts as full: other warps take what is left.
const FULL: u64 = 85;

/// The same of what all warps ask of the unit that multiplies matrices. More than all of it, because warps that meet at
/// barriers ask at the same time.
const FULL_OF_PRODUCTS: u64 = 120;

/// Whether the assembler comes to as good an order from the one that a block has: nothing of long latency comes behind what
/// it moves nothing past, no load behind a store, whose addresses it does not know apart, and no fence behind a load.
pub fn orders_as_well(func: &Function, facts: &FunctionFacts<'_>, machine: &Machine, slots: &[Slot]) -> bool {
    let (mut ordered, mut expanded, mut stored, mut waited) = (false, false, false, false);
    for slot in slots {
        let timing = slot.timing;
        if timing.class.is_asynchronous() || machine.is_product(timing) {
            return false;
        }
        let facts = facts.of(func, slot.inst);
        let orders = facts.boundary || !facts.writes.is_empty();
        let expands = timing.issue >= EXPANSION;
        let loads = facts.accesses.iter().any(|access| !access.write);
        let waits = loads || timing.latency >= LONG;
        let moves_up = if orders { waited } else { ordered || expanded && !expands || stored && loads };
        if waits && moves_up {
            return false;
        }
        ordered |= orders;
        expanded |= expands;
        stored |= facts.accesses.iter().any(|access| access.write);
        waited |= waits;
    }
    true
}

/// Whether a unit is busy nearly all of the time that a block takes, or asked for by `warps` warps for more than it.
pub fn is_full(machine: &Machine, slots: &[Slot], cycles: u32, warps: u32) -> bool {
    let (mut busy, mut products) = ([0u64; Unit::COUNT], 0);
    for slot in slots {
        busy[slot.timing.unit.index()] += u64::from(slot.timing.interval);
        products += if machine.is_product(slot.timing) { u64::from(slot.timing.interval) } else { 0 };
    }
    busy.iter().any(|busy| busy * 100 >= u64::from(cycles) * FULL)
        || products * u64::from(warps) * 100 >= u64::from(cycles) * FULL_OF_PRODUCTS
}
