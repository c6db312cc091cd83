//! Rules of signatures and attributes of functions.

use super::{Checked, Place, Report, Rule, fail, require};
use crate::module::{FuncAttrs, FuncKind, Function, Linkage, Module, Param, Signature};
use crate::reader::MAX_SIGNATURE_LEAVES;
use crate::types::{MemType, Scalar, Space, Type};

/// Bytes of parameters that a kernel takes at most (PTX ISA 7.1 with 9.0 limits; targets may take less).
const MAX_PARAM_BYTES: u64 = 32764;

pub(super) fn check(module: &Module, func: &Function, report: &mut Report) {
    let kernel = func.kind == FuncKind::Kernel;
    report.add(Place::Func, linkage(func));
    report.add(Place::Func, check_signature(module, &func.sig, kernel));
    report.add(Place::Func, bounds(&func.attrs, kernel));
    let conflict = func.attrs.noinline && func.attrs.alwaysinline;
    report.add(
        Place::Func,
        require(!conflict, Rule::AttributeConflict, || "`noinline` and `alwaysinline` contradict each other".into()),
    );
}

fn linkage(func: &Function) -> Checked {
    let fits = (func.linkage == Linkage::Extern) == func.is_declaration() && func.linkage != Linkage::Common;
    require(fits, Rule::FunctionLinkage, || match func.linkage {
        Linkage::Common => "a function cannot be `common`".to_string(),
        Linkage::Extern => "an extern function has a body".to_string(),
        _ => "a function without a body is not extern".to_string(),
    })
}

fn leaves(module: &Module, ty: MemType) -> u64 {
    match ty {
        MemType::Value(_) => 1,
        MemType::Agg(id) => module.agg(id).leaves,
    }
}

/// A signature passes so few values that they can be listed.
pub(super) fn check_size(module: &Module, sig: &Signature) -> Checked {
    let returned = sig.ret.map_or(0, |ret| leaves(module, ret));
    let passed = sig.params.iter().fold(0u64, |sum, p| sum.saturating_add(leaves(module, p.ty)));
    require(returned.max(passed) <= MAX_SIGNATURE_LEAVES, Rule::SignatureSize, || {
        format!("the signature passes {} values, at most {MAX_SIGNATURE_LEAVES} are possible", returned.max(passed))
    })
}

/// A signature of a function, or of an indirect call.
pub(super) fn check_signature(module: &Module, sig: &Signature, kernel: bool) -> Checked {
    check_size(module, sig)?;
    require(!kernel || sig.ret.is_none(), Rule::KernelReturn, || "a kernel returns nothing".to_string())?;
    let mut bytes = 0u64;
    for (index, param) in sig.params.iter().enumerate() {
        check_param(param, index + 1, kernel)?;
        let layout = module.layout_of(param.attrs.byval.unwrap_or(param.ty));
        bytes = bytes.checked_next_multiple_of(layout.align).unwrap_or(u64::MAX).saturating_add(layout.size);
    }
    require(!kernel || bytes <= MAX_PARAM_BYTES, Rule::ParamSpace, || {
        format!("the parameters take {bytes} bytes, a kernel has {MAX_PARAM_BYTES}")
    })
}

