//! What the rules of `isel/rules/` call: matching and building terms.

use ptxc_ir::{Effect, Extra, Scalar};
use ptxc_ir::{Flags, FloatCC, FloatKind, Inst, IntCC, Opcode, Rounding, Type, Value};
use ptxc_mir::{Operand, RegClass, VReg};
use ptxc_targets::{Shape, tok};
use smallvec::smallvec;

use super::mnemonic::{self, Mnemonic};
use super::{Lower, Output, Uses};
use crate::regs;
use crate::rules::{RULES, Rule};

/// The generated matcher.
#[allow(dead_code, unreachable_code, unreachable_patterns, unused_imports, unused_variables, unused_mut)]
#[allow(non_snake_case, non_upper_case_globals, irrefutable_let_patterns, unused_assignments, missing_docs)]
#[allow(clippy::all, clippy::unwrap_used)]
mod generated {
    use super::super::mnemonic::Mnemonic;
    use super::super::mnemonic::bases::*;
    use super::*;

    extern crate alloc;

    pub(super) const I1: Type = Type::I1;
    pub(super) const I8: Type = Type::I8;
    pub(super) const I16: Type = Type::I16;
    pub(super) const I32: Type = Type::I32;
    pub(super) const I64: Type = Type::I64;
    pub(super) const I16X2: Type = Type::I16.with_lanes(2);
    pub(super) const F16: Type = Type::F16;
    pub(super) const BF16: Type = Type::BF16;
    pub(super) const TF32: Type = Type::TF32;
    pub(super) const F32: Type = Type::F32;
    pub(super) const F64: Type = Type::F64;
    pub(super) const F16X2: Type = Type::F16.with_lanes(2);
    pub(super) const BF16X2: Type = Type::BF16.with_lanes(2);

    /// `cvt` without anything.
    pub(super) fn packed_base() -> Mnemonic {
        cvt_
    }

    pub(super) mod rules {
        use super::*;
        include!(concat!(env!("OUT_DIR"), "/rules.rs"));
    }
}

/// Registers of the results of a computing instruction; `None` when no rule fits.
pub(super) fn lower(context: &mut Lower<'_>, inst: Inst) -> Option<Output> {
    generated::rules::constructor_lower(context, inst)
}

impl Lower<'_> {
    fn flags(&self, inst: Inst) -> Flags {
        self.ir.dfg.insts[inst].flags
    }

    /// The computing instruction behind a value.
    pub(super) fn pure_def(&self, value: Value) -> Option<Inst> {
        let inst = self.ir.dfg.def_inst(value)?;
        (self.ir.dfg.insts[inst].op.info().effect == Effect::Pure).then_some(inst)
    }

    /// The computing instruction behind a value that nothing else uses, when it stands in the block of its user.
    pub(super) fn single_use(&self, value: Value) -> Option<Inst> {
        let value = self.ir.dfg.resolve(value);
        if self.uses[value] != Uses::ONCE || self.is_assigned(value) {
            return None;
        }
        let inst = self.pure_def(value)?;
        // The block under selection is the user's block.
        (self.ir.layout.inst_block(inst) == self.current_block).then_some(inst)
    }

    fn emit_result(&mut self, mnemonic: Mnemonic, sources: &[Operand]) -> VReg {
        let result = self.new_reg(mnemonic.result_class());
        let op = self.opcode(mnemonic);
        let mut operands: smallvec::SmallVec<[Operand; 6]> = smallvec![Operand::Def(result)];
        operands.extend_from_slice(sources);
        self.emit_op(ptxc_mir::Op::Ptx(op), &operands);
        result
    }

    /// Rounding of an arithmetic instruction; nothing where ptxas may contract.
    fn with_rounding(&self, m: Mnemonic, inst: Inst, always: bool) -> Mnemonic {
        let flags = self.flags(inst);
        match flags.explicit_rounding() {
            Some(rounding) => m.rounding(rounding),
            None if always || !flags.contains(Flags::CONTRACT) => m.rounding(Rounding::Nearest),
            None => m,
        }
    }
}

