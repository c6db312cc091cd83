//! What the checker of values that are made again accepts and refuses.

#![allow(clippy::unwrap_used)]

use ptxc_mir::{
    Block, FuncKind, Function, FunctionBuilder, GroupKind, Inst, InstData, Linkage, Module, Op, Operand, RegClass,
    Signature, Terminator, VReg,
};
use ptxc_scheduling::{FunctionFacts, ModuleFacts, Violation, check_copies};
use ptxc_targets::SpecialReg;

/// One block: `base`, `value` of it, and two stores of `value`.
struct Kernel {
    module: Module,
    func: Function,
    block: Block,
    maker: Inst,
    value: VReg,
}

impl Kernel {
    fn new(mnemonic: &str, source: impl Fn(VReg) -> Vec<Operand>) -> Kernel {
        let mut module = Module::new("sm_90".parse().unwrap());
        let name = module.symbols.intern("kernel");
        let mut func = Function::new(name, FuncKind::Kernel, Linkage::Visible, Signature::default());
        let block = func.new_block();
        let mut emit = |func: &mut Function, mnemonic: &str, operands: &[Operand]| {
            let opcode = module.opcodes.intern_text(mnemonic).unwrap();
            let mut builder = FunctionBuilder::new(func);
            builder.switch_to(block);
            builder.emit(opcode, operands)
        };
        let (address, base) = (func.new_vreg(RegClass::B64), func.new_vreg(RegClass::B32));
        let value = func.new_vreg(RegClass::B32);
        emit(&mut func, "mov.b64", &[Operand::Def(address), Operand::Imm(4096)]);
        emit(&mut func, "mov.b32", &[Operand::Def(base), Operand::Imm(7)]);
        let operands: Vec<Operand> = [Operand::Def(value)].into_iter().chain(source(base)).collect();
        let maker = emit(&mut func, mnemonic, &operands);
        for _ in 0..2 {
            let place = [Operand::Open(GroupKind::Address, 1), Operand::Use(address)];
            emit(&mut func, "st.global.b32", &[place[0], place[1], Operand::Use(value)]);
        }
        func.blocks[block].terminator = Terminator::Ret { uniform: false };
        Kernel { module, func, block, maker, value }
    }

    fn sum() -> Kernel {
        Kernel::new("add.s32", |base| vec![Operand::Use(base), Operand::Imm(1)])
    }

    /// The maker again as what `change` makes of its operands, before position `at`, read by the last store.
    fn again(&self, at: usize, change: impl Fn(&mut Vec<Operand>)) -> Function {
        let mut new = self.func.clone();
        let copy = new.new_vreg(RegClass::B32);
        let mut operands = new.inst_operands(self.maker).to_vec();
        operands[0] = Operand::Def(copy);
        change(&mut operands);
        let operands = new.add_operands(&operands);
        let inst = new.insts.push(InstData { operands, ..new.insts[self.maker] });
        new.blocks[self.block].insts.insert(at, inst);
        let last = *self.func.blocks[self.block].insts.last().unwrap();
        for operand in new.inst_operands_mut(last) {
            if operand.used() == Some(self.value) {
                operand.set_used(copy);
            }
        }
        new
    }

    fn verdict(&self, new: &Function) -> Result<(), Violation> {
        let module = ModuleFacts::new(&self.module);
        check_copies(&self.func, new, &FunctionFacts::new(&module, &self.func))
    }
}

#[test]
fn what_was_made_again_is_accepted() {
    let kernel = Kernel::sum();
    assert_eq!(kernel.verdict(&kernel.func), Ok(()), "nothing was done");
    for at in 2..=4 {
        assert_eq!(kernel.verdict(&kernel.again(at, |_| {})), Ok(()), "before position {at}");
    }
    let number = SpecialReg::from_name("%tid.x").unwrap();
    let kernel = Kernel::new("mov.u32", |_| vec![Operand::SReg(number)]);
    assert_eq!(kernel.verdict(&kernel.again(4, |_| {})), Ok(()));
}

#[test]
fn it_has_to_be_the_same_and_come_first() {
    let kernel = Kernel::sum();
    let another = kernel.again(4, |operands| operands[2] = Operand::Imm(2));
    assert!(matches!(kernel.verdict(&another), Err(Violation::Copies { .. })), "another number");
    assert!(kernel.verdict(&kernel.again(5, |_| {})).is_err(), "behind its reader");
    assert!(kernel.verdict(&kernel.again(1, |_| {})).is_err(), "before its source");
}

#[test]
fn what_changes_is_not_made_again() {
    let number = SpecialReg::from_name("%smid").unwrap();
    let kernel = Kernel::new("mov.u32", |_| vec![Operand::SReg(number)]);
    assert!(kernel.verdict(&kernel.again(4, |_| {})).is_err());
}

#[test]
fn only_what_nobody_reads_is_gone() {
    let kernel = Kernel::sum();
    let mut new = kernel.again(4, |_| {});
    new.blocks[kernel.block].insts.retain(|inst| *inst != kernel.maker);
    assert!(kernel.verdict(&new).is_err(), "the first store reads it");
    let first = new.blocks[kernel.block].insts[2];
    new.blocks[kernel.block].insts.retain(|inst| *inst != first);
    assert!(kernel.verdict(&new).is_err(), "a store is gone");
    // With its readers all served, the maker may go.
    let mut kernel = Kernel::sum();
    kernel.func.blocks[kernel.block].insts.remove(3);
    let mut new = kernel.again(3, |_| {});
    new.blocks[kernel.block].insts.retain(|inst| *inst != kernel.maker);
    assert_eq!(kernel.verdict(&new), Ok(()));
    assert!(matches!(new.insts[kernel.maker].op, Op::Ptx(_)));
}
