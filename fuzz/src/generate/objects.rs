//! Stack objects that are alive one after the other, and comparisons of their addresses: no two are at the same place where
//! that can be seen.

use ptxc_ir::{Extra, Flags, IntCC, MemAttrs, MemType, Opcode, Space, Type, Value};

use super::body::Body;

/// Bytes of such an object.
const BYTES: u64 = 16;

impl Body<'_> {
    /// Uses two objects, or one twice, one after the other, and compares addresses into them. False where there is none.
    pub fn compare_objects(&mut self) -> bool {
        let objects = std::mem::take(&mut self.spare);
        let (first, second) = (self.rng.pick(&objects).copied(), self.rng.pick(&objects).copied());
        self.spare = objects;
        let (Some(first), Some(second)) = (first, second) else { return false };
        let mut pointers = vec![first, second];
        for object in [first, second] {
            let at = self.use_object(object);
            pointers.push(at);
            if self.once_in(3) {
                self.integer();
            }
        }
        if self.once_in(4) {
            let area = self.area(|area| area.home == Space::Local && area.space == Space::Local);
            pointers.extend(area.map(|area| area.base));
        }
        for _ in 0..1 + self.rng.below(2) {
            let (a, b) = (self.one_of(&pointers), self.one_of(&pointers));
            let generic = self.features.generic_addresses && self.once_in(4);
            let [a, b] =
                [a, b].map(|at| if generic { self.b.convert(Opcode::Addrspacecast, at, Type::PTR) } else { at });
            // The order of two objects is no result.
            let cc = self.pick(&[IntCC::Eq, IntCC::Eq, IntCC::Ne], IntCC::Eq);
            let same = self.b.icmp(cc, a, b);
            self.keep(same);
        }
        true
    }

    /// Stores to a place of an object and loads from there at once; gives the address.
    fn use_object(&mut self, object: Value) -> Value {
        let ty = self.pick(&[Type::I32, Type::I32, Type::I64, Type::I16], Type::I32);
        let index = self.index(BYTES / ty.size());
        let at = self.emit(Opcode::Gep, Flags::EMPTY, Type::INVALID, &[object, index], Extra::Gep(MemType::Value(ty)));
        let mut mem = MemAttrs::aligned(ty.size());
        mem.volatile = self.once_in(2);
        let value = self.operand(ty);
        self.b.store(value, at, mem);
        let value = self.b.load(ty, at, mem);
        self.keep(value);
        at
    }

    /// One of the pointers, or that which a condition or a branch chooses.
    fn one_of(&mut self, pointers: &[Value]) -> Value {
        let [a, b] = [0, 1].map(|_| self.pick(pointers, pointers[0]));
        match self.rng.below(4) {
            0 | 1 => a,
            2 => {
                let condition = self.condition(false);
                self.b.select(condition, a, b)
            }
            _ => self.behind_branch(a, b),
        }
    }

    /// The parameter of a block that two ways bring a pointer to.
    pub(super) fn behind_branch(&mut self, a: Value, b: Value) -> Value {
        let (before, scope) = (self.control, self.scope.len());
        let condition = self.condition(false);
        let (way, merge) = (self.b.append_block(), self.b.append_block());
        let ty = self.b.ty(a);
        let chosen = self.b.block_param(merge, ty);
        self.b.br(condition, (way, &[]), (merge, &[a]));
        self.enter(way, scope);
        self.inside(false);
        if self.once_in(2) {
            self.integer();
        }
        self.b.jump(merge, &[b]);
        self.rejoin(before);
        self.enter(merge, scope);
        self.scope.truncate(scope);
        chosen
    }
}
