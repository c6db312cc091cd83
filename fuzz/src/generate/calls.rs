//! Calls, and the functions that are called.

use ptxc_ir::{
    ConstData, Extra, Flags, FloatCC, Inst, IntCC, MemAttrs, MemType, Opcode, Signature, Space, Type, Value,
};

use super::body::{Area, Body};
use super::facts::{Callee, LENT, Passed};
use super::shapes::RuleShape;
use super::trial::power;

impl Body<'_> {
    /// One call, its results kept. False when nothing can be called here.
    pub fn call(&mut self) -> bool {
        let fits: Vec<usize> = (0..self.facts.callees.len())
            .filter(|i| self.facts.callees.get(*i).is_some_and(|c| !c.together || self.control.uniform))
            .collect();
        let Some(callee) = self.rng.pick(&fits).and_then(|i| self.facts.callees.get(*i)) else { return false };
        let Some(args) = self.arguments(callee) else { return false };
        let inst = self.b.call(callee.func, &args, &callee.results);
        self.keep_results(inst);
        true
    }

    /// Puts the results of a call in scope, but for pointers.
    pub fn keep_results(&mut self, inst: Inst) {
        let results: Vec<Value> = self.b.func.dfg.results(inst).filter(|v| !self.b.ty(*v).is_ptr()).collect();
        self.scope.extend(results);
    }

    pub(super) fn arguments(&mut self, callee: &Callee) -> Option<Vec<Value>> {
        let mut args = Vec::new();
        for (index, passed) in callee.params.iter().enumerate() {
            args.push(match *passed {
                Passed::Value(ty) if index == 0 && callee.recursive => {
                    let depth = self.operand(ty);
                    self.masked(depth, 3)
                }
                Passed::Value(ty) => self.operand(ty),
                Passed::Pointer(ty) => self.lent(ty)?,
                Passed::Copy(_) => self.lent(Type::PTR)?,
            });
        }
        Some(args)
    }

    /// A call of a function in which a rule is applied, its result kept. False when there is none.
    pub fn call_shape(&mut self) -> bool {
        let fits = |shape: &RuleShape| !shape.together || self.control.uniform;
        let shapes: Vec<usize> = (0..self.facts.shapes.len())
            .filter(|i| self.facts.shapes.get(*i).is_some_and(|(_, shape)| fits(shape)))
            .collect();
        let Some((func, shape)) = self.rng.pick(&shapes).and_then(|i| self.facts.shapes.get(*i)) else { return false };
        let mut args: Vec<Value> = Vec::new();
        for (param, ty) in shape.params.iter().enumerate() {
            // One operand twice, now and then.
            let again = args.iter().copied().find(|value| self.b.ty(*value) == *ty).filter(|_| self.once_in(8));
            let low = shape.domain.mask(shape, param);
            args.push(match (again, low) {
                (Some(value), None) => value,
                (_, Some(low)) => {
                    let value = self.operand(*ty);
                    let value = self.masked(value, low);
                    let one = self.int(*ty, 1);
                    self.op(Opcode::Add, &[value, one])
                }
                _ if shape.small => self.small_number(*ty),
                _ if shape.powers => self.power_of_four(*ty),
                _ => {
                    let value = self.operand(*ty);
                    let value = self.settled(value);
                    if shape.numbers { self.number(value) } else { value }
                }
            });
        }
        let inst = self.b.call(*func, &args, &[shape.result]);
        let mut result = self.b.func.dfg.result(inst, 0);
        if shape.small && shape.result.is_float_like() {
            // The sign of zero is open.
            let bits = shape.result.with_scalar(Type::I32);
            result = self.emit(Opcode::FptosiSat, Flags::EMPTY, bits, &[result], Extra::None);
        }
        self.keep(result);
        true
    }

    /// The value, or one where it is NaN.
    fn number(&mut self, value: Value) -> Value {
        let ty = self.b.ty(value);
        if !ty.is_float_like() {
            return value;
        }
        let one = self.int(ty.with_scalar(Type::I32), 1);
        let one = self.convert(Opcode::Sitofp, one, ty);
        let ordered = self.fcmp(FloatCC::Ord, value, value);
        self.select(ordered, value, one)
    }

    /// A power of four, by choices that depend on a value in scope.
    fn power_of_four(&mut self, ty: Type) -> Value {
        if !ty.is_float_like() {
            return self.operand(ty);
        }
        let number = self.operand(Type::I32);
        let mut value = self.b.bits(ty, power(ty, 0));
        for bit in 0..2 {
            let tested = self.masked(number, 1 << bit);
            let zero = self.int(Type::I32, 0);
            let chosen = self.icmp(IntCC::Ne, tested, zero);
            let exponent = [-2, -1, 1, 2][self.rng.below(4)];
            let other = self.b.bits(ty, power(ty, exponent));
            value = self.select(chosen, other, value);
        }
        value
    }

    /// A small integer as a number of the type.
    fn small_number(&mut self, ty: Type) -> Value {
        if ty.scalar_bits() < 4 {
            return self.operand(ty);
        }
        let bits = if ty.is_float_like() { ty.with_scalar(Type::I32) } else { ty };
        let value = self.operand(bits);
        let low = self.masked(value, 7);
        let four = self.int(bits, 4);
        let number = self.op(Opcode::Sub, &[low, four]);
        if ty.is_float_like() { self.convert(Opcode::Sitofp, number, ty) } else { number }
    }

    /// A pointer of the type to private bytes.
    pub(super) fn lent(&mut self, ty: Type) -> Option<Value> {
        let space = ty.space()?;
        let fits = |a: &Area| a.private && a.size >= LENT && (a.space == space || space == Space::Generic);
        let found: Vec<Area> = self.areas.iter().copied().filter(fits).collect();
        let area = self.rng.pick(&found).copied()?;
        if area.space == space {
            return Some(area.base);
        }
        Some(self.emit(Opcode::Addrspacecast, Flags::EMPTY, ty, &[area.base], Extra::None))
    }

    /// A call through the table of addresses. False without one.
    pub fn call_indirect(&mut self) -> bool {
        let Some((table, count)) = self.facts.table else { return false };
        let Some(callee) = self.facts.callees.first().cloned() else { return false };
        let Some(args) = self.arguments(&callee) else { return false };
        let index = self.index(count as u64);
        let address = if self.once_in(2) {
            let base = self.b.global(table, 0, self.module.global_ptr(table));
            let over = MemType::Value(Type::PTR);
            let at = self.emit(Opcode::Gep, Flags::EMPTY, Type::INVALID, &[base, index], Extra::Gep(over));
            self.b.load(Type::PTR, at, MemAttrs::aligned(8))
        } else {
            let condition = self.condition(false);
            let address = |body: &mut Self, index: usize| {
                let func = body.facts.callees.get(index).map_or(callee.func, |c| c.func);
                body.b.func.dfg.constant(Type::PTR, ConstData::Func(func))
            };
            let (a, b) = (address(self, 0), address(self, 1));
            self.select(condition, a, b)
        };
        let sig: Signature = self.module.funcs[callee.func].sig.clone();
        let sig = self.b.func.dfg.signatures.push(sig);
        let inst = self.b.call_indirect(sig, address, &args, &callee.results);
        self.keep_results(inst);
        true
    }
}
