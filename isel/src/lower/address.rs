//! Addresses: what PTX takes inside brackets, and pointer arithmetic where it needs a register.

use ptxc_ir::{AggDef, ConstData, Extra, Inst, MemType, Opcode, Space, Type, Value, ValueDef};
use ptxc_mir::{GroupKind, Operand, RegClass, SymId, VReg};
use ptxc_targets::{Tok, tok};
use smallvec::{SmallVec, smallvec};

use super::{Lower, Output, space_tok};
use crate::rules::Pattern;

/// What an address starts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    /// A pointer in a register.
    Value(Value),
    /// A global of the module.
    Symbol(SymId),
    /// The frame.
    Depot,
    /// A parameter of the function.
    Param(u32),
}

/// A base plus a constant: one bracketed PTX operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    /// Where it starts.
    pub base: Base,
    /// Bytes added; fits 32 bits signed.
    pub offset: i64,
    /// The space it lies in, which may be known better than the pointer's type says.
    pub space: Space,
}

/// One variable part of pointer arithmetic: index times bytes.
type Term = (Value, u64);

/// How many steps of pointer arithmetic an access looks through. A limit keeps long chains linear.
const MAX_STEPS: usize = 24;

impl Lower<'_> {
    /// Looks through constant pointer arithmetic and casts.
    pub(super) fn address(&self, ptr: Value) -> Address {
        let mut at = self.ir.dfg.resolve(ptr);
        let space = self.ty(at).space().unwrap_or(Space::Generic);
        let mut address = Address { base: Base::Value(at), offset: 0, space };
        for _ in 0..MAX_STEPS {
            address.base = Base::Value(at);
            if let Some(offset) = self.displaced.get(&at) {
                return match add_offset(address.offset, *offset) {
                    Some(offset) => Address { offset, ..address },
                    None => Address { base: Base::Value(self.ir.dfg.resolve(ptr)), offset: 0, space },
                };
            }
            if let Some(index) = self.byval_params.get(&at) {
                address.base = Base::Param(*index);
                return address;
            }
            if let Some(ConstData::Global(global, offset)) = self.ir.dfg.as_const(at) {
                if let Some(offset) = add_offset(address.offset, *offset) {
                    address.offset = offset;
                    address.base = Base::Symbol(self.env.symbols.global(*global));
                }
                return address;
            }
            let Some(inst) = self.ir.dfg.def_inst(at) else { return address };
            let data = &self.ir.dfg.insts[inst];
            match data.op {
                Opcode::Gep => {
                    let Some(step) = self.constant_step(inst) else { return address };
                    let Some(offset) = add_offset(address.offset, step) else { return address };
                    address.offset = offset;
                }
                Opcode::Addrspacecast => {
                    let from = self.arg_type(inst, 0).space().unwrap_or(Space::Generic);
                    let known = address.space == Space::Generic && from != Space::Generic && from != Space::Tensor;
                    if !known || data.ty.space() != Some(Space::Generic) {
                        return address;
                    }
                    address.space = from;
                }
                Opcode::Alloca => {
                    let Some(slot) = self.frame.get(&inst) else { return address };
                    if let Some(offset) = add_offset(address.offset, i64::from(*slot)) {
                        address.offset = offset;
                        address.base = Base::Depot;
                    }
                    return address;
                }
                _ => return address,
            }
            at = self.arg(inst, 0);
        }
        if self.displaced.contains_key(&at) {
            return Address { base: Base::Value(self.ir.dfg.resolve(ptr)), offset: 0, space };
        }
        address.base = Base::Value(at);
        address
    }

    /// Argument `index`, with aliases followed.
    pub(super) fn arg(&self, inst: Inst, index: usize) -> Value {
        match self.ir.dfg.args(inst).get(index) {
            Some(value) => self.ir.dfg.resolve(*value),
            None => Value::from_u32(0),
        }
    }

    /// Type of argument `index`.
    pub(super) fn arg_type(&self, inst: Inst, index: usize) -> Type {
        self.ir.dfg.args(inst).get(index).map_or(Type::INVALID, |v| self.ir.dfg.ty(*v))
    }

    /// The constant bytes that a `gep` with variable indices adds.
    pub(super) fn variable_step(&self, gep: Inst) -> Option<i64> {
        let mut terms: SmallVec<[Term; 4]> = SmallVec::new();
        let constant = self.step_over(gep, &mut terms)?;
        (!terms.is_empty()).then_some(constant)
    }

    /// The bytes a `gep` adds when all its indices are constants.
    fn constant_step(&self, gep: Inst) -> Option<i64> {
        let mut terms: SmallVec<[Term; 4]> = SmallVec::new();
        let constant = self.step_over(gep, &mut terms)?;
        terms.is_empty().then_some(constant)
    }

    /// Splits a `gep` into constant bytes and variable terms; `None` when it is malformed or overflows.
    fn step_over(&self, gep: Inst, terms: &mut SmallVec<[Term; 4]>) -> Option<i64> {
        let Extra::Gep(mut ty) = self.ir.dfg.insts[gep].extra else { return None };
        let module = self.env.module;
        let mut constant = 0i64;
        for (place, index) in self.ir.dfg.args(gep).iter().skip(1).enumerate() {
            let index = self.ir.dfg.resolve(*index);
            let number = self.const_i64(index);
            let stride = if place == 0 {
                module.layout_of(ty).size
            } else {
                match self.step_into(ty, number)? {
                    (inner, Step::Field(offset)) => {
                        constant = constant.checked_add(i64::try_from(offset).ok()?)?;
                        ty = inner;
                        continue;
                    }
                    (inner, Step::Element(size)) => {
                        ty = inner;
                        size
                    }
                }
            };
            match number {
                Some(n) => constant = constant.checked_add(n.checked_mul(i64::try_from(stride).ok()?)?)?,
                None if stride != 0 => terms.push((index, stride)),
                None => {}
            }
        }
        Some(constant)
    }

    fn step_into(&self, ty: MemType, index: Option<i64>) -> Option<(MemType, Step)> {
        let module = self.env.module;
        match ty {
            MemType::Agg(id) => {
                let agg = module.agg(id);
                match &agg.def {
                    AggDef::Array { elem, .. } => Some((*elem, Step::Element(module.layout_of(*elem).size))),
                    AggDef::Struct { fields, .. } => {
                        let at = usize::try_from(index?).ok()?;
                        Some((*fields.get(at)?, Step::Field(*agg.offsets.get(at)?)))
                    }
                }
            }
            MemType::Value(ty) if ty.is_vector() => {
                let lane = ty.scalar();
                Some((lane.into(), Step::Element(lane.size())))
            }
            MemType::Value(_) => None,
        }
    }

    /// Names what an address needs no instruction for.
    pub(super) fn note_address(&mut self, ptr: Value, address: Address) {
        if !self.env.remarks {
            return;
        }
        match address.base {
            Base::Value(_) if address.offset != 0 => self.note(Pattern::AddressOffset),
            Base::Value(_) => {}
            Base::Symbol(_) => self.note(Pattern::AddressSymbol),
            Base::Depot => self.note(Pattern::AddressStack),
            Base::Param(_) => self.note(Pattern::AddressParameter),
        }
        if self.ty(ptr).space() == Some(Space::Generic) && address.space != Space::Generic {
            self.note(Pattern::AddressSpace);
        }
    }

    /// The operands of `[address]`.
    pub(super) fn address_operands(&mut self, address: Address) -> SmallVec<[Operand; 4]> {
        let offset = address.offset as i32;
        match address.base {
            Base::Value(value) => {
                let reg = self.reg_of(value);
                if address.offset == 0 {
                    smallvec![Operand::Open(GroupKind::Address, 1), Operand::Use(reg)]
                } else {
                    smallvec![Operand::Open(GroupKind::Address, 2), Operand::Use(reg), Operand::Offset(address.offset)]
                }
            }
            Base::Symbol(sym) => smallvec![Operand::Open(GroupKind::Address, 1), Operand::Sym(sym, offset)],
            Base::Depot => smallvec![Operand::Open(GroupKind::Address, 1), Operand::Depot(offset)],
            Base::Param(index) => smallvec![Operand::Open(GroupKind::Address, 1), Operand::Param(index, offset)],
        }
    }

    /// The operand of a `mov` or `cvta` that yields an address in its own space; `None` when it is in a register.
    fn named_address(&self, address: Address) -> Option<Operand> {
        let offset = address.offset as i32;
        match address.base {
            Base::Value(_) => None,
            Base::Symbol(sym) => Some(Operand::Sym(sym, offset)),
            Base::Depot => Some(Operand::Depot(offset)),
            Base::Param(index) => Some(Operand::Param(index, offset)),
        }
    }

    /// The operand that is a symbol's address, for constants that are one.
    pub(super) fn symbol_operand(&self, value: Value) -> Option<Operand> {
        match self.ir.dfg.as_const(value)? {
            ConstData::Global(global, offset) => {
                Some(Operand::Sym(self.env.symbols.global(*global), i32::try_from(*offset).ok()?))
            }
            ConstData::Func(func) => Some(Operand::Sym(self.env.symbols.func(*func), 0)),
            _ => None,
        }
    }

    /// The address of a by-value kernel parameter in a register: it is a name.
    pub(super) fn folded_address_regs(&mut self, value: Value) -> Option<Output> {
        if self.byval_params.is_empty() || !matches!(self.ir.dfg.def(value), ValueDef::Param(..)) {
            return None;
        }
        let index = *self.byval_params.get(&value)?;
        Some(smallvec![self.named_reg(Operand::Param(index, 0))])
    }

    /// `gep`, `alloca` and `addrspacecast` whose result is needed in a register.
    pub(super) fn address_value(&mut self, inst: Inst) {
        let Some(result) = self.ir.dfg.first_result(inst) else { return };
        match self.ir.dfg.insts[inst].op {
            Opcode::Addrspacecast => self.cast_space(inst, result),
            Opcode::Gep => self.gep(inst, result),
            _ => self.alloca(inst, result),
        }
    }

    /// The address of a frame slot, or memory taken from the stack now (PTX ISA 9.7.16, alloca).
    fn alloca(&mut self, inst: Inst, result: Value) {
        let address = self.address(result);
        let out = match self.named_address(address) {
            Some(name) => self.named_reg(name),
            None => {
                let Some((bytes, align)) = self.alloca_size(inst) else { return };
                let (Ok(bytes), Ok(align)) = (i64::try_from(bytes), i64::try_from(align)) else { return };
                let out = self.new_reg(RegClass::B64);
                let operands = [Operand::Def(out), Operand::Imm(bytes), Operand::Imm(align)];
                self.emit_toks(&[tok::ALLOCA, tok::U64], &operands);
                out
            }
        };
        self.bind_value(result, &[out]);
    }

    fn gep(&mut self, inst: Inst, result: Value) {
        let mut terms = SmallVec::new();
        let Some(constant) = self.step_over(inst, &mut terms) else {
            self.error(inst, "`gep` steps over a type it cannot index, or its constant offset overflows");
            return;
        };
        if self.ty(result).bits() == 32 {
            self.tensor_gep(inst, constant, &terms);
            return;
        }
        let mut address = self.address(self.arg(inst, 0));
        // The generic address of a symbol is not the symbol's: stop at the cast.
        if address.space != self.ty(result).space().unwrap_or(Space::Generic) {
            let base = self.arg(inst, 0);
            address = Address { base: Base::Value(base), offset: 0, space: Space::Generic };
        }
        let mut rest = constant;
        if self.displaced.contains_key(&result) {
            self.note(Pattern::AddressStackOffset);
            (address.offset, rest) = (0, 0);
        } else if let Some(offset) = add_offset(address.offset, constant) {
            address.offset = offset;
            rest = 0;
        }
        let (mut at, offset) = match (self.named_address(address), address.base) {
            (Some(name), _) => (self.named_reg(name), 0),
            (None, Base::Value(base)) => (self.reg_of(base), address.offset),
            (None, _) => return,
        };
        for (index, stride) in terms {
            at = self.add_scaled(at, index, stride);
        }
        let total = offset.wrapping_add(rest);
        if total != 0 {
            at = self.binary_imm(&[tok::ADD, tok::S64], at, total);
        }
        self.bind_value(result, &[at]);
    }

    /// `base + index * stride` in 64 bits; narrower indices are signed.
    fn add_scaled(&mut self, base: VReg, index: Value, stride: u64) -> VReg {
        let out = self.new_reg(RegClass::B64);
        let stride_imm = Operand::Imm(stride as i64);
        let narrow = self.narrow_index(index);
        if let (Some((narrow, signed)), Ok(_)) = (narrow, i32::try_from(stride)) {
            self.note(Pattern::IndexWide);
            let reg = self.reg_of(narrow);
            let suffix = if signed { tok::S32 } else { tok::U32 };
            // ptxas makes one instruction of the two; `mad.wide` it takes apart (see the rules of integers).
            let scaled = self.new_reg(RegClass::B64);
            let operands = [Operand::Def(scaled), Operand::Use(reg), stride_imm];
            self.emit_toks(&[tok::MUL, tok::WIDE, suffix], &operands);
            self.emit_toks(&[tok::ADD, tok::S64], &[Operand::Def(out), Operand::Use(scaled), Operand::Use(base)]);
            return out;
        }
        let mut index_reg = self.reg_of(index);
        if self.ty(index) == Type::I32 {
            index_reg = self.convert_register(index_reg, RegClass::B64, &[tok::CVT, tok::S64, tok::S32]);
        }
        if stride == 1 {
            self.emit_toks(&[tok::ADD, tok::S64], &[Operand::Def(out), Operand::Use(base), Operand::Use(index_reg)]);
        } else if stride.is_power_of_two() {
            self.note(Pattern::IndexShifted);
            let scaled = self.binary_imm(&[tok::SHL, tok::B64], index_reg, i64::from(stride.trailing_zeros()));
            self.emit_toks(&[tok::ADD, tok::S64], &[Operand::Def(out), Operand::Use(base), Operand::Use(scaled)]);
        } else {
            self.note(Pattern::IndexMultiplied);
            self.emit_toks(
                &[tok::MAD, tok::LO, tok::S64],
                &[Operand::Def(out), Operand::Use(index_reg), stride_imm, Operand::Use(base)],
            );
        }
        out
    }

    /// The 32-bit value that an index extends, and whether it is signed.
    fn narrow_index(&self, index: Value) -> Option<(Value, bool)> {
        if self.ty(index) == Type::I32 {
            return Some((index, true));
        }
        let inst = self.pure_def(index)?;
        let signed = match self.ir.dfg.insts[inst].op {
            Opcode::Sext => true,
            Opcode::Zext => false,
            _ => return None,
        };
        let from = self.arg(inst, 0);
        (self.ty(from) == Type::I32).then_some((from, signed))
    }

    /// Tensor memory has 32-bit addresses.
    fn tensor_gep(&mut self, inst: Inst, constant: i64, terms: &[Term]) {
        let base = self.arg(inst, 0);
        let mut at = self.reg_of(base);
        for (index, stride) in terms {
            let mut reg = self.reg_of(*index);
            if self.func.class(reg) == RegClass::B64 {
                reg = self.convert_register(reg, RegClass::B32, &[tok::CVT, tok::U32, tok::U64]);
            }
            let out = self.new_reg(RegClass::B32);
            let operands =
                [Operand::Def(out), Operand::Use(reg), Operand::Imm(*stride as u32 as i64), Operand::Use(at)];
            self.emit_toks(&[tok::MAD, tok::LO, tok::S32], &operands);
            at = out;
        }
        if constant != 0 {
            at = self.binary_imm(&[tok::ADD, tok::S32], at, i64::from(constant as i32));
        }
        self.bind(inst, &[at]);
    }

    fn cast_space(&mut self, inst: Inst, result: Value) {
        let source = self.arg(inst, 0);
        let from = self.ty(source).space().unwrap_or(Space::Generic);
        let to = self.ty(result).space().unwrap_or(Space::Generic);
        if from == to || (from, to) == (Space::Shared, Space::SharedCluster) {
            let regs = self.regs_of(source);
            self.bind(inst, &regs);
            return;
        }
        if from != Space::Generic && to != Space::Generic {
            self.error(inst, format!("there is no cast from {} to {} memory", from.name(), to.name()));
            return;
        }
        let mut toks: SmallVec<[Tok; 4]> = smallvec![tok::CVTA];
        if to != Space::Generic {
            toks.push(tok::TO);
        }
        toks.extend(space_tok(if to == Space::Generic { from } else { to }));
        toks.push(tok::U64);
        let address = self.address(source);
        let named = if address.space == from { self.named_address(address) } else { None };
        let out = match named {
            Some(name) => self.named_by(&toks, name),
            None => {
                let (from, out) = (self.reg_of(source), self.new_reg(RegClass::B64));
                self.emit_toks(&toks, &[Operand::Def(out), Operand::Use(from)]);
                out
            }
        };
        self.bind(inst, &[out]);
    }
}

/// A step inside an aggregate.
enum Step {
    /// To a field at this offset.
    Field(u64),
    /// To an element of this size.
    Element(u64),
}

/// The sum, when PTX can add it to an address.
fn add_offset(a: i64, b: i64) -> Option<i64> {
    a.checked_add(b).filter(|sum| i32::try_from(*sum).is_ok())
}
