//! Asynchronous operations and how their ends are learned (PTX ISA 9.7.10.28, 9.7.15.16), apart from any text.
//!
//! An operation claims the bytes that it reads and writes ([`crate::memory::Claimed`]) until a thread learns that it is
//! complete: by waiting for its group, or by the phase of an mbarrier object. Meanwhile reading what it writes, and
//! writing what it reads or writes, is an error that names both places.
//!
//! When the work is done in between is not defined, so it is done as late as possible, or in a random order
//! ([`Completion`]): an operation that an mbarrier object waits for is done when a thread polls the object, one a poll.
//! Tensor copies, `wgmma` and tensor memory can join as further kinds of [`Work`] under the same mechanisms.
//!
//! Not checked: fences between the proxies, and that a phase is observed before the next is begun.

mod barrier;
mod groups;
mod operation;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use barrier::{Barrier, Layout, Misuse, Phase};
use groups::Groups;
use operation::Operation;
pub use operation::{BarrierPlace, Combine, ElementType, Signal, Work};

use crate::memory::{Accessor, Bytes, Claimed, Extent, Fault, Kind, Memory, NO_THREAD, Use};

/// Polls of one phase by one thread without any change after which it counts as never complete.
const PATIENCE: u64 = 1 << 17;

/// When operations are done that may be done at any time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Completion {
    /// As late as the rules allow, in the order in which they were begun.
    #[default]
    Late,
    /// At random times in a random order that follows from this number.
    Random(u64),
}

/// Why an operation cannot go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// What is wrong.
    pub message: String,
    /// Place number of the other instruction that it is about.
    pub other: Option<u32>,
}

impl Trouble {
    fn new(message: impl Into<String>) -> Trouble {
        Trouble { message: message.into(), other: None }
    }
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Trouble {
        let other = match fault {
            Fault::Race { other, .. } | Fault::InFlight { other, .. } => Some(other),
            _ => None,
        };
        Trouble { message: fault.to_string(), other }
    }
}

impl From<Misuse> for Trouble {
    fn from(misuse: Misuse) -> Trouble {
        Trouble::new(misuse.to_string())
    }
}

/// Mechanisms by which a thread waits for groups of its operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// `cp.async` groups.
    Copies,
    /// Bulk groups.
    Bulk,
}

/// What a copy is to do.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where from; `None` when the bytes are given.
    pub source: Option<Extent>,
    /// Bytes before those of the source.
    pub head: Bytes,
    /// Bytes after those of the source.
    pub tail: Bytes,
    /// Where to.
    pub target: Extent,
    /// Of every 16 bytes, which are written.
    pub mask: u16,
    /// Combines with what is there instead of replacing it.
    pub reduce: Option<(Combine, ElementType)>,
    /// The group mechanism, if it is under one.
    pub mechanism: Option<Mechanism>,
    /// The mbarrier object that is told the number of bytes.
    pub barrier: Option<BarrierPlace>,
}

impl Request {
    /// A plain copy.
    pub fn copy(source: Extent, target: Extent) -> Request {
        Request {
            source: Some(source),
            head: Bytes::default(),
            tail: Bytes::default(),
            target,
            mask: u16::MAX,
            reduce: None,
            mechanism: None,
            barrier: None,
        }
    }
}

/// An arrival at an mbarrier object.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// How many arrive.
    pub count: u32,
    /// Bytes to expect first.
    pub expect: Option<u32>,
    /// As many fewer are expected from now on.
    pub drop: bool,
    /// It may complete the phase.
    pub may_complete: bool,
}

impl Default for Arrival {
    fn default() -> Arrival {
        Arrival { count: 1, expect: None, drop: false, may_complete: true }
    }
}

#[derive(Clone, Debug)]
struct Tracked {
    barrier: Barrier,
    /// The thread of its block that has last used it.
    owner: Accessor,
    /// Operations that will tell it, in the order in which they were begun.
    waiting: BTreeSet<u32>,
    /// Operations that are done, and whose claims end with the phase.
    done: Vec<u32>,
    /// Polls of the first thread that has polled since something changed.
    polls: u64,
    poller: Option<(usize, u32)>,
}