impl Lower<'_> {
    /// The 32-bit value and the factor of `extension(a) * n` or `extension(a) << n`, when the factor is positive and
    /// fits the multiplier of `mul.wide`.
    fn scaled(&self, inst: Inst, extension: Opcode) -> Option<(Value, i64)> {
        let data = &self.ir.dfg.insts[inst];
        let bits = if extension == Opcode::Sext { 31 } else { 32 };
        if data.ty != Type::I64 {
            return None;
        }
        let n = self.const_i64(self.arg(inst, 1))?;
        let factor = match data.op {
            Opcode::Mul => n,
            // The top bit of the narrow type would make the factor negative.
            Opcode::Shl if (0..bits).contains(&n) => 1 << n,
            _ => return None,
        };
        let fits =
            if extension == Opcode::Sext { i32::try_from(factor).is_ok() } else { u32::try_from(factor).is_ok() };
        let extended = self.pure_def(self.arg(inst, 0))?;
        let wide = self.ir.dfg.insts[extended].op == extension && self.arg_type(extended, 0) == Type::I32;
        (fits && wide).then(|| (self.arg(extended, 0), factor))
    }
}

impl Lower<'_> {
    /// The word whose byte a 32-bit value is, extended by zeros or by its sign, and where the byte begins.
    fn byte_of_word(&self, value: Value, signed: bool) -> Option<(Value, i64)> {
        let inst = self.pure_def(value)?;
        let op = self.ir.dfg.insts[inst].op;
        let (extension, shift) = if signed { (Opcode::Sext, Opcode::Ashr) } else { (Opcode::Zext, Opcode::Lshr) };
        let a = self.arg(inst, 0);
        if op == extension && self.ty(a) == Type::I8 {
            let narrow = self.pure_def(a)?;
            let from = self.arg(narrow, 0);
            let cut = self.ir.dfg.insts[narrow].op == Opcode::Trunc && self.ty(from) == Type::I32;
            return cut.then(|| self.shifted_byte(from));
        }
        if self.ty(value) != Type::I32 {
            return None;
        }
        match op {
            Opcode::And if !signed && self.const_i64(self.arg(inst, 1)) == Some(255) => Some(self.shifted_byte(a)),
            _ if op == shift && self.const_i64(self.arg(inst, 1)) == Some(24) => Some((a, 24)),
            _ => None,
        }
    }

    /// What a value's lowest byte is of: of the word that is shifted right by whole bytes, or of the value.
    fn shifted_byte(&self, value: Value) -> (Value, i64) {
        let shifted = || {
            let inst = self.pure_def(value)?;
            let is_shift = matches!(self.ir.dfg.insts[inst].op, Opcode::Lshr | Opcode::Ashr);
            let by = self.const_i64(self.arg(inst, 1)).filter(|by| matches!(by, 8 | 16 | 24))?;
            is_shift.then(|| (self.arg(inst, 0), by))
        };
        shifted().unwrap_or((value, 0))
    }
}

/// Position and length of a bit field.
#[derive(Clone, Copy)]
pub(super) struct Field(i64, i64);

/// The type of two halves, and the halves.
#[derive(Clone, Copy)]
pub(super) struct Factors(Type, Value, Value);

impl Lower<'_> {
    /// The half, with its type, that a value of f32 is the extension of.
    fn extended_half(&self, value: Value) -> Option<(Type, Value)> {
        let inst = self.pure_def(value)?;
        let data = &self.ir.dfg.insts[inst];
        let from = self.arg_type(inst, 0);
        let exact = data.op == Opcode::Fpext && data.ty == Type::F32 && !data.flags.contains(Flags::FTZ);
        (exact && matches!(from, Type::F16 | Type::BF16)).then(|| (from, self.arg(inst, 0)))
    }
}

/// Flags that change the value an addition or multiplication has.
const VALUE_FLAGS: u32 = ptxc_ir::flags::group::ROUND | ptxc_ir::flags::group::FTZ;

