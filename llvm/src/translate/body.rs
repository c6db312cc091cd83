//! Bodies of functions: blocks in an order in which definitions come before uses, phis as block parameters.

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use ptxc_ir::{
    Block as IrBlock, Flags, FuncId, FuncKind, Function as IrFunction, FunctionBuilder, Signature, Type as IrType,
    Value,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Context, Fault, Result, Symbol};
use crate::model::{
    Attribute, BlockId, Body, ConstId, Definition, Function, GlobalId, InstId, Instruction, Operand, OperandKind,
    ValueId,
};

/// Longest list of a phi, in operands, that is searched from the start each time.
const MAX_SEARCHED: usize = 32;
/// Most parts of the values of one function.
const MAX_PARTS: usize = 1 << 26;
/// Instructions of the IR that a function may become, for each of LLVM's and in addition.
const GROWTH: (usize, usize) = (256, 1 << 20);

/// Parts of a value: a run in [`Writer::parts`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Run {
    start: u32,
    len: u32,
}

impl Run {
    /// As a range.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

/// Writes one body.
pub(super) struct Writer<'c, 'm> {
    pub cx: &'c mut Context<'m>,
    pub body: &'m Body,
    /// The builder, at the present position.
    pub b: FunctionBuilder<'c>,
    pub id: FuncId,
    /// Parts of values, one value after the other.
    pub parts: Vec<Value>,
    runs: SecondaryMap<ValueId, Option<Run>>,
    /// Constants that need no instruction.
    pub constants: FxHashMap<ConstId, Run>,
    pub blocks: SecondaryMap<BlockId, PackedOption<IrBlock>>,
    /// Addresses of objects that hold the pointers which the host passed, and no others.
    pub(super) passed_objects: FxHashSet<Value>,
    /// Of phis with long lists: the place of each block in the list.
    incoming: FxHashMap<InstId, FxHashMap<BlockId, usize>>,
    /// The block that is written.
    pub source_block: BlockId,
    /// Position of each block in the order of translation, from 1; 0 is not reached.
    pub numbers: SecondaryMap<BlockId, u32>,
    /// Number of the instruction's place in the file.
    pub at: u32,
    /// Flags that every f32 operation gets.
    pub ftz: Flags,
    /// Fast-math flags that the function's attributes give to every operation.
    pub promised: crate::model::Flags,
    /// The pointer to the arguments in place of `...`.
    pub variadic: Option<Value>,
    /// How deep in constants within constants.
    pub nesting: u32,
    /// Objects whose `alloca` stands behind the entry block.
    pub(super) made_late: Vec<super::rounds::Made>,
    /// Number of texts of assembly so far, for `${:uid}`.
    pub assemblies: u32,
}

impl<'m> Context<'m> {
    /// Translates every body.
    pub fn translate_bodies(&mut self, faults: &mut Vec<Fault>) {
        let source = self.source;
        for id in source.order.iter().copied() {
            let (Some(function), Symbol::Function(made)) = (source.globals[id].function(), self.symbols[id]) else {
                continue;
            };
            let Some(body) = &function.body else { continue };
            if self.module.funcs[made].linkage == ptxc_ir::Linkage::Extern {
                continue;
            }
            if let Err(fault) = self.translate_body(id, made, function, body) {
                faults.push(fault.at(source.globals[id].at));
                if faults.len() >= super::MAX_FAULTS {
                    return;
                }
            }
        }
    }

    fn translate_body(&mut self, id: GlobalId, made: FuncId, function: &'m Function, body: &'m Body) -> Result<()> {
        // The function leaves the module while it is written; calls of itself see its header.
        let header = &self.module.funcs[made];
        let stand_in = IrFunction {
            linkage: header.linkage,
            attrs: header.attrs.clone(),
            ..IrFunction::new(header.name.clone(), header.kind, header.sig.clone())
        };
        let mut func = std::mem::replace(&mut self.module.funcs[made], stand_in);
        let (ftz, at) = (self.flushes(function), self.source.globals[id].at);
        let promised = self.promised_flags(function);
        let mut writer = Writer {
            cx: self,
            body,
            b: FunctionBuilder::new(&mut func),
            id: made,
            parts: Vec::new(),
            runs: SecondaryMap::with_capacity(body.values.len()),
            constants: FxHashMap::default(),
            blocks: SecondaryMap::with_capacity(body.blocks.len()),
            passed_objects: FxHashSet::default(),
            incoming: FxHashMap::default(),
            source_block: body.order.first().copied().unwrap_or_else(|| BlockId::from_u32(0)),
            numbers: SecondaryMap::with_capacity(body.blocks.len()),
            at,
            ftz,
            promised,
            variadic: None,
            nesting: 0,
            made_late: Vec::new(),
            assemblies: 0,
        };
        let result = writer.write(id).map_err(|fault| fault.at(writer.at));
        self.module.funcs[made] = func;
        result
    }

