//! Rules of single instructions: flags, controlling types, conversions, vectors, control flow, threads.

use super::operands::{self, View};
use super::{Checked, Place, Report, Rule, fail, memory, require, target};
use crate::entities::Inst;
use crate::flags::{Flags, group};
use crate::instruction::Extra;
use crate::module::{FuncKind, Function, Module};
use crate::opcode::{Opcode, Shape, TypeSet};
use crate::types::{FloatKind, Scalar, Space, Type};

/// Every rule that looks at one instruction, in the order that later ones rely on earlier ones.
const RULES: &[fn(&View) -> Checked] = &[
    flags,
    controlling_type,
    operands::count,
    operands::addresses,
    operands::types,
    shape,
    operands::results,
    flag_types,
    location,
];

/// What is legal and likely a mistake; looked at where the rules hold.
const LINTS: &[fn(&View) -> Checked] = &[lane_numbers];

pub(super) fn check(module: &Module, func: &Function, inst: Inst, report: &mut Report) {
    let view = View::new(module, func, inst);
    let rules = RULES.iter().try_for_each(|rule| rule(&view));
    let holds = rules.is_ok();
    report.add(Place::Inst(inst), rules);
    if holds {
        LINTS.iter().for_each(|lint| report.add(Place::Inst(inst), lint(&view)));
    }
}

fn flags(view: &View) -> Checked {
    let flags = view.data.flags;
    let extra = Flags::from_bits(flags.bits() & !view.op().info().flags);
    require(extra.is_empty(), Rule::FlagsAllowed, || format!("`{}` takes no flag `{extra:?}`", view.text()))?;
    let modes = (flags.bits() & group::ROUND).count_ones();
    require(modes <= 1, Rule::FlagsAllowed, || format!("`{}` has {modes} rounding modes", view.text()))
}

/// True for the formats that have arithmetic.
fn is_computing(kind: FloatKind) -> bool {
    matches!(kind, FloatKind::F16 | FloatKind::Bf16 | FloatKind::F32 | FloatKind::F64)
}

/// True when the controlling type is in the set.
pub fn in_set(set: TypeSet, ty: Type) -> bool {
    let computing = ty.float_kind().is_some_and(is_computing);
    match set {
        TypeSet::None => ty.is_invalid(),
        TypeSet::Int => ty.is_int_like(),
        TypeSet::Int16s => ty.is_int_like() && ty.scalar_bits().is_multiple_of(16),
        TypeSet::Float => computing,
        TypeSet::IntPtr => ty.is_int_like() || ty.is_ptr_like(),
        TypeSet::Any => !ty.is_invalid(),
        TypeSet::Vector => ty.is_vector(),
        TypeSet::IntVector => ty.is_vector() && ty.is_int_like(),
        TypeSet::FloatVector => ty.is_vector() && computing,
        TypeSet::I32 => ty == Type::I32,
        TypeSet::F32 => ty == Type::F32,
        TypeSet::Atomic => match ty.kind() {
            Some(Scalar::Int(bits)) => !ty.is_vector() && (8..=128).contains(&bits) && bits.is_power_of_two(),
            Some(Scalar::Float(kind)) if ty.is_vector() => computing && kind != FloatKind::F64 && packs(ty),
            Some(Scalar::Float(kind)) => is_computing(kind),
            Some(Scalar::Ptr(space)) => !ty.is_vector() && space != Space::Tensor,
            None => false,
        },
    }
}

/// Vectors of floats that one atomic instruction takes: 2 to 8 lanes in at most 128 bits (PTX ISA 9.7.14, `red` and
/// `atom` with vectors).
fn packs(ty: Type) -> bool {
    ty.lanes() >= 2 && ty.lanes().is_power_of_two() && ty.bits() <= 128
}

