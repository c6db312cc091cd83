//! Arithmetic, conversions, comparisons, `select` and `freeze`.

use ptxc_ir::{Extra, Flags as IrFlags, FloatCC, FloatKind, IntCC, Opcode, Space, Type as IrType, Value};

use super::body::Writer;
use super::{Fault, Result};
use crate::model::{
    BinaryOp, CastOp, Flags, FloatPredicate, Instruction, IntPredicate, Operand, Type, TypeId, ValueId,
};

/// Flags of LLVM and of the IR.
const FLAGS: &[(Flags, IrFlags)] = &[
    (Flags::NNAN, IrFlags::NNAN),
    (Flags::NINF, IrFlags::NINF),
    (Flags::NSZ, IrFlags::NSZ),
    (Flags::ARCP, IrFlags::ARCP),
    (Flags::CONTRACT, IrFlags::CONTRACT),
    (Flags::AFN, IrFlags::AFN),
    (Flags::REASSOC, IrFlags::REASSOC),
    (Flags::NUW, IrFlags::NUW),
    (Flags::NSW, IrFlags::NSW),
    (Flags::EXACT, IrFlags::EXACT),
    (Flags::DISJOINT, IrFlags::DISJOINT),
    (Flags::NNEG, IrFlags::NNEG),
];

/// The operation of the IR for one of LLVM.
fn binary(op: BinaryOp) -> Opcode {
    match op {
        BinaryOp::Add => Opcode::Add,
        BinaryOp::Sub => Opcode::Sub,
        BinaryOp::Mul => Opcode::Mul,
        BinaryOp::UDiv => Opcode::Udiv,
        BinaryOp::SDiv => Opcode::Sdiv,
        BinaryOp::URem => Opcode::Urem,
        BinaryOp::SRem => Opcode::Srem,
        BinaryOp::Shl => Opcode::Shl,
        BinaryOp::LShr => Opcode::Lshr,
        BinaryOp::AShr => Opcode::Ashr,
        BinaryOp::And => Opcode::And,
        BinaryOp::Or => Opcode::Or,
        BinaryOp::Xor => Opcode::Xor,
        BinaryOp::FAdd => Opcode::Fadd,
        BinaryOp::FSub => Opcode::Fsub,
        BinaryOp::FMul => Opcode::Fmul,
        BinaryOp::FDiv => Opcode::Fdiv,
        BinaryOp::FRem => Opcode::Frem,
    }
}

fn int_condition(predicate: IntPredicate) -> IntCC {
    match predicate {
        IntPredicate::Eq => IntCC::Eq,
        IntPredicate::Ne => IntCC::Ne,
        IntPredicate::Ugt => IntCC::Ugt,
        IntPredicate::Uge => IntCC::Uge,
        IntPredicate::Ult => IntCC::Ult,
        IntPredicate::Ule => IntCC::Ule,
        IntPredicate::Sgt => IntCC::Sgt,
        IntPredicate::Sge => IntCC::Sge,
        IntPredicate::Slt => IntCC::Slt,
        IntPredicate::Sle => IntCC::Sle,
    }
}

fn float_condition(predicate: FloatPredicate) -> FloatCC {
    match predicate {
        FloatPredicate::False => FloatCC::False,
        FloatPredicate::Oeq => FloatCC::Oeq,
        FloatPredicate::Ogt => FloatCC::Ogt,
        FloatPredicate::Oge => FloatCC::Oge,
        FloatPredicate::Olt => FloatCC::Olt,
        FloatPredicate::Ole => FloatCC::Ole,
        FloatPredicate::One => FloatCC::One,
        FloatPredicate::Ord => FloatCC::Ord,
        FloatPredicate::Uno => FloatCC::Uno,
        FloatPredicate::Ueq => FloatCC::Ueq,
        FloatPredicate::Ugt => FloatCC::Ugt,
        FloatPredicate::Uge => FloatCC::Uge,
        FloatPredicate::Ult => FloatCC::Ult,
        FloatPredicate::Ule => FloatCC::Ule,
        FloatPredicate::Une => FloatCC::Une,
        FloatPredicate::True => FloatCC::True,
    }
}

