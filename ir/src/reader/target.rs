//! Target operations: `ptx.` and a mnemonic of the instruction table.
//!
//! Operands are read as they stand; the table then says which of its forms has as many destinations as there are names
//! left of `=`, and what types they have.

use ptxc_targets::{FormError, Kind as OperandKind, Lanes, OperandDesc, Role, SpecialReg, Tok, tok};
use smallvec::{SmallVec, smallvec};

use super::PResult;
use super::body::{Body, Parsed, Results};
use super::constants::parse_float;
use super::cursor::{Cursor, clip, counted, hint, integer};
use super::lexer::{Kind, Token};
use super::types::{starts_type, value_type};
use crate::entities::Value;
use crate::instruction::{Extra, GroupKind, TargetOp, TargetOperand};
use crate::module::Symbol;
use crate::opcode::Opcode;
use crate::target_ops::{operand_len, register_type, result_type, shapes};
use crate::types::{FloatKind, Type};

/// Deepest nesting of brackets in an operand.
const MAX_DEPTH: u32 = 4;
/// Most entries of an operand list.
const MAX_OPERANDS: usize = 4096;

type Toks = SmallVec<[Tok; 12]>;

/// Operands as written, with the values they name.
#[derive(Default)]
struct Operands {
    list: Vec<TargetOperand>,
    args: Vec<Value>,
}

impl Operands {
    fn arg(&mut self, value: Value) -> u16 {
        self.args.push(value);
        (self.args.len() - 1) as u16
    }
}

/// One way to lay out destinations before the operands that are written.
struct Plan {
    operands: Vec<TargetOperand>,
    results: Vec<ptxc_targets::RegType>,
}

