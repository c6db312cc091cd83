//! The mbarrier object as a state machine (PTX ISA 9.7.15.16).
//!
//! It knows nothing of memory, threads or asynchronous operations: it counts.

use std::fmt;

/// Most transactions that may be outstanding, in either direction.
const MOST_TRANSACTIONS: i64 = (1 << 20) - 1;

/// A use of an mbarrier object that is undefined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misuse {
    /// A count is zero or too large.
    Count(u32),
    /// More arrive than the phase expects.
    TooMany {
        /// Arrivals.
        count: u32,
        /// Arrivals that are pending.
        pending: u32,
    },
    /// The transaction count leaves its range.
    Transactions(i64),
    /// `.noComplete` completes the phase.
    Completes,
    /// No thread is left to arrive.
    Empty,
    /// The phase asked for is neither the current nor the one before.
    Stale {
        /// Phase of the state.
        asked: u32,
        /// Current phase.
        current: u32,
    },
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misuse::Count(count) => write!(f, "the count {count} of the mbarrier object is not in its range"),
            Misuse::TooMany { count, pending } => {
                write!(f, "{count} arrive at an mbarrier object whose phase waits for {pending}")
            }
            Misuse::Transactions(count) => write!(f, "the transaction count {count} is not in its range"),
            Misuse::Completes => f.write_str("the arrival is said not to complete the phase, and does"),
            Misuse::Empty => f.write_str("the mbarrier object expects no arrivals any more"),
            Misuse::Stale { asked, current } => {
                write!(f, "phase {asked} is asked for, but the mbarrier object is in phase {current}")
            }
        }
    }
}

/// Layouts, which differ in the range of their counts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Layout {
    /// `layout::v0`
    #[default]
    V0,
    /// `layout::v1`
    V1,
}

impl Layout {
    fn most(self) -> u32 {
        match self {
            Layout::V0 => (1 << 20) - 1,
            Layout::V1 => (1 << 9) - 1,
        }
    }
}

/// Which phase a wait asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// That of a state which an arrival gave.
    State(u64),
    /// The current or the one before, by parity.
    Parity(bool),
}

/// An mbarrier object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Barrier {
    layout: Layout,
    phase: u32,
    expected: u32,
    pending: u32,
    transactions: i64,
}

impl Barrier {
    /// A new object that `count` arrivals complete.
    ///
    /// # Errors
    /// [`Misuse::Count`].
    pub fn new(count: u32, layout: Layout) -> Result<Barrier, Misuse> {
        if count == 0 || count > layout.most() {
            return Err(Misuse::Count(count));
        }
        Ok(Barrier { layout, phase: 0, expected: count, pending: count, transactions: 0 })
    }

    /// Its layout.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Phases that are complete.
    pub fn phase(&self) -> u32 {
        self.phase
    }

    /// Arrivals and transactions that the phase waits for.
    pub fn outstanding(&self) -> (u32, i64) {
        (self.pending, self.transactions)
    }

    /// The state as an arrival gives it: opaque to programs.
    pub fn state(&self) -> u64 {
        u64::from(self.phase) << 32 | u64::from(self.pending)
    }

    /// `mbarrier.pending_count` of a state.
    pub fn pending_count(state: u64) -> u32 {
        state as u32
    }

    /// True when nothing is outstanding; the next phase then begins.
    fn settle(&mut self) -> bool {
        if self.pending != 0 || self.transactions != 0 {
            return false;
        }
        self.phase = self.phase.wrapping_add(1);
        self.pending = self.expected;
        true
    }

    /// The arrive-on operation; true when it completes the phase.
    ///
    /// # Errors
    /// [`Misuse::Count`], [`Misuse::TooMany`].
    pub fn arrive(&mut self, count: u32) -> Result<bool, Misuse> {
        if count == 0 || count > self.layout.most() {
            return Err(Misuse::Count(count));
        }
        if count > self.pending {
            return Err(Misuse::TooMany { count, pending: self.pending });
        }
        self.pending -= count;
        Ok(self.settle())
    }

    /// Lets `count` fewer arrivals be expected from the next phase on, and arrives.
    ///
    /// # Errors
    /// As [`Barrier::arrive`]; [`Misuse::Empty`].
    pub fn arrive_drop(&mut self, count: u32) -> Result<bool, Misuse> {
        if count >= self.expected {
            return Err(if count == self.expected { Misuse::Empty } else { Misuse::Count(count) });
        }
        self.expected -= count;
        self.arrive(count)
    }

    /// One more arrival is pending in this phase: an asynchronous one.
    ///
    /// # Errors
    /// [`Misuse::Count`].
    pub fn await_one(&mut self) -> Result<(), Misuse> {
        if self.pending >= self.layout.most() {
            return Err(Misuse::Count(self.pending + 1));
        }
        self.pending += 1;
        Ok(())
    }

    /// The expect-tx operation.
    ///
    /// # Errors
    /// [`Misuse::Transactions`].
    pub fn expect(&mut self, bytes: u32) -> Result<(), Misuse> {
        self.transact(i64::from(bytes))
    }

    /// The complete-tx operation; true when it completes the phase.
    ///
    /// # Errors
    /// [`Misuse::Transactions`].
    pub fn complete(&mut self, bytes: u32) -> Result<bool, Misuse> {
        self.transact(-i64::from(bytes))?;
        Ok(self.settle())
    }

    fn transact(&mut self, change: i64) -> Result<(), Misuse> {
        let count = self.transactions + change;
        if count.abs() > MOST_TRANSACTIONS {
            return Err(Misuse::Transactions(count));
        }
        self.transactions = count;
        Ok(())
    }

    /// Whether a phase is complete.
    ///
    /// # Errors
    /// [`Misuse::Stale`].
    pub fn test(&self, phase: Phase) -> Result<bool, Misuse> {
        match phase {
            Phase::Parity(odd) => Ok((self.phase & 1 != 0) != odd),
            Phase::State(state) => {
                let asked = (state >> 32) as u32;
                match self.phase.wrapping_sub(asked) {
                    0 => Ok(false),
                    1 => Ok(true),
                    _ => Err(Misuse::Stale { asked, current: self.phase }),
                }
            }
        }
    }
}
