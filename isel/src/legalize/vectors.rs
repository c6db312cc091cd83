//! Building, taking apart and reducing vectors, lane by lane.

use ptxc_ir::{Extra, Flags, Inst, IntCC, Opcode, Type, Value};

use super::context::Context;
use super::parts::{Lane, Lanes, Parts};
use crate::rules::Pattern;

impl Context<'_> {
    /// `vector`, `extract`, `insert`, `shuffle`, `splat` and `reduce.*`.
    pub fn visit_vector(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        let args = self.args(inst);
        let lanes = match data.op {
            Opcode::Vector => {
                if self.features.legal_value(data.ty) {
                    return;
                }
                args.iter().map(|v| self.scalar(*v)).collect()
            }
            Opcode::Splat => {
                let lane = self.scalar(args[0]);
                smallvec::smallvec![lane; data.ty.lanes() as usize]
            }
            Opcode::Extract => {
                let constant = self.func.dfg.as_bits(args[1]);
                if self.features.legal_value(data.ty) && constant.is_some_and(|k| k < data.ty.lanes().into()) {
                    return;
                }
                let lanes = self.lanes_of(args[0]);
                let lane = self.pick(data.ty.scalar(), &lanes, args[1]);
                smallvec::smallvec![lane]
            }
            Opcode::Insert => self.insert_lane(data.ty, args[0], args[1], args[2]),
            Opcode::Shuffle => {
                let Extra::Mask(mask) = data.extra else { return };
                self.shuffle_lanes(data.ty, args[0], args[1], &self.func.dfg.masks[mask].clone())
            }
            _ => {
                let lane = self.reduce(data.op, data.flags, data.ty, args[0]);
                smallvec::smallvec![lane]
            }
        };
        self.finish(inst, &lanes);
    }

    fn poison_lane(&mut self, scalar: Type) -> Lane {
        let poison = self.func.dfg.poison(scalar);
        self.scalar(poison)
    }

    /// Lane `index`; a tree of selections by the bits of the index when it is not constant.
    fn pick(&mut self, scalar: Type, lanes: &[Lane], index: Value) -> Lane {
        if let Some(k) = self.func.dfg.as_bits(index) {
            return match lanes.get(usize::try_from(k).unwrap_or(usize::MAX)) {
                Some(lane) => *lane,
                None => self.poison_lane(scalar),
            };
        }
        self.note(Pattern::LegalExtract);
        let index = self.index_value(index);
        let mut level: Lanes = Lanes::from_slice(lanes);
        let mut bit = 0;
        while level.len() > 1 {
            let mask = self.imm(Type::I32, 1 << bit);
            let set = self.bin(Opcode::And, index, mask);
            let odd = self.icmp_imm(IntCC::Ne, set, 0);
            level = level
                .chunks(2)
                .map(|pair| match pair {
                    [even, other] => self.lane_select(odd, *other, *even),
                    _ => pair[0],
                })
                .collect();
            bit += 1;
        }
        level[0]
    }

    /// A lane index of any integer type as an `i32`; indices out of range give poison, so upper bits do not matter.
    fn index_value(&mut self, index: Value) -> Value {
        let ty = self.ty(index);
        let lane = self.scalar(index);
        self.lane_as_unsigned(ty, lane, Type::I32)
    }

    fn insert_lane(&mut self, ty: Type, vector: Value, element: Value, index: Value) -> Lanes {
        let mut lanes = self.lanes_of(vector);
        let element = self.scalar(element);
        if let Some(k) = self.func.dfg.as_bits(index) {
            if let Some(lane) = usize::try_from(k).ok().and_then(|k| lanes.get_mut(k)) {
                *lane = element;
            }
            return lanes;
        }
        self.note(Pattern::LegalInsert);
        debug_assert_eq!(lanes.len(), ty.lanes() as usize);
        let index = self.index_value(index);
        lanes
            .iter()
            .enumerate()
            .map(|(k, lane)| {
                let here = self.icmp_imm(IntCC::Eq, index, k as i64);
                self.lane_select(here, element, *lane)
            })
            .collect()
    }

    fn shuffle_lanes(&mut self, ty: Type, a: Value, b: Value, mask: &[i32]) -> Lanes {
        let mut lanes = self.lanes_of(a);
        lanes.extend(self.lanes_of(b));
        let poison = self.poison_lane(ty.scalar());
        mask.iter().map(|k| usize::try_from(*k).ok().and_then(|k| lanes.get(k)).copied().unwrap_or(poison)).collect()
    }

    /// Folds lanes into one: in order for float sums and products that may not be reassociated, as a tree otherwise.
    fn reduce(&mut self, op: Opcode, flags: Flags, ty: Type, vector: Value) -> Lane {
        let scalar = ty.scalar();
        use Opcode::*;
        let binary = match op {
            ReduceAdd => Add,
            ReduceMul => Mul,
            ReduceAnd => And,
            ReduceOr => Or,
            ReduceXor => Xor,
            ReduceSmin => Smin,
            ReduceSmax => Smax,
            ReduceUmin => Umin,
            ReduceUmax => Umax,
            ReduceFadd => Fadd,
            ReduceFmul => Fmul,
            ReduceFmin => Fmin,
            ReduceFmax => Fmax,
            ReduceFminimum => Fminimum,
            _ => Fmaximum,
        };
        let in_order = matches!(op, ReduceFadd | ReduceFmul) && !flags.contains(Flags::REASSOC);
        if in_order {
            self.note(Pattern::LegalReduceOrdered);
            let lanes = self.lanes_of(vector);
            let mut acc = lanes[0];
            for lane in &lanes[1..] {
                acc = self.lane_binary(binary, flags, scalar, acc, *lane);
            }
            return acc;
        }
        self.note(Pattern::LegalReduceTree);
        let parts = self.reduce_pairs(binary, flags, ty, vector);
        let mut level = self.lanes_from_parts(ty, &parts);
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => self.lane_binary(binary, flags, scalar, *a, *b),
                    _ => pair[0],
                })
                .collect();
        }
        level[0]
    }

    /// The parts of a vector, its pairs of lanes folded into one where the target has the operation on pairs.
    fn reduce_pairs(&mut self, op: Opcode, flags: Flags, ty: Type, vector: Value) -> Parts {
        let mut parts = self.parts_of(vector);
        let pair = ty.scalar().with_lanes(2);
        let has = match ty.scalar() {
            Type::I16 => self.features.pair_op_16(op) || matches!(op, Opcode::And | Opcode::Or | Opcode::Xor),
            scalar => self.features.paired(scalar) && self.features.float_op(op, flags, pair),
        };
        while has && parts.len() > 1 && self.ty(parts[1]) == pair {
            let mut next = Parts::new();
            for two in parts.chunks(2) {
                match *two {
                    [a, b] if self.ty(b) == pair => next.push(self.value(op, flags, pair, &[a, b], Extra::None)),
                    _ => next.extend_from_slice(two),
                }
            }
            parts = next;
        }
        parts
    }
}
