//! The memory spaces of a grid (PTX ISA chapter 5.1), with bounds, initialization and races.
//!
//! An address of a space is what PTX's own would be: an address of global memory is generic too; shared, local, constant
//! and parameter addresses are offsets, and have a window each among the generic addresses. `shared_cluster` addresses
//! hold the block's rank in the cluster plus one from bit 24 on; 0 there is the block itself, so every address of the
//! own block's shared memory is one of the cluster's.

mod block;
mod claim;
mod race;
#[cfg(test)]
mod tests;
mod wave;

use std::fmt;
use std::ops::Range;

pub use block::{Block, Bytes, Loaded};
pub use claim::{Claimed, Extent, Use};
use ptxc_ir::Space;
pub use race::{Accessor, Kind, NO_THREAD};
pub use wave::Wave;

/// First generic address of shared memory.
pub const SHARED_WINDOW: u64 = 0x7000_0000_0000;
/// First generic address of local memory.
pub const LOCAL_WINDOW: u64 = 0x7100_0000_0000;
/// First generic address of constant memory.
pub const CONST_WINDOW: u64 = 0x7200_0000_0000;
/// First generic address of parameters.
pub const PARAM_WINDOW: u64 = 0x7300_0000_0000;
/// First address of code.
pub const CODE_WINDOW: u64 = 0x7400_0000_0000;
/// First address of global memory.
pub const GLOBAL_BASE: u64 = 0x1000_0000_0000;
/// Bytes of a window.
const WINDOW: u64 = 1 << 40;
/// Bytes between allocations that belong to none.
const GAP: u64 = 256;
/// First bit of the rank plus one in a `shared_cluster` address.
pub const RANK_SHIFT: u32 = 24;

/// What is wrong with an access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It is not inside one allocation.
    OutOfBounds {
        /// Space as written.
        space: Space,
        /// Address in that space.
        address: u64,
        /// Bytes.
        size: u64,
        /// The allocation it begins in, or the nearest one below, with its first address and size.
        near: Option<(String, u64, u64)>,
    },
    /// The address is no multiple of the alignment.
    Misaligned {
        /// Address.
        address: u64,
        /// Alignment in bytes.
        align: u64,
    },
    /// The memory is read-only.
    ReadOnly {
        /// The space it lies in.
        space: Space,
    },
    /// Another thread's access, which nothing orders with this one.
    Race {
        /// Place number of the other access, as its accessor gave it.
        other: u32,
        /// Thread of the other access: block and thread in the grid.
        thread: (u32, u32),
        /// True when the other access is the write.
        other_writes: bool,
    },
    /// An asynchronous operation is not known to be complete that reads or writes the bytes.
    InFlight {
        /// Place number of the operation.
        other: u32,
        /// The operation writes them; else it reads them.
        writes: bool,
    },
    /// The bytes are an mbarrier object.
    Barrier {
        /// Address.
        address: u64,
    },
    /// The space has no such accesses.
    NoAccess {
        /// Space.
        space: Space,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::OutOfBounds { space, address, size, near } => {
                write!(f, "access of {size} bytes at {:#x} of {} memory is out of bounds", address, space.name())?;
                match near {
                    Some((name, base, len)) => {
                        let offset = i128::from(*address) - i128::from(*base);
                        write!(f, ": byte {offset} of `{name}`, which has {len} bytes")
                    }
                    None => Ok(()),
                }
            }
            Fault::Misaligned { address, align } => write!(f, "address {address:#x} is no multiple of {align}"),
            Fault::ReadOnly { space } => write!(f, "{} memory is not written", space.name()),
            Fault::Race { thread, other_writes, .. } => {
                let what = if *other_writes { "write" } else { "read" };
                let (block, thread) = *thread;
                if thread == race::NO_THREAD {
                    return write!(
                        f,
                        "race with a {what} of an asynchronous operation that nobody here has waited for"
                    );
                }
                write!(f, "race with a {what} of thread {thread} of block {block}")
            }
            Fault::InFlight { writes, .. } => {
                let what = if *writes { "writes" } else { "reads" };
                write!(f, "an asynchronous operation still {what} these bytes: nothing has waited for its end")
            }
            Fault::Barrier { address } => write!(f, "the bytes at {address:#x} are an mbarrier object"),
            Fault::NoAccess { space } => write!(f, "{} memory is not accessed this way", space.name()),
        }
    }
}

