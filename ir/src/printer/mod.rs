//! [`Module`] to text, as `ir/LANGUAGE.md` describes it.
//!
//! What is printed reads back as the same module, and printing that gives the same bytes. Defaults are left out: natural
//! alignment, scope `sys`, rounding to nearest. Values without a name are numbered in printing order, blocks without
//! one are `block0`, `block1`, …; a name that is used twice gets a suffix.

mod constants;
mod instructions;
mod names;

use std::fmt::{self, Write as _};

use crate::entities::{AggId, FuncId};
use crate::module::{
    FuncAttrs, FuncKind, Function, Global, GlobalKind, Linkage, Module, ParamAttrs, Signature, Symbol,
};
use crate::types::{AggDef, MemType, Space};
use names::{FuncNames, TypeNames, quoted_bytes, write_name};

/// Prints a whole module. It need not be valid, but what it refers to by number must exist.
pub fn print_module(module: &Module) -> String {
    let mut p = Printer::new(module);
    p.module();
    p.out
}

/// Prints one function of the module.
pub fn print_function(module: &Module, func: FuncId) -> String {
    let mut p = Printer::new(module);
    p.function(&module.funcs[func]);
    p.out
}

/// Prints a function that is not (or no longer) in the module whose types and symbols it uses.
pub fn print_detached_function(module: &Module, func: &Function) -> String {
    let mut p = Printer::new(module);
    p.function(func);
    p.out
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print_module(self))
    }
}

/// Writes a module into a string. Writing to a string cannot fail, so results of `write!` are dropped.
struct Printer<'m> {
    module: &'m Module,
    types: TypeNames,
    out: String,
}

