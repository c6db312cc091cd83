//! Puts one body in place of one call.
//!
//! The block of the call is split after it; the rest becomes a block whose parameters are the results. The callee's
//! entry block goes on where the call stood, its other blocks stand between the two, and each `ret` jumps to the rest.
//! A body of a single block needs no split. Stack objects go to the caller's entry block. Every instruction keeps its
//! location, its convergence and the flags it had.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{
    Block, BlockCall, ConstData, Cursor, Extra, Flags, Function, FunctionBuilder, Inst, InstData, MemType, Module,
    Opcode, Scalar, Space, SwitchData, Type, Value, ValueDef, ValueList,
};
use smallvec::SmallVec;

use super::first_leaves;

/// Does it, unless the callee's parameters cannot be given from outside of a call.
pub fn splice(module: &Module, caller: &mut Function, call: Inst, callee: &Function) -> bool {
    let Some(entry) = callee.layout.entry() else { return false };
    let Some(here) = caller.layout.inst_block(call) else { return false };
    let params = callee.dfg.block_params(entry);
    let given: SmallVec<[Value; 8]> = caller.dfg.args(call).iter().map(|value| caller.dfg.resolve(*value)).collect();
    if given.len() != params.len() {
        return false;
    }
    let params: SmallVec<[Value; 8]> = SmallVec::from_slice(params);
    let given = copy_byval(module, caller, call, callee, given);
    let mut copy = Copy { callee, values: vec![None; callee.dfg.num_values()], blocks: SecondaryMap::new() };
    for (param, value) in params.iter().zip(given) {
        copy.values[param.as_u32() as usize] = Some(value);
    }
    if callee.layout.next_block(entry).is_none() && ends_with_return(callee, entry) {
        copy.single_block(caller, call, entry);
    } else {
        copy.all_blocks(caller, call, here, entry);
    }
    true
}

fn ends_with_return(func: &Function, block: Block) -> bool {
    func.layout.last_inst(block).is_some_and(|last| func.dfg.insts[last].op == Opcode::Ret)
}

/// The arguments, where those that are objects passed by value are replaced by copies, which the callee may change.
fn copy_byval(
    module: &Module,
    caller: &mut Function,
    call: Inst,
    callee: &Function,
    mut given: SmallVec<[Value; 8]>,
) -> SmallVec<[Value; 8]> {
    if callee.sig.params.iter().all(|param| param.attrs.byval.is_none()) {
        return given;
    }
    for (param, first) in callee.sig.params.iter().zip(first_leaves(module, callee)) {
        let (Some(ty), Some(value)) = (param.attrs.byval, given.get_mut(first)) else { continue };
        let layout = module.layout_of(ty);
        let align = layout.align.max(u64::from(param.attrs.align)).clamp(1, 1 << 16) as u32;
        let object = stack_object(caller, ty, layout.size, align);
        let source = *value;
        let wanted = caller.dfg.ty(source);
        let mut b = FunctionBuilder::before(caller, call);
        let size = b.iconst(Type::I64, i64::try_from(layout.size).unwrap_or(i64::MAX));
        let source_align = layout.align.max(u64::from(param.attrs.align)).min(1 << 16) as u32;
        let extra = Extra::Copy { dst_align: align, src_align: source_align, volatile: false };
        b.inst(Opcode::Memcpy, Flags::EMPTY, Type::INVALID, &[object, source, size], extra);
        *value = match b.ty(object) == wanted {
            true => object,
            false => b.convert(Opcode::Addrspacecast, object, wanted),
        };
    }
    given
}

/// A new stack object of the caller. Addresses of tensor memory are no type of objects: those are so many bytes.
fn stack_object(caller: &mut Function, ty: MemType, size: u64, align: u32) -> Value {
    let bytes = u32::try_from(size).unwrap_or(u32::MAX).max(1);
    let (ty, count) = match ty {
        MemType::Value(value) if matches!(value.kind(), Some(Scalar::Ptr(Space::Tensor))) => (Type::I8.into(), bytes),
        other => (other, 1),
    };
    let mut b = FunctionBuilder::new(caller);
    if let Some(first) = b.func.layout.entry().and_then(|entry| b.func.layout.first_inst(entry)) {
        b.set_cursor(Cursor::Before(first));
    }
    b.alloca(ty, count, align)
}

