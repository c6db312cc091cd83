//! `atomicrmw`, `cmpxchg`, `fence`.

use ptxc_ir::{
    AtomicOp, Flags as IrFlags, IntCC, MemAttrs, Opcode, Ordering as IrOrdering, Scope, Space, Type as IrType, Value,
};

use super::body::Writer;
use super::{Fault, Result};
use crate::model::{Access, Name, Operand, Ordering, RmwOp, ValueId};

/// The operation of the IR; `None` for those that PTX does not have.
fn operation(op: RmwOp) -> Option<AtomicOp> {
    Some(match op {
        RmwOp::Xchg => AtomicOp::Xchg,
        RmwOp::Add => AtomicOp::Add,
        RmwOp::Sub => AtomicOp::Sub,
        RmwOp::And => AtomicOp::And,
        RmwOp::Nand => AtomicOp::Nand,
        RmwOp::Or => AtomicOp::Or,
        RmwOp::Xor => AtomicOp::Xor,
        RmwOp::Max => AtomicOp::Smax,
        RmwOp::Min => AtomicOp::Smin,
        RmwOp::UMax => AtomicOp::Umax,
        RmwOp::UMin => AtomicOp::Umin,
        RmwOp::FAdd => AtomicOp::Fadd,
        RmwOp::FSub => AtomicOp::Fsub,
        RmwOp::FMax | RmwOp::FMaximumNum => AtomicOp::Fmax,
        RmwOp::FMin | RmwOp::FMinimumNum => AtomicOp::Fmin,
        RmwOp::UIncWrap => AtomicOp::UincWrap,
        RmwOp::UDecWrap => AtomicOp::UdecWrap,
        RmwOp::USubCond | RmwOp::USubSat | RmwOp::FMaximum | RmwOp::FMinimum => return None,
    })
}

impl Writer<'_, '_> {
    /// Whether atomics reach memory at that address; other threads do not see the rest.
    fn is_private(&self, address: Value) -> bool {
        matches!(self.b.ty(address).space(), Some(Space::Local | Space::Param | Space::Const))
    }

    fn atomic_attrs(&self, access: Access, ty: IrType) -> Result<MemAttrs> {
        let mut attrs = MemAttrs::aligned(access.align.bytes().unwrap_or(1).clamp(ty.size().max(1), 1 << 30));
        attrs.volatile = access.volatile;
        attrs.order = Self::ordering(access.ordering);
        // What only orders a thread's own accesses is done for the smallest scope that there is.
        attrs.scope = self.scope(access.scope)?.unwrap_or(Scope::Cta);
        Ok(attrs)
    }

    /// `atomicrmw`.
    pub fn rmw(
        &mut self,
        result: Option<ValueId>,
        op: RmwOp,
        address: Operand,
        value: Operand,
        access: Access,
    ) -> Result<()> {
        let address = self.address(address)?;
        let value = self.value(value)?;
        let ty = self.b.ty(value);
        let attrs = self.atomic_attrs(access, ty)?;
        let old = if self.is_private(address) {
            let plain = MemAttrs::aligned(attrs.align());
            let old = self.b.load(ty, address, plain);
            let new = self.rmw_value(op, old, value)?;
            self.b.store(new, address, plain);
            old
        } else if let Some(operation) = operation(op)
            && (op != RmwOp::Xchg || !ty.is_vector())
        {
            self.b.atomic_rmw(operation, address, value, attrs)
        } else if op == RmwOp::Xchg {
            let bits = self.bit_cast(value, IrType::int(ty.bits()))?;
            let old = self.b.atomic_rmw(AtomicOp::Xchg, address, bits, attrs);
            self.bit_cast(old, ty)?
        } else {
            self.compare_loop(op, address, value, attrs)?
        };
        self.finish(result, vec![old])
    }

