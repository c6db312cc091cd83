//! One run of bytes with what is known of each.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Fault;
use super::race::{Accessor, Cell, GRANULE, Kind, WHOLE};

/// States of a byte.
const UNINITIALIZED: u8 = 0;
pub(super) const INITIALIZED: u8 = 1;
const POISON: u8 = 2;
/// Belongs to no allocation.
pub(super) const NOTHING: u8 = 3;
/// Flag of a byte that an asynchronous operation is going to write.
const IN_FLIGHT: u8 = 0x80;
/// Flag of a byte of an mbarrier object.
const BARRIER: u8 = 0x40;
/// Both.
const FLAGS: u8 = IN_FLIGHT | BARRIER;

/// What was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// The bytes, little-endian.
    pub bits: u128,
    /// Some byte is poison.
    pub poison: bool,
    /// Some byte was never written.
    pub uninitialized: bool,
}

/// Bytes with what is known of each, on their way from one place to another.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Bytes {
    values: Vec<u8>,
    states: Vec<u8>,
}

impl Bytes {
    /// Bytes that are written as they are.
    pub fn known(values: Vec<u8>) -> Bytes {
        let states = vec![INITIALIZED; values.len()];
        Bytes { values, states }
    }

    /// Bytes of which nothing is known: reading them is reported.
    pub fn unknown(count: usize) -> Bytes {
        Bytes { values: vec![0; count], states: vec![UNINITIALIZED; count] }
    }

    /// Poison.
    pub fn poison(count: usize) -> Bytes {
        Bytes { values: vec![0; count], states: vec![POISON; count] }
    }

    /// Appends bytes.
    pub fn append(&mut self, mut more: Bytes) {
        self.values.append(&mut more.values);
        self.states.append(&mut more.states);
    }

    /// The values.
    pub fn values(&self) -> &[u8] {
        &self.values
    }

    /// Some of the bytes from `at` on is poison.
    pub fn any_poison(&self, at: usize, count: usize) -> bool {
        self.states.get(at..at + count).is_some_and(|s| s.contains(&POISON))
    }
}

/// What an asynchronous operation does with bytes of a block until it is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Place of the operation in the program.
    pub place: u32,
    /// The operation writes them; else it reads them.
    pub writes: bool,
    /// Which of every 16 bytes.
    pub mask: u16,
}

impl Claim {
    fn overlaps(&self, address: u64, size: u64) -> bool {
        address < self.address + self.size && self.address < address + size
    }
}

/// An allocation, or a segment that small allocations are made in.
#[derive(Clone, Debug)]
pub struct Block {
    name: String,
    base: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) state: Vec<u8>,
    pub(super) cells: Vec<Cell>,
    pub(super) watched: bool,
    fill: u8,
    /// By number of the operation.
    targets: BTreeMap<u32, Claim>,
    sources: BTreeMap<u32, Claim>,
    /// How many mbarrier objects there are.
    barriers: u32,
}

impl Block {
    /// An allocation of uninitialized bytes; `watched` turns race detection on.
    pub fn new(name: &str, base: u64, size: u64, fill: u8, watched: bool) -> Block {
        let mut block = Block::segment(name, base, fill);
        block.watched = watched;
        block.resize(size as usize, UNINITIALIZED);
        block
    }

    /// An empty segment.
    pub fn segment(name: &str, base: u64, fill: u8) -> Block {
        let (bytes, state, cells) = (Vec::new(), Vec::new(), Vec::new());
        let (targets, sources) = (BTreeMap::new(), BTreeMap::new());
        Block { name: name.to_string(), base, bytes, state, cells, watched: false, fill, targets, sources, barriers: 0 }
    }

    /// Turns race detection on.
    pub fn watch(&mut self) {
        self.watched = true;
        self.resize(self.bytes.len(), NOTHING);
    }

    fn resize(&mut self, size: usize, state: u8) {
        self.bytes.resize(size, self.fill);
        self.state.resize(size, state);
        if self.watched {
            self.cells.resize(size.div_ceil(GRANULE as usize), Cell::default());
        }
    }

    /// Allocates in a segment, after a gap that is out of bounds; gives the address.
    pub fn allocate(&mut self, size: u64, align: u64) -> u64 {
        let gap = if self.bytes.is_empty() { 0 } else { 16 };
        let address = (self.base + self.bytes.len() as u64 + gap).next_multiple_of(align.max(1));
        self.resize((address - self.base) as usize, NOTHING);
        self.resize((address - self.base + size) as usize, UNINITIALIZED);
        address
    }

    /// Drops what lies from this length on.
    pub fn truncate(&mut self, len: u64) {
        self.resize((len as usize).min(self.bytes.len()), NOTHING);
    }

    /// Name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// First address.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// True without bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Contents.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Ranges of bytes, from the start, that are poison.
    pub fn poison(&self) -> Vec<Range<u64>> {
        let mut at = 0;
        let mut found = Vec::new();
        for run in self.state.chunk_by(|a, b| (*a == POISON) == (*b == POISON)) {
            let end = at + run.len() as u64;
            if run.first() == Some(&POISON) {
                found.push(at..end);
            }
            at = end;
        }
        found
    }

