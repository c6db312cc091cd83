//! Functions in which rules of the compiler are applied, or nearly: those of `tests/rules`, some of them changed a little.
//! Programs call them with operands of their own, so that every rule meets what other rules and passes leave.
//!
//! Taken are functions whose results are exact and always defined, which is tried on many operands before they are used.

use std::sync::OnceLock;

use ptxc_ir::testing::Rng;
use ptxc_ir::{
    ConstData, Effect, Extra, Flags, FloatCC, FloatKind, FuncKind, Function, IntCC, MemType, Opcode, Scalar, Shape,
    Type, Value,
};

use super::body::{WIDEST, mask};
use super::floats::BINARY;
use super::integers::PLAIN;
use super::trial;

include!(concat!(env!("OUT_DIR"), "/rule_files.rs"));

/// A function that may be called.
#[derive(Clone, Debug)]
pub struct RuleShape {
    /// Parameters.
    pub params: Vec<Type>,
    /// The result.
    pub result: Type,
    /// It is called by all threads of the warp together.
    pub together: bool,
    /// Its flags allow other results than the first, but for small integers all are the same.
    pub small: bool,
    /// It divides or takes roots by approximations, which are exact for powers of four.
    pub powers: bool,
    /// No float that is passed is NaN: which one comes out would show.
    pub numbers: bool,
    /// What integers the result is defined for.
    pub domain: Domain,
}

/// Which integers are passed to a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Domain {
    /// Any.
    Any,
    /// 1 to 16 for the last parameter: an amount.
    LastLow,
    /// Not zero and not negative, with less than half of the bits.
    Half,
    /// 1 to 16 for all.
    AllLow,
}

impl Domain {
    const ALL: [Domain; 4] = [Domain::Any, Domain::LastLow, Domain::Half, Domain::AllLow];

    /// The bits that are passed for integers of a parameter, to which one is added; none where any integer is.
    pub fn mask(self, shape: &RuleShape, param: usize) -> Option<u128> {
        let ty = shape.params.get(param).filter(|ty| ty.is_int() && ty.scalar_bits() >= 8)?;
        let last = shape.params.iter().rposition(|ty| ty.is_int());
        match self {
            Domain::Any => None,
            Domain::LastLow => (last == Some(param)).then_some(15),
            Domain::Half => Some(mask(ty.scalar_bits() / 2 - 1)),
            Domain::AllLow => Some(15),
        }
    }
}

/// A function of the files, and whether its results are always defined once that has been tried.
struct Entry {
    func: Function,
    shape: RuleShape,
    defined: OnceLock<Option<Domain>>,
}

/// Functions of the files that can be called at all.
fn entries() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| {
        let mut entries = Vec::new();
        for text in FILES {
            if text.contains("\n;! legal") {
                continue;
            }
            // The tests of rules read the same files.
            let Ok(module) = ptxc_ir::read_module(text) else { continue };
            let left_out = left_out(text);
            for func in module.funcs.values() {
                if left_out.contains(&func.name.as_str()) {
                    continue;
                }
                if let Some(shape) = shape(func) {
                    entries.push(Entry { func: func.clone(), shape, defined: OnceLock::new() });
                }
            }
        }
        entries
    })
}

/// Names of functions that are not executed, or only roughly.
fn left_out(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rough = false;
    for line in text.lines() {
        rough |= line.starts_with(";! tolerance") || line.starts_with(";! skip");
        let Some(at) = line.find("func @").filter(|_| !line.starts_with([' ', ';'])) else { continue };
        if rough {
            names.extend(line.get(at + 6..).and_then(|rest| rest.split('(').next()));
        }
        rough = false;
    }
    names
}

/// A function to call, changed a little perhaps. None where the one that is chosen cannot be used.
pub fn choose(rng: &mut Rng, warps: bool) -> Option<(Function, RuleShape)> {
    let entry = rng.pick(entries())?;
    if entry.shape.together && !warps {
        return None;
    }
    let domain = (*entry.defined.get_or_init(|| domain(&entry.func, &entry.shape)))?;
    if rng.once_in(2) {
        let mut func = entry.func.clone();
        for _ in 0..1 + rng.below(2) {
            change(&mut func, rng);
        }
        if let Some(mut shape) = shape(&func) {
            shape.domain = domain;
            if trial::is_defined(&func, &shape) {
                return Some((func, shape));
            }
        }
    }
    Some((entry.func.clone(), RuleShape { domain, ..entry.shape.clone() }))
}

/// The first of the domains where the result is always defined.
fn domain(func: &Function, shape: &RuleShape) -> Option<Domain> {
    let defined = |domain: &Domain| trial::is_defined(func, &RuleShape { domain: *domain, ..shape.clone() });
    Domain::ALL.into_iter().find(defined)
}

