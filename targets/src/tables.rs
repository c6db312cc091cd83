//! The static tables that the build script makes of `isa/`.

/// Hash of a token's text (FNV-1a); the build script uses the same.
pub(crate) fn hash_text(text: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5u32;
    for &byte in text {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    hash ^ (hash >> 15)
}

/// One line of `targets.isa`.
pub(crate) struct TargetRow {
    pub name: &'static str,
    pub number: u16,
    pub suffix: u8,
    pub ptx: u8,
    pub family: u16,
    pub shared_kib: u16,
    pub cluster: bool,
    pub wide: bool,
}

/// One line of `special_registers.isa`.
pub(crate) struct SpecialRow {
    pub name: &'static str,
    pub ty: crate::RegType,
    pub lanes: u8,
    pub uniform: u8,
    pub volatile: bool,
    pub requirement: u16,
}

/// What something requires: the lowest `.version` on each target.
pub(crate) struct Requirement {
    pub text: &'static str,
    /// By target index: version as `major * 10 + minor`, 255 where refused.
    pub versions: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/tables.rs"));