impl Writer<'_, '_> {
    /// The flags that an operation on `ty` takes of LLVM's, with the function's handling of subnormals.
    pub fn flags(&self, flags: Flags, op: Opcode, ty: IrType) -> IrFlags {
        let mut out = IrFlags::EMPTY;
        let flags = flags.with(self.promised);
        for (theirs, ours) in FLAGS {
            if flags.has(*theirs) {
                out |= *ours;
            }
        }
        if ty.float_kind() == Some(FloatKind::F32) {
            out |= self.ftz;
        }
        IrFlags::from_bits(out.bits() & op.info().flags)
    }

    /// The parts of the result of an instruction that only computes. `result` names its type where operands do not.
    pub fn compute(&mut self, instruction: &Instruction, result: Option<ValueId>) -> Result<Vec<Value>> {
        Ok(match *instruction {
            Instruction::Negate { flags, value } => {
                let value = self.value(value)?;
                let ty = self.b.ty(value);
                let flags = self.flags(flags, Opcode::Fneg, ty);
                vec![self.op(Opcode::Fneg, flags, ty, &[value])]
            }
            Instruction::Binary { op, flags, left, right } => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                let (op, ty) = (binary(op), self.b.ty(left));
                let flags = self.flags(flags, op, ty);
                vec![self.op(op, flags, ty, &[left, right])]
            }
            Instruction::Cast { op, flags, value } => {
                let result = result.ok_or_else(|| Fault::new("a conversion has no result"))?;
                let (from, to) = (self.type_of(value)?, self.body.values[result].ty);
                let value = self.raw(value)?;
                vec![self.cast(op, flags, value, from, to)?]
            }
            Instruction::CompareInt { predicate, left, right, .. } => {
                vec![self.compare_int(int_condition(predicate), left, right)?]
            }
            Instruction::CompareFloat { predicate, flags, left, right } => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                let ty = self.b.ty(left);
                let flags = self.flags(flags, Opcode::Fcmp, ty);
                vec![self.b.fcmp(float_condition(predicate), flags, left, right)]
            }
            Instruction::Select { flags, condition, yes, no } => self.select(flags, condition, yes, no)?,
            Instruction::Freeze(value) => {
                let run = self.exact_parts(value)?;
                let parts = self.parts[run.range()].to_vec();
                parts.into_iter().map(|part| self.b.unary(Opcode::Freeze, part)).collect()
            }
            _ => return Err(Fault::new("this is no computation")),
        })
    }

    fn compare_int(&mut self, condition: IntCC, left: Operand, right: Operand) -> Result<Value> {
        let (a, b) = (self.value(left)?, self.value(right)?);
        Ok(self.b.icmp(condition, a, b))
    }

    fn select(&mut self, flags: Flags, condition: Operand, yes: Operand, no: Operand) -> Result<Vec<Value>> {
        let condition = self.value(condition)?;
        let (yes_run, no_run) = (self.raw_parts(yes)?, self.raw_parts(no)?);
        // Pointers that are known to be in one space on both sides stay there.
        let same = |w: &Self| {
            let (a, b) = (&w.parts[yes_run.range()], &w.parts[no_run.range()]);
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| w.b.ty(*a) == w.b.ty(*b))
        };
        let (yes, no) = if same(self) { (yes_run, no_run) } else { (self.exact_parts(yes)?, self.exact_parts(no)?) };
        let pairs: Vec<(Value, Value)> =
            self.parts[yes.range()].iter().copied().zip(self.parts[no.range()].iter().copied()).collect();
        let mut out = Vec::with_capacity(pairs.len());
        for (a, b) in pairs {
            let ty = self.b.ty(a);
            let flags = if ty.is_float_like() { self.flags(flags, Opcode::Select, ty) } else { IrFlags::EMPTY };
            out.push(self.op(Opcode::Select, flags, ty, &[condition, a, b]));
        }
        Ok(out)
    }

    /// A conversion.
    pub fn cast(&mut self, op: CastOp, flags: Flags, value: Value, from: TypeId, to: TypeId) -> Result<Value> {
        let ty = self.cx.value_type(to)?;
        let op = match op {
            CastOp::Trunc => Opcode::Trunc,
            CastOp::ZExt => Opcode::Zext,
            CastOp::SExt => Opcode::Sext,
            CastOp::FPTrunc => Opcode::Fptrunc,
            CastOp::FPExt => Opcode::Fpext,
            CastOp::FPToUI => Opcode::Fptoui,
            CastOp::FPToSI => Opcode::Fptosi,
            CastOp::UIToFP => Opcode::Uitofp,
            CastOp::SIToFP => Opcode::Sitofp,
            CastOp::PtrToInt | CastOp::PtrToAddr => return self.pointer_to_integer(value, from, ty),
            CastOp::IntToPtr => {
                let passed = ty == IrType::PTR && self.is_passed_number(value);
                let ty = if passed { IrType::ptr(Space::Global) } else { ty };
                return Ok(self.integer_to_pointer(value, ty));
            }
            CastOp::BitCast => return self.bit_cast(value, ty),
            CastOp::AddrSpaceCast => {
                // A cast to the generic space is made where it is needed.
                let keep = ty == IrType::PTR && self.b.ty(value).is_ptr();
                return Ok(if keep { value } else { self.fit(value, ty) });
            }
        };
        let value_ty = self.b.ty(value);
        if value_ty == ty {
            return Ok(value);
        }
        // Formats of one size convert through the next larger one.
        if op == Opcode::Fptrunc && value_ty.scalar_bits() == ty.scalar_bits() {
            return Err(Fault::new("a float is truncated to one of its own size"));
        }
        let ftz_of = if op == Opcode::Fpext { value_ty } else { ty };
        let mut flags = self.flags(flags, op, ty);
        let half = ftz_of.scalar_bits() < 32 || value_ty.scalar_bits() < 32;
        if matches!(op, Opcode::Fptrunc | Opcode::Fpext) && half {
            // `.ftz` of conversions concerns f32 values; those that become 16 bits keep their subnormals.
            flags = flags.without(IrFlags::FTZ);
        }
        Ok(self.b.convert_flags(op, flags, value, ty))
    }

    /// An integer from a pointer. Pointers of less than 64 bits have that many.
    fn pointer_to_integer(&mut self, value: Value, from: TypeId, ty: IrType) -> Result<Value> {
        let exact = self.cx.value_type(from)?;
        let value = self.fit(value, exact);
        let space = match self.cx.source.types.get(self.cx.source.types.scalar(from)) {
            Type::Pointer(space) => space,
            _ => return Err(Fault::new("`ptrtoint` of a value that is no pointer")),
        };
        let bits = (self.cx.layout.pointer(space).0 * 8).min(u64::from(exact.scalar_bits())) as u32;
        if ty.scalar_bits() > bits && bits < exact.scalar_bits() {
            let short = self.b.convert(Opcode::Ptrtoint, value, ty.with_scalar(IrType::int(bits)));
            return Ok(self.resize(short, ty, false));
        }
        Ok(self.b.convert(Opcode::Ptrtoint, value, ty))
    }

    /// The same bits as another type.
    pub fn bit_cast(&mut self, value: Value, ty: IrType) -> Result<Value> {
        let own = self.b.ty(value);
        if own == ty {
            return Ok(value);
        }
        if own.is_ptr_like() && ty.is_ptr_like() {
            if own.is_vector() == ty.is_vector() {
                return Ok(if ty == IrType::PTR { value } else { self.fit(value, ty) });
            }
            return Err(Fault::new("a bit cast between a pointer and a vector of pointers"));
        }
        if own.is_ptr_like() {
            let number = self.b.convert(Opcode::Ptrtoint, value, own.with_scalar(IrType::I64));
            return self.bit_cast(number, ty);
        }
        if ty.is_ptr_like() {
            let number = self.bit_cast(value, ty.with_scalar(IrType::I64))?;
            return Ok(self.b.convert(Opcode::Inttoptr, number, ty));
        }
        if own.bits() != ty.bits() {
            return Err(Fault::new(format!("a bit cast from {own} to {ty} changes the size")));
        }
        Ok(self.b.convert_flags(Opcode::Bitcast, IrFlags::EMPTY, value, ty))
    }

    /// A conversion that the target formats have in two steps, or directly.
    pub fn with_extra(&mut self, op: Opcode, ty: IrType, args: &[Value], extra: Extra) -> Value {
        let inst = self.b.inst(op, IrFlags::EMPTY, ty, args, extra);
        self.b.func.dfg.result(inst, 0)
    }
}
