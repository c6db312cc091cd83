//! The cases that out-of-SSA is known for, each with the moves it may cost, and assignments that must be rejected.

mod common;

use common::{Ops, empty};
use ptxc_mir::{AsmData, Function, FunctionBuilder, Op, Operand, RegClass, Terminator, VReg, print_function, verify};
use ptxc_regalloc::{Kinds, Stats, check, run};

/// Builds, verifies, assigns and checks.
fn assign(build: impl FnOnce(&mut FunctionBuilder<'_>, &Ops)) -> (Function, Stats) {
    let ops = Ops::new();
    let mut func = empty();
    let entry = func.new_block();
    let mut builder = FunctionBuilder::new(&mut func);
    builder.switch_to(entry);
    build(&mut builder, &ops);
    verify(&func).expect("the test is well formed");
    let original = func.clone();
    let stats = run(&mut func, &Kinds::default()).expect("it can be assigned");
    check(&original, &func).expect("the assignment is right");
    (func, stats)
}

fn define(b: &mut FunctionBuilder<'_>, ops: &Ops, class: RegClass) -> VReg {
    let v = b.vreg(class);
    b.inst(ops.add).def(v).imm(1).finish();
    v
}

fn used(b: &mut FunctionBuilder<'_>, ops: &Ops, v: VReg) {
    b.inst(ops.add).operand(Operand::Sink).used(v).finish();
}

/// A loop over values of one class: each round permutes them, `order[i]` going to place i, and may leave.
fn rotating_loop(class: RegClass, order: &[usize], used_after: bool) -> (Function, Stats) {
    assign(|b, ops| {
        let start: Vec<VReg> = order.iter().map(|_| define(b, ops, class)).collect();
        let (head, exit) = (b.func.new_block(), b.func.new_block());
        let params: Vec<VReg> = order.iter().map(|_| b.block_param(head, class)).collect();
        b.jump(head, &start);
        b.switch_to(head);
        let p = define(b, ops, RegClass::Pred);
        let next: Vec<VReg> = order.iter().map(|&i| params[i]).collect();
        let (again, out) = (b.target(head, &next), b.target(exit, &[]));
        b.cond_bra(p, false, again, out);
        b.switch_to(exit);
        if used_after {
            params.iter().for_each(|&v| used(b, ops, v));
        }
        b.terminate(Terminator::Ret { uniform: false });
    })
}

#[test]
fn a_straight_loop_needs_no_move() {
    let (func, stats) = rotating_loop(RegClass::B32, &[0, 1, 2], true);
    assert_eq!((stats.moves, stats.edge_blocks, stats.registers[RegClass::B32 as usize]), (0, 0, 3));
    assert_eq!(func.layout.len(), 3);
}

#[test]
fn the_swap_problem() {
    for class in RegClass::ALL {
        let (_, stats) = rotating_loop(class, &[1, 0], true);
        assert_eq!((stats.moves, stats.cycle_moves, stats.edge_blocks), (3, 1, 1), "{class:?}");
    }
}

#[test]
fn a_rotation_takes_one_move_more_than_values() {
    let order: Vec<usize> = (0..100).map(|i| (i + 1) % 100).collect();
    let (_, stats) = rotating_loop(RegClass::B64, &order, true);
    assert_eq!((stats.moves, stats.cycle_moves), (101, 1));
}

#[test]
fn the_lost_copy_problem() {
    let (func, stats) = assign(|b, ops| {
        let start = define(b, ops, RegClass::B32);
        let (head, exit) = (b.func.new_block(), b.func.new_block());
        let x = b.block_param(head, RegClass::B32);
        b.jump(head, &[start]);
        b.switch_to(head);
        let next = b.vreg(RegClass::B32);
        b.inst(ops.add).def(next).used(x).imm(1).finish();
        let p = define(b, ops, RegClass::Pred);
        let (again, out) = (b.target(head, &[next]), b.target(exit, &[]));
        b.cond_bra(p, false, again, out);
        b.switch_to(exit);
        used(b, ops, x);
        b.terminate(Terminator::Ret { uniform: false });
    });
    // What leaves the loop is copied, and both moves come before the branch.
    assert_eq!((stats.moves, stats.edge_blocks, func.layout.len()), (2, 0, 3));
}

#[test]
fn one_value_for_two_parameters() {
    let (_, stats) = assign(|b, ops| {
        let (v, p) = (define(b, ops, RegClass::B32), define(b, ops, RegClass::Pred));
        let (other, join) = (b.func.new_block(), b.func.new_block());
        let (x, y) = (b.block_param(join, RegClass::B32), b.block_param(join, RegClass::B32));
        let (left, right) = (b.target(other, &[]), b.target(join, &[v, v]));
        b.cond_bra(p, false, left, right);
        b.switch_to(other);
        let (s, t) = (define(b, ops, RegClass::B32), define(b, ops, RegClass::B32));
        b.jump(join, &[s, t]);
        b.switch_to(join);
        b.inst(ops.add).operand(Operand::Sink).used(x).used(y).finish();
        b.terminate(Terminator::Exit);
    });
    assert_eq!((stats.moves, stats.edge_blocks), (1, 1));
}

#[test]
fn parameters_of_blocks_with_one_predecessor_are_names_only() {
    let (func, stats) = assign(|b, ops| {
        let (v, p) = (define(b, ops, RegClass::B32), define(b, ops, RegClass::Pred));
        let (left, right) = (b.func.new_block(), b.func.new_block());
        let (x, y) = (b.block_param(left, RegClass::B32), b.block_param(right, RegClass::B32));
        let (to_left, to_right) = (b.target(left, &[v]), b.target(right, &[v]));
        b.cond_bra(p, true, to_left, to_right);
        for (block, param) in [(left, x), (right, y)] {
            b.switch_to(block);
            used(b, ops, param);
            used(b, ops, v);
            b.terminate(Terminator::Exit);
        }
    });
    assert_eq!((stats.moves, stats.registers[RegClass::B32 as usize]), (0, 1));
    assert_eq!(func.blocks.len(), 3);
}

#[test]
fn dead_parameters_cost_nothing() {
    let (_, stats) = assign(|b, ops| {
        let (v, w) = (define(b, ops, RegClass::B32), define(b, ops, RegClass::B32));
        let head = b.func.new_block();
        b.block_param(head, RegClass::B32);
        b.jump(head, &[v]);
        b.switch_to(head);
        used(b, ops, v);
        b.jump(head, &[w]);
    });
    assert_eq!((stats.moves, stats.edge_blocks), (0, 0));
}

#[test]
fn copies_of_selection_disappear() {
    let (func, stats) = assign(|b, ops| {
        let v = define(b, ops, RegClass::B32);
        let (w, x) = (b.vreg(RegClass::B32), b.vreg(RegClass::B32));
        b.copy(w, v);
        b.copy(x, w);
        b.inst(ops.add).operand(Operand::Sink).used(v).used(x).finish();
        b.terminate(Terminator::Exit);
    });
    assert_eq!((stats.moves, stats.registers[RegClass::B32 as usize]), (0, 1));
    assert_eq!(func.blocks[func.layout[0]].insts.len(), 2);
}

#[test]
fn accumulators_stay_in_place() {
    // A loop that multiplies into 64 tied registers, as wgmma does.
    let (_, stats) = assign(|b, ops| {
        let start: Vec<VReg> = (0..64).map(|_| define(b, ops, RegClass::B32)).collect();
        let (head, exit) = (b.func.new_block(), b.func.new_block());
        let params: Vec<VReg> = start.iter().map(|_| b.block_param(head, RegClass::B32)).collect();
        b.jump(head, &start);
        b.switch_to(head);
        let next: Vec<VReg> = start.iter().map(|_| b.vreg(RegClass::B32)).collect();
        let mut inst = b.inst(ops.mma).open(ptxc_mir::GroupKind::Vector);
        for (&def, &used) in next.iter().zip(&params) {
            inst = inst.operand(Operand::DefUse { def, used });
        }
        inst.finish();
        let p = define(b, ops, RegClass::Pred);
        let (again, out) = (b.target(head, &next), b.target(exit, &[]));
        b.cond_bra(p, false, again, out);
        b.switch_to(exit);
        next.iter().for_each(|&v| used(b, ops, v));
        b.terminate(Terminator::Exit);
    });
    assert_eq!((stats.moves, stats.registers[RegClass::B32 as usize], stats.coalesced), (0, 64, 192));
}

#[test]
fn a_tied_value_that_lives_on_is_moved_first() {
    let (func, stats) = assign(|b, ops| {
        let v = define(b, ops, RegClass::B32);
        let d = b.vreg(RegClass::B32);
        b.inst(ops.mma).operand(Operand::DefUse { def: d, used: v }).used(v).finish();
        b.inst(ops.add).operand(Operand::Sink).used(v).used(d).finish();
        b.terminate(Terminator::Exit);
    });
    assert_eq!(stats.moves, 1);
    let ops = Ops::new();
    let mut symbols = ptxc_mir::Symbols::default();
    symbols.intern("k");
    let text = print_function(&func, &ops.table, &symbols);
    assert!(text.contains("copy.b32 %r1, %r0\n    mad.lo.s32 %r1=%r1, %r0\n    add.s32 _, %r0, %r1"), "{text}");
}

#[test]
fn opaque_assembly_writes_early() {
    let (_, stats) = assign(|b, ops| {
        let v = define(b, ops, RegClass::B32);
        let d = b.vreg(RegClass::B32);
        let asm = b.func.asms.push(AsmData::default());
        b.emit_op(Op::Asm(asm), None, &[Operand::Def(d), Operand::Use(v)]);
        used(b, ops, d);
        b.terminate(Terminator::Exit);
    });
    assert_eq!(stats.registers[RegClass::B32 as usize], 2);
}

#[test]
fn a_comparison_does_not_write_the_predicate_it_combines_with() {
    for compares in [true, false] {
        let (func, stats) = assign(|b, ops| {
            let (v, p) = (define(b, ops, RegClass::B32), define(b, ops, RegClass::Pred));
            let (head, exit) = (b.func.new_block(), b.func.new_block());
            let p = {
                let param = b.block_param(head, RegClass::Pred);
                b.jump(head, &[p]);
                param
            };
            b.switch_to(head);
            let (q, end) = (b.vreg(RegClass::Pred), b.vreg(RegClass::Pred));
            let inst = b.inst(ops.setp).def(q).used(p);
            if compares { inst.used(v) } else { inst }.finish();
            b.inst(ops.setp).def(end).used(v).finish();
            let (again, out) = (b.target(head, &[q]), b.target(exit, &[]));
            b.cond_bra(end, false, again, out);
            b.switch_to(exit);
            b.terminate(Terminator::Exit);
        });
        assert_eq!(stats.moves, u32::from(compares));
        let operands = func.inst_operands(func.blocks[func.layout[1]].insts[0]);
        assert_eq!(operands[0].def() != operands[1].used(), compares);
    }
}

#[test]
fn tables_with_the_same_target_twice() {
    let (_, stats) = assign(|b, ops| {
        let index = define(b, ops, RegClass::B32);
        let (v, w) = (define(b, ops, RegClass::B32), define(b, ops, RegClass::B32));
        let join = b.func.new_block();
        let x = b.block_param(join, RegClass::B32);
        let targets = vec![b.target(join, &[v]), b.target(join, &[w]), b.target(join, &[index])];
        b.terminate(Terminator::BrxIdx { index, uniform: false, targets });
        b.switch_to(join);
        used(b, ops, x);
        b.terminate(Terminator::Exit);
    });
    assert_eq!((stats.moves, stats.edge_blocks), (2, 2));
}

#[test]
fn unreachable_blocks_are_dropped() {
    let (func, _) = assign(|b, ops| {
        b.terminate(Terminator::Exit);
        let dead = b.func.new_block();
        b.switch_to(dead);
        let v = define(b, ops, RegClass::B32);
        used(b, ops, v);
        b.jump(dead, &[]);
    });
    assert_eq!(func.layout.len(), 1);
}

#[test]
fn the_checker_rejects_what_is_wrong() {
    let ops = Ops::new();
    let mut original = empty();
    let entry = original.new_block();
    let mut b = FunctionBuilder::new(&mut original);
    b.switch_to(entry);
    let (v, w) = (define(&mut b, &ops, RegClass::B32), define(&mut b, &ops, RegClass::B32));
    let (head, exit) = (b.func.new_block(), b.func.new_block());
    let (x, y) = (b.block_param(head, RegClass::B32), b.block_param(head, RegClass::B32));
    b.jump(head, &[v, w]);
    b.switch_to(head);
    let p = define(&mut b, &ops, RegClass::Pred);
    let (again, out) = (b.target(head, &[y, x]), b.target(exit, &[]));
    b.cond_bra(p, false, again, out);
    b.switch_to(exit);
    b.inst(ops.add).operand(Operand::Sink).used(x).used(y).finish();
    b.terminate(Terminator::Exit);
    let mut right = original.clone();
    run(&mut right, &Kinds::default()).expect("it can be assigned");
    let rejected = |change: &dyn Fn(&mut Function)| {
        let mut wrong = right.clone();
        change(&mut wrong);
        check(&original, &wrong).expect_err("the change breaks it").message
    };
    let edge = *right.layout.iter().find(|b| b.as_u32() >= 3).expect("a block on the edge");
    // Each of the three moves of the swap is needed, in this order.
    for i in 0..3 {
        assert!(
            rejected(&|f| {
                f.blocks[edge].insts.remove(i);
            })
            .contains("reads")
        );
    }
    assert!(rejected(&|f| f.blocks[edge].insts.swap(0, 1)).contains("reads"));
    // Two values in one register, a lost instruction, a read of something else, a changed literal.
    let (first, second) = (original.blocks[entry].insts[0], original.blocks[entry].insts[1]);
    assert!(rejected(&|f| f.inst_operands_mut(second)[0] = f.inst_operands(first)[0]).contains("reads"));
    assert!(
        rejected(&|f| {
            f.blocks[entry].insts.remove(0);
        })
        .contains("out of order")
    );
    assert!(rejected(&|f| f.blocks[entry].insts.swap(0, 1)).contains("out of order"));
    let last = original.blocks[exit].insts[0];
    assert!(rejected(&|f| f.inst_operands_mut(last).swap(1, 2)).contains("reads"));
    assert!(rejected(&|f| f.inst_operands_mut(first)[1] = Operand::Imm(2)).contains("operand"));
    // A target left out, and a branch to the wrong place.
    assert!(rejected(&|f| f.blocks[entry].terminator = Terminator::Exit).contains("targets"));
    let skip = |f: &mut Function| {
        f.blocks[head].terminator.for_each_target_mut(|t| {
            if t.block == edge {
                t.block = head
            }
        });
    };
    assert!(rejected(&skip).contains("reads"));
}

/// A loop that carries a value which is read once more when there is the next, so that a move is left on the way back;
/// `both` ways out of its block pass the next value on.
fn loop_with_a_move(both: bool, again_reads: bool) -> (Function, Stats) {
    assign(|b, ops| {
        let start = define(b, ops, RegClass::B32);
        let (head, exit) = (b.func.new_block(), b.func.new_block());
        let x = b.block_param(head, RegClass::B32);
        let y = both.then(|| b.block_param(exit, RegClass::B32));
        b.jump(head, &[start]);
        b.switch_to(head);
        let next = b.vreg(RegClass::B32);
        b.inst(ops.add).def(next).used(x).imm(1).finish();
        used(b, ops, x);
        let p = define(b, ops, RegClass::Pred);
        if again_reads {
            used(b, ops, next);
        }
        let again = b.target(head, &[next]);
        let passed: Vec<VReg> = y.map(|_| next).into_iter().collect();
        let out = b.target(exit, &passed);
        b.cond_bra(p, false, again, out);
        b.switch_to(exit);
        y.into_iter().for_each(|y| used(b, ops, y));
        b.terminate(Terminator::Ret { uniform: false });
    })
}

#[test]
fn moves_of_a_back_edge_go_before_the_branch() {
    for (both, again_reads) in [(false, false), (true, false), (false, true), (true, true)] {
        let (func, stats) = loop_with_a_move(both, again_reads);
        assert_eq!((stats.moves, stats.edge_blocks), (1, 0), "{both} {again_reads}");
        let last = func.blocks[func.layout[1]].insts.last().expect("a move");
        assert!(matches!(func.insts[*last].op, Op::Copy(_)));
    }
}

#[test]
fn a_move_that_every_way_makes_is_made_once() {
    // The value lives on, so the parameters have registers of their own; a move of one way alone stays there.
    for same in [true, false] {
        let (_, stats) = assign(|b, ops| {
            let p = define(b, ops, RegClass::Pred);
            let (v, w) = (define(b, ops, RegClass::B32), define(b, ops, RegClass::B32));
            let (left, join) = (b.func.new_block(), b.func.new_block());
            let x = b.block_param(join, RegClass::B32);
            let (one, other) = (b.target(join, &[v]), b.target(left, &[]));
            b.cond_bra(p, false, one, other);
            b.switch_to(left);
            let q = define(b, ops, RegClass::Pred);
            let (one, other) = (b.target(join, &[v]), b.target(join, &[if same { v } else { w }]));
            b.cond_bra(q, false, one, other);
            b.switch_to(join);
            used(b, ops, v);
            used(b, ops, w);
            used(b, ops, x);
            b.terminate(Terminator::Exit);
        });
        assert_eq!((stats.moves, stats.edge_blocks), if same { (2, 1) } else { (3, 3) });
    }
}

#[test]
fn a_move_of_what_the_branch_reads_stays_on_the_edge() {
    let (_, stats) = assign(|b, ops| {
        let start = define(b, ops, RegClass::Pred);
        let (head, exit) = (b.func.new_block(), b.func.new_block());
        let x = b.block_param(head, RegClass::Pred);
        b.jump(head, &[start]);
        b.switch_to(head);
        let next = define(b, ops, RegClass::Pred);
        let (again, out) = (b.target(head, &[next]), b.target(exit, &[]));
        b.cond_bra(x, false, again, out);
        b.switch_to(exit);
        b.terminate(Terminator::Exit);
    });
    assert_eq!((stats.moves, stats.edge_blocks), (1, 1));
}

#[test]
fn constants_of_many_ways_are_made_once() {
    // With three ways that bring it the constant is made before them, with two it is not.
    for ways in [2, 3] {
        let mut table = ptxc_targets::OpcodeTable::new();
        let ops = Ops::new();
        let mov = table.intern_text("mov.b32").expect("a known mnemonic");
        let mut func = empty();
        let entry = func.new_block();
        let mut b = FunctionBuilder::new(&mut func);
        b.switch_to(entry);
        let index = define(&mut b, &ops, RegClass::B32);
        let join = b.func.new_block();
        let x = b.block_param(join, RegClass::B32);
        let cases: Vec<_> = (0..ways + 1).map(|_| b.func.new_block()).collect();
        let targets = cases.iter().map(|&case| b.target(case, &[])).collect();
        b.terminate(Terminator::BrxIdx { index, uniform: false, targets });
        for (i, &case) in cases.iter().enumerate() {
            b.switch_to(case);
            used(&mut b, &ops, index);
            let v = b.vreg(RegClass::B32);
            b.inst(mov).def(v).imm(if i < ways { 5 } else { 6 }).finish();
            b.jump(join, &[v]);
        }
        b.switch_to(join);
        used(&mut b, &ops, x);
        b.terminate(Terminator::Exit);
        run(&mut func, &Kinds::new(&table)).expect("it can be assigned");
        let lengths: Vec<usize> = cases.iter().map(|&case| func.blocks[case].insts.len()).collect();
        assert_eq!(lengths, if ways == 3 { [1, 1, 1, 2].to_vec() } else { vec![2; 3] });
    }
}
