//! mbarrier objects (PTX ISA 9.7.15.16.12 to 9.7.15.16.21).
//!
//! Multicast operations and reports are not executed. `try_wait` does not suspend.

use ptxc_ir::Space;

use super::memory::{Way, addresses};
use crate::asynchronous::{Arrival, Barrier, BarrierPlace, Layout, Phase, Trouble};
use crate::machine::Stop;
use crate::ptx::At;
use crate::ptx::instruction::{Address, Instruction};
use crate::ptx::operand::Slot;
use crate::ptx::program::Operation;
use crate::ptx::types::Type;

/// Decodes `mbarrier` and `cp.async.mbarrier.arrive`.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    Ok(Some(match i.pieces {
        ["cp", "async", "mbarrier", ..] => after_copies(i)?,
        ["cp", ..] => return Ok(None),
        _ if i.has("multicast::cluster::32b") => return Err("multicasts are not known".to_string()),
        ["mbarrier", "init", ..] => initialize(i)?,
        ["mbarrier", "inval", ..] => invalidate(i)?,
        ["mbarrier", "expect_tx" | "complete_tx", ..] => transact(i)?,
        ["mbarrier", "arrive" | "arrive_drop", ..] => arrive(i)?,
        ["mbarrier", "test_wait" | "try_wait", ..] => wait(i)?,
        ["mbarrier", "pending_count", ..] => pending_count(i)?,
        ["mbarrier", "check_layout", ..] => check_layout(i)?,
        _ => return Ok(None),
    }))
}

/// The mbarrier object at an address.
pub fn barrier_place(at: &At<'_, '_>, lane: usize, space: Space, address: u64) -> Result<BarrierPlace, Stop> {
    if !address.is_multiple_of(8) {
        return Err(Stop::lane(format!("the address {address:#x} of an mbarrier object is no multiple of 8"), lane));
    }
    let place = at.world.memory.shared_place(space, address, at.world.team.slot);
    place.ok_or_else(|| Stop::lane(format!("the mbarrier object at {address:#x} is not in shared memory"), lane))
}

/// Where an mbarrier object is said to be.
#[derive(Clone, Copy)]
struct Named {
    address: Address,
    space: Space,
    /// It may be another block's.
    remote: bool,
}

impl Named {
    fn new(i: &mut Instruction<'_>, index: usize, remote: bool) -> Result<Named, String> {
        let address = i.address(index)?;
        Ok(Named { address, space: Way::new(i, &address).space, remote })
    }

    fn place(&self, at: &At<'_, '_>, lane: usize, addresses: &crate::machine::Lanes) -> Result<BarrierPlace, Stop> {
        let place = barrier_place(at, lane, self.space, addresses[lane])?;
        if !self.remote && place.0 != at.world.team.slot {
            return Err(Stop::lane("the mbarrier object is another block's", lane));
        }
        Ok(place)
    }
}

/// An operation of every lane on an mbarrier object.
fn each<F>(named: Named, act: F) -> Operation
where
    F: Fn(&mut At<'_, '_>, usize, BarrierPlace) -> Result<(), Trouble> + Send + Sync + 'static,
{
    Operation::then(move |at| {
        let addresses = addresses(at, &named.address);
        for lane in at.lanes() {
            let place = named.place(at, lane, &addresses)?;
            act(at, lane, place).map_err(|trouble| Stop::trouble(trouble, lane))?;
        }
        Ok(())
    })
}

fn layout(i: &Instruction<'_>) -> Layout {
    if i.has("layout::v1") { Layout::V1 } else { Layout::V0 }
}

fn word(i: &mut Instruction<'_>, index: usize) -> Result<Slot, String> {
    i.source(index, Type::bits_of(32))
}

fn initialize(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let (named, count, layout) = (Named::new(i, 0, false)?, word(i, 1)?, layout(i));
    Ok(each(named, move |at, lane, place| {
        let (who, count) = (at.who.accessor(at.world.team, lane), at.lane(count, lane) as u32);
        at.world.asynchronous.initialize(place, count, layout, at.world.memory, &who)
    }))
}

fn invalidate(i: &mut Instruction<'_>) -> Result<Operation, String> {
    Ok(each(Named::new(i, 0, false)?, |at, lane, place| {
        let who = at.who.accessor(at.world.team, lane);
        at.world.asynchronous.invalidate(place, at.world.memory, &who)
    }))
}

