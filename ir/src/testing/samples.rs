//! One small kernel per opcode and type.

use super::instructions::{Operands, atomic_operations, build_typed};
use super::types::{all_types, controlling_types};
use super::{Options, Rng, items};
use crate::builder::FunctionBuilder;
use crate::entities::{Inst, Value};
use crate::flags::Flags;
use crate::instruction::{Extra, MemAttrs};
use crate::module::{FuncKind, Function, Module, Param, ParamAttrs, Signature};
use crate::opcode::{Opcode, Shape};
use crate::types::{MemType, Space, Type};
use crate::verifier::converts;

/// A module with one kernel that loads operands, executes one instruction and stores its results.
pub struct Sample {
    /// The opcode.
    pub op: Opcode,
    /// Its controlling type; invalid when it has none.
    pub ty: Type,
    /// The opcode and its types, for messages.
    pub name: String,
    /// The module.
    pub module: Module,
}

/// Operands are loaded from memory, so that nothing is known of them.
struct Loaded {
    module: Module,
    rng: Rng,
    base: Value,
}

impl Operands for Loaded {
    fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    fn module(&self) -> &Module {
        &self.module
    }

    fn calls(&self) -> bool {
        true
    }

    fn value(&mut self, b: &mut FunctionBuilder, ty: Type) -> Value {
        let mut mem = MemAttrs::aligned(ty.align());
        mem.volatile = true;
        b.load(ty, self.base, mem)
    }

    fn mem_type(&mut self) -> MemType {
        self.module.aggregates().next().map_or(MemType::Value(Type::F32), |(id, _)| MemType::Agg(id))
    }

    fn signature(&mut self) -> Signature {
        let param = Param { ty: MemType::Value(Type::I32), attrs: ParamAttrs::default() };
        Signature { params: vec![param], ret: Some(MemType::Value(Type::F32)) }
    }
}

/// Every opcode with every type of [`controlling_types`]; conversions with every pair of types that they convert, each
/// atomic operation by itself. Attributes and flags vary by a fixed seed. Some ten thousand modules: make them one by one.
pub fn samples() -> impl Iterator<Item = Sample> {
    Opcode::ALL.iter().copied().flat_map(|op| {
        let types = match op.shape() {
            Shape::Sreg => (0..ptxc_targets::SpecialReg::ALL.len()).map(|_| Type::INVALID).collect(),
            _ => controlling_types(op),
        };
        types.into_iter().enumerate().flat_map(move |(index, ty)| variants(op, ty, index))
    })
}

fn variants(op: Opcode, ty: Type, index: usize) -> Vec<Sample> {
    let seed = (op as u64) << 32 | index as u64;
    match op.shape() {
        Shape::Convert => {
            let from = all_types().into_iter().filter(|from| converts(op, *from, ty));
            let sample = |from: Type| {
                sample(op, ty, format!("{} {from} to {ty}", op.text()), seed, |o, b| {
                    let value = o.value(b, from);
                    b.convert(op, value, ty);
                })
            };
            from.map(sample).collect()
        }
        Shape::AtomicRmw => {
            let sample = |operation: crate::opcode::AtomicOp| {
                let name = format!("{} {} {ty}", op.text(), operation.text());
                sample(op, ty, name, seed, |o, b| {
                    let value = o.value(b, ty);
                    let mut mem = MemAttrs::aligned(ty.size().next_power_of_two());
                    mem.order = crate::opcode::Ordering::Relaxed;
                    b.inst(op, Flags::EMPTY, ty, &[o.base, value], Extra::Rmw(operation, mem));
                })
            };
            atomic_operations(ty).into_iter().map(sample).collect()
        }
        Shape::Sreg => {
            let Some(register) = ptxc_targets::SpecialReg::ALL.get(index).copied() else { return Vec::new() };
            let name = format!("sreg {}", register.name());
            vec![sample(op, ty, name, seed, |_, b| {
                b.sreg(register, crate::sreg_type(register));
            })]
        }
        _ => vec![sample(op, ty, format!("{} {ty}", op.text()), seed, |o, b| build_typed(o, b, op, ty))],
    }
}

fn sample(op: Opcode, ty: Type, name: String, seed: u64, build: impl Fn(&mut Loaded, &mut FunctionBuilder)) -> Sample {
    let options = Options { functions: 0, odd_names: false, ..Options::default() };
    let mut rng = Rng::new(seed);
    let module = items::module(&mut rng, &options);
    let param = Param { ty: MemType::Value(Type::ptr(Space::Global)), attrs: ParamAttrs::default() };
    let sig = Signature { params: vec![param], ret: None };
    let mut func = Function::new("sample", FuncKind::Kernel, sig);
    let mut b = FunctionBuilder::new(&mut func);
    let entry = b.entry_block(&[Type::ptr(Space::Global)]);
    let base = b.func.dfg.block_params(entry)[0];
    b.switch_to(entry);
    let mut loaded = Loaded { module, rng, base };
    if op.is_terminator() {
        terminator(&mut loaded, &mut b, op, ty);
    } else {
        build(&mut loaded, &mut b);
        store_results(&mut b, base);
        b.ret(&[]);
    }
    let mut module = loaded.module;
    // The name is new: the other functions are called `f` and a number.
    let _ = module.add_func(func);
    Sample { op, ty, name, module }
}

/// Stores what the last instruction gives.
fn store_results(b: &mut FunctionBuilder, base: Value) {
    let Some(crate::builder::Cursor::End(block)) = b.cursor() else { return };
    let Some(last) = b.func.layout.last_inst(block) else { return };
    let inst: Inst = last;
    let results: Vec<Value> = b.func.dfg.results(inst).collect();
    for value in results {
        let mut mem = MemAttrs::aligned(b.ty(value).align());
        mem.volatile = true;
        b.store(value, base, mem);
    }
}

fn terminator(o: &mut Loaded, b: &mut FunctionBuilder, op: Opcode, ty: Type) {
    let (first, second) = (b.append_block(), b.append_block());
    match op.shape() {
        Shape::Jump => {
            b.jump(first, &[]);
        }
        Shape::Branch => {
            let condition = o.value(b, Type::I1);
            b.br(condition, (first, &[]), (second, &[]));
        }
        Shape::Switch => {
            let value = o.value(b, ty);
            let (default, case) = (b.func.dfg.block_call(first, &[]), b.func.dfg.block_call(second, &[]));
            b.switch(value, default, vec![(0, case), (1, default)]);
        }
        Shape::Return => {
            b.ret(&[]);
        }
        _ => {
            b.inst(op, Flags::EMPTY, Type::INVALID, &[], Extra::None);
        }
    }
    for block in [first, second] {
        b.switch_to(block);
        b.ret(&[]);
    }
}
