//! Calls, phis and what ends a block.

use super::instructions::{Read, is_mnemonic};
use super::lexer::Token;
use super::parser::{Parser, Result};
use crate::model::{
    Bundle, Call, CallId, ExceptionOp, Flags, Instruction, Operand, OperandKind, TailCall, Type, TypeId,
};

impl Parser<'_> {
    /// An empty list of operands, with the room of one that was given back.
    pub(super) fn take_scratch(&mut self) -> Vec<Operand> {
        self.scratch.pop().unwrap_or_default()
    }

    pub(super) fn give_scratch(&mut self, mut operands: Vec<Operand>) {
        operands.clear();
        self.scratch.push(operands);
    }

    pub(super) fn call(&mut self, word: &[u8]) -> Result<Read> {
        let tail = TailCall::from_word(word).unwrap_or(TailCall::None);
        if tail != TailCall::None {
            self.expect_word("call")?;
        }
        let flags = self.flags();
        let (call, result) = self.call_parts(tail, flags)?;
        Ok((Instruction::Call(call), result))
    }

    /// Everything behind `call` and its flags.
    fn call_parts(&mut self, tail: TailCall, flags: Flags) -> Result<(CallId, TypeId)> {
        let convention = self.convention()?;
        let result_attributes = self.value_attributes(None)?;
        let space = self.address_space()?.unwrap_or(0);
        let type_token = self.token;
        let written = self.ty()?;
        let written = match self.pointee {
            // A pointer to a function, as very old files write it.
            Some(pointee) if matches!(self.module.types.get(pointee), Type::Function { .. }) => pointee,
            _ => written,
        };
        let callee_token = self.token;
        let callee = self.callee(space)?;
        let mut arguments = self.take_scratch();
        let mut types = std::mem::take(&mut self.scratch_types);
        let mut sets = std::mem::take(&mut self.scratch_sets);
        self.expect(b'(')?;
        while !self.at(b')') {
            if self.eat_word(b"...") {
                break;
            }
            let ty = self.value_type()?;
            let pointee = self.pointee;
            sets.push(self.value_attributes(pointee)?);
            arguments.push(self.argument(ty)?);
            types.push(ty);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')')?;
        let (ty, result) = match self.module.types.get(written) {
            Type::Function { result, .. } => {
                self.check_arguments(written, &types, callee_token)?;
                (written, result)
            }
            _ => (self.call_type(callee, written, &types), written),
        };
        if matches!(self.module.types.get(result), Type::Function { .. } | Type::Label) {
            return Err(self.error_at(type_token, "a function cannot have a result of this type"));
        }
        let function_sets = self.function_attributes(ends_call_attributes)?;
        let attributes = self.attribute_list(&function_sets, result_attributes, &sets);
        let bundles = self.bundles()?;
        let list = self.locals.body.add_operands(&arguments);
        self.give_scratch(arguments);
        types.clear();
        sets.clear();
        self.scratch_types = types;
        self.scratch_sets = sets;
        self.remember_intrinsic(callee, ty);
        let call = Call { callee, ty, arguments: list, convention, attributes, tail, flags, bundles };
        Ok((self.locals.body.calls.push(call), result))
    }

    /// The function type of a call of a symbol that has no declaration (yet).
    fn remember_intrinsic(&mut self, callee: Operand, ty: TypeId) {
        if let OperandKind::Constant(constant) = callee.kind()
            && let crate::model::Constant::Global(id) = self.module.constants.get(constant)
            && self.module.globals[id].ty.is_none()
        {
            self.module.globals[id].ty = Some(ty).into();
        }
    }

    /// The function type of a call that writes only its result: mostly that of the symbol.
    fn call_type(&mut self, callee: Operand, result: TypeId, arguments: &[TypeId]) -> TypeId {
        if let OperandKind::Constant(constant) = callee.kind()
            && let crate::model::Constant::Global(id) = self.module.constants.get(constant)
            && let Some(ty) = self.module.globals[id].ty.expand()
            && self.module.types.signature(ty) == Some((result, arguments, false))
        {
            return ty;
        }
        self.module.types.function(result, arguments, false)
    }

    fn check_arguments(&self, ty: TypeId, found: &[TypeId], token: Token) -> Result<()> {
        let Some((_, params, variadic)) = self.module.types.signature(ty) else { return Ok(()) };
        let fits = found.len() >= params.len() && (variadic || found.len() == params.len());
        if fits && found.iter().zip(params).all(|(found, wanted)| found == wanted) {
            return Ok(());
        }
        Err(self.error_at(token, format!("the arguments do not fit the function type {}", self.type_name(ty))))
    }

    fn argument(&mut self, ty: TypeId) -> Result<Operand> {
        if ty == self.common.metadata {
            return self.metadata_operand();
        }
        if ty == self.common.label {
            return Ok(self.block_reference()?.into());
        }
        self.operand(ty)
    }

    fn callee(&mut self, space: u32) -> Result<Operand> {
        let ty = if space == 0 { self.common.ptr } else { self.pointer_type(space) };
        self.operand(ty)
    }

    fn bundles(&mut self) -> Result<crate::model::List> {
        if !self.eat(b'[') {
            return Ok(crate::model::List::default());
        }
        let mut bundles = Vec::new();
        while !self.at(b']') {
            let tag = self.string("the tag of an operand bundle")?;
            self.expect(b'(')?;
            let mut operands = Vec::new();
            while !self.at(b')') {
                operands.push(self.typed_operand()?.1);
                if !self.eat(b',') {
                    break;
                }
            }
            self.expect(b')')?;
            let operands = self.locals.body.add_operands(&operands);
            bundles.push(Bundle { tag, operands });
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b']')?;
        Ok(self.locals.body.add_bundles(&bundles))
    }

    pub(super) fn invoke(&mut self) -> Result<Read> {
        let (call, result) = self.call_parts(TailCall::None, Flags::NONE)?;
        self.expect_word("to")?;
        let normal = self.label()?;
        self.expect_word("unwind")?;
        let unwind = self.label()?;
        Ok((Instruction::Invoke { call, normal, unwind }, result))
    }

    pub(super) fn call_branch(&mut self) -> Result<Read> {
        let (call, result) = self.call_parts(TailCall::None, Flags::NONE)?;
        self.expect_word("to")?;
        let mut targets = vec![Operand::from(self.label()?)];
        targets.extend(self.label_list()?);
        let targets = self.locals.body.add_operands(&targets);
        Ok((Instruction::CallBranch { call, targets }, result))
    }

    /// `[label %a, label %b]`.
    fn label_list(&mut self) -> Result<Vec<Operand>> {
        self.expect(b'[')?;
        let mut labels = Vec::new();
        while !self.at(b']') {
            labels.push(self.label()?.into());
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b']')?;
        Ok(labels)
    }

    pub(super) fn phi(&mut self) -> Result<Read> {
        let flags = self.flags();
        let ty = self.value_type()?;
        let mut incoming = self.take_scratch();
        loop {
            self.expect(b'[')?;
            incoming.push(self.operand(ty)?);
            self.expect(b',')?;
            incoming.push(self.block_reference()?.into());
            self.expect(b']')?;
            if !self.at_more() {
                break;
            }
            self.bump();
        }
        let list = self.locals.body.add_operands(&incoming);
        self.give_scratch(incoming);
        Ok((Instruction::Phi { flags, incoming: list }, ty))
    }

    pub(super) fn return_value(&mut self) -> Result<Read> {
        if self.eat_word(b"void") {
            return Ok((Instruction::Return(crate::model::List::default()), self.common.void));
        }
        let (_, value) = self.typed_operand()?;
        let values = self.locals.body.add_operands(&[value]);
        Ok((Instruction::Return(values), self.common.void))
    }

    pub(super) fn branch(&mut self) -> Result<Read> {
        if self.at_word(b"label") {
            let block = self.label()?;
            return Ok((Instruction::Jump(block), self.common.void));
        }
        let token = self.token;
        let (ty, condition) = self.typed_operand()?;
        if ty != self.common.i1 {
            return Err(self.error_at(token, "the condition of a branch is of type i1"));
        }
        self.expect(b',')?;
        let yes = self.label()?;
        self.expect(b',')?;
        let no = self.label()?;
        Ok((Instruction::Branch { condition, yes, no }, self.common.void))
    }

    pub(super) fn switch(&mut self) -> Result<Read> {
        let token = self.token;
        let (ty, value) = self.typed_operand()?;
        if !matches!(self.module.types.get(ty), Type::Integer(_)) {
            return Err(self.error_at(token, "a switch is over integers"));
        }
        self.expect(b',')?;
        let default = self.label()?;
        self.expect(b'[')?;
        let mut cases = self.take_scratch();
        while !self.at(b']') {
            let token = self.token;
            let case = self.typed_constant()?;
            if self.module.constants.ty(case) != ty {
                return Err(self.error_at(token, "the case has not the type of the switch"));
            }
            cases.push(case.into());
            self.expect(b',')?;
            cases.push(self.label()?.into());
        }
        self.expect(b']')?;
        let list = self.locals.body.add_operands(&cases);
        self.give_scratch(cases);
        Ok((Instruction::Switch { value, default, cases: list }, self.common.void))
    }

    pub(super) fn indirect_branch(&mut self) -> Result<Read> {
        let (_, address) = self.typed_operand()?;
        self.expect(b',')?;
        let targets = self.label_list()?;
        let targets = self.locals.body.add_operands(&targets);
        Ok((Instruction::IndirectBranch { address, targets }, self.common.void))
    }

    /// Exception handling is read so far that values and blocks are known.
    pub(super) fn exception(&mut self, op: ExceptionOp) -> Result<Read> {
        let mut operands = Vec::new();
        let mut result = self.common.void;
        match op {
            ExceptionOp::Resume => operands.push(self.typed_operand()?.1),
            ExceptionOp::LandingPad => {
                result = self.value_type()?;
                loop {
                    if self.eat_word(b"catch") || self.eat_word(b"filter") {
                        operands.push(self.typed_operand()?.1);
                    } else if !self.eat_word(b"cleanup") {
                        break;
                    }
                }
            }
            ExceptionOp::CatchSwitch => {
                result = self.common.token;
                self.expect_word("within")?;
                self.parent_pad(&mut operands)?;
                operands.extend(self.label_list()?);
                self.unwind(&mut operands)?;
            }
            ExceptionOp::CatchPad | ExceptionOp::CleanupPad => {
                result = self.common.token;
                self.expect_word("within")?;
                self.parent_pad(&mut operands)?;
                self.expect(b'[')?;
                while !self.at(b']') {
                    operands.push(self.typed_operand()?.1);
                    if !self.eat(b',') {
                        break;
                    }
                }
                self.expect(b']')?;
            }
            ExceptionOp::CatchRet => {
                self.expect_word("from")?;
                self.parent_pad(&mut operands)?;
                self.expect_word("to")?;
                operands.push(self.label()?.into());
            }
            ExceptionOp::CleanupRet => {
                self.expect_word("from")?;
                self.parent_pad(&mut operands)?;
                self.unwind(&mut operands)?;
            }
        }
        let operands = self.locals.body.add_operands(&operands);
        Ok((Instruction::Exception { op, operands }, result))
    }

    fn parent_pad(&mut self, operands: &mut Vec<Operand>) -> Result<()> {
        let token = self.common.token;
        operands.push(self.operand(token)?);
        Ok(())
    }

    fn unwind(&mut self, operands: &mut Vec<Operand>) -> Result<()> {
        self.expect_word("unwind")?;
        if self.eat_word(b"to") {
            return self.expect_word("caller");
        }
        operands.push(self.label()?.into());
        Ok(())
    }
}

/// Whether the word ends the attributes of a call: what follows in `invoke`, or the next instruction.
fn ends_call_attributes(word: &[u8]) -> bool {
    match word {
        b"to" | b"unwind" | b"uselistorder" | b"uselistorder_bb" => true,
        _ => is_mnemonic(word),
    }
}
