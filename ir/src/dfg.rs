//! The data-flow graph of a function: instructions, values, block parameters and constants.
//!
//! Holds what is computed from what. Does not hold order: that is [`crate::layout::Layout`].

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use rustc_hash::FxHashMap;

use crate::entities::{Block, FuncId, GlobalId, Inst, MaskId, SigId, SwitchId, TargetOpId, Value};
use crate::instruction::{BlockCall, Extra, InstData, SwitchData, TargetOp, ValueList, ValueListPool};
use crate::module::Signature;
use crate::types::Type;

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueDef {
    /// Result of an instruction, by index.
    Result(Inst, u16),
    /// Parameter of a block, by index. Parameters of the entry block are the function's parameters.
    Param(Block, u16),
    /// A constant.
    Const(ConstId),
    /// Another name of that value (left behind by rewriting).
    Alias(Value),
}

/// A constant in the function's constant table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConstId(u32);
cranelift_entity::entity_impl!(ConstId, "const");

/// What a constant is. The type is the value's.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ConstData {
    /// Integer (zero-extended from its width), float bit pattern or null pointer (0) of a scalar type.
    Bits(u128),
    /// Poison of any type.
    Poison,
    /// Address of a global plus bytes, in the global's space.
    Global(GlobalId, i64),
    /// Address of a function.
    Func(FuncId),
    /// Vector of scalar constants, one per lane.
    Vector(Vec<Value>),
}

/// A value's type and definition.
#[derive(Clone, Copy, Debug)]
pub struct ValueData {
    /// Type.
    pub ty: Type,
    /// Definition.
    pub def: ValueDef,
}

/// Annotations of the loop that a block heads.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LoopHints {
    /// `unroll(n)`: 0 forbids, `u32::MAX` is `full`.
    pub unroll: Option<u32>,
    /// `pipeline(stages=n)`.
    pub pipeline: Option<u32>,
}

/// Parameters and annotations of a block.
#[derive(Clone, Default, Debug)]
pub struct BlockData {
    /// Parameters.
    pub params: ValueList,
    /// Loop annotations.
    pub hints: LoopHints,
}

/// A source location: file number of the module's table, line and column from 1; line 0 means none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SourceLoc {
    /// File number.
    pub file: u32,
    /// Line.
    pub line: u32,
    /// Column.
    pub col: u32,
}

/// The data-flow graph.
#[derive(Clone, Default)]
pub struct Dfg {
    /// Instructions.
    pub insts: PrimaryMap<Inst, InstData>,
    /// First result and number of results per instruction; results are consecutive values.
    results: SecondaryMap<Inst, (u32, u16)>,
    /// Values.
    values: PrimaryMap<Value, ValueData>,
    /// Blocks.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// Storage of value lists.
    pub pool: ValueListPool,
    /// Constants.
    consts: PrimaryMap<ConstId, ConstData>,
    const_values: FxHashMap<(Type, ConstData), Value>,
    /// Switch tables.
    pub switches: PrimaryMap<SwitchId, SwitchData>,
    /// Target operations.
    pub target_ops: PrimaryMap<TargetOpId, TargetOp>,
    /// Shuffle masks: lane numbers, −1 for poison.
    pub masks: PrimaryMap<MaskId, Vec<i32>>,
    /// Signatures of indirect calls.
    pub signatures: PrimaryMap<SigId, Signature>,
    /// Source locations.
    pub locs: SecondaryMap<Inst, SourceLoc>,
    /// Names from the text; values without one are numbered when printed.
    pub value_names: FxHashMap<Value, Box<str>>,
    /// Labels from the text.
    pub block_names: FxHashMap<Block, Box<str>>,
}

impl Dfg {
    /// An empty graph.
    pub fn new() -> Dfg {
        Dfg::default()
    }

    /// Makes a block without placing it.
    pub fn make_block(&mut self) -> Block {
        self.blocks.push(BlockData::default())
    }

    /// Adds a parameter to a block.
    pub fn append_block_param(&mut self, block: Block, ty: Type) -> Value {
        let index = self.blocks[block].params.len(&self.pool);
        let value = self.values.push(ValueData { ty, def: ValueDef::Param(block, index as u16) });
        self.blocks[block].params.push(value, &mut self.pool);
        value
    }

