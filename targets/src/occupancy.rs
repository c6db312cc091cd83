//! How many warps a multiprocessor holds, and how many registers that leaves to each.

use crate::timing::Model;

/// Lanes of a warp.
pub const WARP_SIZE: u32 = 32;

/// What keeps more blocks from a multiprocessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Their number itself.
    Blocks,
    /// The number of warps.
    Warps,
    /// The register file.
    Registers,
    /// Shared memory.
    Shared,
}

/// How full a multiprocessor gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occupancy {
    /// Blocks at once; 0 where not even one fits.
    pub blocks: u32,
    /// Warps at once.
    pub warps: u32,
    /// What limits them; the first in the order of [`Limit`] where several do.
    pub limit: Limit,
}

/// What a kernel promises of its launches (PTX ISA 11.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LaunchBounds {
    /// The most threads of a block: `.maxntid`, or the exact number, `.reqntid`. `None`: not promised, 1024.
    pub threads: Option<u32>,
    /// Blocks that a multiprocessor must hold at once: `.minnctapersm`.
    pub blocks: Option<u32>,
    /// `.maxnreg`.
    pub registers: Option<u32>,
}

impl Model {
    /// Registers of a multiprocessor, 32 bits each.
    pub fn registers(&self) -> u32 {
        self.row.registers
    }

    /// Most warps of a multiprocessor.
    pub fn warps(&self) -> u32 {
        self.row.warps
    }

    /// Most blocks of a multiprocessor.
    pub fn blocks(&self) -> u32 {
        self.row.blocks
    }

    /// Shared memory of a multiprocessor in bytes, at the largest split with the first-level cache.
    pub fn shared_bytes(&self) -> u32 {
        self.row.shared_kib * 1024
    }

    /// Parts of a multiprocessor with an instruction scheduler and a register file each.
    pub fn partitions(&self) -> u32 {
        self.row.partitions
    }

    /// How many blocks of `threads` threads fit that need `registers` registers a thread and `shared` bytes of shared
    /// memory a block.
    pub fn occupancy(&self, registers: u32, shared: u32, threads: u32) -> Occupancy {
        let row = self.row;
        let warps = threads.max(1).div_ceil(WARP_SIZE);
        let of_warp =
            registers.max(1).saturating_mul(WARP_SIZE).div_ceil(row.register_unit).saturating_mul(row.register_unit);
        let by_registers = row.registers / row.partitions / of_warp.max(1) * row.partitions / warps;
        let of_block =
            shared.saturating_add(row.shared_reserved).div_ceil(row.shared_unit).saturating_mul(row.shared_unit);
        let by_shared = self.shared_bytes().checked_div(of_block).unwrap_or(u32::MAX);
        let limits = [
            (Limit::Blocks, row.blocks),
            (Limit::Warps, row.warps / warps),
            (Limit::Registers, by_registers),
            (Limit::Shared, by_shared),
        ];
        let (limit, blocks) = limits.into_iter().min_by_key(|&(_, blocks)| blocks).unwrap_or((Limit::Blocks, 0));
        Occupancy { blocks, warps: blocks * threads.max(1).div_ceil(WARP_SIZE), limit }
    }

    /// The most registers that a thread may have under `bounds`, as the assembler grants them: such that the promised
    /// blocks fit, never fewer than one.
    pub fn register_budget(&self, bounds: LaunchBounds) -> u32 {
        const MOST: u32 = 255;
        let row = self.row;
        let threads = bounds.threads.unwrap_or(1024).clamp(1, 1024);
        let warps = threads.div_ceil(WARP_SIZE).saturating_mul(bounds.blocks.unwrap_or(1).max(1));
        let in_partition = warps.div_ceil(row.partitions).max(1);
        let of_warp = row.registers / row.partitions / in_partition / row.register_unit * row.register_unit;
        // Promises that no launch can keep leave what the fullest multiprocessor has.
        let fullest = row.registers / row.warps / WARP_SIZE;
        (of_warp / WARP_SIZE).max(fullest).min(bounds.registers.unwrap_or(MOST)).clamp(1, MOST)
    }
}