impl<'a> Body<'_, 'a> {
    /// A target operation from behind its first word `token`. `given` is the number of names left of `=`.
    pub(super) fn target_operation(&mut self, c: &mut Cursor<'_, 'a>, token: Token, given: usize) -> PResult<Parsed> {
        let mut operands = Operands::default();
        let mut mnemonic = c.lexeme(token).strip_prefix("ptx.").unwrap_or("");
        let mut at = token;
        let mut guard = None;
        if mnemonic.is_empty() {
            c.punct(Kind::At)?;
            let negated = c.eat(Kind::Bang).is_some();
            let predicate = self.operand(c, Type::I1)?;
            guard = Some((operands.arg(predicate), negated));
            at = c.expect(Kind::Word, "the mnemonic of a target operation")?;
            mnemonic = c.lexeme(at);
        }
        let toks = pieces(c, at, mnemonic)?;
        let double = toks.iter().any(|tok| matches!(*tok, tok::F64 | tok::B64));
        while c.kind() != Kind::End && !c.is_word("loc") {
            self.target_operand(c, &mut operands, double, 0)?;
            if c.eat(Kind::Comma).is_none() {
                break;
            }
        }
        let plan =
            self.plan(&toks, &mut operands, given, guard.is_some()).map_err(|message| c.error_at(at, message))?;
        let results: Results = plan.results.iter().map(|ty| result_type(*ty)).collect();
        let id = self.dfg.target_ops.push(TargetOp::Known { toks, guard, operands: plan.operands });
        Ok(self.make(Opcode::Target, Type::INVALID, &operands.args, Extra::Target(id), results))
    }

    /// One operand, appended in prefix form.
    fn target_operand(&mut self, c: &mut Cursor<'_, 'a>, out: &mut Operands, double: bool, depth: u32) -> PResult<()> {
        let token = c.token();
        if depth >= MAX_DEPTH || out.list.len() >= MAX_OPERANDS {
            return Err(c.error("the operands of a target operation are nested too deep or too many"));
        }
        let start = out.list.len();
        let group = match token.kind {
            Kind::LBrace => Some((GroupKind::Vector, Kind::RBrace)),
            Kind::LBracket => Some((GroupKind::Address, Kind::RBracket)),
            Kind::LParen => Some((GroupKind::Paren, Kind::RParen)),
            _ => None,
        };
        match group {
            Some((kind, close)) => {
                c.advance();
                out.list.push(TargetOperand::Group(kind, 0));
                let mut len = 0u16;
                c.list(close, |c| {
                    self.target_operand(c, out, double, depth + 1)?;
                    len += 1;
                    if kind == GroupKind::Address {
                        len += u16::from(offset(c, out)?);
                    }
                    Ok(())
                })?;
                out.list[start] = TargetOperand::Group(kind, len);
            }
            None => {
                let leaf = self.target_leaf(c, out, double)?;
                out.list.push(leaf);
            }
        }
        if c.eat(Kind::Pipe).is_some() {
            out.list.insert(start, TargetOperand::Group(GroupKind::Pair, 2));
            self.target_operand(c, out, double, depth + 1)?;
        }
        Ok(())
    }

    fn target_leaf(&mut self, c: &mut Cursor<'_, 'a>, out: &mut Operands, double: bool) -> PResult<TargetOperand> {
        let token = c.token();
        match token.kind {
            Kind::Bang => {
                c.advance();
                let predicate = self.operand(c, Type::I1)?;
                Ok(TargetOperand::ArgNot(out.arg(predicate)))
            }
            Kind::Local => {
                let value = self.any_operand(c, Type::I32)?;
                Ok(TargetOperand::Arg(out.arg(value)))
            }
            Kind::Minus => {
                c.advance();
                if let Some(lanes) = Lanes::from_text(c.text())
                    && let TargetOperand::Part { arg, .. } = self.lanes(c, out)?
                {
                    return Ok(TargetOperand::Part { arg, lanes: Some(lanes), minus: true });
                }
                let value = self.any_operand(c, Type::I32)?;
                Ok(TargetOperand::Part { arg: out.arg(value), lanes: None, minus: true })
            }
            Kind::Number => {
                c.advance();
                immediate(c, token, double)
            }
            Kind::Symbol => match self.cx.symbol(c, token)? {
                Symbol::Global(global) => {
                    c.advance();
                    let offset = super::constants::offset(c)?;
                    let offset =
                        i32::try_from(offset).map_err(|_| c.error_at(token, "the offset does not fit in 32 bits"))?;
                    Ok(TargetOperand::Global(global, offset))
                }
                Symbol::Func(_) => {
                    let value = self.any_operand(c, Type::PTR)?;
                    Ok(TargetOperand::Arg(out.arg(value)))
                }
            },
            Kind::Word if c.is_word("_") => {
                c.advance();
                Ok(TargetOperand::Sink)
            }
            Kind::Word if Lanes::from_text(c.text()).is_some() => self.lanes(c, out),
            Kind::Word if c.text().starts_with("sreg.") => {
                c.advance();
                let name = c.lexeme(token).strip_prefix("sreg.").unwrap_or("");
                let known = || hint(name, SpecialReg::ALL.iter().map(|r| &r.name()[1..]));
                let register = SpecialReg::from_name(name).ok_or_else(|| {
                    c.error_at(token, format!("unknown special register `{}`{}", clip(name), known()))
                })?;
                Ok(TargetOperand::Sreg(register))
            }
            _ if starts_type(c) => {
                let ty = value_type(c)?;
                let value = self.operand(c, ty)?;
                Ok(TargetOperand::Arg(out.arg(value)))
            }
            _ => Err(c.expected("an operand")),
        }
    }

    /// `b0(%a)`: some lanes of a value; `b0(_)` as first operand: the lanes of the result that are written.
    fn lanes(&mut self, c: &mut Cursor<'_, 'a>, out: &mut Operands) -> PResult<TargetOperand> {
        let token = c.advance();
        let Some(lanes) = Lanes::from_text(c.lexeme(token)) else { return Err(c.expected("an operand")) };
        c.punct(Kind::LParen)?;
        let operand = if c.eat_word("_") {
            if !out.list.is_empty() {
                return Err(c.error_at(token, "the lanes of the result stand before all operands"));
            }
            TargetOperand::ResultPart { result: 0, lanes }
        } else {
            let value = self.any_operand(c, Type::I32)?;
            TargetOperand::Part { arg: out.arg(value), lanes: Some(lanes), minus: false }
        };
        c.punct(Kind::RParen)?;
        Ok(operand)
    }

    /// Finds the form whose destinations are the names left of `=`.
    fn plan(&mut self, toks: &[Tok], operands: &mut Operands, given: usize, guarded: bool) -> Result<Plan, String> {
        let lists = ptxc_targets::operand_lists(toks);
        // A layout may add constants, which go with it.
        let args = operands.args.len();
        let mut search = Search { toks, given, best: None, counts: Vec::new() };
        for list in &lists {
            let dests: Vec<&OperandDesc> = list.iter().take_while(|o| o.role == Role::Dest).collect();
            let inout = list.first().filter(|o| o.role == Role::ReadWrite);
            for present in variants(&dests) {
                for sinks in 0..=leading_sinks(&operands.list).min(present.len()) {
                    if let Some(plan) = self.lay_out(&present, inout, sinks, operands)
                        && self.accept(&mut search, &plan, operands, sinks)?
                    {
                        return Ok(plan);
                    }
                    operands.args.truncate(args);
                }
            }
            // Under a guard, what the results are where it is false may be given in their place.
            let tied = if guarded { variants(&dests) } else { SmallVec::new() };
            for present in tied.iter().filter(|present| !present.is_empty()) {
                if let Some(plan) = self.lay_out_tied(present, operands)
                    && self.accept(&mut search, &plan, operands, 0)?
                {
                    return Ok(plan);
                }
                operands.args.truncate(args);
            }
        }
        Err(search.error())
    }

    /// Whether a plan has the results that are named, and the table takes it.
    fn accept(&self, search: &mut Search, plan: &Plan, operands: &Operands, sinks: usize) -> Result<bool, String> {
        let wanted = plan.results.len();
        // Results without names are made too, where no name is given.
        if wanted != search.given && !(search.given == 0 && sinks == 0) {
            search.counts.push(wanted);
            return Ok(false);
        }
        let result = |index: u16| plan.results.get(usize::from(index)).copied();
        let register = |index: u16| register_type(self.dfg.ty(*operands.args.get(usize::from(index))?));
        let Some(shapes) = shapes(&self.cx.module, &plan.operands, &register, &result) else {
            return Err("an operand is in no one register: give its parts".to_string());
        };
        match ptxc_targets::resolve(search.toks, &shapes) {
            Ok(_) => Ok(true),
            Err(error) => {
                search.best.get_or_insert(error);
                Ok(false)
            }
        }
    }

    /// Destinations, then the operands as written without the first `sinks` of them.
    fn lay_out(
        &mut self,
        dests: &[Destination],
        inout: Option<&OperandDesc>,
        sinks: usize,
        operands: &mut Operands,
    ) -> Option<Plan> {
        let mut plan = Plan { operands: Vec::new(), results: Vec::new() };
        let part = operands.list.first().copied().filter(|o| matches!(o, TargetOperand::ResultPart { .. }));
        if part.is_some() && dests.is_empty() {
            return None;
        }
        for (index, dest) in dests.iter().enumerate() {
            if dest.opens_pair {
                plan.operands.push(TargetOperand::Group(GroupKind::Pair, 2));
            }
            if index < sinks {
                plan.operands.push(TargetOperand::Sink);
                continue;
            }
            if index == 0
                && let Some(part) = part
            {
                plan.operands.push(part);
                plan.results.push(dest.ty);
                continue;
            }
            if let Some(len) = dest.vector {
                plan.operands.push(TargetOperand::Group(GroupKind::Vector, len));
            }
            for _ in 0..dest.vector.unwrap_or(1) {
                plan.operands.push(TargetOperand::Result(plan.results.len() as u16));
                plan.results.push(dest.ty);
            }
        }
        let mut written = operands.list.get(sinks + usize::from(part.is_some())..)?.to_vec();
        if let Some(desc) = inout {
            let end = operand_len(&written);
            let first = written.get_mut(..end)?;
            let leaves = first.iter().filter(|o| !matches!(o, TargetOperand::Group(..))).count();
            self.tie(&mut plan, first, std::iter::repeat_n(desc.ty, leaves), operands)?;
        }
        plan.operands.append(&mut written);
        Some(plan)
    }

    /// The operands as written, of which the first stand in the place of the destinations: values that the results
    /// have where the guard is false.
    fn lay_out_tied(&mut self, dests: &[Destination], operands: &mut Operands) -> Option<Plan> {
        let mut plan = Plan { operands: Vec::new(), results: Vec::new() };
        let mut written = operands.list.clone();
        let types = dests.iter().flat_map(|d| std::iter::repeat_n(d.ty, usize::from(d.vector.unwrap_or(1))));
        self.tie(&mut plan, &mut written, types, operands)?;
        plan.operands = written;
        Some(plan)
    }

    /// Makes results of as many of the first operands as there are types, which are read as well.
    fn tie(
        &mut self,
        plan: &mut Plan,
        written: &mut [TargetOperand],
        mut types: impl Iterator<Item = ptxc_targets::RegType>,
        operands: &mut Operands,
    ) -> Option<()> {
        for operand in written {
            if matches!(operand, TargetOperand::Group(..)) {
                continue;
            }
            let Some(ty) = types.next() else { break };
            let arg = match *operand {
                TargetOperand::Sink => continue,
                TargetOperand::Arg(arg) => arg,
                // A constant start of an accumulator.
                TargetOperand::F32(bits) => operands.arg(self.dfg.bits(result_type(ty), u128::from(bits))),
                TargetOperand::Imm(value) => operands.arg(self.dfg.int(result_type(ty), value)),
                _ => return None,
            };
            *operand = TargetOperand::InOut { result: plan.results.len() as u16, arg };
            plan.results.push(ty);
        }
        types.next().is_none().then_some(())
    }
}

