//! Operands of the instructions that compute, and of those that threads execute together. One function a group of
//! shapes; the shape comes from the opcode table.

use smallvec::{SmallVec, smallvec};

use super::PResult;
use super::body::{Body, Parsed, Results};
use super::cursor::{Cursor, clip, counted, hint};
use super::lexer::Kind;
use super::types::value_type;
use crate::entities::Value;
use crate::flags::{Flags, group};
use crate::instruction::{Extra, InstData};
use crate::opcode::{FloatCC, IntCC, Opcode, Shape};
use crate::sreg_type;
use crate::types::{MAX_LANES, Type};
use ptxc_targets::SpecialReg;

impl<'a> Body<'_, 'a> {
    /// An instruction from its mnemonic on. `given` is the number of names left of `=`.
    pub fn operation(&mut self, c: &mut Cursor<'_, 'a>, given: usize) -> PResult<Parsed> {
        let token = c.expect(Kind::Word, "an instruction")?;
        let word = c.lexeme(token);
        let Some(op) = Opcode::from_text(word) else {
            if word.starts_with("ptx.") {
                return self.target_operation(c, token, given);
            }
            if let Some(name) = word.strip_prefix("sreg.") {
                let Some(register) = SpecialReg::from_name(name) else {
                    let known = hint(name, SpecialReg::ALL.iter().map(|r| &r.name()[1..]));
                    return Err(c.error_at(token, format!("unknown special register `{}`{known}", clip(name))));
                };
                return Ok(self.make(
                    Opcode::Sreg,
                    Type::INVALID,
                    &[],
                    Extra::Sreg(register),
                    smallvec![sreg_type(register)],
                ));
            }
            let known = hint(word, Opcode::ALL.iter().map(|op| op.text()));
            return Err(c.error_at(token, format!("unknown instruction `{}`{known}", clip(word))));
        };
        let flags = self.flags(c, op)?;
        let mut parsed = match op.shape() {
            Shape::Unary | Shape::Binary | Shape::BinaryOverflow | Shape::Ternary | Shape::FloatClass => {
                self.arithmetic(c, op)
            }
            Shape::Convert | Shape::ConvertRandom => self.convert(c, op),
            Shape::IntCompare | Shape::FloatCompare => self.compare(c, op),
            Shape::Select => self.select(c, op),
            Shape::BuildVector | Shape::Extract | Shape::Insert | Shape::Shuffle | Shape::Splat | Shape::Reduce => {
                self.vector(c, op)
            }
            Shape::Load
            | Shape::Store
            | Shape::AtomicRmw
            | Shape::Cmpxchg
            | Shape::Fence
            | Shape::MemCopy
            | Shape::MemSet
            | Shape::Gep
            | Shape::Alloca
            | Shape::IsSpace => self.memory(c, op),
            Shape::Jump
            | Shape::Branch
            | Shape::Switch
            | Shape::Return
            | Shape::Nullary
            | Shape::Call
            | Shape::CallIndirect
            | Shape::Predicate => self.control(c, op),
            Shape::Asm => self.inline_assembly(c),
            Shape::Sreg => Err(c.error_at(token, "a special register is read with `sreg.NAME`")),
            Shape::Target => Err(c.error_at(token, "a target operation is written `ptx.MNEMONIC`")),
            _ => self.threads(c, op, given),
        }?;
        parsed.data.flags |= flags;
        Ok(parsed)
    }

    /// Assembles an instruction.
    pub fn make(&mut self, op: Opcode, ty: Type, args: &[Value], extra: Extra, results: Results) -> Parsed {
        let args = self.dfg.list(args);
        Parsed { data: InstData { op, flags: Flags::EMPTY, ty, args, extra }, results }
    }

    fn flags(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Flags> {
        let mut flags = Flags::EMPTY;
        while c.kind() == Kind::Word
            && let Some(flag) = Flags::from_text(c.text())
        {
            let token = c.advance();
            if flag.bits() & !op.info().flags != 0 || flag == Flags::UNIFORM {
                let message = format!("`{}` takes no flag `{}`", op.text(), c.lexeme(token));
                return Err(c.error_at(token, message));
            }
            let rounding = (flags | flag).bits() & group::ROUND;
            if rounding.count_ones() > 1 {
                return Err(c.error_at(token, "a second rounding mode is given"));
            }
            flags |= flag;
        }
        Ok(flags)
    }

    fn arithmetic(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        let ty = value_type(c)?;
        let count = match op.shape() {
            Shape::Unary | Shape::FloatClass => 1,
            Shape::Ternary => 3,
            _ => 2,
        };
        let mut args: [Value; 3] = [Value::from_u32(0); 3];
        for (index, arg) in args.iter_mut().enumerate().take(count) {
            if index > 0 {
                c.punct(Kind::Comma)?;
            }
            *arg = self.operand(c, ty)?;
        }
        let mut extra = Extra::None;
        let results: Results = match op.shape() {
            Shape::FloatClass => {
                c.punct(Kind::Comma)?;
                extra = Extra::Imm(c.unsigned("a class mask", 1023)?);
                smallvec![ty.as_bool()]
            }
            Shape::BinaryOverflow => smallvec![ty, ty.as_bool()],
            _ => smallvec![ty],
        };
        Ok(self.make(op, ty, &args[..count], extra, results))
    }

    fn convert(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        let from = value_type(c)?;
        let mut args: SmallVec<[Value; 2]> = smallvec![self.operand(c, from)?];
        if op.shape() == Shape::ConvertRandom {
            c.punct(Kind::Comma)?;
            args.push(self.any_operand(c, Type::I32)?);
        }
        c.word("to")?;
        let to = value_type(c)?;
        Ok(self.make(op, to, &args, Extra::None, smallvec![to]))
    }

    fn compare(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        let token = c.expect(Kind::Word, "a condition")?;
        let word = c.lexeme(token);
        let unknown = |known: String| c.error_at(token, format!("unknown condition `{}`{known}", clip(word)));
        let extra = if op.shape() == Shape::IntCompare {
            Extra::IntCC(
                IntCC::from_text(word).ok_or_else(|| unknown(hint(word, IntCC::ALL.iter().map(|cc| cc.text()))))?,
            )
        } else {
            let cc = FloatCC::from_text(word);
            Extra::FloatCC(cc.ok_or_else(|| unknown(hint(word, FloatCC::ALL.iter().map(|cc| cc.text()))))?)
        };
        let ty = value_type(c)?;
        let a = self.operand(c, ty)?;
        c.punct(Kind::Comma)?;
        let b = self.operand(c, ty)?;
        Ok(self.make(op, ty, &[a, b], extra, smallvec![ty.as_bool()]))
    }

    fn select(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        let condition = value_type(c)?;
        let cond = self.operand(c, condition)?;
        c.punct(Kind::Comma)?;
        let ty = value_type(c)?;
        let a = self.operand(c, ty)?;
        c.punct(Kind::Comma)?;
        let b = self.operand(c, ty)?;
        Ok(self.make(op, ty, &[cond, a, b], Extra::None, smallvec![ty]))
    }

    fn vector(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        let token = c.token();
        let ty = value_type(c)?;
        if !ty.is_vector() {
            return Err(c.error_at(token, format!("`{}` takes a vector type, {ty} is a scalar", op.text())));
        }
        let scalar = ty.scalar();
        match op.shape() {
            Shape::BuildVector => {
                let mut args = vec![self.operand(c, scalar)?];
                while c.eat(Kind::Comma).is_some() {
                    args.push(self.operand(c, scalar)?);
                }
                if args.len() != ty.lanes() as usize {
                    return Err(c.error_at(
                        token,
                        format!("{ty} has {}, {} given", counted(ty.lanes() as usize, "lane"), args.len()),
                    ));
                }
                Ok(self.make(op, ty, &args, Extra::None, smallvec![ty]))
            }
            Shape::Extract => {
                let vector = self.operand(c, ty)?;
                c.punct(Kind::Comma)?;
                let index = self.any_operand(c, Type::I32)?;
                Ok(self.make(op, ty, &[vector, index], Extra::None, smallvec![scalar]))
            }
            Shape::Insert => {
                let vector = self.operand(c, ty)?;
                c.punct(Kind::Comma)?;
                let element = self.operand(c, scalar)?;
                c.punct(Kind::Comma)?;
                let index = self.any_operand(c, Type::I32)?;
                Ok(self.make(op, ty, &[vector, element, index], Extra::None, smallvec![ty]))
            }
            Shape::Splat => {
                let element = self.operand(c, scalar)?;
                Ok(self.make(op, ty, &[element], Extra::None, smallvec![ty]))
            }
            Shape::Reduce => {
                let vector = self.operand(c, ty)?;
                Ok(self.make(op, ty, &[vector], Extra::None, smallvec![scalar]))
            }
            _ => self.shuffle(c, op, ty),
        }
    }

    fn shuffle(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode, ty: Type) -> PResult<Parsed> {
        let a = self.operand(c, ty)?;
        c.punct(Kind::Comma)?;
        let b = self.operand(c, ty)?;
        c.punct(Kind::Comma)?;
        let open = c.punct(Kind::LBracket)?;
        let mut mask: Vec<i32> = Vec::new();
        c.list(Kind::RBracket, |c| {
            if c.eat_word("poison") {
                mask.push(-1);
            } else {
                mask.push(c.unsigned("a lane or `poison`", u64::from(2 * MAX_LANES))? as i32);
            }
            Ok(())
        })?;
        if mask.is_empty() || mask.len() > MAX_LANES as usize {
            return Err(c.error_at(open, format!("a shuffle gives 1 to {MAX_LANES} lanes, not {}", mask.len())));
        }
        let result = ty.scalar().with_lanes(mask.len() as u32);
        let mask = self.dfg.masks.push(mask);
        Ok(self.make(op, ty, &[a, b], Extra::Mask(mask), smallvec![result]))
    }

    /// Operands without written types, separated by commas: at least `least`, at most `most`.
    fn untyped(&mut self, c: &mut Cursor<'_, 'a>, least: usize, most: usize) -> PResult<Vec<Value>> {
        let mut args = Vec::new();
        loop {
            args.push(self.any_operand(c, Type::I32)?);
            if args.len() == most || c.kind() != Kind::Comma {
                break;
            }
            c.advance();
        }
        if args.len() < least {
            return Err(c.expected("`,` and a further operand"));
        }
        Ok(args)
    }

    fn threads(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode, given: usize) -> PResult<Parsed> {
        let mut ty = Type::INVALID;
        let mut args = Vec::new();
        let results: Results = match op.shape() {
            Shape::BarrierSync => {
                let least = if op == Opcode::BarrierArrive { 2 } else { 1 };
                args = self.untyped(c, least, 2)?;
                smallvec![]
            }
            Shape::BarrierReduce => {
                args = self.barrier_reduce(c)?;
                smallvec![if op == Opcode::BarrierRedPopc { Type::I32 } else { Type::I1 }]
            }
            Shape::WarpMask => {
                args = self.untyped(c, 1, 1)?;
                smallvec![]
            }
            Shape::Shuffle4 => {
                ty = value_type(c)?;
                args.push(self.operand(c, ty)?);
                c.punct(Kind::Comma)?;
                args.extend(self.untyped(c, 3, 3)?);
                if given == 2 { smallvec![ty, Type::I1] } else { smallvec![ty] }
            }
            Shape::Vote | Shape::Ballot => {
                args.push(self.operand(c, Type::I1)?);
                c.punct(Kind::Comma)?;
                args.extend(self.untyped(c, 1, 1)?);
                smallvec![if op.shape() == Shape::Vote { Type::I1 } else { Type::I32 }]
            }
            Shape::MatchAny | Shape::MatchAll | Shape::Redux => {
                ty = value_type(c)?;
                args.push(self.operand(c, ty)?);
                c.punct(Kind::Comma)?;
                args.extend(self.untyped(c, 1, 1)?);
                match op.shape() {
                    Shape::MatchAll => smallvec![Type::I32, Type::I1],
                    Shape::Redux => smallvec![ty],
                    _ => smallvec![Type::I32],
                }
            }
            Shape::ActiveMask => smallvec![Type::I32],
            Shape::Elect => {
                args = self.untyped(c, 1, 1)?;
                smallvec![Type::I32, Type::I1]
            }
            _ => return Err(c.error(format!("`{}` cannot be written in text", op.text()))),
        };
        Ok(self.make(op, ty, &args, Extra::None, results))
    }

    /// `%id, [%count,] %pred`; the last operand is the i1.
    fn barrier_reduce(&mut self, c: &mut Cursor<'_, 'a>) -> PResult<Vec<Value>> {
        let mut args = vec![self.any_operand(c, Type::I32)?];
        c.punct(Kind::Comma)?;
        // With a count two operands follow, and the first of them is not the predicate.
        let mut ahead = *c;
        let mut commas = 0;
        while ahead.kind() != Kind::End {
            commas += usize::from(ahead.kind() == Kind::Comma && !ahead.is_word("loc"));
            if ahead.is_word("loc") {
                break;
            }
            ahead.advance();
        }
        if commas > 0 {
            args.push(self.any_operand(c, Type::I32)?);
            c.punct(Kind::Comma)?;
        }
        args.push(self.operand(c, Type::I1)?);
        Ok(args)
    }
}
