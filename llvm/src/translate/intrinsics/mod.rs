//! Intrinsics: what the tables in `tables/` say, done.

mod expansions;
mod rule;
mod table;
mod template;

use std::rc::Rc;

use ptxc_ir::{
    AtomicOp, Extra, Flags, FloatKind, MemAttrs, Opcode, Ordering, Scope, Shape, Space, TargetOp, Type as IrType,
    TypeSet, Value, sreg_type,
};

pub(super) use rule::Rule;
use template::{Operands, Template};

use super::body::Writer;
use super::{Fault, Result};
use crate::model::{Call, GlobalId, InstId, Operand, ValueId};

/// A call of an intrinsic.
#[derive(Clone, Copy)]
pub(super) struct Site<'m> {
    /// The call.
    pub call: Call,
    /// Its arguments.
    pub arguments: &'m [Operand],
    /// The result, if it has one.
    pub result: Option<ValueId>,
    /// The intrinsic is LLVM's own: fast-math flags and the function's handling of subnormals concern it.
    pub generic: bool,
}

impl Site<'_> {
    /// An argument.
    pub fn argument(&self, index: usize) -> Result<Operand> {
        let found = self.arguments.get(index).copied();
        found.ok_or_else(|| Fault::new(format!("an intrinsic has no argument {}", index + 1)))
    }
}

