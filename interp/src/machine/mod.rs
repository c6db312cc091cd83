//! What executes programs of any language: grids of thread blocks in turns, warps of lanes that part and meet, barriers.
//!
//! An [`Engine`] knows one language: what a step does to the values of lanes, how they cross a call. All else is the same
//! for all. [`grid::run`] starts clusters as there is room, gives every warp its turn, and completes barriers. A [`Warp`]
//! runs [`Groups`] of lanes that are at different positions; a `Frame` holds the values of a call for all lanes that make it.

pub mod buffers;
mod engine;
mod flow;
mod frames;
mod functions;
pub mod grid;
mod groups;
mod special;
mod team;
mod together;
pub mod variables;
mod warp;

use crate::asynchronous::{Asynchronous, Trouble};
use crate::launch::{Launch, Options, Outcome};
use crate::memory::{Accessor, Fault, Kind, Memory, Wave};
use ptxc_ir::Space;

pub use engine::{Crossing, Engine, odd, write};
pub use flow::Flow;
pub use frames::{Frame, Frames, Link};
pub use functions::{call_through, function_address};
pub use groups::{Group, Groups, State};
pub use special::special;
pub use team::{Arrival, Team};
pub use together::{Shuffle, Vote, party, uniform};
pub use warp::Warp;

/// Lanes of a warp.
pub const LANES: usize = 32;
/// One value of each lane.
pub type Lanes = [u64; LANES];
/// Most calls within each other.
pub const MAX_DEPTH: u32 = 1024;

/// Lanes of a mask.
pub fn lanes(mask: u32) -> impl Iterator<Item = usize> + Clone {
    let mut left = mask;
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}

/// Why a warp cannot go on.
#[derive(Clone, Debug)]
pub struct Stop {
    /// What is wrong.
    pub message: String,
    /// The lane it is about.
    pub lane: Option<usize>,
    /// Place of the other access of a race, or of an asynchronous operation.
    pub other: Option<u32>,
}

impl Stop {
    /// About the warp.
    pub fn new(message: impl Into<String>) -> Stop {
        Stop { message: message.into(), lane: None, other: None }
    }

    /// About one lane.
    pub fn lane(message: impl Into<String>, lane: usize) -> Stop {
        Stop { lane: Some(lane), ..Stop::new(message) }
    }

    /// An access of a lane that is wrong.
    pub fn fault(fault: Fault, lane: usize) -> Stop {
        Stop::trouble(fault.into(), lane)
    }

    /// An asynchronous operation of a lane that is wrong.
    pub fn trouble(trouble: Trouble, lane: usize) -> Stop {
        Stop { other: trouble.other, ..Stop::lane(trouble.message, lane) }
    }
}

/// Who the lanes of a warp are.
#[derive(Clone, Default, Debug)]
pub struct Identity {
    /// Number of lane 0 in the block.
    pub first_thread: u32,
    /// Lanes that have not exited.
    pub live: u32,
    /// Last barrier passed.
    pub epoch: u32,
    /// How often lanes have met.
    pub warp_epoch: u32,
    /// Lanes that have executed a fence or an acquiring access.
    pub synchronized: u32,
    /// The carry of each lane.
    pub carry: u32,
    /// Lanes whose carry is poison; in the IR alone.
    pub carry_poison: u32,
    /// Lanes that have arrived at the barrier of the cluster, which is not complete (PTX ISA 9.7.15.3).
    pub cluster_arrived: u32,
    /// Place of the current instruction.
    pub place: u32,
}

impl Identity {
    /// Lanes meet: what one of them has synchronized with, all have.
    pub fn meet(&mut self, party: u32) {
        self.warp_epoch += 1;
        if self.synchronized & party != 0 {
            self.synchronized |= party;
        }
    }

    /// An access of some lanes as memory sees it: of `size` bytes at the sums of their addresses and an offset.
    #[inline]
    pub fn wave<'a>(
        &self,
        team: &Team,
        (space, addresses, offset): (Space, &'a Lanes, i64),
        mask: u32,
        (size, align): (u32, u64),
        kind: Kind,
    ) -> Wave<'a> {
        let who = self.accessor(team, 0);
        let synchronized = self.synchronized;
        Wave { space, addresses, offset, mask, size, align, who, synchronized, kind }
    }

    /// A lane as memory sees it.
    #[inline]
    pub fn accessor(&self, team: &Team, lane: usize) -> Accessor {
        Accessor {
            slot: team.slot,
            block: team.number,
            thread: self.first_thread + lane as u32,
            epoch: self.epoch,
            warp_epoch: self.warp_epoch,
            synchronized: self.synchronized >> lane & 1 != 0,
            place: self.place,
        }
    }
}

/// What a warp works on while it runs.
pub struct World<'a> {
    /// Launch.
    pub launch: &'a Launch,
    /// Limits.
    pub options: &'a Options,
    /// Memory.
    pub memory: &'a mut Memory,
    /// Operations in flight and mbarrier objects.
    pub asynchronous: &'a mut Asynchronous,
    /// The warp's thread block.
    pub team: &'a mut Team,
    /// What was done so far.
    pub outcome: &'a mut Outcome,
    /// Places that have been warned of.
    pub warned: &'a mut [bool],
    /// Names a place.
    pub describe: &'a dyn Fn(u32) -> String,
}

impl World<'_> {
    /// Warns once a place.
    pub fn warn(&mut self, place: u32, message: &str) {
        if let Some(warned) = self.warned.get_mut(place as usize)
            && !*warned
        {
            *warned = true;
            let place = (self.describe)(place);
            self.outcome.warnings.push(format!("{message}, at {place}"));
        }
    }
}
