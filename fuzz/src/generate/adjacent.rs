//! Accesses of neighbouring elements, as unrolled loops leave them: what may become wider accesses, and what forbids it.

use ptxc_ir::{AtomicOp, Extra, Flags, MemAttrs, MemType, Opcode, Ordering, Scope, Space, Type, Value};

use super::body::{Area, Body};

/// Most elements.
const MOST: usize = 8;

impl Body<'_> {
    /// Loads from neighbouring elements, an operation on each, and stores to neighbouring elements of the same memory or
    /// of other. False when there is no memory.
    pub fn adjacent(&mut self) -> bool {
        let mut types = vec![Type::I32, Type::I32, Type::I32, Type::I64, Type::I16, Type::I8];
        types.extend(self.floats.iter().copied());
        let ty = self.pick(&types, Type::I32);
        let count = 2 + self.rng.below(MOST - 1) as u64;
        let room = count * ty.size();
        let from = self.area(|a| a.size >= room);
        let to = self.area(|a| a.private && a.size >= room);
        let (Some(from), Some(to)) = (from, to) else { return false };
        let (loads, stores) = (self.elements(&from, ty, count), self.elements(&to, ty, count));
        let order = self.order(count as usize);
        let together = self.once_in(2);
        let operation = self.pick(&[Opcode::Add, Opcode::Xor, Opcode::Mul, Opcode::Sub], Opcode::Add);
        let other = self.operand(ty);
        let mut late: Vec<(usize, Value)> = Vec::new();
        for place in order {
            let (Some(load), Some(store)) = (loads.get(place).copied(), stores.get(place).copied()) else { continue };
            let mut value = self.b.load(ty, load.0, MemAttrs::aligned(load.1));
            self.loaded.insert(value);
            if !self.once_in(3) {
                let operation = if ty.is_float() { Opcode::Fadd } else { operation };
                value = self.op(operation, &[value, other]);
            }
            if self.once_in(4) {
                self.keep(value);
            }
            if together {
                late.push((place, value));
            } else {
                self.put(value, store);
            }
        }
        if self.once_in(4) {
            late.reverse();
        }
        for (place, value) in late {
            if let Some(store) = stores.get(place).copied() {
                self.put(value, store);
            }
        }
        true
    }

    /// Additions to neighbouring floats in global memory, their old values read now and then. False where there are none.
    pub fn adjacent_atomics(&mut self) -> bool {
        let kinds: Vec<Type> =
            self.floats.iter().copied().filter(|ty| [Type::F32, Type::F16, Type::BF16].contains(ty)).collect();
        let Some(ty) = self.rng.pick(&kinds).copied() else { return false };
        let count = 2 + self.rng.below(MOST - 1) as u64;
        let room = count * ty.size();
        let Some(area) = self.area(|a| a.private && a.home == Space::Global && a.size >= room) else { return false };
        let cells = self.elements(&area, ty, count);
        if cells.iter().any(|(_, align)| *align < ty.size()) {
            return false;
        }
        let scope = self.pick(&[Scope::Gpu, Scope::Gpu, Scope::Cta], Scope::Gpu);
        for place in self.order(count as usize) {
            let Some((at, align)) = cells.get(place).copied() else { continue };
            let value = self.operand(ty);
            let value = self.settled(value);
            let mut mem = MemAttrs::aligned(align.min(16));
            mem.order = if self.once_in(16) { Ordering::AcqRel } else { Ordering::Relaxed };
            mem.scope = scope;
            let old = self.b.atomic_rmw(AtomicOp::Fadd, at, value, mem);
            if self.once_in(12) {
                let old = self.settled(old);
                self.keep(old);
            }
            if self.once_in(8) {
                let any = self.pick(&cells, (at, align));
                let read = self.b.load(ty, any.0, MemAttrs::aligned(ty.size()));
                let read = self.settled(read);
                self.keep(read);
            }
        }
        // What NaN they left there is not specified.
        for (at, _) in cells {
            let now = self.b.load(ty, at, MemAttrs::aligned(ty.size()));
            let now = self.settled(now);
            self.b.store(now, at, MemAttrs::aligned(ty.size()));
        }
        true
    }

    fn put(&mut self, value: Value, (at, align): (Value, u64)) {
        let value = self.settled(value);
        let mem = MemAttrs { volatile: self.once_in(24), ..MemAttrs::aligned(align) };
        self.b.store(value, at, mem);
    }

    /// The numbers of elements in the order of their accesses: upwards, or nearly so; some may be left out.
    fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        let (a, b) = (self.rng.below(count), self.rng.below(count));
        match self.rng.below(6) {
            0 => order.reverse(),
            1 => order.swap(a, b),
            2 => drop(order.remove(a)),
            3 => order.insert(a, b),
            _ => {}
        }
        order
    }

    /// Addresses of consecutive elements in an area, and what each is a multiple of.
    fn elements(&mut self, area: &Area, ty: Type, count: u64) -> Vec<(Value, u64)> {
        let size = ty.size();
        let slots = (area.size - count * size) / size + 1;
        if self.once_in(2) || !slots.is_power_of_two() {
            // One address and distances in bytes.
            let aligned = !self.features.unaligned || !self.once_in(4);
            let (base, align) = self.address(area, count * size, aligned);
            let known = |bytes: u64| if bytes == 0 { align } else { align.min(1 << bytes.trailing_zeros()) };
            return (0..count).map(|i| (self.offset(base, i * size), known(i * size).min(area.align))).collect();
        }
        // An index for each, as a loop's copies have it.
        let index = self.index(slots);
        let extend = self.pick(&[Opcode::Zext, Opcode::Sext], Opcode::Zext);
        let flags = if self.features.flags { Flags::NSW | Flags::NUW } else { Flags::EMPTY };
        let over = Extra::Gep(MemType::Value(ty));
        (0..count)
            .map(|i| {
                let step = self.int(Type::I32, i as i64);
                let index = self.emit(Opcode::Add, flags, Type::I32, &[index, step], Extra::None);
                let index = self.convert(extend, index, Type::I64);
                (self.emit(Opcode::Gep, Flags::EMPTY, Type::INVALID, &[area.base, index], over), size)
            })
            .collect()
    }
}
