//! Functions that expansions call: loops too long to repeat at every use.
//!
//! Each is written in IR, made at its first use in a module, internal to it, and legalized like any other function.
//!
//! * `divide_i128`: quotient and remainder of unsigned 128-bit numbers, shift and subtract from the first bit that matters.
//! * `remainder_f32`, `remainder_f64`: `frem` exactly. A quotient below 2^24 (2^53) needs one division rounded toward
//!   zero, since its integer part is then the true one; larger ones subtract bit by bit on the significands.

use ptxc_ir::builder::FunctionBuilder;
use ptxc_ir::{
    AggDef, Block, Flags, FloatCC, FuncId, FuncKind, Function, IntCC, Linkage, MemType, Module, Opcode, Param,
    ParamAttrs, Signature, Type, Value,
};
use smallvec::SmallVec;

use super::context::Context;

/// A helper function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Helper {
    /// `(a.lo, a.hi, b.lo, b.hi) -> (quotient.lo, quotient.hi, remainder.lo, remainder.hi)`
    DivideI128 = 0,
    /// `(f32, f32) -> f32`
    RemainderF32 = 1,
    /// `(f64, f64) -> f64`
    RemainderF64 = 2,
}

/// The helpers a module has so far.
#[derive(Default)]
pub(super) struct Helpers {
    made: [Option<FuncId>; 3],
}

impl Helper {
    fn name(self) -> &'static str {
        match self {
            Helper::DivideI128 => "__ptxc_divide_i128",
            Helper::RemainderF32 => "__ptxc_remainder_f32",
            Helper::RemainderF64 => "__ptxc_remainder_f64",
        }
    }

    fn operand(self) -> (Type, usize) {
        match self {
            Helper::DivideI128 => (Type::I64, 4),
            Helper::RemainderF32 => (Type::F32, 2),
            Helper::RemainderF64 => (Type::F64, 2),
        }
    }
}

impl Context<'_> {
    /// Calls a helper at the cursor; its results in order.
    pub fn call_helper(&mut self, helper: Helper, args: &[Value]) -> SmallVec<[Value; 4]> {
        let Some(callee) = self.helper(helper) else {
            self.error("the module has no room for a helper function");
            return SmallVec::from_slice(args);
        };
        let results = self.module.sig_results(&self.module.funcs[callee].sig);
        let inst = self.builder().call(callee, args, &results);
        self.func.dfg.insts[inst].flags = Flags::NONCONVERGENT;
        self.func.dfg.results(inst).collect()
    }

    fn helper(&mut self, helper: Helper) -> Option<FuncId> {
        if let Some(id) = self.helpers.made[helper as usize] {
            return Some(id);
        }
        let id = add(self.module, helper)?;
        self.helpers.made[helper as usize] = Some(id);
        Some(id)
    }
}

fn add(module: &mut Module, helper: Helper) -> Option<FuncId> {
    let (ty, params) = helper.operand();
    let value = MemType::Value(ty);
    let ret = match helper {
        Helper::DivideI128 => MemType::Agg(module.aggregate(AggDef::Struct { fields: vec![value; 4], packed: false })?),
        _ => value,
    };
    let param = Param { ty: value, attrs: ParamAttrs::default() };
    let sig = Signature { params: vec![param; params], ret: Some(ret) };
    let mut name = helper.name().to_owned();
    while module.symbol(&name).is_some() {
        name.push('_');
    }
    let mut func = Function::new(name, FuncKind::Func, sig);
    func.linkage = Linkage::Internal;
    func.attrs.noinline = true;
    func.attrs.readnone = true;
    func.attrs.nonconvergent = true;
    match helper {
        Helper::DivideI128 => divide(&mut func),
        Helper::RemainderF32 => remainder(&mut func, &SINGLE),
        Helper::RemainderF64 => remainder(&mut func, &DOUBLE),
    }
    module.add_func(func).ok()
}

fn params(b: &FunctionBuilder<'_>, block: Block) -> SmallVec<[Value; 4]> {
    SmallVec::from_slice(b.func.dfg.block_params(block))
}