    /// What an operation makes of the old value.
    fn rmw_value(&mut self, op: RmwOp, old: Value, value: Value) -> Result<Value> {
        let opcode = match op {
            RmwOp::Xchg => return Ok(value),
            RmwOp::Add => Opcode::Add,
            RmwOp::Sub => Opcode::Sub,
            RmwOp::And => Opcode::And,
            RmwOp::Or => Opcode::Or,
            RmwOp::Xor => Opcode::Xor,
            RmwOp::Max => Opcode::Smax,
            RmwOp::Min => Opcode::Smin,
            RmwOp::UMax => Opcode::Umax,
            RmwOp::UMin => Opcode::Umin,
            RmwOp::FAdd => Opcode::Fadd,
            RmwOp::FSub => Opcode::Fsub,
            RmwOp::FMax | RmwOp::FMaximumNum => Opcode::Fmax,
            RmwOp::FMin | RmwOp::FMinimumNum => Opcode::Fmin,
            RmwOp::FMaximum => Opcode::Fmaximum,
            RmwOp::FMinimum => Opcode::Fminimum,
            RmwOp::USubSat => Opcode::UsubSat,
            RmwOp::Nand => {
                let both = self.b.binary(Opcode::And, old, value);
                return Ok(self.b.binary_imm(Opcode::Xor, both, -1));
            }
            RmwOp::USubCond => {
                let fits = self.b.icmp(IntCC::Uge, old, value);
                let less = self.b.binary(Opcode::Sub, old, value);
                return Ok(self.b.select(fits, less, old));
            }
            RmwOp::UIncWrap => {
                let wraps = self.b.icmp(IntCC::Uge, old, value);
                let next = self.b.binary_imm(Opcode::Add, old, 1);
                let ty = self.b.ty(old);
                let zero = self.b.iconst(ty, 0);
                return Ok(self.b.select(wraps, zero, next));
            }
            RmwOp::UDecWrap => {
                let zero = self.b.icmp_imm(IntCC::Eq, old, 0);
                let above = self.b.icmp(IntCC::Ugt, old, value);
                let wraps = self.b.binary(Opcode::Or, zero, above);
                let next = self.b.binary_imm(Opcode::Add, old, -1);
                return Ok(self.b.select(wraps, value, next));
            }
        };
        Ok(self.b.binary(opcode, old, value))
    }

    /// An operation that PTX does not have, by compare and exchange until nobody was between.
    fn compare_loop(&mut self, op: RmwOp, address: Value, value: Value, attrs: MemAttrs) -> Result<Value> {
        let ty = self.b.ty(value);
        let bits = IrType::int(ty.bits());
        let first = self.b.load(bits, address, MemAttrs { order: IrOrdering::Relaxed, volatile: false, ..attrs });
        let (again, done) = (self.b.append_block(), self.b.append_block());
        let seen = self.b.block_param(again, bits);
        let old_bits = self.b.block_param(done, bits);
        self.b.jump(again, &[first]);
        self.b.switch_to(again);
        let old = self.bit_cast(seen, ty)?;
        let new = self.rmw_value(op, old, value)?;
        let new = self.bit_cast(new, bits)?;
        let failure = match attrs.order {
            IrOrdering::Release | IrOrdering::Relaxed => IrOrdering::Relaxed,
            IrOrdering::AcqRel => IrOrdering::Acquire,
            other => other,
        };
        let (found, same) = self.b.cmpxchg(address, seen, new, attrs, failure);
        self.b.br(same, (done, &[found]), (again, &[found]));
        self.b.switch_to(done);
        self.bit_cast(old_bits, ty)
    }

    /// `cmpxchg`; `operands` are address, expected and new value.
    pub fn compare_exchange(
        &mut self,
        result: Option<ValueId>,
        weak: bool,
        failure: Ordering,
        operands: (Operand, Operand, Operand),
        access: Access,
    ) -> Result<()> {
        let address = self.address(operands.0)?;
        let (expected, new) = (self.value(operands.1)?, self.value(operands.2)?);
        let ty = self.b.ty(expected);
        let attrs = self.atomic_attrs(access, ty)?;
        if self.is_private(address) {
            let plain = MemAttrs::aligned(attrs.align());
            let old = self.b.load(ty, address, plain);
            let same = self.b.icmp(IntCC::Eq, old, expected);
            let kept = self.b.select(same, new, old);
            self.b.store(kept, address, plain);
            return self.finish(result, vec![old, same]);
        }
        let failure = match Self::ordering(failure) {
            IrOrdering::NotAtomic | IrOrdering::Release => IrOrdering::Relaxed,
            IrOrdering::AcqRel => IrOrdering::Acquire,
            other => other,
        };
        let flags = if weak { IrFlags::WEAK } else { IrFlags::EMPTY };
        let extra = ptxc_ir::Extra::Cmpxchg(attrs, failure);
        let inst = self.b.inst(Opcode::Cmpxchg, flags, ty, &[address, expected, new], extra);
        let parts = self.b.func.dfg.results(inst).collect();
        self.finish(result, parts)
    }

    /// `fence`.
    pub fn fence(&mut self, ordering: Ordering, scope: Name) -> Result<()> {
        let order = Self::ordering(ordering);
        if matches!(order, IrOrdering::NotAtomic | IrOrdering::Relaxed) {
            return Err(Fault::new("a fence that orders nothing"));
        }
        if let Some(scope) = self.scope(scope)? {
            self.b.fence(order, scope);
        }
        Ok(())
    }
}
