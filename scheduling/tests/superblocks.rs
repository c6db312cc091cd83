//! Moves between blocks: what the checker accepts, what it refuses, and that everything that moves by itself is accepted.

#![allow(clippy::unwrap_used)]

use cranelift_entity::SecondaryMap;
use ptxc_mir::{
    Block, Cfg, FuncKind, Function, FunctionBuilder, GroupKind, Inst, Linkage, Module, Operand, RegClass, Signature,
    Terminator, VReg,
};
use ptxc_scheduling::loops::Loops;
use ptxc_scheduling::superblocks::Superblocks;
use ptxc_scheduling::{Context, FunctionFacts, Mode, Options, Violation, check_function, run};

/// `entry` branches to `body` and `done`, `body` jumps to `done`.
struct Kernel {
    module: Module,
    func: Function,
    blocks: [Block; 3],
}

impl Kernel {
    fn new() -> Kernel {
        let mut module = Module::new("sm_90".parse().unwrap());
        let name = module.symbols.intern("kernel");
        let mut func = Function::new(name, FuncKind::Kernel, Linkage::Visible, Signature::default());
        let blocks = [func.new_block(), func.new_block(), func.new_block()];
        Kernel { module, func, blocks }
    }

    fn reg(&mut self, class: RegClass) -> VReg {
        self.func.new_vreg(class)
    }

    fn emit(&mut self, block: usize, mnemonic: &str, operands: &[Operand]) -> Inst {
        let opcode = self.module.opcodes.intern_text(mnemonic).unwrap();
        let mut builder = FunctionBuilder::new(&mut self.func);
        builder.switch_to(self.blocks[block]);
        builder.emit(opcode, operands)
    }

    /// `d = a + 1`
    fn add(&mut self, block: usize, a: VReg) -> (Inst, VReg) {
        let d = self.reg(RegClass::B32);
        (self.emit(block, "add.s32", &[Operand::Def(d), Operand::Use(a), Operand::Imm(1)]), d)
    }

    fn constant(&mut self, block: usize) -> (Inst, VReg) {
        let d = self.reg(RegClass::B32);
        (self.emit(block, "mov.b32", &[Operand::Def(d), Operand::Imm(7)]), d)
    }

    fn load(&mut self, block: usize, mnemonic: &str, base: VReg) -> (Inst, VReg) {
        let d = self.reg(RegClass::B32);
        let operands = [Operand::Def(d), Operand::Open(GroupKind::Address, 1), Operand::Use(base)];
        (self.emit(block, mnemonic, &operands), d)
    }

    fn store(&mut self, block: usize, base: VReg, value: VReg) -> Inst {
        let operands = [Operand::Open(GroupKind::Address, 1), Operand::Use(base), Operand::Use(value)];
        self.emit(block, "st.global.b32", &operands)
    }

    fn address(&mut self, block: usize) -> VReg {
        let d = self.reg(RegClass::B64);
        self.emit(block, "mov.b64", &[Operand::Def(d), Operand::Imm(4096)]);
        d
    }

    fn finish(&mut self) -> Context {
        let [entry, body, done] = self.blocks;
        let (c, d) = (self.reg(RegClass::Pred), self.reg(RegClass::B32));
        self.emit(0, "mov.b32", &[Operand::Def(d), Operand::Imm(3)]);
        self.emit(0, "setp.lt.s32", &[Operand::Def(c), Operand::Use(d), Operand::Imm(5)]);
        let (then, otherwise) = (self.func.block_call(body, &[]), self.func.block_call(done, &[]));
        self.func.blocks[entry].terminator =
            Terminator::CondBra { pred: c, negated: false, uniform: false, then, otherwise };
        let jump = self.func.block_call(done, &[]);
        self.func.blocks[body].terminator = Terminator::Jump(jump);
        self.func.blocks[done].terminator = Terminator::Ret { uniform: false };
        Context::new(&self.module)
    }

    fn orders(&self) -> SecondaryMap<Block, Vec<Inst>> {
        let mut orders = SecondaryMap::new();
        self.blocks.iter().for_each(|&block| orders[block] = self.func.blocks[block].insts.clone());
        orders
    }

