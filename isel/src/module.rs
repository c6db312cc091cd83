//! A whole module: symbols, globals, declarations, and every function.

use ptxc_ir::{FuncId, FuncKind, GlobalId, GlobalKind, Module};
use ptxc_mir as mir;
use ptxc_mir::SymId;
use ptxc_targets::{Target, tok};

use crate::abi;
use crate::dialect::Dialect;
use crate::error::SelectError;
use crate::globals;
use crate::lower::{self, Env, Selected};
use crate::rules::Remark;
use crate::{Options, SelectError as Error};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// Machine symbols of the module's globals and functions.
#[derive(Default)]
pub(crate) struct Symbols {
    globals: SecondaryMap<GlobalId, PackedOption<SymId>>,
    funcs: SecondaryMap<FuncId, PackedOption<SymId>>,
    by_symbol: SecondaryMap<SymId, PackedOption<GlobalId>>,
}

impl Symbols {
    fn new(module: &Module, symbols: &mut mir::Symbols) -> Symbols {
        let mut out = Symbols::default();
        for (id, global) in module.globals.iter() {
            let symbol = symbols.intern(&global.name);
            out.globals[id] = symbol.into();
            out.by_symbol[symbol] = id.into();
        }
        for (id, func) in module.funcs.iter() {
            out.funcs[id] = symbols.intern(&func.name).into();
        }
        out
    }

    /// Symbol of a global.
    pub(crate) fn global(&self, id: GlobalId) -> SymId {
        self.globals[id].expand().unwrap_or(SymId::from_u32(0))
    }

    /// The global that a symbol names, if it is one.
    pub(crate) fn global_of(&self, symbol: SymId) -> Option<GlobalId> {
        self.by_symbol[symbol].expand()
    }

    /// Symbol of a function.
    pub(crate) fn func(&self, id: FuncId) -> SymId {
        self.funcs[id].expand().unwrap_or(SymId::from_u32(0))
    }
}

/// Selects machine IR for a legal module.
///
/// # Errors
/// Every instruction that the target cannot do, with its place.
pub fn select(module: &Module, target: Target, options: &Options) -> Result<mir::Module, Vec<Error>> {
    select_with_remarks(module, target, options, None)
}

/// [`select`] that tells which rules it applied, function by function, to each instruction from the last to the first.
///
/// # Errors
/// As [`select`].
pub fn select_with_remarks(
    module: &Module,
    target: Target,
    options: &Options,
    mut remarks: Option<&mut Vec<Remark>>,
) -> Result<mir::Module, Vec<Error>> {
    let mut out = mir::Module::new(target);
    out.ptx_version = options.ptx_version;
    let symbols = Symbols::new(module, &mut out.symbols);
    let mut errors = Vec::new();
    globals(module, &symbols, &mut out, &mut errors);
    out.files =
        module.files.iter().map(|(number, path)| mir::SourceFile { number: *number, path: path.clone() }).collect();
    let dialect = Dialect::new(target, options.ptx_version);
    let mixed_sums = dialect.has_some_form(&[tok::ADD, tok::RN, tok::F32, tok::F16]);
    let env = Env { module, symbols: &symbols, target, dialect, mixed_sums, options, remarks: remarks.is_some() };
    for (id, func) in module.funcs.iter() {
        let abi = abi::signature(module, &func.sig, func.kind);
        if let Some(message) = abi.refusal() {
            errors.push(SelectError::item(&func.name, message));
            continue;
        }
        let signature = abi.signature(func.attrs.noreturn);
        if func.is_declaration() {
            out.declarations.push(mir::FunctionDecl {
                name: symbols.func(id),
                kind: func_kind(func.kind),
                signature,
                attrs: attributes(&func.attrs),
            });
            continue;
        }
        let mut head = mir::Function::new(symbols.func(id), func_kind(func.kind), linkage(func.linkage), signature);
        head.attrs = attributes(&func.attrs);
        match lower::function(env, func, abi, head) {
            Ok(selected) => {
                if let Some(remarks) = &mut remarks {
                    remarks.extend(selected.fired.iter().map(|(inst, rule)| Remark { func: id, inst: *inst, rule }));
                }
                take(&mut out, selected);
            }
            Err(found) => errors.extend(found),
        }
    }
    if errors.is_empty() { Ok(out) } else { Err(errors) }
}

/// Adds a selected function, renumbering its opcodes and prototypes to the module's.
fn take(out: &mut mir::Module, selected: Selected) {
    let Selected { mut func, opcodes, prototypes, .. } = selected;
    let mut renumbered: Vec<Option<ptxc_targets::Opcode>> = vec![None; opcodes.len()];
    func.map_opcodes(|op| match renumbered[op.index()] {
        Some(new) => new,
        None => {
            let new = out.opcodes.intern(opcodes.toks(op));
            renumbered[op.index()] = Some(new);
            new
        }
    });
    let protos: Vec<mir::ProtoId> = prototypes.into_iter().map(|s| out.prototype(s)).collect();
    for call in func.calls.values_mut() {
        if let mir::Callee::Indirect(proto) = &mut call.callee
            && let Some(new) = protos.get(proto.as_u32() as usize)
        {
            *proto = *new;
        }
    }
    out.functions.push(func);
}

fn func_kind(kind: FuncKind) -> mir::FuncKind {
    match kind {
        FuncKind::Kernel => mir::FuncKind::Kernel,
        FuncKind::Func => mir::FuncKind::Func,
    }
}

fn linkage(linkage: ptxc_ir::Linkage) -> mir::Linkage {
    match linkage {
        ptxc_ir::Linkage::Visible => mir::Linkage::Visible,
        ptxc_ir::Linkage::Internal => mir::Linkage::Internal,
        ptxc_ir::Linkage::Weak => mir::Linkage::Weak,
        ptxc_ir::Linkage::Common => mir::Linkage::Common,
        ptxc_ir::Linkage::Extern => mir::Linkage::Extern,
    }
}

fn attributes(attrs: &ptxc_ir::FuncAttrs) -> mir::FunctionAttrs {
    mir::FunctionAttrs {
        reqntid: attrs.reqntid,
        maxntid: attrs.maxntid,
        minnctapersm: attrs.minnctapersm,
        maxnreg: attrs.maxnreg,
        reqnctapercluster: attrs.reqnctapercluster,
        maxclusterrank: attrs.maxclusterrank,
        blocksareclusters: attrs.blocksareclusters,
        noreturn: attrs.noreturn,
    }
}

fn globals(module: &Module, symbols: &Symbols, out: &mut mir::Module, errors: &mut Vec<SelectError>) {
    for (id, global) in module.globals.iter() {
        let symbol = symbols.global(id);
        let kind = match global.kind {
            GlobalKind::Variable(space) => {
                match globals::variable(module, symbols, id, space) {
                    Ok(variable) => {
                        out.globals.push(variable);
                    }
                    Err(message) => errors.push(SelectError::item(&global.name, message)),
                }
                continue;
            }
            GlobalKind::Texture => mir::OpaqueKind::Texture,
            GlobalKind::Surface => mir::OpaqueKind::Surface,
            GlobalKind::Sampler => mir::OpaqueKind::Sampler,
        };
        out.opaques.push(mir::Opaque { symbol, kind, linkage: linkage(global.linkage) });
    }
}

/// The machine linkage of a global.
pub(crate) fn global_linkage(from: ptxc_ir::Linkage) -> mir::Linkage {
    linkage(from)
}
