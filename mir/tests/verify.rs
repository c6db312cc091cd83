//! One test for each rule of the verifier, and the printer's text.

use ptxc_mir::{
    AsmId, Block, CallData, CallId, Callee, FuncKind, Function, FunctionBuilder, GroupKind, Guard, InstData, Linkage,
    LocId, Op, Operand, OperandRange, RegClass, Signature, SymId, Symbols, Terminator, VReg, print_function, verify,
};
use ptxc_targets::{Opcode, OpcodeTable, SpecialReg};

const RET: Terminator = Terminator::Ret { uniform: false };

struct Test {
    table: OpcodeTable,
    add: Opcode,
    func: Function,
}

impl Test {
    fn new() -> Test {
        let mut table = OpcodeTable::new();
        let add = table.intern_text("add.s32").expect("a known mnemonic");
        let name = SymId::from_u32(0);
        let mut func = Function::new(name, FuncKind::Kernel, Linkage::Visible, Signature::default());
        func.new_block();
        Test { table, add, func }
    }
}

/// The first message for what `build` makes.
#[track_caller]
fn rejected(build: impl FnOnce(&mut FunctionBuilder<'_>, Opcode)) -> String {
    let mut test = Test::new();
    let entry = test.func.layout[0];
    let mut b = FunctionBuilder::new(&mut test.func);
    b.switch_to(entry);
    build(&mut b, test.add);
    let errors = verify(&test.func).expect_err("it is wrong");
    errors[0].to_string()
}

#[test]
fn a_function_without_blocks() {
    let func = Function::new(SymId::from_u32(0), FuncKind::Func, Linkage::Visible, Signature::default());
    assert!(verify(&func).unwrap_err()[0].message.contains("no blocks"));
}

#[test]
fn blocks_end_once_and_lie_in_the_layout_once() {
    assert_eq!(rejected(|_, _| {}), "block0: the block has no terminator");
    let twice = |b: &mut FunctionBuilder<'_>, _| {
        b.terminate(RET);
        let entry = b.block();
        b.func.layout.push(entry);
    };
    assert_eq!(rejected(twice), "block0: the block is in the layout twice");
    let nowhere = |b: &mut FunctionBuilder<'_>, _| {
        let other = b.func.new_block();
        b.jump(other, &[]);
        b.func.layout.pop();
    };
    assert_eq!(rejected(nowhere), "block0: branches to block1, which is not in the layout");
    let unknown = |b: &mut FunctionBuilder<'_>, _| b.jump(Block::from_u32(7), &[]);
    assert_eq!(rejected(unknown), "block0: branches to block7, which is not in the layout");
}

#[test]
fn branches_fit_their_targets() {
    let count = |b: &mut FunctionBuilder<'_>, _| {
        let other = b.func.new_block();
        b.block_param(other, RegClass::B32);
        b.jump(other, &[]);
        b.switch_to(other);
        b.terminate(RET);
    };
    assert_eq!(rejected(count), "block0: block1 takes 1 arguments, 0 given");
    let class = |b: &mut FunctionBuilder<'_>, add| {
        let other = b.func.new_block();
        b.block_param(other, RegClass::B32);
        let v = b.vreg(RegClass::B64);
        b.inst(add).def(v).finish();
        b.jump(other, &[v]);
        b.switch_to(other);
        b.terminate(RET);
    };
    assert_eq!(rejected(class), "block0: argument %rd1 and parameter %r0 of block1 differ in class");
    let pool = |b: &mut FunctionBuilder<'_>, _| {
        let other = b.func.new_block();
        let mut target = b.target(other, &[]);
        target.len = 5;
        b.terminate(Terminator::Jump(target));
        b.switch_to(other);
        b.terminate(RET);
    };
    assert_eq!(rejected(pool), "block0: the arguments for block1 lie outside the pool");
    let entry = |b: &mut FunctionBuilder<'_>, _| {
        let block = b.block();
        b.block_param(block, RegClass::B32);
        b.terminate(RET);
    };
    assert_eq!(rejected(entry), "block0: the entry block has parameters");
}