/// What a function takes and gives, when it can be called.
fn shape(func: &Function) -> Option<RuleShape> {
    if func.kind != FuncKind::Func || func.is_declaration() {
        return None;
    }
    let plain = |ty: &MemType| match ty {
        MemType::Value(ty) => Some(*ty).filter(|ty| is_plain(*ty)),
        MemType::Agg(_) => None,
    };
    let params = func.sig.params.iter().map(|param| plain(&param.ty)).collect::<Option<Vec<_>>>()?;
    let result = plain(func.sig.ret.as_ref()?)?;
    let mut shape =
        RuleShape { params, result, together: false, small: false, powers: false, numbers: false, domain: Domain::Any };
    let order: Vec<_> = func.layout.blocks().collect();
    let (mut products, mut makes_nan) = (0, false);
    for (at, block) in order.iter().enumerate() {
        for inst in func.layout.insts(*block) {
            let data = &func.dfg.insts[inst];
            let known = match data.op.info().effect {
                Effect::Pure | Effect::Traps | Effect::Terminator => true,
                Effect::Convergent => !matches!(data.op.shape(), Shape::BarrierSync | Shape::BarrierReduce),
                _ => false,
            };
            let no_pointer = func.dfg.results(inst).all(|value| !func.dfg.ty(value).is_ptr());
            let mut forward = true;
            func.dfg.for_each_target(inst, |target| forward &= order.iter().skip(at + 1).any(|b| *b == target.block));
            if !known || !no_pointer || !forward || INEXACT.contains(&data.op) {
                return None;
            }
            if shows_nan(func, data.op, inst) {
                shape.numbers = true;
            }
            makes_nan |= MAKES_NAN.contains(&data.op);
            shape.together |= data.op.info().effect == Effect::Convergent;
            shape.small |= data.flags.bits() & Flags::FAST.bits() != 0 || data.op == Opcode::Frsqrt;
            products += u32::from(matches!(data.op, Opcode::Fmul | Opcode::Fma));
        }
    }
    if shape.numbers && makes_nan {
        return None;
    }
    if shape.small && !(products <= 4 && is_exact(func)) {
        (shape.small, shape.powers) = (false, true);
    }
    (!shape.powers || is_exact_for_powers(func)).then_some(shape)
}

/// With powers of four for operands every way to compute the result gives a power of two.
fn is_exact_for_powers(func: &Function) -> bool {
    let exact = [
        Opcode::Fmul,
        Opcode::Fdiv,
        Opcode::Fsqrt,
        Opcode::Frcp,
        Opcode::Frsqrt,
        Opcode::Fabs,
        Opcode::Vector,
        Opcode::Extract,
        Opcode::Splat,
        Opcode::Ret,
    ];
    let insts = || func.layout.blocks().flat_map(|block| func.layout.insts(block));
    let constants = insts().all(|inst| {
        let args = func.dfg.args(inst);
        args.iter().all(|value| match (func.dfg.ty(*value).float_kind(), func.dfg.as_bits(*value)) {
            (Some(FloatKind::F32), Some(bits)) => is_power(f32::from_bits(bits as u32).into()),
            (Some(FloatKind::F64), Some(bits)) => is_power(f64::from_bits(bits as u64)),
            (Some(_), _) => func.dfg.as_const(*value).is_none(),
            _ => true,
        })
    });
    constants && insts().all(|inst| exact.contains(&func.dfg.insts[inst].op))
}

/// A power of two, not far from one.
fn is_power(number: f64) -> bool {
    number.to_bits() << 12 == 0 && (1.0 / 64.0..=64.0).contains(&number)
}

/// Operations that make NaN of numbers, or numbers that the next one may make NaN of.
const MAKES_NAN: &[Opcode] =
    &[Opcode::Fadd, Opcode::Fsub, Opcode::Fmul, Opcode::Fma, Opcode::Fdiv, Opcode::Fsqrt, Opcode::Frcp];

/// Types that operands can be made of.
fn is_plain(ty: Type) -> bool {
    let scalar = match ty.kind() {
        Some(Scalar::Int(_)) => true,
        Some(Scalar::Float(kind)) => {
            matches!(kind, FloatKind::F16 | FloatKind::Bf16 | FloatKind::F32 | FloatKind::F64)
        }
        _ => false,
    };
    scalar && ty.size() <= WIDEST
}

/// Operations with results that are approximate or differ from run to run, and what only legalization writes.
const INEXACT: &[Opcode] = &[
    Opcode::Frem,
    Opcode::Fsin,
    Opcode::Fcos,
    Opcode::Fexp2,
    Opcode::Flog2,
    Opcode::Ftanh,
    Opcode::Ptrtoint,
    Opcode::Inttoptr,
    Opcode::Unreachable,
    Opcode::Trap,
    Opcode::Breakpoint,
    Opcode::ActiveMask,
    Opcode::Elect,
    Opcode::Target,
    Opcode::Asm,
    Opcode::Sreg,
    Opcode::Freeze,
    Opcode::Exit,
];

/// The bits of a float that was computed, which NaN of which is not specified, become an integer.
fn shows_nan(func: &Function, op: Opcode, inst: ptxc_ir::Inst) -> bool {
    let Some(value) = func.dfg.args(inst).first().map(|value| func.dfg.resolve(*value)) else { return false };
    let from = func.dfg.ty(value);
    op == Opcode::Bitcast && from.is_float_like() && from.scalar_bits() > 8 && func.dfg.def_inst(value).is_some()
}

