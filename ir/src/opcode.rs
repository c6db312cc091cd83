//! The generic instruction set, declared once.
//!
//! One line per opcode: its text, its shape (how it is written and what it carries), the types it takes, the flags it
//! takes, and what it does besides computing. Reader, printer, verifier, builder and passes read this table; nothing
//! about an opcode is stated anywhere else.

/// How an instruction is written, what its operands are and what results it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// `OP T %a` → T
    Unary,
    /// `OP T %a, %b` → T
    Binary,
    /// `OP T %a, %b` → T, bool(T)
    BinaryOverflow,
    /// `OP T %a, %b, %c` → T
    Ternary,
    /// `fclass T %a, MASK` → bool(T); the mask is `Extra::Imm`
    FloatClass,
    /// `OP T %a to U` → U; `ty` is U, T is the operand's own type
    Convert,
    /// `OP T %a, %bits to U` → U; `ty` is U, T is the operand's own type, the random bits are an i32
    ConvertRandom,
    /// `icmp CC T %a, %b` → bool(T); `ty` is T
    IntCompare,
    /// `fcmp CC T %a, %b` → bool(T); `ty` is T
    FloatCompare,
    /// `select C %c, T %a, %b` → T
    Select,
    /// `vector <n x T> %a, …` → the vector type
    BuildVector,
    /// `extract <n x T> %v, %i` → T; `ty` is the vector type
    Extract,
    /// `insert <n x T> %v, %x, %i` → the vector type
    Insert,
    /// `shuffle <n x T> %a, %b, [mask]` → `<m x T>`; `ty` is the source vector type, the mask `Extra::Mask`
    Shuffle,
    /// `splat <n x T> %x` → the vector type
    Splat,
    /// `reduce.K <n x T> %v` → T; `ty` is the vector type
    Reduce,
    /// `load T, %p, attrs` → T
    Load,
    /// `store T %v, %p, attrs`; arguments are value, pointer
    Store,
    /// `atomicrmw OP T %p, %v, attrs` → T
    AtomicRmw,
    /// `cmpxchg T %p, %expected, %new, attrs` → T, i1
    Cmpxchg,
    /// `fence ORDER, scope(S)`
    Fence,
    /// `OP %dst, %src, %n, attrs`
    MemCopy,
    /// `memset %dst, %byte, %n, attrs`
    MemSet,
    /// `gep T, %p, %i…` → the type of `%p`
    Gep,
    /// `alloca T, count N, align A` → `ptr<local>`
    Alloca,
    /// `isspace S %p` → i1
    IsSpace,
    /// `jump b(args)`
    Jump,
    /// `br %c, t(args), f(args)`
    Branch,
    /// `switch T %x, default(args) [k: b(args), …]`
    Switch,
    /// `ret %x, …`
    Return,
    /// no operands
    Nullary,
    /// `call @f(args)` → the callee's returns
    Call,
    /// `call_indirect (T, …) -> R, %fp(args)` → R; arguments are pointer, then the call's
    CallIndirect,
    /// `OP %c` with an i1
    Predicate,
    /// `sreg.NAME` → the register's type
    Sreg,
    /// `OP [aligned] %id [, %count]`
    BarrierSync,
    /// `barrier.red.K [aligned] %id, [%count,] %pred` → i32 or i1
    BarrierReduce,
    /// `OP %mask`
    WarpMask,
    /// `shfl.K T %x, %lane, %clamp, %mask` → T [, i1]
    Shuffle4,
    /// `vote.K %pred, %mask` → i1
    Vote,
    /// `vote.ballot %pred, %mask` → i32
    Ballot,
    /// `match.any T %x, %mask` → i32
    MatchAny,
    /// `match.all T %x, %mask` → i32, i1
    MatchAll,
    /// `activemask` → i32
    ActiveMask,
    /// `redux.K T %x, %mask` → T
    Redux,
    /// `elect %mask` → i32, i1
    Elect,
    /// `ptx.…`
    Target,
    /// `asm "…", (…) -> (…)`
    Asm,
}

