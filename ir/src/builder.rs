//! Building instructions at a position.
//!
//! [`FunctionBuilder`] appends to blocks or inserts before an instruction; passes and frontends use the same one. It
//! derives result types from the opcode table ([`result_types`]) and does not check operands: that is the verifier's job.

use smallvec::{SmallVec, smallvec};

use crate::dfg::{ConstData, SourceLoc};
use crate::entities::{Block, FuncId, GlobalId, Inst, SigId, Value};
use crate::flags::Flags;
use crate::instruction::{BlockCall, Extra, InstData, MemAttrs, SwitchData, TargetOp, ValueList};
use crate::module::Function;
use crate::opcode::{AtomicOp, FloatCC, IntCC, Opcode, Ordering, Scope, Shape};
use crate::types::{MemType, Space, Type};

/// Where the next instruction goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cursor {
    /// At the end of a block.
    End(Block),
    /// Right before an instruction.
    Before(Inst),
}

/// Result types of the shapes whose results follow from the controlling type and the first argument's type.
/// `None` for shapes whose results come from elsewhere: calls, `sreg`, target operations, inline assembly, `shuffle`
/// (mask length) and the optional predicate of shuffles.
pub fn result_types(op: Opcode, ty: Type, first_arg: Option<Type>) -> Option<SmallVec<[Type; 2]>> {
    Some(match op.shape() {
        Shape::Unary
        | Shape::Binary
        | Shape::Ternary
        | Shape::Convert
        | Shape::ConvertRandom
        | Shape::Select
        | Shape::BuildVector
        | Shape::Insert
        | Shape::Splat
        | Shape::Load
        | Shape::AtomicRmw
        | Shape::Redux => smallvec![ty],
        Shape::BinaryOverflow => smallvec![ty, ty.as_bool()],
        Shape::FloatClass | Shape::IntCompare | Shape::FloatCompare => smallvec![ty.as_bool()],
        Shape::Extract | Shape::Reduce => smallvec![ty.scalar()],
        Shape::Cmpxchg => smallvec![ty, Type::I1],
        Shape::Gep => smallvec![first_arg?],
        Shape::Alloca => smallvec![Type::ptr(Space::Local)],
        Shape::IsSpace | Shape::Vote => smallvec![Type::I1],
        Shape::Ballot | Shape::MatchAny | Shape::ActiveMask => smallvec![Type::I32],
        Shape::MatchAll | Shape::Elect => smallvec![Type::I32, Type::I1],
        Shape::BarrierReduce => smallvec![if op == Opcode::BarrierRedPopc { Type::I32 } else { Type::I1 }],
        Shape::Store
        | Shape::Fence
        | Shape::MemCopy
        | Shape::MemSet
        | Shape::Jump
        | Shape::Branch
        | Shape::Switch
        | Shape::Return
        | Shape::Nullary
        | Shape::Predicate
        | Shape::BarrierSync
        | Shape::WarpMask => SmallVec::new(),
        Shape::Shuffle
        | Shape::Call
        | Shape::CallIndirect
        | Shape::Sreg
        | Shape::Shuffle4
        | Shape::Target
        | Shape::Asm => return None,
    })
}

/// Builds instructions of one function.
pub struct FunctionBuilder<'f> {
    /// The function.
    pub func: &'f mut Function,
    cursor: Option<Cursor>,
    loc: SourceLoc,
}