/// The state of looking for a form.
struct Search<'t> {
    toks: &'t [Tok],
    /// Names left of `=`.
    given: usize,
    /// What is wrong with the first plan of so many results.
    best: Option<FormError>,
    /// Numbers of results that other plans have.
    counts: Vec<usize>,
}

impl Search<'_> {
    /// Why nothing was found.
    fn error(self) -> String {
        let given = counted(self.given, "name");
        if let Some(error) = self.best {
            return error.to_string();
        }
        if let Some(wanted) = self.counts.first() {
            return format!("`{}` has {}, {given} left of `=`", mnemonic(self.toks), counted(*wanted, "result"));
        }
        match ptxc_targets::resolve(self.toks, &[]) {
            Err(error) => error.to_string(),
            Ok(_) => format!("`{}` has no results, {given} left of `=`", mnemonic(self.toks)),
        }
    }
}

/// One destination of a form.
#[derive(Clone, Copy)]
struct Destination {
    ty: ptxc_targets::RegType,
    /// Number of registers in braces.
    vector: Option<u16>,
    /// It is the first half of a pair whose second half is there.
    opens_pair: bool,
}

/// The ways to leave out optional destinations: all there first, then fewer. A vector of one may be written with or
/// without braces in the table, so both are tried.
fn variants(dests: &[&OperandDesc]) -> SmallVec<[SmallVec<[Destination; 4]>; 4]> {
    let optional = dests.iter().filter(|d| d.optional || d.paired).count().min(3);
    let mut out = SmallVec::new();
    for missing in 0..=optional {
        let mut left_out = 0;
        let mut variant: SmallVec<[Destination; 4]> = SmallVec::new();
        for dest in dests.iter().rev() {
            if left_out < missing && dest.optional {
                left_out += 1;
                continue;
            }
            let vector = match dest.kind {
                OperandKind::Vector { len } => Some(len),
                _ => None,
            };
            variant.insert(0, Destination { ty: dest.ty, vector, opens_pair: false });
            if dest.paired {
                variant[0].opens_pair = true;
            }
        }
        if left_out < missing {
            break;
        }
        // The mark stands on the second half so far.
        for at in 0..variant.len() {
            if variant[at].opens_pair && at > 0 {
                variant[at].opens_pair = false;
                variant[at - 1].opens_pair = true;
            }
        }
        if let [only] = variant[..]
            && only.vector.is_none()
        {
            out.push(variant);
            out.push(smallvec![Destination { vector: Some(1), ..only }]);
        } else {
            out.push(variant);
        }
    }
    out
}

