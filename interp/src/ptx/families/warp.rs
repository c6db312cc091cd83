//! What the threads of a warp do together (PTX ISA 9.7.10.6, 9.7.15.2, 9.7.15.10 to 9.7.15.15).

use ptxc_ir::FloatKind;

use crate::float;
use crate::machine::{LANES, Lanes, Stop, lanes};
use crate::ptx::At;
use crate::ptx::instruction::Instruction;
use crate::ptx::operand::Slot;
use crate::ptx::program::{Flow, Operation};
use crate::ptx::types::{Class, Type, low_bits, sign_extend};

/// Which lanes execute a step together: those that the lanes' masks name; `None` when some have not come yet.
///
/// # Errors
/// A mask does not name its own thread, or masks differ.
pub fn party(at: &At<'_, '_>, membermask: Slot) -> Result<Option<u32>, Stop> {
    let masks = at.get(membermask);
    let Some(first) = at.lanes().next() else { return Ok(None) };
    let named = masks[first] as u32;
    if named >> first & 1 == 0 {
        return Err(Stop::lane(format!("the mask {named:#x} does not name the thread itself"), first));
    }
    // Threads that have exited, or never were, are not waited for.
    let named = named & at.who.live;
    if named & !at.mask != 0 {
        return Ok(None);
    }
    match lanes(named).find(|lane| masks[*lane] as u32 & at.who.live != named) {
        Some(lane) => Err(Stop::lane("the threads of the mask give different masks", lane)),
        None => Ok(Some(named)),
    }
}

/// An operation that the lanes of a mask execute together.
pub fn together(
    membermask: Slot,
    execute: impl Fn(&mut At<'_, '_>) -> Result<(), Stop> + Send + Sync + 'static,
) -> Operation {
    Operation::new(move |at| {
        let Some(party) = party(at, membermask)? else { return Ok(Flow::Meet) };
        let all = at.mask;
        at.who.meet(party);
        at.mask = party;
        let result = execute(at);
        at.mask = all;
        result.map(|()| if party == all { Flow::Next } else { Flow::Executed(party) })
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
    let mode = i.any(&["up", "down", "bfly", "idx"]).ok_or_else(|| "no mode is named".to_string())?;
    let mode = ["up", "down", "bfly", "idx"].into_iter().find(|m| *m == mode).unwrap_or("idx");
    Ok(together(mask, move |at| {
        let (values, numbers, clamps) = (*at.get(a), *at.get(b), *at.get(c));
        for lane in at.lanes() {
            let (number, clamp) = (numbers[lane] as u32 & 31, clamps[lane] as u32 & 31);
            let segment = clamps[lane] as u32 >> 8 & 31;
            let me = lane as u32;
            let last = (me & segment) | (clamp & !segment);
            let (source, valid) = match mode {
                "up" => (me.wrapping_sub(number), me as i32 - number as i32 >= last as i32),
                "down" => (me + number, me + number <= last),
                "bfly" => (me ^ number, me ^ number <= last),
                _ => {
                    let source = (me & segment) | (number & !segment);
                    (source, source <= last)
                }
            };
            let source = if valid { source as usize & 31 } else { lane };
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
    let mode = ["all", "any", "uni", "ballot"].into_iter().find(|m| i.has(m));
    let mode = mode.ok_or_else(|| "no mode is named".to_string())?;
    Ok(together(mask, move |at| {
        let votes = at.holds(p, flip);
        let result = match mode {
            "all" => u32::from(votes == at.mask),
            "any" => u32::from(votes != 0),
            "uni" => u32::from(votes == 0 || votes == at.mask),
            _ => votes,
        };
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
