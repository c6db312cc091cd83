//! What the threads of a warp do together (PTX ISA 9.7.10.6, 9.7.15.2, 9.7.15.10 to 9.7.15.15).

use ptxc_ir::FloatKind;

use crate::float;
use crate::machine::{Flow, LANES, Lanes, Shuffle, Stop, Vote, party};
use crate::ptx::At;
use crate::ptx::instruction::Instruction;
use crate::ptx::operand::Slot;
use crate::ptx::program::Operation;
use crate::ptx::types::{Class, Type, low_bits, sign_extend};

/// An operation that the lanes of a mask execute together.
pub fn together(
    membermask: Slot,
    execute: impl Fn(&mut At<'_, '_>) -> Result<(), Stop> + Send + Sync + 'static,
) -> Operation {
    Operation::new(move |at| {
        let Some(party) = party(at.get(membermask), at.mask, at.who.live)? else { return Ok(Flow::Meet) };
        let all = at.mask;
        at.who.meet(party);
        at.mask = party;
        let result = execute(at);
        at.mask = all;
        result.map(|()| Flow::together(party, all))
    })
}

/// Decodes the family.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    let last = i.operands.len().saturating_sub(1);
    let word = Type::bits_of(32);
    Ok(Some(match i.head() {
        "activemask" => {
            let d = i.dest(0)?.slot;
            Operation::compute(move |at| {
                let mask = at.mask.into();
                at.set(d, &[mask; LANES]);
            })
        }
        "shfl" => {
            let mask = i.source(last, word)?;
            shuffle(i, mask)?
        }
        "vote" => {
            let mask = i.source(last, word)?;
            vote(i, mask)?
        }
        "match" => {
            let mask = i.source(last, word)?;
            matching(i, mask)?
        }
        "redux" => {
            let mask = i.source(last, word)?;
            redux(i, mask)?
        }
        "elect" => {
            let mask = i.source(last, word)?;
            let [d, p] = i.dest_pair(0)?;
            together(mask, move |at| {
                let leader = at.mask.trailing_zeros();
                for lane in at.lanes() {
                    if let Some(d) = d {
                        at.put(d.slot, lane, leader.into());
                    }
                    if let Some(p) = p {
                        at.put(p.slot, lane, u64::from(lane as u32 == leader));
                    }
                }
                Ok(())
            })
        }
        _ => return Ok(None),
    }))
}

fn shuffle(i: &mut Instruction<'_>, mask: Slot) -> Result<Operation, String> {
    let word = Type::bits_of(32);
    let [d, p] = i.dest_pair(0)?;
    let (a, b, c) = (i.source(1, word)?, i.source(2, word)?, i.source(3, word)?);
    let mode = match i.any(&["up", "down", "bfly", "idx"]).ok_or_else(|| "no mode is named".to_string())? {
        "up" => Shuffle::Up,
        "down" => Shuffle::Down,
        "bfly" => Shuffle::Butterfly,
        _ => Shuffle::Index,
    };
    Ok(together(mask, move |at| {
        let (values, numbers, clamps) = (*at.get(a), *at.get(b), *at.get(c));
        for lane in at.lanes() {
            let (source, valid) = mode.source(lane, numbers[lane] as u32, clamps[lane] as u32);
            if let Some(d) = d {
                // What a lane outside the party gives is undefined.
                let value = if at.mask >> source & 1 != 0 { values[source] } else { !values[lane] };
                at.put(d.slot, lane, value & low_bits(32));
            }
            if let Some(p) = p {
                at.put(p.slot, lane, valid.into());
            }
        }
        Ok(())
    }))
}

fn vote(i: &mut Instruction<'_>, mask: Slot) -> Result<Operation, String> {
    let d = i.dest(0)?.slot;
    let (p, flip) = i.predicate(1)?;
    let mode = match i.any(&["all", "any", "uni", "ballot"]).ok_or_else(|| "no mode is named".to_string())? {
        "all" => Vote::All,
        "any" => Vote::Any,
        "uni" => Vote::Uniform,
        _ => Vote::Ballot,
    };
    Ok(together(mask, move |at| {
        let result = mode.result(at.holds(p, flip), at.mask);
        at.set(d, &[result.into(); LANES]);
        Ok(())
    }))
}

fn matching(i: &mut Instruction<'_>, mask: Slot) -> Result<Operation, String> {
    let ty = i.ty()?;
    let [d, p] = i.dest_pair(0)?;
    let a = i.source(1, ty)?;
    let any = i.has("any");
    Ok(together(mask, move |at| {
        let values: Lanes = *at.get(a);
        for lane in at.lanes() {
            let equal = at.lanes().filter(|other| values[*other] == values[lane]).fold(0u32, |m, other| m | 1 << other);
            let all = equal == at.mask;
            if let Some(d) = d {
                at.put(d.slot, lane, if any || all { equal.into() } else { 0 });
            }
            if let Some(p) = p {
                at.put(p.slot, lane, all.into());
            }
        }
        Ok(())
    }))
}

fn redux(i: &mut Instruction<'_>, mask: Slot) -> Result<Operation, String> {
    let ty = i.ty()?;
    let d = i.dest(0)?.slot;
    let a = i.source(1, ty)?;
    let operation = ["add", "min", "max", "and", "or", "xor"].into_iter().find(|o| i.has(o));
    let operation = operation.ok_or_else(|| "no operation is named".to_string())?;
    let (magnitudes, nan) = (i.has("abs"), i.has("NaN"));
    let two = move |x: u64, y: u64| -> u64 {
        match (operation, ty.class) {
            ("add", _) => x.wrapping_add(y) & low_bits(32),
            ("and", _) => x & y,
            ("or", _) => x | y,
            ("xor", _) => x ^ y,
            ("min", Class::Float(kind)) if nan => float::minimum(kind, x, y, false),
            ("min", Class::Float(kind)) => float::min(kind, x, y, false),
            (_, Class::Float(kind)) if nan => float::maximum(kind, x, y, false),
            (_, Class::Float(kind)) => float::max(kind, x, y, false),
            (_, Class::Signed) => {
                let less = sign_extend(x, 32) < sign_extend(y, 32);
                if less == (operation == "min") { x } else { y }
            }
            ("min", _) => x.min(y),
            _ => x.max(y),
        }
    };
    Ok(together(mask, move |at| {
        let values: Lanes = *at.get(a);
        let one = |lane: usize| if magnitudes { float::abs(FloatKind::F32, values[lane], false) } else { values[lane] };
        let result = at.lanes().map(one).reduce(two).unwrap_or(0);
        at.set(d, &[result; LANES]);
        Ok(())
    }))
}
