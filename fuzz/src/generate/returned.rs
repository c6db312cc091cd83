//! Pointers that calls return beside other results: what is accessed through them may be what is accessed otherwise.

use ptxc_ir::{Extra, Flags, MemAttrs, Opcode, Type, Value};

use super::body::{Area, Body};
use super::facts::{Callee, LENT, Passed, Returned};

impl Body<'_> {
    /// Calls a function that returns a pointer, and accesses the memory through it, through a choice of it and another one,
    /// and directly. False where there is no such function.
    pub fn pointer_call(&mut self) -> bool {
        let fits = |c: &&Callee| c.returned.is_some() && (!c.together || self.control.uniform);
        let callees: Vec<Callee> = self.facts.callees.iter().filter(fits).cloned().collect();
        let Some(callee) = self.rng.pick(&callees).cloned() else { return false };
        let Some(returned) = callee.returned else { return false };
        let Some(Passed::Pointer(ty)) = callee.params.get(returned.param).copied() else { return false };
        let Some(args) = self.arguments(&callee) else { return false };
        let inst = self.b.call(callee.func, &args, &callee.results);
        self.keep_results(inst);
        let Some(lent) = args.get(returned.param).copied() else { return false };
        let Some(pointer) = self.b.func.dfg.results(inst).nth(returned.result) else { return false };
        self.access_alike(lent, pointer, ty, returned);
        true
    }

    /// Stores and loads by two pointers to the same memory, one of them perhaps instead of a third to other memory.
    fn access_alike(&mut self, lent: Value, pointer: Value, ty: Type, returned: Returned) {
        // Back to where the memory begins.
        let base = match returned.offset {
            0 => pointer,
            offset => self.b.byte_offset(pointer, -(offset as i64)),
        };
        let mut chosen = base;
        let mut private = true;
        let space = ty.space();
        let casts = ty == Type::PTR;
        if let Some(other) = self.area(|area| area.size >= LENT && (casts || Some(area.space) == space))
            && other.home != ptxc_ir::Space::Param
        {
            let third = match self.b.ty(other.base) == ty {
                true => other.base,
                false => self.b.convert(Opcode::Addrspacecast, other.base, ty),
            };
            private = other.private;
            chosen = match self.rng.below(3) {
                0 => self.behind_branch(base, third),
                1 => {
                    let condition = self.condition(false);
                    self.b.select(condition, third, base)
                }
                _ => {
                    let condition = self.condition(false);
                    self.b.select(condition, base, third)
                }
            };
        }
        for _ in 0..2 + self.rng.below(3) {
            let at = 4 * self.rng.below(3) as u64;
            match self.rng.below(4) {
                0 => self.put_word(lent, at),
                1 if private => self.put_word(chosen, at),
                2 => self.get_word(base, at),
                _ => self.get_word(chosen, at),
            }
        }
        if self.control.depth == 0 && self.once_in(2) {
            let space = space.unwrap_or(ptxc_ir::Space::Generic);
            // What was lent may be a cast of the memory's own pointer.
            let cast =
                self.b.func.dfg.def_inst(lent).filter(|inst| self.b.func.dfg.insts[*inst].op == Opcode::Addrspacecast);
            let own = cast.and_then(|inst| self.b.func.dfg.args(inst).first().copied()).unwrap_or(lent);
            let home = self.areas.iter().find(|area| [own, lent].contains(&area.base)).map_or(space, |area| area.home);
            self.areas.push(Area { base, align: 16, space, home, size: LENT, private: true });
        }
    }

    fn put_word(&mut self, base: Value, at: u64) {
        // Late, so that a load behind it would rather go first.
        let mut value = self.operand(Type::I32);
        if self.once_in(2) {
            let other = self.operand(Type::I32);
            for op in [Opcode::Mul, Opcode::Umulh, Opcode::Mul] {
                value = self.emit(op, Flags::EMPTY, Type::I32, &[value, other], Extra::None);
            }
        }
        let at = self.offset(base, at);
        self.b.store(value, at, MemAttrs::aligned(4));
    }

    fn get_word(&mut self, base: Value, at: u64) {
        let at = self.offset(base, at);
        let value = self.b.load(Type::I32, at, MemAttrs::aligned(4));
        self.loaded.insert(value);
        self.keep(value);
    }
}
