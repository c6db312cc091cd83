//! Parameters that a kernel gets by value, and what the host passes in them.
//!
//! A generic pointer that the host passes is to global memory: it knows no addresses of other spaces. That holds for
//! parameters that are pointers, for pointers in objects passed by value, and for integers passed that become pointers
//! without any arithmetic; LLVM's backend and libNVVM (13.0) assume all three for CUDA. LLVM assumes it even of objects that
//! the kernel stores pointers to, libNVVM does not, nor is it done here.

use ptxc_ir::{Flags, FuncKind, MemType, Opcode, Type as IrType, Value, ValueDef};
use rustc_hash::FxHashSet;

use super::body::Writer;
use crate::model::{BlockId, CallId, Instruction, Operand, Ordering, Type, ValueId};

/// Steps of address arithmetic between an access and an object.
const MAX_STEPS: usize = 32;

/// What a kernel does with an object passed by value, from the least on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Uses {
    /// It is only loaded from, also after address arithmetic.
    Read,
    /// Stores write what is no pointer, and no part of one that matters.
    Changed,
    /// Anything.
    Unknown,
}

impl Writer<'_, '_> {
    /// The address of a by-value parameter: its own where the kernel only reads it or it is `constant`, or that of a copy.
    pub fn by_value_parameter(
        &mut self,
        pointer: ValueId,
        address: Value,
        object: MemType,
        (align, constant): (u32, bool),
        order: &[BlockId],
    ) -> Value {
        let uses = if constant { Uses::Read } else { self.uses_of_object(pointer, order) };
        let own = if uses == Uses::Read { address } else { self.copy_of_parameter(address, object, align) };
        if uses != Uses::Unknown && self.cx.kernel_pointers_are_global {
            self.passed_objects.insert(own);
        }
        own
    }

    /// Whether an address is in an object that holds what the host passed.
    pub fn is_passed_object(&self, address: Value) -> bool {
        if self.passed_objects.is_empty() {
            return false;
        }
        let dfg = &self.b.func.dfg;
        let mut at = address;
        for _ in 0..MAX_STEPS {
            if self.passed_objects.contains(&at) {
                return true;
            }
            let Some(inst) = dfg.def_inst(at) else { return false };
            if !matches!(dfg.insts[inst].op, Opcode::Gep | Opcode::Addrspacecast) {
                return false;
            }
            let Some(base) = dfg.args(inst).first() else { return false };
            at = *base;
        }
        false
    }

    /// Whether a number is what the host passed as one of 64 bits.
    pub fn is_passed_number(&self, number: Value) -> bool {
        let func = &self.b.func;
        if func.kind != FuncKind::Kernel || !self.cx.kernel_pointers_are_global || func.dfg.ty(number) != IrType::I64 {
            return false;
        }
        match func.dfg.def(number) {
            ValueDef::Param(block, _) => func.layout.entry() == Some(block),
            ValueDef::Result(inst, _) if func.dfg.insts[inst].op == Opcode::Load => {
                func.dfg.args(inst).first().is_some_and(|address| self.is_passed_object(*address))
            }
            _ => false,
        }
    }

    /// Whether stores of a type leave the pointers of an object what they were, or destroy them.
    fn holds_no_pointer(&self, stored: Operand) -> bool {
        let types = &self.cx.source.types;
        match self.cx.source.type_of(self.body, stored).map(|ty| types.get(ty)) {
            Some(Type::Integer(bits)) => bits < 64,
            Some(Type::Half | Type::BFloat | Type::Float | Type::Double) => true,
            _ => false,
        }
    }

    /// A copy of a by-value parameter that the kernel may write.
    fn copy_of_parameter(&mut self, address: Value, object: MemType, align: u32) -> Value {
        let layout = self.cx.module.layout_of(object);
        let align = align.max(u32::try_from(layout.align).unwrap_or(16)).max(1);
        let copy = self.b.alloca(object, 1, align);
        let size = self.b.iconst(IrType::I64, layout.size as i64);
        let extra = ptxc_ir::Extra::Copy { dst_align: align, src_align: align, volatile: false };
        self.b.inst(Opcode::Memcpy, Flags::EMPTY, IrType::INVALID, &[copy, address, size], extra);
        copy
    }

