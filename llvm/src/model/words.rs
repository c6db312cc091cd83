//! The closed sets of words of LLVM IR, each with its spelling.

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum $name {
            $(#[doc = concat!("`", $word, "`")] $variant,)*
        }

        impl $name {
            /// Every word, in order.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// The spelling in text.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }

            /// The word with that spelling.
            pub fn from_word(word: &[u8]) -> Option<$name> {
                $(if word == $word.as_bytes() { return Some($name::$variant); })*
                None
            }
        }
    };
}

words! {
    /// Arithmetic of two operands of one type.
    BinaryOp {
        Add = "add", Sub = "sub", Mul = "mul", UDiv = "udiv", SDiv = "sdiv", URem = "urem", SRem = "srem",
        Shl = "shl", LShr = "lshr", AShr = "ashr", And = "and", Or = "or", Xor = "xor",
        FAdd = "fadd", FSub = "fsub", FMul = "fmul", FDiv = "fdiv", FRem = "frem",
    }
}

words! {
    /// Conversions of one value.
    CastOp {
        Trunc = "trunc", ZExt = "zext", SExt = "sext", FPTrunc = "fptrunc", FPExt = "fpext", FPToUI = "fptoui",
        FPToSI = "fptosi", UIToFP = "uitofp", SIToFP = "sitofp", PtrToInt = "ptrtoint", PtrToAddr = "ptrtoaddr",
        IntToPtr = "inttoptr", BitCast = "bitcast", AddrSpaceCast = "addrspacecast",
    }
}

words! {
    /// Integer comparisons.
    IntPredicate {
        Eq = "eq", Ne = "ne", Ugt = "ugt", Uge = "uge", Ult = "ult", Ule = "ule", Sgt = "sgt", Sge = "sge",
        Slt = "slt", Sle = "sle",
    }
}

words! {
    /// Float comparisons.
    FloatPredicate {
        False = "false", Oeq = "oeq", Ogt = "ogt", Oge = "oge", Olt = "olt", Ole = "ole", One = "one", Ord = "ord",
        Uno = "uno", Ueq = "ueq", Ugt = "ugt", Uge = "uge", Ult = "ult", Ule = "ule", Une = "une", True = "true",
    }
}

words! {
    /// Orderings of memory accesses. A plain access is `notatomic`.
    Ordering {
        NotAtomic = "notatomic", Unordered = "unordered", Monotonic = "monotonic", Acquire = "acquire",
        Release = "release", AcqRel = "acq_rel", SeqCst = "seq_cst",
    }
}

words! {
    /// What `atomicrmw` does.
    RmwOp {
        Xchg = "xchg", Add = "add", Sub = "sub", And = "and", Nand = "nand", Or = "or", Xor = "xor", Max = "max",
        Min = "min", UMax = "umax", UMin = "umin", FAdd = "fadd", FSub = "fsub", FMax = "fmax", FMin = "fmin",
        UIncWrap = "uinc_wrap", UDecWrap = "udec_wrap", USubCond = "usub_cond", USubSat = "usub_sat",
        FMaximum = "fmaximum", FMinimum = "fminimum", FMaximumNum = "fmaximumnum", FMinimumNum = "fminimumnum",
    }
}

words! {
    /// What may be seen and merged across modules.
    Linkage {
        External = "external", AvailableExternally = "available_externally", LinkOnce = "linkonce",
        LinkOnceOdr = "linkonce_odr", Weak = "weak", WeakOdr = "weak_odr", Appending = "appending",
        Internal = "internal", Private = "private", ExternWeak = "extern_weak", Common = "common",
    }
}

impl Linkage {
    /// Not visible outside the module.
    pub fn is_local(self) -> bool {
        matches!(self, Linkage::Internal | Linkage::Private)
    }
}

words! {
    /// Visibility.
    Visibility { Default = "default", Hidden = "hidden", Protected = "protected", }
}

words! {
    /// `unnamed_addr`.
    UnnamedAddress { None = "", Local = "local_unnamed_addr", Global = "unnamed_addr", }
}

words! {
    /// How a call treats the caller's frame.
    TailCall { None = "", Tail = "tail", MustTail = "musttail", NoTail = "notail", }
}

words! {
    /// How a comdat picks among definitions.
    ComdatKind {
        Any = "any", ExactMatch = "exactmatch", Largest = "largest", NoDeduplicate = "nodeduplicate",
        SameSize = "samesize",
    }
}

