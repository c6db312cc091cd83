//! Where values meet what is fixed from outside: signatures, calls, returns, target operations.
//!
//! Signatures keep their size and layout in memory; only types that no register holds are respelled: `iN` as the
//! integer that fills its storage, `<n x i1>` as the integer or the bytes that hold its bits. Values of such types, and
//! of `i8` and `i128`, pass in the type of the signature and are converted right there.

use ptxc_ir::{AggDef, Block, ConstData, Extra, Inst, MemType, Module, Opcode, Scalar, Signature, Type, Value};
use smallvec::SmallVec;

use super::bits::BitString;
use super::context::Context;
use super::parts::{Lanes, Parts, Repr, repr};

/// The type in which a value of this type is passed.
pub(super) fn boundary_type(ty: Type) -> Type {
    match ty.kind() {
        Some(Scalar::Int(1)) if ty.is_vector() => {
            let bytes = ty.size() as u32;
            if bytes.is_power_of_two() && bytes <= 16 { Type::int(bytes * 8) } else { Type::I8.with_lanes(bytes) }
        }
        Some(Scalar::Int(bits)) if bits != 1 => ty.with_scalar(Type::int(Type::int(bits).size() as u32 * 8)),
        _ => ty,
    }
}

/// The memory type with every leaf respelled; `None` when nothing changes. The depth of aggregates is bounded.
fn boundary_mem_type(module: &mut Module, ty: MemType) -> Option<MemType> {
    match ty {
        MemType::Value(value) => {
            let to = boundary_type(value);
            (to != value).then_some(MemType::Value(to))
        }
        MemType::Agg(id) => {
            let def = match module.agg(id).def.clone() {
                AggDef::Array { elem, len } => AggDef::Array { elem: boundary_mem_type(module, elem)?, len },
                AggDef::Struct { fields, packed } => {
                    let new: Vec<Option<MemType>> = fields.iter().map(|f| boundary_mem_type(module, *f)).collect();
                    if new.iter().all(Option::is_none) {
                        return None;
                    }
                    let fields = new.into_iter().zip(fields).map(|(new, old)| new.unwrap_or(old)).collect();
                    AggDef::Struct { fields, packed }
                }
            };
            module.aggregate(def).map(MemType::Agg)
        }
    }
}

/// Respells a signature.
pub(super) fn legalize_signature(module: &mut Module, sig: &mut Signature) {
    for param in &mut sig.params {
        if let Some(ty) = boundary_mem_type(module, param.ty) {
            param.ty = ty;
        }
    }
    if let Some(ty) = sig.ret.and_then(|ty| boundary_mem_type(module, ty)) {
        sig.ret = Some(ty);
    }
}

