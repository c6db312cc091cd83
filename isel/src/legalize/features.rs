//! What each target can do, as far as legalization asks. The floors are the instruction table's; here is only which
//! instruction is asked for.
//!
//! Decides legality of operations on legal types (`isel/LEGAL.md`, sections 3 to 6). It does not decide how an illegal
//! operation is written instead; the file of the operation's topic does.

use std::sync::OnceLock;

use ptxc_ir::{AtomicOp, Flags, FloatKind, Opcode, Scalar, Space, Type};
use ptxc_targets::{PtxVersion, RegType, Shape, Target};

use crate::dialect::Dialect;

/// The capabilities of a target that legalization depends on, with the section of the PTX ISA.
#[derive(Clone, Copy, Debug)]
pub(super) struct Features {
    /// The target and the newest version of PTX.
    pub dialect: Dialect,
    /// f16 arithmetic and comparison (9.7.4).
    pub f16: bool,
    /// `fma.rn.bf16`, `min`, `max`, `neg`, `abs` on bf16, `cvt` from f32 to bf16 (9.7.4.4, 9.7.9.22).
    pub bf16_fma: bool,
    /// `add`, `sub`, `mul`, comparison and every conversion of bf16 (9.7.4.1).
    pub bf16: bool,
    /// `min.f16`, `max.f16`, the `.NaN` forms of f16 and f32, `relu` (9.7.3.11, 9.7.4.7).
    pub half_min_max: bool,
    /// `add`, `sub`, `mul`, `fma` on pairs of f32 (9.7.3).
    pub f32x2: bool,
    /// `add`, `min`, `max` on pairs of 16-bit integers (9.7.1.1).
    pub short_pairs: bool,
    /// `add.sat` on pairs of 16-bit integers and on `u32`; `add`, `sub`, `min`, `max` on four bytes (9.7.1.1).
    pub byte_quads: bool,
    /// `clmad` (9.7.1.5).
    pub carryless: bool,
    /// `ex2` and `tanh` on f16 (9.7.4.9), `tanh.approx.f32`.
    pub half_approx: bool,
    /// Threads of a warp have program counters of their own: barriers in divergent control flow (9.7.15.1).
    pub independent_threads: bool,
    /// `redux.sync` (9.7.13.10).
    pub redux: bool,
    /// `redux.sync` of f32 (9.7.13.10).
    pub redux_float: bool,
    /// `elect.sync` (9.7.13.12).
    pub elect: bool,
    /// `atom.cas.b16` and `atom.add.f16` (9.7.13.5).
    pub atomic16: bool,
    /// `atom.add.f64` and `atom.add.noftz.f16x2`.
    pub atomic_f64: bool,
    /// `atom.add.noftz.bf16`.
    pub atomic_bf16: bool,
    /// `atom.add.v4.f32` and the vectors of halves.
    pub atomic_vectors: bool,
    /// `atom.cas.b128`.
    pub atomic128: bool,
    /// `abs.f16`.
    pub half_abs: bool,
    /// Pairs of 8-bit floats (`cvt…e4m3x2`, 9.7.9.22).
    pub fp8: bool,
    /// Pairs of 6- and 4-bit floats and `ue8m0`.
    pub fp4: bool,
    /// Pairs of narrow floats from pairs of bf16, those of 4 and 6 bits from pairs of f16, too.
    pub fp8_from_bf16: bool,
    /// Stochastic rounding (`cvt.rs`, 9.7.10.24).
    pub stochastic: bool,
    /// Words saturated to halves and bytes, which are put together (`cvt.pack.sat`, 9.7.9.23).
    pub saturated_packs: bool,
    /// `ld.global` and `st.global` of 256 bits.
    pub wide_memory: bool,
}

const HALF: Shape = Shape::Register(RegType::B16);
const WORD: Shape = Shape::Register(RegType::B32);
const LONG: Shape = Shape::Register(RegType::B64);
/// `[%rd]`
const AT: [Shape; 2] = [Shape::Address(1), LONG];

impl Features {
    /// The row of a target and the newest version of PTX that may be written for it.
    pub fn new(target: Target, newest: Option<PtxVersion>) -> Features {
        static ROWS: OnceLock<Vec<OnceLock<Features>>> = OnceLock::new();
        let versions = PtxVersion::ALL.len();
        let dialect = Dialect::new(target, newest);
        let rows = ROWS.get_or_init(|| (0..Target::ALL.len() * versions).map(|_| OnceLock::new()).collect());
        let column = PtxVersion::ALL.iter().position(|version| *version == dialect.newest);
        match column.and_then(|column| rows.get(target.index() * versions + column)) {
            Some(row) => *row.get_or_init(|| Features::ask(dialect)),
            None => Features::ask(dialect),
        }
    }