impl<'f> FunctionBuilder<'f> {
    /// A builder without a position; instructions made now are not placed.
    pub fn new(func: &'f mut Function) -> FunctionBuilder<'f> {
        FunctionBuilder { func, cursor: None, loc: SourceLoc::default() }
    }

    /// A builder that inserts before `inst` and gives new instructions its source location.
    pub fn before(func: &'f mut Function, inst: Inst) -> FunctionBuilder<'f> {
        let loc = func.dfg.locs[inst];
        FunctionBuilder { func, cursor: Some(Cursor::Before(inst)), loc }
    }

    /// Moves to a position.
    pub fn set_cursor(&mut self, cursor: Cursor) {
        self.cursor = Some(cursor);
    }

    /// The present position.
    pub fn cursor(&self) -> Option<Cursor> {
        self.cursor
    }

    /// Moves to the end of a block.
    pub fn switch_to(&mut self, block: Block) {
        self.cursor = Some(Cursor::End(block));
    }

    /// Sets the source location of the instructions that follow.
    pub fn set_loc(&mut self, loc: SourceLoc) {
        self.loc = loc;
    }

    /// Makes a block and places it last.
    pub fn append_block(&mut self) -> Block {
        let block = self.func.dfg.make_block();
        self.func.layout.append_block(block);
        block
    }

    /// Makes a block and places it right after `after`.
    pub fn block_after(&mut self, after: Block) -> Block {
        let block = self.func.dfg.make_block();
        self.func.layout.insert_block_after(block, after);
        block
    }

    /// Makes the entry block with one parameter per leaf type (see [`crate::Module::sig_params`]).
    pub fn entry_block(&mut self, params: &[Type]) -> Block {
        let block = self.append_block();
        for ty in params {
            self.func.dfg.append_block_param(block, *ty);
        }
        block
    }

    /// Adds a parameter to a block.
    pub fn block_param(&mut self, block: Block, ty: Type) -> Value {
        self.func.dfg.append_block_param(block, ty)
    }

    /// A value's type.
    pub fn ty(&self, value: Value) -> Type {
        self.func.dfg.ty(value)
    }

    /// Makes and places an instruction with given result types.
    pub fn inst_with_results(
        &mut self,
        op: Opcode,
        flags: Flags,
        ty: Type,
        args: &[Value],
        extra: Extra,
        results: &[Type],
    ) -> Inst {
        let dfg = &mut self.func.dfg;
        let args = ValueList::from_slice(args, &mut dfg.pool);
        let inst = dfg.make_inst(InstData { op, flags, ty, args, extra });
        if !results.is_empty() {
            dfg.make_results(inst, results);
        }
        if self.loc.line != 0 {
            dfg.locs[inst] = self.loc;
        }
        match self.cursor {
            Some(Cursor::End(block)) => self.func.layout.append_inst(inst, block),
            Some(Cursor::Before(before)) => self.func.layout.insert_inst_before(inst, before),
            None => {}
        }
        inst
    }

    /// Makes and places an instruction; result types follow from the table. Shapes for which [`result_types`] has no
    /// answer get no results: use [`FunctionBuilder::inst_with_results`] for those.
    pub fn inst(&mut self, op: Opcode, flags: Flags, ty: Type, args: &[Value], extra: Extra) -> Inst {
        let first = args.first().map(|v| self.ty(*v));
        let results = result_types(op, ty, first).unwrap_or_default();
        self.inst_with_results(op, flags, ty, args, extra, &results)
    }

    fn value(&mut self, op: Opcode, flags: Flags, ty: Type, args: &[Value], extra: Extra) -> Value {
        let inst = self.inst(op, flags, ty, args, extra);
        self.func.dfg.result(inst, 0)
    }

    /// Integer, float-bits or null constant (a splat for vector types).
    pub fn bits(&mut self, ty: Type, bits: u128) -> Value {
        self.func.dfg.bits(ty, bits)
    }

    /// Signed integer constant (a splat for vector types).
    pub fn iconst(&mut self, ty: Type, value: i64) -> Value {
        self.func.dfg.int(ty, value)
    }

    /// `i1` constant.
    pub fn bool(&mut self, value: bool) -> Value {
        self.func.dfg.bits(Type::I1, u128::from(value))
    }

    /// f32 constant.
    pub fn f32(&mut self, value: f32) -> Value {
        self.func.dfg.bits(Type::F32, u128::from(value.to_bits()))
    }

    /// f64 constant.
    pub fn f64(&mut self, value: f64) -> Value {
        self.func.dfg.bits(Type::F64, u128::from(value.to_bits()))
    }

    /// Address of a global plus bytes; `ty` is the pointer type ([`crate::Module::global_ptr`]).
    pub fn global(&mut self, global: GlobalId, offset: i64, ty: Type) -> Value {
        self.func.dfg.constant(ty, ConstData::Global(global, offset))
    }

    /// One-operand instruction of the operand's type.
    pub fn unary(&mut self, op: Opcode, a: Value) -> Value {
        let ty = self.ty(a);
        self.value(op, Flags::EMPTY, ty, &[a], Extra::None)
    }

    /// One-operand instruction with flags.
    pub fn unary_flags(&mut self, op: Opcode, flags: Flags, a: Value) -> Value {
        let ty = self.ty(a);
        self.value(op, flags, ty, &[a], Extra::None)
    }

    /// Two-operand instruction of the operands' type.
    pub fn binary(&mut self, op: Opcode, a: Value, b: Value) -> Value {
        self.binary_flags(op, Flags::EMPTY, a, b)
    }

    /// Two-operand instruction with flags.
    pub fn binary_flags(&mut self, op: Opcode, flags: Flags, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        self.value(op, flags, ty, &[a, b], Extra::None)
    }

    /// Two-operand instruction with an integer constant on the right.
    pub fn binary_imm(&mut self, op: Opcode, a: Value, imm: i64) -> Value {
        let ty = self.ty(a);
        let b = self.iconst(ty, imm);
        self.binary(op, a, b)
    }

    /// `uadd_overflow` and the like: result and overflow.
    pub fn overflow(&mut self, op: Opcode, a: Value, b: Value) -> (Value, Value) {
        let ty = self.ty(a);
        let inst = self.inst(op, Flags::EMPTY, ty, &[a, b], Extra::None);
        (self.func.dfg.result(inst, 0), self.func.dfg.result(inst, 1))
    }

    /// Three-operand instruction of the operands' type.
    pub fn ternary(&mut self, op: Opcode, flags: Flags, a: Value, b: Value, c: Value) -> Value {
        let ty = self.ty(a);
        self.value(op, flags, ty, &[a, b, c], Extra::None)
    }

    /// Conversion to `to`.
    pub fn convert(&mut self, op: Opcode, a: Value, to: Type) -> Value {
        self.convert_flags(op, Flags::EMPTY, a, to)
    }

    /// Conversion with flags.
    pub fn convert_flags(&mut self, op: Opcode, flags: Flags, a: Value, to: Type) -> Value {
        self.value(op, flags, to, &[a], Extra::None)
    }

    /// Integer or pointer comparison.
    pub fn icmp(&mut self, cc: IntCC, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        self.value(Opcode::Icmp, Flags::EMPTY, ty, &[a, b], Extra::IntCC(cc))
    }

    /// Integer comparison with a constant.
    pub fn icmp_imm(&mut self, cc: IntCC, a: Value, imm: i64) -> Value {
        let ty = self.ty(a);
        let b = self.iconst(ty, imm);
        self.icmp(cc, a, b)
    }

    /// Float comparison.
    pub fn fcmp(&mut self, cc: FloatCC, flags: Flags, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        self.value(Opcode::Fcmp, flags, ty, &[a, b], Extra::FloatCC(cc))
    }

    /// `cond ? a : b`.
    pub fn select(&mut self, cond: Value, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        self.value(Opcode::Select, Flags::EMPTY, ty, &[cond, a, b], Extra::None)
    }

    /// Vector from its lanes.
    pub fn vector(&mut self, ty: Type, lanes: &[Value]) -> Value {
        self.value(Opcode::Vector, Flags::EMPTY, ty, lanes, Extra::None)
    }

    /// Lane `index` of a vector.
    pub fn extract(&mut self, vector: Value, index: u32) -> Value {
        let ty = self.ty(vector);
        let index = self.iconst(Type::I32, i64::from(index));
        self.value(Opcode::Extract, Flags::EMPTY, ty, &[vector, index], Extra::None)
    }

    /// Load.
    pub fn load(&mut self, ty: Type, ptr: Value, attrs: MemAttrs) -> Value {
        self.value(Opcode::Load, Flags::EMPTY, ty, &[ptr], Extra::Mem(attrs))
    }

    /// Store.
    pub fn store(&mut self, value: Value, ptr: Value, attrs: MemAttrs) -> Inst {
        let ty = self.ty(value);
        self.inst(Opcode::Store, Flags::EMPTY, ty, &[value, ptr], Extra::Mem(attrs))
    }

    /// Atomic read-modify-write; gives the old value.
    pub fn atomic_rmw(&mut self, op: AtomicOp, ptr: Value, value: Value, attrs: MemAttrs) -> Value {
        let ty = self.ty(value);
        self.value(Opcode::AtomicRmw, Flags::EMPTY, ty, &[ptr, value], Extra::Rmw(op, attrs))
    }

    /// Compare and exchange; gives the old value and success.
    pub fn cmpxchg(
        &mut self,
        ptr: Value,
        expected: Value,
        new: Value,
        attrs: MemAttrs,
        failure: Ordering,
    ) -> (Value, Value) {
        let ty = self.ty(expected);
        let extra = Extra::Cmpxchg(attrs, failure);
        let inst = self.inst(Opcode::Cmpxchg, Flags::EMPTY, ty, &[ptr, expected, new], extra);
        (self.func.dfg.result(inst, 0), self.func.dfg.result(inst, 1))
    }

    /// Fence.
    pub fn fence(&mut self, order: Ordering, scope: Scope) -> Inst {
        self.inst(Opcode::Fence, Flags::EMPTY, Type::INVALID, &[], Extra::Fence(order, scope))
    }

    /// Address arithmetic over `ty`.
    pub fn gep(&mut self, ty: MemType, base: Value, indices: &[Value]) -> Value {
        let mut args: SmallVec<[Value; 4]> = smallvec![base];
        args.extend_from_slice(indices);
        self.value(Opcode::Gep, Flags::EMPTY, Type::INVALID, &args, Extra::Gep(ty))
    }

    /// `base` plus a constant number of bytes.
    pub fn byte_offset(&mut self, base: Value, bytes: i64) -> Value {
        if bytes == 0 {
            return base;
        }
        let offset = self.iconst(Type::I64, bytes);
        self.gep(MemType::Value(Type::I8), base, &[offset])
    }

    /// Stack object; place it in the entry block.
    pub fn alloca(&mut self, ty: MemType, count: u32, align: u32) -> Value {
        self.value(Opcode::Alloca, Flags::EMPTY, Type::INVALID, &[], Extra::Alloca { ty, count, align })
    }

    /// Unconditional branch.
    pub fn jump(&mut self, block: Block, args: &[Value]) -> Inst {
        let target = self.func.dfg.block_call(block, args);
        self.inst(Opcode::Jump, Flags::EMPTY, Type::INVALID, &[], Extra::Jump(target))
    }

    /// Conditional branch.
    pub fn br(&mut self, cond: Value, then: (Block, &[Value]), other: (Block, &[Value])) -> Inst {
        let then = self.func.dfg.block_call(then.0, then.1);
        let other = self.func.dfg.block_call(other.0, other.1);
        let extra = Extra::Branch { then, other, weights: (0, 0) };
        self.inst(Opcode::Br, Flags::EMPTY, Type::INVALID, &[cond], extra)
    }

    /// Multi-way branch.
    pub fn switch(&mut self, value: Value, default: BlockCall, cases: Vec<(u128, BlockCall)>) -> Inst {
        let ty = self.ty(value);
        let id = self.func.dfg.switches.push(SwitchData { default, cases });
        self.inst(Opcode::Switch, Flags::EMPTY, ty, &[value], Extra::Switch(id))
    }

    /// Return.
    pub fn ret(&mut self, values: &[Value]) -> Inst {
        self.inst(Opcode::Ret, Flags::EMPTY, Type::INVALID, values, Extra::None)
    }

    /// Direct call; `results` are the callee's ([`crate::Module::sig_results`]).
    pub fn call(&mut self, callee: FuncId, args: &[Value], results: &[Type]) -> Inst {
        self.inst_with_results(Opcode::Call, Flags::EMPTY, Type::INVALID, args, Extra::Call(callee), results)
    }

    /// Indirect call through `callee` with this signature.
    pub fn call_indirect(&mut self, sig: SigId, callee: Value, args: &[Value], results: &[Type]) -> Inst {
        let mut all: SmallVec<[Value; 8]> = smallvec![callee];
        all.extend_from_slice(args);
        let extra = Extra::CallIndirect(sig);
        self.inst_with_results(Opcode::CallIndirect, Flags::EMPTY, Type::INVALID, &all, extra, results)
    }

    /// Special register; `ty` is the register's type (see the table in `ptxc-targets`).
    pub fn sreg(&mut self, reg: ptxc_targets::SpecialReg, ty: Type) -> Value {
        let inst = self.inst_with_results(Opcode::Sreg, Flags::EMPTY, Type::INVALID, &[], Extra::Sreg(reg), &[ty]);
        self.func.dfg.result(inst, 0)
    }

    /// Target operation or inline assembly with given result types.
    pub fn target(&mut self, op: TargetOp, args: &[Value], results: &[Type]) -> Inst {
        let opcode = if matches!(op, TargetOp::Known { .. }) { Opcode::Target } else { Opcode::Asm };
        let id = self.func.dfg.target_ops.push(op);
        self.inst_with_results(opcode, Flags::EMPTY, Type::INVALID, args, Extra::Target(id), results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::{FuncKind, Signature};

    #[test]
    fn inserts_in_order_and_types_results() {
        let mut func = Function::new("f", FuncKind::Func, Signature::default());
        let mut b = FunctionBuilder::new(&mut func);
        let entry = b.entry_block(&[Type::I32, Type::I32]);
        b.switch_to(entry);
        let (x, y) = (b.func.dfg.block_params(entry)[0], b.func.dfg.block_params(entry)[1]);
        let sum = b.binary(Opcode::Add, x, y);
        let ret = b.ret(&[]);
        b.set_cursor(Cursor::Before(ret));
        let less = b.icmp(IntCC::Ult, sum, x);
        assert_eq!(b.ty(less), Type::I1);
        let (_, carry) = b.overflow(Opcode::UaddOverflow, sum, y);
        assert_eq!(b.ty(carry), Type::I1);
        let ops: Vec<Opcode> = func.layout.insts(entry).map(|i| func.dfg.insts[i].op).collect();
        assert_eq!(ops, [Opcode::Add, Opcode::Icmp, Opcode::UaddOverflow, Opcode::Ret]);
        assert_eq!(func.layout.last_inst(entry), Some(ret));
    }
}
