//! What the warps of a thread block share: its barriers (PTX ISA 9.7.15.1).

use super::{LANES, Stop};

/// A barrier of a thread block.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Barrier {
    arrived: u32,
    expected: Option<u32>,
    votes: u32,
}

/// A complete barrier.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Which.
    pub number: u8,
    /// Threads that arrived.
    pub count: u32,
    /// Threads whose predicate holds.
    pub votes: u32,
}

/// What the warps of a thread block share.
#[derive(Clone, Default, Debug)]
pub struct Team {
    /// Slot.
    pub slot: usize,
    /// Number in the grid.
    pub number: u32,
    /// Position in the grid.
    pub id: [u32; 3],
    /// Rank in the cluster.
    pub rank: u32,
    /// Threads that have not exited.
    pub live: u32,
    /// A barrier may be complete.
    pub changed: bool,
    /// The barrier of the cluster may be complete.
    pub cluster_changed: bool,
    pub(super) barriers: [Barrier; 16],
    /// Barriers completed.
    pub epoch: u32,
}

impl Team {
    /// Threads arrive at a barrier.
    ///
    /// # Errors
    /// Threads do not agree on the count, or it is no multiple of the warp's size.
    pub fn arrive(&mut self, number: u8, count: Option<u32>, mask: u32, votes: u32) -> Result<(), Stop> {
        let Some(barrier) = self.barriers.get_mut(usize::from(number)) else { return Ok(()) };
        if barrier.arrived > 0 && barrier.expected != count {
            return Err(Stop::new(format!("threads at barrier {number} give different counts")));
        }
        if let Some(count) = count
            && (count == 0 || count % LANES as u32 != 0)
        {
            return Err(Stop::new(format!("the count {count} of barrier {number} is no multiple of the warp's size")));
        }
        barrier.expected = count;
        barrier.arrived += mask.count_ones();
        barrier.votes += votes.count_ones();
        self.changed = true;
        Ok(())
    }

    /// Threads exit: nobody waits for them any more.
    pub fn exit(&mut self, mask: u32) {
        self.live -= mask.count_ones();
        self.changed = true;
        self.cluster_changed = true;
    }

    /// A barrier at which all have arrived, which is then new.
    pub(super) fn complete(&mut self) -> Option<Arrival> {
        let live = self.live;
        let full = |b: &Barrier| b.arrived > 0 && b.arrived >= b.expected.unwrap_or(live);
        let number = self.barriers.iter().position(full)?;
        let barrier = std::mem::take(&mut self.barriers[number]);
        self.epoch += 1;
        Some(Arrival { number: number as u8, count: barrier.arrived, votes: barrier.votes })
    }
}
