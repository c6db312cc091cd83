//! Random functions in SSA form: any control flow, every class, ties, guards, tables, dead parameters.

use super::{Ops, empty};
use ptxc_mir::{
    AsmData, Block, BlockCall, Cfg, Function, FunctionBuilder, GroupKind, Guard, Op, Operand, RegClass, Terminator,
    VReg,
};

/// A small generator of numbers (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// How large and how wild.
#[derive(Clone, Copy)]
pub struct Shape {
    pub blocks: usize,
    pub insts: usize,
    pub params: usize,
}

enum Plan {
    Leave,
    Jump(Block),
    Two(Block, Block),
    Table(Vec<Block>),
}

/// A random function. Every value is defined before use on all paths.
pub fn function(seed: u64, shape: Shape) -> Function {
    let mut random = Random::new(seed);
    let mut func = empty();
    let blocks: Vec<Block> = (0..shape.blocks).map(|_| func.new_block()).collect();
    let plans: Vec<Plan> = (0..shape.blocks).map(|i| plan(&mut random, &blocks, i)).collect();
    let cfg = skeleton(&mut func, &blocks, &plans);
    // Parameters first, since branches need to know them. The entry has none.
    for &block in &blocks[1..] {
        for _ in 0..random.below(shape.params + 1) {
            let class = class(&mut random);
            let v = func.new_vreg(class);
            func.blocks[block].params.push(v);
        }
    }
    let mut generator = Generator { ops: Ops::new(), random, available: Vec::new() };
    let mut order: Vec<Block> = blocks.clone();
    order.retain(|&b| cfg.reachable(b));
    order.sort_by_key(|&b| cfg.dominance_number(b));
    let mut ends: Vec<Vec<VReg>> = vec![Vec::new(); shape.blocks];
    for &block in &order {
        let above = cfg.idom(block).map_or(Vec::new(), |d| ends[d.as_u32() as usize].clone());
        generator.available = above;
        generator.available.extend(func.blocks[block].params.clone());
        let plan = &plans[block.as_u32() as usize];
        generator.block(&mut func, block, plan, 1 + shape.insts);
        ends[block.as_u32() as usize] = std::mem::take(&mut generator.available);
    }
    for &block in &blocks {
        if !cfg.reachable(block) {
            func.blocks[block].terminator = Terminator::Exit;
            func.blocks[block].params.clear();
        }
    }
    func
}

fn class(random: &mut Random) -> RegClass {
    match random.below(10) {
        0 | 1 => RegClass::Pred,
        2 => RegClass::B16,
        3 | 4 => RegClass::B64,
        5 => RegClass::B128,
        _ => RegClass::B32,
    }
}

fn plan(random: &mut Random, blocks: &[Block], i: usize) -> Plan {
    // The entry is a target too at times, mostly not.
    let pick = |random: &mut Random| {
        let near = (i + 1 + random.below(3)).min(blocks.len() - 1);
        if random.one_in(3) { blocks[random.below(blocks.len())] } else { blocks[near] }
    };
    match random.below(10) {
        0 => Plan::Leave,
        1..=3 => Plan::Jump(pick(random)),
        4 => Plan::Table((0..1 + random.below(4)).map(|_| pick(random)).collect()),
        _ => Plan::Two(pick(random), pick(random)),
    }
}

/// The control flow alone, to know dominance.
fn skeleton(func: &mut Function, blocks: &[Block], plans: &[Plan]) -> Cfg {
    for (&block, plan) in blocks.iter().zip(plans) {
        let call = |block: &Block| BlockCall { block: *block, start: 0, len: 0 };
        func.blocks[block].terminator = match plan {
            Plan::Leave => Terminator::Exit,
            Plan::Jump(t) => Terminator::Jump(call(t)),
            Plan::Two(t, u) => Terminator::CondBra {
                pred: VReg::from_u32(0),
                negated: false,
                uniform: false,
                then: call(t),
                otherwise: call(u),
            },
            Plan::Table(list) => Terminator::BrxIdx {
                index: VReg::from_u32(0),
                uniform: false,
                targets: list.iter().map(call).collect(),
            },
        };
    }
    Cfg::compute(func)
}