fn leading_sinks(operands: &[TargetOperand]) -> usize {
    operands.iter().take_while(|o| **o == TargetOperand::Sink).count()
}

fn mnemonic(toks: &[Tok]) -> String {
    toks.iter().map(|tok| tok.text()).collect::<Vec<_>>().join(".")
}

/// The mnemonic's pieces.
fn pieces(c: &Cursor, at: Token, mnemonic: &str) -> PResult<Toks> {
    let mut toks = Toks::new();
    for piece in mnemonic.split('.') {
        match Tok::from_text(piece) {
            Some(tok) => toks.push(tok),
            None => {
                let message = match toks.first() {
                    None => format!("unknown target instruction `{}`", clip(piece)),
                    Some(head) => format!("unknown modifier `.{}` of `{head}`", clip(piece)),
                };
                return Err(c.error_at(at, message));
            }
        }
    }
    Ok(toks)
}

/// `+ n` or `- n` of an address.
fn offset(c: &mut Cursor, out: &mut Operands) -> PResult<bool> {
    let there = matches!(c.kind(), Kind::Plus | Kind::Minus | Kind::Number);
    if there {
        let offset = super::constants::offset(c)?;
        out.list.push(TargetOperand::Offset(offset));
    }
    Ok(there)
}

/// An integer, a bit pattern of a float, or a decimal number, which is of the type that the mnemonic speaks of.
fn immediate(c: &Cursor, token: Token, double: bool) -> PResult<TargetOperand> {
    let text = c.lexeme(token);
    if let Some((negative, magnitude)) = integer(text) {
        let value = i128::try_from(magnitude).ok().map(|n| if negative { -n } else { n });
        // Unsigned 64-bit numbers are kept as their bits.
        let value = value.filter(|n| *n >= i128::from(i64::MIN) && *n <= i128::from(u64::MAX));
        return match value {
            Some(n) => Ok(TargetOperand::Imm(n as i64)),
            None => Err(c.error_at(token, "the number does not fit in 64 bits")),
        };
    }
    let (as_f32, as_f64) = (FloatKind::F32, FloatKind::F64);
    let single = text.starts_with("0f") || (!double && !text.starts_with("0d"));
    let bits = parse_float(text, if single { as_f32 } else { as_f64 });
    match bits {
        Some(bits) if single => Ok(TargetOperand::F32(bits as u32)),
        Some(bits) => Ok(TargetOperand::F64(bits as u64)),
        None => Err(c.error_at(token, format!("expected a number, found `{}`", clip(text)))),
    }
}