fn check_param(param: &Param, number: usize, kernel: bool) -> Checked {
    let attrs = &param.attrs;
    let ty = match param.ty {
        MemType::Value(ty) => ty,
        MemType::Agg(_) => Type::INVALID,
    };
    let needs_pointer = [
        (attrs.noalias, "noalias"),
        (attrs.readonly, "readonly"),
        (attrs.writeonly, "writeonly"),
        (attrs.nonnull, "nonnull"),
        (attrs.align != 0, "align"),
        (attrs.byval.is_some(), "byval"),
    ];
    for (set, word) in needs_pointer {
        require(!set || ty.is_ptr(), Rule::PointerAttribute, || {
            format!("parameter {number} is no pointer and has the attribute `{word}`")
        })?;
    }
    require(attrs.align == 0 || attrs.align.is_power_of_two(), Rule::ParamAlign, || {
        format!("the alignment of parameter {number} is {}, which is no power of two", attrs.align)
    })?;
    if attrs.byval.is_some() {
        let space = ty.space();
        let fits = match kernel {
            true => space == Some(Space::Param),
            false => matches!(space, Some(Space::Generic | Space::Local)),
        };
        require(fits, Rule::Byval, || match kernel {
            true => format!("parameter {number} is `byval` in a kernel and has type {ty} instead of ptr<param>"),
            false => format!("parameter {number} is `byval` and has type {ty} instead of ptr or ptr<local>"),
        })?;
    } else {
        require(!kernel || ty.space() != Some(Space::Param), Rule::Byval, || {
            format!("parameter {number} of a kernel is a ptr<param> without `byval`")
        })?;
    }
    require(!attrs.grid_constant || (kernel && attrs.byval.is_some()), Rule::GridConstant, || {
        format!("parameter {number} is `grid_constant` and not a `byval` parameter of a kernel")
    })?;
    if attrs.signext || attrs.zeroext {
        let narrow = matches!(ty.kind(), Some(Scalar::Int(bits)) if bits < 32) && !ty.is_vector();
        require(narrow && attrs.signext != attrs.zeroext, Rule::Extension, || {
            format!("parameter {number} cannot be extended: it is {ty}, or both `signext` and `zeroext`")
        })?;
    }
    Ok(())
}

fn bounds(attrs: &FuncAttrs, kernel: bool) -> Checked {
    let given = [
        (attrs.reqntid.is_some(), "reqntid"),
        (attrs.maxntid.is_some(), "maxntid"),
        (attrs.minnctapersm.is_some(), "minnctapersm"),
        (attrs.maxnreg.is_some(), "maxnreg"),
        (attrs.reqnctapercluster.is_some(), "reqnctapercluster"),
        (attrs.maxclusterrank.is_some(), "maxclusterrank"),
        (attrs.blocksareclusters, "blocksareclusters"),
    ];
    if let Some((_, word)) = given.iter().find(|(set, _)| *set && !kernel) {
        return fail(Rule::BoundsOnKernel, format!("`{word}` stands on a function that is no kernel"));
    }
    for (size, word, most) in [
        (attrs.reqntid, "reqntid", 1024),
        (attrs.maxntid, "maxntid", 1024),
        (attrs.reqnctapercluster, "reqnctapercluster", 16),
    ] {
        let Some(size) = size else { continue };
        let product = size.iter().fold(1u64, |p, n| p.saturating_mul(u64::from(*n)));
        require((1..=most).contains(&product), Rule::BoundsSize, || {
            format!("the product of `{word}` is {product}, it may be 1 to {most}")
        })?;
    }
    let numbers = [
        (attrs.minnctapersm, "minnctapersm", 1, 64),
        (attrs.maxnreg, "maxnreg", 1, 255),
        (attrs.maxclusterrank, "maxclusterrank", 1, 16),
    ];
    for (number, word, least, most) in numbers {
        require(number.is_none_or(|n| (least..=most).contains(&n)), Rule::BoundsSize, || {
            format!("`{word}` may be {least} to {most}")
        })?;
    }
    let combine = |holds: bool, message: &str| require(holds, Rule::BoundsCombination, || message.to_string());
    let block = attrs.reqntid.is_some() || attrs.maxntid.is_some();
    combine(attrs.reqntid.is_none() || attrs.maxntid.is_none(), "`reqntid` and `maxntid` exclude each other")?;
    combine(attrs.minnctapersm.is_none() || block, "`minnctapersm` needs `maxntid` or `reqntid`")?;
    combine(
        attrs.reqnctapercluster.is_none() || attrs.maxclusterrank.is_none(),
        "`reqnctapercluster` and `maxclusterrank` exclude each other",
    )?;
    combine(
        !attrs.blocksareclusters || (attrs.reqntid.is_some() && attrs.reqnctapercluster.is_some()),
        "`blocksareclusters` needs `reqntid` and `reqnctapercluster`",
    )
}