/// One access.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Space of the address.
    pub space: Space,
    /// Address in that space.
    pub address: u64,
    /// Bytes, at most 16.
    pub size: u32,
    /// Required alignment in bytes, a power of two.
    pub align: u64,
}

/// Where an address lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Region {
    Global,
    Const,
    Param,
    Local,
    /// Slot of the block that owns it.
    Shared(usize),
}

impl Region {
    fn space(self) -> Space {
        match self {
            Region::Global => Space::Global,
            Region::Const => Space::Const,
            Region::Param => Space::Param,
            Region::Local => Space::Local,
            Region::Shared(_) => Space::Shared,
        }
    }
}

/// Memory of one resident thread block.
#[derive(Clone, Debug)]
struct BlockMemory {
    shared: Block,
    /// One a thread: a stack.
    local: Vec<Block>,
    /// Slot of the block with rank 0 of its cluster, and blocks of the cluster: they have consecutive slots.
    cluster: (usize, u32),
}

/// All memory of a grid.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Ordered by address.
    global: Vec<Block>,
    /// The allocation the last access went to.
    recent: usize,
    constant: Block,
    param: Block,
    blocks: Vec<BlockMemory>,
    fill: u8,
    races: bool,
    looks: u64,
}

impl Memory {
    /// Empty memory. `fill` is what is read where nothing was written; `races` turns the race detector on.
    pub fn new(fill: u8, races: bool) -> Memory {
        Memory {
            global: Vec::new(),
            recent: 0,
            constant: Block::segment("constant memory", 0x100, fill),
            param: Block::segment("parameters", 0x10, fill),
            blocks: Vec::new(),
            fill,
            races,
            looks: 0,
        }
    }

    /// Allocates global memory; gives its address. The contents are uninitialized.
    pub fn allocate_global(&mut self, name: &str, size: u64, align: u64) -> u64 {
        let end = self.global.last().map_or(GLOBAL_BASE, |b| b.base() + b.len() + GAP);
        let base = end.next_multiple_of(align.max(256));
        self.global.push(Block::new(name, base, size, self.fill, self.races));
        base
    }

    /// Allocates constant memory; gives its address in constant space.
    pub fn allocate_const(&mut self, size: u64, align: u64) -> u64 {
        self.constant.allocate(size, align)
    }

    /// Allocates parameter memory; gives its address in parameter space.
    pub fn allocate_param(&mut self, size: u64, align: u64) -> u64 {
        self.param.allocate(size, align)
    }

    /// Writes initial contents, also of memory that programs do not write. `poison` marks the bytes instead.
    ///
    /// # Errors
    /// [`Fault::OutOfBounds`].
    pub fn initialize(&mut self, space: Space, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        let near = |b: &Block| Some((b.name().to_string(), b.base(), b.len()));
        let block = match space {
            Space::Const => &mut self.constant,
            Space::Param => &mut self.param,
            Space::Global => match find(&self.global, 0, address).and_then(|i| self.global.get_mut(i)) {
                Some(block) => block,
                None => return Err(Fault::OutOfBounds { space, address, size: bytes.len() as u64, near: None }),
            },
            _ => return Err(Fault::NoAccess { space }),
        };
        if block.fill_bytes(address, bytes) {
            return Ok(());
        }
        Err(Fault::OutOfBounds { space, address, size: bytes.len() as u64, near: near(block) })
    }

    /// Where the allocation of global memory that begins at this address has poison.
    pub fn global_poison(&self, address: u64) -> Vec<Range<u64>> {
        let block = find(&self.global, 0, address).and_then(|index| self.global.get(index));
        block.filter(|block| block.base() == address).map(Block::poison).unwrap_or_default()
    }

    /// The contents of the allocation of global memory that begins at this address.
    pub fn global_bytes(&self, address: u64) -> Option<&[u8]> {
        let block = self.global.get(find(&self.global, 0, address)?)?;
        (block.base() == address).then(|| block.bytes())
    }

