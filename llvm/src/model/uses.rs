//! Which symbols a symbol uses.

use rustc_hash::FxHashSet;

use super::{Body, ConstId, Constant, GlobalId, GlobalKind, Instruction, LocalMetadata, Module, Operand};

impl Body {
    /// Calls `f` on every operand of every instruction, in no order; those of lists may come more than once.
    pub fn for_each_operand(&self, mut f: impl FnMut(Operand)) {
        self.operand_pool().iter().for_each(|operand| f(*operand));
        self.calls.values().for_each(|call| f(call.callee));
        for metadata in self.metadata.values() {
            if let LocalMetadata::Value(operand) = metadata {
                f(*operand);
            }
        }
        for data in self.instructions.values() {
            for_each_single(&data.instruction, &mut f);
        }
    }
}

/// The operands that an instruction holds itself.
fn for_each_single(instruction: &Instruction, f: &mut impl FnMut(Operand)) {
    let mut all = |operands: &[Operand]| operands.iter().for_each(|operand| f(*operand));
    match *instruction {
        Instruction::Negate { value, .. }
        | Instruction::Cast { value, .. }
        | Instruction::Freeze(value)
        | Instruction::VariadicArgument(value)
        | Instruction::Alloca { count: value, .. }
        | Instruction::Load { address: value, .. }
        | Instruction::ExtractValue { aggregate: value, .. }
        | Instruction::Branch { condition: value, .. }
        | Instruction::Switch { value, .. }
        | Instruction::IndirectBranch { address: value, .. } => all(&[value]),
        Instruction::Binary { left, right, .. }
        | Instruction::CompareInt { left, right, .. }
        | Instruction::CompareFloat { left, right, .. }
        | Instruction::Shuffle { left, right, .. } => all(&[left, right]),
        Instruction::Select { condition, yes, no, .. } => all(&[condition, yes, no]),
        Instruction::Store { value, address, .. } | Instruction::Rmw { value, address, .. } => all(&[value, address]),
        Instruction::CompareExchange { address, expected, new, .. } => all(&[address, expected, new]),
        Instruction::ExtractElement { vector, index } => all(&[vector, index]),
        Instruction::InsertElement { vector, element, index } => all(&[vector, element, index]),
        Instruction::InsertValue { aggregate, value, .. } => all(&[aggregate, value]),
        Instruction::Phi { .. }
        | Instruction::Fence { .. }
        | Instruction::ElementPointer { .. }
        | Instruction::Call(_)
        | Instruction::Invoke { .. }
        | Instruction::CallBranch { .. }
        | Instruction::Return(_)
        | Instruction::Jump(_)
        | Instruction::Unreachable
        | Instruction::Exception { .. } => {}
    }
}

/// Finds the symbols that symbols use. Each constant is looked at once, however many use it.
#[derive(Default, Debug)]
pub struct Uses {
    seen: FxHashSet<ConstId>,
    work: Vec<ConstId>,
}

impl Uses {
    /// Appends the symbols that a symbol uses and that none before it has used.
    pub fn of(&mut self, module: &Module, id: GlobalId, out: &mut Vec<GlobalId>) {
        match &module.globals[id].kind {
            GlobalKind::Unknown => {}
            GlobalKind::Variable(variable) => self.work.extend(variable.initializer.expand()),
            GlobalKind::Alias(constant) | GlobalKind::IFunc(constant) => self.work.push(*constant),
            GlobalKind::Function(function) => {
                let constants = [function.prefix, function.prologue, function.personality];
                self.work.extend(constants.into_iter().filter_map(|constant| constant.expand()));
                if let Some(body) = &function.body {
                    body.for_each_operand(|operand| self.work.extend(operand.constant()));
                }
            }
        }
        while let Some(constant) = self.work.pop() {
            if self.seen.insert(constant) {
                self.constant(module, constant, out);
            }
        }
    }

    fn constant(&mut self, module: &Module, id: ConstId, out: &mut Vec<GlobalId>) {
        let constants = &module.constants;
        match constants.get(id) {
            Constant::Global(global) | Constant::DsoLocalEquivalent(global) | Constant::NoCfi(global) => {
                out.push(global);
            }
            Constant::BlockAddress(address) => out.push(constants.block_addresses[address].function),
            Constant::Aggregate(list) | Constant::PointerAuth(list) => self.work.extend(constants.list(list)),
            Constant::ElementPointer { operands, .. } => self.work.extend(constants.list(operands)),
            Constant::Negate(value) | Constant::Cast { value, .. } => self.work.push(value),
            Constant::Binary { left, right, .. }
            | Constant::CompareInt { left, right, .. }
            | Constant::CompareFloat { left, right, .. }
            | Constant::Shuffle { left, right, .. } => self.work.extend([left, right]),
            Constant::Select { condition, yes, no } => self.work.extend([condition, yes, no]),
            Constant::ExtractElement { vector, index } => self.work.extend([vector, index]),
            Constant::InsertElement { vector, element, index } => self.work.extend([vector, element, index]),
            Constant::Integer(_)
            | Constant::WideInteger(_)
            | Constant::Float(_)
            | Constant::WideFloat(_)
            | Constant::Zero
            | Constant::Undef
            | Constant::Poison
            | Constant::NoToken
            | Constant::Data(_)
            | Constant::Assembly(_)
            | Constant::Metadata(_) => {}
        }
    }
}
