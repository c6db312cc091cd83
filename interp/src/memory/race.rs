//! Which accesses of different threads nothing orders.
//!
//! Every four bytes remember their last writer and two readers: thread, place, and the number of the last barrier the
//! thread had passed. An access is ordered after a remembered one of the same block when its thread has passed a
//! later barrier since, or when both are of one warp and that warp has met since. What fences and acquiring atomics
//! order is not followed: a thread that has executed one is taken to be ordered after everything. So no reported race
//! is false, but some are not seen.

use super::Fault;

/// Bytes that one cell watches.
pub const GRANULE: u64 = 4;

/// The number of what writes and is no thread: an asynchronous operation.
pub const NO_THREAD: u32 = u32::MAX;

/// All bytes of a granule.
pub const WHOLE: u8 = (1 << GRANULE) - 1;

/// Plain or atomic. Atomic accesses do not race with each other; volatile ones count as atomic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Plain.
    Plain,
    /// Atomic or volatile.
    Atomic,
}

/// Who accesses, when, and from where.
#[derive(Clone, Copy, Default, Debug)]
pub struct Accessor {
    /// Slot of the thread block.
    pub slot: usize,
    /// Number of the thread block in the grid.
    pub block: u32,
    /// Number of the thread in its block.
    pub thread: u32,
    /// Number of the last barrier of the block that the thread passed.
    pub epoch: u32,
    /// How often the thread's warp has met.
    pub warp_epoch: u32,
    /// The thread has executed a fence or an acquiring atomic.
    pub synchronized: bool,
    /// Number of the place in the program.
    pub place: u32,
}

#[derive(Clone, Copy, Default, Debug)]
struct Stamp {
    block: u32,
    thread: u32,
    epoch: u32,
    warp_epoch: u32,
    place: u32,
    /// Bytes of the granule; 0 when there was no access.
    mask: u8,
    atomic: bool,
}

impl Stamp {
    fn new(mask: u8, who: &Accessor, kind: Kind) -> Stamp {
        let Accessor { block, thread, epoch, warp_epoch, place, .. } = *who;
        Stamp { block, thread, epoch, warp_epoch, place, mask, atomic: kind == Kind::Atomic }
    }

    #[inline]
    fn conflicts(&self, mask: u8, who: &Accessor, kind: Kind) -> bool {
        if self.mask & mask == 0 || who.synchronized || (self.atomic && kind == Kind::Atomic) {
            return false;
        }
        if self.block != who.block {
            return true;
        }
        let met = self.thread / 32 == who.thread / 32 && who.warp_epoch > self.warp_epoch;
        self.thread != who.thread && who.epoch <= self.epoch && !met
    }

    fn fault(&self, other_writes: bool) -> Fault {
        Fault::Race { other: self.place, thread: (self.block, self.thread), other_writes }
    }
}

/// The accesses to one granule.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cell {
    writer: Stamp,
    readers: [Stamp; 2],
}

impl Cell {
    /// Notes a read.
    #[inline]
    pub fn read(&mut self, mask: u8, who: &Accessor, kind: Kind) -> Result<(), Fault> {
        if self.writer.conflicts(mask, who, kind) {
            return Err(self.writer.fault(true));
        }
        let [first, second] = &mut self.readers;
        let stale =
            first.mask == 0 || (first.block, first.thread) == (who.block, who.thread) || first.epoch < who.epoch;
        *(if stale { first } else { second }) = Stamp::new(mask, who, kind);
        Ok(())
    }

    /// Notes a write; one that changes nothing does not race with other writes.
    pub fn write(&mut self, mask: u8, who: &Accessor, kind: Kind, same: bool) -> Result<(), Fault> {
        if !same && self.writer.conflicts(mask, who, kind) {
            return Err(self.writer.fault(true));
        }
        if let Some(reader) = self.readers.iter().find(|r| r.conflicts(mask, who, kind))
            && !same
        {
            return Err(reader.fault(false));
        }
        self.wrote(mask, who, kind);
        Ok(())
    }

    /// Whether a write that changes something races.
    #[inline]
    pub fn forbids_write(&self, mask: u8, who: &Accessor, kind: Kind) -> bool {
        [&self.writer, &self.readers[0], &self.readers[1]].into_iter().any(|stamp| stamp.conflicts(mask, who, kind))
    }

    /// Notes a write that does not race.
    #[inline]
    pub fn wrote(&mut self, mask: u8, who: &Accessor, kind: Kind) {
        self.writer = Stamp::new(mask, who, kind);
    }

    /// Notes a write that is ordered after all before it.
    pub fn replace(&mut self, mask: u8, who: &Accessor) {
        self.writer = Stamp::new(mask, who, Kind::Plain);
    }
}
