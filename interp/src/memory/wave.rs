//! Accesses of a whole warp at once: the common case, quickly.
//!
//! What is done here is exactly what [`Memory::load`] and [`Memory::store`] would do for each lane in turn, as long as
//! nothing about an access is remarkable: it lies in the same allocation as the first lane's, is aligned, its bytes are
//! initialized and nobody claims them, and it races with no other. At the first lane of which that is not so the rest is
//! left to those, which find out what there is to say.

use ptxc_ir::Space;

use super::block::{Block, INITIALIZED, NOTHING};
use super::race::WHOLE;
use super::{Accessor, CONST_WINDOW, Kind, Memory, PARAM_WINDOW, SHARED_WINDOW, WINDOW, find, from_generic};

/// Lanes.
const LANES: usize = 32;

/// One access of each lane of a warp.
#[derive(Clone, Copy, Debug)]
pub struct Wave<'a> {
    /// Space of the addresses.
    pub space: Space,
    /// Addresses.
    pub addresses: &'a [u64; LANES],
    /// Bytes to add to them.
    pub offset: i64,
    /// Lanes that access.
    pub mask: u32,
    /// Bytes: 1, 2, 4 or 8.
    pub size: u32,
    /// Required alignment of the addresses with the offset, a power of two.
    pub align: u64,
    /// Lane 0 as the detector of races sees it.
    pub who: Accessor,
    /// Lanes that have executed a fence or an acquiring atomic.
    pub synchronized: u32,
    /// Plain or atomic.
    pub kind: Kind,
}

impl Wave<'_> {
    /// Calls `f` with the index of each lane's bytes in the block until it says no; gives the lanes for which it said yes.
    #[inline(always)]
    fn each(&self, base: u64, mut f: impl FnMut(usize, usize, &Accessor) -> bool) -> u32 {
        let mut who = self.who;
        let first = who.thread;
        let (mut left, mut done) = (self.mask, 0);
        while left != 0 {
            let lane = left.trailing_zeros() as usize & (LANES - 1);
            let bit = 1 << lane;
            let address = self.addresses[lane].wrapping_add_signed(self.offset);
            who.thread = first + lane as u32;
            who.synchronized = self.synchronized & bit != 0;
            if address & (self.align - 1) != 0 || !f(lane, address.wrapping_sub(base) as usize, &who) {
                break;
            }
            done |= bit;
            left &= left - 1;
        }
        done
    }
}

/// Calls a function with the size of the access as a constant.
macro_rules! sized {
    ($wave:expr, $f:ident($($argument:expr),*)) => {
        match $wave.size {
            1 => $f::<1>($($argument),*),
            2 => $f::<2>($($argument),*),
            4 => $f::<4>($($argument),*),
            8 => $f::<8>($($argument),*),
            _ => 0,
        }
    };
}

impl Memory {
    /// The allocation that the first lane accesses, and what to subtract from addresses for an index of its bytes.
    #[inline]
    fn shared_by_lanes(&mut self, wave: &Wave<'_>, writes: bool) -> Option<(&mut Block, u64)> {
        let lane = wave.mask.trailing_zeros() as usize;
        let first = wave.addresses.get(lane)?.wrapping_add_signed(wave.offset);
        let (space, window) = match wave.space {
            Space::Generic => {
                let space = from_generic(first).0;
                (
                    space,
                    [(Space::Shared, SHARED_WINDOW), (Space::Const, CONST_WINDOW), (Space::Param, PARAM_WINDOW)]
                        .into_iter()
                        .find(|(s, _)| *s == space)
                        .map_or(0, |(_, window)| window),
                )
            }
            space => (space, 0),
        };
        let block = match space {
            Space::Global => {
                let index = find(&self.global, self.recent, first)?;
                self.recent = index;
                self.global.get_mut(index)?
            }
            // Addresses with a rank lie beyond the block's own bytes.
            Space::Shared | Space::SharedCluster => &mut self.blocks.get_mut(wave.who.slot)?.shared,
            Space::Const if !writes => &mut self.constant,
            Space::Param if !writes => &mut self.param,
            _ => return None,
        };
        debug_assert!(block.len() < WINDOW);
        let base = window + block.base();
        Some((block, base))
    }

    /// Loads for the lanes of a warp; gives the lanes that have been done, from the first on. The others are left to
    /// [`Memory::load`].
    #[inline]
    pub fn load_wave(&mut self, wave: &Wave<'_>, out: &mut [u64; LANES]) -> u32 {
        self.look(wave.kind);
        if wave.space == Space::Local {
            return sized!(wave, load_own(self, wave, out));
        }
        match self.shared_by_lanes(wave, false) {
            Some((block, base)) if !block.has_claims(false) => sized!(wave, load_lanes(block, base, wave, out)),
            _ => 0,
        }
    }

    /// Stores for the lanes of a warp; as [`Memory::load_wave`].
    #[inline]
    pub fn store_wave(&mut self, wave: &Wave<'_>, values: &[u64; LANES]) -> u32 {
        if wave.space == Space::Local {
            return sized!(wave, store_own(self, wave, values));
        }
        match self.shared_by_lanes(wave, true) {
            Some((block, base)) if !block.has_claims(true) => sized!(wave, store_lanes(block, base, wave, values)),
            _ => 0,
        }
    }
}