impl Context<'_> {
    /// Gives the function's parameters the types of its signature and takes them apart.
    pub fn import_params(&mut self, entry: Block) {
        let old: SmallVec<[Value; 8]> = SmallVec::from_slice(self.func.dfg.block_params(entry));
        if old.iter().all(|v| self.features.legal_value(self.ty(*v))) {
            return;
        }
        let mut params: Vec<Value> = Vec::new();
        for value in old {
            let ty = self.ty(value);
            if self.features.legal_value(ty) {
                params.push(value);
                continue;
            }
            let to = boundary_type(ty);
            let param = if to == ty { value } else { self.func.dfg.append_block_param(entry, to) };
            params.push(param);
            let parts = self.import(param, ty);
            self.parts.set(value, &parts);
        }
        self.set_block_params(entry, &params);
    }

    /// The parts of a value of type `ty` that arrives in its boundary type.
    pub fn import(&mut self, value: Value, ty: Type) -> Parts {
        let scalar = ty.scalar();
        let arrives = self.ty(value);
        if ty.is_vector() && scalar == Type::I1 {
            let mut string = BitString::default();
            if arrives.is_vector() {
                for index in 0..arrives.lanes() {
                    let byte = self.extract(value, index);
                    self.push_boundary(&mut string, byte);
                }
            } else {
                self.push_boundary(&mut string, value);
            }
            return self.parts_from_bits(&mut string, ty);
        }
        if ty.is_vector() && self.features.paired(scalar) && scalar.bits() == 16 && ty.lanes().is_multiple_of(2) {
            let words = self.bitcast(value, bundle_of_words(ty.lanes() / 2));
            return (0..ty.lanes() / 2)
                .map(|index| {
                    let word = if ty.lanes() == 2 { words } else { self.extract(words, index) };
                    self.bitcast(word, scalar.with_lanes(2))
                })
                .collect();
        }
        if ty.is_vector() {
            let lanes: Lanes = (0..ty.lanes())
                .map(|index| {
                    let lane = self.extract(value, index);
                    self.import_scalar(lane, scalar)
                })
                .collect();
            return self.parts_from_lanes(ty, &lanes);
        }
        let lane = self.import_scalar(value, scalar);
        self.parts_from_lanes(ty, &[lane])
    }

    fn import_scalar(&mut self, value: Value, scalar: Type) -> super::parts::Lane {
        match repr(scalar) {
            Repr::Legal => value.into(),
            Repr::Int(bits) => {
                let value = if scalar.is_float() { self.bitcast(value, Type::I8) } else { value };
                let arrives = self.ty(value).bits();
                let value = self.resize(value, super::parts::container(bits));
                if arrives < self.ty(value).bits() { self.fits_unsigned(value, arrives) } else { value }.into()
            }
            Repr::Wide(_) => {
                let limbs = self.bitcast(value, Type::I64.with_lanes(2));
                super::parts::Lane { lo: self.extract(limbs, 0), hi: Some(self.extract(limbs, 1)) }
            }
        }
    }

    /// The boundary value of a value.
    pub fn export(&mut self, value: Value) -> Value {
        let ty = self.ty(value);
        if self.features.legal_value(ty) {
            return value;
        }
        let scalar = ty.scalar();
        let to = boundary_type(ty);
        if let Some(ConstData::Poison) = self.func.dfg.as_const(value) {
            return self.func.dfg.poison(to);
        }
        let parts = self.parts_of(value);
        if ty.is_vector() && scalar == Type::I1 {
            let mut string = self.memory_bits(ty, &parts);
            if !to.is_vector() {
                return self.take_boundary(&mut string, to);
            }
            let bytes: SmallVec<[Value; 8]> =
                (0..to.lanes()).map(|_| self.take_boundary(&mut string, Type::I8)).collect();
            return self.vector(to, &bytes);
        }
        if ty.is_vector() && self.features.paired(scalar) && scalar.bits() == 16 && ty.lanes().is_multiple_of(2) {
            let words: SmallVec<[Value; 8]> = parts.iter().map(|part| self.bitcast(*part, Type::I32)).collect();
            let whole = self.vector(bundle_of_words(ty.lanes() / 2), &words);
            return self.bitcast(whole, ty);
        }
        let lanes = self.lanes_from_parts(ty, &parts);
        let values: SmallVec<[Value; 8]> = lanes.iter().map(|lane| self.export_scalar(*lane, scalar)).collect();
        if ty.is_vector() { self.vector(to, &values) } else { values[0] }
    }

    fn export_scalar(&mut self, lane: super::parts::Lane, scalar: Type) -> Value {
        match repr(scalar) {
            Repr::Legal => lane.lo,
            Repr::Int(_) => {
                let to = if scalar.is_float() { Type::I8 } else { boundary_type(scalar) };
                let value = if self.ty(lane.lo) == to { lane.lo } else { self.narrowed(lane.lo, to) };
                if scalar.is_float() { self.bitcast(value, scalar) } else { value }
            }
            Repr::Wide(_) => {
                let limbs = self.limbs(lane);
                let pair = self.vector(Type::I64.with_lanes(2), &[limbs.0, limbs.1]);
                self.bitcast(pair, Type::I128)
            }
        }
    }

    /// Calls, returns and target operations: operands and results pass in their boundary types.
    pub fn visit_boundary(&mut self, inst: Inst) {
        let dfg = &self.func.dfg;
        let legal = |v: Value| self.features.legal_value(dfg.ty(v));
        if dfg.args(inst).iter().all(|v| legal(*v)) && dfg.results(inst).all(legal) {
            return;
        }
        let data = dfg.insts[inst].clone();
        let args: SmallVec<[Value; 8]> = self.args(inst).into_iter().map(|v| self.export(v)).collect();
        let results: SmallVec<[Value; 4]> = self.func.dfg.results(inst).collect();
        let types: SmallVec<[Type; 4]> = results.iter().map(|v| boundary_type(self.ty(*v))).collect();
        let new = self.builder().inst_with_results(data.op, data.flags, data.ty, &args, data.extra, &types);
        for (index, old) in results.into_iter().enumerate() {
            let (ty, value) = (self.ty(old), self.func.dfg.result(new, index));
            if self.features.legal_value(ty) {
                self.func.dfg.alias(old, value);
            } else {
                let parts = self.import(value, ty);
                self.parts.set(old, &parts);
            }
        }
        self.func.layout.remove_inst(inst);
    }

    /// `atomicrmw` and `cmpxchg` that the target has, on types other than the integers it has them on.
    pub fn visit_atomic(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        if data.ty.is_vector() && data.ty.bits() > 32 {
            self.visit_boundary(inst);
            return;
        }
        let exchange = matches!(data.extra, Extra::Cmpxchg(..) | Extra::Rmw(ptxc_ir::AtomicOp::Xchg, _));
        if !exchange || (data.ty.is_int() && data.ty != Type::I128) {
            return;
        }
        let int = Type::int(data.ty.bits());
        let args = self.args(inst);
        let mut operands: SmallVec<[Value; 4]> = SmallVec::from_slice(&args[..1]);
        let values = if data.op == Opcode::Cmpxchg { 2 } else { 1 };
        for (index, arg) in args.iter().enumerate().skip(1) {
            operands.push(if index <= values { self.atomic_operand(*arg, int) } else { *arg });
        }
        let types: &[Type] = if data.op == Opcode::Cmpxchg { &[int, Type::I1] } else { &[int] };
        let new = self.builder().inst_with_results(data.op, data.flags, int, &operands, data.extra, types);
        let old = self.func.dfg.result(new, 0);
        let result = self.func.dfg.result(inst, 0);
        if data.ty == Type::I128 {
            let parts = self.import(old, data.ty);
            self.parts.set(result, &parts);
        } else {
            let value = self.integer_as(old, data.ty);
            self.func.dfg.alias(result, value);
        }
        if data.op == Opcode::Cmpxchg {
            let (from, to) = (self.func.dfg.result(inst, 1), self.func.dfg.result(new, 1));
            self.func.dfg.alias(from, to);
        }
        self.func.layout.remove_inst(inst);
    }

    fn atomic_operand(&mut self, value: Value, int: Type) -> Value {
        if int == Type::I128 { self.export(value) } else { self.as_integer(value) }
    }
}

fn bundle_of_words(count: u32) -> Type {
    if count == 1 { Type::I32 } else { Type::I32.with_lanes(count) }
}
