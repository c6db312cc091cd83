//! Instructions that the threads of a warp execute together, and special registers.

use ptxc_ir::{FloatKind, Opcode, Shape};

use super::access::all_lanes;
use super::compute::At;
use super::program::{LANES, More};
use crate::float;
use crate::machine::{Flow, Identity, Shuffle, Stop, Vote, World, lanes, odd, party};

/// Executes a step of the lanes that meet at it.
pub fn execute(at: &mut At<'_>, who: &mut Identity) -> Result<Flow, Stop> {
    let all = at.mask;
    if at.step.op == Opcode::ActiveMask {
        let out = at.result(0)?;
        at.frame.set(out.slot, &[all.into(); LANES], 0, all);
        return Ok(Flow::Next);
    }
    let party = match at.step.args.last() {
        Some(last) => party(&all_lanes(at, *last, "the mask")?, all, who.live)?,
        None => Some(all),
    };
    let Some(party) = party else { return Ok(Flow::Meet) };
    let mut at = At { step: at.step, code: at.code, frame: at.frame, mask: party };
    who.meet(party);
    match at.step.op.shape() {
        Shape::WarpMask => {}
        Shape::Shuffle4 => shuffle(&mut at)?,
        Shape::Vote | Shape::Ballot => vote(&mut at)?,
        Shape::MatchAny | Shape::MatchAll => matching(&mut at)?,
        Shape::Redux => redux(&mut at)?,
        Shape::Elect => {
            let leader = party.trailing_zeros();
            for lane in lanes(party) {
                at.frame.write(at.result(0)?, 0, lane, Some(leader.into()));
                at.frame.write(at.result(1)?, 0, lane, Some((lane as u32 == leader).into()));
            }
        }
        _ => return Err(Stop::new("this instruction is not interpreted")),
    }
    Ok(Flow::together(party, all))
}

/// PTX ISA 9.7.9.6. A lane outside the party gives poison.
fn shuffle(at: &mut At<'_>) -> Result<(), Stop> {
    let (value, out) = (at.arg(0)?, at.result(0)?);
    let numbers = all_lanes(at, at.arg(1)?, "the lane")?;
    let clamps = all_lanes(at, at.arg(2)?, "the clamp")?;
    let mode = match at.step.op {
        Opcode::ShflUp => Shuffle::Up,
        Opcode::ShflDown => Shuffle::Down,
        Opcode::ShflBfly => Shuffle::Butterfly,
        _ => Shuffle::Index,
    };
    let mut sources = [0usize; LANES];
    let mut inside = 0u32;
    for lane in lanes(at.mask) {
        let (source, valid) = mode.source(lane, numbers[lane] as u32, clamps[lane] as u32);
        sources[lane] = source;
        inside |= u32::from(valid) << lane;
    }
    let slots = value.slots();
    for i in 0..slots {
        let (values, poison) = at.frame.slot(at.code, value.slot + i);
        let mut result = [0; LANES];
        let mut bad = 0;
        for lane in lanes(at.mask) {
            let source = sources[lane];
            result[lane] = values[source];
            if poison >> source & 1 != 0 || at.mask >> source & 1 == 0 {
                bad |= 1 << lane;
            }
        }
        at.frame.set(out.slot + i, &result, bad, at.mask);
    }
    if let Some(predicate) = at.step.results.get(1) {
        let values = std::array::from_fn(|lane| u64::from(inside >> lane & 1));
        at.frame.set(predicate.slot, &values, 0, at.mask);
    }
    Ok(())
}

fn vote(at: &mut At<'_>) -> Result<(), Stop> {
    let predicates = all_lanes(at, at.arg(0)?, "the predicate")?;
    let mode = match at.step.op {
        Opcode::VoteAll => Vote::All,
        Opcode::VoteAny => Vote::Any,
        Opcode::VoteUni => Vote::Uniform,
        _ => Vote::Ballot,
    };
    let result = mode.result(odd(&predicates) & at.mask, at.mask);
    let out = at.result(0)?;
    at.frame.set(out.slot, &[result.into(); LANES], 0, at.mask);
    Ok(())
}

fn matching(at: &mut At<'_>) -> Result<(), Stop> {
    let (value, out) = (at.arg(0)?, at.result(0)?);
    let mut keys: Vec<(usize, Vec<u128>)> = Vec::new();
    for lane in lanes(at.mask) {
        let key: Option<Vec<u128>> = (0..value.elements()).map(|e| at.read(value, e, lane)).collect();
        keys.push((lane, key.ok_or_else(|| Stop::lane("the value is poison", lane))?));
    }
    let equal = |key: &[u128]| keys.iter().filter(|(_, k)| k == key).fold(0u32, |m, (lane, _)| m | 1 << lane);
    for (lane, key) in &keys {
        let mask = equal(key);
        if at.step.op == Opcode::MatchAny {
            at.frame.write(out, 0, *lane, Some(mask.into()));
            continue;
        }
        let all = mask == at.mask;
        at.frame.write(out, 0, *lane, Some(if all { mask.into() } else { 0 }));
        if let Some(predicate) = at.step.results.get(1) {
            at.frame.write(*predicate, 0, *lane, Some(all.into()));
        }
    }
    Ok(())
}

fn redux(at: &mut At<'_>) -> Result<(), Stop> {
    let values = all_lanes(at, at.arg(0)?, "the value")?;
    let words = lanes(at.mask).map(|lane| values[lane] as u32);
    let signed = words.clone().map(|x| x as i32);
    let float = |two: fn(FloatKind, u64, u64, bool) -> u64| {
        words.clone().map(u64::from).reduce(|x, y| two(FloatKind::F32, x, y, false)).unwrap_or(0) as u32
    };
    let result = match at.step.op {
        Opcode::ReduxFmin => float(float::min),
        Opcode::ReduxFmax => float(float::max),
        Opcode::ReduxFminimum => float(float::minimum),
        Opcode::ReduxFmaximum => float(float::maximum),
        Opcode::ReduxAdd => words.fold(0, u32::wrapping_add),
        Opcode::ReduxSmin => signed.min().unwrap_or(0) as u32,
        Opcode::ReduxSmax => signed.max().unwrap_or(0) as u32,
        Opcode::ReduxUmin => words.min().unwrap_or(0),
        Opcode::ReduxUmax => words.max().unwrap_or(0),
        Opcode::ReduxAnd => words.fold(u32::MAX, |x, y| x & y),
        Opcode::ReduxOr => words.fold(0, |x, y| x | y),
        _ => words.fold(0, |x, y| x ^ y),
    };
    let out = at.result(0)?;
    at.frame.set(out.slot, &[result.into(); LANES], 0, at.mask);
    Ok(())
}

/// `sreg`.
pub fn special(at: &mut At<'_>, world: &World<'_>, who: &Identity) -> Result<(), Stop> {
    let More::Sreg(register) = at.step.more else { return Err(Stop::new("no register is named")) };
    let out = at.result(0)?;
    if out.ty.is_vector() {
        return Err(Stop::new(format!("the special register {register} is not interpreted as a vector")));
    }
    let values = crate::machine::special(register, world, who).map_err(Stop::new)?;
    at.frame.set(out.slot, &values, 0, at.mask);
    Ok(())
}