fn divide(func: &mut Function) {
    let mut b = FunctionBuilder::new(func);
    let entry = b.entry_block(&[Type::I64; 4]);
    let (short, long, loop_head, done) = (b.append_block(), b.append_block(), b.append_block(), b.append_block());
    let p = params(&b, entry);
    let zero = b.iconst(Type::I64, 0);

    b.switch_to(entry);
    let high = b.binary(Opcode::Or, p[1], p[3]);
    let is_short = b.icmp_imm(IntCC::Eq, high, 0);
    b.br(is_short, (short, &[]), (long, &[]));

    b.switch_to(short);
    let quotient = b.binary(Opcode::Udiv, p[0], p[2]);
    let product = b.binary(Opcode::Mul, quotient, p[2]);
    let rest = b.binary(Opcode::Sub, p[0], product);
    b.ret(&[quotient, zero, rest, zero]);

    b.switch_to(long);
    let wide = |b: &mut FunctionBuilder<'_>, lo: Value, hi: Value| {
        let pair = b.vector(Type::I64.with_lanes(2), &[lo, hi]);
        b.convert(Opcode::Bitcast, pair, Type::I128)
    };
    let (x, y) = (wide(&mut b, p[0], p[1]), wide(&mut b, p[2], p[3]));
    let (zeros_x, zeros_y) = (b.unary(Opcode::Ctlz, x), b.unary(Opcode::Ctlz, y));
    let (zeros_x, zeros_y) =
        (b.convert(Opcode::Trunc, zeros_x, Type::I32), b.convert(Opcode::Trunc, zeros_y, Type::I32));
    let steps = b.binary(Opcode::Sub, zeros_y, zeros_x);
    // A divisor with more digits than the dividend: no step, the quotient is 0. Division by zero is undefined.
    let steps = b.binary_imm(Opcode::Smax, steps, 0);
    let amount = b.convert(Opcode::Zext, steps, Type::I128);
    let divisor = b.binary(Opcode::Shl, y, amount);
    let none = b.bits(Type::I128, 0);
    b.jump(loop_head, &[x, divisor, none, steps]);

    let types = [Type::I128, Type::I128, Type::I128, Type::I32];
    let state: SmallVec<[Value; 4]> = types.iter().map(|ty| b.block_param(loop_head, *ty)).collect();
    b.switch_to(loop_head);
    let fits = b.icmp(IntCC::Uge, state[0], state[1]);
    let less = b.binary(Opcode::Sub, state[0], state[1]);
    let rest = b.select(fits, less, state[0]);
    let doubled = b.binary_imm(Opcode::Shl, state[2], 1);
    let bit = b.convert(Opcode::Zext, fits, Type::I128);
    let quotient = b.binary(Opcode::Or, doubled, bit);
    let halved = b.binary_imm(Opcode::Lshr, state[1], 1);
    let left = b.binary_imm(Opcode::Sub, state[3], 1);
    let more = b.icmp_imm(IntCC::Sgt, state[3], 0);
    b.br(more, (loop_head, &[rest, halved, quotient, left]), (done, &[quotient, rest]));

    let results = [b.block_param(done, Type::I128), b.block_param(done, Type::I128)];
    b.switch_to(done);
    let mut limbs: SmallVec<[Value; 4]> = SmallVec::new();
    for result in results {
        let pair = b.convert(Opcode::Bitcast, result, Type::I64.with_lanes(2));
        limbs.push(b.extract(pair, 0));
        limbs.push(b.extract(pair, 1));
    }
    b.ret(&limbs);
}

/// A binary float format.
struct Format {
    ty: Type,
    int: Type,
    /// Bits of the significand that are stored.
    stored: i64,
    /// Bits of the exponent.
    exponent: i64,
    /// 2^(stored + 1), as bits: quotients below it are found by one division.
    limit: u128,
}

const SINGLE: Format = Format { ty: Type::F32, int: Type::I32, stored: 23, exponent: 8, limit: 0x4b80_0000 };
const DOUBLE: Format = Format { ty: Type::F64, int: Type::I64, stored: 52, exponent: 11, limit: 0x4340_0000_0000_0000 };

fn remainder(func: &mut Function, format: &Format) {
    let mut b = FunctionBuilder::new(func);
    let entry = b.entry_block(&[format.ty; 2]);
    let (fast, slow) = (b.append_block(), b.append_block());
    let p = params(&b, entry);
    b.switch_to(entry);
    let (x, y) = (b.unary(Opcode::Fabs, p[0]), b.unary(Opcode::Fabs, p[1]));
    let quotient = b.binary_flags(Opcode::Fdiv, Flags::RZ, x, y);
    let limit = b.bits(format.ty, format.limit);
    let infinity = b.bits(format.ty, ((1u128 << format.exponent) - 1) << format.stored);
    let small = b.fcmp(FloatCC::Olt, Flags::EMPTY, quotient, limit);
    let finite = b.fcmp(FloatCC::Olt, Flags::EMPTY, y, infinity);
    let is_fast = b.binary(Opcode::And, small, finite);
    b.br(is_fast, (fast, &[]), (slow, &[]));

    b.switch_to(fast);
    let whole = b.unary(Opcode::Ftrunc, quotient);
    let negative = b.unary(Opcode::Fneg, whole);
    let rest = b.ternary(Opcode::Fma, Flags::EMPTY, negative, y, x);
    let result = b.binary(Opcode::Copysign, rest, p[0]);
    b.ret(&[result]);

    slow_remainder(&mut b, format, slow, (p[0], p[1]), (x, y), infinity);
}

