//! Operands as values of the IR: constants, and pointers in the space that an instruction needs.

use ptxc_ir::{ConstData, Extra, Flags, Opcode, Space, Type as IrType, Value, ValueDef};

use super::body::{Run, Writer};
use super::constants::Address;
use super::types::MAX_DEPTH;
use super::{Fault, Result, Symbol};
use crate::model::{ConstId, Constant, GlobalKind, Instruction, Operand, OperandKind, Type, TypeId};

/// Whether an address is the same number in both spaces. Generic addresses of shared, local, constant and parameter
/// memory lie in windows, of which the space's address 0 is the base; those of global memory are the same.
pub(super) fn same_number(a: Option<Space>, b: Option<Space>) -> bool {
    let plain = |space| matches!(space, Some(Space::Generic | Space::Global));
    a == b || plain(a) && plain(b)
}

impl Writer<'_, '_> {
    /// The LLVM type of an operand.
    pub fn type_of(&self, operand: Operand) -> Result<TypeId> {
        let ty = self.cx.source.type_of(self.body, operand);
        ty.ok_or_else(|| Fault::new("a block or metadata stands where a value is expected"))
    }

    /// Parts of an operand, pointers in whatever space they are known to be in.
    pub fn raw_parts(&mut self, operand: Operand) -> Result<Run> {
        match operand.kind() {
            OperandKind::Value(value) => self.value_run(value),
            OperandKind::Constant(constant) => self.constant(constant),
            OperandKind::Block(_) | OperandKind::Metadata(_) => {
                Err(Fault::new("a block or metadata stands where a value is expected"))
            }
        }
    }

    /// Parts of an operand, exactly of its type.
    pub fn exact_parts(&mut self, operand: Operand) -> Result<Run> {
        let run = self.raw_parts(operand)?;
        let ty = self.type_of(operand)?;
        let shape = self.cx.shape(ty)?;
        let fits = |w: &Self| w.parts[run.range()].iter().zip(&shape.parts).all(|(v, part)| w.b.ty(*v) == part.ty);
        if run.range().len() == shape.parts.len() && fits(self) {
            return Ok(run);
        }
        let raw: Vec<Value> = self.parts[run.range()].to_vec();
        let exact: Vec<Value> = raw.iter().zip(&shape.parts).map(|(value, part)| self.fit(*value, part.ty)).collect();
        Ok(self.push(&exact))
    }

    /// The one part of an operand that is no aggregate, exactly of its type.
    pub fn value(&mut self, operand: Operand) -> Result<Value> {
        let run = self.exact_parts(operand)?;
        self.only(run)
    }

    /// The one part of an operand; a pointer in whatever space it is known to be in.
    pub fn raw(&mut self, operand: Operand) -> Result<Value> {
        let run = self.raw_parts(operand)?;
        self.only(run)
    }

    fn only(&self, run: Run) -> Result<Value> {
        match self.parts[run.range()] {
            [value] => Ok(value),
            ref other => Err(Fault::new(format!("a value of {} parts stands where one is expected", other.len()))),
        }
    }

    /// An address to access memory at: in the most special space that is known.
    pub fn address(&mut self, operand: Operand) -> Result<Value> {
        let value = self.raw(operand)?;
        Ok(self.without_cast(value))
    }

    /// The pointer behind a cast to the generic space.
    pub fn without_cast(&self, value: Value) -> Value {
        let dfg = &self.b.func.dfg;
        if dfg.ty(value) != IrType::PTR {
            return value;
        }
        let ValueDef::Result(inst, _) = dfg.def(value) else { return value };
        match dfg.insts[inst].op {
            Opcode::Addrspacecast => dfg.args(inst).first().copied().unwrap_or(value),
            _ => value,
        }
    }

    /// A pointer as one of another space.
    pub fn fit(&mut self, value: Value, ty: IrType) -> Value {
        let own = self.b.ty(value);
        if own == ty || !own.is_ptr_like() || !ty.is_ptr_like() {
            return value;
        }
        let value = self.without_cast(value);
        let own = self.b.ty(value);
        if own == ty {
            return value;
        }
        if let Some(ConstData::Bits(0)) = self.b.func.dfg.as_const(value)
            && own.is_ptr()
            && same_number(own.space(), ty.space())
        {
            return self.b.bits(ty, 0);
        }
        let generic = ty.with_scalar(IrType::PTR);
        let between = if own.space() == Some(Space::Generic) || ty.space() == Some(Space::Generic) {
            value
        } else {
            self.b.convert(Opcode::Addrspacecast, value, generic)
        };
        self.b.convert(Opcode::Addrspacecast, between, ty)
    }

    /// A constant; those without instructions are made once.
    pub fn constant(&mut self, id: ConstId) -> Result<Run> {
        if let Some(run) = self.constants.get(&id) {
            return Ok(*run);
        }
        if self.nesting > MAX_DEPTH {
            return Err(Fault::new(format!("a constant is nested deeper than {MAX_DEPTH}")));
        }
        let insts = self.b.func.dfg.insts.len();
        let mut parts = Vec::new();
        self.nesting += 1;
        let result = self.constant_parts(id, &mut parts);
        self.nesting -= 1;
        result?;
        let run = self.push(&parts);
        if self.b.func.dfg.insts.len() == insts {
            self.constants.insert(id, run);
        }
        Ok(run)
    }

