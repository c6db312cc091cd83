//! Bytes that an asynchronous operation reads or writes until it is known to be complete, and mbarrier objects.

use ptxc_ir::Space;

use super::block::Claim;
use super::{Access, Accessor, Block, Bytes, Fault, Kind, Memory, Region, out_of_bounds};

/// A run of bytes of any length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Space of the address.
    pub space: Space,
    /// First address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Required alignment in bytes, a power of two.
    pub align: u64,
}

/// What an operation does with bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Reads them: nobody may write them meanwhile.
    Source,
    /// Writes them: nobody may access them meanwhile. Of every 16 bytes those of the mask.
    Target(u16),
    /// Combines them with others, each element at once: others may do so too.
    Atomic,
}

/// Bytes that an operation has claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claimed {
    operation: u32,
    region: Region,
    address: u64,
    size: u64,
    what: Use,
}

impl Claimed {
    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The slot of the thread block whose shared memory they are of.
    pub fn shared_slot(&self) -> Option<usize> {
        if let Region::Shared(slot) = self.region { Some(slot) } else { None }
    }
}

impl Memory {
    /// Claims bytes for an operation that `who` begins. Reads and writes are noted for the race detector.
    ///
    /// # Errors
    /// Any [`Fault`].
    pub fn claim(&mut self, operation: u32, extent: &Extent, what: Use, who: &Accessor) -> Result<Claimed, Fault> {
        let Extent { space, address, size, align } = *extent;
        let access = Access { space, address, size: u32::try_from(size).unwrap_or(u32::MAX), align };
        let (region, address) = self.locate(&access, who)?;
        let writes = what != Use::Source;
        if writes && matches!(region, Region::Const | Region::Param) {
            return Err(Fault::ReadOnly { space: region.space() });
        }
        let block = self.block(region, address, who).ok_or_else(|| out_of_bounds(&access, None))?;
        if let Some(fault) = block.blocked(address, size, writes) {
            return Err(fault);
        }
        let mask = if let Use::Target(mask) = what { mask } else { u16::MAX };
        let claim = Claim { address, size, place: who.place, writes, mask };
        if what == Use::Atomic {
            if block.take(address, size).is_none() {
                return Err(out_of_bounds(&access, Some(block)));
            }
        } else {
            if !block.claim(operation, claim) {
                return Err(out_of_bounds(&access, Some(block)));
            }
            note(block, &claim, who)?;
        }
        Ok(Claimed { operation, region, address, size, what })
    }

    /// Ends a claim.
    pub fn release(&mut self, claimed: &Claimed) {
        if claimed.what == Use::Atomic {
            return;
        }
        if let Some(block) = self.block(claimed.region, claimed.address, &Accessor::default()) {
            block.release(claimed.operation, claimed.what != Use::Source);
        }
    }

    /// The contents of claimed bytes.
    pub fn take(&mut self, claimed: &Claimed) -> Bytes {
        let block = self.block(claimed.region, claimed.address, &Accessor::default());
        block.and_then(|b| b.take(claimed.address, claimed.size)).unwrap_or_default()
    }

    /// Writes claimed bytes; `who` is taken to do so.
    ///
    /// # Errors
    /// [`Fault::Race`].
    pub fn put(&mut self, claimed: &Claimed, bytes: &Bytes, who: &Accessor) -> Result<(), Fault> {
        let Some(block) = self.block(claimed.region, claimed.address, who) else { return Ok(()) };
        let mask = if let Use::Target(mask) = claimed.what { mask } else { u16::MAX };
        block.put(claimed.address, bytes, mask);
        let Claimed { address, size, .. } = *claimed;
        let claim = Claim { address, size, place: who.place, writes: true, mask };
        each_part(&claim, |address, count| match claimed.what {
            Use::Target(_) => {
                block.note_completion(address, count, who);
                Ok(())
            }
            _ => block.note_write(address, count, who, Kind::Atomic, false),
        })
    }

    /// The thread block's slot and the offset in its shared memory of an address of shared memory.
    pub fn shared_place(&self, space: Space, address: u64, slot: usize) -> Option<(usize, u64)> {
        match self.region(space, address, slot)? {
            (Region::Shared(slot), offset) => Some((slot, offset)),
            _ => None,
        }
    }

    /// Makes eight bytes of shared memory an mbarrier object, or ordinary memory again; false when they are none, or
    /// are so already.
    ///
    /// # Errors
    /// Any [`Fault`].
    pub fn mark_barrier(&mut self, place: (usize, u64), live: bool, who: &Accessor) -> Result<bool, Fault> {
        let (slot, address) = place;
        let Some(block) = self.block(Region::Shared(slot), address, who) else { return Ok(false) };
        if !block.mark_barrier(address, live) {
            return Ok(false);
        }
        block.note_write(address, 8, who, Kind::Plain, false)?;
        Ok(true)
    }

    /// Notes an operation on an mbarrier object for the race detector: it must be ordered after the initialization.
    ///
    /// # Errors
    /// [`Fault::Race`].
    pub fn note_barrier(&mut self, place: (usize, u64), who: &Accessor) -> Result<(), Fault> {
        let (slot, address) = place;
        match self.block(Region::Shared(slot), address, who) {
            // As a read: the initialization stays what the next use is compared with.
            Some(block) => block.note_read(address, 8, who, Kind::Atomic),
            None => Ok(()),
        }
    }
}

/// Notes that an operation begins to use the bytes of a claim.
fn note(block: &mut Block, claim: &Claim, who: &Accessor) -> Result<(), Fault> {
    each_part(claim, |address, count| match claim.writes {
        true => block.note_write(address, count, who, Kind::Plain, false),
        false => block.note_read(address, count, who, Kind::Plain),
    })
}

/// Runs of at most 16 bytes of a claim, of every 16 those of its mask.
fn each_part(claim: &Claim, mut note: impl FnMut(u64, u32) -> Result<(), Fault>) -> Result<(), Fault> {
    for at in (0..claim.size).step_by(16) {
        let address = claim.address + at;
        let count = (claim.size - at).min(16) as u32;
        if claim.mask == u16::MAX {
            note(address, count)?;
            continue;
        }
        for i in (0..count).filter(|i| claim.mask >> i & 1 != 0) {
            note(address + u64::from(i), 1)?;
        }
    }
    Ok(())
}