    /// Replaces a block's parameters by `keep` of them, in order; indices are renumbered.
    pub fn retain_block_params(&mut self, block: Block, mut keep: impl FnMut(usize, Value) -> bool) {
        let old: Vec<Value> = self.block_params(block).to_vec();
        let mut list = ValueList::new();
        for (index, value) in old.into_iter().enumerate() {
            if keep(index, value) {
                let at = list.len(&self.pool) as u16;
                self.values[value].def = ValueDef::Param(block, at);
                list.push(value, &mut self.pool);
            }
        }
        self.blocks[block].params = list;
    }

    /// Parameters of a block.
    pub fn block_params(&self, block: Block) -> &[Value] {
        self.blocks[block].params.as_slice(&self.pool)
    }

    /// Makes an instruction, without results and without placing it.
    pub fn make_inst(&mut self, data: InstData) -> Inst {
        self.insts.push(data)
    }

    /// Gives an instruction its results. Call once per instruction.
    pub fn make_results(&mut self, inst: Inst, types: &[Type]) {
        let first = self.values.next_key();
        for (index, ty) in types.iter().enumerate() {
            self.values.push(ValueData { ty: *ty, def: ValueDef::Result(inst, index as u16) });
        }
        self.results[inst] = (first.as_u32(), types.len() as u16);
    }

    /// Number of results.
    pub fn num_results(&self, inst: Inst) -> usize {
        usize::from(self.results[inst].1)
    }

    /// Result `index`; panics when there is none (a bug of the caller, never of the input).
    pub fn result(&self, inst: Inst, index: usize) -> Value {
        let (first, count) = self.results[inst];
        assert!(index < usize::from(count), "instruction has no result {index}");
        Value::new(first as usize + index)
    }

    /// Results in order.
    pub fn results(&self, inst: Inst) -> impl ExactSizeIterator<Item = Value> + Clone + use<> {
        let (first, count) = self.results[inst];
        (0..usize::from(count)).map(move |i| Value::new(first as usize + i))
    }

    /// The first result, if any.
    pub fn first_result(&self, inst: Inst) -> Option<Value> {
        self.results(inst).next()
    }

    /// Value arguments of an instruction, in order (not branch arguments).
    pub fn args(&self, inst: Inst) -> &[Value] {
        self.insts[inst].args.as_slice(&self.pool)
    }

    /// Value arguments, to rewrite.
    pub fn args_mut(&mut self, inst: Inst) -> &mut [Value] {
        self.insts[inst].args.as_mut_slice(&mut self.pool)
    }

    /// Makes a value list.
    pub fn list(&mut self, values: &[Value]) -> ValueList {
        ValueList::from_slice(values, &mut self.pool)
    }

    /// Makes a branch target.
    pub fn block_call(&mut self, block: Block, args: &[Value]) -> BlockCall {
        BlockCall { block, args: self.list(args) }
    }

    /// Calls `f` on each branch target of a terminator, in written order (`then` before `else`, default before cases).
    pub fn for_each_target(&self, inst: Inst, mut f: impl FnMut(&BlockCall)) {
        match &self.insts[inst].extra {
            Extra::Jump(target) => f(target),
            Extra::Branch { then, other, .. } => {
                f(then);
                f(other);
            }
            Extra::Switch(id) => {
                let data = &self.switches[*id];
                f(&data.default);
                data.cases.iter().for_each(|(_, target)| f(target));
            }
            _ => {}
        }
    }

    /// Calls `f` on each branch target with write access to it and to the list pool.
    pub fn for_each_target_mut(&mut self, inst: Inst, mut f: impl FnMut(&mut BlockCall, &mut ValueListPool)) {
        let Dfg { insts, pool, switches, .. } = self;
        match &mut insts[inst].extra {
            Extra::Jump(target) => f(target, pool),
            Extra::Branch { then, other, .. } => {
                f(then, pool);
                f(other, pool);
            }
            Extra::Switch(id) => {
                let data = &mut switches[*id];
                f(&mut data.default, pool);
                data.cases.iter_mut().for_each(|(_, target)| f(target, pool));
            }
            _ => {}
        }
    }

    /// Calls `f` on every value an instruction uses: arguments, then branch arguments.
    pub fn for_each_use(&self, inst: Inst, mut f: impl FnMut(Value)) {
        self.args(inst).iter().for_each(|v| f(*v));
        self.for_each_target(inst, |t| t.args.as_slice(&self.pool).iter().for_each(|v| f(*v)));
    }