impl<'m> Writer<'_, 'm> {
    /// A call of `@llvm.…`.
    pub fn intrinsic(&mut self, _inst: InstId, global: GlobalId, call: Call, result: Option<ValueId>) -> Result<()> {
        let source = self.cx.source;
        let name = source.globals[global].name.map(|name| source.names.text(name)).unwrap_or_default();
        let name = name.strip_prefix("llvm.").unwrap_or(&name);
        let rule = match self.cx.rules.get(&global) {
            Some(rule) => rule.clone(),
            None => {
                let rule = Rule::find(name).map(Rc::new);
                self.cx.rules.insert(global, rule.clone());
                rule
            }
        };
        let Some(rule) = rule else {
            return Err(Fault::new(format!("the intrinsic `llvm.{name}` is not known")));
        };
        let arguments = self.body.operands(call.arguments);
        let site = Site { call, arguments, result, generic: !name.starts_with("nvvm.") };
        self.apply(&rule, &site).map_err(|fault| match fault.0.text.strip_prefix("llvm.") {
            Some(_) => fault,
            None => Fault::new(format!("llvm.{name}: {}", fault.0.text)),
        })
    }

    fn apply(&mut self, rule: &Rule, site: &Site<'m>) -> Result<()> {
        match rule {
            Rule::Generic { op, flags, order } => self.generic(*op, *flags, order.as_deref(), site),
            Rule::Special(register) => {
                let ty = sreg_type(*register);
                let value = self.b.sreg(*register, ty);
                let value = match self.result_type(site)? {
                    Some(wanted) if wanted.is_int() && ty.is_int() => self.resize(value, wanted, false),
                    _ => value,
                };
                self.finish(site.result, vec![value])
            }
            Rule::Ptx(template) => self.ptx(template, site),
            Rule::Rmw(op, scope) => self.scoped_rmw(*op, *scope, site),
            Rule::Argument(index) => {
                let run = self.raw_parts(site.argument(*index)?)?;
                if let Some(result) = site.result {
                    self.define_as(result, run);
                }
                Ok(())
            }
            Rule::Number(number) => {
                let Some(ty) = self.result_type(site)? else { return Ok(()) };
                let value = self.b.bits(ty, u128::from(*number));
                self.finish(site.result, vec![value])
            }
            Rule::Nothing => {
                if let Some(result) = site.result {
                    let shape = self.cx.shape(self.body.values[result].ty)?;
                    let parts: Vec<Value> = shape.parts.iter().map(|part| self.b.bits(part.ty, 0)).collect();
                    self.define(result, &parts);
                }
                Ok(())
            }
            Rule::Expand(expansion, words) => expansion(self, site, words),
            Rule::Refuse(text) => Err(Fault::new(text.clone())),
        }
    }

    /// The type of the result when it is one part.
    pub fn result_type(&mut self, site: &Site) -> Result<Option<IrType>> {
        let Some(result) = site.result else { return Ok(None) };
        let shape = self.cx.shape(self.body.values[result].ty)?;
        Ok(match shape.parts.as_slice() {
            [part] => Some(part.ty),
            _ => None,
        })
    }

    /// The flags of a generic operation for a call.
    pub fn site_flags(&self, flags: Flags, op: Opcode, ty: IrType, site: &Site) -> Flags {
        if !site.generic {
            return flags;
        }
        flags | self.flags(site.call.flags, op, ty)
    }

    fn generic(&mut self, op: Opcode, flags: Flags, order: Option<&[usize]>, site: &Site) -> Result<()> {
        let count = order.map_or(site.arguments.len(), <[usize]>::len);
        let mut args = Vec::with_capacity(count);
        for index in 0..count {
            let index = order.map_or(index, |order| order[index]);
            args.push(self.value(site.argument(index)?)?);
        }
        let result = self.result_type(site)?;
        if let (TypeSet::Float, Some(ty)) = (op.info().types, args.first().and_then(|value| bfloat(self.b.ty(*value))))
            && op.shape() != Shape::Convert
        {
            // LLVM before 17 has integers for bfloat.
            for arg in &mut args {
                *arg = self.bit_cast(*arg, ty)?;
            }
        }
        let first = args.first().map_or(IrType::INVALID, |value| self.b.ty(*value));
        let given = result;
        let result = if first.is_float_like() && op.info().types == TypeSet::Float {
            result.and_then(|ty| if op.shape() == Shape::Convert { None } else { bfloat(ty) }).or(result)
        } else {
            result
        };
        let ty = match op.shape() {
            Shape::Convert | Shape::Unary | Shape::Binary | Shape::Ternary => result.unwrap_or(first),
            Shape::BinaryOverflow | Shape::Reduce | Shape::Shuffle4 | Shape::MatchAny | Shape::MatchAll => first,
            Shape::Redux => result.unwrap_or(IrType::I32),
            _ => IrType::INVALID,
        };
        if op == Opcode::Bitcast && first == ty {
            return self.finish(site.result, args);
        }
        let flags = self.site_flags(flags, op, ty, site);
        let made = if op.shape() == Shape::Shuffle4 {
            let results = match site.result {
                Some(result) => self.cx.shape(self.body.values[result].ty)?.parts.len(),
                None => 1,
            };
            let types: &[IrType] = if results > 1 { &[ty, IrType::I1] } else { &[ty] };
            self.b.inst_with_results(op, flags, ty, &args, Extra::None, types)
        } else {
            self.b.inst(op, flags, ty, &args, Extra::None)
        };
        let mut parts: Vec<Value> = self.b.func.dfg.results(made).collect();
        if let ([value], Some(wanted)) = (parts.as_mut_slice(), given)
            && given != result
        {
            *value = self.bit_cast(*value, wanted)?;
        }
        // Bits of `i1` that older intrinsics give as an integer.
        if let ([value], Some(wanted)) = (parts.as_mut_slice(), result)
            && wanted.is_int()
            && given == result
            && self.b.ty(*value).is_int()
        {
            *value = self.resize(*value, wanted, false);
        }
        self.finish(site.result, parts)
    }

    /// PTX with the arguments of a call.
    pub fn ptx(&mut self, template: &Template, site: &Site) -> Result<()> {
        let mut arguments = Vec::with_capacity(site.arguments.len());
        for operand in site.arguments {
            arguments.push(self.registers(*operand)?);
        }
        let shape = match site.result {
            Some(result) => self.cx.shape(self.body.values[result].ty)?.parts.iter().map(|part| part.ty).collect(),
            None => Vec::new(),
        };
        let parts = self.ptx_values(template, &arguments, &shape)?;
        self.finish(site.result, parts)
    }

    /// PTX on values, with results of these types.
    pub fn ptx_values(
        &mut self,
        template: &Template,
        arguments: &[Registers],
        results: &[IrType],
    ) -> Result<Vec<Value>> {
        let types: Vec<IrType> = results.iter().flat_map(|ty| register_types(*ty)).collect();
        let filled = template.fill(&Filling { arguments, results: types.len() }).map_err(Fault::new)?;
        let mut registers = Vec::with_capacity(filled.registers.len());
        for (argument, lane) in &filled.registers {
            let found = arguments.get(*argument).and_then(|a| a.lanes.get(*lane)).copied();
            registers.push(found.ok_or_else(|| Fault::new(format!("there is no argument {}", argument + 1)))?);
        }
        let made = self.b.target(TargetOp::Opaque { text: filled.text }, &registers, &types);
        let given: Vec<Value> = self.b.func.dfg.results(made).collect();
        let mut given = given.into_iter();
        let mut parts = Vec::with_capacity(results.len());
        for ty in results {
            let lanes: Vec<Value> = given.by_ref().take(register_types(*ty).len()).collect();
            parts.push(match lanes.as_slice() {
                [one] if self.b.ty(*one) == *ty => *one,
                [one] if self.b.ty(*one).bits() == ty.bits() => self.bit_cast(*one, *ty)?,
                lanes => self.b.vector(*ty, lanes),
            });
        }
        Ok(parts)
    }

    /// An argument as PTX sees it.
    fn registers(&mut self, operand: Operand) -> Result<Registers> {
        let constant = self.number(operand);
        let is_metadata = self
            .cx
            .source
            .type_of(self.body, operand)
            .is_none_or(|ty| matches!(self.cx.source.types.get(ty), crate::model::Type::Metadata));
        if is_metadata {
            return Ok(Registers { lanes: Vec::new(), constant, space: Space::Generic });
        }
        let value = self.value(operand)?;
        // Flags are 0 and 1.
        let constant = constant.map(|number| if self.b.ty(value) == IrType::I1 { number & 1 } else { number });
        let ty = self.b.ty(value);
        let bytes = ty.is_vector() && ty.scalar_bits() < 16;
        let value = if bytes { self.bit_cast(value, IrType::int(ty.bits()))? } else { value };
        Ok(self.registers_of(value, constant))
    }

    /// A value as PTX sees it.
    pub fn registers_of(&mut self, value: Value, constant: Option<i128>) -> Registers {
        let ty = self.b.ty(value);
        let lanes = if register_types(ty).len() > 1 || (ty.is_vector() && ty.scalar_bits() >= 32) {
            self.lanes(value)
        } else {
            vec![value]
        };
        Registers { lanes, constant, space: ty.space().unwrap_or(Space::Generic) }
    }

    fn scoped_rmw(&mut self, op: AtomicOp, scope: Scope, site: &Site) -> Result<()> {
        let address = self.address(site.argument(0)?)?;
        let value = self.value(site.argument(1)?)?;
        let ty = self.b.ty(value);
        let op = match op {
            AtomicOp::Add if ty.float_kind().is_some_and(|kind| kind != FloatKind::Tf32) => AtomicOp::Fadd,
            other => other,
        };
        let attrs = MemAttrs { order: Ordering::Relaxed, scope, ..MemAttrs::aligned(ty.size()) };
        let old = self.b.atomic_rmw(op, address, value, attrs);
        self.finish(site.result, vec![old])
    }
}

