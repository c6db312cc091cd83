//! What is launched, and what comes of it: shared by everything that executes a program.

use std::fmt;
use std::ops::Range;

pub use crate::asynchronous::Completion;

/// A buffer in global memory that a launch may be given.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Buffer {
    /// Name in messages.
    pub name: String,
    /// Contents.
    pub bytes: Vec<u8>,
    /// The contents have never been written: reading them is reported.
    pub uninitialized: bool,
}

impl Buffer {
    /// A buffer with contents.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Buffer {
        Buffer { name: name.into(), bytes, uninitialized: false }
    }

    /// A buffer of little-endian 32-bit words.
    pub fn words(name: impl Into<String>, words: impl IntoIterator<Item = u32>) -> Buffer {
        Buffer::new(name, words.into_iter().flat_map(u32::to_le_bytes).collect())
    }

    /// A buffer whose contents are not initialized.
    pub fn output(name: impl Into<String>, size: usize) -> Buffer {
        Buffer { name: name.into(), bytes: vec![0; size], uninitialized: true }
    }

    /// The contents as little-endian 32-bit words; a rest of less than four bytes is left out.
    pub fn to_words(&self) -> Vec<u32> {
        self.bytes.chunks_exact(4).map(|c| c.iter().rev().fold(0, |n, b| n << 8 | u32::from(*b))).collect()
    }
}

/// An argument of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Argument {
    /// The little-endian bytes of the parameter's type.
    Bytes(Vec<u8>),
    /// The address of a byte of a buffer, by the buffer's index.
    Buffer {
        /// Which buffer.
        index: usize,
        /// Bytes from its start.
        offset: u64,
    },
}

impl Argument {
    /// A 32-bit integer.
    pub fn i32(value: i32) -> Argument {
        Argument::Bytes(value.to_le_bytes().to_vec())
    }

    /// A 64-bit integer.
    pub fn i64(value: i64) -> Argument {
        Argument::Bytes(value.to_le_bytes().to_vec())
    }

    /// A single-precision number.
    pub fn f32(value: f32) -> Argument {
        Argument::Bytes(value.to_le_bytes().to_vec())
    }

    /// The start of a buffer.
    pub fn buffer(index: usize) -> Argument {
        Argument::Buffer { index, offset: 0 }
    }
}

/// One launch of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launch {
    /// Kernel's name without `@`.
    pub kernel: String,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Blocks of a cluster in x, y, z; divides the grid.
    pub cluster: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// One a parameter.
    pub arguments: Vec<Argument>,
}

impl Launch {
    /// A launch of `grid` blocks of `block` threads in one dimension.
    pub fn linear(kernel: impl Into<String>, grid: u32, block: u32, arguments: Vec<Argument>) -> Launch {
        Launch {
            kernel: kernel.into(),
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            cluster: [1; 3],
            dynamic_shared: 0,
            arguments,
        }
    }

    /// Checks the sizes.
    ///
    /// # Errors
    /// Says which size is zero, too large, or does not divide another.
    pub fn check(&self) -> Result<(), String> {
        let volume = |x: [u32; 3]| x.iter().map(|n| u64::from(*n)).fold(1u64, u64::saturating_mul);
        for (what, sizes, most) in
            [("grid", self.grid, 1 << 31), ("block", self.block, 1024), ("cluster", self.cluster, 16)]
        {
            if volume(sizes) == 0 || volume(sizes) > most {
                return Err(format!("the {what} {sizes:?} is empty or has more than {most} elements"));
            }
        }
        if self.grid.iter().zip(self.cluster).any(|(g, c)| g % c != 0) {
            return Err(format!("the cluster {:?} does not divide the grid {:?}", self.cluster, self.grid));
        }
        Ok(())
    }
}

/// Limits and choices of an execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Most instructions, counted per warp.
    pub step_limit: u64,
    /// Most blocks that run side by side; clusters are started whole.
    pub resident: usize,
    /// Instructions a warp executes before another has its turn.
    pub slice: u32,
    /// Report races.
    pub races: bool,
    /// What memory holds before it is written.
    pub fill: u8,
    /// When asynchronous operations are done.
    pub completion: Completion,
}

impl Default for Options {
    fn default() -> Options {
        Options { step_limit: 1 << 32, resident: 16, slice: 256, races: true, fill: 0xa5, completion: Completion::Late }
    }
}

/// What an execution did.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Outcome {
    /// Instructions executed, counted per warp.
    pub steps: u64,
    /// Instructions executed, counted per thread.
    pub lane_steps: u64,
    /// Something was computed that hardware only approximates, so results may differ from its in the last places. The
    /// interpreter of the IR does not say.
    pub approximate: bool,
    /// What is suspicious and no error: the first read of uninitialized memory at each place.
    pub warnings: Vec<String>,
    /// Bytes of buffers that end as poison, in order: what is there is not specified.
    pub poison: Vec<(usize, Range<u64>)>,
}

/// Why an execution ended early, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// What is wrong.
    pub message: String,
    /// Function, instruction and source location.
    pub place: String,
    /// The thread, in words; empty when it is about no single one.
    pub thread: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !self.place.is_empty() {
            write!(f, ", at {}", self.place)?;
        }
        if !self.thread.is_empty() {
            write!(f, " ({})", self.thread)?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
