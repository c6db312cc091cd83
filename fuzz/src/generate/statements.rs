//! Which statement comes next, and how a body ends.

use ptxc_ir::{Extra, Flags, MemAttrs, Opcode, Type, Value};

use super::body::Body;

/// Bytes of a thread's part of the results that ends hold.
pub const RESULTS: u64 = 512;
/// Bytes for one value.
const SLOT: u64 = 32;

impl Body<'_> {
    /// Statements until the fuel is used up.
    pub fn statements(&mut self) {
        while self.fuel > 0 {
            self.statement();
        }
    }

    /// One statement of a kind that the features allow.
    pub fn statement(&mut self) {
        if self.fuel == 0 {
            return;
        }
        self.fuel -= 1;
        let f = *self.features;
        let done = match self.rng.below(38) {
            0..=3 => self.region(),
            4 | 5 if f.calls && self.control.loops < 2 => self.call(),
            6 if f.indirect_calls && self.control.loops < 2 => self.call_indirect(),
            7..=10 if f.memory => {
                self.access();
                true
            }
            11 if f.generic_addresses && f.memory => {
                self.generic();
                true
            }
            12..=14 if !self.floats.is_empty() => {
                self.float();
                true
            }
            15..=17 if f.vectors => {
                self.vector();
                true
            }
            18 | 19 if f.warps => self.warp(),
            20 | 21 if f.shared_memory => self.exchange(),
            22..=25 => self.pattern(),
            26 | 27 if f.echoes => self.echo(),
            28 if f.adjacent_atomics && f.memory && f.atomics && self.once_in(2) => self.adjacent_atomics(),
            28 | 29 if f.adjacent && f.memory => self.adjacent(),
            32 | 33 if f.strided && f.memory && self.control.loops < 2 => self.strides(),
            34.. if f.rule_shapes => self.call_shape(),
            30 | 31 if f.pointer_results && self.control.loops < 2 => self.pointer_call(),
            _ => false,
        };
        if !done {
            self.integer();
        }
    }

    /// The threads here may leave the function: nobody waits for them in a later round of a loop.
    pub fn can_leave(&self) -> bool {
        self.control.loops == self.outer_loops
    }

    /// Ends the function: a kernel stores what is in scope, another function returns values.
    pub fn leave(&mut self) {
        let types = self.module.sig_results(&self.b.func.sig);
        if self.b.func.kind == ptxc_ir::FuncKind::Kernel {
            self.observe();
            let op = if self.once_in(4) { Opcode::Exit } else { Opcode::Ret };
            self.b.inst(op, Flags::EMPTY, Type::INVALID, &[], Extra::None);
            return;
        }
        let returned = self.returned;
        let value = |body: &mut Self, ty: Type| match returned {
            Some(pointer) if ty.is_ptr() => pointer,
            _ => body.operand(ty),
        };
        let values: Vec<Value> = types.into_iter().map(|ty| value(self, ty)).collect();
        self.b.ret(&values);
    }

    /// Stores the values that were made last.
    fn observe(&mut self) {
        let Some(results) = self.areas.first().copied() else { return };
        let count = self.scope.len();
        for slot in 0..(RESULTS / SLOT) as usize {
            let back = if slot < 8 { slot } else { self.rng.below(count) };
            let Some(value) = self.scope.get(count.wrapping_sub(1 + back)).copied() else { continue };
            let ty = self.b.ty(value);
            if ty.size() > SLOT {
                continue;
            }
            let value = self.settled(value);
            let at = self.offset(results.base, slot as u64 * SLOT);
            self.b.store(value, at, MemAttrs::aligned(ty.align()));
        }
    }
}
