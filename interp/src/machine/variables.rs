//! Where the variables of a module lie when it is launched.

use ptxc_ir::Space;

use crate::memory::{Block, Memory};

/// Most bytes of a variable.
const MOST: u64 = 1 << 30;
/// Most bytes of shared memory of a block, with the gaps between variables.
const MOST_SHARED: u64 = 256 << 10;

/// A variable of a module.
#[derive(Clone, Copy, Debug)]
pub struct Variable<'a> {
    /// Name.
    pub name: &'a str,
    /// Space: shared, constant or global.
    pub space: Space,
    /// Bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// Its size is what the launch says: shared memory behind all other.
    pub dynamic: bool,
}

/// Gives every variable its address in its space; lays out the shared memory of a block with `dynamic_shared` bytes at
/// its end.
///
/// # Errors
/// A variable, or a block's shared memory, is too large.
pub fn place<'a>(
    variables: impl Iterator<Item = Variable<'a>> + Clone,
    dynamic_shared: u32,
    memory: &mut Memory,
) -> Result<(Vec<u64>, Block), String> {
    let mut shared = memory.shared_layout();
    let mut addresses = Vec::new();
    let mut alignment = 16;
    for variable in variables.clone() {
        let Variable { name, size, align, .. } = variable;
        if size > MOST {
            return Err(format!("`{name}` has {size} bytes"));
        }
        addresses.push(match variable.space {
            Space::Shared if variable.dynamic => {
                alignment = alignment.max(align);
                0
            }
            Space::Shared if size > MOST_SHARED => return Err(format!("`{name}` has {size} bytes of shared memory")),
            Space::Shared => shared.allocate(size, align),
            Space::Const => memory.allocate_const(size, align),
            _ => memory.allocate_global(name, size, align),
        });
    }
    if shared.len() + u64::from(dynamic_shared) > MOST_SHARED {
        return Err(format!("a block has more than {MOST_SHARED} bytes of shared memory"));
    }
    let start = shared.allocate(dynamic_shared.into(), alignment);
    for (variable, address) in variables.zip(&mut addresses) {
        if variable.dynamic {
            *address = start;
        }
    }
    Ok((addresses, shared))
}
