//! How values are passed: the one place that computes type, size, alignment and layout of a parameter.
//!
//! Definition, declaration, call and prototype all ask [`signature`], so they cannot disagree. The rules follow CUDA's:
//! integers narrower than 32 bits are passed to device functions in 32 bits, kernels take them as they are; vectors,
//! `i128` and aggregates are byte arrays with C layout (PTX ISA 7.1, 5.1.6).

use ptxc_ir::{FloatKind, FuncKind, MemType, Module, ParamAttrs, Scalar, Signature, Space, Type};
use ptxc_mir as mir;
use ptxc_mir::{ParamDecl, ParamPtr, ParamType};
use ptxc_targets::RegType;

use crate::regs::RegLayout;

/// One scalar or vector of a passed object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// Its type.
    pub ty: Type,
    /// Byte offset in the object.
    pub offset: u32,
}

/// How a narrow integer is widened to the 32 bits that it is passed in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Extension {
    /// Upper bits are unspecified.
    #[default]
    Any,
    /// Sign-extended.
    Signed,
    /// Zero-extended.
    Zero,
}

/// One parameter or result as it is passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Object {
    /// Its declaration; `None` for objects of no bytes, which are not passed at all.
    pub decl: Option<ParamDecl>,
    /// Its leaves, which are the values that carry it.
    pub leaves: Vec<Leaf>,
    /// The object behind the pointer that the IR passes, for by-value parameters.
    pub byval: Option<MemType>,
    /// Widening of a narrow integer.
    pub extension: Extension,
}

/// Parameters and result of a function as they are passed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Abi {
    /// Parameters in order, those of no bytes included.
    pub params: Vec<Object>,
    /// The result.
    pub ret: Option<Object>,
}

impl Abi {
    /// Why a signature cannot be passed in PTX, if it cannot.
    pub fn refusal(&self) -> Option<String> {
        let align = self.params.iter().chain(&self.ret).filter_map(|o| o.decl.as_ref()).map(|d| d.align).max()?;
        (align > MAX_PARAM_ALIGN).then(|| {
            format!("an alignment of {align} bytes is more than the {MAX_PARAM_ALIGN} that a parameter can have")
        })
    }

    /// The machine signature.
    pub fn signature(&self, noreturn: bool) -> mir::Signature {
        mir::Signature {
            params: self.params.iter().filter_map(|p| p.decl.clone()).collect(),
            returns: self.ret.iter().filter_map(|r| r.decl.clone()).collect(),
            noreturn,
        }
    }
}

/// The largest alignment a parameter can have, in bytes (PTX ISA 5.1.6).
pub const MAX_PARAM_ALIGN: u32 = 128;

/// Computes how the parameters and the result of a signature are passed.
pub fn signature(module: &Module, sig: &Signature, kind: FuncKind) -> Abi {
    let params = sig.params.iter().map(|p| object(module, p.ty, &p.attrs, kind)).collect();
    let ret = sig.ret.map(|ty| object(module, ty, &ParamAttrs::default(), FuncKind::Func));
    Abi { params, ret }
}

/// Computes how one parameter or result is passed.
fn object(module: &Module, ty: MemType, attrs: &ParamAttrs, kind: FuncKind) -> Object {
    if let Some(inner) = attrs.byval {
        let layout = module.layout_of(inner);
        let align = layout.align.max(u64::from(attrs.align));
        let leaves = vec![Leaf { ty: scalar_of(ty), offset: 0 }];
        let decl = bytes(layout.size, align);
        return Object { decl, leaves, byval: Some(inner), extension: Extension::Any };
    }
    let mut leaves = Vec::new();
    module.for_each_leaf(ty, 0, &mut |ty, offset| leaves.push(Leaf { ty, offset: clamp(offset) }));
    let layout = module.layout_as_passed(ty);
    let decl = match ty {
        MemType::Value(ty) => match scalar_type(ty, kind) {
            Some(reg) => {
                let mut decl = ParamDecl::scalar("", reg);
                decl.ptr = pointer(ty, attrs, kind);
                Some(decl)
            }
            None => bytes(layout.size, layout.align),
        },
        MemType::Agg(_) => bytes(layout.size, layout.align),
    };
    let extension = match (attrs.signext, attrs.zeroext) {
        (true, _) => Extension::Signed,
        (_, true) => Extension::Zero,
        _ => Extension::Any,
    };
    Object { decl, leaves, byval: None, extension }
}