    /// Moves an instruction to the end or the start of another block and asks the checker about it.
    fn verdict(&mut self, context: &Context, inst: Inst, from: usize, to: usize) -> Result<(), Violation> {
        let old = self.orders();
        let facts = FunctionFacts::new(&context.facts, &self.func);
        let [above, below, _] = self.blocks;
        self.func.blocks[self.blocks[from]].insts.retain(|other| *other != inst);
        let target = &mut self.func.blocks[self.blocks[to]].insts;
        let at = if from > to { target.len() } else { 0 };
        target.insert(at, inst);
        let verdict = check_function(&self.func, &facts, &old, [&[above, below][..]].into_iter());
        self.blocks.iter().for_each(|&block| self.func.blocks[block].insts.clone_from(&old[block]));
        verdict
    }
}

#[test]
fn computations_go_up_and_loads_do_not() {
    let mut kernel = Kernel::new();
    let p = kernel.address(0);
    let (_, one) = kernel.constant(0);
    let (sum, two) = kernel.add(1, one);
    let (after, _) = kernel.add(1, two);
    let (load, v) = kernel.load(1, "ld.global.b32", p);
    let store = kernel.store(1, p, v);
    let context = kernel.finish();
    assert_eq!(kernel.verdict(&context, sum, 1, 0), Ok(()));
    assert!(matches!(kernel.verdict(&context, after, 1, 0), Err(Violation::Order { .. })), "its operand is below");
    assert!(matches!(kernel.verdict(&context, load, 1, 0), Err(Violation::Order { .. })));
    assert!(matches!(kernel.verdict(&context, store, 1, 0), Err(Violation::Order { .. })));
}

#[test]
fn loads_go_down_and_stores_do_not() {
    for (mnemonic, may) in
        [("ld.global.b32", true), ("ld.volatile.global.b32", false), ("ld.acquire.gpu.global.b32", false)]
    {
        let mut kernel = Kernel::new();
        let p = kernel.address(0);
        let (load, v) = kernel.load(0, mnemonic, p);
        kernel.store(1, p, v);
        let context = kernel.finish();
        assert_eq!(kernel.verdict(&context, load, 0, 1).is_ok(), may, "{mnemonic}");
    }
    let mut kernel = Kernel::new();
    let p = kernel.address(0);
    let (_, one) = kernel.constant(0);
    let store = kernel.store(0, p, one);
    let context = kernel.finish();
    assert!(kernel.verdict(&context, store, 0, 1).is_err());
}

#[test]
fn what_goes_down_is_read_below_only() {
    // Read below, in the block where the ways meet, and by the branch.
    let mut kernel = Kernel::new();
    let p = kernel.address(0);
    let (constant, one) = kernel.constant(0);
    kernel.store(1, p, one);
    let context = kernel.finish();
    assert_eq!(kernel.verdict(&context, constant, 0, 1), Ok(()));

    let mut kernel = Kernel::new();
    let p = kernel.address(0);
    let (constant, one) = kernel.constant(0);
    kernel.store(2, p, one);
    let context = kernel.finish();
    assert!(matches!(kernel.verdict(&context, constant, 0, 1), Err(Violation::Missing { .. })));

    let mut kernel = Kernel::new();
    let context = kernel.finish();
    let condition = *kernel.func.blocks[kernel.blocks[0]].insts.last().unwrap();
    assert_eq!(kernel.verdict(&context, condition, 0, 1), Err(Violation::End(kernel.blocks[0])));
}

#[test]
fn a_load_does_not_go_past_a_store() {
    let mut kernel = Kernel::new();
    let p = kernel.address(0);
    let (load, v) = kernel.load(0, "ld.global.b32", p);
    let (_, one) = kernel.constant(0);
    kernel.store(0, p, one);
    kernel.store(1, p, v);
    let context = kernel.finish();
    assert!(matches!(kernel.verdict(&context, load, 0, 1), Err(Violation::Order { .. })));
}

