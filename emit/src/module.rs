//! The PTX file as a whole.

use crate::EmitOptions;
use crate::debug::Debug;
use crate::error::EmitError;
use crate::function::print_function;
use crate::globals;
use crate::names::Names;
use crate::signature::{Header, param_names, result_names};
use crate::survey::{Survey, survey};
use crate::text::Text;
use ptxc_mir::{FunctionDecl, Linkage, Module, OpaqueKind, ParamType};

/// Bytes that one instruction takes on average, to size the output once.
const BYTES_PER_INSTRUCTION: usize = 40;

/// Prints a module. Functions must be out of SSA: no block parameters, ties in one register.
///
/// # Errors
/// A feature that the target or the `.version` asked for lacks, an undefined symbol, or a variable PTX cannot express.
pub fn emit_module(module: &Module, options: &EmitOptions) -> Result<String, EmitError> {
    let survey = survey(module, *options)?;
    let names = Names::new(&module.symbols);
    let instructions: usize = module.functions.iter().map(|f| f.insts.len()).sum();
    let mut text = Text::with_capacity(instructions * BYTES_PER_INSTRUCTION + 4096);
    let mut debug = Debug::new(module, *options);
    header(&mut text, module, &survey, *options);
    debug.files(&mut text);
    functions_ahead(&mut text, module, &names, &survey);
    globals::print(&mut text, module, &names, &survey)?;
    for (index, func) in module.functions.iter().enumerate() {
        text.char('\n');
        print_function(&mut text, module, func, index, &names, &mut debug)?;
    }
    debug.sections(&mut text, &names)?;
    Ok(text.finish())
}

fn header(text: &mut Text, module: &Module, survey: &Survey, options: EmitOptions) {
    text.push(".version ");
    text.unsigned(u64::from(survey.version.major()));
    text.char('.');
    text.unsigned(u64::from(survey.version.minor()));
    text.push("\n.target ");
    text.push(module.target.name());
    if uses_samplers(module) {
        // Separate samplers exist in this mode only (PTX ISA, 5.3).
        text.push(", texmode_independent");
    }
    if options.debug {
        text.push(", debug");
    }
    text.push("\n.address_size 64\n\n");
}

fn uses_samplers(module: &Module) -> bool {
    let sampler = ParamType::Opaque(OpaqueKind::Sampler);
    module.opaques.iter().any(|o| o.kind == OpaqueKind::Sampler)
        || module.functions.iter().any(|f| f.signature.params.iter().any(|p| p.ty == sampler))
}

/// Declarations: of functions defined elsewhere that are used, and of those used before their definition.
fn functions_ahead(text: &mut Text, module: &Module, names: &Names, survey: &Survey) {
    for (declaration, &used) in module.declarations.iter().zip(&survey.declared) {
        if used {
            let FunctionDecl { name, kind, signature, attrs } = declaration;
            let linkage = Linkage::Extern;
            declare(text, names, &Header { name: *name, kind: *kind, linkage, signature, attrs, defined: false });
        }
    }
    for (func, &forward) in module.functions.iter().zip(&survey.forward) {
        if forward {
            let header = Header {
                name: func.name,
                kind: func.kind,
                linkage: func.linkage,
                signature: &func.signature,
                attrs: &func.attrs,
                defined: false,
            };
            declare(text, names, &header);
        }
    }
}

fn declare(text: &mut Text, names: &Names, header: &Header<'_>) {
    let params = param_names(names, header.name, header.signature);
    let results = result_names(names, header.signature);
    header.print(text, names, &params, &results);
    text.push(";\n");
}