/// Which controlling types an opcode takes; vectors of the kind are included unless the name says scalar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypeSet {
    /// No controlling type.
    None,
    /// Integers and vectors of integers.
    Int,
    /// Integers of a multiple of 16 bits, and vectors of them.
    Int16s,
    /// f16, bf16, f32, f64 and vectors of them.
    Float,
    /// Integers, pointers and vectors of them.
    IntPtr,
    /// Any value type.
    Any,
    /// Any vector type.
    Vector,
    /// Vector of integers.
    IntVector,
    /// Vector of f16, bf16, f32, f64.
    FloatVector,
    /// i32 scalar.
    I32,
    /// f32 scalar.
    F32,
    /// Scalar integers, i8 and wider powers of two to 128, floats and pointers, and packed 32-bit float vectors: what atomics take.
    Atomic,
}

/// What an opcode does besides computing its results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing: may be moved, duplicated and removed.
    Pure,
    /// As `Pure`, but may be undefined for some operands (division): not speculated.
    Traps,
    /// Reads memory.
    Read,
    /// Writes memory.
    Write,
    /// Reads and writes memory, or orders it.
    ReadWrite,
    /// Depends on which threads execute it together: no change of control dependence; also orders memory when a barrier.
    Convergent,
    /// Ends a block.
    Terminator,
    /// Looked up elsewhere: the callee or the instruction table of the target.
    Table,
    /// Has an effect that is neither memory nor control (`assume`, `breakpoint`).
    Other,
}