impl Tracked {
    /// Something has changed.
    fn moved(&mut self) {
        (self.polls, self.poller) = (0, None);
    }
}

/// All asynchronous operations of a grid.
#[derive(Clone, Debug)]
pub struct Asynchronous {
    random: Option<u64>,
    operations: BTreeMap<u32, Operation>,
    next: u32,
    /// By slot of the block and thread: `cp.async` groups and bulk groups.
    threads: BTreeMap<(usize, u32), [Groups; 2]>,
    barriers: BTreeMap<BarrierPlace, Tracked>,
}

impl Asynchronous {
    /// No operations.
    pub fn new(completion: Completion) -> Asynchronous {
        let random = match completion {
            Completion::Late => None,
            Completion::Random(seed) => Some(seed),
        };
        let (operations, threads, barriers) = Default::default();
        Asynchronous { random, operations, next: 0, threads, barriers }
    }

    /// A random number below `limit`; 0 when things happen in order.
    fn below(&mut self, limit: usize) -> usize {
        let Some(state) = &mut self.random else { return 0 };
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ mixed >> 29) % limit.max(1) as u64) as usize
    }

    fn groups(&mut self, who: &Accessor, mechanism: Mechanism) -> &mut Groups {
        &mut self.threads.entry((who.slot, who.thread)).or_default()[mechanism as usize]
    }

    fn tracked(&mut self, place: BarrierPlace) -> Result<&mut Tracked, Trouble> {
        let missing = || Trouble::new("there is no mbarrier object: nothing has initialized it");
        self.barriers.get_mut(&place).ok_or_else(missing)
    }

    /// Begins a copy or a reduction.
    ///
    /// # Errors
    /// What is wrong with the addresses, or which operation or access it is in conflict with.
    pub fn begin(&mut self, request: Request, memory: &mut Memory, who: &Accessor) -> Result<(), Trouble> {
        let Request { source, head, tail, target, mask, reduce, mechanism, barrier } = request;
        if let Some(place) = barrier {
            self.tracked(place)?;
        }
        let number = self.next;
        self.next += 1;
        let source = match source {
            Some(extent) if extent.size > 0 => Some(memory.claim(number, &extent, Use::Source, who)?),
            _ => None,
        };
        let bytes = target.size;
        let what = if reduce.is_some() { Use::Atomic } else { Use::Target(mask) };
        let target = match bytes {
            0 => None,
            _ => Some(memory.claim(number, &target, what, who)?),
        };
        let work = match reduce {
            Some((how, ty)) => Work::Reduce(how, ty),
            None => Work::Copy,
        };
        let signal = barrier.map(|place| (place, Signal::Transactions(bytes as u32)));
        let operation = Operation { issuer: *who, work, source, target, data: head, tail, signal, done: false };
        self.operations.insert(number, operation);
        if let Some(mechanism) = mechanism {
            self.groups(who, mechanism).add(number);
        }
        if let Some(place) = barrier {
            self.tracked(place)?.waiting.insert(number);
        }
        Ok(())
    }

    /// Makes a group of the thread's operations that are in none.
    pub fn commit(&mut self, mechanism: Mechanism, who: &Accessor) {
        self.groups(who, mechanism).commit();
    }

    /// Waits until at most `pending` groups of the thread are not complete; with `read`, until they have read.
    ///
    /// # Errors
    /// A race of what is written.
    pub fn wait(
        &mut self,
        mechanism: Mechanism,
        pending: u32,
        read: bool,
        memory: &mut Memory,
        who: &Accessor,
    ) -> Result<(), Trouble> {
        let mut numbers = self.groups(who, mechanism).before(pending as usize, !read);
        // Within what is waited for there is no order.
        if self.random.is_some() {
            for i in (1..numbers.len()).rev() {
                let other = self.below(i + 1);
                numbers.swap(i, other);
            }
        }
        for number in numbers {
            if read {
                self.read(number, memory);
                continue;
            }
            let writer = self.operations.get(&number).map(|o| Accessor { place: o.issuer.place, ..*who });
            self.perform(number, memory, &writer.unwrap_or(*who))?;
            self.forget(number, memory);
        }
        Ok(())
    }

    /// The thread's earlier `cp.async` operations arrive at an mbarrier object when they are complete; `counted`: the
    /// arrival is one that the object already expects.
    ///
    /// # Errors
    /// As of [`Asynchronous::arrive`].
    pub fn arrive_after_copies(
        &mut self,
        place: BarrierPlace,
        counted: bool,
        memory: &mut Memory,
        who: &Accessor,
    ) -> Result<(), Trouble> {
        self.tracked(place)?;
        memory.note_barrier(place, who)?;
        let after = self.groups(who, Mechanism::Copies).all();
        let number = self.next;
        self.next += 1;
        let tracked = self.tracked(place)?;
        if !counted {
            tracked.barrier.await_one()?;
        }
        tracked.waiting.insert(number);
        let (data, tail) = (Bytes::default(), Bytes::default());
        let signal = Some((place, Signal::Arrival));
        let work = Work::Arrive(after);
        let operation = Operation { issuer: *who, work, source: None, target: None, data, tail, signal, done: false };
        self.operations.insert(number, operation);
        Ok(())
    }

    /// Reads the source, and ends the claim on it.
    fn read(&mut self, number: u32, memory: &mut Memory) {
        let Some(operation) = self.operations.get_mut(&number) else { return };
        if let Some(source) = operation.source.take() {
            let bytes = memory.take(&source);
            memory.release(&source);
            operation.data.append(bytes);
        }
    }

    /// Does the work, for which `who` stands as writer. The claims stay.
    fn perform(&mut self, number: u32, memory: &mut Memory, who: &Accessor) -> Result<(), Trouble> {
        self.read(number, memory);
        let Some(operation) = self.operations.get_mut(&number) else { return Ok(()) };
        if std::mem::replace(&mut operation.done, true) {
            return Ok(());
        }
        operation.data.append(std::mem::take(&mut operation.tail));
        if let Some(target) = &operation.target {
            let bytes = match operation.work {
                Work::Reduce(how, ty) => ty.combine_all(how, &memory.take(target), &operation.data),
                _ => std::mem::take(&mut operation.data),
            };
            memory.put(target, &bytes, who)?;
        }
        Ok(())
    }

    /// Ends all claims of an operation.
    fn forget(&mut self, number: u32, memory: &mut Memory) {
        if let Some(operation) = self.operations.remove(&number) {
            for claimed in [operation.source, operation.target].into_iter().flatten() {
                memory.release(&claimed);
            }
        }
    }

    /// Does an operation that tells an mbarrier object, and tells it.
    fn finish(&mut self, number: u32, memory: &mut Memory) -> Result<(), Trouble> {
        let Some(operation) = self.operations.get(&number) else { return Ok(()) };
        let Some((place, signal)) = operation.signal else { return Ok(()) };
        let issuer = operation.issuer;
        let mut parts = vec![number];
        if let Work::Arrive(after) = &operation.work {
            parts.extend(after);
        }
        let owner = self.tracked(place)?.owner;
        for part in &parts {
            // The writer is no thread: only who has waited is ordered after it.
            let at = self.operations.get(part).map_or(issuer.place, |o| o.issuer.place);
            self.perform(*part, memory, &Accessor { thread: NO_THREAD, place: at, ..owner })?;
        }
        let tracked = self.tracked(place)?;
        tracked.waiting.remove(&number);
        tracked.done.extend(parts);
        tracked.moved();
        let complete = match signal {
            Signal::Transactions(bytes) => tracked.barrier.complete(bytes)?,
            Signal::Arrival => tracked.barrier.arrive(1)?,
        };
        if complete {
            self.turn_over(place, memory)?;
        }
        Ok(())
    }

    /// A phase is complete: everybody who waits for it may touch what its operations have written.
    fn turn_over(&mut self, place: BarrierPlace, memory: &mut Memory) -> Result<(), Trouble> {
        let tracked = self.tracked(place)?;
        tracked.moved();
        for number in std::mem::take(&mut tracked.done) {
            self.forget(number, memory);
        }
        Ok(())
    }

    /// `mbarrier.init`.
    ///
    /// # Errors
    /// The memory holds an mbarrier object, the count is not in its range, or any fault of memory.
    pub fn initialize(
        &mut self,
        place: BarrierPlace,
        count: u32,
        layout: Layout,
        memory: &mut Memory,
        who: &Accessor,
    ) -> Result<(), Trouble> {
        let barrier = Barrier::new(count, layout)?;
        if self.barriers.contains_key(&place) {
            return Err(Trouble::new("an mbarrier object is initialized again without having been invalidated"));
        }
        if !memory.mark_barrier(place, true, who)? {
            return Err(Trouble::new("the mbarrier object lies outside of shared memory, or overlaps another"));
        }
        self.barriers.insert(
            place,
            Tracked { barrier, owner: *who, waiting: BTreeSet::new(), done: Vec::new(), polls: 0, poller: None },
        );
        Ok(())
    }

    /// `mbarrier.inval`.
    ///
    /// # Errors
    /// There is none, or operations are still to tell it.
    pub fn invalidate(&mut self, place: BarrierPlace, memory: &mut Memory, who: &Accessor) -> Result<(), Trouble> {
        let tracked = self.tracked(place)?;
        if let Some(number) = tracked.waiting.first().copied() {
            let other = self.operations.get(&number).map(|o| o.issuer.place);
            let message = "an mbarrier object is invalidated that an asynchronous operation has still to tell";
            return Err(Trouble { message: message.to_string(), other });
        }
        self.turn_over(place, memory)?;
        self.barriers.remove(&place);
        memory.mark_barrier(place, false, who)?;
        Ok(())
    }

    /// The object's layout.
    ///
    /// # Errors
    /// There is none.
    pub fn layout(&mut self, place: BarrierPlace) -> Result<Layout, Trouble> {
        Ok(self.tracked(place)?.barrier.layout())
    }

    /// Threads arrive; gives the state before.
    ///
    /// # Errors
    /// The object is misused, or not initialized before in an order that is certain.
    pub fn arrive(
        &mut self,
        place: BarrierPlace,
        arrival: Arrival,
        memory: &mut Memory,
        who: &Accessor,
    ) -> Result<u64, Trouble> {
        let barrier = &mut self.tracked(place)?.barrier;
        if let Some(bytes) = arrival.expect {
            barrier.expect(bytes)?;
        }
        let state = barrier.state();
        let complete =
            if arrival.drop { barrier.arrive_drop(arrival.count)? } else { barrier.arrive(arrival.count)? };
        if complete && !arrival.may_complete {
            return Err(Misuse::Completes.into());
        }
        memory.note_barrier(place, who)?;
        self.tracked(place)?.moved();
        if complete {
            self.turn_over(place, memory)?;
        }
        Ok(state)
    }

    /// `mbarrier.expect_tx` and, with `complete`, `mbarrier.complete_tx`.
    ///
    /// # Errors
    /// As of [`Asynchronous::arrive`].
    pub fn transact(
        &mut self,
        place: BarrierPlace,
        bytes: u32,
        complete: bool,
        memory: &mut Memory,
        who: &Accessor,
    ) -> Result<(), Trouble> {
        memory.note_barrier(place, who)?;
        let tracked = self.tracked(place)?;
        tracked.moved();
        if !complete {
            return Ok(tracked.barrier.expect(bytes)?);
        }
        if tracked.barrier.complete(bytes)? {
            self.turn_over(place, memory)?;
        }
        Ok(())
    }

    /// Whether a phase is complete. When it is not, one operation that it waits for is done.
    ///
    /// # Errors
    /// As of [`Asynchronous::arrive`]; the phase is never complete.
    pub fn test(
        &mut self,
        place: BarrierPlace,
        phase: Phase,
        memory: &mut Memory,
        who: &Accessor,
    ) -> Result<bool, Trouble> {
        memory.note_barrier(place, who)?;
        memory.look(Kind::Atomic);
        let tracked = self.tracked(place)?;
        tracked.owner = *who;
        if tracked.barrier.test(phase)? {
            tracked.moved();
            return Ok(true);
        }
        tracked.polls += u64::from(*tracked.poller.get_or_insert((who.slot, who.thread)) == (who.slot, who.thread));
        let (count, polls) = (tracked.waiting.len(), tracked.polls);
        if count > 0 {
            let index = self.below(count);
            if let Some(number) = self.tracked(place)?.waiting.iter().nth(index).copied() {
                self.finish(number, memory)?;
            }
        } else if polls > PATIENCE {
            let (pending, bytes) = self.tracked(place)?.barrier.outstanding();
            let message = format!(
                "a phase is waited for that is never complete: {pending} arrivals and {bytes} bytes are missing"
            );
            return Err(Trouble::new(message));
        }
        Ok(false)
    }

    /// Lets time pass: with random completion, some operation may be done.
    ///
    /// # Errors
    /// A race of what is written.
    pub fn pass(&mut self, memory: &mut Memory) -> Result<(), Trouble> {
        if self.random.is_none() || self.operations.is_empty() || self.below(4) != 0 {
            return Ok(());
        }
        let from = self.below(self.operations.len());
        let Some(number) = self.operations.keys().nth(from).copied() else { return Ok(()) };
        let Some(operation) = self.operations.get(&number) else { return Ok(()) };
        let issuer = operation.issuer;
        match operation.signal {
            Some(_) if !operation.done => self.finish(number, memory),
            Some(_) => Ok(()),
            None => self.perform(number, memory, &issuer),
        }
    }

    /// A thread block has ended: what it has begun is done, and its shared memory is no more.
    ///
    /// # Errors
    /// An operation still reads that memory; or a race of what is written.
    pub fn end_block(&mut self, slot: usize, memory: &mut Memory) -> Result<(), Trouble> {
        self.threads.retain(|(of, _), _| *of != slot);
        let in_slot = |claimed: &Option<Claimed>| claimed.as_ref().and_then(Claimed::shared_slot) == Some(slot);
        let concerned = |o: &Operation| {
            let tells = o.signal.is_some_and(|((of, _), _)| of == slot);
            o.issuer.slot == slot || in_slot(&o.source) || in_slot(&o.target) || tells
        };
        let numbers: Vec<u32> = self.operations.iter().filter(|(_, o)| concerned(o)).map(|(n, _)| *n).collect();
        for number in numbers {
            let Some(operation) = self.operations.get(&number) else { continue };
            let issuer = operation.issuer;
            let outlives = operation.target.as_ref().is_some_and(|t| t.shared_slot() != Some(slot));
            if in_slot(&operation.source) && outlives {
                let message = "the thread block ends while an asynchronous operation still reads its shared memory";
                return Err(Trouble { message: message.to_string(), other: Some(issuer.place) });
            }
            if outlives {
                self.perform(number, memory, &issuer)?;
                if operation_tells_another(&self.operations, number, slot) {
                    continue;
                }
            }
            self.forget(number, memory);
        }
        self.barriers.retain(|(of, _), _| *of != slot);
        Ok(())
    }
}

/// Whether an operation has an mbarrier object of another block to tell.
fn operation_tells_another(operations: &BTreeMap<u32, Operation>, number: u32, slot: usize) -> bool {
    operations.get(&number).and_then(|o| o.signal).is_some_and(|((of, _), _)| of != slot)
}