struct Generator {
    ops: Ops,
    random: Random,
    /// Values defined on every path to here.
    available: Vec<VReg>,
}

impl Generator {
    fn block(&mut self, func: &mut Function, block: Block, plan: &Plan, insts: usize) {
        let mut b = FunctionBuilder::new(func);
        b.switch_to(block);
        for _ in 0..self.random.below(insts) {
            self.inst(&mut b);
        }
        let terminator = match plan {
            Plan::Leave => Terminator::Exit,
            Plan::Jump(t) => Terminator::Jump(self.target(&mut b, *t)),
            Plan::Two(t, u) => {
                let pred = self.value(&mut b, RegClass::Pred);
                let negated = self.random.one_in(2);
                let (then, otherwise) = (self.target(&mut b, *t), self.target(&mut b, *u));
                Terminator::CondBra { pred, negated, uniform: false, then, otherwise }
            }
            Plan::Table(list) => {
                let index = self.value(&mut b, RegClass::B32);
                let targets = list.iter().map(|&t| self.target(&mut b, t)).collect();
                Terminator::BrxIdx { index, uniform: false, targets }
            }
        };
        b.terminate(terminator);
    }

    fn target(&mut self, b: &mut FunctionBuilder<'_>, block: Block) -> BlockCall {
        let params = b.func.blocks[block].params.clone();
        let args: Vec<VReg> = params.iter().map(|&p| self.value(b, b.func.class(p))).collect();
        b.target(block, &args)
    }

    /// An available value of that class, made when there is none.
    fn value(&mut self, b: &mut FunctionBuilder<'_>, class: RegClass) -> VReg {
        let fitting: Vec<VReg> = self.available.iter().copied().filter(|&v| b.func.class(v) == class).collect();
        if fitting.is_empty() || self.random.one_in(12) {
            let v = b.vreg(class);
            b.inst(self.ops.add).def(v).imm(1).finish();
            self.available.push(v);
            return v;
        }
        // Recent values more often, so that live ranges are short and long.
        let recent = fitting.len().saturating_sub(4);
        if self.random.one_in(2) {
            fitting[recent + self.random.below(fitting.len() - recent)]
        } else {
            fitting[self.random.below(fitting.len())]
        }
    }

    fn inst(&mut self, b: &mut FunctionBuilder<'_>) {
        let kind = self.random.below(10);
        let class = class(&mut self.random);
        let mut operands = Vec::new();
        let mut made = Vec::new();
        let tied = |this: &mut Generator, b: &mut FunctionBuilder<'_>, made: &mut Vec<VReg>| {
            let used = this.value(b, class);
            let def = b.vreg(class);
            made.push(def);
            Operand::DefUse { def, used }
        };
        let mut guard = None;
        let mut op = Op::Ptx(self.ops.add);
        match kind {
            // One or several results.
            0..=4 => {
                let n = 1 + self.random.below(3);
                operands.push(Operand::Open(GroupKind::Vector, n as u16));
                for _ in 0..n {
                    let def = b.vreg(class);
                    made.push(def);
                    operands.push(Operand::Def(def));
                }
            }
            // Ties, perhaps guarded.
            5 | 6 => {
                for _ in 0..1 + self.random.below(3) {
                    let operand = tied(self, b, &mut made);
                    operands.push(operand);
                }
                if self.random.one_in(2) {
                    let pred = self.value(b, RegClass::Pred);
                    guard = Some(Guard { pred, negated: self.random.one_in(2) });
                }
            }
            // A copy as selection makes them.
            7 => {
                let from = self.value(b, class);
                let to = b.vreg(class);
                b.copy(to, from);
                self.available.push(to);
                return;
            }
            // Opaque assembly.
            8 => {
                let def = b.vreg(class);
                made.push(def);
                operands.push(Operand::Def(def));
                if self.random.one_in(3) {
                    let operand = tied(self, b, &mut made);
                    operands.push(operand);
                }
                op = Op::Asm(b.func.asms.push(AsmData::default()));
            }
            _ => {}
        }
        for _ in 0..self.random.below(4) {
            let class = if self.random.one_in(2) { class } else { RegClass::B32 };
            operands.push(Operand::Use(self.value(b, class)));
        }
        b.emit_op(op, guard, &operands);
        self.available.extend(made);
    }
}
