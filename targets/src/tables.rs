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

/// One line of `types.isa`.
pub(crate) struct TypeRow {
    pub name: &'static str,
    pub container: crate::RegType,
    /// Bits in the order b u s f h p B.
    pub accepts: u8,
    pub int: bool,
    pub float: bool,
}

/// One `form`.
pub(crate) struct FormRow {
    pub syntax: &'static str,
    pub section: &'static str,
    pub slots: (u32, u32),
    pub operands: (u32, u32),
    pub rules: (u32, u32),
}

/// One piece of a form's mnemonic.
pub(crate) struct SlotRow {
    pub name: &'static str,
    pub optional: bool,
    pub start: u32,
    pub len: u32,
}

/// One operand, or one part of an address.
#[derive(Debug)]
pub(crate) struct OperandRow {
    pub name: &'static str,
    pub flags: u32,
    /// One more than the slot that says the space of the address.
    pub space: u8,
    /// Parts of an address, this one included; 0 where it is none.
    pub parts: u8,
    pub ty: u32,
    pub len: u32,
    pub cond: u32,
    pub small: u32,
    /// Type of the first element of a vector, where it differs.
    pub first: u32,
    pub lo: i64,
    pub hi: i64,
    /// Distance of the values from `lo` to `hi`; 0: powers of two.
    pub step: u16,
}

/// One rule: forbid (0, a message), require (1, a requirement), effect (2, bits).
pub(crate) struct RuleRow {
    pub kind: u8,
    pub value: u32,
    pub code: u32,
    pub dynamic: bool,
}

/// Flags of an operand.
#[path = "flag.rs"]
pub(crate) mod flag;

include!(concat!(env!("OUT_DIR"), "/tables.rs"));
