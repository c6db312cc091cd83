//! The same functions through regalloc2, the way that suits PTX best: every operand may live anywhere, and spill slots
//! are taken for further registers, so that there is no spill code. For comparison only.

use ptxc_mir::{Cfg, Function, Operand, RegClass};
use regalloc2 as ra;
use std::time::Instant;

struct Input {
    blocks: Vec<ra::InstRange>,
    succs: Vec<Vec<ra::Block>>,
    preds: Vec<Vec<ra::Block>>,
    params: Vec<Vec<ra::VReg>>,
    /// For each block, the arguments of each successor.
    args: Vec<Vec<Vec<ra::VReg>>>,
    operands: Vec<Vec<ra::Operand>>,
    branch: Vec<bool>,
    ret: Vec<bool>,
    vregs: usize,
}

/// regalloc2 has three classes. Predicates take one; 16 and 128 bits share with 32 and 64, which only makes its work
/// easier.
fn class(class: RegClass) -> ra::RegClass {
    match class {
        RegClass::Pred => ra::RegClass::Vector,
        RegClass::B8 | RegClass::B16 | RegClass::B32 => ra::RegClass::Int,
        RegClass::B64 | RegClass::B128 => ra::RegClass::Float,
    }
}

fn vreg(func: &Function, v: ptxc_mir::VReg) -> ra::VReg {
    ra::VReg::new(v.as_u32() as usize, class(func.vregs[v]))
}

fn input(func: &Function) -> Input {
    let cfg = Cfg::compute(func);
    let order: Vec<ptxc_mir::Block> = func.layout.iter().copied().filter(|&b| cfg.reachable(b)).collect();
    let mut number = vec![usize::MAX; func.blocks.len()];
    for (i, b) in order.iter().enumerate() {
        number[b.as_u32() as usize] = i;
    }
    let mut input = Input {
        blocks: vec![],
        succs: vec![],
        preds: vec![vec![]; order.len()],
        params: vec![],
        args: vec![],
        operands: vec![],
        branch: vec![],
        ret: vec![],
        vregs: func.vregs.len(),
    };
    let mut edges = Vec::new();
    for &block in &order {
        let start = input.operands.len();
        for &inst in &func.blocks[block].insts {
            input.push(operands(func, inst), false, false);
        }
        let terminator = &func.blocks[block].terminator;
        let condition = terminator.condition().map(|v| ra::Operand::any_use(vreg(func, v)));
        let is_ret = terminator.target_count() == 0;
        input.push(condition.into_iter().collect(), !is_ret, is_ret);
        let i = input.blocks.len();
        let (mut succs, mut args) = (vec![], vec![]);
        let several = terminator.target_count() > 1 || terminator.condition().is_some();
        terminator.for_each_target(|t| {
            let call: Vec<ra::VReg> = func.call_args(t).iter().map(|&a| vreg(func, a)).collect();
            let to = number[t.block.as_u32() as usize];
            if several && cfg.predecessors(t.block).len() > 1 {
                // A critical edge gets a block.
                let between = order.len() + edges.len();
                edges.push((i, to, call));
                succs.push(ra::Block::new(between));
                args.push(vec![]);
            } else {
                succs.push(ra::Block::new(to));
                input.preds[to].push(ra::Block::new(i));
                args.push(call);
            }
        });
        input.params.push(func.blocks[block].params.iter().map(|&p| vreg(func, p)).collect());
        input.succs.push(succs);
        input.args.push(args);
        input.blocks.push(ra::InstRange::new(ra::Inst::new(start), ra::Inst::new(input.operands.len())));
    }
    for (from, to, call) in edges {
        let start = input.operands.len();
        let this = input.blocks.len();
        input.push(vec![], true, false);
        input.preds.push(vec![ra::Block::new(from)]);
        input.preds[to].push(ra::Block::new(this));
        input.params.push(vec![]);
        input.succs.push(vec![ra::Block::new(to)]);
        input.args.push(vec![call]);
        input.blocks.push(ra::InstRange::new(ra::Inst::new(start), ra::Inst::new(start + 1)));
    }
    input
}