fn controlling_type(view: &View) -> Checked {
    let ty = view.data.ty;
    let set = view.op().info().types;
    require(in_set(set, ty), Rule::ControllingType, || {
        let wanted = match set {
            TypeSet::None => "no type",
            TypeSet::Int => "integers",
            TypeSet::Int16s => "integers of a multiple of 16 bits",
            TypeSet::Float => "f16, bf16, f32 and f64",
            TypeSet::IntPtr => "integers and pointers",
            TypeSet::Any => "any type",
            TypeSet::Vector => "vectors",
            TypeSet::IntVector => "vectors of integers",
            TypeSet::FloatVector => "vectors of f16, bf16, f32 or f64",
            TypeSet::I32 => "i32",
            TypeSet::F32 => "f32",
            TypeSet::Atomic => "types that atomics work on",
        };
        format!("`{}` takes {wanted}, not {ty}", view.text())
    })
}

fn shape(view: &View) -> Checked {
    match view.op().shape() {
        Shape::FloatClass => match view.data.extra {
            Extra::Imm(mask) => {
                require(mask < 1024, Rule::ClassMask, || format!("the class mask {mask} has more than ten bits"))
            }
            _ => Ok(()),
        },
        Shape::Convert | Shape::ConvertRandom => convert(view),
        Shape::Select => select(view),
        Shape::Shuffle => shuffle(view),
        Shape::Switch => switch(view),
        Shape::Call | Shape::CallIndirect => call(view),
        Shape::BarrierSync | Shape::BarrierReduce => barrier(view),
        Shape::Shuffle4 | Shape::MatchAny | Shape::MatchAll => across_lanes(view),
        Shape::Target => target::check(view),
        _ => memory::check(view),
    }
}

/// Rules of conversions: what the opcode converts from and to.
fn convert(view: &View) -> Checked {
    conversion(view.op(), view.ty(0), view.data.ty)
}

/// True when the conversion converts `from` to `to`.
pub fn converts(op: Opcode, from: Type, to: Type) -> bool {
    in_set(op.info().types, to) && conversion(op, from, to).is_ok()
}

fn conversion(op: Opcode, from: Type, to: Type) -> Checked {
    let kinds = |holds: bool, what: &str| {
        require(holds, Rule::ConversionKind, || format!("`{}` converts {what}, not {from} to {to}", op.text()))
    };
    let width = |holds: bool, what: &str| {
        require(holds, Rule::ConversionWidth, || format!("`{}` {what}; {from} to {to} does not", op.text()))
    };
    let float = |ty: Type| ty.is_float_like();
    let computing = |ty: Type| ty.float_kind().is_some_and(is_computing);
    if op != Opcode::Bitcast {
        let same = from.lanes() == to.lanes() && from.is_vector() == to.is_vector();
        kinds(same, "vectors to vectors with the same lanes")?;
    }
    match op {
        Opcode::Trunc => {
            kinds(from.is_int_like(), "integers to integers")?;
            width(to.scalar_bits() < from.scalar_bits(), "makes integers narrower")
        }
        Opcode::Zext | Opcode::Sext => {
            kinds(from.is_int_like(), "integers to integers")?;
            width(to.scalar_bits() > from.scalar_bits(), "makes integers wider")
        }
        Opcode::Fptrunc | Opcode::Fpext => {
            kinds(float(from) && float(to), "floats to floats")?;
            let (Some(a), Some(b)) = (from.float_kind(), to.float_kind()) else { return Ok(()) };
            let (small, large) = if op == Opcode::Fptrunc { (b, a) } else { (a, b) };
            let what = if op == Opcode::Fptrunc { "makes floats narrower" } else { "makes floats wider" };
            width(is_wider(large, small), what)
        }
        Opcode::FptruncStochastic => {
            // As many lanes as share a word of random bits.
            let lanes = match to.float_kind() {
                Some(FloatKind::F16 | FloatKind::Bf16) => 2,
                Some(kind) if kind.is_narrow() && kind != FloatKind::Ue8m0 => 4,
                _ => 0,
            };
            let fits = from.is_vector() && from.scalar() == Type::F32 && to.lanes() == lanes;
            kinds(fits, "two f32 to f16 or bf16, or four to e4m3, e5m2, e2m3, e3m2 or e2m1")
        }
        Opcode::Fptoui | Opcode::Fptosi | Opcode::FptouiSat | Opcode::FptosiSat => {
            kinds(computing(from), "floats to integers")
        }
        Opcode::Uitofp | Opcode::Sitofp => kinds(from.is_int_like(), "integers to floats"),
        Opcode::Ptrtoint => kinds(from.is_ptr_like(), "pointers to integers"),
        Opcode::Inttoptr => kinds(from.is_int_like() && to.is_ptr_like(), "integers to pointers"),
        Opcode::Addrspacecast => space_cast(from, to),
        _ => {
            let pointers = from.is_ptr_like() || to.is_ptr_like();
            let fits = from.bits() == to.bits() && (!pointers || from.scalar() == to.scalar());
            require(fits, Rule::BitcastSize, || {
                format!("`bitcast` keeps the bits and pointers stay what they are; {from} to {to} does not")
            })
        }
    }
}