    /// What is done with the object that a pointer points to. `order` has definitions before uses.
    fn uses_of_object(&self, pointer: ValueId, order: &[BlockId]) -> Uses {
        let mut uses = Uses::Read;
        let mut derived: FxHashSet<Operand> = [pointer.into()].into_iter().collect();
        let is = |derived: &FxHashSet<Operand>, operand: Operand| derived.contains(&operand);
        for inst in order.iter().flat_map(|block| self.body.block(*block)) {
            let data = self.body.instructions[inst];
            match data.instruction {
                Instruction::ElementPointer { operands, .. } => {
                    let operands = self.body.operands(operands);
                    let base = operands.first().is_some_and(|base| is(&derived, *base));
                    if operands.iter().skip(1).any(|operand| is(&derived, *operand)) {
                        return Uses::Unknown;
                    }
                    if let (true, Some(result)) = (base, data.result.expand()) {
                        derived.insert(result.into());
                    }
                }
                Instruction::Cast { value, .. } if is(&derived, value) => match data.result.expand() {
                    Some(result) if self.is_pointer_value(result) => {
                        derived.insert(result.into());
                    }
                    _ => return Uses::Unknown,
                },
                Instruction::Load { address, access } if is(&derived, address) => {
                    if access.ordering != Ordering::NotAtomic {
                        return Uses::Unknown;
                    }
                }
                Instruction::Store { value, address, access } if is(&derived, address) => {
                    let plain = access.ordering == Ordering::NotAtomic && !access.volatile;
                    if !plain || is(&derived, value) || !self.holds_no_pointer(value) {
                        return Uses::Unknown;
                    }
                    uses = Uses::Changed;
                }
                Instruction::Call(call) => {
                    if !self.call_only_reads(call, &derived) {
                        return Uses::Unknown;
                    }
                }
                other => {
                    let mut found = false;
                    self.for_each_operand(&other, &mut |operand| found |= is(&derived, operand));
                    if found {
                        return Uses::Unknown;
                    }
                }
            }
        }
        uses
    }

    fn is_pointer_value(&self, value: ValueId) -> bool {
        matches!(self.cx.source.types.get(self.body.values[value].ty), Type::Pointer(_))
    }

    /// Whether a call uses none of the pointers, or only as the source of a block copy or to mark lifetimes.
    fn call_only_reads(&self, call: CallId, derived: &FxHashSet<Operand>) -> bool {
        let call = self.body.calls[call];
        let arguments = self.body.operands(call.arguments);
        let used: Vec<usize> =
            arguments.iter().enumerate().filter(|(_, a)| derived.contains(a)).map(|(index, _)| index).collect();
        if used.is_empty() {
            return !derived.contains(&call.callee);
        }
        let Some(name) = self.callee_name(call.callee) else { return false };
        let copies = name.starts_with("llvm.memcpy.") || name.starts_with("llvm.memmove.");
        (copies && used == [1]) || name.starts_with("llvm.lifetime.") || name.starts_with("llvm.dbg.")
    }

    /// Calls `f` on the operands of instructions other than calls.
    fn for_each_operand(&self, instruction: &Instruction, f: &mut dyn FnMut(Operand)) {
        match *instruction {
            Instruction::Negate { value, .. } | Instruction::Cast { value, .. } | Instruction::Freeze(value) => {
                f(value)
            }
            Instruction::Binary { left, right, .. }
            | Instruction::CompareInt { left, right, .. }
            | Instruction::CompareFloat { left, right, .. }
            | Instruction::Shuffle { left, right, .. } => [left, right].into_iter().for_each(f),
            Instruction::Select { condition, yes, no, .. } => [condition, yes, no].into_iter().for_each(f),
            Instruction::Phi { incoming: list, .. }
            | Instruction::Return(list)
            | Instruction::ElementPointer { operands: list, .. }
            | Instruction::Exception { operands: list, .. } => {
                self.body.operands(list).iter().copied().for_each(f);
            }
            Instruction::Alloca { count, .. } => f(count),
            Instruction::Load { address, .. } | Instruction::IndirectBranch { address, .. } => f(address),
            Instruction::Store { value, address, .. } | Instruction::Rmw { value, address, .. } => {
                [value, address].into_iter().for_each(f);
            }
            Instruction::CompareExchange { address, expected, new, .. } => {
                [address, expected, new].into_iter().for_each(f);
            }
            Instruction::ExtractElement { vector, index } => [vector, index].into_iter().for_each(f),
            Instruction::InsertElement { vector, element, index } => [vector, element, index].into_iter().for_each(f),
            Instruction::ExtractValue { aggregate, .. } => f(aggregate),
            Instruction::InsertValue { aggregate, value, .. } => [aggregate, value].into_iter().for_each(f),
            Instruction::VariadicArgument(list) => f(list),
            Instruction::Branch { condition, .. } => f(condition),
            Instruction::Switch { value, .. } => f(value),
            Instruction::Invoke { call, .. } | Instruction::CallBranch { call, .. } | Instruction::Call(call) => {
                let call = self.body.calls[call];
                f(call.callee);
                self.body.operands(call.arguments).iter().copied().for_each(f);
            }
            Instruction::Fence { .. } | Instruction::Jump(_) | Instruction::Unreachable => {}
        }
    }
}