#[test]
fn a_chain_has_one_way_in() {
    let mut kernel = Kernel::new();
    let context = kernel.finish();
    let facts = FunctionFacts::new(&context.facts, &kernel.func);
    let [entry, body, done] = kernel.blocks;
    let old = kernel.orders();
    let verdict = |chain: &[Block]| check_function(&kernel.func, &facts, &old, [chain].into_iter());
    assert_eq!(verdict(&[entry, body]), Ok(()));
    assert_eq!(verdict(&[entry, done]), Err(Violation::NotAChain(done)));
    assert_eq!(verdict(&[entry, body, done]), Err(Violation::NotAChain(done)));
    assert_eq!(verdict(&[body, entry]), Err(Violation::NotAChain(entry)));
}

#[test]
fn loops_are_nested_and_superblocks_stay_in_them() {
    // 0 -> 1 (outer head) -> 2 (inner, its own latch) -> 3 -> 1, out at 1 to 4.
    let mut module = Module::new("sm_90".parse().unwrap());
    let name = module.symbols.intern("kernel");
    let mut func = Function::new(name, FuncKind::Kernel, Linkage::Visible, Signature::default());
    let blocks: Vec<Block> = (0..5).map(|_| func.new_block()).collect();
    let pred = func.new_vreg(RegClass::Pred);
    let mut branch = |from: usize, then: usize, otherwise: Option<usize>| {
        let then = func.block_call(blocks[then], &[]);
        func.blocks[blocks[from]].terminator = match otherwise {
            None => Terminator::Jump(then),
            Some(other) => {
                let otherwise = func.block_call(blocks[other], &[]);
                Terminator::CondBra { pred, negated: false, uniform: false, then, otherwise }
            }
        };
    };
    branch(0, 1, None);
    branch(1, 4, Some(2));
    branch(2, 2, Some(3));
    branch(3, 1, None);
    func.blocks[blocks[4]].terminator = Terminator::Ret { uniform: false };
    let cfg = Cfg::compute(&func);
    let loops = Loops::of(&func, &cfg);
    let depths: Vec<u32> = blocks.iter().map(|&block| loops.depth(block)).collect();
    assert_eq!(depths, [0, 1, 2, 1, 0]);
    let superblocks = Superblocks::of(&func, &cfg, &loops);
    let chains: Vec<Vec<Block>> = superblocks.iter().map(<[Block]>::to_vec).collect();
    assert_eq!(chains, [vec![blocks[1], blocks[4]], vec![blocks[2], blocks[3]]]);
}

/// Random functions: every order of every mode is accepted, and some instructions change their block.
#[test]
fn what_moves_is_accepted() {
    let mut seed = 11u32;
    let mut random = move |bound: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % bound
    };
    let mut moved = 0;
    for round in 0..60u64 {
        let mut kernel = Kernel::new();
        let p = kernel.address(0);
        let mut values = [vec![kernel.constant(0).1], Vec::new(), Vec::new()];
        for block in 0..3 {
            for _ in 0..25 {
                // Values of the body are not known where the ways meet.
                let seen: Vec<VReg> = match block {
                    1 => values[0].iter().chain(&values[1]).copied().collect(),
                    _ => values[0].iter().chain(&values[2]).copied().collect(),
                };
                let value = seen[random(seen.len() as u32) as usize];
                match random(6) {
                    0 => values[block].push(kernel.load(block, "ld.global.b32", p).1),
                    1 => drop(kernel.store(block, p, value)),
                    2 if random(5) == 0 => drop(kernel.emit(block, "bar.sync", &[Operand::Imm(0)])),
                    _ => values[block].push(kernel.add(block, value).1),
                }
            }
        }
        let context = kernel.finish();
        for mode in [Mode::Latency, Mode::Random(round), Mode::Random(round + 1000)] {
            for registers in [None, Some(8), Some(64)] {
                let mut func = kernel.func.clone();
                run(&mut func, &context, &Options { mode, registers, check: true }).unwrap();
                ptxc_mir::verify(&func).unwrap();
                let counts = |func: &Function| kernel.blocks.map(|block| func.blocks[block].insts.len());
                moved += u32::from(counts(&func) != counts(&kernel.func));
            }
        }
    }
    assert!(moved > 100, "{moved} functions have instructions in other blocks");
}
