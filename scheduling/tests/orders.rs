//! Graph, random orders, list scheduler and checker agree on blocks made here, and the checker refuses what is wrong.

#![allow(clippy::unwrap_used)]

use ptxc_mir::{
    FuncKind, Function, FunctionBuilder, GroupKind, Inst, Linkage, MemoryRef, Module, Object, Operand, RegClass,
    Signature, Terminator, VReg,
};
use ptxc_scheduling::{Builder, Context, FunctionFacts, Mode, Options, check, run};

/// A block under construction.
struct Kernel {
    module: Module,
    func: Function,
}

impl Kernel {
    fn new() -> Kernel {
        let mut module = Module::new("sm_90".parse().unwrap());
        let name = module.symbols.intern("kernel");
        let mut func = Function::new(name, FuncKind::Kernel, Linkage::Visible, Signature::default());
        func.new_block();
        Kernel { module, func }
    }

    fn reg(&mut self, class: RegClass) -> VReg {
        self.func.new_vreg(class)
    }

    fn emit(&mut self, mnemonic: &str, operands: &[Operand]) -> Inst {
        let opcode = self.module.opcodes.intern_text(mnemonic).unwrap();
        let entry = self.func.entry().unwrap();
        let mut builder = FunctionBuilder::new(&mut self.func);
        builder.switch_to(entry);
        builder.emit(opcode, operands)
    }

    fn load(&mut self, base: VReg, offset: i64, object: Object) -> (Inst, VReg) {
        let value = self.reg(RegClass::B32);
        let address = [Operand::Open(GroupKind::Address, 2), Operand::Use(base), Operand::Offset(offset)];
        let inst = self.emit("ld.global.b32", &[Operand::Def(value), address[0], address[1], address[2]]);
        self.func.memory[inst] = MemoryRef { objects: [object, Object::Unknown], constant: false };
        (inst, value)
    }

    fn store(&mut self, base: VReg, offset: i64, value: VReg, object: Object) -> Inst {
        let address = [Operand::Open(GroupKind::Address, 2), Operand::Use(base), Operand::Offset(offset)];
        let inst = self.emit("st.global.b32", &[address[0], address[1], address[2], Operand::Use(value)]);
        self.func.memory[inst] = MemoryRef { objects: [object, Object::Unknown], constant: false };
        inst
    }

    fn finish(&mut self) -> Context {
        let entry = self.func.entry().unwrap();
        self.func.blocks[entry].terminator = Terminator::Ret { uniform: false };
        Context::new(&self.module)
    }

    /// Whether two neighbours may change places, by the checker; the graph has to say the same.
    fn may_swap(&self, context: &Context, a: Inst, b: Inst) -> bool {
        let facts = FunctionFacts::new(&context.facts, &self.func);
        let entry = self.func.entry().unwrap();
        let old = &self.func.blocks[entry].insts;
        let mut new = old.clone();
        let at = |inst| old.iter().position(|other| *other == inst).unwrap();
        assert_eq!(at(a) + 1, at(b), "they are neighbours");
        new.swap(at(a), at(b));
        let accepted = check(&self.func, &facts, entry, old, &new).is_ok();
        let mut ordered = false;
        Builder::new(&facts).each_region(&self.func, entry, |graph| {
            let nodes = 0..graph.len() as u32;
            let node = |inst| nodes.clone().find(|node| graph.inst(*node) == Some(inst));
            if let (Some(a), Some(b)) = (node(a), node(b)) {
                // Neighbours have nothing but joins between them.
                let mut behind = vec![b];
                while let Some(node) = behind.pop() {
                    for edge in graph.preds(node) {
                        ordered |= edge.node == a;
                        behind.extend(graph.inst(edge.node).is_none().then_some(edge.node));
                    }
                }
            } else {
                ordered = true;
            }
        });
        assert_eq!(accepted, !ordered, "graph and checker agree");
        accepted
    }
}

#[test]
fn accesses_that_may_overlap_stay_in_order() {
    use Object::{Frame, NoAlias, Parameters, Symbol, Unknown};
    let symbol = |index| Symbol(ptxc_mir::SymId::from_u32(index));
    let objects = [Unknown, Parameters, NoAlias(0), NoAlias(1), symbol(0), symbol(1), Frame(0), Frame(8)];
    for (i, &first) in objects.iter().enumerate() {
        for (j, &second) in objects.iter().enumerate() {
            let mut kernel = Kernel::new();
            let (p, q, v) = (kernel.reg(RegClass::B64), kernel.reg(RegClass::B64), kernel.reg(RegClass::B32));
            let store = kernel.store(p, 0, v, first);
            let (load, _) = kernel.load(q, 0, second);
            let context = kernel.finish();
            let overlap = match (first, second) {
                (Unknown, _) | (_, Unknown) => true,
                (NoAlias(_), _) | (_, NoAlias(_)) => i == j,
                (Parameters, _) | (_, Parameters) => true,
                _ => i == j,
            };
            assert_eq!(kernel.may_swap(&context, store, load), !overlap, "{first:?} and {second:?}");
        }
    }
}

