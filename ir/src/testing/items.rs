//! Types, globals and signatures of a random module.

use super::types::all_types;
use super::{Options, Rng};
use crate::module::{
    FuncAttrs, FuncKind, Function, Global, GlobalKind, Init, Linkage, Module, Param, ParamAttrs, Signature,
};
use crate::types::{AggDef, MemType, Scalar, Space, Type};

/// A module with everything but bodies.
pub(super) fn module(rng: &mut Rng, options: &Options) -> Module {
    let mut module = Module::new();
    module.files = vec![(1, "a.cu".to_string()), (7, "dir/\"b\"\n.cu".to_string())];
    let types = types(&mut module, rng, options);
    for index in 0..3 + rng.below(4) {
        global(&mut module, rng, &types, index, options);
    }
    for index in 0..2 + options.functions {
        function(&mut module, rng, &types, index, options);
    }
    module
}

fn name(rng: &mut Rng, base: &str, index: usize, options: &Options) -> String {
    match rng.below(8) {
        0 if options.odd_names => format!("{base} {index}\\\"é"),
        1 if options.odd_names => format!("{base}.{index}-"),
        _ => format!("{base}{index}"),
    }
}

fn value_type(rng: &mut Rng) -> Type {
    let types = all_types();
    rng.pick(&types).copied().unwrap_or(Type::I32)
}

/// A pool of memory types with some aggregates among them.
fn types(module: &mut Module, rng: &mut Rng, options: &Options) -> Vec<MemType> {
    let mut pool: Vec<MemType> = (0..6).map(|_| MemType::Value(value_type(rng))).collect();
    for index in 0..4 {
        let mut element = || rng.pick(&pool).copied().unwrap_or(MemType::Value(Type::I8));
        let (a, b, c) = (element(), element(), element());
        let def = match rng.below(3) {
            0 => AggDef::Array { elem: a, len: rng.below(4) as u64 },
            n => AggDef::Struct { fields: vec![a, b, c].into_iter().take(1 + rng.below(3)).collect(), packed: n == 1 },
        };
        let Some(id) = module.aggregate(def) else { continue };
        if rng.once_in(2) {
            let name = name(rng, "T", index, options);
            module.name_aggregate(id, &name);
        }
        pool.push(MemType::Agg(id));
    }
    pool
}

fn global(module: &mut Module, rng: &mut Rng, types: &[MemType], index: usize, options: &Options) {
    let kind = match rng.below(8) {
        0 => GlobalKind::Texture,
        1 => GlobalKind::Surface,
        2 => GlobalKind::Sampler,
        3 | 4 => GlobalKind::Variable(Space::Shared),
        5 => GlobalKind::Variable(Space::Const),
        _ => GlobalKind::Variable(Space::Global),
    };
    let variable = matches!(kind, GlobalKind::Variable(_));
    let ty = rng.pick(types).copied().filter(|_| variable).unwrap_or(MemType::Value(Type::I64));
    let mut linkage = [Linkage::Visible, Linkage::Internal, Linkage::Weak, Linkage::Extern][rng.below(4)];
    if kind == GlobalKind::Variable(Space::Global) && rng.once_in(8) {
        linkage = Linkage::Common;
    }
    let mut align = module.layout_of(ty).align;
    if variable && rng.once_in(3) {
        align = (align * 4).min(1 << 20);
    }
    let holds = matches!(kind, GlobalKind::Variable(Space::Global | Space::Const));
    let init = (holds && !matches!(linkage, Linkage::Extern | Linkage::Common)).then(|| init(module, rng, ty));
    let managed = kind == GlobalKind::Variable(Space::Global) && rng.once_in(8);
    let name = name(rng, "g", index, options);
    // A name that is taken is left out.
    let _ = module.add_global(Global { name, kind, ty, linkage, align, init, managed });
}

fn init(module: &Module, rng: &mut Rng, ty: MemType) -> Init {
    if rng.once_in(8) {
        return if rng.once_in(2) { Init::Zero } else { Init::Poison };
    }
    match ty {
        MemType::Value(ty) if ty.is_vector() => {
            Init::List((0..ty.lanes()).map(|_| init(module, rng, MemType::Value(ty.scalar()))).collect())
        }
        MemType::Value(ty) => scalar_init(module, rng, ty),
        MemType::Agg(id) => match &module.agg(id).def {
            AggDef::Array { elem: MemType::Value(Type::I8), len } => {
                Init::Bytes((0..*len).map(|_| rng.bits() as u8).collect())
            }
            AggDef::Array { elem, len } => Init::List((0..*len).map(|_| init(module, rng, *elem)).collect()),
            AggDef::Struct { fields, .. } => Init::List(fields.iter().map(|f| init(module, rng, *f)).collect()),
        },
    }
}

fn scalar_init(module: &Module, rng: &mut Rng, ty: Type) -> Init {
    let Some(Scalar::Ptr(space)) = ty.kind() else {
        return Init::Bits(random_bits(rng, ty));
    };
    for (global, data) in &module.globals {
        let GlobalKind::Variable(own @ (Space::Global | Space::Const)) = data.kind else { continue };
        let generic = space == Space::Generic;
        if (generic || own == space) && rng.once_in(2) {
            return Init::Global { global, offset: rng.below(64) as i64 - 32, generic };
        }
    }
    Init::Bits(0)
}