macro_rules! opcodes {
    ($($(#[$doc:meta])* $name:ident $text:literal $shape:ident $types:ident [$($flag:ident)*] $effect:ident;)*) => {
        /// A generic instruction's operation.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Opcode { $(#[doc = $text] $name,)* }

        impl Opcode {
            /// Every opcode, in declaration order.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$name,)*];
        }

        const TABLE: &[OpcodeInfo] = &[$(OpcodeInfo {
            text: $text,
            shape: Shape::$shape,
            types: TypeSet::$types,
            flags: 0 $(| crate::flags::group::$flag)*,
            effect: Effect::$effect,
        },)*];
    };
}

/// The table row of an opcode.
#[derive(Clone, Copy, Debug)]
pub struct OpcodeInfo {
    /// Spelling in IR text.
    pub text: &'static str,
    /// Written form, operands and results.
    pub shape: Shape,
    /// Controlling types.
    pub types: TypeSet,
    /// Mask of the [`crate::Flags`] it accepts.
    pub flags: u32,
    /// Effect class.
    pub effect: Effect,
}

opcodes! {
    Add "add" Binary Int [WRAP] Pure;
    Sub "sub" Binary Int [WRAP] Pure;
    Mul "mul" Binary Int [WRAP] Pure;
    Udiv "udiv" Binary Int [EXACT] Traps;
    Sdiv "sdiv" Binary Int [EXACT] Traps;
    Urem "urem" Binary Int [] Traps;
    Srem "srem" Binary Int [] Traps;
    And "and" Binary Int [] Pure;
    Or "or" Binary Int [DISJOINT] Pure;
    Xor "xor" Binary Int [] Pure;
    Shl "shl" Binary Int [WRAP] Pure;
    Lshr "lshr" Binary Int [EXACT] Pure;
    Ashr "ashr" Binary Int [EXACT] Pure;
    Smin "smin" Binary Int [] Pure;
    Smax "smax" Binary Int [] Pure;
    Umin "umin" Binary Int [] Pure;
    Umax "umax" Binary Int [] Pure;
    Umulh "umulh" Binary Int [] Pure;
    Smulh "smulh" Binary Int [] Pure;
    Clmul "clmul" Binary Int [] Pure;
    UaddSat "uadd_sat" Binary Int [] Pure;
    SaddSat "sadd_sat" Binary Int [] Pure;
    UsubSat "usub_sat" Binary Int [] Pure;
    SsubSat "ssub_sat" Binary Int [] Pure;
    UshlSat "ushl_sat" Binary Int [] Pure;
    SshlSat "sshl_sat" Binary Int [] Pure;
    UaddOverflow "uadd_overflow" BinaryOverflow Int [] Pure;
    SaddOverflow "sadd_overflow" BinaryOverflow Int [] Pure;
    UsubOverflow "usub_overflow" BinaryOverflow Int [] Pure;
    SsubOverflow "ssub_overflow" BinaryOverflow Int [] Pure;
    UmulOverflow "umul_overflow" BinaryOverflow Int [] Pure;
    SmulOverflow "smul_overflow" BinaryOverflow Int [] Pure;
    Abs "abs" Unary Int [NSW] Pure;
    Ctpop "ctpop" Unary Int [] Pure;
    Ctlz "ctlz" Unary Int [NONZERO] Pure;
    Cttz "cttz" Unary Int [NONZERO] Pure;
    Bswap "bswap" Unary Int16s [] Pure;
    Bitreverse "bitreverse" Unary Int [] Pure;
    Fshl "fshl" Ternary Int [] Pure;
    Fshr "fshr" Ternary Int [] Pure;

    Fadd "fadd" Binary Float [FAST ROUND FTZ SAT] Pure;
    Fsub "fsub" Binary Float [FAST ROUND FTZ SAT] Pure;
    Fmul "fmul" Binary Float [FAST ROUND FTZ SAT] Pure;
    Fdiv "fdiv" Binary Float [FAST ROUND FTZ] Pure;
    Frem "frem" Binary Float [FAST] Pure;
    Fmin "fmin" Binary Float [FAST FTZ] Pure;
    Fmax "fmax" Binary Float [FAST FTZ] Pure;
    Fminimum "fminimum" Binary Float [FAST FTZ] Pure;
    Fmaximum "fmaximum" Binary Float [FAST FTZ] Pure;
    Copysign "copysign" Binary Float [FAST] Pure;
    Fma "fma" Ternary Float [FAST ROUND FTZ SAT RELU] Pure;
    Fneg "fneg" Unary Float [FAST FTZ] Pure;
    Fabs "fabs" Unary Float [FAST FTZ] Pure;
    Fsqrt "fsqrt" Unary Float [FAST ROUND FTZ] Pure;
    Frsqrt "frsqrt" Unary Float [FAST FTZ] Pure;
    Frcp "frcp" Unary Float [FAST ROUND FTZ] Pure;
    Ffloor "ffloor" Unary Float [FAST FTZ] Pure;
    Fceil "fceil" Unary Float [FAST FTZ] Pure;
    Ftrunc "ftrunc" Unary Float [FAST FTZ] Pure;
    Frint "frint" Unary Float [FAST FTZ] Pure;
    Fround "fround" Unary Float [FAST FTZ] Pure;
    Fsin "fsin" Unary Float [FAST FTZ] Pure;
    Fcos "fcos" Unary Float [FAST FTZ] Pure;
    Fexp2 "fexp2" Unary Float [FAST FTZ] Pure;
    Flog2 "flog2" Unary Float [FAST FTZ] Pure;
    Ftanh "ftanh" Unary Float [FAST FTZ] Pure;
    Fclass "fclass" FloatClass Float [] Pure;

    Trunc "trunc" Convert Int [WRAP] Pure;
    Zext "zext" Convert Int [NNEG] Pure;
    Sext "sext" Convert Int [] Pure;
    Fptrunc "fptrunc" Convert Any [FAST ROUND FTZ SAT RELU] Pure;
    FptruncStochastic "fptrunc_stochastic" ConvertRandom Any [SAT RELU] Pure;
    Fpext "fpext" Convert Any [FAST FTZ] Pure;
    Fptoui "fptoui" Convert Int [ROUND FTZ] Pure;
    Fptosi "fptosi" Convert Int [ROUND FTZ] Pure;
    FptouiSat "fptoui_sat" Convert Int [ROUND FTZ] Pure;
    FptosiSat "fptosi_sat" Convert Int [ROUND FTZ] Pure;
    Uitofp "uitofp" Convert Float [ROUND NNEG] Pure;
    Sitofp "sitofp" Convert Float [ROUND] Pure;
    Bitcast "bitcast" Convert Any [] Pure;
    Ptrtoint "ptrtoint" Convert Int [] Pure;
    Inttoptr "inttoptr" Convert Any [] Pure;
    Addrspacecast "addrspacecast" Convert Any [] Pure;

    Icmp "icmp" IntCompare IntPtr [] Pure;
    Fcmp "fcmp" FloatCompare Float [FAST FTZ] Pure;
    Select "select" Select Any [FAST] Pure;
    Freeze "freeze" Unary Any [] Pure;

    Vector "vector" BuildVector Vector [] Pure;
    Extract "extract" Extract Vector [] Pure;
    Insert "insert" Insert Vector [] Pure;
    Shuffle "shuffle" Shuffle Vector [] Pure;
    Splat "splat" Splat Vector [] Pure;
    ReduceAdd "reduce.add" Reduce IntVector [] Pure;
    ReduceMul "reduce.mul" Reduce IntVector [] Pure;
    ReduceAnd "reduce.and" Reduce IntVector [] Pure;
    ReduceOr "reduce.or" Reduce IntVector [] Pure;
    ReduceXor "reduce.xor" Reduce IntVector [] Pure;
    ReduceSmin "reduce.smin" Reduce IntVector [] Pure;
    ReduceSmax "reduce.smax" Reduce IntVector [] Pure;
    ReduceUmin "reduce.umin" Reduce IntVector [] Pure;
    ReduceUmax "reduce.umax" Reduce IntVector [] Pure;
    ReduceFadd "reduce.fadd" Reduce FloatVector [FAST FTZ] Pure;
    ReduceFmul "reduce.fmul" Reduce FloatVector [FAST FTZ] Pure;
    ReduceFmin "reduce.fmin" Reduce FloatVector [FAST FTZ] Pure;
    ReduceFmax "reduce.fmax" Reduce FloatVector [FAST FTZ] Pure;
    ReduceFminimum "reduce.fminimum" Reduce FloatVector [FAST FTZ] Pure;
    ReduceFmaximum "reduce.fmaximum" Reduce FloatVector [FAST FTZ] Pure;

    Load "load" Load Any [] Read;
    Store "store" Store Any [] Write;
    AtomicRmw "atomicrmw" AtomicRmw Atomic [] ReadWrite;
    Cmpxchg "cmpxchg" Cmpxchg Atomic [WEAK] ReadWrite;
    Fence "fence" Fence None [] ReadWrite;
    Memcpy "memcpy" MemCopy None [] ReadWrite;
    Memmove "memmove" MemCopy None [] ReadWrite;
    Memset "memset" MemSet None [] Write;
    Gep "gep" Gep None [INBOUNDS] Pure;
    Alloca "alloca" Alloca None [] Other;
    IsSpace "isspace" IsSpace None [] Pure;

    Jump "jump" Jump None [] Terminator;
    Br "br" Branch None [UNIFORM] Terminator;
    Switch "switch" Switch Int [] Terminator;
    Ret "ret" Return None [] Terminator;
    Unreachable "unreachable" Nullary None [] Terminator;
    Trap "trap" Nullary None [] Terminator;
    Exit "exit" Nullary None [] Terminator;
    Call "call" Call None [NONCONVERGENT] Table;
    CallIndirect "call_indirect" CallIndirect None [NONCONVERGENT] Table;
    Assume "assume" Predicate None [] Other;
    Breakpoint "breakpoint" Nullary None [] Other;

    Sreg "sreg" Sreg None [] Pure;
    BarrierSync "barrier.sync" BarrierSync None [ALIGNED] Convergent;
    BarrierArrive "barrier.arrive" BarrierSync None [ALIGNED] Convergent;
    BarrierRedPopc "barrier.red.popc" BarrierReduce None [ALIGNED] Convergent;
    BarrierRedAnd "barrier.red.and" BarrierReduce None [ALIGNED] Convergent;
    BarrierRedOr "barrier.red.or" BarrierReduce None [ALIGNED] Convergent;
    BarrierWarp "barrier.warp" WarpMask None [] Convergent;
    ShflIdx "shfl.idx" Shuffle4 Any [] Convergent;
    ShflUp "shfl.up" Shuffle4 Any [] Convergent;
    ShflDown "shfl.down" Shuffle4 Any [] Convergent;
    ShflBfly "shfl.bfly" Shuffle4 Any [] Convergent;
    VoteAll "vote.all" Vote None [] Convergent;
    VoteAny "vote.any" Vote None [] Convergent;
    VoteUni "vote.uni" Vote None [] Convergent;
    VoteBallot "vote.ballot" Ballot None [] Convergent;
    MatchAny "match.any" MatchAny Any [] Convergent;
    MatchAll "match.all" MatchAll Any [] Convergent;
    ActiveMask "activemask" ActiveMask None [] Convergent;
    ReduxAdd "redux.add" Redux I32 [] Convergent;
    ReduxSmin "redux.smin" Redux I32 [] Convergent;
    ReduxSmax "redux.smax" Redux I32 [] Convergent;
    ReduxUmin "redux.umin" Redux I32 [] Convergent;
    ReduxUmax "redux.umax" Redux I32 [] Convergent;
    ReduxAnd "redux.and" Redux I32 [] Convergent;
    ReduxOr "redux.or" Redux I32 [] Convergent;
    ReduxXor "redux.xor" Redux I32 [] Convergent;
    ReduxFmin "redux.fmin" Redux F32 [] Convergent;
    ReduxFmax "redux.fmax" Redux F32 [] Convergent;
    ReduxFminimum "redux.fminimum" Redux F32 [] Convergent;
    ReduxFmaximum "redux.fmaximum" Redux F32 [] Convergent;
    Elect "elect" Elect None [] Convergent;

    Target "ptx" Target None [] Table;
    Asm "asm" Asm None [PURE NONCONVERGENT] Table;
}

impl Opcode {
    /// This opcode's row.
    pub fn info(self) -> &'static OpcodeInfo {
        &TABLE[self as usize]
    }

    /// Spelling in IR text.
    pub fn text(self) -> &'static str {
        self.info().text
    }

    /// Written form.
    pub fn shape(self) -> Shape {
        self.info().shape
    }

    /// True when it ends a block.
    pub fn is_terminator(self) -> bool {
        self.info().effect == Effect::Terminator
    }

    /// The opcode spelled `text`, if any (`sreg.*`, `ptx.*` and `asm` are spelled with more than the opcode).
    pub fn from_text(text: &str) -> Option<Opcode> {
        use rustc_hash::FxHashMap;
        use std::sync::OnceLock;
        static BY_TEXT: OnceLock<FxHashMap<&'static str, Opcode>> = OnceLock::new();
        BY_TEXT.get_or_init(|| Opcode::ALL.iter().map(|op| (op.text(), *op)).collect()).get(text).copied()
    }
}

