//! Addresses of functions, and calls through them.

use super::{Lanes, Stop, lanes};
use crate::memory::CODE_WINDOW;

/// Bytes between the addresses of functions.
const STRIDE: u64 = 16;

/// The address of a function, by its number.
pub fn function_address(number: usize) -> u64 {
    CODE_WINDOW + STRIDE * (number as u64 + 1)
}

/// The number of the function with an address.
fn function_at(address: u64) -> Option<usize> {
    let offset = address.checked_sub(CODE_WINDOW)?;
    let number = (offset / STRIDE).checked_sub(1)?;
    usize::try_from(number).ok().filter(|_| offset % STRIDE == 0)
}

/// The number of the function that lanes call through addresses, and which of them do; lanes with another address call
/// later. There may be no function with the number.
///
/// # Errors
/// No function has the address.
pub fn call_through(addresses: &Lanes, mask: u32) -> Result<(usize, u32), Stop> {
    let address = lanes(mask).next().map_or(0, |lane| addresses[lane]);
    let number = function_at(address).ok_or_else(|| Stop::new(format!("no function has the address {address:#x}")))?;
    let same = lanes(mask).filter(|lane| addresses[*lane] == address).fold(0, |m, lane| m | 1 << lane);
    Ok((number, same))
}