fn operands(func: &Function, inst: ptxc_mir::Inst) -> Vec<ra::Operand> {
    let mut list = Vec::new();
    if let Some(guard) = func.insts[inst].guard {
        list.push(ra::Operand::any_use(vreg(func, guard.pred)));
    }
    for operand in func.inst_operands(inst) {
        match *operand {
            Operand::Use(v) | Operand::UseNot(v) | Operand::UseMinus(v) => {
                list.push(ra::Operand::any_use(vreg(func, v)));
            }
            Operand::Def(v) => list.push(ra::Operand::any_def(vreg(func, v))),
            Operand::DefUse { def, used } => {
                // A reused input must be in a register to regalloc2; there it is the exception.
                list.push(ra::Operand::reg_use(vreg(func, used)));
                let input = list.len() - 1;
                list.push(ra::Operand::reg_reuse_def(vreg(func, def), input));
            }
            _ => {}
        }
    }
    list
}

impl Input {
    fn push(&mut self, operands: Vec<ra::Operand>, branch: bool, ret: bool) {
        self.operands.push(operands);
        self.branch.push(branch);
        self.ret.push(ret);
    }
}

impl ra::Function for Input {
    fn num_insts(&self) -> usize {
        self.operands.len()
    }
    fn num_blocks(&self) -> usize {
        self.blocks.len()
    }
    fn entry_block(&self) -> ra::Block {
        ra::Block::new(0)
    }
    fn block_insns(&self, block: ra::Block) -> ra::InstRange {
        self.blocks[block.index()]
    }
    fn block_succs(&self, block: ra::Block) -> &[ra::Block] {
        &self.succs[block.index()]
    }
    fn block_preds(&self, block: ra::Block) -> &[ra::Block] {
        &self.preds[block.index()]
    }
    fn block_params(&self, block: ra::Block) -> &[ra::VReg] {
        &self.params[block.index()]
    }
    fn is_ret(&self, inst: ra::Inst) -> bool {
        self.ret[inst.index()]
    }
    fn is_branch(&self, inst: ra::Inst) -> bool {
        self.branch[inst.index()]
    }
    fn branch_blockparams(&self, block: ra::Block, _: ra::Inst, succ: usize) -> &[ra::VReg] {
        &self.args[block.index()][succ]
    }
    fn inst_operands(&self, inst: ra::Inst) -> &[ra::Operand] {
        &self.operands[inst.index()]
    }
    fn inst_clobbers(&self, _: ra::Inst) -> ra::PRegSet {
        ra::PRegSet::empty()
    }
    fn num_vregs(&self) -> usize {
        self.vregs
    }
    fn spillslot_size(&self, _: ra::RegClass) -> usize {
        1
    }
}

/// Moves that remain, and the seconds that the allocator alone took.
pub fn run(func: &Function) -> Result<(usize, f64), String> {
    let input = input(func);
    let set = |class| {
        let mut set = ra::PRegSet::empty();
        (0..63).for_each(|n| set.add(ra::PReg::new(n, class)));
        set
    };
    let classes = [ra::RegClass::Int, ra::RegClass::Float, ra::RegClass::Vector];
    let env = ra::MachineEnv {
        preferred_regs_by_class: classes.map(set),
        non_preferred_regs_by_class: [ra::PRegSet::empty(); 3],
        scratch_by_class: classes.map(|class| Some(ra::PReg::new(63, class))),
        fixed_stack_slots: vec![],
    };
    let start = Instant::now();
    let output = ra::run(&input, &env, &ra::RegallocOptions::default()).map_err(|e| format!("{e:?}"))?;
    let seconds = start.elapsed().as_secs_f64();
    let moves = output
        .edits
        .iter()
        .filter(|(_, edit)| {
            let ra::Edit::Move { from, to } = edit;
            from != to
        })
        .count();
    Ok((moves, seconds))
}
