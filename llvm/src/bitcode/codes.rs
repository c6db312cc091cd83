//! Numbers of the format that several rooms of the reader share, and the words behind numbers.

use crate::model::{BinaryOp, CastOp, Flags, Linkage, Ordering, RmwOp};

/// Numbers of blocks.
pub mod block {
    /// A module.
    pub const MODULE: u32 = 8;
    /// Lists of attribute groups.
    pub const ATTRIBUTES: u32 = 9;
    /// Attribute groups.
    pub const ATTRIBUTE_GROUPS: u32 = 10;
    /// Constants.
    pub const CONSTANTS: u32 = 11;
    /// The body of a function.
    pub const FUNCTION: u32 = 12;
    /// Who wrote the file.
    pub const IDENTIFICATION: u32 = 13;
    /// Names of values.
    pub const SYMBOLS: u32 = 14;
    /// Metadata.
    pub const METADATA: u32 = 15;
    /// Metadata attached to instructions and functions.
    pub const ATTACHMENTS: u32 = 16;
    /// Types.
    pub const TYPES: u32 = 17;
    /// Tags of operand bundles.
    pub const BUNDLE_TAGS: u32 = 21;
    /// Names of kinds of metadata.
    pub const METADATA_KINDS: u32 = 22;
    /// Names of the symbols of a module.
    pub const STRINGS: u32 = 23;
    /// Names of synchronization scopes.
    pub const SCOPES: u32 = 26;
}

/// Names of attributes by their numbers; empty where there is none.
const ATTRIBUTES: &[&str] = &[
    "",
    "align",
    "alwaysinline",
    "byval",
    "inlinehint",
    "inreg",
    "minsize",
    "naked",
    "nest",
    "noalias",
    "nobuiltin",
    "nocapture",
    "noduplicate",
    "noimplicitfloat",
    "noinline",
    "nonlazybind",
    "noredzone",
    "noreturn",
    "nounwind",
    "optsize",
    "readnone",
    "readonly",
    "returned",
    "returns_twice",
    "signext",
    "alignstack",
    "ssp",
    "sspreq",
    "sspstrong",
    "sret",
    "sanitize_address",
    "sanitize_thread",
    "sanitize_memory",
    "uwtable",
    "zeroext",
    "builtin",
    "cold",
    "optnone",
    "inalloca",
    "nonnull",
    "jumptable",
    "dereferenceable",
    "dereferenceable_or_null",
    "convergent",
    "safestack",
    "argmemonly",
    "swiftself",
    "swifterror",
    "norecurse",
    "inaccessiblememonly",
    "inaccessiblemem_or_argmemonly",
    "allocsize",
    "writeonly",
    "speculatable",
    "strictfp",
    "sanitize_hwaddress",
    "nocf_check",
    "optforfuzzing",
    "shadowcallstack",
    "speculative_load_hardening",
    "immarg",
    "willreturn",
    "nofree",
    "nosync",
    "sanitize_memtag",
    "preallocated",
    "nomerge",
    "null_pointer_is_valid",
    "noundef",
    "byref",
    "mustprogress",
    "nocallback",
    "hot",
    "noprofile",
    "vscale_range",
    "swiftasync",
    "nosanitize_coverage",
    "elementtype",
    "disable_sanitizer_instrumentation",
    "nosanitize_bounds",
    "allocalign",
    "allocptr",
    "allockind",
    "presplitcoroutine",
    "fn_ret_thunk_extern",
    "skipprofile",
    "memory",
    "nofpclass",
    "optdebug",
    "writable",
    "coro_only_destroy_when_complete",
    "dead_on_unwind",
    "range",
    "sanitize_numerical_stability",
    "initializes",
    "hybrid_patchable",
    "sanitize_realtime",
    "sanitize_realtime_blocking",
    "coro_elide_safe",
    "noext",
    "nodivergencesource",
    "sanitize_type",
    "captures",
    "dead_on_return",
    "sanitize_alloc_token",
    "nocreateundeforpoison",
    "denormal_fpenv",
    "nooutline",
];

/// The name of the attribute with that number. A number that is not known gives a name that says so: attributes may be
/// ignored.
pub fn attribute(number: u64) -> String {
    let known = usize::try_from(number).ok().and_then(|number| ATTRIBUTES.get(number)).filter(|name| !name.is_empty());
    known.map_or_else(|| format!("attribute-{number}"), |name| (*name).to_owned())
}

/// Whether the attribute names the type behind a pointer.
pub fn is_about_pointee(name: &[u8]) -> bool {
    matches!(name, b"byval" | b"sret" | b"inalloca" | b"preallocated" | b"byref" | b"elementtype")
}

/// Whether the attribute with that number is `memory`.
pub fn is_memory(number: u64) -> bool {
    number == 86
}

/// What `memory` says, two bits for each kind of memory that text knows, without the version of the encoding. Before
/// the first version there was no kind for `errno`: what was said of all other memory was said of it, too.
pub fn memory_effects(encoded: u64) -> u64 {
    match encoded >> 56 {
        0 => encoded & 15 | (encoded >> 4 & 3) << 4 | (encoded >> 4 & 3) << 6,
        _ => encoded & 0xff,
    }
}