#[test]
fn conditions_have_their_class() {
    let branch = |b: &mut FunctionBuilder<'_>, add| {
        let (v, other) = (b.vreg(RegClass::B32), b.func.new_block());
        b.inst(add).def(v).finish();
        let (x, y) = (b.target(other, &[]), b.target(other, &[]));
        b.cond_bra(v, false, x, y);
        b.switch_to(other);
        b.terminate(RET);
    };
    assert_eq!(rejected(branch), "block0: %r0 is not a .pred register");
    let table = |b: &mut FunctionBuilder<'_>, add| {
        let index = b.vreg(RegClass::B32);
        b.inst(add).def(index).finish();
        b.terminate(Terminator::BrxIdx { index, uniform: false, targets: vec![] });
    };
    assert_eq!(rejected(table), "block0: brx has no targets");
}

#[test]
fn definitions_are_unique_and_dominate_uses() {
    let twice = |b: &mut FunctionBuilder<'_>, add| {
        let v = b.vreg(RegClass::B32);
        b.inst(add).def(v).finish();
        b.inst(add).def(v).finish();
        b.terminate(RET);
    };
    assert_eq!(rejected(twice), "block0, instruction 1: %r0 is defined twice");
    let never = |b: &mut FunctionBuilder<'_>, add| {
        let v = b.vreg(RegClass::B32);
        b.inst(add).used(v).finish();
        b.terminate(RET);
    };
    assert_eq!(rejected(never), "block0, instruction 0: %r0 is used but never defined");
    let undeclared = |b: &mut FunctionBuilder<'_>, add| {
        b.inst(add).def(VReg::from_u32(9)).finish();
        b.terminate(RET);
    };
    assert_eq!(rejected(undeclared), "block0, instruction 0: v9 is not declared");
    let own = |b: &mut FunctionBuilder<'_>, add| {
        let v = b.vreg(RegClass::B32);
        b.inst(add).def(v).used(v).finish();
        b.terminate(RET);
    };
    assert_eq!(rejected(own), "block0, instruction 0: the definition of %r0 does not dominate this use");
    let beside = |b: &mut FunctionBuilder<'_>, add| {
        let (p, v) = (b.vreg(RegClass::Pred), b.vreg(RegClass::B32));
        b.inst(add).def(p).finish();
        let (left, right) = (b.func.new_block(), b.func.new_block());
        let (x, y) = (b.target(left, &[]), b.target(right, &[]));
        b.cond_bra(p, false, x, y);
        b.switch_to(left);
        b.inst(add).def(v).finish();
        b.jump(right, &[]);
        b.switch_to(right);
        b.inst(add).used(v).finish();
        b.terminate(RET);
    };
    assert_eq!(rejected(beside), "block2, instruction 0: the definition of %r1 does not dominate this use");
}

#[test]
fn instructions_are_well_shaped() {
    let guard = |b: &mut FunctionBuilder<'_>, add| {
        let (p, v) = (b.vreg(RegClass::Pred), b.vreg(RegClass::B32));
        b.inst(add).def(p).finish();
        b.inst(add).def(v).guard(p, false).finish();
        b.terminate(RET);
    };
    assert!(rejected(guard).contains("a guarded instruction defines a register it does not also read"));
    let class = |b: &mut FunctionBuilder<'_>, add| {
        let v = b.vreg(RegClass::B32);
        b.inst(add).def(v).finish();
        b.emit_op(Op::Ptx(add), Some(Guard { pred: v, negated: true }), &[]);
        b.terminate(RET);
    };
    assert_eq!(rejected(class), "block0, instruction 1: %r0 is not a .pred register");
    let negated = |b: &mut FunctionBuilder<'_>, add| {
        let v = b.vreg(RegClass::B32);
        b.inst(add).def(v).finish();
        b.inst(add).operand(Operand::UseNot(v)).finish();
        b.terminate(RET);
    };
    assert_eq!(rejected(negated), "block0, instruction 1: %r0 is not a .pred register");
    let tie = |b: &mut FunctionBuilder<'_>, add| {
        let (used, def) = (b.vreg(RegClass::B32), b.vreg(RegClass::B64));
        b.inst(add).def(used).finish();
        b.inst(add).operand(Operand::DefUse { def, used }).finish();
        b.terminate(RET);
    };
    assert_eq!(rejected(tie), "block0, instruction 1: %rd1 and %r0 share a register but differ in class");
    let group = |b: &mut FunctionBuilder<'_>, add| {
        b.emit(
            add,
            &[
                Operand::Open(GroupKind::Vector, 2),
                Operand::Open(GroupKind::Pair, 3),
                Operand::Sink,
                Operand::Sink,
                Operand::Sink,
            ],
        );
        b.terminate(RET);
    };
    assert!(rejected(group).contains("longer than what surrounds it"));
    let arena = |b: &mut FunctionBuilder<'_>, add| {
        let operands = OperandRange { start: 3, len: 9 };
        let inst = b.func.insts.push(InstData { op: Op::Ptx(add), guard: None, operands, loc: LocId::NONE });
        let entry = b.block();
        b.func.blocks[entry].insts.push(inst);
        b.terminate(RET);
    };
    assert_eq!(rejected(arena), "block0, instruction 0: inst0 lies outside the function's arenas");
}