    /// Writes and marks as initialized; false when out of bounds.
    pub fn fill_bytes(&mut self, address: u64, bytes: &[u8]) -> bool {
        let at = address.wrapping_sub(self.base) as usize;
        let range = at..at.saturating_add(bytes.len());
        let (Some(to), Some(state)) = (self.bytes.get_mut(range.clone()), self.state.get_mut(range)) else {
            return false;
        };
        to.copy_from_slice(bytes);
        state.fill(INITIALIZED);
        true
    }

    /// Copies bytes with what is known of them; `None` when out of bounds.
    pub fn copy(&mut self, from: u64, to: u64, size: u64) -> Option<()> {
        let at = |address: u64| usize::try_from(address.wrapping_sub(self.base)).ok();
        let (from, to, size) = (at(from)?, at(to)?, usize::try_from(size).ok()?);
        let inside = |start: usize| start.checked_add(size).is_some_and(|end| end <= self.bytes.len());
        if !inside(from) || !inside(to) {
            return None;
        }
        self.bytes.copy_within(from..from + size, to);
        self.state.copy_within(from..from + size, to);
        Some(())
    }

    /// Reads; `None` when out of bounds.
    #[inline]
    pub fn load(&self, address: u64, size: u32) -> Option<Loaded> {
        let at = address.wrapping_sub(self.base) as usize;
        let range = at..at.checked_add(size as usize)?;
        let (bytes, states) = (self.bytes.get(range.clone())?, self.state.get(range)?);
        if let (Ok(word), Ok([INITIALIZED, INITIALIZED, INITIALIZED, INITIALIZED])) =
            (<[u8; 4]>::try_from(bytes), <[u8; 4]>::try_from(states))
        {
            return Some(Loaded { bits: u32::from_le_bytes(word).into(), poison: false, uninitialized: false });
        }
        let mut bits = 0;
        for byte in bytes.iter().rev() {
            bits = bits << 8 | u128::from(*byte);
        }
        let mut loaded = Loaded { bits, poison: false, uninitialized: false };
        for state in states {
            match *state & !FLAGS {
                INITIALIZED => {}
                UNINITIALIZED => loaded.uninitialized = true,
                POISON => loaded.poison = true,
                _ => return None,
            }
        }
        Some(loaded)
    }

    /// Writes; `None` when out of bounds, else whether the bytes were the same before.
    #[inline]
    pub fn store(&mut self, address: u64, size: u32, bits: u128, poison: bool) -> Option<bool> {
        let at = address.wrapping_sub(self.base) as usize;
        let range = at..at.checked_add(size as usize)?;
        let (bytes, states) = (self.bytes.get_mut(range.clone())?, self.state.get_mut(range)?);
        if states.contains(&NOTHING) {
            return None;
        }
        let mut bits = bits;
        let mut same = true;
        for byte in bytes {
            same &= *byte == bits as u8;
            *byte = bits as u8;
            bits >>= 8;
        }
        states.fill(if poison { POISON } else { INITIALIZED });
        Some(same)
    }

    fn cells(&mut self, address: u64, size: u32) -> impl Iterator<Item = (u8, &mut Cell)> {
        let at = address.wrapping_sub(self.base);
        let first = at / GRANULE;
        let last = (at + u64::from(size)).div_ceil(GRANULE).max(first);
        let cells = self.cells.get_mut(first as usize..last as usize).unwrap_or_default();
        cells.iter_mut().enumerate().map(move |(index, cell)| {
            let start = (first + index as u64) * GRANULE;
            let bytes = (0..GRANULE).filter(|b| start + b >= at && start + b < at + u64::from(size));
            (bytes.fold(0u8, |mask, b| mask | 1 << b), cell)
        })
    }

    /// The cell of an access to one whole granule: the common case.
    #[inline]
    fn whole(&mut self, address: u64, size: u32) -> Option<&mut Cell> {
        let at = address.wrapping_sub(self.base);
        if u64::from(size) != GRANULE || !at.is_multiple_of(GRANULE) {
            return None;
        }
        self.cells.get_mut((at / GRANULE) as usize)
    }

    /// Notes a read for the race detector.
    #[inline]
    pub fn note_read(&mut self, address: u64, size: u32, who: &Accessor, kind: Kind) -> Result<(), Fault> {
        if self.watched {
            if let Some(cell) = self.whole(address, size) {
                return cell.read(WHOLE, who, kind);
            }
            for (mask, cell) in self.cells(address, size) {
                cell.read(mask, who, kind)?;
            }
        }
        Ok(())
    }