macro_rules! named_codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum $name { $(#[doc = $text] $variant,)* }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Spelling in IR text.
            pub fn text(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The value spelled `text`.
            pub fn from_text(text: &str) -> Option<$name> {
                match text { $($text => Some($name::$variant),)* _ => None }
            }
        }
    };
}

named_codes! {
    /// Integer comparisons.
    IntCC {
        Eq "eq", Ne "ne", Ult "ult", Ule "ule", Ugt "ugt", Uge "uge", Slt "slt", Sle "sle", Sgt "sgt", Sge "sge",
    }
}

named_codes! {
    /// Float comparisons: `o…` is false and `u…` true when an operand is NaN.
    FloatCC {
        False "false", Oeq "oeq", Ogt "ogt", Oge "oge", Olt "olt", Ole "ole", One "one", Ord "ord",
        Uno "uno", Ueq "ueq", Ugt "ugt", Uge "uge", Ult "ult", Ule "ule", Une "une", True "true",
    }
}

named_codes! {
    /// Read-modify-write operations of `atomicrmw`.
    AtomicOp {
        Xchg "xchg", Add "add", Sub "sub", And "and", Nand "nand", Or "or", Xor "xor", Smax "smax", Smin "smin",
        Umax "umax", Umin "umin", Fadd "fadd", Fsub "fsub", Fmax "fmax", Fmin "fmin", UincWrap "uinc_wrap", UdecWrap "udec_wrap",
    }
}

