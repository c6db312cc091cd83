//! Rules of global variables and their initializers.

use super::{Checked, Rule, fail, require};
use crate::module::{Global, GlobalKind, Init, Linkage, Module};
use crate::types::{AggDef, MemType, Scalar, Space, Type};

/// No object is larger; keeps sums of sizes and offsets far from overflow.
pub(super) const MAX_OBJECT: u64 = 1 << 40;

pub(super) fn check(module: &Module, global: &Global) -> Checked {
    let layout = module.layout_of(global.ty);
    let name = &global.name;
    if let GlobalKind::Variable(space) = global.kind {
        let lives = matches!(space, Space::Global | Space::Const | Space::Shared);
        require(lives, Rule::GlobalSpace, || format!("a variable cannot live in {} memory", space.name()))?;
    }
    require(layout.size < MAX_OBJECT, Rule::ObjectSize, || format!("`@{name}` is larger than 2^40 bytes"))?;
    require(global.align.is_power_of_two() && global.align >= layout.align, Rule::GlobalAlign, || {
        format!("the alignment of `@{name}` is {}, its type needs {}", global.align, layout.align)
    })?;
    if global.managed {
        let lives = global.kind == GlobalKind::Variable(Space::Global);
        require(lives, Rule::GlobalSpace, || "only variables of global memory are managed".to_string())?;
    }
    if global.linkage == Linkage::Common {
        let plain = global.kind == GlobalKind::Variable(Space::Global) && global.init.is_none();
        require(plain, Rule::CommonLinkage, || "`common` is for global variables without initializer".to_string())?;
    }
    let Some(init) = &global.init else { return Ok(()) };
    let holds = match global.kind {
        GlobalKind::Variable(Space::Shared) => fail(Rule::InitializerAllowed, "shared memory has no initializer"),
        GlobalKind::Variable(_) if global.linkage == Linkage::Extern => {
            fail(Rule::InitializerAllowed, "an extern variable has no initializer")
        }
        GlobalKind::Variable(_) => Ok(()),
        _ => fail(Rule::InitializerAllowed, "textures, surfaces and samplers have no initializer"),
    };
    holds?;
    check_init(module, init, global.ty)
}

/// Depth is bounded by the type's.
fn check_init(module: &Module, init: &Init, ty: MemType) -> Checked {
    match (init, ty) {
        (Init::Zero | Init::Poison, _) => Ok(()),
        (Init::Bits(bits), MemType::Value(ty)) if !ty.is_vector() => {
            let width = ty.scalar_bits();
            let pointer = ty.is_ptr() && *bits != 0;
            let fits = width >= 128 || bits >> width == 0;
            require(fits && !pointer, Rule::InitializerFits, || format!("{bits:#x} is no {ty}"))
        }
        (Init::List(list), MemType::Value(ty)) if ty.is_vector() => {
            elements(list, u64::from(ty.lanes()))?;
            list.iter().try_for_each(|e| check_init(module, e, MemType::Value(ty.scalar())))
        }
        (Init::Bytes(bytes), MemType::Agg(id)) => match &module.agg(id).def {
            AggDef::Array { elem: MemType::Value(Type::I8), len } => {
                require(bytes.len() as u64 == *len, Rule::InitializerFits, || {
                    format!("{} bytes initialize an array of {len}", bytes.len())
                })
            }
            _ => fail(Rule::InitializerFits, "a string initializes an array of i8"),
        },
        (Init::List(list), MemType::Agg(id)) => match &module.agg(id).def {
            AggDef::Array { elem, len } => {
                elements(list, *len)?;
                list.iter().try_for_each(|e| check_init(module, e, *elem))
            }
            AggDef::Struct { fields, .. } => {
                elements(list, fields.len() as u64)?;
                list.iter().zip(fields).try_for_each(|(e, ty)| check_init(module, e, *ty))
            }
        },
        (Init::Global { global, generic, .. }, MemType::Value(ty)) => {
            let Some(target) = module.globals.get(*global) else {
                return fail(Rule::InitializerAddress, "the symbol does not exist");
            };
            let known = matches!(target.kind, GlobalKind::Variable(Space::Global | Space::Const));
            require(known, Rule::InitializerAddress, || {
                format!("the address of `@{}` is not known before the kernel runs", target.name)
            })?;
            let address = if *generic { Type::PTR } else { module.global_ptr(*global) };
            require(ty == address, Rule::InitializerAddress, || {
                format!("the address of `@{}` is {address}, {ty} is initialized", target.name)
            })
        }
        (Init::Func(func), MemType::Value(ty)) => {
            require(module.funcs.get(*func).is_some(), Rule::InitializerAddress, || {
                "the function does not exist".to_string()
            })?;
            let generic = matches!(ty.kind(), Some(Scalar::Ptr(Space::Generic))) && !ty.is_vector();
            require(generic, Rule::InitializerAddress, || format!("the address of a function is ptr, not {ty}"))
        }
        _ => fail(Rule::InitializerFits, "the initializer has not the shape of the type"),
    }
}

fn elements(list: &[Init], len: u64) -> Checked {
    require(list.len() as u64 == len, Rule::InitializerFits, || {
        format!("{} elements initialize a type of {len}", list.len())
    })
}