/// True when every value format `narrow` has fewer bits than `wide`, or it is a format that only converts through `wide`.
fn is_wider(wide: FloatKind, narrow: FloatKind) -> bool {
    let rank = |kind: FloatKind| match kind {
        FloatKind::F64 => 5,
        FloatKind::F32 => 4,
        FloatKind::Tf32 => 3,
        FloatKind::F16 | FloatKind::Bf16 => 2,
        _ => 1,
    };
    // Narrow formats convert from and to f32, f16 and bf16 only.
    let reachable = !narrow.is_narrow() || matches!(wide, FloatKind::F32 | FloatKind::F16 | FloatKind::Bf16);
    let tf32 = narrow != FloatKind::Tf32 || wide == FloatKind::F32;
    rank(wide) > rank(narrow) && wide != FloatKind::Tf32 && reachable && tf32
}

fn space_cast(from: Type, to: Type) -> Checked {
    let (Some(a), Some(b)) = (from.space(), to.space()) else {
        return fail(Rule::ConversionKind, format!("`addrspacecast` converts pointers, not {from} to {to}"));
    };
    let other = if a == Space::Generic { b } else { a };
    let one_generic = (a == Space::Generic) != (b == Space::Generic);
    require(one_generic && other != Space::Tensor, Rule::SpaceCast, || {
        format!("`addrspacecast` is between generic and another space; {from} to {to} is not")
    })
}

fn select(view: &View) -> Checked {
    let (condition, ty) = (view.ty(0), view.data.ty);
    let fits = condition == Type::I1 || (ty.is_vector() && condition == ty.as_bool());
    require(fits, Rule::SelectCondition, || format!("`select` between values of {ty} by {condition}"))
}

/// Lane numbers out of range give poison.
fn lane_numbers(view: &View) -> Checked {
    let index = match view.op().shape() {
        Shape::Extract => 1,
        Shape::Insert => 2,
        _ => return Ok(()),
    };
    let Some(lane) = view.bits(index) else { return Ok(()) };
    let ty = view.data.ty;
    require(lane < u128::from(ty.lanes()), Rule::LaneRange, || format!("{ty} has no lane {lane}"))
}

fn shuffle(view: &View) -> Checked {
    let Extra::Mask(id) = view.data.extra else { return Ok(()) };
    let mask = &view.func.dfg.masks[id];
    let lanes = view.data.ty.lanes() as i32;
    let most = crate::types::MAX_LANES as usize;
    require((1..=most).contains(&mask.len()), Rule::ShuffleMask, || {
        format!("a shuffle gives 1 to {most} lanes, not {}", mask.len())
    })?;
    let outside = mask.iter().find(|lane| !(-1..2 * lanes).contains(*lane));
    require(outside.is_none(), Rule::ShuffleMask, || {
        format!("lane {} of a shuffle is not below {}", outside.copied().unwrap_or(0), 2 * lanes)
    })
}

