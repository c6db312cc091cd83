//! Building vectors, taking them apart, and reductions.

use ptxc_ir::{Extra, Flags, Opcode, Type, Value};

use super::body::{Body, WIDEST};

const INTEGERS: &[Opcode] = &[
    Opcode::ReduceAdd,
    Opcode::ReduceMul,
    Opcode::ReduceAnd,
    Opcode::ReduceOr,
    Opcode::ReduceXor,
    Opcode::ReduceSmin,
    Opcode::ReduceSmax,
    Opcode::ReduceUmin,
    Opcode::ReduceUmax,
];
const FLOATS: &[Opcode] = &[
    Opcode::ReduceFadd,
    Opcode::ReduceFmul,
    Opcode::ReduceFmin,
    Opcode::ReduceFmax,
    Opcode::ReduceFminimum,
    Opcode::ReduceFmaximum,
];

impl Body<'_> {
    fn vector_type(&mut self) -> Type {
        let scalar = self.scalar_type();
        let lanes = self.pick(&[2, 2, 3, 4, 4, 8], 2);
        if scalar.with_lanes(lanes).size() > WIDEST { scalar.with_lanes(2) } else { scalar.with_lanes(lanes) }
    }

    /// A lane number of the vector type, constant or not.
    fn lane(&mut self, ty: Type) -> Value {
        let index = self.index(ty.lanes().into());
        if self.once_in(3) { self.convert(Opcode::Zext, index, Type::I64) } else { index }
    }

    /// One operation that makes or takes apart a vector, its result kept.
    pub fn vector(&mut self) {
        let ty = self.vector_type();
        let value = match self.rng.below(7) {
            0 => {
                let lanes: Vec<Value> = (0..ty.lanes()).map(|_| self.operand(ty.scalar())).collect();
                self.emit(Opcode::Vector, Flags::EMPTY, ty, &lanes, Extra::None)
            }
            1 => {
                let (vector, lane) = (self.operand(ty), self.lane(ty));
                self.emit(Opcode::Extract, Flags::EMPTY, ty, &[vector, lane], Extra::None)
            }
            2 => {
                let (vector, element, lane) = (self.operand(ty), self.operand(ty.scalar()), self.lane(ty));
                self.emit(Opcode::Insert, Flags::EMPTY, ty, &[vector, element, lane], Extra::None)
            }
            3 => self.shuffled(ty),
            4 => {
                let scalar = self.operand(ty.scalar());
                self.emit(Opcode::Splat, Flags::EMPTY, ty, &[scalar], Extra::None)
            }
            5 => {
                let op = if ty.is_float_like() {
                    self.pick(FLOATS, Opcode::ReduceFadd)
                } else {
                    self.pick(INTEGERS, Opcode::ReduceAdd)
                };
                let vector = self.operand(ty);
                self.emit(op, Flags::EMPTY, ty, &[vector], Extra::None)
            }
            _ => self.recast(ty),
        };
        self.keep(value);
    }

    fn shuffled(&mut self, ty: Type) -> Value {
        let (a, b) = (self.operand(ty), self.operand(ty));
        let lanes = ty.lanes() as usize;
        let count = match self.rng.below(3) {
            0 => lanes,
            1 => 2,
            _ => self.pick(&[1, 2, 3, 4], 2),
        };
        let mask: Vec<i32> = (0..count).map(|_| self.rng.below(2 * lanes) as i32).collect();
        let id = self.b.func.dfg.masks.push(mask);
        let result = ty.scalar().with_lanes(count as u32);
        let inst = self.b.inst_with_results(Opcode::Shuffle, Flags::EMPTY, ty, &[a, b], Extra::Mask(id), &[result]);
        let value = self.b.func.dfg.result(inst, 0);
        if self.is_uniform(a) && self.is_uniform(b) {
            self.uniform.insert(value);
        }
        value
    }

    /// The same bits in other lanes.
    fn recast(&mut self, ty: Type) -> Value {
        let value = self.operand(ty);
        let value = self.settled(value);
        let bits = ty.bits();
        let scalars = [Type::I8, Type::I16, Type::I32, Type::I64, Type::F32, Type::I1, Type::F16, Type::I128];
        let scalar = self.pick(&scalars, Type::I32);
        let allowed = self.ints.contains(&scalar) || self.floats.contains(&scalar);
        let lanes = bits / scalar.scalar_bits();
        if !allowed || !bits.is_multiple_of(scalar.scalar_bits()) || lanes > 32 {
            return value;
        }
        let to = if lanes == 1 && self.once_in(2) { scalar } else { scalar.with_lanes(lanes) };
        if to == ty { value } else { self.convert(Opcode::Bitcast, value, to) }
    }
}
