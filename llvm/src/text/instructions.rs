//! Instructions: the mnemonic chooses; arithmetic, conversions, comparisons, vectors and aggregates are here.

use super::constants::Class;
use super::lexer::{Kind, Token, key};
use super::parser::{Parser, Result};
use crate::model::{
    BinaryOp, CastOp, Flags, FloatPredicate, Instruction, IntPredicate, Operand, OperandKind, Type, TypeId,
};

const LOAD: u64 = key(b"load");
const STORE: u64 = key(b"store");
const CALL: u64 = key(b"call");
const BR: u64 = key(b"br");
const ADD: u64 = key(b"add");
const MUL: u64 = key(b"mul");
const FMUL: u64 = key(b"fmul");
const FADD: u64 = key(b"fadd");
const SEXT: u64 = key(b"sext");
const ZEXT: u64 = key(b"zext");
const ICMP: u64 = key(b"icmp");
const PHI: u64 = key(b"phi");
const TAIL: u64 = key(b"tail");
const SELECT: u64 = key(b"select");
const FCMP: u64 = key(b"fcmp");
const SUB: u64 = key(b"sub");
const SHL: u64 = key(b"shl");
const AND: u64 = key(b"and");
const OR: u64 = key(b"or");
const FSUB: u64 = key(b"fsub");
const TRUNC: u64 = key(b"trunc");
const BITCAST: u64 = key(b"bitcast");
const ELEMENT_POINTER: u64 = key(b"getelementptr");

/// An instruction with the type of its result, `void` when it has none.
pub(super) type Read = (Instruction, TypeId);

