//! What threads do together: warps, and shared memory with barriers.

use ptxc_ir::{AtomicOp, Extra, Flags, IntCC, MemAttrs, MemType, Opcode, Ordering, Scope, Type, Value};

use super::body::Body;

const VOTES: &[Opcode] = &[Opcode::VoteAll, Opcode::VoteAny, Opcode::VoteUni, Opcode::VoteBallot];
const REDUCTIONS: &[Opcode] = &[
    Opcode::ReduxAdd,
    Opcode::ReduxSmin,
    Opcode::ReduxSmax,
    Opcode::ReduxUmin,
    Opcode::ReduxUmax,
    Opcode::ReduxAnd,
    Opcode::ReduxOr,
    Opcode::ReduxXor,
];
const FLOAT_REDUCTIONS: &[Opcode] =
    &[Opcode::ReduxFmin, Opcode::ReduxFmax, Opcode::ReduxFminimum, Opcode::ReduxFmaximum];
/// Bytes of a thread's slot in the memory that values are exchanged through.
pub const SLOT: u64 = 16;

impl Body<'_> {
    /// One operation of the lanes that are here together, its results kept. False when they are not known.
    pub fn warp(&mut self) -> bool {
        let Some(lanes) = self.control.lanes else { return false };
        if self.features.warp_trees && self.once_in(2) {
            let all = self.b.func.dfg.as_const(lanes).is_some();
            match self.rng.below(4) {
                0 if all => self.butterfly(lanes),
                1 if all => self.one_lane_tree(lanes),
                2 if all => self.all_alike(lanes),
                _ => self.compared_ballot(lanes),
            }
            return true;
        }
        match self.rng.below(7) {
            0..=2 => self.shuffle(lanes),
            3 => {
                let op = self.pick(VOTES, Opcode::VoteAll);
                let predicate = self.operand(Type::I1);
                self.together(op, Type::INVALID, &[predicate, lanes]);
            }
            4 => {
                let (ops, ty) = match self.features.floats && self.once_in(3) {
                    true => (FLOAT_REDUCTIONS, Type::F32),
                    false => (REDUCTIONS, Type::I32),
                };
                let op = self.pick(ops, Opcode::ReduxAdd);
                let value = self.operand(ty);
                let value = if ty == Type::F32 && self.once_in(3) { self.op(Opcode::Fabs, &[value]) } else { value };
                self.together(op, ty, &[value, lanes]);
            }
            5 => {
                let op = if self.once_in(2) { Opcode::MatchAny } else { Opcode::MatchAll };
                let ty = self.int_type();
                let ty = if ty.scalar_bits() > 64 { Type::I32 } else { ty };
                let value = self.operand(ty);
                let value = if self.once_in(2) { self.masked(value, 3) } else { value };
                self.together(op, ty, &[value, lanes]);
            }
            _ => {
                self.b.inst(Opcode::BarrierWarp, Flags::EMPTY, Type::INVALID, &[lanes], Extra::None);
            }
        }
        true
    }

    /// A reduction over the warp in five steps, or nearly one.
    fn butterfly(&mut self, lanes: Value) {
        let ops = [Opcode::Add, Opcode::Smin, Opcode::Smax, Opcode::Umin, Opcode::Umax, Opcode::And, Opcode::Or];
        let floats = [Opcode::Fmin, Opcode::Fmax, Opcode::Fminimum, Opcode::Fmaximum];
        let ty = if self.features.floats && self.once_in(3) { Type::F32 } else { Type::I32 };
        let (op, wrong) = match ty == Type::F32 {
            true => (self.pick(&floats, Opcode::Fmin), Opcode::Fmax),
            false => (self.pick(&ops, Opcode::Xor), Opcode::Xor),
        };
        // Numbers may go from lane to lane as words.
        let as_words = ty == Type::F32 && self.once_in(2);
        let exchanged = if as_words { Type::I32 } else { ty };
        let mut distances = vec![16, 8, 4, 2, 1];
        let (a, b) = (self.rng.below(5), self.rng.below(5));
        distances.swap(a, b);
        if self.once_in(5) {
            distances[a] = 8;
        }
        let clamp = self.int(Type::I32, 31);
        let mut sum = self.operand(ty);
        for distance in distances {
            let distance = self.int(Type::I32, distance);
            let given = if as_words { self.convert(Opcode::Bitcast, sum, Type::I32) } else { sum };
            let args = [given, distance, clamp, lanes];
            let inst =
                self.b.inst_with_results(Opcode::ShflBfly, Flags::EMPTY, exchanged, &args, Extra::None, &[exchanged]);
            let other = self.b.func.dfg.result(inst, 0);
            let other = if as_words { self.convert(Opcode::Bitcast, other, ty) } else { other };
            let op = if self.once_in(24) { wrong } else { op };
            sum = self.combined(op, sum, other);
            if self.once_in(16) {
                self.keep(sum);
            }
        }
        self.keep(sum);
    }

    /// An operation on two numbers in any order, minima and maxima as choices too.
    fn combined(&mut self, op: Opcode, a: Value, b: Value) -> Value {
        let (a, b) = if self.once_in(2) { (a, b) } else { (b, a) };
        let cc = match op {
            Opcode::Smin => IntCC::Slt,
            Opcode::Smax => IntCC::Sgt,
            Opcode::Umin => IntCC::Ule,
            Opcode::Umax => IntCC::Uge,
            _ => return self.op(op, &[a, b]),
        };
        if self.once_in(2) {
            return self.op(op, &[a, b]);
        }
        let holds = self.icmp(cc, a, b);
        self.select(holds, a, b)
    }

    /// A reduction by shuffles down or up, which one lane has, chooses or hands to the others; or nearly so.
    fn one_lane_tree(&mut self, lanes: Value) {
        let ops = [Opcode::Add, Opcode::Smin, Opcode::Smax, Opcode::Umin, Opcode::Umax, Opcode::And, Opcode::Or];
        let op = self.pick(&ops, Opcode::Xor);
        let (kind, clamp, mut lane) = if self.once_in(2) { (Opcode::ShflDown, 31, 0) } else { (Opcode::ShflUp, 0, 31) };
        let mut distances = vec![16, 8, 4, 2, 1];
        let (a, b) = (self.rng.below(5), self.rng.below(5));
        distances.swap(a, b);
        if self.once_in(8) {
            distances[a] = 8;
        }
        let clamp = self.int(Type::I32, clamp);
        let mut sum = self.operand(Type::I32);
        for distance in distances {
            let distance = self.int(Type::I32, distance);
            let args = [sum, distance, clamp, lanes];
            let inst = self.b.inst_with_results(kind, Flags::EMPTY, Type::I32, &args, Extra::None, &[Type::I32]);
            let other = self.b.func.dfg.result(inst, 0);
            sum = self.combined(op, sum, other);
        }
        // The other end has what it began with.
        if self.once_in(8) {
            lane = if self.once_in(2) { 31 - lane } else { self.rng.below(32) as i64 };
        }
        let number = self.int(Type::I32, lane);
        if self.once_in(3) {
            let clamp = self.int(Type::I32, 31);
            let args = [sum, number, clamp, lanes];
            let op = Opcode::ShflIdx;
            let inst = self.b.inst_with_results(op, Flags::EMPTY, Type::I32, &args, Extra::None, &[Type::I32]);
            let handed = self.b.func.dfg.result(inst, 0);
            self.keep(handed);
        }
        let Some(register) = ptxc_targets::SpecialReg::from_name("laneid") else { return };
        let own = self.b.sreg(register, Type::I32);
        let cc = self.pick(&[IntCC::Eq, IntCC::Eq, IntCC::Ne, IntCC::Uge], IntCC::Eq);
        let here = self.icmp(cc, own, number);
        let other = self.operand(Type::I32);
        let chosen = if cc == IntCC::Ne { self.b.select(here, other, sum) } else { self.b.select(here, sum, other) };
        self.keep(chosen);
        if self.once_in(8) {
            self.keep(sum);
        }
    }

    /// Whether all lanes have what one has.
    fn all_alike(&mut self, lanes: Value) {
        let ty = self.pick(&[Type::I32, Type::I64, Type::I16], Type::I32);
        let value = self.operand(ty);
        let value = if self.once_in(2) { self.masked(value, 1) } else { value };
        let (lane, clamp) = (self.index(32), self.int(Type::I32, 31));
        let args = [value, lane, clamp, lanes];
        let inst = self.b.inst_with_results(Opcode::ShflIdx, Flags::EMPTY, ty, &args, Extra::None, &[ty]);
        let other = self.b.func.dfg.result(inst, 0);
        let equal = self.icmp(IntCC::Eq, value, other);
        self.together(Opcode::VoteAll, Type::INVALID, &[equal, lanes]);
    }

    /// A ballot that is compared with nobody, with all that are here, or with some number.
    fn compared_ballot(&mut self, lanes: Value) {
        let predicate = self.operand(Type::I1);
        let inst = self.b.inst(Opcode::VoteBallot, Flags::EMPTY, Type::INVALID, &[predicate, lanes], Extra::None);
        let ballot = self.b.func.dfg.result(inst, 0);
        let nobody = self.int(Type::I32, 0);
        let with = match self.rng.below(5) {
            0 | 1 => nobody,
            2 | 3 => lanes,
            _ => self.operand(Type::I32),
        };
        if self.once_in(3) {
            let count = self.op(Opcode::Ctpop, &[ballot]);
            let bounds = [0, 1, 31, 32];
            let bound = self.pick(&bounds, 32);
            let bound = self.int(Type::I32, bound);
            let cc = self.pick(IntCC::ALL, IntCC::Eq);
            let answer = self.icmp(cc, count, bound);
            return self.keep(answer);
        }
        let cc = self.pick(&[IntCC::Eq, IntCC::Ne], IntCC::Eq);
        let answer = if self.once_in(2) { self.icmp(cc, ballot, with) } else { self.icmp(cc, with, ballot) };
        self.keep(answer);
        if self.once_in(4) {
            self.keep(ballot);
        }
    }

    fn together(&mut self, op: Opcode, ty: Type, args: &[Value]) {
        let inst = self.b.inst(op, Flags::EMPTY, ty, args, Extra::None);
        let results: Vec<Value> = self.b.func.dfg.results(inst).collect();
        self.scope.extend(results);
    }

    /// A value of another lane that is here as well.
    fn shuffle(&mut self, lanes: Value) {
        let scalar = self.scalar_type();
        let scalar = if scalar.scalar_bits() > 64 { Type::I64 } else { scalar };
        let ty = self.widened(scalar);
        let value = self.operand(ty);
        let all = self.b.func.dfg.as_const(lanes).is_some();
        let (op, lane, clamp) = if all {
            let op = self.pick(&[Opcode::ShflIdx, Opcode::ShflUp, Opcode::ShflDown, Opcode::ShflBfly], Opcode::ShflIdx);
            let widths = [0, 16, 24, 28];
            let segment = (self.pick(&widths, 0)) << 8;
            let clamp = segment | if op == Opcode::ShflUp { 0 } else { 31 };
            (op, self.index(32), clamp)
        } else {
            // The first lane that is here.
            let first = self.op(Opcode::Cttz, &[lanes]);
            (Opcode::ShflIdx, first, 31)
        };
        let clamp = self.int(Type::I32, clamp);
        let args = [value, lane, clamp, lanes];
        let results = if self.once_in(2) { vec![ty, Type::I1] } else { vec![ty] };
        let inst = self.b.inst_with_results(op, Flags::EMPTY, ty, &args, Extra::None, &results);
        let results: Vec<Value> = self.b.func.dfg.results(inst).collect();
        self.scope.extend(results);
    }

    fn barrier(&mut self) {
        let number = self.rng.below(4) as i64;
        let number = self.int(Type::I32, number);
        let flags = if self.once_in(2) { Flags::ALIGNED } else { Flags::EMPTY };
        if self.once_in(4) {
            let predicate = self.operand(Type::I1);
            let op = self
                .pick(&[Opcode::BarrierRedPopc, Opcode::BarrierRedAnd, Opcode::BarrierRedOr], Opcode::BarrierRedPopc);
            let inst = self.b.inst(op, flags, Type::INVALID, &[number, predicate], Extra::None);
            let result = self.b.func.dfg.result(inst, 0);
            self.uniform.insert(result);
            return self.keep(result);
        }
        let mut args = vec![number];
        if self.once_in(4) {
            let threads = self.int(Type::I32, self.facts.threads.into());
            args.push(threads);
        }
        self.b.inst(Opcode::BarrierSync, flags, Type::INVALID, &args, Extra::None);
    }

    fn slot(&mut self, tile: Value, number: Value) -> Value {
        let over = MemType::Value(Type::I32.with_lanes(4));
        self.emit(Opcode::Gep, Flags::EMPTY, Type::INVALID, &[tile, number], Extra::Gep(over))
    }

    /// Values exchanged by all threads of the block. False where they are not together.
    pub fn exchange(&mut self) -> bool {
        let Some((tile, thread)) = self.exchange.filter(|_| self.control.uniform) else { return false };
        let atomic = self.features.atomics && self.once_in(3);
        let scalar = self.scalar_type();
        let mut ty = self.widened(scalar);
        if ty.size() > SLOT {
            ty = Type::I32.with_lanes(4);
        }
        if atomic {
            ty = Type::I32;
        }
        let mine = self.slot(tile, thread);
        let value = self.operand(ty);
        let value = self.settled(value);
        let mem = MemAttrs::aligned(ty.size().next_power_of_two().min(SLOT));
        self.b.store(value, mine, mem);
        self.barrier();
        let other = self.index(self.facts.threads.into());
        let theirs = self.slot(tile, other);
        if atomic {
            let ops = [AtomicOp::Add, AtomicOp::Xor, AtomicOp::Umax, AtomicOp::Smin];
            let op = self.pick(&ops, AtomicOp::Add);
            let mut mem = MemAttrs::aligned(4);
            mem.order = Ordering::Relaxed;
            mem.scope = Scope::Cta;
            let value = self.operand(ty);
            self.b.atomic_rmw(op, theirs, value, mem);
            self.barrier();
            let sum = self.b.load(ty, mine, mem_plain());
            self.keep(sum);
        } else {
            let read = self.b.load(ty, theirs, mem);
            self.keep(read);
        }
        // Nobody writes the next value before all have read this one.
        self.barrier();
        true
    }
}

fn mem_plain() -> MemAttrs {
    MemAttrs::aligned(4)
}
