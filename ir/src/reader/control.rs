//! Operands of terminators and calls.

use smallvec::{SmallVec, smallvec};

use super::PResult;
use super::body::{Body, Parsed, too_few, too_many};
use super::constants::int_literal;
use super::cursor::{Cursor, clip};
use super::lexer::Kind;
use super::types::value_type;
use crate::flags::Flags;
use crate::instruction::{BlockCall, Extra, SwitchData, TargetOp};
use crate::module::Symbol;
use crate::opcode::{Opcode, Shape};
use crate::types::Type;

impl<'a> Body<'_, 'a> {
    pub(super) fn control(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        match op.shape() {
            Shape::Jump => {
                let target = self.target(c)?;
                Ok(self.make(op, Type::INVALID, &[], Extra::Jump(target), smallvec![]))
            }
            Shape::Branch => self.branch(c, op),
            Shape::Switch => self.switch(c, op),
            Shape::Return => self.ret(c, op),
            Shape::Call => self.call(c, op),
            Shape::CallIndirect => self.call_indirect(c, op),
            Shape::Predicate => {
                let condition = self.operand(c, Type::I1)?;
                Ok(self.make(op, Type::INVALID, &[condition], Extra::None, smallvec![]))
            }
            _ => Ok(self.make(op, Type::INVALID, &[], Extra::None, smallvec![])),
        }
    }

    /// `block` or `block(args)`
    fn target(&mut self, c: &mut Cursor<'_, 'a>) -> PResult<BlockCall> {
        let token = c.token();
        let block = self.block(c)?;
        let types: SmallVec<[Type; 8]> = self.dfg.block_params(block).iter().map(|v| self.dfg.ty(*v)).collect();
        let is_entry = self.is_entry(block);
        let types = if is_entry { &[] } else { &types[..] };
        let label = c.lexeme(token);
        let what = || format!("`{}`", clip(label));
        if c.kind() == Kind::LParen {
            let args = self.arguments(c, types, &what)?;
            return Ok(self.dfg.block_call(block, &args));
        }
        if !types.is_empty() {
            return Err(c.error_at(token, too_few(&what(), types.len(), 0)));
        }
        Ok(self.dfg.block_call(block, &[]))
    }

    fn branch(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        let condition = self.operand(c, Type::I1)?;
        c.punct(Kind::Comma)?;
        let then = self.target(c)?;
        c.punct(Kind::Comma)?;
        let other = self.target(c)?;
        let mut flags = Flags::EMPTY;
        let mut weights = (0, 0);
        while c.eat(Kind::Comma).is_some() {
            let token = c.expect(Kind::Word, "`uniform` or `weights`")?;
            match c.lexeme(token) {
                "uniform" => flags |= Flags::UNIFORM,
                "weights" => {
                    c.punct(Kind::LParen)?;
                    let first = c.unsigned("a weight", u64::from(u16::MAX))? as u16;
                    c.punct(Kind::Comma)?;
                    let second = c.unsigned("a weight", u64::from(u16::MAX))? as u16;
                    c.punct(Kind::RParen)?;
                    weights = (first, second);
                }
                word => return Err(c.error_at(token, format!("`br` takes no attribute `{}`", clip(word)))),
            }
        }
        let extra = Extra::Branch { then, other, weights };
        let mut parsed = self.make(op, Type::INVALID, &[condition], extra, smallvec![]);
        parsed.data.flags = flags;
        Ok(parsed)
    }

    fn switch(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        let token = c.token();
        let ty = value_type(c)?;
        if !ty.is_int() {
            return Err(c.error_at(token, format!("`switch` takes an integer type, not {ty}")));
        }
        let value = self.operand(c, ty)?;
        c.punct(Kind::Comma)?;
        let default = self.target(c)?;
        let mut cases = Vec::new();
        c.punct(Kind::LBracket)?;
        c.list(Kind::RBracket, |c| {
            let token = c.expect(Kind::Number, "the value of a case")?;
            let bits = int_literal(c, token, ty.scalar_bits())?;
            c.punct(Kind::Colon)?;
            let target = self.target(c)?;
            cases.push((bits, target));
            Ok(())
        })?;
        let id = self.dfg.switches.push(SwitchData { default, cases });
        Ok(self.make(op, ty, &[value], Extra::Switch(id), smallvec![]))
    }

    fn ret(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        let sig = &self.cx.module.funcs[self.func].sig;
        let types = self.cx.module.sig_results(sig);
        let first = c.token();
        let mut args: SmallVec<[_; 8]> = SmallVec::new();
        if c.kind() != Kind::End && !c.is_word("loc") {
            loop {
                let Some(ty) = types.get(args.len()) else {
                    return Err(c.error(too_many("`ret` of this function", types.len())));
                };
                args.push(self.operand(c, *ty)?);
                if c.eat(Kind::Comma).is_none() {
                    break;
                }
            }
        }
        if args.len() != types.len() {
            return Err(c.error_at(first, too_few("`ret` of this function", types.len(), args.len())));
        }
        Ok(self.make(op, Type::INVALID, &args, Extra::None, smallvec![]))
    }

    fn call(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        let token = c.expect(Kind::Symbol, "the `@name` of a function")?;
        let func = match self.cx.symbol(c, token)? {
            Symbol::Func(func) => func,
            Symbol::Global(_) => {
                return Err(c.error_at(token, format!("`{}` is no function", clip(c.lexeme(token)))));
            }
        };
        let name = c.lexeme(token);
        let module = &self.cx.module;
        let sig = &module.funcs[func].sig;
        let (params, results) = (module.sig_params(sig), module.sig_results(sig));
        let args = self.arguments(c, &params, &|| format!("`{}`", clip(name)))?;
        Ok(self.make(op, Type::INVALID, &args, Extra::Call(func), results.into()))
    }

    fn call_indirect(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        let sig = self.cx.signature(c)?;
        let (params, results) = (self.cx.module.sig_params(&sig), self.cx.module.sig_results(&sig));
        c.punct(Kind::Comma)?;
        let mut args = vec![self.any_operand(c, Type::PTR)?];
        args.extend(self.arguments(c, &params, &|| "this signature".to_string())?);
        let sig = self.dfg.signatures.push(sig);
        Ok(self.make(op, Type::INVALID, &args, Extra::CallIndirect(sig), results.into()))
    }

    /// `asm "text" (type operand, …) [-> (type, …)]`
    pub(super) fn inline_assembly(&mut self, c: &mut Cursor<'_, 'a>) -> PResult<Parsed> {
        let token = c.expect(Kind::String, "the text of the assembly in quotes")?;
        let text = String::from_utf8(c.string(token)?).map_err(|_| c.error_at(token, "the text is not UTF-8"))?;
        let mut args = Vec::new();
        c.punct(Kind::LParen)?;
        c.list(Kind::RParen, |c| {
            let ty = value_type(c)?;
            args.push(self.operand(c, ty)?);
            Ok(())
        })?;
        let mut results: SmallVec<[Type; 4]> = SmallVec::new();
        if c.eat(Kind::Arrow).is_some() {
            c.punct(Kind::LParen)?;
            c.list(Kind::RParen, |c| {
                results.push(value_type(c)?);
                Ok(())
            })?;
        }
        let id = self.dfg.target_ops.push(TargetOp::Opaque { text });
        Ok(self.make(Opcode::Asm, Type::INVALID, &args, Extra::Target(id), results))
    }
}