    /// Asks the instruction table, with one instruction that stands for each group.
    fn ask(dialect: Dialect) -> Features {
        let has = |mnemonic: &str, operands: &[Shape]| dialect.has(mnemonic, operands);
        let exchange = |mnemonic: &str, ty: Shape| has(mnemonic, &[ty, AT[0], AT[1], ty, ty]);
        let add = |mnemonic: &str, ty: Shape| has(mnemonic, &[ty, AT[0], AT[1], ty]);
        Features {
            dialect,
            f16: has("add.f16", &[HALF; 3]),
            bf16_fma: has("fma.rn.bf16", &[HALF; 4]),
            bf16: has("add.bf16", &[HALF; 3]),
            half_min_max: has("min.f16", &[HALF; 3]),
            f32x2: crate::regs::has_f32x2(dialect.target),
            short_pairs: has("add.u16x2", &[WORD; 3]),
            byte_quads: has("add.u8x4", &[WORD; 3]),
            carryless: has("clmad.lo.u64", &[LONG; 4]),
            half_approx: has("ex2.approx.f16", &[HALF; 2]),
            // No instruction tells: `ptxas` takes such code for every target.
            independent_threads: dialect.target.sm() >= 70,
            redux: has("redux.sync.add.s32", &[WORD; 3]),
            redux_float: has("redux.sync.min.f32", &[WORD; 3]),
            elect: has("elect.sync", &[Shape::Pair, WORD, Shape::Register(RegType::Pred), WORD]),
            atomic16: exchange("atom.cas.b16", HALF),
            atomic_f64: add("atom.add.f64", LONG),
            atomic_bf16: add("atom.add.noftz.bf16", HALF),
            atomic_vectors: has("red.global.add.v2.f32", &[AT[0], AT[1], Shape::Vector(2), WORD, WORD]),
            atomic128: exchange("atom.cas.b128", Shape::Register(RegType::B128)),
            half_abs: has("abs.f16", &[HALF; 2]),
            fp8: has("cvt.rn.satfinite.e4m3x2.f32", &[HALF, WORD, WORD]),
            fp4: has("cvt.rn.satfinite.e2m3x2.f32", &[HALF, WORD, WORD]),
            fp8_from_bf16: has("cvt.rn.satfinite.e4m3x2.bf16x2", &[HALF, WORD]),
            stochastic: has("cvt.rs.f16x2.f32", &[WORD; 4]),
            saturated_packs: has("cvt.pack.sat.u8.s32.b32", &[WORD; 4]),
            wide_memory: has("ld.global.v4.b64", &[Shape::Vector(4), LONG, LONG, LONG, LONG, AT[0], AT[1]]),
        }
    }

    /// Why no load or store of 128 bits is atomic as a whole (9.7.9.8).
    pub fn lacks_whole_128(&self) -> Option<String> {
        self.dialect.lacks("ld.relaxed.gpu.b128", &[Shape::Register(RegType::B128), AT[0], AT[1]])
    }

    /// Why there is no exchange of 128 bits (9.7.14.5).
    pub fn lacks_exchange_128(&self) -> Option<String> {
        let whole = Shape::Register(RegType::B128);
        self.dialect.lacks("atom.cas.b128", &[whole, AT[0], AT[1], whole, whole])
    }

    /// Whether a value of this type lies in registers as it is, without being taken apart: a legal scalar other than
    /// `i8`, or a pair that fills one register.
    pub fn legal_value(&self, ty: Type) -> bool {
        if !ty.is_vector() {
            return match ty.kind() {
                Some(Scalar::Int(bits)) => matches!(bits, 1 | 16 | 32 | 64),
                Some(Scalar::Float(kind)) => !kind.is_narrow(),
                Some(Scalar::Ptr(_)) => true,
                None => ty.is_invalid(),
            };
        }
        ty.lanes() == 2 && self.paired(ty.scalar())
    }

    /// Whether vectors of this scalar are kept as pairs of lanes in one register.
    pub fn paired(&self, scalar: Type) -> bool {
        match scalar.float_kind() {
            Some(FloatKind::F16 | FloatKind::Bf16) => true,
            Some(FloatKind::F32) => self.f32x2,
            _ => scalar == Type::I16,
        }
    }