impl<'m> Printer<'m> {
    fn new(module: &'m Module) -> Printer<'m> {
        Printer { module, types: TypeNames::new(module), out: String::new() }
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn module(&mut self) {
        for (number, path) in &self.module.files {
            let _ = writeln!(self.out, "file {number} {}", quoted_bytes(path.as_bytes()));
        }
        for (id, agg) in self.module.aggregates() {
            if let Some(name) = self.types.name(id) {
                write_name(&mut self.out, "type %", name);
                self.put(" = ");
                self.aggregate(&agg.def);
                self.put("\n");
            }
        }
        for global in self.module.globals.values() {
            self.global(global);
        }
        for symbol in &self.module.used {
            let name = match symbol {
                Symbol::Global(id) => self.module.globals.get(*id).map(|global| &global.name),
                Symbol::Func(id) => self.module.funcs.get(*id).map(|func| &func.name),
            };
            if let Some(name) = name {
                write_name(&mut self.out, "used @", name);
                self.put("\n");
            }
        }
        for func in self.module.funcs.values() {
            if !self.out.is_empty() {
                self.put("\n");
            }
            self.function(func);
        }
    }

    fn mem_type(&mut self, ty: MemType) {
        match ty {
            MemType::Value(ty) => {
                let _ = write!(self.out, "{ty}");
            }
            MemType::Agg(id) => self.agg_type(id),
        }
    }

    fn agg_type(&mut self, id: AggId) {
        if let Some(name) = self.types.name(id) {
            write_name(&mut self.out, "%", name);
            return;
        }
        self.aggregate(&self.module.agg(id).def);
    }

    /// The definition; its depth is bounded by the module.
    fn aggregate(&mut self, def: &AggDef) {
        match def {
            AggDef::Array { elem, len } => {
                let _ = write!(self.out, "[{len} x ");
                self.mem_type(*elem);
                self.put("]");
            }
            AggDef::Struct { fields, packed } => {
                self.put(if *packed { "<{" } else { "{" });
                for (index, field) in fields.iter().enumerate() {
                    self.put(if index > 0 { ", " } else { " " });
                    self.mem_type(*field);
                }
                self.put(if *packed { " }>" } else { " }" });
            }
        }
    }

    fn global(&mut self, global: &Global) {
        self.put(linkage(global.linkage));
        let keyword = match global.kind {
            GlobalKind::Variable(Space::Const) => "const",
            GlobalKind::Variable(Space::Shared) => "shared",
            GlobalKind::Variable(space) => space.name(),
            GlobalKind::Texture => "texture",
            GlobalKind::Surface => "surface",
            GlobalKind::Sampler => "sampler",
        };
        self.put(keyword);
        write_name(&mut self.out, " @", &global.name);
        if let GlobalKind::Variable(_) = global.kind {
            self.put(": ");
            self.mem_type(global.ty);
        }
        if let Some(init) = &global.init {
            self.put(" = ");
            self.init(init, global.ty);
        }
        if global.align != self.module.layout_of(global.ty).align {
            let _ = write!(self.out, ", align {}", global.align);
        }
        if global.managed {
            self.put(", managed");
        }
        self.put("\n");
    }

    fn function(&mut self, func: &Function) {
        let names = FuncNames::new(func);
        let declared = func.is_declaration();
        self.put(if declared { "declare " } else { linkage(func.linkage) });
        self.put(if func.kind == FuncKind::Kernel { "kernel" } else { "func" });
        write_name(&mut self.out, " @", &func.name);
        self.params(func, &names);
        self.func_attrs(&func.attrs);
        if declared {
            self.put("\n");
            return;
        }
        self.put(" {\n");
        for (index, block) in func.layout.blocks().enumerate() {
            self.label(func, &names, block, index == 0);
            for inst in func.layout.insts(block) {
                self.put("  ");
                self.inst(func, &names, inst);
                self.put("\n");
            }
        }
        self.put("}\n");
    }

    fn params(&mut self, func: &Function, names: &FuncNames) {
        let leaves = func.layout.entry().map(|entry| func.dfg.block_params(entry)).unwrap_or_default();
        let mut leaves = leaves.iter();
        self.put("(");
        for (index, param) in func.sig.params.iter().enumerate() {
            if index > 0 {
                self.put(", ");
            }
            if !func.is_declaration() {
                let count = match param.ty {
                    MemType::Value(_) => 1,
                    MemType::Agg(_) => self.module.leaf_types(param.ty).len(),
                };
                let grouped = matches!(param.ty, MemType::Agg(_));
                self.put(if grouped { "(" } else { "" });
                for (index, value) in leaves.by_ref().take(count).enumerate() {
                    self.put(if index > 0 { ", " } else { "" });
                    names.value(&mut self.out, *value);
                }
                self.put(if grouped { "): " } else { ": " });
            }
            self.mem_type(param.ty);
            self.param_attrs(&param.attrs);
        }
        self.put(")");
        if let Some(ret) = func.sig.ret {
            self.put(" -> ");
            self.mem_type(ret);
        }
    }

    fn param_attrs(&mut self, attrs: &ParamAttrs) {
        let words = [
            (attrs.noalias, " noalias"),
            (attrs.readonly, " readonly"),
            (attrs.writeonly, " writeonly"),
            (attrs.nonnull, " nonnull"),
            (attrs.grid_constant, " grid_constant"),
            (attrs.signext, " signext"),
            (attrs.zeroext, " zeroext"),
        ];
        words.into_iter().filter(|(set, _)| *set).for_each(|(_, word)| self.put(word));
        if attrs.align != 0 {
            let _ = write!(self.out, " align {}", attrs.align);
        }
        if let Some(ty) = attrs.byval {
            self.put(" byval(");
            self.mem_type(ty);
            self.put(")");
        }
    }

    fn func_attrs(&mut self, attrs: &FuncAttrs) {
        let sizes =
            [("reqntid", attrs.reqntid), ("maxntid", attrs.maxntid), ("reqnctapercluster", attrs.reqnctapercluster)];
        for (word, size) in sizes {
            if let Some([x, y, z]) = size {
                let _ = write!(self.out, " {word}({x}, {y}, {z})");
            }
        }
        let numbers = [
            ("minnctapersm", attrs.minnctapersm),
            ("maxnreg", attrs.maxnreg),
            ("maxclusterrank", attrs.maxclusterrank),
        ];
        for (word, number) in numbers {
            if let Some(n) = number {
                let _ = write!(self.out, " {word}({n})");
            }
        }
        let words = [
            (attrs.blocksareclusters, " blocksareclusters"),
            (attrs.noreturn, " noreturn"),
            (attrs.noinline, " noinline"),
            (attrs.alwaysinline, " alwaysinline"),
            (attrs.readnone, " readnone"),
            (attrs.readonly, " readonly"),
            (attrs.nonconvergent, " nonconvergent"),
        ];
        words.into_iter().filter(|(set, _)| *set).for_each(|(_, word)| self.put(word));
    }

    fn signature(&mut self, sig: &Signature) {
        self.put("(");
        for (index, param) in sig.params.iter().enumerate() {
            if index > 0 {
                self.put(", ");
            }
            self.mem_type(param.ty);
            self.param_attrs(&param.attrs);
        }
        self.put(")");
        if let Some(ret) = sig.ret {
            self.put(" -> ");
            self.mem_type(ret);
        }
    }
}

fn linkage(linkage: Linkage) -> &'static str {
    match linkage {
        Linkage::Visible => "",
        Linkage::Internal => "internal ",
        Linkage::Weak => "weak ",
        Linkage::Common => "common ",
        Linkage::Extern => "extern ",
    }
}