    /// The fast-math flags that attributes of the function stand for, as compilers before those flags wrote them.
    fn promised_flags(&self, function: &Function) -> crate::model::Flags {
        use crate::model::{AttributeValue, Flags as Promise};
        let names = &self.source.names;
        let mut flags = Promise::NONE;
        for Attribute { name, value } in self.source.attributes.function(function.attributes) {
            let AttributeValue::Text(text) = value else { continue };
            if names.bytes(text) != b"true" {
                continue;
            }
            flags = flags.with(match names.bytes(name) {
                b"unsafe-fp-math" => Promise(Promise::FAST.0 & !Promise::NNAN.0 & !Promise::NINF.0),
                b"no-nans-fp-math" => Promise::NNAN,
                b"no-infs-fp-math" => Promise::NINF,
                b"no-signed-zeros-fp-math" => Promise::NSZ,
                b"approx-func-fp-math" => Promise::AFN,
                _ => Promise::NONE,
            });
        }
        flags
    }

    /// Whether f32 arithmetic flushes subnormals, from the function's attributes.
    fn flushes(&self, function: &Function) -> Flags {
        let source = self.source;
        for name in [&b"denormal-fp-math-f32"[..], b"denormal_fpenv", b"denormal-fp-math"] {
            let Some(name) = source.names.find(name) else { continue };
            for Attribute { name: found, value } in source.attributes.function(function.attributes) {
                if found == name
                    && let crate::model::AttributeValue::Text(text) = value
                {
                    let flushes = source.names.text(text).starts_with("preserve-sign");
                    return if flushes { Flags::FTZ } else { Flags::EMPTY };
                }
            }
        }
        Flags::EMPTY
    }
}

impl<'m> Writer<'_, 'm> {
    fn write(&mut self, id: GlobalId) -> Result<()> {
        let order = self.order();
        for block in &self.body.order {
            if self.numbers[*block] != 0 {
                let made = self.b.append_block();
                self.blocks[*block] = made.into();
                if let (true, Some(name)) = (self.cx.options.keep_names, self.body.blocks[*block].name) {
                    let name = self.cx.text(name).into_boxed_str();
                    self.b.func.dfg.block_names.insert(made, name);
                }
            }
        }
        let Some(entry) = order.first().copied() else { return Err(Fault::new("a body has no blocks")) };
        let entry = self.target(entry)?;
        self.b.switch_to(entry);
        self.arguments(id, entry, &order)?;
        for block in &order {
            self.block_parameters(*block)?;
        }
        for block in order {
            self.source_block = block;
            let made = self.target(block)?;
            self.b.switch_to(made);
            for inst in self.body.block(block) {
                self.instruction(inst)?;
            }
        }
        self.separate_rounds();
        if self.cx.options.keep_names {
            self.names();
        }
        Ok(())
    }

    /// The reachable blocks, so that a block comes after those that dominate it: reverse postorder.
    fn order(&mut self) -> Vec<BlockId> {
        let Some(entry) = self.body.order.first().copied() else { return Vec::new() };
        let mut visited = SecondaryMap::<BlockId, bool>::with_capacity(self.body.blocks.len());
        let mut postorder = Vec::with_capacity(self.body.order.len());
        let mut stack = vec![(entry, self.successors(entry))];
        visited[entry] = true;
        while let Some((block, successors)) = stack.last_mut() {
            match successors.pop() {
                Some(next) if !visited[next] => {
                    visited[next] = true;
                    let further = self.successors(next);
                    stack.push((next, further));
                }
                Some(_) => {}
                None => {
                    postorder.push(*block);
                    stack.pop();
                }
            }
        }
        postorder.reverse();
        for (number, block) in postorder.iter().enumerate() {
            self.numbers[*block] = number as u32 + 1;
        }
        postorder
    }

    /// Where a block goes to. Exceptions are never thrown, so they lead nowhere.
    fn successors(&self, block: BlockId) -> Vec<BlockId> {
        let Some(last) = self.body.block(block).next_back() else { return Vec::new() };
        let blocks = |list| self.body.operands(list).iter().filter_map(|operand| operand.block()).collect();
        match self.body.instructions[last].instruction {
            Instruction::Jump(to) => vec![to],
            Instruction::Branch { condition, yes, no } => match self.decided(condition) {
                Some(0) => vec![no],
                Some(_) => vec![yes],
                None => vec![no, yes],
            },
            Instruction::Switch { default, cases, .. } => {
                let mut all: Vec<BlockId> = blocks(cases);
                all.push(default);
                all
            }
            Instruction::IndirectBranch { targets, .. } | Instruction::CallBranch { targets, .. } => blocks(targets),
            Instruction::Invoke { normal, .. } => vec![normal],
            _ => Vec::new(),
        }
    }