/// Reads bytes that are initialized.
#[inline(always)]
fn read<const SIZE: usize>(block: &Block, at: usize) -> Option<u64> {
    let end = at.checked_add(SIZE)?;
    let state: &[u8; SIZE] = block.state.get(at..end)?.try_into().ok()?;
    let bytes: &[u8; SIZE] = block.bytes.get(at..end)?.try_into().ok()?;
    if *state != [INITIALIZED; SIZE] {
        return None;
    }
    let mut word = [0; 8];
    word[..SIZE].copy_from_slice(bytes);
    Some(u64::from_le_bytes(word))
}

/// Writes bytes that belong to an allocation; gives whether they were the same before.
#[inline(always)]
fn write<const SIZE: usize>(block: &mut Block, at: usize, value: u64) -> Option<bool> {
    let end = at.checked_add(SIZE)?;
    let state: &mut [u8; SIZE] = block.state.get_mut(at..end)?.try_into().ok()?;
    if *state != [INITIALIZED; SIZE] {
        if state.contains(&NOTHING) {
            return None;
        }
        *state = [INITIALIZED; SIZE];
    }
    let bytes: &mut [u8; SIZE] = block.bytes.get_mut(at..end)?.try_into().ok()?;
    let mut new = [0; SIZE];
    new.copy_from_slice(&value.to_le_bytes()[..SIZE]);
    let same = *bytes == new;
    *bytes = new;
    Some(same)
}

/// The bytes of a granule that an access of less than one has.
#[inline(always)]
fn part<const SIZE: usize>(at: usize) -> u8 {
    if SIZE >= 4 { WHOLE } else { ((1 << SIZE) - 1) << (at % 4) }
}

/// Notes reads; false when one races.
#[inline(always)]
fn note_read<const SIZE: usize>(block: &mut Block, at: usize, who: &Accessor, kind: Kind) -> bool {
    let first = at / 4;
    let cells = block.cells.get_mut(first..first + SIZE.div_ceil(4)).unwrap_or_default();
    cells.iter_mut().all(|cell| cell.read(part::<SIZE>(at), who, kind).is_ok())
}

#[inline(always)]
fn load_lanes<const SIZE: usize>(block: &mut Block, base: u64, wave: &Wave<'_>, out: &mut [u64; LANES]) -> u32 {
    let watched = block.watched;
    wave.each(base, |lane, at, who| {
        let Some(value) = read::<SIZE>(block, at) else { return false };
        // Granules are those of addresses in the block, which begins at a multiple of their size.
        if at % SIZE != 0 || (watched && !note_read::<SIZE>(block, at, who, wave.kind)) {
            return false;
        }
        out[lane] = value;
        true
    })
}

#[inline(always)]
fn store_lanes<const SIZE: usize>(block: &mut Block, base: u64, wave: &Wave<'_>, values: &[u64; LANES]) -> u32 {
    let watched = block.watched;
    wave.each(base, |lane, at, who| {
        if at % SIZE != 0 {
            return false;
        }
        if !watched {
            return write::<SIZE>(block, at, values[lane]).is_some();
        }
        // The race is found before anything is written, as it would be found again.
        let first = at / 4;
        let count = SIZE.div_ceil(4);
        let old = block.bytes.get(at..at.saturating_add(SIZE));
        let same = old.is_some_and(|old| *old == values[lane].to_le_bytes()[..SIZE]);
        let cells = block.cells.get_mut(first..first + count).unwrap_or_default();
        if !same && cells.iter().any(|cell| cell.forbids_write(part::<SIZE>(at), who, wave.kind)) {
            return false;
        }
        cells.iter_mut().for_each(|cell| cell.wrote(part::<SIZE>(at), who, wave.kind));
        write::<SIZE>(block, at, values[lane]).is_some()
    })
}

/// Each lane on its own stack, which no other accesses.
#[inline(always)]
fn load_own<const SIZE: usize>(memory: &mut Memory, wave: &Wave<'_>, out: &mut [u64; LANES]) -> u32 {
    let Some(stacks) = memory.blocks.get(wave.who.slot).map(|b| &b.local) else { return 0 };
    wave.each(0, |lane, address, who| {
        let Some(stack) = stacks.get(who.thread as usize).filter(|s| !s.has_claims(false)) else { return false };
        let value = read::<SIZE>(stack, (address as u64).wrapping_sub(stack.base()) as usize);
        out[lane] = value.unwrap_or(out[lane]);
        value.is_some()
    })
}

#[inline(always)]
fn store_own<const SIZE: usize>(memory: &mut Memory, wave: &Wave<'_>, values: &[u64; LANES]) -> u32 {
    let Some(stacks) = memory.blocks.get_mut(wave.who.slot).map(|b| &mut b.local) else { return 0 };
    wave.each(0, |lane, address, who| {
        let Some(stack) = stacks.get_mut(who.thread as usize).filter(|s| !s.has_claims(true)) else { return false };
        let at = (address as u64).wrapping_sub(stack.base()) as usize;
        write::<SIZE>(stack, at, values[lane]).is_some()
    })
}