#[test]
fn bytes_from_one_base_are_told_apart() {
    for (offset, free) in [(0, false), (4, true), (-4, true), (2, false), (12, true), (16, true), (100, true)] {
        let mut kernel = Kernel::new();
        let (p, v) = (kernel.reg(RegClass::B64), kernel.reg(RegClass::B32));
        let (load, _) = kernel.load(p, 0, Object::Unknown);
        let store = kernel.store(p, offset, v, Object::Unknown);
        let context = kernel.finish();
        assert_eq!(kernel.may_swap(&context, load, store), free, "offset {offset}");
    }
}

#[test]
fn loads_pass_loads() {
    let mut kernel = Kernel::new();
    let (p, q) = (kernel.reg(RegClass::B64), kernel.reg(RegClass::B64));
    let (first, _) = kernel.load(p, 0, Object::Unknown);
    let (second, _) = kernel.load(q, 0, Object::Unknown);
    let context = kernel.finish();
    assert!(kernel.may_swap(&context, first, second));
}

#[test]
fn a_barrier_keeps_its_sides() {
    let mut kernel = Kernel::new();
    let p = kernel.reg(RegClass::B64);
    let (load, value) = kernel.load(p, 0, Object::NoAlias(0));
    let barrier = kernel.emit("bar.sync", &[Operand::Imm(0)]);
    let doubled = kernel.reg(RegClass::B32);
    let add = kernel.emit("add.s32", &[Operand::Def(doubled), Operand::Use(value), Operand::Use(value)]);
    let context = kernel.finish();
    assert!(!kernel.may_swap(&context, load, barrier));
    assert!(kernel.may_swap(&context, barrier, add));
}

#[test]
fn orders_of_random_blocks_are_accepted() {
    let mut seed = 7u32;
    let mut random = move |bound: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % bound
    };
    for round in 0..60 {
        let mut kernel = Kernel::new();
        let bases: Vec<VReg> = (0..3).map(|_| kernel.reg(RegClass::B64)).collect();
        let mut values = vec![kernel.reg(RegClass::B32)];
        let objects = [Object::Unknown, Object::Parameters, Object::NoAlias(0), Object::NoAlias(1)];
        for _ in 0..120 {
            let (base, offset) = (bases[random(3) as usize], i64::from(random(12)) * 2);
            let object = objects[random(4) as usize];
            let value = values[random(values.len() as u32) as usize];
            match random(8) {
                0..3 => values.push(kernel.load(base, offset, object).1),
                3..5 => drop(kernel.store(base, offset, value, object)),
                5 if random(6) == 0 => drop(kernel.emit("bar.sync", &[Operand::Imm(0)])),
                _ => {
                    let sum = kernel.reg(RegClass::B32);
                    kernel.emit("add.s32", &[Operand::Def(sum), Operand::Use(value), Operand::Use(values[0])]);
                    values.push(sum);
                }
            }
        }
        let context = kernel.finish();
        for mode in [Mode::Latency, Mode::Random(round), Mode::Random(round + 1000)] {
            for registers in [None, Some(8), Some(64)] {
                let mut func = kernel.func.clone();
                run(&mut func, &context, &Options { mode, registers, check: true }).unwrap();
            }
        }
    }
}

/// Edges stay in proportion to instructions where every access may meet every other.
#[test]
fn many_accesses_make_few_edges() {
    let mut kernel = Kernel::new();
    let bases: Vec<VReg> = (0..50).map(|_| kernel.reg(RegClass::B64)).collect();
    let value = kernel.reg(RegClass::B32);
    for round in 0..40i64 {
        for (index, &base) in bases.iter().enumerate() {
            let offset = 64 * round + index as i64 * 4;
            if round % 2 == 0 {
                kernel.store(base, offset, value, Object::Unknown);
            } else {
                kernel.load(base, offset, Object::Unknown);
            }
        }
    }
    let context = kernel.finish();
    let facts = FunctionFacts::new(&context.facts, &kernel.func);
    let entry = kernel.func.entry().unwrap();
    Builder::new(&facts).each_region(&kernel.func, entry, |graph| {
        assert!(graph.edge_count() < 5 * 2000, "{} edges for 2000 instructions", graph.edge_count());
    });
}
