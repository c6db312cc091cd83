//! The buffers of a launch in global memory.

use std::ops::Range;

use ptxc_ir::Space;

use super::grid::failure;
use crate::launch::{Argument, Buffer, Failure};
use crate::memory::Memory;

/// Places buffers in memory; gives their addresses.
///
/// # Errors
/// The memory does not take the contents.
pub fn place(buffers: &[Buffer], memory: &mut Memory) -> Result<Vec<u64>, Failure> {
    let one = |buffer: &Buffer| {
        let start = memory.allocate_global(&buffer.name, buffer.bytes.len() as u64, 256);
        if !buffer.uninitialized && !buffer.bytes.is_empty() {
            memory.initialize(Space::Global, start, &buffer.bytes).map_err(|fault| failure(fault.to_string()))?;
        }
        Ok(start)
    };
    buffers.iter().map(one).collect()
}

/// Copies the contents of memory back.
pub fn fetch(buffers: &mut [Buffer], starts: &[u64], memory: &Memory) {
    for (buffer, start) in buffers.iter_mut().zip(starts) {
        if let Some(bytes) = memory.global_bytes(*start) {
            buffer.bytes.copy_from_slice(bytes);
        }
    }
}

/// Buffers with poison in them, and where it is.
pub fn poison(starts: &[u64], memory: &Memory) -> Vec<(usize, Range<u64>)> {
    let of = |(index, start): (usize, &u64)| memory.global_poison(*start).into_iter().map(move |range| (index, range));
    starts.iter().enumerate().flat_map(of).collect()
}

/// The bytes of an argument.
///
/// # Errors
/// There is no such buffer.
pub fn argument(argument: &Argument, starts: &[u64]) -> Result<Vec<u8>, String> {
    match argument {
        Argument::Bytes(bytes) => Ok(bytes.clone()),
        Argument::Buffer { index, offset } => {
            let start = starts.get(*index).ok_or_else(|| format!("there is no buffer {index}"))?;
            Ok(start.wrapping_add(*offset).to_le_bytes().to_vec())
        }
    }
}