/// A copy of a body in the making.
struct Copy<'c> {
    callee: &'c Function,
    /// By value of the callee.
    values: Vec<Option<Value>>,
    /// By block of the callee.
    blocks: SecondaryMap<Block, Option<Block>>,
}

impl Copy<'_> {
    /// A body of one block: its instructions go before the call.
    fn single_block(&mut self, caller: &mut Function, call: Inst, entry: Block) {
        let mut made: Vec<(Inst, Inst)> = Vec::new();
        let mut returned: SmallVec<[Value; 4]> = SmallVec::new();
        for old in self.callee.layout.insts(entry) {
            if self.callee.dfg.insts[old].op == Opcode::Ret {
                returned = SmallVec::from_slice(self.callee.dfg.args(old));
                continue;
            }
            let new = self.shell(caller, old);
            place(caller, new, Cursor::Before(call));
            made.push((old, new));
        }
        self.fill(caller, &made, None);
        let results: SmallVec<[Value; 4]> = caller.dfg.results(call).collect();
        for (result, value) in results.into_iter().zip(returned) {
            let value = self.value(caller, value);
            caller.dfg.alias(result, value);
        }
        caller.layout.remove_inst(call);
    }

    /// A body of several blocks, or one that does not return.
    fn all_blocks(&mut self, caller: &mut Function, call: Inst, here: Block, entry: Block) {
        let rest = caller.dfg.make_block();
        caller.layout.insert_block_after(rest, here);
        let results: SmallVec<[Value; 4]> = caller.dfg.results(call).collect();
        if let Some(next) = caller.layout.next_inst(call) {
            caller.layout.split_off(next, rest);
        }
        for result in results {
            let ty = caller.dfg.ty(result);
            let param = caller.dfg.append_block_param(rest, ty);
            caller.dfg.alias(result, param);
        }
        caller.layout.remove_inst(call);
        self.blocks[entry] = Some(here);
        let mut last = here;
        for block in self.callee.layout.blocks().skip(1) {
            let new = caller.dfg.make_block();
            caller.layout.insert_block_after(new, last);
            last = new;
            caller.dfg.blocks[new].hints = self.callee.dfg.blocks[block].hints;
            for param in self.callee.dfg.block_params(block) {
                let value = caller.dfg.append_block_param(new, self.callee.dfg.ty(*param));
                self.values[param.as_u32() as usize] = Some(value);
            }
            self.blocks[block] = Some(new);
        }
        let mut made: Vec<(Inst, Inst)> = Vec::new();
        for block in self.callee.layout.blocks() {
            let Some(into) = self.blocks[block] else { continue };
            for old in self.callee.layout.insts(block) {
                let new = self.shell(caller, old);
                place(caller, new, Cursor::End(into));
                made.push((old, new));
            }
        }
        self.fill(caller, &made, Some(rest));
    }

    /// An instruction with its results and without operands.
    fn shell(&mut self, caller: &mut Function, old: Inst) -> Inst {
        let data = &self.callee.dfg.insts[old];
        let InstData { op, flags, ty, extra, .. } = *data;
        let new = caller.dfg.make_inst(InstData { op, flags, ty, args: ValueList::new(), extra });
        let types: SmallVec<[Type; 4]> =
            self.callee.dfg.results(old).map(|result| self.callee.dfg.ty(result)).collect();
        if !types.is_empty() {
            caller.dfg.make_results(new, &types);
            for (from, to) in self.callee.dfg.results(old).zip(caller.dfg.results(new)) {
                self.values[from.as_u32() as usize] = Some(to);
            }
        }
        let loc = self.callee.dfg.locs[old];
        if loc.line != 0 {
            caller.dfg.locs[new] = loc;
        }
        new
    }

    /// Gives the copies their operands. Returns go to the block `rest`.
    fn fill(&mut self, caller: &mut Function, made: &[(Inst, Inst)], rest: Option<Block>) {
        for (old, new) in made {
            let args: SmallVec<[Value; 8]> = SmallVec::from_slice(self.callee.dfg.args(*old));
            let args: SmallVec<[Value; 8]> = args.into_iter().map(|value| self.value(caller, value)).collect();
            if let (Opcode::Ret, Some(rest)) = (self.callee.dfg.insts[*old].op, rest) {
                let target = caller.dfg.block_call(rest, &args);
                let data = &mut caller.dfg.insts[*new];
                data.op = Opcode::Jump;
                data.extra = Extra::Jump(target);
                continue;
            }
            let extra = self.extra(caller, self.callee.dfg.insts[*old].extra);
            let args = caller.dfg.list(&args);
            let data = &mut caller.dfg.insts[*new];
            data.args = args;
            data.extra = extra;
        }
    }

    /// The caller's value for one of the callee's.
    fn value(&mut self, caller: &mut Function, value: Value) -> Value {
        let value = self.callee.dfg.resolve(value);
        if let Some(known) = self.values[value.as_u32() as usize] {
            return known;
        }
        let ty = self.callee.dfg.ty(value);
        let made = match (self.callee.dfg.def(value), self.callee.dfg.as_const(value)) {
            (ValueDef::Const(_), Some(ConstData::Vector(lanes))) => {
                // Lanes are scalar constants.
                let lanes = lanes.iter().map(|lane| self.scalar_constant(caller, *lane)).collect();
                caller.dfg.constant(ty, ConstData::Vector(lanes))
            }
            (ValueDef::Const(_), Some(data)) => caller.dfg.constant(ty, data.clone()),
            // Only code that is never reached uses what is not defined before.
            _ => caller.dfg.poison(ty),
        };
        self.values[value.as_u32() as usize] = Some(made);
        made
    }

    fn scalar_constant(&self, caller: &mut Function, lane: Value) -> Value {
        let ty = self.callee.dfg.ty(lane);
        match self.callee.dfg.as_const(lane) {
            Some(data) => caller.dfg.constant(ty, data.clone()),
            None => caller.dfg.poison(ty),
        }
    }

    fn target(&mut self, caller: &mut Function, target: BlockCall) -> BlockCall {
        let args: SmallVec<[Value; 8]> = target.args.as_slice(&self.callee.dfg.pool).iter().copied().collect();
        let args: SmallVec<[Value; 8]> = args.into_iter().map(|value| self.value(caller, value)).collect();
        // Every placed block of the callee has its copy.
        let block = self.blocks[target.block].unwrap_or(target.block);
        caller.dfg.block_call(block, &args)
    }

    /// What an instruction carries, in terms of the caller's tables.
    fn extra(&mut self, caller: &mut Function, extra: Extra) -> Extra {
        let tables = &self.callee.dfg;
        match extra {
            Extra::Jump(target) => Extra::Jump(self.target(caller, target)),
            Extra::Branch { then, other, weights } => {
                let (then, other) = (self.target(caller, then), self.target(caller, other));
                Extra::Branch { then, other, weights }
            }
            Extra::Switch(id) => {
                let SwitchData { default, cases } = tables.switches[id].clone();
                let default = self.target(caller, default);
                let cases = cases.into_iter().map(|(number, target)| (number, self.target(caller, target))).collect();
                Extra::Switch(caller.dfg.switches.push(SwitchData { default, cases }))
            }
            Extra::Mask(id) => Extra::Mask(caller.dfg.masks.push(tables.masks[id].clone())),
            Extra::CallIndirect(id) => Extra::CallIndirect(caller.dfg.signatures.push(tables.signatures[id].clone())),
            Extra::Target(id) => Extra::Target(caller.dfg.target_ops.push(tables.target_ops[id].clone())),
            other => other,
        }
    }
}

/// Places an instruction; stack objects go to the entry block.
fn place(caller: &mut Function, inst: Inst, cursor: Cursor) {
    let first = caller.layout.entry().and_then(|entry| caller.layout.first_inst(entry));
    match (caller.dfg.insts[inst].op, first, cursor) {
        (Opcode::Alloca, Some(first), _) => caller.layout.insert_inst_before(inst, first),
        (_, _, Cursor::Before(before)) => caller.layout.insert_inst_before(inst, before),
        (_, _, Cursor::End(block)) => caller.layout.append_inst(inst, block),
    }
}
