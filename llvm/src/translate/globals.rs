//! Symbols: variables and what functions are declared as.

use ptxc_ir::{
    Global as IrGlobal, GlobalKind as IrKind, Init, Linkage as IrLinkage, Space, Symbol as IrSymbol, Type as IrType,
};

use super::constants::Address;
use super::{Context, Fault, Message, Result, Symbol};
use crate::model::{Constant, Global, GlobalId, GlobalKind, Linkage};

/// Variables that tell LLVM something and are no data of the program.
const NO_DATA: &[&str] = &[
    "llvm.used",
    "llvm.compiler.used",
    "llvm.global_ctors",
    "llvm.global_dtors",
    "llvm.global.annotations",
    "llvm.embedded.module",
    "llvm.cmdline",
];

/// Most bytes of zeros that an initializer states.
const MAX_ZEROS: u64 = 1 << 16;

impl Context<'_> {
    /// Makes every symbol, without contents.
    pub fn declare_symbols(&mut self, faults: &mut Vec<Fault>) {
        let source = self.source;
        for line in &source.assembly {
            let line = source.names.text(*line);
            if !line.trim().is_empty() {
                faults.push(Fault::new(format!("module-level assembly has no equivalent: `{}`", line.trim())));
                break;
            }
        }
        for id in source.order.iter().copied() {
            let global = &source.globals[id];
            let result = match &global.kind {
                GlobalKind::Variable(_) => self.declare_variable(id, global),
                GlobalKind::Function(function) => self.declare_function(id, global, function),
                GlobalKind::Unknown | GlobalKind::Alias(_) | GlobalKind::IFunc(_) => Ok(()),
            };
            if let Err(fault) = result {
                faults.push(fault.at(global.at));
            }
        }
    }

    /// Says what the module's target has that is not NVPTX's.
    pub fn check_target(&mut self, faults: &mut Vec<Fault>) {
        let source = self.source;
        let layout = source.data_layout.map(|text| self.text(text)).unwrap_or_default();
        if layout.split('-').any(|entry| entry == "E") {
            faults.push(Fault::new("the data layout is big-endian (`E`); GPUs are little-endian"));
        }
        let triple = source.triple.map(|text| self.text(text)).unwrap_or_default();
        if !matches!(triple.split('-').next(), Some("" | "nvptx" | "nvptx64")) {
            let text = format!("the module is for `{triple}`, not for nvptx64: sizes and calls may not be as meant");
            self.warnings.push(Message { text, at: None });
        }
    }

    /// Keeps the members of `@llvm.used` and `@llvm.compiler.used`; warns of aliases that others might want.
    pub fn keep_used(&mut self) {
        let source = self.source;
        for id in source.order.iter().copied() {
            let global = &source.globals[id];
            let name = global.name.map(|name| self.text(name)).unwrap_or_default();
            match &global.kind {
                GlobalKind::Variable(variable) if matches!(name.as_str(), "llvm.used" | "llvm.compiler.used") => {
                    let Some(list) = variable.initializer.expand() else { continue };
                    let Constant::Aggregate(members) = source.constants.get(list) else { continue };
                    for member in source.constants.list(members) {
                        let symbol = match self.address(*member, 0) {
                            Ok(Some(Address { symbol: Symbol::Variable(id), .. })) => IrSymbol::Global(id),
                            Ok(Some(Address { symbol: Symbol::Function(id), .. })) => IrSymbol::Func(id),
                            _ => continue,
                        };
                        if !self.module.used.contains(&symbol) && !self.is_declared_only(symbol) {
                            self.module.used.push(symbol);
                        }
                    }
                }
                GlobalKind::Alias(_) | GlobalKind::IFunc(_)
                    if !matches!(global.linkage, Linkage::Internal | Linkage::Private) =>
                {
                    let text =
                        format!("the alias `{name}` is used in this module only: the PTX has no symbol of that name");
                    self.warn(global.at, text);
                }
                _ => {}
            }
        }
    }

    /// Whether a symbol is a declaration, of which nothing is to be kept.
    fn is_declared_only(&self, symbol: IrSymbol) -> bool {
        let linkage = match symbol {
            IrSymbol::Global(id) => self.module.globals[id].linkage,
            IrSymbol::Func(id) => self.module.funcs[id].linkage,
        };
        linkage == IrLinkage::Extern
    }

    /// A name for a symbol that no other has.
    pub fn symbol_name(&self, id: GlobalId, global: &Global) -> String {
        let name = match global.name {
            Some(name) => {
                let text = self.text(name);
                // A leading \01 asks for the name as it stands.
                text.strip_prefix('\u{1}').map(str::to_owned).unwrap_or(text)
            }
            None => format!("__unnamed_{}", cranelift_entity::EntityRef::index(id)),
        };
        if self.module.symbol(&name).is_none() {
            return name;
        }
        let mut number = 1u64;
        loop {
            let candidate = format!("{name}.{number}");
            if self.module.symbol(&candidate).is_none() {
                return candidate;
            }
            number += 1;
        }
    }

    fn has_elements(&self, global: &Global) -> bool {
        let ty = global.ty.expand().map(|ty| self.source.types.get(ty));
        matches!(ty, Some(crate::model::Type::Array { len: 1.., .. }))
    }

    fn declare_variable(&mut self, id: GlobalId, global: &Global) -> Result<()> {
        let name = self.symbol_name(id, global);
        let section = global.section.map(|section| self.text(section));
        if matches!(name.as_str(), "llvm.global_ctors" | "llvm.global_dtors") && self.has_elements(global) {
            return Err(Fault::new("nothing runs constructors and destructors of variables on a GPU"));
        }
        if NO_DATA.contains(&name.as_str()) || section.as_deref() == Some("llvm.metadata") {
            return Ok(());
        }
        let kind = if self.annotations.has(id, "texture") {
            IrKind::Texture
        } else if self.annotations.has(id, "surface") {
            IrKind::Surface
        } else if self.annotations.has(id, "sampler") {
            IrKind::Sampler
        } else {
            IrKind::Variable(match self.space(global.space)? {
                // CUDA puts variables without a space into global memory.
                Space::Generic | Space::Global => Space::Global,
                space @ (Space::Shared | Space::Const) => space,
                other => return Err(Fault::new(format!("variables cannot lie in {} memory", other.name()))),
            })
        };
        let linkage = linkage(global);
        let managed = self.annotations.has(id, "managed");
        let declared = IrGlobal { name, kind, ty: IrType::I64.into(), linkage, align: 8, init: None, managed };
        let made = self.module.add_global(declared).map_err(|_| Fault::new("two symbols have one name"))?;
        self.symbols[id] = Symbol::Variable(made);
        self.spans.set_global(made, global.at as usize..global.at as usize + 1);
        Ok(())
    }

    /// Gives the variables their types and contents.
    pub fn initialize_variables(&mut self, faults: &mut Vec<Fault>) {
        let source = self.source;
        for id in source.order.iter().copied() {
            let global = &source.globals[id];
            if let Err(fault) = self.initialize_variable(id, global) {
                faults.push(fault.at(global.at));
            }
        }
    }

    fn initialize_variable(&mut self, id: GlobalId, global: &Global) -> Result<()> {
        let (Symbol::Variable(made), GlobalKind::Variable(variable)) = (self.symbols[id], &global.kind) else {
            return Ok(());
        };
        let IrKind::Variable(space) = self.module.globals[made].kind else { return Ok(()) };
        let Some(ty) = global.ty.expand() else { return Err(Fault::new("a variable has no type")) };
        if variable.thread_local {
            return Err(Fault::new("there are no thread-local variables"));
        }
        let own = self.module.globals[made].linkage;
        let initializer = variable.initializer.expand().filter(|_| own != IrLinkage::Extern && space != Space::Shared);
        let (mem, init) = match initializer {
            Some(constant) => self.initializer(ty, constant)?,
            None => (self.mem_type(ty)?, Init::Poison),
        };
        let align = self.layout.of(self.source, ty)?.align.max(global.align).max(self.module.layout_of(mem).align);
        // Only zeros in global memory can be common; elsewhere the nearest is weak.
        let common = own == IrLinkage::Common && space == Space::Global && matches!(init, Init::Zero | Init::Bits(0));
        let out = &mut self.module.globals[made];
        out.ty = mem;
        out.align = align;
        if own == IrLinkage::Common && !common {
            out.linkage = IrLinkage::Weak;
        }
        if !common {
            // Memory without initializer is zero; a list of so many zeros would say the same.
            let zeros = init == Init::Zero && self.module.layout_of(mem).size > MAX_ZEROS;
            self.module.globals[made].init = initializer.map(|_| init).filter(|_| !zeros);
        }
        Ok(())
    }
}

/// The linkage of a symbol.
pub(super) fn linkage(global: &Global) -> IrLinkage {
    let elsewhere = global.is_declaration() || global.linkage == Linkage::AvailableExternally;
    match global.linkage {
        _ if elsewhere => IrLinkage::Extern,
        Linkage::Internal | Linkage::Private => IrLinkage::Internal,
        Linkage::LinkOnce | Linkage::LinkOnceOdr | Linkage::Weak | Linkage::WeakOdr => IrLinkage::Weak,
        Linkage::Common => IrLinkage::Common,
        _ => IrLinkage::Visible,
    }
}