/// The bfloat type that older LLVM has an integer for.
fn bfloat(ty: IrType) -> Option<IrType> {
    match ty {
        IrType::I16 => Some(IrType::BF16),
        IrType::I32 => Some(IrType::BF16.with_lanes(2)),
        _ => None,
    }
}

/// An argument in registers.
pub(super) struct Registers {
    lanes: Vec<Value>,
    constant: Option<i128>,
    space: Space,
}

/// The types of the registers of a value: vectors of 32 bits and more go lane by lane.
fn register_types(ty: IrType) -> Vec<IrType> {
    if ty.is_vector() && ty.scalar_bits() < 16 {
        // Bytes are together in one integer.
        return vec![IrType::int(ty.bits())];
    }
    if ty.is_vector() && ty.scalar_bits() >= 32 { vec![ty.scalar(); ty.lanes() as usize] } else { vec![ty] }
}

struct Filling<'a> {
    arguments: &'a [Registers],
    results: usize,
}

impl Operands for Filling<'_> {
    fn results(&self) -> usize {
        self.results
    }

    fn arguments(&self) -> usize {
        self.arguments.len()
    }

    fn lanes(&self, argument: usize) -> usize {
        self.arguments.get(argument).map_or(0, |a| a.lanes.len())
    }

    fn constant(&self, argument: usize) -> Option<i128> {
        self.arguments.get(argument)?.constant
    }

    fn space(&self, argument: usize, cta: bool) -> &'static str {
        match self.arguments.get(argument).map_or(Space::Generic, |a| a.space) {
            Space::Global => ".global",
            Space::Shared if cta => ".shared::cta",
            Space::Shared => ".shared",
            Space::SharedCluster => ".shared::cluster",
            Space::Const => ".const",
            Space::Local => ".local",
            Space::Param => ".param",
            Space::Generic | Space::Tensor => "",
        }
    }
}

#[cfg(test)]
mod tests;