    /// Gives a slot to a thread block: shared memory laid out as in `shared`, and an empty stack for every thread. The
    /// slots of a cluster are consecutive from `first`.
    pub fn start_block(&mut self, slot: usize, shared: &Block, threads: usize, cluster: (usize, u32)) {
        let local = vec![Block::segment("the stack", 0x10, self.fill); threads];
        let block = BlockMemory { shared: shared.clone(), local, cluster };
        while self.blocks.len() < slot {
            let empty = Block::segment("shared memory", 0x400, self.fill);
            self.blocks.push(BlockMemory { shared: empty, local: Vec::new(), cluster: (0, 0) });
        }
        match self.blocks.get_mut(slot) {
            Some(at) => *at = block,
            None => self.blocks.push(block),
        }
    }

    /// An empty layout of shared memory, to allocate variables in.
    pub fn shared_layout(&self) -> Block {
        let mut block = Block::segment("shared memory", 0x400, self.fill);
        if self.races {
            block.watch();
        }
        block
    }

    /// Allocates on a thread's stack; gives the address in local space.
    pub fn push_local(&mut self, slot: usize, thread: usize, size: u64, align: u64) -> Option<u64> {
        Some(self.blocks.get_mut(slot)?.local.get_mut(thread)?.allocate(size, align))
    }

    /// The height of a thread's stack.
    pub fn local_mark(&self, slot: usize, thread: usize) -> u64 {
        self.blocks.get(slot).and_then(|b| b.local.get(thread)).map_or(0, Block::len)
    }

    /// Drops what was allocated on a thread's stack since [`Memory::local_mark`] gave `mark`.
    pub fn pop_local(&mut self, slot: usize, thread: usize, mark: u64) {
        if let Some(stack) = self.blocks.get_mut(slot).and_then(|b| b.local.get_mut(thread)) {
            stack.truncate(mark);
        }
    }

    /// Copies bytes on a thread's stack with what is known of them.
    ///
    /// # Errors
    /// [`Fault::OutOfBounds`].
    pub fn copy_local(&mut self, slot: usize, thread: usize, from: u64, to: u64, size: u64) -> Result<(), Fault> {
        let stack = self.blocks.get_mut(slot).and_then(|b| b.local.get_mut(thread));
        match stack.and_then(|stack| stack.copy(from, to, size)) {
            Some(()) => Ok(()),
            None => Err(Fault::OutOfBounds { space: Space::Local, address: to, size, near: None }),
        }
    }

    fn region(&self, space: Space, address: u64, slot: usize) -> Option<(Region, u64)> {
        match space {
            Space::Global => Some((Region::Global, address)),
            Space::Const => Some((Region::Const, address)),
            Space::Param => Some((Region::Param, address)),
            Space::Local => Some((Region::Local, address)),
            Space::Shared | Space::SharedCluster => {
                let (first, count) = self.blocks.get(slot)?.cluster;
                match address >> RANK_SHIFT {
                    0 => Some((Region::Shared(slot), address)),
                    rank if rank <= u64::from(count) && space == Space::SharedCluster => {
                        Some((Region::Shared(first + rank as usize - 1), address & ((1 << RANK_SHIFT) - 1)))
                    }
                    _ => None,
                }
            }
            Space::Generic => {
                let (space, address) = from_generic(address);
                let space = if space == Space::Shared { Space::SharedCluster } else { space };
                self.region(space, address, slot)
            }
            Space::Tensor => None,
        }
    }

    fn block(&mut self, region: Region, address: u64, who: &Accessor) -> Option<&mut Block> {
        match region {
            Region::Global => {
                let index = find(&self.global, self.recent, address)?;
                self.recent = index;
                self.global.get_mut(index)
            }
            Region::Const => Some(&mut self.constant),
            Region::Param => Some(&mut self.param),
            Region::Local => self.blocks.get_mut(who.slot)?.local.get_mut(who.thread as usize),
            Region::Shared(slot) => Some(&mut self.blocks.get_mut(slot)?.shared),
        }
    }

    fn locate(&mut self, access: &Access, who: &Accessor) -> Result<(Region, u64), Fault> {
        if access.address & (access.align - 1) != 0 {
            return Err(Fault::Misaligned { address: access.address, align: access.align });
        }
        self.region(access.space, access.address, who.slot).ok_or_else(|| out_of_bounds(access, None))
    }

    /// How often threads have read what others may be about to write: atomics, volatile accesses, mbarrier objects.
    #[inline]
    pub fn looks(&self) -> u64 {
        self.looks
    }

