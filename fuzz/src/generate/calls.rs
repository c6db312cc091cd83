//! Calls, and the functions that are called.

use ptxc_ir::{ConstData, Extra, Flags, Inst, MemAttrs, MemType, Opcode, Signature, Space, Type, Value};

use super::body::{Area, Body};
use super::facts::{Callee, LENT, Passed};

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
