//! What each target can do, as far as legalization asks: one table, read by every file beside this one.
//!
//! Decides legality of operations on legal types (`isel/LEGAL.md`, sections 3 to 6). It does not decide how an illegal
//! operation is written instead; the file of the operation's topic does.

use ptxc_ir::{AtomicOp, Flags, FloatKind, Opcode, Scalar, Type};
use ptxc_targets::Target;

/// The capabilities of a target that legalization depends on, with the PTX ISA section that states the floor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Features {
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
    /// `ex2` and `tanh` on f16 (9.7.4.9), `tanh.approx.f32`.
    pub half_approx: bool,
    /// `redux.sync` (9.7.13.10).
    pub redux: bool,
    /// `elect.sync` (9.7.13.12).
    pub elect: bool,
    /// `atom.cas.b16` and `atom.add.f16` (9.7.13.5).
    pub atomic16: bool,
    /// `atom.add.f64` and `atom.add.noftz.f16x2`.
    pub atomic_f64: bool,
    /// `atom.add.noftz.bf16`, `atom.cas.b128`.
    pub atomic_bf16: bool,
    /// Pairs of 8-bit floats (`cvt…e4m3x2`, 9.7.9.22).
    pub fp8: bool,
    /// 6- and 4-bit floats and `ue8m0`: architectures with a suffix in the sm_100 line.
    pub fp4: bool,
    /// `ld.global` and `st.global` of 256 bits.
    pub wide_memory: bool,
}

impl Features {
    /// The row of a target.
    pub fn new(target: Target) -> Features {
        let sm = target.sm();
        Features {
            f16: sm >= 53,
            bf16_fma: sm >= 80,
            bf16: sm >= 90,
            half_min_max: sm >= 80,
            f32x2: crate::regs::has_f32x2(target),
            half_approx: sm >= 75,
            redux: sm >= 80,
            elect: sm >= 90,
            atomic16: sm >= 70,
            atomic_f64: sm >= 60,
            atomic_bf16: sm >= 90,
            fp8: sm >= 89,
            fp4: sm >= 100 && target.suffix() != ptxc_targets::Suffix::None,
            wide_memory: target.has_256_bit_memory(),
        }
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
            _ => false,
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
        match op {
            Fneg | Fabs => self.f16 || !flags.contains(Flags::FTZ),
            Copysign => true,
            Fma if flags.contains(Flags::RELU) => nearest && self.half_min_max && !flags.contains(Flags::SAT),
            Fadd | Fsub | Fmul | Fma => self.f16 && nearest,
            Fmin | Fmax | Fminimum | Fmaximum => self.half_min_max,
            Fcmp => self.f16 && !vector,
            Ffloor | Fceil | Ftrunc | Frint => self.f16 && !vector,
            Fexp2 | Ftanh => self.half_approx && flags.contains(Flags::AFN),
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

    /// Whether an integer operation on `i16`, `i32` or `i64` is left to selection.
    pub fn int_op(&self, op: Opcode, bits: u32) -> bool {
        use Opcode::*;
        match op {
            Add | Sub | Mul | Udiv | Sdiv | Urem | Srem | And | Or | Xor | Shl | Lshr | Ashr => true,
            Smin | Smax | Umin | Umax | Umulh | Smulh | Abs | Icmp => true,
            SaddSat | SsubSat | Fshl | Fshr => bits == 32,
            Ctpop | Ctlz | Cttz | Bitreverse => bits != 16,
            Bswap => true,
            _ => false,
        }
    }

    /// Whether `atomicrmw` of this operation and type is one instruction.
    pub fn atomic_op(&self, op: AtomicOp, ty: Type) -> bool {
        use AtomicOp::*;
        let (bits, pair) = (ty.bits(), ty.is_vector());
        match op {
            Xchg => matches!(bits, 32 | 64) || (bits == 128 && self.atomic_bf16),
            Add | Sub | And | Or | Xor | Smax | Smin | Umax | Umin => ty.is_int() && matches!(bits, 32 | 64),
            UincWrap | UdecWrap => ty == Type::I32,
            // Of vectors the pair in one register; wider ones are loops.
            Fadd if ty.lanes() > 2 => false,
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

    /// Whether `cmpxchg` of an integer of so many bits is one instruction.
    pub fn compare_exchange(&self, bits: u32) -> bool {
        match bits {
            32 | 64 => true,
            16 => self.atomic16,
            128 => self.atomic_bf16,
            _ => false,
        }
    }
}
