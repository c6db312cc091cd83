//! Types as text, in the spelling of LLVM.

use std::fmt::Write as _;

use super::Module;
use super::entities::TypeId;
use super::types::Type;

/// How much of a type a message shows.
const MAX_LEN: usize = 4096;

/// The type as LLVM writes it. Numbered structs are called by their index in the module.
pub fn type_text(module: &Module, ty: TypeId) -> String {
    let mut text = String::new();
    write_type(module, ty, &mut text);
    text
}

fn write_list(module: &Module, list: &[TypeId], text: &mut String) {
    for (index, ty) in list.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        write_type(module, *ty, text);
    }
}

fn write_type(module: &Module, ty: TypeId, text: &mut String) {
    if text.len() > MAX_LEN {
        text.push('…');
        return;
    }
    // Writing to a string does not fail.
    let _ = match module.types.get(ty) {
        Type::Void => text.write_str("void"),
        Type::Half => text.write_str("half"),
        Type::BFloat => text.write_str("bfloat"),
        Type::Float => text.write_str("float"),
        Type::Double => text.write_str("double"),
        Type::X86Fp80 => text.write_str("x86_fp80"),
        Type::Fp128 => text.write_str("fp128"),
        Type::PpcFp128 => text.write_str("ppc_fp128"),
        Type::X86Vector => text.write_str("x86_amx"),
        Type::Label => text.write_str("label"),
        Type::Metadata => text.write_str("metadata"),
        Type::Token => text.write_str("token"),
        Type::Integer(bits) => write!(text, "i{bits}"),
        Type::Byte(bits) => write!(text, "b{bits}"),
        Type::Pointer(0) => text.write_str("ptr"),
        Type::Pointer(space) => write!(text, "ptr addrspace({space})"),
        Type::Array { len, element } => {
            let _ = write!(text, "[{len} x ");
            write_type(module, element, text);
            text.write_str("]")
        }
        Type::Vector { len, scalable, element } => {
            let _ = write!(text, "<{}{len} x ", if scalable { "vscale x " } else { "" });
            write_type(module, element, text);
            text.write_str(">")
        }
        Type::Struct { packed, fields } => {
            text.push_str(if packed { "<{ " } else { "{ " });
            write_list(module, module.types.list(fields), text);
            text.write_str(if packed { " }>" } else { " }" })
        }
        Type::Named(id) => match module.types.structs[id].name {
            Some(name) => write!(text, "%{}", module.names.text(name)),
            None => write!(text, "%{}", id.as_u32()),
        },
        Type::Function { result, params, variadic } => {
            write_type(module, result, text);
            text.push_str(" (");
            write_list(module, module.types.list(params), text);
            if variadic {
                text.push_str(if params.is_empty() { "..." } else { ", ..." });
            }
            text.write_str(")")
        }
        Type::Target { name, types, words } => {
            let _ = write!(text, "target(\"{}\"", module.names.text(name));
            for ty in module.types.list(types) {
                text.push_str(", ");
                write_type(module, *ty, text);
            }
            for word in module.types.words(words) {
                let _ = write!(text, ", {word}");
            }
            text.write_str(")")
        }
    };
}