impl generated::rules::Context for Lower<'_> {
    fn fired(&mut self, rule: &'static Rule) {
        self.note_rule(rule);
    }

    fn node(&mut self, inst: Inst) -> (Opcode, Type, Type, Value, Value, Value) {
        let data = &self.ir.dfg.insts[inst];
        let args = data.args.as_slice(&self.ir.dfg.pool);
        // Rules only look at as many arguments as the operation has.
        let at = |i: usize| args.get(i).or(args.first()).map_or(Value::from_u32(0), |v| self.ir.dfg.resolve(*v));
        let from = args.first().map_or(Type::INVALID, |v| self.ir.dfg.ty(*v));
        (data.op, data.ty, from, at(0), at(1), at(2))
    }

    fn int_cc(&mut self, inst: Inst) -> IntCC {
        match self.ir.dfg.insts[inst].extra {
            Extra::IntCC(cc) => cc,
            _ => IntCC::Eq,
        }
    }

    fn float_cc(&mut self, inst: Inst) -> FloatCC {
        match self.ir.dfg.insts[inst].extra {
            Extra::FloatCC(cc) => cc,
            _ => FloatCC::False,
        }
    }

    fn class_mask(&mut self, inst: Inst) -> u64 {
        match self.ir.dfg.insts[inst].extra {
            Extra::Imm(mask) => mask,
            _ => 0,
        }
    }

    fn def(&mut self, value: Value) -> Option<Inst> {
        self.pure_def(value)
    }

    fn once(&mut self, value: Value) -> Option<Inst> {
        self.single_use(value)
    }

    fn int(&mut self, ty: Type) -> Option<Type> {
        matches!(ty, Type::I16 | Type::I32 | Type::I64).then_some(ty)
    }

    fn int32_64(&mut self, ty: Type) -> Option<Type> {
        matches!(ty, Type::I32 | Type::I64).then_some(ty)
    }

    fn float32_64(&mut self, ty: Type) -> Option<Type> {
        matches!(ty, Type::F32 | Type::F64).then_some(ty)
    }

    fn half(&mut self, ty: Type) -> Option<Type> {
        let small = matches!(ty.float_kind(), Some(FloatKind::F16 | FloatKind::Bf16));
        (small && ty.lanes() <= 2).then_some(ty)
    }

    fn float(&mut self, ty: Type) -> Option<Type> {
        let arithmetic =
            matches!(ty.float_kind(), Some(FloatKind::F16 | FloatKind::Bf16 | FloatKind::F32 | FloatKind::F64));
        (arithmetic && regs::layout(ty, self.env.target)?.count == 1).then_some(ty)
    }

    fn float_from_byte(&mut self, ty: Type) -> Option<Type> {
        matches!(ty, Type::F16 | Type::F32 | Type::F64).then_some(ty)
    }

    fn scalar_float(&mut self, ty: Type) -> Option<Type> {
        let known = matches!(
            ty.float_kind(),
            Some(FloatKind::F16 | FloatKind::Bf16 | FloatKind::F32 | FloatKind::F64 | FloatKind::Tf32)
        );
        (known && !ty.is_vector()).then_some(ty)
    }

    fn word(&mut self, ty: Type) -> Option<Type> {
        let layout = regs::layout(ty, self.env.target)?;
        (layout.count == 1 && matches!(layout.class, RegClass::B16 | RegClass::B32 | RegClass::B64)).then_some(ty)
    }

    fn word64(&mut self, ty: Type) -> Option<Type> {
        let layout = regs::layout(ty, self.env.target)?;
        (layout.count == 1 && layout.class == RegClass::B64).then_some(ty)
    }

    fn const_int(&mut self, value: Value) -> Option<i64> {
        self.ir.dfg.as_bits(value)?;
        self.const_i64(value)
    }

    fn const_one(&mut self, value: Value) -> Option<()> {
        let bits = self.ir.dfg.as_bits(value)?;
        let one = match self.ty(value).float_kind()? {
            FloatKind::F32 => u128::from(1f32.to_bits()),
            FloatKind::F64 => u128::from(1f64.to_bits()),
            _ => return None,
        };
        (bits == one).then_some(())
    }

    fn scaled_s32(&mut self, inst: Inst) -> Option<(Value, i64)> {
        self.scaled(inst, Opcode::Sext)
    }

    fn scaled_u32(&mut self, inst: Inst) -> Option<(Value, i64)> {
        self.scaled(inst, Opcode::Zext)
    }

    fn same_quotients(&mut self, sum: Inst, left: Inst, right: Inst) -> bool {
        let wanted = Flags::REASSOC | Flags::AFN | Flags::ARCP;
        let (i, m, n) = (self.flags(sum), self.flags(left), self.flags(right));
        let fast = i.contains(Flags::REASSOC | Flags::NSZ) && m.contains(wanted) && n.contains(wanted);
        let value = VALUE_FLAGS | Flags::SAT.bits();
        let same = [m, n].iter().all(|flags| flags.bits() & value == i.bits() & value);
        fast && same && !i.contains(Flags::SAT) && self.arg(left, 1) == self.arg(right, 1)
    }

    fn infinity64(&mut self) -> Operand {
        Operand::F64(f64::INFINITY.to_bits())
    }

    fn fast_doubles(&mut self) -> bool {
        crate::dialect::has_fast_doubles(self.env.target)
    }

    fn least_normal(&mut self) -> Operand {
        Operand::F32(f32::MIN_POSITIVE.to_bits())
    }

    fn zero(&mut self) -> Operand {
        Operand::F32(0)
    }

    fn infinity(&mut self) -> Operand {
        Operand::F32(f32::INFINITY.to_bits())
    }

    fn float_to_16(&mut self, ty: Type) -> Option<Type> {
        match ty.float_kind()? {
            FloatKind::F16 | FloatKind::Bf16 => (ty.lanes() <= 2).then_some(ty),
            _ => (ty == Type::F32).then_some(ty),
        }
    }

    fn const_zero(&mut self, value: Value) -> Option<Value> {
        (self.word_constant(value)? == 0).then_some(value)
    }

    fn has_flag_nnan(&mut self, inst: Inst) -> bool {
        self.flags(inst).contains(Flags::NNAN)
    }

    fn may_mix(&mut self, inst: Inst) -> bool {
        self.env.mixed_sums && !self.flags(inst).contains(Flags::FTZ)
    }

    fn keeps_zero(&mut self, inst: Inst) -> bool {
        self.flags(inst).rounding() == Rounding::Nearest
    }

    fn extended(&mut self, value: Value) -> Option<(Type, Value)> {
        self.extended_half(value)
    }

    fn extended_factors(&mut self, a: Value, b: Value) -> Option<Factors> {
        let ((from, x), (other, y)) = (self.extended_half(a)?, self.extended_half(b)?);
        (from == other).then_some(Factors(from, x, y))
    }

    fn factors(&mut self, factors: Factors) -> (Type, Value, Value) {
        (factors.0, factors.1, factors.2)
    }

    fn variable(&mut self, value: Value) -> Option<Value> {
        self.ir.dfg.as_const(value).is_none().then_some(value)
    }

    fn minus_zero(&mut self) -> Operand {
        Operand::F32((-0f32).to_bits())
    }

    fn mixed(&mut self, m: Mnemonic, inst: Inst, from: Type) -> Mnemonic {
        let flags = self.flags(inst);
        self.with_rounding(m, inst, true).clamps(flags).ty(mnemonic::float(Type::F32)).ty(mnemonic::float(from))
    }

    fn unsigned_byte(&mut self, value: Value) -> Option<(Value, i64)> {
        self.byte_of_word(value, false)
    }

    fn signed_byte(&mut self, value: Value) -> Option<(Value, i64)> {
        self.byte_of_word(value, true)
    }

    fn pair_lane(&mut self, inst: Inst) -> Option<(Value, i64)> {
        let data = &self.ir.dfg.insts[inst];
        let pair = data.ty.is_vector() && data.ty.lanes() == 2 && data.ty.scalar_bits() == 16;
        if data.op != Opcode::Extract || !pair {
            return None;
        }
        let vector = self.arg(inst, 0);
        // Of a constant the lane is a constant.
        let index = self.const_i64(self.arg(inst, 1)).filter(|n| matches!(n, 0 | 1))?;
        self.ir.dfg.as_const(vector).is_none().then_some((vector, index))
    }

    fn nonzero(&mut self, inst: Inst) -> bool {
        self.flags(inst).contains(Flags::NONZERO)
    }

    fn no_signed_wrap(&mut self, inst: Inst) -> bool {
        self.flags(inst).contains(Flags::NSW)
    }

    fn no_unsigned_wrap(&mut self, inst: Inst) -> bool {
        self.flags(inst).contains(Flags::NUW)
    }

    fn without_sign(&mut self, inst: Inst) -> Option<Value> {
        Lower::without_sign(self, inst)
    }

    fn extended_shift_s32(&mut self, inst: Inst) -> Option<(Value, i64)> {
        self.extended_shift(inst)
    }

    fn difference(&mut self, inst: Inst) -> Option<(bool, Value, Value)> {
        self.absolute_difference(inst)
    }

    fn pair_left(&mut self, inst: Inst) -> Option<(Value, Value, Value)> {
        self.funnel(inst, Opcode::Shl)
    }

    fn pair_right(&mut self, inst: Inst) -> Option<(Value, Value, Value)> {
        self.funnel(inst, Opcode::Lshr)
    }

    fn low_mask(&mut self, inst: Inst) -> Option<Value> {
        self.mask_of_low_bits(inst)
    }

    fn begins_with_zero(&mut self, bytes: i64) -> bool {
        bytes & 0xff == 0
    }

    fn small_table(&mut self, inst: Inst) -> Option<(i64, i64, Value)> {
        Lower::small_table(self, inst)
    }

    fn low_part(&mut self, inst: Inst) -> Option<(Value, Value)> {
        self.kept_low_bits(inst)
    }

    fn guarded_shl(&mut self, inst: Inst) -> Option<(Value, Value)> {
        self.guarded_shift(inst, Opcode::Shl)
    }

    fn guarded_lshr(&mut self, inst: Inst) -> Option<(Value, Value)> {
        self.guarded_shift(inst, Opcode::Lshr)
    }

    fn guarded_ashr(&mut self, inst: Inst) -> Option<(Value, Value)> {
        self.guarded_shift(inst, Opcode::Ashr)
    }

    fn field(&mut self, field: Field) -> (Operand, Operand) {
        (Operand::Imm(field.0), Operand::Imm(field.1))
    }

    fn field_of(&mut self, left: i64, right: i64) -> Option<Field> {
        (0 <= left && left <= right && right < 32).then(|| Field(right - left, 32 - right))
    }

    fn inverse(&mut self, cc: &IntCC) -> IntCC {
        cc.inverse()
    }

    fn and_with(&mut self, m: Mnemonic) -> Mnemonic {
        m.and_with()
    }

    fn or_with(&mut self, m: Mnemonic) -> Mnemonic {
        m.or_with()
    }

    fn suffix_s8(&mut self, m: Mnemonic) -> Mnemonic {
        m.ty(mnemonic::Suffix::S8)
    }

    fn suffix_u8(&mut self, m: Mnemonic) -> Mnemonic {
        m.ty(mnemonic::Suffix::U8)
    }

    fn has_flag_afn(&mut self, inst: Inst) -> bool {
        self.flags(inst).contains(Flags::AFN)
    }

    fn orders(&mut self, cc: &IntCC, a: Value, b: Value, c: Value, d: Value) -> bool {
        let strict = matches!(cc, IntCC::Ult | IntCC::Ugt | IntCC::Slt | IntCC::Sgt);
        strict && ((a, b) == (c, d) || (a, b) == (d, c))
    }

    fn writes(&mut self, mnemonic: Mnemonic) -> bool {
        self.can_write(mnemonic)
    }

    fn may_fuse(&mut self, outer: Inst, inner: Inst) -> bool {
        let (outer, inner) = (self.flags(outer), self.flags(inner));
        outer.contains(Flags::CONTRACT)
            && inner.contains(Flags::CONTRACT)
            && !inner.contains(Flags::SAT)
            && outer.bits() & VALUE_FLAGS == inner.bits() & VALUE_FLAGS
    }

    fn reg(&mut self, value: Value) -> VReg {
        self.reg_of(value)
    }

    fn src(&mut self, value: Value) -> Operand {
        self.source(value)
    }

    fn bits(&mut self, value: Value) -> Operand {
        self.bit_source(value)
    }

    fn wrapped(&mut self, value: Value) -> Operand {
        match self.const_i64(value) {
            Some(n) => Operand::Imm(n & 31),
            None => self.amount(value),
        }
    }

    fn amount(&mut self, value: Value) -> Operand {
        if let Some(n) = self.const_i64(value) {
            // PTX clamps: an amount of the width or more, which is poison, stays one.
            return Operand::Imm(if (0..256).contains(&n) { n } else { 255 });
        }
        if let Some(inst) = self.pure_def(value)
            && matches!(self.ir.dfg.insts[inst].op, Opcode::Zext | Opcode::Sext)
            && let Some(&from) = self.ir.dfg.args(inst).first()
            && self.ty(from) == Type::I32
        {
            return Operand::Use(self.reg_of(from));
        }
        let reg = self.reg_of(value);
        match self.func.class(reg) {
            RegClass::B64 => Operand::Use(self.convert_register(reg, RegClass::B32, &[tok::CVT, tok::U32, tok::U64])),
            RegClass::B16 => Operand::Use(self.convert_register(reg, RegClass::B32, &[tok::CVT, tok::U32, tok::U16])),
            _ => Operand::Use(reg),
        }
    }

    fn use_reg(&mut self, reg: VReg) -> Operand {
        Operand::Use(reg)
    }

    fn imm(&mut self, value: i64) -> Operand {
        Operand::Imm(value)
    }

    fn bit(&mut self, index: i64) -> Operand {
        Operand::Imm(1i64.wrapping_shl(index as u32))
    }

    fn out(&mut self, reg: VReg) -> Output {
        smallvec![reg]
    }

    fn same(&mut self, value: Value) -> Output {
        self.regs_of(value)
    }

    fn suffix_s(&mut self, m: Mnemonic, ty: Type) -> Mnemonic {
        m.ty(mnemonic::signed(ty))
    }

    fn suffix_u(&mut self, m: Mnemonic, ty: Type) -> Mnemonic {
        m.ty(mnemonic::unsigned(ty))
    }

    fn suffix_b(&mut self, m: Mnemonic, ty: Type) -> Mnemonic {
        let class = regs::layout(ty, self.env.target).map_or(RegClass::B32, |l| l.class);
        m.ty(mnemonic::untyped(class))
    }

    fn suffix_f(&mut self, m: Mnemonic, inst: Inst, ty: Type) -> Mnemonic {
        m.ftz(self.flags(inst), ty).ty(mnemonic::float(ty))
    }

    fn plain(&mut self, m: Mnemonic, ty: Type) -> Mnemonic {
        m.ty(mnemonic::float(ty))
    }

    fn arith(&mut self, m: Mnemonic, inst: Inst, ty: Type) -> Mnemonic {
        let flags = self.flags(inst);
        self.with_rounding(m, inst, false).ftz(flags, ty).clamps(flags).ty(mnemonic::float(ty))
    }

    fn rounded(&mut self, m: Mnemonic, inst: Inst, ty: Type) -> Mnemonic {
        let flags = self.flags(inst);
        self.with_rounding(m, inst, true).ftz(flags, ty).clamps(flags).ty(mnemonic::float(ty))
    }

    fn fused(&mut self, m: Mnemonic, inst: Inst, ty: Type) -> Mnemonic {
        self.rounded(m, inst, ty)
    }

    fn approx(&mut self, m: Mnemonic) -> Mnemonic {
        m.approx()
    }

    fn xor_sign(&mut self, m: Mnemonic) -> Mnemonic {
        m.xor_sign()
    }

    fn product_of_signs(&mut self, extreme: Inst, sign: Value) -> bool {
        self.has_product_of_signs(extreme, sign)
    }

    fn nan(&mut self, m: Mnemonic) -> Mnemonic {
        m.nan()
    }

    fn int_rounding(&mut self, mode: u8, m: Mnemonic, ty: Type) -> Mnemonic {
        let rounding = match mode {
            1 => Rounding::Down,
            2 => Rounding::Up,
            3 => Rounding::Zero,
            _ => Rounding::Nearest,
        };
        m.int_rounding(rounding).ty(mnemonic::float(ty))
    }

    fn float_conversion(&mut self, m: Mnemonic, inst: Inst, to: Type, from: Type) -> Mnemonic {
        let flags = self.flags(inst);
        let widens = to.scalar_bits() > from.scalar_bits();
        let m = if widens { m } else { self.with_rounding(m, inst, true) };
        let m = if to == Type::F32 || from == Type::F32 { m.ftz(flags, Type::F32) } else { m };
        m.clamps(flags).ty(mnemonic::float(to)).ty(mnemonic::float(from))
    }

    fn float_to_int(&mut self, m: Mnemonic, inst: Inst, from: Type) -> Mnemonic {
        let flags = self.flags(inst);
        let m = if from == Type::F32 { m.ftz(flags, from) } else { m };
        m.int_rounding(flags.explicit_rounding().unwrap_or(Rounding::Zero)).ty(mnemonic::float(from))
    }

    fn int_to_float(&mut self, m: Mnemonic, inst: Inst, to: Type) -> Mnemonic {
        m.rounding(self.flags(inst).rounding()).ty(mnemonic::float(to))
    }

    fn op1(&mut self, m: Mnemonic, a: Operand) -> VReg {
        self.emit_result(m, &[a])
    }

    fn op2(&mut self, m: Mnemonic, a: Operand, b: Operand) -> VReg {
        self.emit_result(m, &[a, b])
    }

    fn op3(&mut self, m: Mnemonic, a: Operand, b: Operand, c: Operand) -> VReg {
        self.emit_result(m, &[a, b, c])
    }

    fn op4(&mut self, m: Mnemonic, a: Operand, b: Operand, c: Operand, d: Operand) -> VReg {
        self.emit_result(m, &[a, b, c, d])
    }

    fn pack64(&mut self, low: VReg, high: VReg) -> VReg {
        self.pack(RegClass::B64, &[low, high])
    }

    fn low(&mut self, reg: VReg) -> VReg {
        self.unpack(reg, RegClass::B32)[0]
    }

    fn high_bound(&mut self, cc: &IntCC, number: i64) -> Option<i64> {
        // The sign alone ptxas finds itself.
        let decides_nothing = match cc {
            IntCC::Ult | IntCC::Uge => number as u32 == 0,
            IntCC::Ugt | IntCC::Ule => number as u32 == u32::MAX,
            IntCC::Slt | IntCC::Sge => number as u32 == 0 && number != 0,
            IntCC::Sgt | IntCC::Sle => number as u32 == u32::MAX && number != -1,
            IntCC::Eq | IntCC::Ne => false,
        };
        decides_nothing.then_some(number >> 32)
    }

    fn joined_halves(&mut self, reg: VReg) -> VReg {
        let halves = self.unpack(reg, RegClass::B32);
        let out = self.new_reg(RegClass::B32);
        self.emit_toks(&[tok::OR, tok::B32], &[Operand::Def(out), Operand::Use(halves[0]), Operand::Use(halves[1])]);
        out
    }

    fn high(&mut self, reg: VReg) -> VReg {
        self.unpack(reg, RegClass::B32)[1]
    }

    fn negate(&mut self, ty: Type, reg: VReg) -> VReg {
        self.sign_bits(ty, reg, SignOp::Negate)
    }

    fn magnitude(&mut self, ty: Type, reg: VReg) -> VReg {
        self.sign_bits(ty, reg, SignOp::Clear)
    }

    fn copy_sign_bits(&mut self, ty: Type, value: VReg, sign: VReg) -> VReg {
        let mask = sign_mask(ty);
        let class = self.func.class(value);
        let suffix = super::memory::untyped_tok(class);
        let kept = self.binary_imm(&[tok::AND, suffix], value, !mask);
        let taken = self.binary_imm(&[tok::AND, suffix], sign, mask);
        let out = self.new_reg(class);
        self.emit_toks(&[tok::OR, suffix], &[Operand::Def(out), Operand::Use(kept), Operand::Use(taken)]);
        out
    }
}

