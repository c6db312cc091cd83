//! The body of a function while it is made: what is in scope, where control is, and how operands are found.
//!
//! Everything in scope is defined: no value is poison, and no use of one is undefined. The parts of the generator keep
//! that up; this file gives them operands.

use cranelift_entity::EntitySet;
use ptxc_ir::testing::Rng;
use ptxc_ir::{
    Block, ConstData, Extra, Flags, FloatCC, FloatKind, FunctionBuilder, IntCC, Module, Opcode, Scalar, Space, Type,
    Value,
};

use super::facts::Facts;
use crate::features::Features;

/// Memory that this thread may access: `size` bytes, a power of two, all initialized.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// Address of the first byte.
    pub base: Value,
    /// What the address is a multiple of, in bytes: 16, or 32 where it is of a buffer.
    pub align: u64,
    /// Space of the pointer.
    pub space: Space,
    /// Where the bytes are, also where the pointer is generic.
    pub home: Space,
    /// Bytes.
    pub size: u64,
    /// The thread may write, and no other accesses it. Otherwise nobody writes.
    pub private: bool,
}

/// What is known of the threads that execute the present position.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// All threads of the block are here together.
    pub uniform: bool,
    /// A value that names the lanes of the warp that are here together, where it is known.
    pub lanes: Option<Value>,
    /// Nested branches, loops and switches.
    pub depth: u32,
    /// Loops among them.
    pub loops: u32,
}

/// A function's body in the making.
pub struct Body<'g> {
    /// The source of choices.
    pub rng: &'g mut Rng,
    /// What may be made.
    pub features: &'g Features,
    /// Types and functions so far.
    pub module: &'g Module,
    /// Symbols to use.
    pub facts: &'g Facts,
    /// Appends instructions.
    pub b: FunctionBuilder<'g>,
    /// Values that dominate the present position.
    pub scope: Vec<Value>,
    /// Those that are the same in all threads of the block.
    pub uniform: EntitySet<Value>,
    /// Values that were read from memory that no other thread writes.
    pub loaded: EntitySet<Value>,
    /// Where control is.
    pub control: Control,
    /// Some threads have left.
    pub left: bool,
    /// Loops that the function is taken to be called from.
    pub outer_loops: u32,
    /// Statements still to be made.
    pub fuel: u32,
    /// Memory.
    pub areas: Vec<Area>,
    /// Types to draw from: integers, floats that compute.
    pub ints: Vec<Type>,
    /// Empty without floats.
    pub floats: Vec<Type>,
    /// Shared memory to exchange through, and the number of the thread in its block.
    pub exchange: Option<(Value, Value)>,
    /// Cells that threads of the whole grid change.
    pub cells: Option<Value>,
    /// Stack objects that nothing is in yet.
    pub spare: Vec<Value>,
    /// What the function returns where its result is a pointer.
    pub returned: Option<Value>,
}

/// Bytes in memory of the widest vector that is made.
pub const WIDEST: u64 = 32;