    /// Whether a float operation on a scalar or a pair of this type is one instruction.
    pub fn float_op(&self, op: Opcode, flags: Flags, ty: Type) -> bool {
        match (ty.float_kind(), ty.is_vector()) {
            (Some(FloatKind::F32 | FloatKind::F64), false) => self.wide_float_op(op, flags, ty),
            (Some(FloatKind::F32), true) => self.f32x2 && self.pair_op(op, flags),
            (Some(FloatKind::F16), vector) => self.f16_op(op, flags, vector),
            (Some(FloatKind::Bf16), vector) => self.bf16_op(op, flags, vector),
            _ => false,
        }
    }

    fn pair_op(&self, op: Opcode, flags: Flags) -> bool {
        use Opcode::*;
        matches!(op, Fadd | Fsub | Fmul | Fma) && !flags.contains(Flags::SAT) && !flags.contains(Flags::RELU)
    }

    fn wide_float_op(&self, op: Opcode, flags: Flags, ty: Type) -> bool {
        use Opcode::*;
        let single = ty == Type::F32;
        let approximate = single && flags.contains(Flags::AFN);
        match op {
            Fma if flags.contains(Flags::RELU) => false,
            Fadd | Fsub | Fmul | Fma => single || !flags.contains(Flags::SAT),
            Fdiv | Fsqrt | Frcp | Fmin | Fmax | Copysign | Fneg | Fabs => true,
            Frsqrt => single || flags.contains(Flags::AFN),
            Ffloor | Fceil | Ftrunc | Frint | Fcmp => true,
            Fminimum | Fmaximum => single && self.half_min_max,
            Fsin | Fcos | Fexp2 | Flog2 => approximate,
            Ftanh => approximate && self.half_approx,
            _ => false,
        }
    }

    fn f16_op(&self, op: Opcode, flags: Flags, vector: bool) -> bool {
        use Opcode::*;
        let nearest = flags.rounding() == ptxc_ir::Rounding::Nearest;
        let flushes = flags.contains(Flags::FTZ);
        match op {
            Fneg => self.f16 || !flags.contains(Flags::FTZ),
            Fabs => self.half_abs || !flags.contains(Flags::FTZ),
            Copysign => true,
            Fma if flags.contains(Flags::RELU) => nearest && self.half_min_max && !flags.contains(Flags::SAT),
            Fadd | Fsub | Fmul | Fma => self.f16 && nearest,
            Fmin | Fmax | Fminimum | Fmaximum => self.half_min_max,
            Fcmp => self.f16 && !vector,
            Ffloor | Fceil | Ftrunc | Frint => self.f16 && !vector && !flushes,
            Fexp2 | Ftanh => self.half_approx && flags.contains(Flags::AFN) && !flushes,
            _ => false,
        }
    }

    fn bf16_op(&self, op: Opcode, flags: Flags, vector: bool) -> bool {
        use Opcode::*;
        if flags.contains(Flags::FTZ) || flags.contains(Flags::SAT) || flags.rounding() != ptxc_ir::Rounding::Nearest {
            return false;
        }
        match op {
            Fneg | Fabs | Copysign => true,
            Fadd | Fsub | Fmul => self.bf16 && !flags.contains(Flags::RELU),
            Fma | Fmin | Fmax | Fminimum | Fmaximum => self.bf16_fma,
            Fcmp => self.bf16 && !vector,
            Fexp2 | Ftanh => self.bf16 && flags.contains(Flags::AFN),
            _ => false,
        }
    }

    /// Whether two f32 are converted to a pair of halves at once (`cvt.rn.f16x2.f32`).
    pub fn packs_halves(&self, flags: Flags) -> bool {
        use ptxc_ir::Rounding::{Nearest, Zero};
        self.bf16_fma
            && matches!(flags.rounding(), Nearest | Zero)
            && !flags.contains(Flags::FTZ)
            && !flags.contains(Flags::SAT)
    }

    /// Whether an integer operation on `<2 x i16>` is one instruction.
    pub fn pair_op_16(&self, op: Opcode) -> bool {
        use Opcode::*;
        match op {
            Add | Smin | Smax | Umin | Umax => self.short_pairs,
            UaddSat | SaddSat => self.byte_quads,
            _ => false,
        }
    }

    /// Whether an integer operation on `i16`, `i32` or `i64` is left to selection.
    pub fn int_op(&self, op: Opcode, bits: u32) -> bool {
        use Opcode::*;
        match op {
            Add | Sub | Mul | Udiv | Sdiv | Urem | Srem | And | Or | Xor | Shl | Lshr | Ashr => true,
            Smin | Smax | Umin | Umax | Umulh | Smulh | Abs | Icmp => true,
            SaddSat | SsubSat | Fshl | Fshr => bits == 32,
            Ctpop | Ctlz | Cttz | Bitreverse => bits != 16,
            Bswap => true,
            Clmul => self.carryless && bits == 64,
            _ => false,
        }
    }