    /// Notes that a thread reads memory.
    #[inline]
    pub(crate) fn look(&mut self, kind: Kind) {
        self.looks += u64::from(kind == Kind::Atomic);
    }

    /// Reads at most 16 bytes.
    ///
    /// # Errors
    /// Any [`Fault`].
    #[inline]
    pub fn load(&mut self, access: &Access, who: &Accessor, kind: Kind) -> Result<Loaded, Fault> {
        self.look(kind);
        let (region, address) = self.locate(access, who)?;
        let block = self.block(region, address, who).ok_or_else(|| out_of_bounds(access, None))?;
        let Some(loaded) = block.load(address, access.size) else { return Err(out_of_bounds(access, Some(block))) };
        if let Some(fault) = block.blocked(address, access.size.into(), false) {
            return Err(fault);
        }
        block.note_read(address, access.size, who, kind)?;
        Ok(loaded)
    }

    /// Writes the low `access.size` bytes of `bits`, at most 16, or poison.
    ///
    /// # Errors
    /// Any [`Fault`].
    #[inline]
    pub fn store(
        &mut self,
        access: &Access,
        bits: u128,
        poison: bool,
        who: &Accessor,
        kind: Kind,
    ) -> Result<(), Fault> {
        let (region, address) = self.locate(access, who)?;
        if matches!(region, Region::Const | Region::Param) {
            return Err(Fault::ReadOnly { space: region.space() });
        }
        let block = self.block(region, address, who).ok_or_else(|| out_of_bounds(access, None))?;
        if let Some(fault) = block.blocked(address, access.size.into(), true) {
            return Err(fault);
        }
        let Some(same) = block.store(address, access.size, bits, poison) else {
            return Err(out_of_bounds(access, Some(block)));
        };
        block.note_write(address, access.size, who, kind, same)
    }
}

fn out_of_bounds(access: &Access, block: Option<&Block>) -> Fault {
    let near = block.map(|b| (b.name().to_string(), b.base(), b.len()));
    Fault::OutOfBounds { space: access.space, address: access.address, size: access.size.into(), near }
}

/// The allocation with the highest address not above this one; `recent` is looked at first.
fn find(blocks: &[Block], recent: usize, address: u64) -> Option<usize> {
    if let Some(block) = blocks.get(recent)
        && address.wrapping_sub(block.base()) < block.len()
    {
        return Some(recent);
    }
    blocks.partition_point(|b| b.base() <= address).checked_sub(1)
}

/// The space that a generic address lies in, and the address in it.
pub fn from_generic(address: u64) -> (Space, u64) {
    for (window, space) in [
        (SHARED_WINDOW, Space::Shared),
        (LOCAL_WINDOW, Space::Local),
        (CONST_WINDOW, Space::Const),
        (PARAM_WINDOW, Space::Param),
    ] {
        if address.wrapping_sub(window) < WINDOW {
            return (space, address - window);
        }
    }
    (Space::Global, address)
}

/// True of an address in global memory.
pub fn is_global(space: Space, address: u64) -> bool {
    match space {
        Space::Generic => from_generic(address).0 == Space::Global,
        space => space == Space::Global,
    }
}

/// The generic address of an address. Null stays null only in global memory, as in PTX.
pub fn to_generic(space: Space, address: u64) -> u64 {
    match space {
        Space::Shared | Space::SharedCluster => SHARED_WINDOW.wrapping_add(address),
        Space::Local => LOCAL_WINDOW.wrapping_add(address),
        Space::Const => CONST_WINDOW.wrapping_add(address),
        Space::Param => PARAM_WINDOW.wrapping_add(address),
        Space::Generic | Space::Global | Space::Tensor => address,
    }
}

/// The address in a space of a generic address; what it is outside the window is unspecified.
pub fn to_space(space: Space, generic: u64) -> u64 {
    generic.wrapping_sub(to_generic(space, 0))
}

/// The `shared_cluster` address in the block with a rank in the cluster of an address of shared memory (`mapa`).
pub fn at_rank(address: u64, rank: u32) -> u64 {
    (address & ((1 << RANK_SHIFT) - 1)) | u64::from(rank + 1) << RANK_SHIFT
}