/// With small integers for operands every way to compute the result is exact.
fn is_exact(func: &Function) -> bool {
    let exact = [
        Opcode::Fadd,
        Opcode::Fsub,
        Opcode::Fmul,
        Opcode::Fma,
        Opcode::Fneg,
        Opcode::Fabs,
        Opcode::Fmin,
        Opcode::Fmax,
        Opcode::Fcmp,
        Opcode::Fpext,
        Opcode::Select,
        Opcode::Sitofp,
        Opcode::Vector,
        Opcode::Extract,
        Opcode::Splat,
        Opcode::Ret,
    ];
    let insts = || func.layout.blocks().flat_map(|block| func.layout.insts(block));
    let constants = insts().all(|inst| {
        let args = func.dfg.args(inst);
        args.iter().all(|value| match (func.dfg.ty(*value).float_kind(), func.dfg.as_bits(*value)) {
            (Some(FloatKind::F32), Some(bits)) => is_small(f32::from_bits(bits as u32).into()),
            (Some(FloatKind::F64), Some(bits)) => is_small(f64::from_bits(bits as u64)),
            (Some(_), Some(bits)) => bits == 0,
            (Some(_), None) => func.dfg.as_const(*value).is_none(),
            _ => true,
        })
    });
    // Halves have too few bits for sums and products.
    let halves = insts().any(|inst| {
        func.dfg
            .results(inst)
            .any(|value| matches!(func.dfg.ty(value).float_kind(), Some(FloatKind::F16 | FloatKind::Bf16)))
    });
    constants && !halves && insts().all(|inst| exact.contains(&func.dfg.insts[inst].op))
}

/// A quarter of a small integer.
fn is_small(number: f64) -> bool {
    number.abs() <= 64.0 && (number * 4.0).fract() == 0.0
}

/// Changes an instruction: its operation, a condition, a constant, the order of operands, one operand, or its promises.
fn change(func: &mut Function, rng: &mut Rng) {
    let insts: Vec<_> = func.layout.blocks().flat_map(|block| func.layout.insts(block)).collect();
    let Some(inst) = rng.pick(&insts).copied() else { return };
    let data = func.dfg.insts[inst].clone();
    let count = func.dfg.args(inst).len();
    match rng.below(6) {
        0 => {
            let shifts = [Opcode::Shl, Opcode::Lshr, Opcode::Ashr];
            let extends = [Opcode::Zext, Opcode::Sext];
            let lists: [&[Opcode]; 4] = [PLAIN, BINARY, &shifts, &extends];
            if let Some(op) = lists.iter().find(|list| list.contains(&data.op)).and_then(|list| rng.pick(list)) {
                func.dfg.insts[inst].op = *op;
                let promises = Flags::NSW | Flags::NUW | Flags::EXACT | Flags::DISJOINT | Flags::NNEG;
                func.dfg.insts[inst].flags = data.flags.without(promises);
            }
        }
        1 => match data.extra {
            Extra::IntCC(cc) => func.dfg.insts[inst].extra = Extra::IntCC(rng.pick(IntCC::ALL).copied().unwrap_or(cc)),
            Extra::FloatCC(cc) => {
                func.dfg.insts[inst].extra = Extra::FloatCC(rng.pick(FloatCC::ALL).copied().unwrap_or(cc));
            }
            _ => {}
        },
        2 | 3 => {
            for at in 0..count {
                let value = func.dfg.args(inst)[at];
                if let Some(other) = near(func, rng, value) {
                    func.dfg.args_mut(inst)[at] = other;
                    break;
                }
            }
        }
        4 if count >= 2 => {
            let args = func.dfg.args(inst);
            if func.dfg.ty(args[0]) == func.dfg.ty(args[1]) {
                func.dfg.args_mut(inst).swap(0, 1);
            }
        }
        _ => {
            // Another value of the type: a parameter of the function.
            let Some(entry) = func.layout.entry() else { return };
            let at = rng.below(count);
            let Some(old) = func.dfg.args(inst).get(at).copied() else { return };
            let fits = |value: &&Value| func.dfg.ty(**value) == func.dfg.ty(old);
            let params: Vec<Value> = func.dfg.block_params(entry).iter().filter(fits).copied().collect();
            if let Some(param) = rng.pick(&params) {
                func.dfg.args_mut(inst)[at] = *param;
            }
        }
    }
}

/// A constant that is near another one. None where that is none, or no integer.
fn near(func: &mut Function, rng: &mut Rng, value: Value) -> Option<Value> {
    let ty = func.dfg.ty(value);
    if !ty.is_int() || ty.is_vector() || !matches!(func.dfg.as_const(value)?, ConstData::Bits(_)) {
        return None;
    }
    let bits = func.dfg.as_bits(value)?;
    let all = mask(ty.scalar_bits());
    let changed = match rng.below(6) {
        0 => bits.wrapping_add(1),
        1 => bits.wrapping_sub(1),
        2 => bits << 1,
        3 => bits >> 1,
        4 => !bits,
        _ => u128::from(rng.bits()),
    };
    Some(func.dfg.bits(ty, changed & all))
}