/// Significand with its leading bit at position `stored`, and biased exponent (below 1 for subnormals).
fn unpack(b: &mut FunctionBuilder<'_>, format: &Format, bits: Value) -> (Value, Value) {
    let int = format.int;
    let exponent = b.binary_imm(Opcode::Lshr, bits, format.stored);
    let fraction = b.binary_imm(Opcode::And, bits, (1 << format.stored) - 1);
    let leading = b.binary_imm(Opcode::Or, fraction, 1 << format.stored);
    let zeros = b.unary(Opcode::Ctlz, fraction);
    // Between 1 and the width less the exponent's bits: a fraction has no bit at position `stored`.
    let amount = b.binary_imm(Opcode::Sub, zeros, format.exponent);
    let normalized = b.binary(Opcode::Shl, fraction, amount);
    let one = b.iconst(int, 1);
    let low_exponent = b.binary(Opcode::Sub, one, amount);
    let subnormal = b.icmp_imm(IntCC::Eq, exponent, 0);
    (b.select(subnormal, normalized, leading), b.select(subnormal, low_exponent, exponent))
}

fn slow_remainder(
    b: &mut FunctionBuilder<'_>,
    format: &Format,
    slow: Block,
    original: (Value, Value),
    magnitude: (Value, Value),
    infinity: Value,
) {
    let int = format.int;
    let (nan, compare, same, reduce) = (b.append_block(), b.append_block(), b.append_block(), b.append_block());
    let (head, last, pack) = (b.append_block(), b.append_block(), b.append_block());
    let zero = b.bits(format.ty, 0);

    // NaN operands, an infinite dividend and a zero divisor give NaN; an infinite divisor gives the dividend.
    b.switch_to(slow);
    let finite = b.fcmp(FloatCC::Olt, Flags::EMPTY, magnitude.0, infinity);
    let divisor = b.fcmp(FloatCC::Ogt, Flags::EMPTY, magnitude.1, zero);
    let ordinary = b.binary(Opcode::And, finite, divisor);
    b.br(ordinary, (compare, &[]), (nan, &[]));
    b.switch_to(nan);
    let product = b.binary(Opcode::Fmul, original.0, original.1);
    let result = b.binary(Opcode::Fdiv, product, product);
    b.ret(&[result]);
    b.switch_to(compare);
    let smaller = b.fcmp(FloatCC::Olt, Flags::EMPTY, magnitude.0, magnitude.1);
    b.br(smaller, (same, &[]), (reduce, &[]));
    b.switch_to(same);
    b.ret(&[original.0]);

    b.switch_to(reduce);
    let bits_x = b.convert(Opcode::Bitcast, magnitude.0, int);
    let bits_y = b.convert(Opcode::Bitcast, magnitude.1, int);
    let (x, exponent_x) = unpack(b, format, bits_x);
    let (y, exponent_y) = unpack(b, format, bits_y);
    b.jump(head, &[x, exponent_x]);

    let state = (b.block_param(head, int), b.block_param(head, int));
    b.switch_to(head);
    let less = b.binary(Opcode::Sub, state.0, y);
    let fits = b.icmp(IntCC::Uge, state.0, y);
    let rest = b.select(fits, less, state.0);
    let doubled = b.binary_imm(Opcode::Shl, rest, 1);
    let lower = b.binary_imm(Opcode::Sub, state.1, 1);
    let more = b.icmp(IntCC::Sgt, state.1, exponent_y);
    b.br(more, (head, &[doubled, lower]), (last, &[]));

    b.switch_to(last);
    let empty = b.icmp_imm(IntCC::Eq, rest, 0);
    let signed_zero = b.binary(Opcode::Copysign, zero, original.0);
    let zero_block = b.append_block();
    b.br(empty, (zero_block, &[]), (pack, &[]));
    b.switch_to(zero_block);
    b.ret(&[signed_zero]);

    b.switch_to(pack);
    let result = pack_float(b, format, rest, exponent_y);
    let result = b.binary(Opcode::Copysign, result, original.0);
    b.ret(&[result]);
}

/// The float with this significand (not zero, at most `stored + 1` bits) and the biased exponent of its top position.
fn pack_float(b: &mut FunctionBuilder<'_>, format: &Format, rest: Value, exponent: Value) -> Value {
    let zeros = b.unary(Opcode::Ctlz, rest);
    let up = b.binary_imm(Opcode::Sub, zeros, format.exponent);
    let shifted = b.binary(Opcode::Shl, rest, up);
    let exponent = b.binary(Opcode::Sub, exponent, up);
    let one = b.iconst(format.int, 1);
    let below = b.binary(Opcode::Sub, one, exponent);
    let below = b.binary_imm(Opcode::Smax, below, 0);
    let below = b.binary_imm(Opcode::Umin, below, i64::from(format.int.bits()) - 1);
    let subnormal = b.binary(Opcode::Lshr, shifted, below);
    // The leading bit adds one to the exponent field.
    let field = b.binary_imm(Opcode::Sub, exponent, 1);
    let field = b.binary_imm(Opcode::Shl, field, format.stored);
    let normal = b.binary(Opcode::Add, shifted, field);
    let is_subnormal = b.icmp_imm(IntCC::Slt, exponent, 1);
    let bits = b.select(is_subnormal, subnormal, normal);
    b.convert(Opcode::Bitcast, bits, format.ty)
}
