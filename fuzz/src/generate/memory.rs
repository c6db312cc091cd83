//! Loads, stores, block copies and atomics.

use ptxc_ir::{
    AtomicOp, CacheOp, Extra, Flags, L1Evict, L2Evict, MemAttrs, MemType, Opcode, Ordering, Scope, Space, Type, Value,
};

use super::body::{Area, Body};

const ORDERS: &[Ordering] =
    &[Ordering::Relaxed, Ordering::Relaxed, Ordering::Acquire, Ordering::Release, Ordering::AcqRel, Ordering::SeqCst];

/// Operations whose order does not matter, one a cell of the grid's.
pub const COMMUTATIVE: &[AtomicOp] = &[
    AtomicOp::Add,
    AtomicOp::And,
    AtomicOp::Or,
    AtomicOp::Xor,
    AtomicOp::Smax,
    AtomicOp::Smin,
    AtomicOp::Umax,
    AtomicOp::Umin,
];

impl Body<'_> {
    /// One of the areas that satisfy the condition.
    pub fn area(&mut self, fits: impl Fn(&Area) -> bool) -> Option<Area> {
        let found: Vec<Area> = self.areas.iter().copied().filter(fits).collect();
        self.rng.pick(&found).copied()
    }

    /// The address of `size` bytes in an area and what it is a multiple of.
    pub fn address(&mut self, area: &Area, size: u64, aligned: bool) -> (Value, u64) {
        let size = size.max(1);
        let step = if aligned { size.next_power_of_two().min(area.align) } else { 1 };
        let room = area.size.saturating_sub(size) / step + 1;
        let slots = if room.is_power_of_two() { room } else { room.next_power_of_two() / 2 };
        if self.once_in(4) {
            let slot = self.rng.below(room as usize) as u64;
            return (self.offset(area.base, slot * step), step);
        }
        let mut index = self.index(slots.max(1));
        let mut base = area.base;
        if self.once_in(4) {
            // Back from the end, by a negative index.
            base = self.offset(base, slots * step);
            let slots = self.int(Type::I32, slots as i64);
            index = self.op(Opcode::Sub, &[index, slots]);
        }
        let negative = base != area.base;
        let wide = self.once_in(2);
        let extend = if negative { Opcode::Sext } else { Opcode::Zext };
        let index = if wide { self.convert(extend, index, Type::I64) } else { index };
        let index = if wide && !negative && slots > 1 && self.once_in(4) { self.with_product(slots) } else { index };
        let over = MemType::Value(Type::int((step * 8) as u32));
        let flags = if self.features.flags && self.once_in(3) { Flags::INBOUNDS } else { Flags::EMPTY };
        let mut at = self.emit(Opcode::Gep, flags, Type::INVALID, &[base, index], Extra::Gep(over));
        if room > slots && self.once_in(2) {
            // What the power of two leaves at the end.
            let rest = self.rng.below((room - slots + 1) as usize) as u64;
            at = self.offset(at, rest * step);
        }
        (at, step)
    }

    /// An index below the power of two: a number plus the product of two others.
    fn with_product(&mut self, slots: u64) -> Value {
        let half = slots / 2;
        let low = self.index(half);
        let low = self.convert(Opcode::Sext, low, Type::I64);
        let (a, b) = (self.operand(Type::I64), self.operand(Type::I64));
        let (a, b) = (self.masked(a, 1), self.masked(b, u128::from(half)));
        let product = self.op(Opcode::Mul, &[a, b]);
        let args = if self.once_in(2) { [low, product] } else { [product, low] };
        self.op(Opcode::Add, &args)
    }

    /// `base` plus bytes.
    pub fn offset(&mut self, base: Value, bytes: u64) -> Value {
        let at = self.b.byte_offset(base, bytes as i64);
        if self.is_uniform(base) {
            self.uniform.insert(at);
        }
        at
    }

    fn attributes(&mut self, align: u64, store: bool, area: &Area) -> MemAttrs {
        let mut mem = MemAttrs::aligned(align);
        match self.rng.below(16) {
            0 => mem.volatile = true,
            1 if !store && !area.private => mem.invariant = true,
            2 if area.space == Space::Global => {
                let ops: &[CacheOp] = if store { &[CacheOp::Wb, CacheOp::Cg] } else { &[CacheOp::Ca, CacheOp::Cg] };
                mem.cache = self.pick(ops, CacheOp::None);
            }
            3 if matches!(area.space, Space::Global | Space::Generic) => {
                mem.l1 = self.pick(&[L1Evict::None, L1Evict::First, L1Evict::Last, L1Evict::NoAllocate], L1Evict::None);
                mem.l2 = self.pick(&[L2Evict::None, L2Evict::First, L2Evict::Last], L2Evict::None);
                mem.prefetch = if store { 0 } else { self.pick(&[0, 64, 128, 256], 0) };
            }
            _ => {}
        }
        mem
    }

    /// One access, a loaded value kept.
    pub fn access(&mut self) {
        match self.rng.below(8) {
            0 | 1 => self.store_value(),
            2 if self.features.block_copies => self.block_copy(),
            3 if self.features.atomics && self.once_in(8) => {
                let order = self.pick(&ORDERS[2..], Ordering::SeqCst);
                let scope = self.pick(&[Scope::Cta, Scope::Gpu, Scope::Sys], Scope::Gpu);
                self.b.fence(order, scope);
            }
            3 if self.features.atomics => self.atomic(),
            _ => {
                let any = self.area(|_| true);
                if let Some(area) = any {
                    let ty = self.any_type();
                    let value = self.load_from(&area, ty);
                    self.keep(value);
                }
            }
        }
    }

    fn load_from(&mut self, area: &Area, ty: Type) -> Value {
        let aligned = !self.features.unaligned || !self.once_in(6);
        let (at, align) = self.address(area, ty.size(), aligned);
        let mem = self.attributes(align, false, area);
        let value = self.b.load(ty, at, mem);
        self.loaded.insert(value);
        if !area.private && area.home != Space::Param && self.is_uniform(at) {
            self.uniform.insert(value);
        }
        value
    }

    fn store_value(&mut self) {
        let Some(area) = self.area(|a| a.private) else { return };
        let ty = self.any_type();
        let value = self.operand(ty);
        let value = self.settled(value);
        let aligned = !self.features.unaligned || !self.once_in(6);
        let (at, align) = self.address(&area, ty.size(), aligned);
        let mem = self.attributes(align, true, &area);
        self.b.store(value, at, mem);
        if self.once_in(3) {
            // Read at once, perhaps as something else.
            let as_type = self.any_type();
            let read = if as_type.size() <= ty.size() && align >= 1 { as_type } else { ty };
            let value = self.b.load(read, at, MemAttrs::aligned(align.min(read.align())));
            self.keep(value);
        }
    }

    fn block_copy(&mut self) {
        let Some(to) = self.area(|a| a.private) else { return };
        let most = 32u64;
        let count = if self.once_in(2) {
            let bytes = self.rng.below(most as usize + 1) as i64;
            self.int(Type::I32, bytes)
        } else {
            self.index(most)
        };
        let count = if self.once_in(2) { self.convert(Opcode::Zext, count, Type::I64) } else { count };
        let aligned = self.once_in(2);
        let (dst, dst_align) = self.address(&to, most, aligned);
        let copy = |dst_align: u64, src_align: u64| Extra::Copy {
            dst_align: dst_align.min(16) as u32,
            src_align: src_align.min(16) as u32,
            volatile: false,
        };
        let from = self.area(|a| a.size >= most && (a.home != to.home || !a.private));
        match from {
            Some(from) if !self.once_in(3) => {
                let (src, src_align) = self.address(&from, most, aligned);
                let op = if self.once_in(2) { Opcode::Memcpy } else { Opcode::Memmove };
                self.b.inst(op, Flags::EMPTY, Type::INVALID, &[dst, src, count], copy(dst_align, src_align));
            }
            _ if self.once_in(2) => {
                // May overlap.
                let (src, src_align) = self.address(&to, most, aligned);
                let extra = copy(dst_align, src_align);
                self.b.inst(Opcode::Memmove, Flags::EMPTY, Type::INVALID, &[dst, src, count], extra);
            }
            _ => {
                let byte = self.operand(Type::I8);
                let extra = copy(dst_align, 1);
                self.b.inst(Opcode::Memset, Flags::EMPTY, Type::INVALID, &[dst, byte, count], extra);
            }
        }
    }

    /// An atomic on a cell of this thread, its result kept, or on one of the grid's.
    fn atomic(&mut self) {
        if self.cells.is_some() && self.once_in(2) {
            return self.contended();
        }
        let fits = |a: &Area| a.private && matches!(a.home, Space::Global | Space::Shared);
        let Some(area) = self.area(fits) else { return };
        let mut types = vec![Type::I32, Type::I32, Type::I64, Type::I8, Type::I16];
        if self.facts.wide_atomics {
            types.push(Type::I128);
        }
        types.extend(self.floats.iter().copied());
        let ty = self.pick(&types, Type::I32);
        let (at, _) = self.address(&area, ty.size(), true);
        let mut mem = MemAttrs::aligned(ty.size());
        mem.order = self.pick(ORDERS, Ordering::Relaxed);
        mem.scope = self.pick(&[Scope::Cta, Scope::Gpu, Scope::Sys], Scope::Gpu);
        let value = self.operand(ty);
        let value = self.settled(value);
        if ty.is_int() && self.once_in(4) {
            let expected = if self.once_in(2) { self.b.load(ty, at, MemAttrs::aligned(1)) } else { self.operand(ty) };
            let failure = self.pick(&[Ordering::Relaxed, Ordering::Acquire, Ordering::SeqCst], Ordering::Relaxed);
            let (old, done) = self.b.cmpxchg(at, expected, value, mem, failure);
            self.keep(old);
            return self.keep(done);
        }
        let float = [AtomicOp::Xchg, AtomicOp::Fadd, AtomicOp::Fsub, AtomicOp::Fmax, AtomicOp::Fmin];
        let op = if ty.is_float() {
            self.pick(&float, AtomicOp::Xchg)
        } else {
            let ops: Vec<AtomicOp> =
                AtomicOp::ALL.iter().copied().filter(|op| *op == AtomicOp::Xchg || !float.contains(op)).collect();
            self.pick(&ops, AtomicOp::Add)
        };
        let old = self.b.atomic_rmw(op, at, value, mem);
        if ty.is_float() && op != AtomicOp::Xchg {
            // What NaN it left there is not specified.
            let now = self.b.load(ty, at, MemAttrs::aligned(ty.size()));
            let now = self.settled(now);
            self.b.store(now, at, MemAttrs::aligned(ty.size()));
        }
        if !self.once_in(4) {
            self.keep(old);
        }
    }

    /// Adds and the like that threads of all blocks do to the same cell: the order does not show, as nobody reads.
    fn contended(&mut self) {
        let Some(cells) = self.cells else { return };
        let number = self.rng.below(COMMUTATIVE.len());
        let op = COMMUTATIVE.get(number).copied().unwrap_or(AtomicOp::Add);
        let wide = self.once_in(3);
        let ty = if wide { Type::I64 } else { Type::I32 };
        let cell = self.rng.below(2) as u64;
        let at = self.offset(cells, 64 * number as u64 + if wide { 32 } else { 0 } + 8 * cell);
        let mut mem = MemAttrs::aligned(ty.size());
        mem.order = self.pick(ORDERS, Ordering::Relaxed);
        mem.scope = self.pick(&[Scope::Gpu, Scope::Sys], Scope::Gpu);
        let value = self.operand(ty);
        self.b.atomic_rmw(op, at, value, mem);
    }

    /// A generic pointer to an area, as an area; what `isspace` says of it is kept.
    pub fn generic(&mut self) {
        let Some(area) = self.area(|a| a.space != Space::Generic && a.home != Space::Param) else { return };
        let base = self.emit(Opcode::Addrspacecast, Flags::EMPTY, Type::PTR, &[area.base], Extra::None);
        let spaces = [Space::Global, Space::Shared, Space::Local, Space::Const];
        let space = self.pick(&spaces, Space::Global);
        let asked = self.emit(Opcode::IsSpace, Flags::EMPTY, Type::INVALID, &[base], Extra::Space(space));
        self.keep(asked);
        if self.control.depth == 0 {
            self.areas.push(Area { base, space: Space::Generic, ..area });
        } else {
            let ty = self.any_type();
            let value = self.load_from(&Area { base, space: Space::Generic, ..area }, ty);
            self.keep(value);
        }
    }
}