fn transact(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let (named, bytes, complete) = (Named::new(i, 0, true)?, word(i, 1)?, i.has("complete_tx"));
    Ok(each(named, move |at, lane, place| {
        let (who, bytes) = (at.who.accessor(at.world.team, lane), at.lane(bytes, lane) as u32);
        at.world.asynchronous.transact(place, bytes, complete, at.world.memory, &who)
    }))
}

fn after_copies(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let (named, counted) = (Named::new(i, 0, false)?, i.has("noinc"));
    Ok(each(named, move |at, lane, place| {
        let who = at.who.accessor(at.world.team, lane);
        at.world.asynchronous.arrive_after_copies(place, counted, at.world.memory, &who)
    }))
}

fn arrive(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let (state, named) = (i.dest_or_sink(0)?, Named::new(i, 1, true)?);
    let number = if i.operands.len() > 2 { Some(word(i, 2)?) } else { None };
    let (expects, drop, may_complete) = (i.has("expect_tx"), i.has("arrive_drop"), !i.has("noComplete"));
    Ok(each(named, move |at, lane, place| {
        let who = at.who.accessor(at.world.team, lane);
        let number = number.map(|slot| at.lane(slot, lane) as u32);
        let (count, expect) = if expects { (1, number) } else { (number.unwrap_or(1), None) };
        let arrival = Arrival { count, expect, drop, may_complete };
        let before = at.world.asynchronous.arrive(place, arrival, at.world.memory, &who)?;
        if let Some(state) = state {
            at.put(state.slot, lane, before);
        }
        Ok(())
    }))
}

/// `test_wait` and `try_wait`. Lanes that ask the same get the same answer.
fn wait(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let [done, report] = i.dest_pair(0)?;
    // The value of a report stands between the predicates and the address.
    let at = (1..i.operands.len()).find(|index| i.address(*index).is_ok() && i.dest_or_sink(*index).is_err());
    let at = at.ok_or_else(|| "the address is missing".to_string())?;
    let value = if at > 1 { i.dest_or_sink(1)? } else { None };
    let named = Named::new(i, at, false)?;
    let parity = i.has("parity");
    let phase = i.source(at + 1, Type::bits_of(if parity { 32 } else { 64 }))?;
    let acquires = !i.has("relaxed");
    Ok(Operation::then(move |at| {
        let addresses = addresses(at, &named.address);
        let mut known: Vec<((BarrierPlace, u64), bool)> = Vec::new();
        for lane in at.lanes() {
            let place = named.place(at, lane, &addresses)?;
            let bits = at.lane(phase, lane);
            let bits = if parity { bits & 1 } else { bits };
            let found = known.iter().find(|(asked, _)| *asked == (place, bits)).map(|(_, answer)| *answer);
            let answer = match found {
                Some(answer) => answer,
                None => {
                    let who = at.who.accessor(at.world.team, lane);
                    let phase = if parity { Phase::Parity(bits != 0) } else { Phase::State(bits) };
                    let tested = at.world.asynchronous.test(place, phase, at.world.memory, &who);
                    let answer = tested.map_err(|trouble| Stop::trouble(trouble, lane))?;
                    known.push(((place, bits), answer));
                    answer
                }
            };
            if answer && acquires {
                at.who.synchronized |= 1 << lane;
            }
            if let Some(done) = done {
                at.put(done.slot, lane, answer.into());
            }
            // Nothing that is executed reports anything.
            for none in [report, value].into_iter().flatten() {
                at.put(none.slot, lane, 0);
            }
        }
        Ok(())
    }))
}

fn pending_count(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let (count, state) = (i.dest(0)?.slot, i.source(1, Type::bits_of(64))?);
    Ok(Operation::compute(move |at| at.map1(count, state, |state| Barrier::pending_count(state).into())))
}

fn check_layout(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let (is, named, layout) = (i.dest(0)?, Named::new(i, 1, false)?, layout(i));
    Ok(each(named, move |at, lane, place| {
        let answer = at.world.asynchronous.layout(place)? == layout;
        at.put(is.slot, lane, answer.into());
        Ok(())
    }))
}
