//! Promises that hold because of a branch: of values that several ways bring, behind a comparison, or of a value that is
//! poison where it is not used. What moves or merges instructions must not make them hold elsewhere.

use ptxc_ir::{Block, Extra, Flags, IntCC, Opcode, Type, Value};

use super::body::{Body, mask};

/// A value some of whose bits are zero, as a mask of these.
#[derive(Clone, Copy)]
struct Sparse {
    value: Value,
    clear: u128,
}

/// An operation and when its promises hold.
struct Promise {
    /// Where it holds, the result is defined.
    holds: Value,
    op: Opcode,
    flags: Flags,
    /// The controlling type.
    ty: Type,
    args: Vec<Value>,
    /// Without its flags the result is defined in any case.
    total: bool,
}

const WRAP: [Flags; 3] = [Flags::NUW, Flags::NSW, Flags::from_bits(Flags::NUW.bits() | Flags::NSW.bits())];

impl Body<'_> {
    /// One region with promises.
    pub fn branch_promises(&mut self) {
        if self.once_in(2) { self.joined_promises() } else { self.guarded_promise() }
    }

    /// Values that lack some bits come from several ways; a chain of operations, with branches between them, promises what
    /// follows from that. Mostly none of these bits is read in the end.
    fn joined_promises(&mut self) {
        let ty = self.pick(&[Type::I32, Type::I32, Type::I64, Type::I16, Type::I8], Type::I32);
        let width = ty.scalar_bits();
        let cut = 1 + self.rng.below(width as usize - 1) as u32;
        let (scope, low) = (self.scope.len(), self.once_in(2));
        let clear = if low { mask(cut) } else { mask(width) & !mask(width - cut) };
        let mut sparse = self.ways(ty, clear);
        for _ in 0..1 + self.rng.below(3) {
            sparse = self.promise_more(sparse);
            if self.once_in(3) {
                let ty = self.b.ty(sparse.value);
                sparse = self.another_way(ty, sparse);
            }
        }
        let read = self.read_part(sparse.value, cut, low);
        self.scope.truncate(scope);
        self.keep(read);
    }

    /// A value without the bits of a mask.
    fn without_bits(&mut self, ty: Type, clear: u128) -> Value {
        let value = self.operand(ty);
        self.masked(value, mask(ty.scalar_bits()) & !clear)
    }

    /// A block that two or three ways bring a value to, each without the bits.
    fn ways(&mut self, ty: Type, clear: u128) -> Sparse {
        let first = Sparse { value: self.without_bits(ty, clear), clear };
        let mut sparse = self.another_way(ty, first);
        if self.once_in(4) {
            sparse = self.another_way(ty, sparse);
        }
        sparse
    }

    /// A branch after which the value is this one or another that lacks the same bits.
    fn another_way(&mut self, ty: Type, sparse: Sparse) -> Sparse {
        let (before, scope) = (self.control, self.scope.len());
        let condition = self.condition(false);
        let early = self.once_in(2).then(|| self.without_bits(ty, sparse.clear));
        let (merge, way) = (self.b.append_block(), self.b.append_block());
        let param = self.b.block_param(merge, ty);
        if self.once_in(2) {
            self.b.br(condition, (way, &[]), (merge, &[sparse.value]));
        } else {
            let straight = self.b.append_block();
            self.b.br(condition, (straight, &[]), (way, &[]));
            self.enter(straight, scope);
            self.something(&before);
            self.b.jump(merge, &[sparse.value]);
        }
        self.enter(way, scope);
        self.something(&before);
        let other = early.unwrap_or_else(|| self.without_bits(ty, sparse.clear));
        self.b.jump(merge, &[other]);
        self.rejoin(before);
        self.enter(merge, scope);
        self.scope.truncate(scope);
        Sparse { value: param, ..sparse }
    }

    /// Something that keeps a way from being a choice of values.
    fn something(&mut self, before: &super::body::Control) {
        self.control = *before;
        self.inside(false);
        match self.rng.below(3) {
            0 if self.features.memory => self.access(),
            1 => self.integer(),
            _ => {}
        }
    }

    /// An operation whose promise follows from the bits that are zero.
    fn promise_more(&mut self, Sparse { value, clear }: Sparse) -> Sparse {
        let ty = self.b.ty(value);
        let width = ty.scalar_bits();
        let all = mask(width);
        let above = (clear | !all).leading_ones() - (128 - width);
        let below = clear.trailing_ones().min(width);
        let up = 1 + self.rng.below(above.max(1) as usize) as u32;
        let down = 1 + self.rng.below(below.max(1) as usize) as u32;
        match self.rng.below(6) {
            0 if above > 0 && up < width => {
                // The sign stays where one more bit is zero.
                let flags = if up < above { self.pick(&WRAP, Flags::NUW) } else { Flags::NUW };
                let amount = self.int(ty, up.into());
                let value = self.emit(Opcode::Shl, flags, ty, &[value, amount], Extra::None);
                Sparse { value, clear: (clear << up | mask(up)) & all }
            }
            1 if below > 0 && down < width => {
                let amount = self.int(ty, down.into());
                let (op, filled) = match self.once_in(2) {
                    true => (Opcode::Lshr, all & !(all >> down)),
                    false if above > 0 => (Opcode::Ashr, all & !(all >> down)),
                    false => (Opcode::Ashr, 0),
                };
                let value = self.emit(op, Flags::EXACT, ty, &[value, amount], Extra::None);
                Sparse { value, clear: clear >> down | filled }
            }
            2 if above > 0 && width < 64 => {
                let wide = if width < 32 { Type::I32 } else { Type::I64 };
                let value = self.emit(Opcode::Zext, Flags::NNEG, wide, &[value], Extra::None);
                Sparse { value, clear: clear | mask(wide.scalar_bits()) & !all }
            }
            3 if above > 1 => {
                let factor = 1 + self.rng.below(1 << (above - 1).min(10)) as i64;
                let factor = self.int(ty, factor);
                let flags = self.pick(&WRAP, Flags::NUW);
                // Less than half of the range is used.
                let value = self.emit(Opcode::Mul, flags, ty, &[value, factor], Extra::None);
                Sparse { value, clear: mask(below) & all }
            }
            _ => {
                // Only bits that the other lacks: no carry.
                let some = self.rng.bits() as u128 | (self.rng.bits() as u128) << 64;
                let bits = if self.once_in(2) { clear } else { clear & some };
                let other = self.operand(ty);
                let other = self.masked(other, bits);
                let (op, flags) = match self.once_in(2) {
                    true => (Opcode::Or, Flags::DISJOINT),
                    false => (Opcode::Add, self.pick(&WRAP, Flags::NUW)),
                };
                let args = if self.once_in(2) { [value, other] } else { [other, value] };
                let value = self.emit(op, flags, ty, &args, Extra::None);
                Sparse { value, clear: clear & !bits }
            }
        }
    }

    /// Some bits of a value: mostly not those at the end that was cut.
    fn read_part(&mut self, value: Value, cut: u32, low: bool) -> Value {
        let ty = self.b.ty(value);
        let width = ty.scalar_bits();
        let cut = if self.once_in(4) { 1 + self.rng.below(width as usize - 1) as u32 } else { cut.min(width - 1) };
        if low {
            let amount = self.int(ty, cut.into());
            let op = if self.once_in(3) { Opcode::Ashr } else { Opcode::Lshr };
            return self.op(op, &[value, amount]);
        }
        let kept = width - cut;
        match [8, 16, 32].into_iter().find(|bits| *bits <= kept && self.rng.once_in(2)) {
            Some(bits) if bits < width => self.convert(Opcode::Trunc, value, Type::int(bits)),
            _ if self.once_in(3) => {
                let amount = self.int(ty, cut.into());
                self.op(Opcode::Shl, &[value, amount])
            }
            _ => self.masked(value, mask(kept)),
        }
    }

    /// An operation that is defined where a condition holds, and a branch on that condition. The operation stands before the
    /// branch or behind it; without its promises it stands where the condition does not hold, or behind all.
    fn guarded_promise(&mut self) {
        let ty = self.pick(&[Type::I32, Type::I32, Type::I64, Type::I16, Type::I8], Type::I32);
        let promise = self.promise(ty);
        let (before, scope) = (self.control, self.scope.len());
        let early = self.once_in(2).then(|| self.promised_result(&promise, promise.flags));
        if let Some(result) = early
            && self.once_in(3)
        {
            return self.carried_promise(&promise, result);
        }
        // The type that is controlled is that of the result, of extensions too.
        let out = promise.ty;
        let (then, other, merge) = (self.b.append_block(), self.b.append_block(), self.b.append_block());
        self.b.block_param(merge, out);
        self.b.br(promise.holds, (then, &[]), (other, &[]));
        self.enter(then, scope);
        self.something(&before);
        if self.once_in(3) {
            self.b.inst(Opcode::Assume, Flags::EMPTY, Type::INVALID, &[promise.holds], Extra::None);
        }
        let result = early.unwrap_or_else(|| self.promised_result(&promise, promise.flags));
        self.keep(result);
        let passed = if self.once_in(2) { result } else { self.after(out) };
        self.b.jump(merge, &[passed]);
        self.enter(other, scope);
        self.something(&before);
        if promise.total && !self.once_in(3) {
            let result = self.promised_result(&promise, Flags::EMPTY);
            self.keep(result);
        }
        let passed = self.after(out);
        self.b.jump(merge, &[passed]);
        self.rejoin(before);
        self.enter(merge, scope);
        if promise.total && self.once_in(2) {
            let result = self.promised_result(&promise, Flags::EMPTY);
            self.keep(result);
        }
    }

    /// A value of the type, after one more operation.
    fn after(&mut self, ty: Type) -> Value {
        self.integer();
        self.operand(ty)
    }

    /// The result, poison perhaps, goes through the parameter of a block with the condition; behind it the condition decides
    /// again.
    fn carried_promise(&mut self, promise: &Promise, result: Value) {
        let (before, scope) = (self.control, self.scope.len());
        let ty = self.b.ty(result);
        let (way, merge): (Block, Block) = (self.b.append_block(), self.b.append_block());
        let params = [self.b.block_param(merge, ty), self.b.block_param(merge, Type::I1)];
        let condition = self.condition(false);
        let replaced = self.operand(ty);
        let always = self.int(Type::I1, -1);
        self.b.br(condition, (way, &[]), (merge, &[result, promise.holds]));
        self.enter(way, scope);
        self.something(&before);
        let passed = if self.once_in(2) { [result, promise.holds] } else { [replaced, always] };
        self.b.jump(merge, &passed);
        self.rejoin(before);
        self.enter(merge, scope);
        self.scope.truncate(scope);
        let other = match promise.total && self.once_in(2) {
            true => self.promised_result(promise, Flags::EMPTY),
            false => self.operand(ty),
        };
        let chosen = self.select(params[1], params[0], other);
        self.keep(chosen);
    }

    fn promised_result(&mut self, promise: &Promise, flags: Flags) -> Value {
        self.emit(promise.op, flags, promise.ty, &promise.args, Extra::None)
    }

    /// An operation of integers of the type, and a condition that its promises follow from.
    fn promise(&mut self, ty: Type) -> Promise {
        let width = ty.scalar_bits();
        let (a, b) = (self.operand(ty), self.operand(ty));
        let bits = 1 + self.rng.below(width as usize - 1) as u32;
        let made = |holds, op, flags, args: Vec<Value>| Promise { holds, op, flags, ty, args, total: true };
        match self.rng.below(8) {
            0 => {
                let limit = self.b.bits(ty, u128::from(width));
                let op = self.pick(&[Opcode::Shl, Opcode::Lshr, Opcode::Ashr], Opcode::Shl);
                let holds = self.icmp(IntCC::Ult, b, limit);
                Promise { total: false, ..made(holds, op, Flags::EMPTY, vec![a, b]) }
            }
            1 => {
                let limit = self.b.bits(ty, 1 << bits);
                let holds = self.icmp(IntCC::Ult, a, limit);
                let other = self.masked(b, mask(width) & !mask(bits));
                made(holds, Opcode::Or, Flags::DISJOINT, vec![a, other])
            }
            2 => {
                let limit = self.b.bits(ty, 1 << (width - bits));
                let holds = self.icmp(IntCC::Ult, a, limit);
                let amount = self.int(ty, bits.into());
                made(holds, Opcode::Shl, Flags::NUW, vec![a, amount])
            }
            3 => {
                let (low, zero) = (self.masked(a, mask(bits)), self.int(ty, 0));
                let holds = self.icmp(IntCC::Eq, low, zero);
                let amount = self.int(ty, bits.into());
                let op = self.pick(&[Opcode::Lshr, Opcode::Ashr], Opcode::Lshr);
                made(holds, op, Flags::EXACT, vec![a, amount])
            }
            4 if width < 64 => {
                let zero = self.int(ty, 0);
                let holds = self.icmp(IntCC::Sge, a, zero);
                Promise { ty: Type::I64, ..made(holds, Opcode::Zext, Flags::NNEG, vec![a]) }
            }
            5 => {
                let number = self.b.bits(ty, 1 << bits);
                let most = self.b.bits(ty, mask(width) - (1 << bits));
                let holds = self.icmp(IntCC::Ule, a, most);
                made(holds, Opcode::Add, Flags::NUW, vec![a, number])
            }
            _ => {
                let (op, check, flags) = self.pick(
                    &[
                        (Opcode::Add, Opcode::SaddOverflow, Flags::NSW),
                        (Opcode::Sub, Opcode::SsubOverflow, Flags::NSW),
                        (Opcode::Mul, Opcode::SmulOverflow, Flags::NSW),
                        (Opcode::Add, Opcode::UaddOverflow, Flags::NUW),
                        (Opcode::Sub, Opcode::UsubOverflow, Flags::NUW),
                        (Opcode::Mul, Opcode::UmulOverflow, Flags::NUW),
                    ],
                    (Opcode::Sub, Opcode::UsubOverflow, Flags::NUW),
                );
                let holds = if op == Opcode::Sub && flags == Flags::NUW && self.once_in(2) {
                    self.icmp(IntCC::Ule, b, a)
                } else {
                    let (_, lost) = self.overflows(check, a, b);
                    let one = self.int(Type::I1, -1);
                    self.op(Opcode::Xor, &[lost, one])
                };
                made(holds, op, flags, vec![a, b])
            }
        }
    }
}