    /// The IR's block of a reachable block.
    pub fn target(&self, block: BlockId) -> Result<IrBlock> {
        self.blocks[block].expand().ok_or_else(|| Fault::new("a branch leads to a block that is not defined"))
    }

    /// Makes the parameters of the entry block and the values of the function's arguments.
    fn arguments(&mut self, id: GlobalId, entry: IrBlock, order: &[BlockId]) -> Result<()> {
        let sig: Signature = self.b.func.sig.clone();
        let types = self.cx.module.sig_params(&sig);
        for ty in types {
            self.b.block_param(entry, ty);
        }
        let mut at = 0;
        let kernel = self.b.func.kind == FuncKind::Kernel;
        let arguments: Vec<(ValueId, u32)> = self
            .body
            .values
            .iter()
            .map_while(|(value, data)| match data.definition {
                Definition::Argument(index) => Some((value, index)),
                _ => None,
            })
            .collect();
        for (value, index) in arguments {
            let shape = self.cx.shape(self.body.values[value].ty)?;
            let params = self.b.func.dfg.block_params(entry);
            let Some(own) = params.get(at..at + shape.parts.len()) else {
                return Err(Fault::new("a body has more arguments than its type"));
            };
            let own = own.to_vec();
            at += own.len();
            let param = sig.params.get(index as usize);
            let mut parts = Vec::with_capacity(own.len());
            for (given, part) in own.into_iter().zip(&shape.parts) {
                parts.push(self.receive(given, part.ty));
            }
            if let (true, Some(object), [address]) = (kernel, param.and_then(|p| p.attrs.byval), parts.as_slice()) {
                let constant = param.is_some_and(|p| p.attrs.grid_constant);
                let align = param.map_or(1, |p| p.attrs.align);
                parts = vec![self.by_value_parameter(value, *address, object, (align, constant), order)];
            }
            self.define(value, &parts);
        }
        let ty = self.cx.source.globals[id].ty.expand();
        if ty.and_then(|ty| self.cx.source.types.signature(ty)).is_some_and(|(.., variadic)| variadic) {
            self.variadic = self.b.func.dfg.block_params(entry).get(at).copied();
        }
        Ok(())
    }

    /// A value as it is passed, from and to the type that values have: short pointers are integers in signatures.
    pub fn receive(&mut self, given: Value, wanted: IrType) -> Value {
        let ty = self.b.ty(given);
        if ty.is_int() && wanted.is_ptr() {
            return self.integer_to_pointer(given, wanted);
        }
        given
    }

    /// Makes the parameters of a block: one for each part of each phi.
    fn block_parameters(&mut self, block: BlockId) -> Result<()> {
        let made = self.target(block)?;
        for inst in self.body.block(block) {
            let data = self.body.instructions[inst];
            let (Instruction::Phi { .. }, Some(result)) = (data.instruction, data.result.expand()) else { break };
            self.at = data.at;
            let shape = self.cx.shape(self.body.values[result].ty)?;
            let parts: Vec<Value> = shape.parts.iter().map(|part| self.b.block_param(made, part.ty)).collect();
            self.define(result, &parts);
        }
        Ok(())
    }

    /// The value of a phi for a block. Long lists are searched once for all.
    fn incoming(&mut self, phi: InstId, pairs: &[Operand], from: BlockId) -> Option<Operand> {
        if pairs.len() <= MAX_SEARCHED {
            return pairs.chunks_exact(2).find(|pair| pair[1].block() == Some(from)).map(|pair| pair[0]);
        }
        let places = self.incoming.entry(phi).or_insert_with(|| {
            let blocks = pairs.chunks_exact(2).enumerate().filter_map(|(at, pair)| Some((pair[1].block()?, at)));
            blocks.collect()
        });
        pairs.get(2 * places.get(&from)?).copied()
    }

    /// What the phis of `to` get from the present block.
    pub fn branch_arguments(&mut self, to: BlockId) -> Result<Vec<Value>> {
        let mut out = Vec::new();
        let from = self.source_block;
        for inst in self.body.block(to) {
            let data = self.body.instructions[inst];
            let (Instruction::Phi { incoming, .. }, Some(_)) = (data.instruction, data.result.expand()) else { break };
            let given = self.incoming(inst, self.body.operands(incoming), from);
            let Some(given) = given else {
                return Err(Fault::new("a phi has no value for one of the blocks before it").at(data.at));
            };
            let run = self.exact_parts(given)?;
            out.extend_from_slice(&self.parts[run.range()]);
        }
        Ok(out)
    }