    /// Notes a write; `same` when it changed nothing.
    #[inline]
    pub fn note_write(&mut self, address: u64, size: u32, who: &Accessor, kind: Kind, same: bool) -> Result<(), Fault> {
        if self.watched {
            if let Some(cell) = self.whole(address, size) {
                return cell.write(WHOLE, who, kind, same);
            }
            for (mask, cell) in self.cells(address, size) {
                cell.write(mask, who, kind, same)?;
            }
        }
        Ok(())
    }

    /// Notes a write that is ordered after all before it: nobody else had access.
    pub fn note_completion(&mut self, address: u64, size: u32, who: &Accessor) {
        if self.watched {
            self.cells(address, size).for_each(|(mask, cell)| cell.replace(mask, who));
        }
    }

    fn range(&self, address: u64, size: u64) -> Option<Range<usize>> {
        let at = address.wrapping_sub(self.base);
        let end = at.checked_add(size)?;
        (end <= self.bytes.len() as u64).then_some(at as usize..end as usize)
    }

    /// Some bytes are claimed, or those of an mbarrier object, so that not all may be read, or written.
    #[inline]
    pub fn has_claims(&self, writes: bool) -> bool {
        !self.targets.is_empty() || self.barriers != 0 || (writes && !self.sources.is_empty())
    }

    /// Who has a claim on bytes that forbids this access.
    #[inline]
    pub fn blocked(&self, address: u64, size: u64, writes: bool) -> Option<Fault> {
        if self.has_claims(writes) { self.who_blocks(address, size, writes) } else { None }
    }

    fn who_blocks(&self, address: u64, size: u64, writes: bool) -> Option<Fault> {
        let flags = self.state.get(self.range(address, size)?)?.iter().fold(0, |f, s| f | s) & FLAGS;
        if flags & BARRIER != 0 {
            return Some(Fault::Barrier { address });
        }
        let claims = if flags & IN_FLIGHT != 0 { &self.targets } else { &self.sources };
        if flags & IN_FLIGHT == 0 && !writes {
            return None;
        }
        let claim = claims.values().find(|claim| claim.overlaps(address, size))?;
        Some(Fault::InFlight { other: claim.place, writes: claim.writes })
    }

    /// Lets an operation claim bytes; false when they are out of bounds.
    pub fn claim(&mut self, operation: u32, claim: Claim) -> bool {
        let Some(range) = self.range(claim.address, claim.size) else { return false };
        let Some(states) = self.state.get_mut(range) else { return false };
        if states.iter().any(|s| s & !FLAGS == NOTHING) {
            return false;
        }
        if claim.writes {
            for (i, state) in states.iter_mut().enumerate() {
                *state |= if claim.mask >> (i % 16) & 1 != 0 { IN_FLIGHT } else { 0 };
            }
            self.targets.insert(operation, claim);
        } else {
            self.sources.insert(operation, claim);
        }
        true
    }

    /// Ends an operation's claim.
    pub fn release(&mut self, operation: u32, writes: bool) {
        let claims = if writes { &mut self.targets } else { &mut self.sources };
        let Some(claim) = claims.remove(&operation) else { return };
        if !writes {
            return;
        }
        if let Some(states) = self.range(claim.address, claim.size).and_then(|range| self.state.get_mut(range)) {
            for (i, state) in states.iter_mut().enumerate() {
                *state &= if claim.mask >> (i % 16) & 1 != 0 { !IN_FLIGHT } else { u8::MAX };
            }
        }
    }

    /// Reads bytes with what is known of them.
    pub fn take(&self, address: u64, size: u64) -> Option<Bytes> {
        let range = self.range(address, size)?;
        let states = self.state.get(range.clone())?.iter().map(|s| s & !FLAGS).collect();
        Some(Bytes { values: self.bytes.get(range)?.to_vec(), states })
    }

    /// Writes bytes with what is known of them, of every 16 those of `mask`, whoever claims them.
    pub fn put(&mut self, address: u64, bytes: &Bytes, mask: u16) -> bool {
        let Some(range) = self.range(address, bytes.values.len() as u64) else { return false };
        let (Some(to), Some(states)) = (self.bytes.get_mut(range.clone()), self.state.get_mut(range)) else {
            return false;
        };
        for (i, (value, state)) in bytes.values.iter().zip(&bytes.states).enumerate() {
            if mask >> (i % 16) & 1 != 0 {
                to[i] = *value;
                states[i] = (states[i] & FLAGS) | state;
            }
        }
        true
    }

    /// Makes eight bytes an mbarrier object, or ordinary memory again, whose contents are then unknown.
    pub fn mark_barrier(&mut self, address: u64, live: bool) -> bool {
        let Some(states) = self.range(address, 8).and_then(|range| self.state.get_mut(range)) else { return false };
        if states.iter().any(|s| s & !FLAGS == NOTHING || (s & BARRIER != 0) == live) {
            return false;
        }
        states.fill(if live { BARRIER | INITIALIZED } else { UNINITIALIZED });
        self.barriers = if live { self.barriers + 1 } else { self.barriers.saturating_sub(1) };
        true
    }
}
