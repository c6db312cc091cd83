//! The state that every legalization pass shares, and the emission of new instructions.
//!
//! Emission folds constants and identities on the way: expansions are written in general terms and come out short when
//! an operand is known. Decides nothing about legality.

use cranelift_entity::{EntityRef, SecondaryMap};
use ptxc_ir::builder::{Cursor, FunctionBuilder};
use ptxc_ir::{
    Block, ConstData, Extra, Flags, FloatCC, Function, Inst, IntCC, MemAttrs, Module, Opcode, SourceLoc, Type, Value,
    ValueDef,
};
use rustc_hash::FxHashMap;

use super::features::Features;
use super::fold;
use super::helpers::Helpers;
use super::parts::PartMap;
use crate::error::SelectError;
use crate::rules::Pattern;

/// One function being legalized, taken out of its module.
pub(super) struct Context<'m> {
    /// The module, without the function's body.
    pub module: &'m mut Module,
    /// The function.
    pub func: Function,
    /// The target's capabilities.
    pub features: Features,
    /// Functions that expansions call, made on demand.
    pub helpers: &'m mut Helpers,
    /// Where new instructions go.
    pub cursor: Cursor,
    /// The location new instructions get.
    pub loc: SourceLoc,
    /// The instruction that is being rewritten, for errors.
    pub current: Option<Inst>,
    /// The legal values that stand for each illegal one.
    pub parts: PartMap,
    /// What is known of the upper bits of integers: fits unsigned in `.0` bits, signed in `.1` bits (0: not recorded).
    pub widths: SecondaryMap<Value, (u8, u8)>,
    /// Extensions made in the present block: value, width, signed → result.
    pub extensions: FxHashMap<(Value, u32, bool), Value>,
    /// Words that pairs of 16-bit lanes lie in, as seen in the present block: pair → word.
    pub words: FxHashMap<Value, Value>,
    /// What the target cannot do.
    pub errors: Vec<SelectError>,
    /// Expansions, with the instruction that each was of, where somebody wants to know.
    pub expanded: Option<Vec<(Option<Inst>, Pattern)>>,
}

