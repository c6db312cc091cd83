//! Dominance against its definition, on random graphs.

use ptxc_mir::{Block, BlockCall, Cfg, FuncKind, Function, Linkage, Signature, SymId, Terminator, VReg};

fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as usize
}

fn graph(seed: u64, size: usize) -> Function {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut func = Function::new(SymId::from_u32(0), FuncKind::Func, Linkage::Visible, Signature::default());
    let blocks: Vec<Block> = (0..size).map(|_| func.new_block()).collect();
    for &block in &blocks {
        let call = |b: Block| BlockCall { block: b, start: 0, len: 0 };
        let (x, y) = (blocks[next(&mut state) % size], blocks[next(&mut state) % size]);
        func.blocks[block].terminator = match next(&mut state) % 5 {
            0 => Terminator::Exit,
            1 => Terminator::Jump(call(x)),
            _ => Terminator::CondBra {
                pred: VReg::from_u32(0),
                negated: false,
                uniform: false,
                then: call(x),
                otherwise: call(y),
            },
        };
    }
    func
}

/// The blocks that are reached without passing `without`.
fn reached(func: &Function, without: Option<Block>) -> Vec<bool> {
    let mut seen = vec![false; func.blocks.len()];
    let mut stack = vec![func.layout[0]];
    while let Some(block) = stack.pop() {
        if Some(block) == without || std::mem::replace(&mut seen[block.as_u32() as usize], true) {
            continue;
        }
        func.blocks[block].terminator.for_each_target(|t| stack.push(t.block));
    }
    seen
}

#[test]
fn dominance_is_what_its_definition_says() {
    for seed in 0..400 {
        let func = graph(seed, 2 + (seed % 14) as usize);
        let cfg = Cfg::compute(&func);
        let all = reached(&func, None);
        for &above in &func.layout {
            let without = reached(&func, Some(above));
            for &below in &func.layout {
                let (a, b) = (above.as_u32() as usize, below.as_u32() as usize);
                let expected = all[a] && all[b] && !without[b];
                assert_eq!(cfg.dominates(above, below), expected, "seed {seed}: {above} over {below}");
            }
            assert_eq!(cfg.reachable(above), all[above.as_u32() as usize]);
            if let Some(idom) = cfg.idom(above) {
                assert!(cfg.dominates(idom, above) && idom != above);
                let between = func.layout.iter().filter(|&&b| cfg.dominates(b, above) && b != above);
                assert!(between.into_iter().all(|&b| cfg.dominates(b, idom)), "seed {seed}");
            }
        }
    }
}

#[test]
fn a_ladder_of_checks_is_not_quadratic() {
    let size = 200_000;
    let mut func = Function::new(SymId::from_u32(0), FuncKind::Func, Linkage::Visible, Signature::default());
    let blocks: Vec<Block> = (0..size).map(|_| func.new_block()).collect();
    let fail = func.new_block();
    func.blocks[fail].terminator = Terminator::Trap;
    for (i, &block) in blocks.iter().enumerate() {
        let call = |b: Block| BlockCall { block: b, start: 0, len: 0 };
        func.blocks[block].terminator = match blocks.get(i + 1) {
            Some(&next) => Terminator::CondBra {
                pred: VReg::from_u32(0),
                negated: false,
                uniform: false,
                then: call(fail),
                otherwise: call(next),
            },
            None => Terminator::Exit,
        };
    }
    let cfg = Cfg::compute(&func);
    assert_eq!(cfg.idom(fail), Some(blocks[0]));
    assert_eq!(cfg.idom(blocks[size - 1]), Some(blocks[size - 2]));
}