    /// Gives a value its parts.
    pub fn define(&mut self, value: ValueId, parts: &[Value]) {
        let run = self.push(parts);
        self.runs[value] = Some(run);
    }

    /// Gives a value the parts of another.
    pub fn define_as(&mut self, value: ValueId, run: Run) {
        self.runs[value] = Some(run);
    }

    /// Stores parts.
    pub fn push(&mut self, parts: &[Value]) -> Run {
        let run = Run { start: self.parts.len() as u32, len: parts.len() as u32 };
        self.parts.extend_from_slice(parts);
        run
    }

    /// Parts of a value of the function, as they were defined.
    pub fn value_run(&self, value: ValueId) -> Result<Run> {
        self.runs[value].ok_or_else(|| Fault::new("a value is used where its definition does not dominate"))
    }

    /// The name of the function that a callee is.
    pub fn callee_name(&self, callee: Operand) -> Option<String> {
        match callee.kind() {
            OperandKind::Constant(constant) => match self.cx.source.constants.get(constant) {
                crate::model::Constant::Global(global) => {
                    Some(self.cx.source.names.text(self.cx.source.globals[global].name?).into_owned())
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Gives results the names of the source.
    fn names(&mut self) {
        for (value, name) in &self.body.names {
            let Some(run) = self.runs[*value] else { continue };
            let [part] = self.parts[run.range()] else { continue };
            if self.b.func.dfg.as_const(part).is_none() {
                let name = self.cx.source.names.text(*name).into_owned().into_boxed_str();
                self.b.func.dfg.value_names.entry(part).or_insert(name);
            }
        }
    }

    fn instruction(&mut self, inst: InstId) -> Result<()> {
        let data = self.body.instructions[inst];
        self.at = data.at;
        let location = data.location.expand().map_or_else(Default::default, |id| self.cx.location(id));
        self.b.set_loc(location);
        let before = self.b.func.dfg.insts.len();
        let result = self.translate(inst, &data.instruction, data.result.expand());
        let made = before..self.b.func.dfg.insts.len();
        self.cx.spans.set_insts(self.id, made, data.at as usize);
        let most = GROWTH.0.saturating_mul(self.body.instructions.len()).saturating_add(GROWTH.1);
        if self.parts.len() > MAX_PARTS || self.b.func.dfg.insts.len() > most {
            return Err(Fault::new("a function has too many or too large values").at(data.at));
        }
        result.map_err(|fault| fault.at(data.at))
    }

    fn translate(&mut self, inst: InstId, instruction: &Instruction, result: Option<ValueId>) -> Result<()> {
        match *instruction {
            Instruction::Phi { .. } => Ok(()),
            Instruction::Negate { .. }
            | Instruction::Binary { .. }
            | Instruction::Cast { .. }
            | Instruction::CompareInt { .. }
            | Instruction::CompareFloat { .. }
            | Instruction::Select { .. }
            | Instruction::Freeze(_) => {
                let parts = self.compute(instruction, result)?;
                self.finish(result, parts)
            }
            Instruction::ExtractElement { .. }
            | Instruction::InsertElement { .. }
            | Instruction::Shuffle { .. }
            | Instruction::ExtractValue { .. }
            | Instruction::InsertValue { .. } => self.take_apart(instruction, result),
            Instruction::Alloca { ty, count, align } => self.alloca(result, ty, count, align),
            Instruction::Load { address, access } => self.load(inst, result, address, access),
            Instruction::Store { value, address, access } => self.store(inst, value, address, access),
            Instruction::ElementPointer { element, operands, flags } => {
                let operands = self.body.operands(operands);
                let value = self.element_pointer(element, operands, flags)?;
                self.finish(result, vec![value])
            }
            Instruction::Rmw { op, address, value, access } => self.rmw(result, op, address, value, access),
            Instruction::CompareExchange { weak, failure, address, expected, new, access } => {
                self.compare_exchange(result, weak, failure, (address, expected, new), access)
            }
            Instruction::Fence { ordering, scope } => self.fence(ordering, scope),
            Instruction::Call(call) => self.call(inst, call, result),
            Instruction::Invoke { call, normal, .. } => {
                self.call(inst, call, result)?;
                self.jump(normal)
            }
            Instruction::VariadicArgument(list) => self.next_argument(list, result),
            _ => self.terminator(inst, instruction),
        }
    }

    /// Defines the result of an instruction.
    pub fn finish(&mut self, result: Option<ValueId>, parts: Vec<Value>) -> Result<()> {
        if let Some(result) = result {
            self.define(result, &parts);
        }
        Ok(())
    }
}