impl<'m> Context<'m> {
    /// A context for a function with a body.
    pub fn new(module: &'m mut Module, func: Function, features: Features, helpers: &'m mut Helpers) -> Context<'m> {
        let entry = func.layout.entry().unwrap_or(Block::new(0));
        Context {
            module,
            func,
            features,
            helpers,
            cursor: Cursor::End(entry),
            loc: SourceLoc::default(),
            current: None,
            parts: PartMap::default(),
            widths: SecondaryMap::new(),
            extensions: FxHashMap::default(),
            words: FxHashMap::default(),
            errors: Vec::new(),
            expanded: None,
        }
    }

    /// Puts the cursor before an instruction that is to be rewritten.
    pub fn rewrite_at(&mut self, inst: Inst) {
        self.cursor = Cursor::Before(inst);
        self.loc = self.func.dfg.locs[inst];
        self.current = Some(inst);
    }

    /// Reports that the current instruction cannot be compiled.
    pub fn error(&mut self, message: impl Into<String>) {
        let error = match self.current {
            Some(inst) => SelectError::at(&self.func, inst, message),
            None => SelectError::item(&self.func.name, message),
        };
        self.errors.push(error);
    }

    /// Tells that the current instruction is expanded in this way, once.
    pub fn note(&mut self, pattern: Pattern) {
        let (Some(expanded), inst) = (&mut self.expanded, self.current) else { return };
        if !expanded.iter().rev().take_while(|row| row.0 == inst).any(|row| row.1 == pattern) {
            expanded.push((inst, pattern));
        }
    }

    /// A builder at the cursor.
    pub fn builder(&mut self) -> FunctionBuilder<'_> {
        let mut builder = FunctionBuilder::new(&mut self.func);
        builder.set_cursor(self.cursor);
        builder.set_loc(self.loc);
        builder
    }

    /// A value's type.
    pub fn ty(&self, value: Value) -> Type {
        self.func.dfg.ty(value)
    }

    /// The current arguments of an instruction, aliases resolved.
    pub fn args(&self, inst: Inst) -> smallvec::SmallVec<[Value; 4]> {
        self.func.dfg.args(inst).iter().map(|v| self.func.dfg.resolve(*v)).collect()
    }

    /// The instruction that defines a value, with its opcode and arguments.
    pub fn def(&self, value: Value) -> Option<(Inst, Opcode)> {
        match self.func.dfg.def(value) {
            ValueDef::Result(inst, 0) => Some((inst, self.func.dfg.insts[inst].op)),
            _ => None,
        }
    }

    /// Makes results of a removed instruction stand for other values of the same types.
    pub fn replace(&mut self, inst: Inst, with: &[Value]) {
        let results: smallvec::SmallVec<[Value; 2]> = self.func.dfg.results(inst).collect();
        for (old, new) in results.into_iter().zip(with) {
            self.func.dfg.alias(old, *new);
        }
        self.func.layout.remove_inst(inst);
    }

    /// Integer constant, sign-extended.
    pub fn imm(&mut self, ty: Type, value: i64) -> Value {
        self.func.dfg.int(ty, value)
    }

    /// Constant of these bits.
    pub fn bits(&mut self, ty: Type, bits: u128) -> Value {
        self.func.dfg.bits(ty, bits)
    }

    /// `i1` constant.
    pub fn bool(&mut self, value: bool) -> Value {
        self.func.dfg.bits(Type::I1, u128::from(value))
    }

    /// A placed instruction whose results follow from the opcode table.
    pub fn inst(&mut self, op: Opcode, flags: Flags, ty: Type, args: &[Value], extra: Extra) -> Inst {
        self.builder().inst(op, flags, ty, args, extra)
    }

    /// The first result of a placed instruction.
    pub fn value(&mut self, op: Opcode, flags: Flags, ty: Type, args: &[Value], extra: Extra) -> Value {
        let inst = self.inst(op, flags, ty, args, extra);
        self.func.dfg.result(inst, 0)
    }

    /// One-operand instruction.
    pub fn un(&mut self, op: Opcode, a: Value) -> Value {
        self.un_flags(op, Flags::EMPTY, a)
    }

    /// One-operand instruction with flags.
    pub fn un_flags(&mut self, op: Opcode, flags: Flags, a: Value) -> Value {
        let ty = self.ty(a);
        self.value(op, flags, ty, &[a], Extra::None)
    }

    /// Two-operand instruction without flags; folds integer constants and identities.
    pub fn bin(&mut self, op: Opcode, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        match fold::binary(&self.func.dfg, op, ty, a, b) {
            Some(fold::Folded::Value(value)) => value,
            Some(fold::Folded::Bits(bits)) => self.bits(ty, bits),
            None => self.value(op, Flags::EMPTY, ty, &[a, b], Extra::None),
        }
    }

    /// Two-operand instruction with flags.
    pub fn bin_flags(&mut self, op: Opcode, flags: Flags, a: Value, b: Value) -> Value {
        if flags.is_empty() && self.ty(a).is_int() {
            return self.bin(op, a, b);
        }
        let ty = self.ty(a);
        self.value(op, flags, ty, &[a, b], Extra::None)
    }

    /// Two-operand instruction with an integer constant on the right.
    pub fn bin_imm(&mut self, op: Opcode, a: Value, imm: i64) -> Value {
        let ty = self.ty(a);
        let b = self.imm(ty, imm);
        self.bin(op, a, b)
    }

    /// Logical negation of an `i1`.
    pub fn not(&mut self, a: Value) -> Value {
        let one = self.bool(true);
        self.bin(Opcode::Xor, a, one)
    }

    /// Three-operand instruction.
    pub fn tern(&mut self, op: Opcode, flags: Flags, a: Value, b: Value, c: Value) -> Value {
        let ty = self.ty(a);
        self.value(op, flags, ty, &[a, b, c], Extra::None)
    }

    /// Integer or pointer comparison.
    pub fn icmp(&mut self, cc: IntCC, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        if let Some(result) = fold::compare(&self.func.dfg, cc, a, b) {
            return self.bool(result);
        }
        self.value(Opcode::Icmp, Flags::EMPTY, ty, &[a, b], Extra::IntCC(cc))
    }

    /// Comparison with a constant.
    pub fn icmp_imm(&mut self, cc: IntCC, a: Value, imm: i64) -> Value {
        let ty = self.ty(a);
        let b = self.imm(ty, imm);
        self.icmp(cc, a, b)
    }

    /// Float comparison.
    pub fn fcmp(&mut self, cc: FloatCC, flags: Flags, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        self.value(Opcode::Fcmp, flags, ty, &[a, b], Extra::FloatCC(cc))
    }

    /// `cond ? a : b`.
    pub fn select(&mut self, cond: Value, a: Value, b: Value) -> Value {
        if a == b {
            return a;
        }
        match self.func.dfg.as_bits(cond) {
            Some(0) => b,
            Some(_) => a,
            None => {
                let ty = self.ty(a);
                self.value(Opcode::Select, Flags::EMPTY, ty, &[cond, a, b], Extra::None)
            }
        }
    }

    /// Conversion without flags; none when the type is the same already. Folds integer constants.
    pub fn conv(&mut self, op: Opcode, a: Value, to: Type) -> Value {
        if self.ty(a) == to {
            return a;
        }
        if let Some(bits) = fold::convert(&self.func.dfg, op, a, to) {
            return self.bits(to, bits);
        }
        // Cut and extended again: a mask, which joins other logic.
        if let (Opcode::Zext, Some((inst, Opcode::Trunc))) = (op, self.def(a))
            && let source = self.args(inst)[0]
            && self.ty(source) == to
            && to == Type::I32
            && self.ty(a).bits() > 1
        {
            let kept = (1i64 << self.ty(a).bits()) - 1;
            return self.bin_imm(Opcode::And, source, kept);
        }
        if op == Opcode::Bitcast
            && let Some((inst, Opcode::Bitcast)) = self.def(a)
        {
            let source = self.args(inst)[0];
            return self.conv(op, source, to);
        }
        self.value(op, Flags::EMPTY, to, &[a], Extra::None)
    }

    /// Conversion with flags.
    pub fn conv_flags(&mut self, op: Opcode, flags: Flags, a: Value, to: Type) -> Value {
        self.value(op, flags, to, &[a], Extra::None)
    }

    /// Reinterpretation of the bits.
    pub fn bitcast(&mut self, a: Value, to: Type) -> Value {
        self.conv(Opcode::Bitcast, a, to)
    }

    /// Zero extension, truncation or nothing, to another legal integer type.
    pub fn resize(&mut self, a: Value, to: Type) -> Value {
        let op = if self.ty(a).bits() > to.bits() { Opcode::Trunc } else { Opcode::Zext };
        self.conv(op, a, to)
    }

    /// A lane of a vector in registers; the lane itself where the vector was just built.
    pub fn extract(&mut self, vector: Value, index: u32) -> Value {
        let ty = self.ty(vector);
        match self.func.dfg.as_const(vector) {
            Some(ConstData::Vector(lanes)) => return lanes[index as usize],
            Some(ConstData::Poison) => return self.func.dfg.poison(ty.scalar()),
            _ => {}
        }
        if let Some((inst, Opcode::Vector)) = self.def(vector) {
            return self.args(inst)[index as usize];
        }
        self.builder().extract(vector, index)
    }

    /// A vector of these lanes; the vector itself where the lanes were just taken from one.
    pub fn vector(&mut self, ty: Type, lanes: &[Value]) -> Value {
        if let Some(whole) = self.whole_vector(ty, lanes) {
            return whole;
        }
        if lanes.iter().all(|lane| self.func.dfg.as_const(*lane).is_some()) {
            let lanes: Vec<Value> = lanes.iter().map(|lane| self.func.dfg.resolve(*lane)).collect();
            return self.func.dfg.constant(ty, ConstData::Vector(lanes));
        }
        self.builder().vector(ty, lanes)
    }

    fn whole_vector(&self, ty: Type, lanes: &[Value]) -> Option<Value> {
        let mut source = None;
        for (index, lane) in lanes.iter().enumerate() {
            let (inst, Opcode::Extract) = self.def(*lane)? else { return None };
            let args = self.args(inst);
            let same = *source.get_or_insert(args[0]) == args[0];
            if !same || self.func.dfg.as_bits(args[1]) != Some(index as u128) {
                return None;
            }
        }
        source.filter(|v| self.ty(*v) == ty)
    }

    /// A pointer some bytes further; offsets of chains add up.
    pub fn offset(&mut self, ptr: Value, bytes: i64) -> Value {
        self.builder().byte_offset(ptr, bytes)
    }

    /// Load; attributes are taken as they are. `policy` is the cache policy operand.
    pub fn load(&mut self, ty: Type, ptr: Value, policy: Option<Value>, attrs: MemAttrs) -> Value {
        let args: smallvec::SmallVec<[Value; 2]> = std::iter::once(ptr).chain(policy).collect();
        self.value(Opcode::Load, Flags::EMPTY, ty, &args, Extra::Mem(attrs))
    }

    /// Store.
    pub fn store(&mut self, value: Value, ptr: Value, policy: Option<Value>, attrs: MemAttrs) {
        let ty = self.ty(value);
        let args: smallvec::SmallVec<[Value; 3]> = [value, ptr].into_iter().chain(policy).collect();
        self.inst(Opcode::Store, Flags::EMPTY, ty, &args, Extra::Mem(attrs));
    }
}