    /// Rewrites every value an instruction uses.
    pub fn map_uses(&mut self, inst: Inst, mut f: impl FnMut(Value) -> Value) {
        for arg in self.args_mut(inst) {
            *arg = f(*arg);
        }
        self.for_each_target_mut(inst, |t, pool| {
            for arg in t.args.as_mut_slice(pool) {
                *arg = f(*arg);
            }
        });
    }

    /// A value's type.
    pub fn ty(&self, value: Value) -> Type {
        self.values[value].ty
    }

    /// Sets a value's type (the reader resolves forward references with it).
    pub fn set_ty(&mut self, value: Value, ty: Type) {
        self.values[value].ty = ty;
    }

    /// A value's definition, with aliases followed.
    pub fn def(&self, value: Value) -> ValueDef {
        self.values[self.resolve(value)].def
    }

    /// The value behind aliases. Chains are acyclic by construction of [`Dfg::alias`].
    pub fn resolve(&self, value: Value) -> Value {
        let mut v = value;
        while let ValueDef::Alias(to) = self.values[v].def {
            v = to;
        }
        v
    }

    /// Makes `value` another name of `to`. Both must have the same type. The definition of `value` must be going away.
    pub fn alias(&mut self, value: Value, to: Value) {
        let to = self.resolve(to);
        debug_assert_ne!(value, to);
        self.values[value].def = ValueDef::Alias(to);
    }

    /// Number of values ever made, for side tables.
    pub fn num_values(&self) -> usize {
        self.values.len()
    }

    /// True when the reference is one of this graph's values.
    pub fn value_exists(&self, value: Value) -> bool {
        self.values.is_valid(value)
    }

    /// Every value, in creation order.
    pub fn values(&self) -> impl Iterator<Item = Value> + use<> {
        (0..self.values.len()).map(Value::new)
    }

    /// The instruction that computes a value, if one does.
    pub fn def_inst(&self, value: Value) -> Option<Inst> {
        match self.def(value) {
            ValueDef::Result(inst, _) => Some(inst),
            _ => None,
        }
    }

    /// The constant of this type and data; equal constants are one value.
    pub fn constant(&mut self, ty: Type, data: ConstData) -> Value {
        if let Some(value) = self.const_values.get(&(ty, data.clone())) {
            return *value;
        }
        let id = self.consts.push(data.clone());
        let value = self.values.push(ValueData { ty, def: ValueDef::Const(id) });
        self.const_values.insert((ty, data), value);
        value
    }

    /// Rewrites every constant in place. Distinct constants must stay distinct as far as they are used.
    pub(crate) fn rewrite_constants(&mut self, mut rewrite: impl FnMut(&mut ConstData)) {
        self.consts.values_mut().for_each(&mut rewrite);
        let values = std::mem::take(&mut self.const_values);
        self.const_values = values
            .into_iter()
            .map(|((ty, mut data), value)| {
                rewrite(&mut data);
                ((ty, data), value)
            })
            .collect();
    }

    /// An integer, float-bits or null constant; bits beyond the type's width are dropped. For a vector type, a splat.
    pub fn bits(&mut self, ty: Type, bits: u128) -> Value {
        let width = ty.scalar_bits();
        let bits = if width >= 128 { bits } else { bits & ((1u128 << width) - 1) };
        let scalar = self.constant(ty.scalar(), ConstData::Bits(bits));
        if !ty.is_vector() {
            return scalar;
        }
        self.constant(ty, ConstData::Vector(vec![scalar; ty.lanes() as usize]))
    }

    /// An integer constant from a signed number.
    pub fn int(&mut self, ty: Type, value: i64) -> Value {
        self.bits(ty, i128::from(value) as u128)
    }

    /// Poison of a type.
    pub fn poison(&mut self, ty: Type) -> Value {
        self.constant(ty, ConstData::Poison)
    }

    /// The constant behind a value, if it is one.
    pub fn as_const(&self, value: Value) -> Option<&ConstData> {
        match self.def(value) {
            ValueDef::Const(id) => Some(&self.consts[id]),
            _ => None,
        }
    }

    /// The bits of a scalar constant.
    pub fn as_bits(&self, value: Value) -> Option<u128> {
        match self.as_const(value) {
            Some(ConstData::Bits(bits)) => Some(*bits),
            _ => None,
        }
    }

    /// The scalar integer constant as a sign-extended number.
    pub fn as_signed(&self, value: Value) -> Option<i128> {
        let bits = self.as_bits(value)?;
        let width = self.ty(value).scalar_bits();
        let shift = 128u32.saturating_sub(width);
        Some(((bits << shift) as i128) >> shift)
    }
}