impl Parser<'_> {
    /// One instruction with its attachments. Tells whether it ends the block.
    pub(super) fn instruction(&mut self) -> Result<bool> {
        let named = matches!(self.token.kind, Kind::Local | Kind::LocalNumber);
        let result_token = named.then(|| self.take());
        if named {
            self.expect(b'=')?;
        }
        let mnemonic = self.token;
        if mnemonic.kind != Kind::Word {
            return self.expected("an instruction");
        }
        let (instruction, ty) = self.operation(mnemonic)?;
        let result = if ty == self.common.void {
            if let Some(token) = result_token {
                return Err(self.error_at(token, "this instruction has no result to be named"));
            }
            None
        } else {
            Some(self.define_result(result_token, ty)?)
        };
        let id = self.locals.body.push(instruction, result, mnemonic.start);
        // A comma before the attachments may be taken already.
        if self.eat(b',') || self.token.kind == Kind::MetadataName {
            loop {
                if self.token.kind != Kind::MetadataName {
                    return self.expected("metadata of the instruction");
                }
                let (kind, node) = self.attachment()?;
                if kind == self.common.dbg {
                    self.locals.body.instructions[id].location = Some(node).into();
                } else {
                    self.locals.body.attachments.push((id, kind, node));
                }
                if !self.eat(b',') {
                    break;
                }
            }
        }
        Ok(instruction.is_terminator())
    }

    fn operation(&mut self, mnemonic: Token) -> Result<Read> {
        let (word, key) = (self.text(), self.key());
        self.bump();
        // The frequent ones by comparing numbers; all of them are shorter than eight bytes but one.
        match key {
            LOAD => return self.load(mnemonic),
            STORE => return self.store(mnemonic),
            CALL | TAIL => return self.call(word),
            SELECT => return self.select(mnemonic),
            FCMP => return self.compare_float(mnemonic),
            SUB => return self.binary(BinaryOp::Sub, mnemonic),
            SHL => return self.binary(BinaryOp::Shl, mnemonic),
            AND => return self.binary(BinaryOp::And, mnemonic),
            OR => return self.binary(BinaryOp::Or, mnemonic),
            FSUB => return self.binary(BinaryOp::FSub, mnemonic),
            TRUNC => return self.cast(CastOp::Trunc, mnemonic),
            BITCAST => return self.cast(CastOp::BitCast, mnemonic),
            BR => return self.branch(),
            ADD => return self.binary(BinaryOp::Add, mnemonic),
            MUL => return self.binary(BinaryOp::Mul, mnemonic),
            FMUL => return self.binary(BinaryOp::FMul, mnemonic),
            FADD => return self.binary(BinaryOp::FAdd, mnemonic),
            SEXT => return self.cast(CastOp::SExt, mnemonic),
            ZEXT => return self.cast(CastOp::ZExt, mnemonic),
            ICMP => return self.compare_int(mnemonic),
            PHI => return self.phi(),
            ELEMENT_POINTER if word == b"getelementptr" => return self.element_pointer(mnemonic),
            _ => {}
        }
        match word {
            b"musttail" | b"notail" => self.call(word),
            b"ret" => self.return_value(),
            b"alloca" => self.alloca(mnemonic),
            b"extractvalue" => self.extract_value(mnemonic),
            b"insertvalue" => self.insert_value(mnemonic),
            b"extractelement" => self.extract_element(mnemonic),
            b"insertelement" => self.insert_element(mnemonic),
            b"shufflevector" => self.shuffle(mnemonic),
            b"switch" => self.switch(),
            b"fneg" => {
                let flags = self.flags();
                let (ty, value) = self.typed_operand()?;
                self.check_class(ty, Class::Float, mnemonic)?;
                Ok((Instruction::Negate { flags, value }, ty))
            }
            b"freeze" => {
                let (ty, value) = self.typed_operand()?;
                Ok((Instruction::Freeze(value), ty))
            }
            b"atomicrmw" => self.rmw(mnemonic),
            b"cmpxchg" => self.compare_exchange(mnemonic),
            b"fence" => self.fence(),
            b"unreachable" => Ok((Instruction::Unreachable, self.common.void)),
            b"indirectbr" => self.indirect_branch(),
            b"va_arg" => {
                let (_, list) = self.typed_operand()?;
                self.expect(b',')?;
                let ty = self.value_type()?;
                Ok((Instruction::VariadicArgument(list), ty))
            }
            b"invoke" => self.invoke(),
            b"callbr" => self.call_branch(),
            _ => self.arithmetic(word, mnemonic),
        }
    }

    fn arithmetic(&mut self, word: &[u8], mnemonic: Token) -> Result<Read> {
        if let Some(op) = BinaryOp::from_word(word) {
            return self.binary(op, mnemonic);
        }
        if let Some(op) = CastOp::from_word(word) {
            return self.cast(op, mnemonic);
        }
        if let Some(op) = crate::model::ExceptionOp::from_word(word) {
            return self.exception(op);
        }
        let message = format!("the instruction `{}` is not known", String::from_utf8_lossy(word));
        Err(self.error_at(mnemonic, message))
    }

    /// A value of type `ty`.
    pub(super) fn operand(&mut self, ty: TypeId) -> Result<Operand> {
        match self.token.kind {
            Kind::LocalNumber => {
                let token = self.take();
                match self.known_value(token, ty) {
                    Some(value) => Ok(value.into()),
                    None => Ok(self.local(token, ty)?.into()),
                }
            }
            Kind::Local => {
                let token = self.take();
                Ok(self.local(token, ty)?.into())
            }
            _ => Ok(self.constant(ty)?.into()),
        }
    }

    /// `T value`.
    pub(super) fn typed_operand(&mut self) -> Result<(TypeId, Operand)> {
        let ty = self.value_type()?;
        if ty == self.common.metadata {
            return Ok((ty, self.metadata_operand()?));
        }
        if ty == self.common.label {
            return Ok((ty, self.block_reference()?.into()));
        }
        Ok((ty, self.operand(ty)?))
    }

    /// `, T value`.
    pub(super) fn next_operand(&mut self) -> Result<(TypeId, Operand)> {
        self.expect(b',')?;
        self.typed_operand()
    }

    /// `T a, b`.
    fn pair_of_one_type(&mut self) -> Result<(TypeId, Operand, Operand)> {
        let (ty, left) = self.typed_operand()?;
        self.expect(b',')?;
        Ok((ty, left, self.operand(ty)?))
    }

    fn binary(&mut self, op: BinaryOp, mnemonic: Token) -> Result<Read> {
        let flags = self.flags();
        let (ty, left, right) = self.pair_of_one_type()?;
        let float = matches!(op, BinaryOp::FAdd | BinaryOp::FSub | BinaryOp::FMul | BinaryOp::FDiv | BinaryOp::FRem);
        self.check_class(ty, if float { Class::Float } else { Class::Integer }, mnemonic)?;
        Ok((Instruction::Binary { op, flags, left, right }, ty))
    }

    fn cast(&mut self, op: CastOp, mnemonic: Token) -> Result<Read> {
        let flags = self.flags();
        let (from, value) = self.typed_operand()?;
        self.expect_word("to")?;
        let to = self.value_type()?;
        self.check_cast(op, from, to, mnemonic)?;
        Ok((Instruction::Cast { op, flags, value }, to))
    }

    /// `i1`, or a vector of as many as `ty` has.
    fn truth_type(&mut self, ty: TypeId) -> TypeId {
        match self.module.types.get(ty) {
            Type::Vector { len, scalable, .. } => {
                self.module.types.intern(Type::Vector { len, scalable, element: self.common.i1 })
            }
            _ => self.common.i1,
        }
    }

    fn compare_int(&mut self, mnemonic: Token) -> Result<Read> {
        let flags = if self.eat_word(b"samesign") { Flags::SAMESIGN } else { Flags::NONE };
        let predicate = self.word_of("a comparison", IntPredicate::from_word)?;
        let (ty, left, right) = self.pair_of_one_type()?;
        self.check_class(ty, Class::IntegerOrPointer, mnemonic)?;
        Ok((Instruction::CompareInt { predicate, flags, left, right }, self.truth_type(ty)))
    }

    fn compare_float(&mut self, mnemonic: Token) -> Result<Read> {
        let flags = self.flags();
        let predicate = self.word_of("a comparison", FloatPredicate::from_word)?;
        let (ty, left, right) = self.pair_of_one_type()?;
        self.check_class(ty, Class::Float, mnemonic)?;
        Ok((Instruction::CompareFloat { predicate, flags, left, right }, self.truth_type(ty)))
    }

    fn select(&mut self, mnemonic: Token) -> Result<Read> {
        let flags = self.flags();
        let (condition_type, condition) = self.typed_operand()?;
        let (ty, yes) = self.next_operand()?;
        let (other, no) = self.next_operand()?;
        self.check_type(other, ty, mnemonic)?;
        if condition_type != self.common.i1 && condition_type != self.truth_type(ty) {
            let message = format!("the condition of `select` is of type i1, not {}", self.type_name(condition_type));
            return Err(self.error_at(mnemonic, message));
        }
        Ok((Instruction::Select { flags, condition, yes, no }, ty))
    }

    /// An error unless both types are the same.
    pub(super) fn check_type(&self, found: TypeId, wanted: TypeId, token: Token) -> Result<()> {
        if found == wanted {
            return Ok(());
        }
        let (found, wanted) = (self.type_name(found), self.type_name(wanted));
        Err(self.error_at(token, format!("`{}` has an operand of type {found}, not {wanted}", self.shown(token))))
    }

    /// Element of a vector type.
    fn element_of(&self, ty: TypeId, token: Token) -> Result<TypeId> {
        match self.module.types.get(ty) {
            Type::Vector { element, .. } => Ok(element),
            _ => {
                Err(self.error_at(token, format!("`{}` takes a vector, not {}", self.shown(token), self.type_name(ty))))
            }
        }
    }

    fn extract_element(&mut self, mnemonic: Token) -> Result<Read> {
        let (ty, vector) = self.typed_operand()?;
        let element = self.element_of(ty, mnemonic)?;
        let (index_type, index) = self.next_operand()?;
        self.check_class(index_type, Class::Integer, mnemonic)?;
        Ok((Instruction::ExtractElement { vector, index }, element))
    }

    fn insert_element(&mut self, mnemonic: Token) -> Result<Read> {
        let (ty, vector) = self.typed_operand()?;
        let wanted = self.element_of(ty, mnemonic)?;
        let (found, element) = self.next_operand()?;
        self.check_type(found, wanted, mnemonic)?;
        let (index_type, index) = self.next_operand()?;
        self.check_class(index_type, Class::Integer, mnemonic)?;
        Ok((Instruction::InsertElement { vector, element, index }, ty))
    }

    fn shuffle(&mut self, mnemonic: Token) -> Result<Read> {
        let (ty, left) = self.typed_operand()?;
        let element = self.element_of(ty, mnemonic)?;
        let (other, right) = self.next_operand()?;
        self.check_type(other, ty, mnemonic)?;
        let (mask_type, mask) = self.next_operand()?;
        let OperandKind::Constant(mask) = mask.kind() else {
            return Err(self.error_at(mnemonic, "the mask of a shuffle is a constant vector of i32"));
        };
        let numbers: Vec<u32> = self.mask_of(mask, mnemonic)?.iter().map(|number| *number as u32).collect();
        let result = match self.module.types.get(mask_type) {
            Type::Vector { len, scalable, .. } => self.module.types.intern(Type::Vector { len, scalable, element }),
            _ => ty,
        };
        let mask = self.locals.body.add_words(&numbers);
        Ok((Instruction::Shuffle { left, right, mask }, result))
    }

    /// `, 1, 2`: the indices, with the type they lead to.
    fn path(&mut self, ty: TypeId) -> Result<(Vec<u32>, TypeId)> {
        let (mut path, mut part) = (Vec::new(), ty);
        while self.at(b',') && self.peek().is_ascii_digit() {
            self.bump();
            let token = self.token;
            let index = self.small_number("an index")?;
            let too_large = matches!(self.module.types.get(part), Type::Array { len, .. } if u64::from(index) >= len);
            let vector = matches!(self.module.types.get(part), Type::Vector { .. });
            part = match self.module.types.part(part, u64::from(index)) {
                Some(found) if !too_large && !vector => found,
                _ => return Err(self.error_at(token, format!("{} has no part {index}", self.type_name(part)))),
            };
            path.push(index);
        }
        if path.is_empty() {
            return self.expected("an index");
        }
        Ok((path, part))
    }

    fn extract_value(&mut self, _: Token) -> Result<Read> {
        let (ty, aggregate) = self.typed_operand()?;
        let (path, part) = self.path(ty)?;
        let path = self.locals.body.add_words(&path);
        Ok((Instruction::ExtractValue { aggregate, path }, part))
    }

    fn insert_value(&mut self, mnemonic: Token) -> Result<Read> {
        let (ty, aggregate) = self.typed_operand()?;
        let (found, value) = self.next_operand()?;
        let (path, part) = self.path(ty)?;
        self.check_type(found, part, mnemonic)?;
        let path = self.locals.body.add_words(&path);
        Ok((Instruction::InsertValue { aggregate, value, path }, ty))
    }
}

/// Whether an instruction starts with the word.
pub(super) fn is_mnemonic(word: &[u8]) -> bool {
    match word {
        b"store" | b"call" | b"br" | b"ret" | b"tail" | b"switch" | b"unreachable" | b"fence" | b"load" => true,
        b"musttail" | b"notail" | b"getelementptr" | b"phi" | b"icmp" | b"fcmp" | b"select" | b"alloca" => true,
        b"extractvalue" | b"insertvalue" | b"extractelement" | b"insertelement" | b"shufflevector" => true,
        b"fneg" | b"freeze" | b"atomicrmw" | b"cmpxchg" | b"indirectbr" | b"va_arg" | b"invoke" | b"callbr" => true,
        _ => {
            BinaryOp::from_word(word).is_some()
                || CastOp::from_word(word).is_some()
                || crate::model::ExceptionOp::from_word(word).is_some()
        }
    }
}