named_codes! {
    /// Memory orders (PTX ISA chapter 8); `NotAtomic` is a plain access.
    Ordering {
        NotAtomic "notatomic", Relaxed "relaxed", Acquire "acquire", Release "release", AcqRel "acq_rel", SeqCst "seq_cst",
    }
}

named_codes! {
    /// Scopes of atomic operations and fences.
    Scope { Cta "cta", Cluster "cluster", Gpu "gpu", Sys "sys", }
}

named_codes! {
    /// Cache operators (PTX ISA 9.7.10.1).
    CacheOp { None "none", Ca "ca", Cg "cg", Cs "cs", Lu "lu", Cv "cv", Wb "wb", Wt "wt", }
}

named_codes! {
    /// L1 eviction priorities (PTX ISA 9.7.10.2).
    L1Evict {
        None "none", Normal "evict_normal", Unchanged "evict_unchanged", First "evict_first", Last "evict_last", NoAllocate "no_allocate",
    }
}

named_codes! {
    /// L2 eviction priorities (PTX ISA 9.7.10.2).
    L2Evict { None "none", Normal "evict_normal", First "evict_first", Last "evict_last", }
}

impl FloatCC {
    /// The comparison that holds exactly when this one does not.
    pub fn inverse(self) -> FloatCC {
        use FloatCC::*;
        match self {
            False => True,
            Oeq => Une,
            Ogt => Ule,
            Oge => Ult,
            Olt => Uge,
            Ole => Ugt,
            One => Ueq,
            Ord => Uno,
            Uno => Ord,
            Ueq => One,
            Ugt => Ole,
            Uge => Olt,
            Ult => Oge,
            Ule => Ogt,
            Une => Oeq,
            True => False,
        }
    }
}

