//! What the lanes of a warp do together (PTX ISA 9.7.9.6, 9.7.15.2).

use super::{LANES, Lanes, Stop, lanes};

/// Which lanes of `mask` execute a step together: those that the lanes' `masks` name, of all that are `live`; `None` when
/// some of them have not come yet.
///
/// # Errors
/// A mask does not name its own thread, or masks differ.
pub fn party(masks: &Lanes, mask: u32, live: u32) -> Result<Option<u32>, Stop> {
    let Some(first) = lanes(mask).next() else { return Ok(None) };
    let named = masks[first] as u32;
    if named >> first & 1 == 0 {
        return Err(Stop::lane(format!("the mask {named:#x} does not name the thread itself"), first));
    }
    // Threads that have exited, or never were, are not waited for.
    let named = named & live;
    if named & !mask != 0 {
        return Ok(None);
    }
    match lanes(named).find(|lane| masks[*lane] as u32 & live != named) {
        Some(lane) => Err(Stop::lane("the threads of the mask give different masks", lane)),
        None => Ok(Some(named)),
    }
}

/// The value that all lanes of a mask agree on.
///
/// # Errors
/// They do not.
pub fn uniform(values: &Lanes, mask: u32, what: &str) -> Result<u64, Stop> {
    let first = lanes(mask).next().map_or(0, |lane| values[lane]);
    match lanes(mask).find(|lane| values[*lane] != first) {
        Some(lane) => Err(Stop::lane(format!("{what} is not the same for all threads of the warp"), lane)),
        None => Ok(first),
    }
}

/// How `shfl` finds the lane that a lane reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shuffle {
    /// `.up`
    Up,
    /// `.down`
    Down,
    /// `.bfly`
    Butterfly,
    /// `.idx`
    Index,
}

impl Shuffle {
    /// The lane that `lane` reads with these operands, itself when the one asked for is out of its segment; and whether
    /// it is not.
    pub fn source(self, lane: usize, number: u32, clamp: u32) -> (usize, bool) {
        let (number, segment, clamp) = (number & 31, clamp >> 8 & 31, clamp & 31);
        let me = lane as u32;
        let last = (me & segment) | (clamp & !segment);
        let (source, valid) = match self {
            Shuffle::Up => (me.wrapping_sub(number), me as i32 - number as i32 >= last as i32),
            Shuffle::Down => (me + number, me + number <= last),
            Shuffle::Butterfly => (me ^ number, me ^ number <= last),
            Shuffle::Index => {
                let source = (me & segment) | (number & !segment);
                (source, source <= last)
            }
        };
        (if valid { source as usize % LANES } else { lane }, valid)
    }
}

/// What a vote asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vote {
    /// `.all`
    All,
    /// `.any`
    Any,
    /// `.uni`
    Uniform,
    /// `.ballot`
    Ballot,
}

impl Vote {
    /// What every lane of a party gets when these of it are for it.
    pub fn result(self, votes: u32, party: u32) -> u32 {
        match self {
            Vote::All => u32::from(votes == party),
            Vote::Any => u32::from(votes != 0),
            Vote::Uniform => u32::from(votes == 0 || votes == party),
            Vote::Ballot => votes,
        }
    }
}