    fn constant_parts(&mut self, id: ConstId, out: &mut Vec<Value>) -> Result<()> {
        let source = self.cx.source;
        let ty = source.constants.ty(id);
        match source.constants.get(id) {
            Constant::Integer(bits) => {
                let ty = self.cx.value_type(ty)?;
                out.push(self.b.bits(ty, u128::from(bits)));
            }
            Constant::Float(bits) => {
                let ty = self.cx.value_type(ty)?;
                out.push(self.b.bits(ty, u128::from(bits)));
            }
            Constant::WideInteger(list) => {
                let ty = self.cx.value_type(ty)?;
                let bits = source.constants.words(list).iter().rev().fold(0u128, |all, w| all << 64 | u128::from(*w));
                out.push(self.b.bits(ty, bits));
            }
            Constant::Zero | Constant::Undef | Constant::NoToken => {
                let shape = self.cx.shape(ty)?;
                out.extend(shape.parts.iter().map(|part| self.b.bits(part.ty, 0)));
            }
            Constant::Poison => {
                let shape = self.cx.shape(ty)?;
                out.extend(shape.parts.iter().map(|part| self.b.func.dfg.poison(part.ty)));
            }
            Constant::Data(list) => {
                let element = match source.types.get(ty) {
                    Type::Array { element, .. } | Type::Vector { element, .. } => element,
                    _ => return Err(Fault::new("data of a type without elements")),
                };
                let (kind, scalar) = (source.types.get(element), self.cx.value_type(element)?);
                let mut lanes = Vec::new();
                while let Some(bits) = source.constants.data_element(list, kind, lanes.len()) {
                    lanes.push(self.b.bits(scalar, u128::from(bits)));
                }
                self.elements(ty, &lanes, out)?;
            }
            Constant::Aggregate(list) => {
                let mut parts = Vec::new();
                for part in source.constants.list(list) {
                    let wanted = self.cx.shape(source.constants.ty(*part))?;
                    let run = self.constant(*part)?;
                    let values = self.parts[run.range()].to_vec();
                    parts.extend(values.into_iter().zip(&wanted.parts).map(|(value, part)| self.fit(value, part.ty)));
                }
                self.elements(ty, &parts, out)?;
            }
            Constant::Global(_)
            | Constant::DsoLocalEquivalent(_)
            | Constant::NoCfi(_)
            | Constant::PointerAuth(_)
            | Constant::ElementPointer { .. } => out.push(self.address_or_expression(id)?),
            Constant::BlockAddress(address) => {
                let block = source.constants.block_addresses[address].block;
                let number = block.map_or(0, |block| i64::from(block.as_u32())) + 1;
                let number = self.b.iconst(IrType::I64, number);
                out.push(self.b.convert(Opcode::Inttoptr, number, IrType::PTR));
            }
            Constant::WideFloat(_) => return Err(Fault::new("floats wider than 64 bits have no equivalent")),
            Constant::Assembly(_) | Constant::Metadata(_) => {
                return Err(Fault::new("assembly or metadata stands where a value is expected"));
            }
            _ => self.expression(id, out)?,
        }
        Ok(())
    }

    /// Parts of an array or struct, or the lanes of a vector, as parts of a value.
    fn elements(&mut self, ty: TypeId, parts: &[Value], out: &mut Vec<Value>) -> Result<()> {
        if !matches!(self.cx.source.types.get(ty), Type::Vector { .. }) {
            out.extend_from_slice(parts);
            return Ok(());
        }
        let ty = self.cx.value_type(ty)?;
        let constant = parts.iter().all(|part| self.b.func.dfg.as_const(*part).is_some());
        out.push(if constant {
            self.b.func.dfg.constant(ty, ConstData::Vector(parts.to_vec()))
        } else {
            self.b.vector(ty, parts)
        });
        Ok(())
    }

    /// The value of a known address, in the space of its symbol.
    fn known_address(&mut self, address: Address, ty: IrType) -> Value {
        match address.symbol {
            Symbol::Variable(global) => {
                let pointer = self.cx.module.global_ptr(global);
                self.b.global(global, address.offset, pointer)
            }
            Symbol::Function(func) => {
                let base = self.b.func.dfg.constant(IrType::PTR, ConstData::Func(func));
                self.b.byte_offset(base, address.offset)
            }
            Symbol::None if address.offset == 0 => self.b.bits(ty, 0),
            Symbol::None => {
                let number = self.b.iconst(IrType::I64, address.offset);
                self.integer_to_pointer(number, ty)
            }
        }
    }