impl IntCC {
    /// The condition on unsigned numbers that asks the same.
    pub fn unsigned(self) -> IntCC {
        match self {
            IntCC::Slt => IntCC::Ult,
            IntCC::Sle => IntCC::Ule,
            IntCC::Sgt => IntCC::Ugt,
            IntCC::Sge => IntCC::Uge,
            other => other,
        }
    }

    /// The comparison that holds exactly when this one does not.
    pub fn inverse(self) -> IntCC {
        use IntCC::*;
        match self {
            Eq => Ne,
            Ne => Eq,
            Ult => Uge,
            Uge => Ult,
            Ule => Ugt,
            Ugt => Ule,
            Slt => Sge,
            Sge => Slt,
            Sle => Sgt,
            Sgt => Sle,
        }
    }

    /// The comparison with the operands exchanged.
    pub fn swap(self) -> IntCC {
        use IntCC::*;
        match self {
            Eq => Eq,
            Ne => Ne,
            Ult => Ugt,
            Ugt => Ult,
            Ule => Uge,
            Uge => Ule,
            Slt => Sgt,
            Sgt => Slt,
            Sle => Sge,
            Sge => Sle,
        }
    }

    /// True for the comparisons that read their operands as signed.
    pub fn is_signed(self) -> bool {
        matches!(self, IntCC::Slt | IntCC::Sle | IntCC::Sgt | IntCC::Sge)
    }
}
