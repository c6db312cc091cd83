//! Loops that carry pointers, and counters that nothing tells apart.

use ptxc_ir::{Block, Extra, Flags, IntCC, MemAttrs, MemType, Opcode, Space, Type, Value};

use super::body::{Area, Body};

/// Bytes of an area that such a loop reaches.
const REACH: u64 = 16;

impl Body<'_> {
    /// A loop of one or two rounds that carries one to three pointers and as many counters, accesses memory through the
    /// pointers and moves them. Pointers are chosen among some before, generic ones and others.
    pub fn carry_pointers(&mut self) {
        let fits = |area: &Area| area.size >= REACH && area.home != Space::Param;
        let Some(first) = self.area(fits) else { return };
        let second = if self.once_in(2) { self.area(fits).unwrap_or(first) } else { first };
        let private = first.private && second.private;
        let (before, scope) = (self.control, self.scope.len());
        let count = 1 + self.rng.below(3);
        let generic = first.space != second.space || self.once_in(2);
        let mut carried = Vec::new();
        for _ in 0..count {
            carried.push(self.int(Type::I32, 0));
            let pointer = self.start(&first, &second, generic);
            carried.push(pointer);
        }
        let types: Vec<Type> = carried.iter().map(|value| self.b.ty(*value)).collect();
        let [head, exit] = [0, 1].map(|_| self.block_of(&types));
        self.b.jump(head, &carried);
        self.enter(head, scope);
        self.inside(false);
        self.control.loops += 1;
        let params = self.b.func.dfg.block_params(head).to_vec();
        let mut next: Vec<Value> = Vec::new();
        for pair in params.chunks_exact(2) {
            self.access_at(pair[1], private);
            let one = self.int(Type::I32, 1);
            let step = if self.once_in(6) { 8 } else { 4 };
            next.push(self.op(Opcode::Add, &[pair[0], one]));
            let moved = self.offset(pair[1], step);
            next.push(moved);
        }
        if count > 1 && self.once_in(4) {
            next.swap(1, 3);
        }
        let bound = 1 + self.rng.below(2) as i64;
        let bound = self.int(Type::I32, bound);
        let counter = self.rng.below(count) * 2;
        let more = self.icmp(IntCC::Slt, next[counter], bound);
        let leaving = if self.once_in(2) { &params } else { &next };
        self.b.br(more, (head, &next), (exit, leaving));
        self.rejoin(before);
        self.enter(exit, scope);
        self.scope.truncate(scope);
        let left = self.b.func.dfg.block_params(exit).to_vec();
        for pair in left.chunks_exact(2) {
            self.keep(pair[0]);
        }
        if count > 1 {
            let same = self.b.icmp(IntCC::Eq, left[1], left[3]);
            self.keep(same);
            let same = self.icmp(IntCC::Eq, left[0], left[2]);
            self.keep(same);
        }
        if generic && self.once_in(3) {
            let space = self.pick(&[Space::Global, Space::Shared, Space::Local], Space::Global);
            let asked = self.b.inst(Opcode::IsSpace, Flags::EMPTY, Type::INVALID, &[left[1]], Extra::Space(space));
            let asked = self.b.func.dfg.result(asked, 0);
            self.keep(asked);
        }
    }

    pub(super) fn block_of(&mut self, params: &[Type]) -> Block {
        let block = self.b.append_block();
        for ty in params {
            self.b.block_param(block, *ty);
        }
        block
    }

    /// Where a pointer begins: in one of two areas, by a condition perhaps.
    fn start(&mut self, first: &Area, second: &Area, generic: bool) -> Value {
        let [mut a, mut b] = [first, second].map(|area| {
            if generic && area.space != Space::Generic {
                self.b.convert(Opcode::Addrspacecast, area.base, Type::PTR)
            } else {
                area.base
            }
        });
        if self.once_in(3) {
            b = self.b.byte_offset(b, 4);
        }
        if self.once_in(6) {
            a = self.b.unary(Opcode::Freeze, a);
        }
        if self.once_in(2) {
            return a;
        }
        let condition = self.condition(false);
        self.b.select(condition, a, b)
    }

    /// Loads, and where it may, stores a word.
    fn access_at(&mut self, at: Value, private: bool) {
        let mut mem = MemAttrs::aligned(4);
        mem.volatile = self.once_in(8);
        if private && self.once_in(2) {
            let value = self.operand(Type::I32);
            self.b.store(value, at, mem);
        } else {
            let value = self.b.load(Type::I32, at, mem);
            self.loaded.insert(value);
            self.keep(value);
        }
        if private && self.features.block_copies && self.once_in(8) {
            let (byte, size) = (self.int(Type::I8, 7), self.int(Type::I64, 4));
            let extra = Extra::Copy { dst_align: 4, src_align: 1, volatile: false };
            self.b.inst(Opcode::Memset, Flags::EMPTY, Type::INVALID, &[at, byte, size], extra);
        }
        if self.once_in(8) {
            let over = MemType::Value(Type::I8);
            let zero = self.int(Type::I32, 0);
            let moved = self.b.gep(over, at, &[zero]);
            let value = self.b.load(Type::I8, moved, MemAttrs::aligned(1));
            self.loaded.insert(value);
            self.keep(value);
        }
    }
}