/// Bits of a scalar that is no pointer; often special ones.
pub(super) fn random_bits(rng: &mut Rng, ty: Type) -> u128 {
    let width = ty.scalar_bits();
    let mask = if width >= 128 { u128::MAX } else { (1 << width) - 1 };
    let random = (u128::from(rng.bits()) << 64) | u128::from(rng.bits());
    let special = match rng.below(8) {
        0 => 0,
        1 => 1,
        2 => u128::MAX,
        3 => 1 << (width - 1),
        4 => (1 << (width - 1)) - 1,
        5 => random & 0xff,
        _ => random,
    };
    special & mask
}

fn params(module: &Module, rng: &mut Rng, types: &[MemType], kernel: bool) -> Vec<Param> {
    let mut out = Vec::new();
    for _ in 0..rng.below(6) {
        let mut ty = rng.pick(types).copied().unwrap_or(MemType::Value(Type::I32));
        let mut attrs = ParamAttrs::default();
        if rng.once_in(3) {
            ty = MemType::Value(Type::ptr(Space::Global));
        }
        let too_many = matches!(ty, MemType::Agg(id) if module.agg(id).leaves > 16);
        let stray = kernel && matches!(ty, MemType::Value(ty) if ty.space() == Some(Space::Param));
        if too_many || stray {
            continue;
        }
        if let MemType::Value(value) = ty
            && value.is_ptr()
        {
            attrs.noalias = rng.once_in(2);
            attrs.readonly = rng.once_in(3);
            attrs.writeonly = rng.once_in(5);
            attrs.nonnull = rng.once_in(3);
            attrs.align = if rng.once_in(2) { 1 << rng.below(9) } else { 0 };
            if rng.once_in(4) {
                ty = MemType::Value(if kernel { Type::ptr(Space::Param) } else { Type::PTR });
                attrs.byval = rng.pick(types).copied();
                attrs.grid_constant = kernel && rng.once_in(2);
            }
        }
        if ty == MemType::Value(Type::I8) {
            attrs.signext = rng.once_in(3);
            attrs.zeroext = !attrs.signext && rng.once_in(2);
        }
        out.push(Param { ty, attrs });
    }
    out
}

/// A signature without what only kernels have.
pub(super) fn signature(module: &Module, rng: &mut Rng, types: &[MemType]) -> Signature {
    let ret = rng.pick(types).copied().filter(|ty| match ty {
        MemType::Agg(id) => module.agg(*id).leaves <= 8,
        MemType::Value(_) => true,
    });
    Signature { params: params(module, rng, types, false), ret: ret.filter(|_| !rng.once_in(3)) }
}

fn function(module: &mut Module, rng: &mut Rng, types: &[MemType], index: usize, options: &Options) {
    let kernel = rng.once_in(2);
    let sig = match kernel {
        true => Signature { params: params(module, rng, types, true), ret: None },
        false => signature(module, rng, types),
    };
    let kind = if kernel { FuncKind::Kernel } else { FuncKind::Func };
    let mut func = Function::new(name(rng, "f", index, options), kind, sig);
    func.attrs = attrs(rng, kernel);
    func.linkage = match rng.below(3) {
        _ if index < 2 => Linkage::Extern,
        0 => Linkage::Internal,
        1 => Linkage::Weak,
        _ => Linkage::Visible,
    };
    let _ = module.add_func(func);
}

fn attrs(rng: &mut Rng, kernel: bool) -> FuncAttrs {
    let mut attrs = FuncAttrs {
        noreturn: rng.once_in(8),
        readnone: rng.once_in(8),
        readonly: rng.once_in(8),
        nonconvergent: rng.once_in(4),
        noinline: rng.once_in(3),
        ..FuncAttrs::default()
    };
    attrs.alwaysinline = !attrs.noinline && rng.once_in(3);
    if !kernel {
        return attrs;
    }
    match rng.below(3) {
        0 => attrs.reqntid = Some([32 << rng.below(4), 1 + rng.below(2) as u32, 1]),
        1 => attrs.maxntid = Some([1 + rng.below(1024) as u32, 1, 1]),
        _ => {}
    }
    if (attrs.reqntid.is_some() || attrs.maxntid.is_some()) && rng.once_in(2) {
        attrs.minnctapersm = Some(1 + rng.below(8) as u32);
    }
    attrs.maxnreg = rng.once_in(3).then(|| 16 + rng.below(200) as u32);
    match rng.below(3) {
        0 => attrs.reqnctapercluster = Some([1 + rng.below(8) as u32, 1, 1]),
        1 => attrs.maxclusterrank = Some(1 + rng.below(8) as u32),
        _ => {}
    }
    attrs.blocksareclusters = attrs.reqntid.is_some() && attrs.reqnctapercluster.is_some() && rng.once_in(2);
    attrs
}