/// The linkage with that number, as newer and older files write it.
pub fn linkage(number: u64) -> Linkage {
    match number {
        1 | 16 => Linkage::Weak,
        2 => Linkage::Appending,
        3 => Linkage::Internal,
        4 | 18 => Linkage::LinkOnce,
        7 => Linkage::ExternWeak,
        8 => Linkage::Common,
        9 | 13 | 14 => Linkage::Private,
        10 | 17 => Linkage::WeakOdr,
        11 | 19 => Linkage::LinkOnceOdr,
        12 => Linkage::AvailableExternally,
        _ => Linkage::External,
    }
}

/// Arithmetic with that number, of floats or integers.
pub fn binary(number: u64, of_floats: bool) -> Option<BinaryOp> {
    use BinaryOp::*;
    const INTEGERS: [BinaryOp; 13] = [Add, Sub, Mul, UDiv, SDiv, URem, SRem, Shl, LShr, AShr, And, Or, Xor];
    match (number, of_floats) {
        (number, false) => usize::try_from(number).ok().and_then(|number| INTEGERS.get(number)).copied(),
        (0, true) => Some(FAdd),
        (1, true) => Some(FSub),
        (2, true) => Some(FMul),
        (4, true) => Some(FDiv),
        (6, true) => Some(FRem),
        _ => None,
    }
}

/// The conversion with that number.
pub fn cast(number: u64) -> Option<CastOp> {
    use CastOp::*;
    const CASTS: [CastOp; 14] = [
        Trunc,
        ZExt,
        SExt,
        FPToUI,
        FPToSI,
        UIToFP,
        SIToFP,
        FPTrunc,
        FPExt,
        PtrToInt,
        IntToPtr,
        BitCast,
        AddrSpaceCast,
        PtrToAddr,
    ];
    usize::try_from(number).ok().and_then(|number| CASTS.get(number)).copied()
}

/// What `atomicrmw` with that number does.
pub fn rmw(number: u64) -> Option<RmwOp> {
    // The numbers follow the order of the words.
    usize::try_from(number).ok().and_then(|number| RmwOp::ALL.get(number)).copied()
}

/// The ordering with that number.
pub fn ordering(number: u64) -> Ordering {
    let found = usize::try_from(number).ok().and_then(|number| Ordering::ALL.get(number));
    found.copied().unwrap_or(Ordering::SeqCst)
}

/// Fast-math flags.
pub fn fast_math(bits: u64) -> Flags {
    const BITS: [(u64, Flags); 8] = [
        // What older files call `fast`.
        (1, Flags::FAST),
        (1 << 1, Flags::NNAN),
        (1 << 2, Flags::NINF),
        (1 << 3, Flags::NSZ),
        (1 << 4, Flags::ARCP),
        (1 << 5, Flags::CONTRACT),
        (1 << 6, Flags::AFN),
        (1 << 7, Flags::REASSOC),
    ];
    collect(bits, &BITS)
}

/// Flags of arithmetic.
pub fn arithmetic_flags(op: BinaryOp, bits: u64) -> Flags {
    use BinaryOp::*;
    match op {
        Add | Sub | Mul | Shl => wrap_flags(bits),
        UDiv | SDiv | LShr | AShr => collect(bits, &[(1, Flags::EXACT)]),
        Or => collect(bits, &[(1, Flags::DISJOINT)]),
        FAdd | FSub | FMul | FDiv | FRem => fast_math(bits),
        URem | SRem | And | Xor => Flags::NONE,
    }
}

fn wrap_flags(bits: u64) -> Flags {
    collect(bits, &[(1, Flags::NUW), (2, Flags::NSW)])
}

/// Flags of a conversion.
pub fn cast_flags(op: CastOp, bits: u64) -> Flags {
    match op {
        CastOp::Trunc => wrap_flags(bits),
        CastOp::ZExt | CastOp::UIToFP => collect(bits, &[(1, Flags::NNEG)]),
        CastOp::FPTrunc | CastOp::FPExt => fast_math(bits),
        _ => Flags::NONE,
    }
}

/// Flags of address arithmetic. `inbounds` says `nusw`, too.
pub fn address_flags(bits: u64) -> Flags {
    collect(bits, &[(1, Flags::INBOUNDS.with(Flags::NUSW)), (2, Flags::NUSW), (4, Flags::NUW)])
}

fn collect(bits: u64, table: &[(u64, Flags)]) -> Flags {
    table.iter().filter(|(bit, _)| bits & bit != 0).fold(Flags::NONE, |all, (_, flag)| all.with(*flag))
}

/// A signed number whose sign is its lowest bit.
pub fn signed(value: u64) -> i64 {
    match value {
        // There is no negative zero: it stands for the smallest number.
        1 => i64::MIN,
        value if value & 1 == 0 => (value >> 1) as i64,
        value => ((value >> 1) as i64).wrapping_neg(),
    }
}