    /// Whether `atomicrmw` of this operation and type is one instruction.
    pub fn atomic_op(&self, op: AtomicOp, ty: Type) -> bool {
        use AtomicOp::*;
        let (bits, pair) = (ty.bits(), ty.is_vector());
        // Of vectors, the pair in one register; for wider ones see `vector_atomic`.
        if pair && bits > 32 {
            return false;
        }
        match op {
            Xchg => matches!(bits, 32 | 64) || (bits == 128 && self.atomic128),
            Add | Sub | And | Or | Xor | Smax | Smin | Umax | Umin => ty.is_int() && matches!(bits, 32 | 64),
            UincWrap | UdecWrap => ty == Type::I32,
            Fadd => match ty.float_kind() {
                Some(FloatKind::F32) => !pair,
                Some(FloatKind::F64) => !pair && self.atomic_f64,
                Some(FloatKind::F16) => self.atomic16 || (pair && self.atomic_f64),
                Some(FloatKind::Bf16) => self.atomic_bf16,
                _ => false,
            },
            Nand | Fsub | Fmax | Fmin => false,
        }
    }

    /// Whether `atomicrmw` on a vector of more than one register is one instruction: additions in global memory, of
    /// vectors that are aligned as a whole (9.7.14.5).
    pub fn vector_atomic(&self, op: AtomicOp, ty: Type, space: Option<Space>, align: u64) -> bool {
        let registers = ty.bits() / 32;
        let scalar = matches!(ty.float_kind(), Some(FloatKind::F32 | FloatKind::F16 | FloatKind::Bf16));
        let fits = ty.is_vector() && scalar && matches!(registers, 2 | 4) && ty.bits().is_multiple_of(32);
        self.atomic_vectors && op == AtomicOp::Fadd && fits && space == Some(Space::Global) && align >= ty.size()
    }

    /// Whether `cmpxchg` of an integer of so many bits is one instruction.
    pub fn compare_exchange(&self, bits: u32) -> bool {
        match bits {
            32 | 64 => true,
            16 => self.atomic16,
            128 => self.atomic128,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the capabilities that come with each architecture, as the PTX ISA states them.
    #[test]
    fn capabilities_come_with_their_architectures() {
        let new = |name: &str| {
            let f = Features::new(name.parse().expect("a target"), None);
            let all = [
                (f.f16, "f16"),
                (f.atomic_f64, "atomic f64"),
                (f.atomic16, "atomic 16"),
                (f.half_approx, "ex2.f16"),
                (f.bf16_fma, "fma.bf16"),
                (f.half_min_max, "min.f16"),
                (f.redux, "redux"),
                (f.fp8, "fp8"),
                (f.bf16, "bf16"),
                (f.elect, "elect"),
                (f.atomic_bf16, "atomic bf16"),
                (f.atomic_vectors, "atomic vectors"),
                (f.atomic128, "atomic 128"),
                (f.short_pairs, "u16x2"),
                (f.f32x2, "f32x2"),
                (f.wide_memory, "256 bits"),
                (f.fp4, "fp4"),
                (f.byte_quads, "u8x4"),
            ];
            all.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
        };
        let mut expected = String::new();
        let steps = [
            ("sm_50", ""),
            ("sm_53", "f16"),
            ("sm_60", ", atomic f64"),
            ("sm_70", ", atomic 16"),
            ("sm_75", ", ex2.f16"),
            ("sm_80", ", fma.bf16, min.f16, redux"),
            ("sm_89", ", fp8"),
            ("sm_90", ", bf16, elect, atomic bf16, atomic vectors, atomic 128, u16x2"),
            ("sm_100", ", f32x2, 256 bits"),
            ("sm_100a", ", fp4"),
            ("sm_103f", ""),
            ("sm_120f", ", u8x4"),
        ];
        for (target, more) in steps {
            expected += more;
            assert_eq!(new(target), expected, "{target}");
        }
        // Not in all later families.
        let named = |name: &str| Features::new(name.parse().expect("a target"), None);
        for (target, stochastic, redux) in
            [("sm_100", false, false), ("sm_100a", true, true), ("sm_103f", false, true), ("sm_120a", false, false)]
        {
            assert_eq!((named(target).stochastic, named(target).redux_float), (stochastic, redux), "{target}");
        }
    }
}