words! {
    /// Exception handling instructions, which GPU code does not have; kept so that files with them are read.
    ExceptionOp {
        Resume = "resume", LandingPad = "landingpad", CatchSwitch = "catchswitch", CatchPad = "catchpad",
        CleanupPad = "cleanuppad", CatchRet = "catchret", CleanupRet = "cleanupret",
    }
}

words! {
    /// Debug records, which stand before an instruction (LLVM 19 and later).
    DebugRecordKind {
        Value = "dbg_value", Declare = "dbg_declare", Assign = "dbg_assign", Label = "dbg_label",
        DeclareValue = "dbg_declare_value",
    }
}

/// A calling convention by LLVM's number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct CallingConvention(pub u32);

impl CallingConvention {
    /// `ccc`.
    pub const C: CallingConvention = CallingConvention(0);
    /// `fastcc`.
    pub const FAST: CallingConvention = CallingConvention(8);
    /// `coldcc`.
    pub const COLD: CallingConvention = CallingConvention(9);
    /// `ptx_kernel`.
    pub const PTX_KERNEL: CallingConvention = CallingConvention(71);
    /// `ptx_device`.
    pub const PTX_DEVICE: CallingConvention = CallingConvention(72);
    /// `spir_func`.
    pub const SPIR_FUNC: CallingConvention = CallingConvention(75);
    /// `spir_kernel`.
    pub const SPIR_KERNEL: CallingConvention = CallingConvention(76);

    /// Whether functions of it are started from the host.
    pub fn is_kernel(self) -> bool {
        matches!(self, CallingConvention::PTX_KERNEL | CallingConvention::SPIR_KERNEL)
    }
}

/// Flags of instructions and constant expressions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(pub u32);

impl Flags {
    /// No flags.
    pub const NONE: Flags = Flags(0);
    /// No NaN.
    pub const NNAN: Flags = Flags(1);
    /// No infinities.
    pub const NINF: Flags = Flags(1 << 1);
    /// The sign of zero does not matter.
    pub const NSZ: Flags = Flags(1 << 2);
    /// A reciprocal may stand for a division.
    pub const ARCP: Flags = Flags(1 << 3);
    /// May be contracted.
    pub const CONTRACT: Flags = Flags(1 << 4);
    /// Approximate functions.
    pub const AFN: Flags = Flags(1 << 5);
    /// May be reassociated.
    pub const REASSOC: Flags = Flags(1 << 6);
    /// All of the above.
    pub const FAST: Flags = Flags(0x7f);
    /// No unsigned wrap (also of `trunc` and `getelementptr`).
    pub const NUW: Flags = Flags(1 << 7);
    /// No signed wrap (also of `trunc`).
    pub const NSW: Flags = Flags(1 << 8);
    /// No remainder.
    pub const EXACT: Flags = Flags(1 << 9);
    /// `or` of disjoint bits.
    pub const DISJOINT: Flags = Flags(1 << 10);
    /// The operand is not negative.
    pub const NNEG: Flags = Flags(1 << 11);
    /// The address stays inside the object.
    pub const INBOUNDS: Flags = Flags(1 << 12);
    /// No unsigned-signed wrap of an address.
    pub const NUSW: Flags = Flags(1 << 13);
    /// Both compared numbers have the same sign.
    pub const SAMESIGN: Flags = Flags(1 << 14);

    /// The flags with their words, in the order of text. `fast` and `inbounds` stand for several.
    pub const WORDS: &[(&str, Flags)] = &[
        ("nnan", Flags::NNAN),
        ("ninf", Flags::NINF),
        ("nsz", Flags::NSZ),
        ("arcp", Flags::ARCP),
        ("contract", Flags::CONTRACT),
        ("afn", Flags::AFN),
        ("reassoc", Flags::REASSOC),
        ("fast", Flags::FAST),
        ("inbounds", Flags(1 << 12 | 1 << 13)),
        ("nusw", Flags::NUSW),
        ("nuw", Flags::NUW),
        ("nsw", Flags::NSW),
        ("exact", Flags::EXACT),
        ("disjoint", Flags::DISJOINT),
        ("nneg", Flags::NNEG),
        ("samesign", Flags::SAMESIGN),
    ];

    /// Whether all of `flags` are set.
    pub fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// The flags of both.
    #[must_use]
    pub fn with(self, flags: Flags) -> Flags {
        Flags(self.0 | flags.0)
    }

    /// Only the fast-math flags.
    #[must_use]
    pub fn fast_math(self) -> Flags {
        Flags(self.0 & Flags::FAST.0)
    }
}