    fn address_or_expression(&mut self, id: ConstId) -> Result<Value> {
        let source = self.cx.source;
        let ty = source.constants.ty(id);
        if let Type::Pointer(_) = source.types.get(ty)
            && let Some(address) = self.cx.address(id, 0)?
        {
            let ty = self.cx.value_type(ty)?;
            return Ok(self.known_address(address, ty));
        }
        match source.constants.get(id) {
            Constant::ElementPointer { flags, element, operands } => {
                let operands: Vec<Operand> = source.constants.list(operands).iter().map(|c| (*c).into()).collect();
                self.element_pointer(element, &operands, flags)
            }
            Constant::Global(global) if matches!(source.globals[global].kind, GlobalKind::Function(_)) => {
                Err(Fault::new("the address of an intrinsic is taken"))
            }
            _ => Err(Fault::new("the address of a symbol that is not translated is taken")),
        }
    }

    /// A constant expression, as the instruction that it is.
    fn expression(&mut self, id: ConstId, out: &mut Vec<Value>) -> Result<()> {
        let source = self.cx.source;
        let ty = source.constants.ty(id);
        if let Type::Integer(_) = source.types.get(ty)
            && let Some(number) = self.cx.integer(id, 0)?
        {
            let ty = self.cx.value_type(ty)?;
            out.push(self.b.bits(ty, number as u128));
            return Ok(());
        }
        if let Type::Pointer(_) = source.types.get(ty)
            && let Some(address) = self.cx.address(id, 0)?
        {
            // A cast to a space that the symbol is not in is kept: only generic pointers may be more special.
            let ty = self.cx.value_type(ty)?;
            let known = self.known_address(address, ty);
            out.push(if ty == IrType::PTR { known } else { self.fit(known, ty) });
            return Ok(());
        }
        let none = crate::model::Flags::NONE;
        let instruction = match source.constants.get(id) {
            Constant::Negate(value) => Instruction::Negate { flags: none, value: value.into() },
            Constant::Cast { op, value } => {
                let value = self.constant_operand(value)?;
                out.push(self.cast(op, none, value.0, value.1, ty)?);
                return Ok(());
            }
            Constant::Binary { op, flags, left, right } => {
                Instruction::Binary { op, flags, left: left.into(), right: right.into() }
            }
            Constant::CompareInt { predicate, left, right } => {
                Instruction::CompareInt { predicate, flags: none, left: left.into(), right: right.into() }
            }
            Constant::CompareFloat { predicate, left, right } => {
                Instruction::CompareFloat { predicate, flags: none, left: left.into(), right: right.into() }
            }
            Constant::Select { condition, yes, no } => {
                Instruction::Select { flags: none, condition: condition.into(), yes: yes.into(), no: no.into() }
            }
            Constant::ExtractElement { vector, index } => {
                out.push(self.extract_element(vector.into(), index.into())?);
                return Ok(());
            }
            Constant::InsertElement { vector, element, index } => {
                out.push(self.insert_element(vector.into(), element.into(), index.into())?);
                return Ok(());
            }
            Constant::Shuffle { left, right, mask } => {
                out.push(self.shuffle(left.into(), right.into(), source.constants.mask(mask))?);
                return Ok(());
            }
            _ => return Err(Fault::new("this constant has no equivalent")),
        };
        out.extend(self.compute(&instruction, None)?);
        Ok(())
    }

    fn constant_operand(&mut self, id: ConstId) -> Result<(Value, TypeId)> {
        let run = self.constant(id)?;
        Ok((self.only(run)?, self.cx.source.constants.ty(id)))
    }

    /// A pointer from an integer of any width.
    pub fn integer_to_pointer(&mut self, number: Value, ty: IrType) -> Value {
        let wanted =
            self.b.ty(number).with_scalar(if ty.space() == Some(Space::Tensor) { IrType::I32 } else { IrType::I64 });
        let number = self.resize(number, wanted, false);
        self.b.convert(Opcode::Inttoptr, number, ty)
    }

    /// An integer of another width.
    pub fn resize(&mut self, value: Value, ty: IrType, signed: bool) -> Value {
        let (own, wanted) = (self.b.ty(value).scalar_bits(), ty.scalar_bits());
        let op = match own.cmp(&wanted) {
            std::cmp::Ordering::Equal => return value,
            std::cmp::Ordering::Greater => Opcode::Trunc,
            std::cmp::Ordering::Less if signed => Opcode::Sext,
            std::cmp::Ordering::Less => Opcode::Zext,
        };
        if let Some(bits) = self.b.func.dfg.as_bits(value)
            && !ty.is_vector()
        {
            let number = if signed { super::constants::signed(bits as i128, own) as u128 } else { bits };
            return self.b.bits(ty, number);
        }
        self.b.convert(op, value, ty)
    }

    /// The constant integer that an operand is.
    pub fn number(&self, operand: Operand) -> Option<i128> {
        self.cx.integer(operand.constant()?, 0).ok().flatten()
    }

    /// One instruction with the first of its results.
    pub fn op(&mut self, op: Opcode, flags: Flags, ty: IrType, args: &[Value]) -> Value {
        let inst = self.b.inst(op, flags, ty, args, Extra::None);
        self.b.func.dfg.result(inst, 0)
    }
}