impl Body<'_> {
    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.rng.once_in(n)
    }

    /// One of the items.
    pub fn pick<T: Copy>(&mut self, items: &[T], otherwise: T) -> T {
        self.rng.pick(items).copied().unwrap_or(otherwise)
    }

    /// True when a value is the same in all threads of the block.
    pub fn is_uniform(&self, value: Value) -> bool {
        self.b.func.dfg.as_const(value).is_some() || self.uniform.contains(value)
    }

    /// Puts a value in scope.
    pub fn keep(&mut self, value: Value) {
        self.scope.push(value);
    }

    /// An instruction with one result that only computes.
    pub fn emit(&mut self, op: Opcode, flags: Flags, ty: Type, args: &[Value], extra: Extra) -> Value {
        let inst = self.b.inst(op, flags, ty, args, extra);
        let result = self.b.func.dfg.result(inst, 0);
        if args.iter().all(|v| self.is_uniform(*v)) {
            self.uniform.insert(result);
        }
        result
    }

    /// An instruction without flags, of its operands' type.
    pub fn op(&mut self, op: Opcode, args: &[Value]) -> Value {
        let ty = args.first().map_or(Type::INVALID, |v| self.b.ty(*v));
        self.emit(op, Flags::EMPTY, ty, args, Extra::None)
    }

    /// A conversion.
    pub fn convert(&mut self, op: Opcode, value: Value, to: Type) -> Value {
        self.emit(op, Flags::EMPTY, to, &[value], Extra::None)
    }

    /// `icmp`.
    pub fn icmp(&mut self, cc: IntCC, a: Value, b: Value) -> Value {
        let ty = self.b.ty(a);
        self.emit(Opcode::Icmp, Flags::EMPTY, ty, &[a, b], Extra::IntCC(cc))
    }

    /// `fcmp`.
    pub fn fcmp(&mut self, cc: FloatCC, a: Value, b: Value) -> Value {
        let ty = self.b.ty(a);
        self.emit(Opcode::Fcmp, Flags::EMPTY, ty, &[a, b], Extra::FloatCC(cc))
    }

    /// `select`.
    pub fn select(&mut self, condition: Value, a: Value, b: Value) -> Value {
        let ty = self.b.ty(a);
        self.emit(Opcode::Select, Flags::EMPTY, ty, &[condition, a, b], Extra::None)
    }

    /// An integer constant, repeated in vectors.
    pub fn int(&mut self, ty: Type, value: i64) -> Value {
        self.b.iconst(ty, value)
    }

    /// `and` with a constant.
    pub fn masked(&mut self, value: Value, mask: u128) -> Value {
        let ty = self.b.ty(value);
        let mask = self.b.bits(ty, mask);
        self.op(Opcode::And, &[value, mask])
    }

    /// A number from 0 to `most`, which is below a power of two: an i32 in scope, or a constant.
    pub fn index(&mut self, count: u64) -> Value {
        if count <= 1 {
            return self.int(Type::I32, 0);
        }
        if self.once_in(3) {
            let constant = self.rng.below(count as usize) as i64;
            return self.int(Type::I32, constant);
        }
        let value = self.operand(Type::I32);
        if count.is_power_of_two() {
            self.masked(value, u128::from(count - 1))
        } else {
            let count = self.int(Type::I32, count as i64);
            self.op(Opcode::Urem, &[value, count])
        }
    }

    /// A scalar integer type.
    pub fn int_type(&mut self) -> Type {
        let ints = std::mem::take(&mut self.ints);
        let ty = self.pick(&ints, Type::I32);
        self.ints = ints;
        ty
    }

    /// A scalar type that is no pointer.
    pub fn scalar_type(&mut self) -> Type {
        let floats = std::mem::take(&mut self.floats);
        let ty = if self.once_in(3) { self.pick(&floats, Type::I32) } else { self.int_type() };
        self.floats = floats;
        ty
    }

    /// The type, or sometimes a vector of it.
    pub fn widened(&mut self, ty: Type) -> Type {
        if !self.features.vectors || !self.once_in(3) {
            return ty;
        }
        let lanes = self.pick(&[2, 2, 2, 3, 4, 4, 8], 2);
        if ty.with_lanes(lanes).size() > WIDEST { ty } else { ty.with_lanes(lanes) }
    }

    /// Any type of a value.
    pub fn any_type(&mut self) -> Type {
        let scalar = self.scalar_type();
        self.widened(scalar)
    }

    /// A value of this type: something in scope, something converted, or a constant.
    pub fn operand(&mut self, ty: Type) -> Value {
        if self.once_in(9) {
            return self.constant(ty);
        }
        let count = self.scope.len();
        for _ in 0..12 {
            // What was made last is used most.
            let back = self.rng.below(count).min(self.rng.below(count));
            match self.scope.get(count.wrapping_sub(1 + back)) {
                Some(value) if self.b.ty(*value) == ty => return *value,
                _ => {}
            }
        }
        let at = self.rng.below(count);
        match self.scope.get(at).copied() {
            Some(value) if !self.once_in(10) => self.coerce(value, ty),
            _ => self.constant(ty),
        }
    }

    /// A condition; `uniform` prefers one that is the same in all threads.
    pub fn condition(&mut self, uniform: bool) -> Value {
        for _ in 0..8 {
            let value = self.operand(Type::I1);
            let constant = self.b.func.dfg.as_const(value).is_some();
            if !constant && (!uniform || self.is_uniform(value)) {
                return value;
            }
        }
        let cc = self.pick(IntCC::ALL, IntCC::Eq);
        let ty = self.int_type();
        let value = match self.scope.iter().rev().find(|v| self.uniform.contains(**v)).copied() {
            Some(value) if uniform => self.coerce(value, ty),
            _ => self.operand(ty),
        };
        let other = self.constant(ty);
        self.icmp(cc, value, other)
    }

    /// The value as an integer scalar that its bits determine.
    fn raw(&mut self, value: Value) -> Value {
        let ty = self.b.ty(value);
        if ty.is_vector() {
            let lane = self.rng.below(ty.lanes() as usize) as i64;
            let lane = self.int(Type::I32, lane);
            let element = self.emit(Opcode::Extract, Flags::EMPTY, ty, &[value, lane], Extra::None);
            return self.raw(element);
        }
        if ty.is_int() {
            return value;
        }
        if ty.is_ptr() {
            // Where something lies is no result.
            return self.int(Type::I64, 0);
        }
        let value = self.settled(value);
        self.convert(Opcode::Bitcast, value, Type::int(ty.scalar_bits()))
    }

    /// The value with every NaN replaced by one: what NaN an operation gives is not specified.
    pub fn settled(&mut self, value: Value) -> Value {
        let ty = self.b.ty(value);
        let Some(kind) = ty.float_kind() else { return value };
        let nan = self.b.bits(ty, quiet_nan(kind));
        let ordered = self.fcmp(FloatCC::Ord, value, value);
        self.select(ordered, value, nan)
    }

    /// A value of the type that depends on `value`.
    pub fn coerce(&mut self, value: Value, ty: Type) -> Value {
        let from = self.b.ty(value);
        if from == ty {
            return value;
        }
        if ty.is_vector() {
            if self.once_in(2) {
                let scalar = self.coerce(value, ty.scalar());
                return self.emit(Opcode::Splat, Flags::EMPTY, ty, &[scalar], Extra::None);
            }
            let lanes: Vec<Value> = (0..ty.lanes())
                .map(|i| if i == 0 { self.coerce(value, ty.scalar()) } else { self.operand(ty.scalar()) })
                .collect();
            return self.emit(Opcode::Vector, Flags::EMPTY, ty, &lanes, Extra::None);
        }
        let raw = self.raw(value);
        match ty.kind() {
            Some(Scalar::Float(_)) if self.once_in(2) => {
                let op = if self.once_in(2) { Opcode::Sitofp } else { Opcode::Uitofp };
                self.convert(op, raw, ty)
            }
            Some(Scalar::Float(_)) => {
                let sized = self.resized(raw, Type::int(ty.scalar_bits()));
                self.convert(Opcode::Bitcast, sized, ty)
            }
            _ => self.resized(raw, ty),
        }
    }

    /// An integer with another number of bits.
    pub fn resized(&mut self, value: Value, to: Type) -> Value {
        let (from, bits) = (self.b.ty(value).scalar_bits(), to.scalar_bits());
        match bits.cmp(&from) {
            std::cmp::Ordering::Less => self.convert(Opcode::Trunc, value, to),
            std::cmp::Ordering::Equal => value,
            std::cmp::Ordering::Greater => {
                let op = if self.once_in(2) { Opcode::Zext } else { Opcode::Sext };
                self.convert(op, value, to)
            }
        }
    }

    /// A constant, often at an edge.
    pub fn constant(&mut self, ty: Type) -> Value {
        if ty.is_vector() {
            if self.once_in(3) {
                let bits = self.constant_bits(ty.scalar());
                return self.b.bits(ty, bits);
            }
            let lanes: Vec<Value> = (0..ty.lanes()).map(|_| self.constant(ty.scalar())).collect();
            return self.b.func.dfg.constant(ty, ConstData::Vector(lanes));
        }
        let bits = self.constant_bits(ty);
        self.b.bits(ty, bits)
    }

    fn constant_bits(&mut self, ty: Type) -> u128 {
        let width = ty.scalar_bits();
        let all = mask(width);
        if let Some(kind) = ty.float_kind() {
            let edges = edges(kind);
            let small = self.rng.below(17) as i32 - 8;
            return match self.rng.below(4) {
                0 => u128::from(self.rng.bits()) & all,
                1 => ptxc_interp::float::from_int(kind, small as u128, 128, true, Default::default()).into(),
                _ => self.pick(&edges, 0),
            };
        }
        let random = (u128::from(self.rng.bits()) << 64) | u128::from(self.rng.bits());
        let shift = self.rng.below(width as usize);
        all & match self.rng.below(10) {
            0 => 0,
            1 => 1,
            2 => u128::MAX,
            3 => all >> 1,
            4 => (all >> 1) + 1,
            5 => 1 << shift,
            6 => mask(shift as u32 + 1),
            7 => random,
            8 => random % 32,
            _ => (random % 16).wrapping_neg(),
        }
    }

    /// The blocks that a branch leads to get their parameters here; the values are put in scope.
    pub fn enter(&mut self, block: Block, scope: usize) {
        self.scope.truncate(scope);
        self.b.switch_to(block);
        let params = self.b.func.dfg.block_params(block).to_vec();
        self.scope.extend(params);
    }

    /// Goes back to what was known before a branch, unless threads have left meanwhile.
    pub fn rejoin(&mut self, control: Control) {
        self.control = control;
        if self.left {
            self.control.uniform = false;
            self.control.lanes = None;
        }
    }
}

/// All bits of a width.
pub fn mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// The one NaN that is stored.
pub fn quiet_nan(kind: FloatKind) -> u128 {
    match kind {
        FloatKind::F16 => 0x7fff,
        FloatKind::Bf16 => 0x7fff,
        FloatKind::F64 => 0x7ff8_0000_0000_0000,
        _ => 0x7fff_ffff,
    }
}

/// Zeros, ones, infinities, NaN, and the ends of the normal and subnormal numbers.
pub fn edges(kind: FloatKind) -> Vec<u128> {
    let (exponent, fraction) = match kind {
        FloatKind::F16 => (5, 10),
        FloatKind::Bf16 => (8, 7),
        FloatKind::F64 => (11, 52),
        _ => (8, 23),
    };
    let infinity = mask(exponent) << fraction;
    let one = mask(exponent - 1) << fraction;
    let sign = 1 << (exponent + fraction);
    let positive = [0, 1, mask(fraction), 1 << fraction, one, one + 1, one - (1 << fraction), infinity - 1, infinity];
    let mut out: Vec<u128> = positive.into_iter().flat_map(|bits| [bits, bits | sign]).collect();
    out.push(quiet_nan(kind));
    out
}