fn scalar_of(ty: MemType) -> Type {
    match ty {
        MemType::Value(ty) => ty,
        MemType::Agg(_) => Type::PTR,
    }
}

fn clamp(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn bytes(size: u64, align: u64) -> Option<ParamDecl> {
    (size != 0).then(|| ParamDecl::bytes("", clamp(size), clamp(align)))
}

/// The PTX type of a scalar; `None` for what is passed as bytes.
fn scalar_type(ty: Type, kind: FuncKind) -> Option<RegType> {
    if ty.is_vector() {
        return None;
    }
    let kernel = kind == FuncKind::Kernel;
    Some(match ty.kind()? {
        Scalar::Int(bits) => match (bits, kernel) {
            (0..=8, true) => RegType::U8,
            (9..=16, true) => RegType::U16,
            (17..=32, true) => RegType::U32,
            (33..=64, true) => RegType::U64,
            (0..=32, false) => RegType::B32,
            (33..=64, false) => RegType::B64,
            _ => return None,
        },
        Scalar::Ptr(Space::Tensor) => RegType::U32,
        Scalar::Ptr(_) => {
            if kernel {
                RegType::U64
            } else {
                RegType::B64
            }
        }
        Scalar::Float(FloatKind::F32) => {
            if kernel {
                RegType::F32
            } else {
                RegType::B32
            }
        }
        Scalar::Float(FloatKind::F64) => {
            if kernel {
                RegType::F64
            } else {
                RegType::B64
            }
        }
        Scalar::Float(FloatKind::Tf32) => RegType::B32,
        Scalar::Float(FloatKind::F16 | FloatKind::Bf16) => RegType::B16,
        Scalar::Float(_) => RegType::B8,
    })
}

/// The `.ptr` attribute of a kernel's pointer parameter.
fn pointer(ty: Type, attrs: &ParamAttrs, kind: FuncKind) -> Option<ParamPtr> {
    if kind != FuncKind::Kernel {
        return None;
    }
    let space = match ty.space().filter(|_| ty.is_ptr())? {
        Space::Generic => None,
        Space::Global => Some(mir::Space::Global),
        Space::Shared => Some(mir::Space::Shared),
        Space::Const => Some(mir::Space::Const),
        Space::Local => Some(mir::Space::Local),
        Space::SharedCluster | Space::Param | Space::Tensor => return None,
    };
    Some(ParamPtr { space, align: attrs.align.max(1) })
}

/// One `ld.param` or `st.param`: byte offset, element type and number of registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Byte offset in the object.
    pub offset: u32,
    /// Type of each element.
    pub ty: RegType,
    /// Elements, 1, 2 or 4.
    pub len: u8,
}

/// The accesses that carry a leaf, in the order of its registers. A leaf that a packed aggregate puts at an unaligned
/// offset is passed in smaller pieces: `parts` for each register. Empty for objects of no bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pieces {
    /// The accesses.
    pub list: Vec<Piece>,
    /// Elements for each register: 1 unless unaligned, a power of two.
    pub parts: u32,
}

/// Computes the accesses that carry a leaf of an object.
pub fn pieces(object: &Object, leaf: Leaf, layout: RegLayout) -> Pieces {
    let Some(decl) = &object.decl else { return Pieces::default() };
    if let ParamType::Scalar(ty) = decl.ty {
        return Pieces { list: vec![Piece { offset: 0, ty, len: 1 }], parts: 1 };
    }
    let aligned = |offset: u32| if offset == 0 { decl.align } else { decl.align.min(1 << offset.trailing_zeros()) };
    let width = (clamp(leaf.ty.size()) / layout.count.max(1)).max(1);
    let part = width.min(aligned(leaf.offset)).min(8);
    let parts = (width / part).max(1);
    // Bytes that are joined again have to be zero-extended.
    let ty = if part == 1 && parts > 1 { RegType::U8 } else { mir::untyped(part).unwrap_or(RegType::B8) };
    let (mut list, mut done, total) = (Vec::new(), 0, layout.count * parts);
    while done < total {
        let offset = leaf.offset + done * part;
        let widest = aligned(offset).min(16);
        let len = [4, 2].into_iter().find(|n| *n <= total - done && n * part <= widest).unwrap_or(1);
        list.push(Piece { offset, ty, len: len as u8 });
        done += len;
    }
    Pieces { list, parts }
}