fn switch(view: &View) -> Checked {
    let Extra::Switch(id) = view.data.extra else { return Ok(()) };
    let ty = view.data.ty;
    require(!ty.is_vector(), Rule::ControllingType, || format!("`switch` takes an integer, not {ty}"))?;
    let width = ty.scalar_bits();
    let mut cases: Vec<u128> = view.func.dfg.switches[id].cases.iter().map(|(bits, _)| *bits).collect();
    let outside = cases.iter().find(|bits| width < 128 && **bits >> width != 0);
    require(outside.is_none(), Rule::SwitchCases, || format!("the case {:#x} is no {ty}", outside.unwrap_or(&0)))?;
    cases.sort_unstable();
    let twice = cases.windows(2).find(|pair| pair[0] == pair[1]);
    require(twice.is_none(), Rule::SwitchCases, || {
        format!("the case {} is given twice", twice.map_or(0, |pair| pair[0]))
    })
}

fn call(view: &View) -> Checked {
    match view.data.extra {
        Extra::Call(callee) => {
            let callee = &view.module.funcs[callee];
            require(callee.kind == FuncKind::Func, Rule::CallKernel, || {
                format!("`@{}` is a kernel and cannot be called", callee.name)
            })
        }
        Extra::CallIndirect(sig) => {
            super::functions::check_signature(view.module, &view.func.dfg.signatures[sig], false)
        }
        _ => Ok(()),
    }
}

fn barrier(view: &View) -> Checked {
    if let Some(id) = view.bits(0) {
        require(id < 16, Rule::BarrierNumber, || format!("the barrier {id} does not exist; there are 16"))?;
    }
    let has_count = match view.op().shape() {
        Shape::BarrierReduce => view.args.len() == 3,
        _ => view.args.len() == 2,
    };
    let Some(count) = view.bits(1).filter(|_| has_count) else { return Ok(()) };
    require(count > 0 && count % 32 == 0, Rule::BarrierNumber, || {
        format!("{count} threads cannot take part in a barrier: a positive multiple of 32 can")
    })
}

/// Values that move between lanes or are compared across them.
fn across_lanes(view: &View) -> Checked {
    let ty = view.data.ty;
    let vectors = view.op().shape() == Shape::Shuffle4;
    let fits = ty.scalar_bits() <= 64 && (vectors || !ty.is_vector());
    require(fits, Rule::LaneType, || {
        let what = if vectors { "values or lanes of at most 64 bits" } else { "scalars of at most 64 bits" };
        format!("`{}` takes {what}, not {ty}", view.text())
    })
}

/// `sat` and `relu` on types that have them.
fn flag_types(view: &View) -> Checked {
    let flags = view.data.flags;
    let ty = view.data.ty;
    let Some(kind) = ty.float_kind() else { return Ok(()) };
    let half = matches!(kind, FloatKind::F16 | FloatKind::Bf16);
    let needs = |flag: Flags, holds: bool| {
        require(!flags.contains(flag) || holds, Rule::FlagType, || {
            format!("`{}` to {ty} takes no flag `{}`", view.text(), format!("{flag:?}").trim_end())
        })
    };
    match view.op() {
        Opcode::Fptrunc => {
            // Rounding to nearest is the only mode of most narrow formats; selection says which target has more.
            needs(Flags::RELU, half || kind.is_narrow() || kind == FloatKind::Tf32)?;
            needs(Flags::SAT, half || kind.is_narrow() || matches!(kind, FloatKind::Tf32 | FloatKind::F32))
        }
        Opcode::Fma => {
            needs(Flags::RELU, half)?;
            needs(Flags::SAT, matches!(kind, FloatKind::F16 | FloatKind::F32))
        }
        Opcode::Fadd | Opcode::Fsub | Opcode::Fmul => {
            needs(Flags::SAT, matches!(kind, FloatKind::F16 | FloatKind::F32))
        }
        _ => Ok(()),
    }
}

fn location(view: &View) -> Checked {
    let loc = view.func.dfg.locs[view.inst];
    let known = loc.line == 0 || view.module.files.iter().any(|(number, _)| *number == loc.file);
    require(known, Rule::LocationFile, || format!("the location is in file {}, which is not declared", loc.file))
}