/// What to do with the sign of every lane.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SignOp {
    Negate,
    Clear,
}

/// The sign bits of a type of one register, sign-extended from the register's width.
fn sign_mask(ty: Type) -> i64 {
    let lane = 1u64 << (ty.scalar_bits() - 1);
    let mut mask = 0u64;
    for index in 0..ty.lanes().min(64 / ty.scalar_bits()) {
        mask |= lane << (index * ty.scalar_bits());
    }
    let shift = 64 - ty.bits().min(64);
    ((mask << shift) as i64) >> shift
}

impl Lower<'_> {
    /// Negates or clears signs: by the typed instruction where the target has it (ptxas folds it into operands), else by bits.
    fn sign_bits(&mut self, ty: Type, reg: VReg, op: SignOp) -> VReg {
        let typed = match ty.kind() {
            Some(Scalar::Float(FloatKind::F32 | FloatKind::F64)) => !ty.is_vector() || ty.lanes() == 1,
            Some(Scalar::Float(FloatKind::F16 | FloatKind::Bf16)) => true,
            _ => false,
        };
        let class = self.func.class(reg);
        let suffix = super::memory::untyped_tok(class);
        let head = if op == SignOp::Negate { tok::NEG } else { tok::ABS };
        let toks = [head, mnemonic::float_tok(ty)];
        if typed && self.env.dialect.has_form(&toks, &[Shape::Register(class.ptx_type()); 2]) {
            let out = self.new_reg(class);
            self.emit_toks(&toks, &[Operand::Def(out), Operand::Use(reg)]);
            return out;
        }
        let mask = sign_mask(ty);
        match op {
            SignOp::Negate => self.binary_imm(&[tok::XOR, suffix], reg, mask),
            SignOp::Clear => self.binary_imm(&[tok::AND, suffix], reg, !mask),
        }
    }

    /// `op result, reg, imm` in the register's class.
    pub(super) fn binary_imm(&mut self, toks: &[ptxc_targets::Tok], reg: VReg, imm: i64) -> VReg {
        let out = self.new_reg(self.func.class(reg));
        self.emit_toks(toks, &[Operand::Def(out), Operand::Use(reg), Operand::Imm(imm)]);
        out
    }

    /// A one-source instruction into a fresh register.
    pub(super) fn convert_register(&mut self, reg: VReg, to: RegClass, toks: &[ptxc_targets::Tok]) -> VReg {
        let out = self.new_reg(to);
        self.emit_toks(toks, &[Operand::Def(out), Operand::Use(reg)]);
        out
    }
}

/// The mnemonic of a conversion between pairs (PTX ISA 9.7.9, cvt).
pub(super) fn packed_cvt(flags: Flags, to: Type, from: Type) -> Mnemonic {
    let narrow = |ty: Type| ty.float_kind().is_some_and(FloatKind::is_narrow);
    let m = generated::packed_base();
    // Conversions from narrow floats are exact but written with `rn`.
    let m = m.rounding(flags.rounding());
    let m = if narrow(to) && flags.contains(Flags::SAT) { m.satfinite() } else { m };
    let source = if from.scalar() == Type::F32 { mnemonic::float(Type::F32) } else { mnemonic::float(from) };
    let m = if flags.contains(Flags::RELU) { m.clamps(Flags::RELU) } else { m };
    m.ty(mnemonic::float(to)).ty(source)
}