#[test]
fn pseudo_instructions_add_up() {
    let copy = |b: &mut FunctionBuilder<'_>, _| {
        b.emit_op(Op::Copy(RegClass::B32), None, &[]);
        b.terminate(RET);
    };
    assert!(rejected(copy).contains("a copy takes a destination and a source"));
    let call = |b: &mut FunctionBuilder<'_>, _| {
        let callee = Callee::Symbol(SymId::from_u32(0));
        let data = CallData { callee, params: vec![], returns: vec![], args: vec![], rets: vec![], uniform: false };
        b.call(data, &[Operand::Imm(1)]);
        b.terminate(RET);
    };
    assert!(rejected(call).contains("the call describes 0 operands and has 1"));
    let unknown = |b: &mut FunctionBuilder<'_>, _| {
        b.emit_op(Op::Call(CallId::from_u32(4)), None, &[]);
        b.terminate(RET);
    };
    assert!(rejected(unknown).contains("call4 does not exist"));
    let asm = |b: &mut FunctionBuilder<'_>, _| {
        b.emit_op(Op::Asm(AsmId::from_u32(2)), None, &[]);
        b.terminate(RET);
    };
    assert!(rejected(asm).contains("asm2 does not exist"));
}

#[test]
fn text() {
    let mut test = Test::new();
    let entry = test.func.layout[0];
    let load = test.table.intern_text("ld.global.v2.b32").unwrap();
    let mut b = FunctionBuilder::new(&mut test.func);
    b.switch_to(entry);
    let [x, y, z] = std::array::from_fn(|_| b.vreg(RegClass::B32));
    let (address, p, next) = (b.vreg(RegClass::B64), b.vreg(RegClass::Pred), b.func.new_block());
    let param = b.block_param(next, RegClass::B32);
    b.inst(test.add)
        .def(address)
        .sreg(SpecialReg::from_name("tid.x").unwrap())
        .operand(Operand::F32(0x3f80_0000))
        .finish();
    b.inst(load).def_vector(&[x, y]).address(address, -8).finish();
    b.inst(test.add).open(GroupKind::Pair).def(p).operand(Operand::Sink).close().used(x).imm(-1).finish();
    b.inst(test.add).operand(Operand::DefUse { def: z, used: y }).operand(Operand::UseNot(p)).guard(p, true).finish();
    let (again, out) = (b.target(next, &[z]), b.target(next, &[x]));
    b.cond_bra(p, true, again, out);
    b.switch_to(next);
    b.inst(test.add).used(param).finish();
    b.terminate(RET);
    verify(&test.func).unwrap();
    let mut symbols = Symbols::default();
    symbols.intern("k");
    let expected = "\
kernel @k() {
block0:
    add.s32 %rd3, %tid.x, 0f3F800000
    ld.global.v2.b32 {%r0, %r1}, [%rd3-8]
    add.s32 %p4|_, %r0, -1
    @!%p4 add.s32 %r2=%r1, !%p4
    br.uni %p4, block1(%r2), block1(%r0)
block1(%r5):
    add.s32 %r5
    ret
}
";
    assert_eq!(print_function(&test.func, &test.table, &symbols), expected);
}
