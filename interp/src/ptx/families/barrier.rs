//! Barriers of blocks, warps and clusters (PTX ISA 9.7.15.1 to 9.7.15.3), and what waits for nothing here.

use crate::machine::{Arrival, Flow, Lanes, Stop, lanes};
use crate::ptx::instruction::Instruction;
use crate::ptx::operand::{Operand, Slot};
use crate::ptx::program::Operation;
use crate::ptx::types::Type;

use super::warp::together;

/// Decodes the family.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    if matches!(i.head(), "griddepcontrol" | "setmaxnreg") {
        return Ok(Some(Operation::compute(|_| {})));
    }
    if i.has("warp") {
        let mask = i.source(0, Type::bits_of(32))?;
        return Ok(Some(together(mask, |_| Ok(()))));
    }
    // `bar` is `barrier.aligned`.
    let aligned = i.head() == "bar" || i.has("aligned");
    if i.has("cluster") {
        return Ok(Some(if i.has("arrive") { arrive_in_cluster() } else { wait_for_cluster() }));
    }
    block(i, aligned).map(Some)
}

fn block(i: &mut Instruction<'_>, aligned: bool) -> Result<Operation, String> {
    let word = Type::bits_of(32);
    let reduces = i.has("red");
    let (waits, first) = (!i.has("arrive"), usize::from(reduces));
    let number = i.source(first, word)?;
    let given = i.operands.len() - first - usize::from(reduces);
    let count = if given > 1 { Some(i.source(first + 1, word)?) } else { None };
    let vote = if reduces { Some(i.predicate(i.operands.len() - 1)?) } else { None };
    let mut operation = Operation::new(move |at| {
        if aligned && at.mask != at.who.live {
            return Ok(Flow::Meet);
        }
        let number = u8::try_from(at.uniform(number, "the number of the barrier")?).ok().filter(|n| *n < 16);
        let number = number.ok_or_else(|| Stop::new("the number of the barrier is not below 16"))?;
        let count = count.map(|slot| at.uniform(slot, "the count of the barrier")).transpose()?;
        let votes = vote.map_or(0, |(slot, flip)| at.holds(slot, flip));
        at.world.team.arrive(number, count.map(|c| c as u32), at.mask, votes)?;
        Ok(if waits { Flow::Barrier(number) } else { Flow::Next })
    });
    if let (true, Some(Operand::Register(d))) = (reduces, i.operands.first()) {
        let d = d.slot;
        let kind = ["popc", "and", "or"].into_iter().find(|k| i.has(k)).unwrap_or("or");
        operation.pass = Some(Box::new(move |slots, mask, arrival| pass(slots, d, kind, mask, arrival)));
    }
    Ok(operation)
}

fn pass(slots: &mut [Lanes], d: Slot, kind: &str, mask: u32, arrival: Arrival) {
    let result = match kind {
        "popc" => arrival.votes.into(),
        "and" => u64::from(arrival.votes == arrival.count),
        _ => u64::from(arrival.votes != 0),
    };
    if let Some(to) = slots.get_mut(d as usize) {
        lanes(mask).for_each(|lane| to[lane] = result);
    }
}

fn arrive_in_cluster() -> Operation {
    Operation::then(|at| {
        if at.who.cluster_arrived & at.mask != 0 {
            return Err(Stop::new("a thread arrives twice at the barrier of the cluster before it waits"));
        }
        at.who.cluster_arrived |= at.mask;
        at.world.team.cluster_changed = true;
        Ok(())
    })
}

fn wait_for_cluster() -> Operation {
    Operation::new(|at| {
        // Lanes whose arrival is still noted are those that others have not joined yet.
        Ok(if at.who.cluster_arrived & at.mask == 0 { Flow::Next } else { Flow::Cluster })
    })
}
