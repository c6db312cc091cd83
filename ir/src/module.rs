//! Modules, globals, functions and their signatures.

use cranelift_entity::{EntityRef, PrimaryMap};
use rustc_hash::FxHashMap;

use crate::dfg::Dfg;
use crate::entities::{AggId, FuncId, GlobalId};
use crate::layout::Layout;
use crate::types::{AggDef, Aggregate, Layout as MemLayout, MemType, Space, Type};

/// How a symbol is seen from outside the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Linkage {
    /// Defined here, visible.
    #[default]
    Visible,
    /// Defined here, not visible.
    Internal,
    /// Defined here, may be replaced by another definition.
    Weak,
    /// Tentative definition merged by the linker.
    Common,
    /// Declared here, defined elsewhere.
    Extern,
}

/// What a symbol of the global table is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GlobalKind {
    /// A variable in this space (`global`, `const` or `shared`).
    Variable(Space),
    /// Texture reference.
    Texture,
    /// Surface reference.
    Surface,
    /// Sampler reference.
    Sampler,
}

/// Initial value of a global.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Init {
    /// Scalar bits, zero-extended.
    Bits(u128),
    /// All zero bytes.
    Zero,
    /// Unspecified.
    Poison,
    /// Elements of a vector, array or struct.
    List(Vec<Init>),
    /// Bytes of an i8 array.
    Bytes(Vec<u8>),
    /// Address of a global plus bytes; `generic` when it is a generic address.
    Global {
        /// The symbol.
        global: GlobalId,
        /// Bytes added.
        offset: i64,
        /// Generic address instead of one in the symbol's space.
        generic: bool,
    },
    /// Address of a function.
    Func(FuncId),
}

/// A module-level variable or opaque reference.
#[derive(Clone, Debug)]
pub struct Global {
    /// Name without `@`.
    pub name: String,
    /// Variable, texture, surface or sampler.
    pub kind: GlobalKind,
    /// Type of the contents (an 8-byte integer for opaque references).
    pub ty: MemType,
    /// Linkage.
    pub linkage: Linkage,
    /// Alignment in bytes; at least the type's.
    pub align: u64,
    /// Initial value; `None` leaves memory unspecified (shared) or zero.
    pub init: Option<Init>,
    /// The host reaches it too: unified memory. Only for variables in global memory.
    pub managed: bool,
}

/// Attributes of one parameter.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct ParamAttrs {
    /// No other pointer of the function reaches this memory while it is modified.
    pub noalias: bool,
    /// Not written through this pointer.
    pub readonly: bool,
    /// Not read through this pointer.
    pub writeonly: bool,
    /// Not null.
    pub nonnull: bool,
    /// Known alignment in bytes; 0 when unknown.
    pub align: u32,
    /// The pointer is to the callee's own copy of an object of this type.
    pub byval: Option<MemType>,
    /// The object is read-only and shared by the grid (kernels).
    pub grid_constant: bool,
    /// A narrow integer arrives sign-extended to 32 bits.
    pub signext: bool,
    /// A narrow integer arrives zero-extended to 32 bits.
    pub zeroext: bool,
}

/// One ABI parameter: a value, or an aggregate whose leaves are separate values.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Param {
    /// Type as passed.
    pub ty: MemType,
    /// Attributes.
    pub attrs: ParamAttrs,
}

/// Parameters and result of a function.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Signature {
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Result, as one ABI object.
    pub ret: Option<MemType>,
}

/// Kernel or device function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FuncKind {
    /// Launched from the host.
    Kernel,
    /// Called from the device.
    Func,
}

/// Attributes of a function. Zero or `None` means not given.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct FuncAttrs {
    /// Exact block size.
    pub reqntid: Option<[u32; 3]>,
    /// Largest block size.
    pub maxntid: Option<[u32; 3]>,
    /// Blocks that must fit a multiprocessor.
    pub minnctapersm: Option<u32>,
    /// Register limit per thread.
    pub maxnreg: Option<u32>,
    /// Exact cluster size.
    pub reqnctapercluster: Option<[u32; 3]>,
    /// Largest cluster rank count.
    pub maxclusterrank: Option<u32>,
    /// The grid is given in clusters.
    pub blocksareclusters: bool,
    /// Does not return.
    pub noreturn: bool,
    /// Not to be inlined.
    pub noinline: bool,
    /// Always to be inlined.
    pub alwaysinline: bool,
    /// Neither reads nor writes memory.
    pub readnone: bool,
    /// Does not write memory.
    pub readonly: bool,
    /// Does not depend on which threads call it together.
    pub nonconvergent: bool,
}

/// A kernel, a device function or a declaration.
#[derive(Clone)]
pub struct Function {
    /// Name without `@`.
    pub name: String,
    /// Kernel or device function.
    pub kind: FuncKind,
    /// Linkage; `Extern` exactly when there is no body.
    pub linkage: Linkage,
    /// Signature. The entry block's parameters are its leaves in order.
    pub sig: Signature,
    /// Attributes.
    pub attrs: FuncAttrs,
    /// Instructions and values.
    pub dfg: Dfg,
    /// Order.
    pub layout: Layout,
}

impl Function {
    /// A function without blocks.
    pub fn new(name: impl Into<String>, kind: FuncKind, sig: Signature) -> Function {
        Function {
            name: name.into(),
            kind,
            linkage: Linkage::Visible,
            sig,
            attrs: FuncAttrs::default(),
            dfg: Dfg::new(),
            layout: Layout::new(),
        }
    }

    /// True when it has no body.
    pub fn is_declaration(&self) -> bool {
        self.layout.entry().is_none()
    }
}

/// What a symbol name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Symbol {
    /// Global.
    Global(GlobalId),
    /// Function.
    Func(FuncId),
}

/// The largest alignment of a parameter, in bytes (PTX ISA 5.1.6).
const MAX_PASSED_ALIGN: u64 = 128;

/// Deepest nesting of aggregates.
pub const MAX_AGG_DEPTH: u32 = 64;

/// A compilation unit.
#[derive(Clone, Default)]
pub struct Module {
    /// Aggregate types; made by [`Module::aggregate`] only.
    aggregates: PrimaryMap<AggId, Aggregate>,
    agg_ids: FxHashMap<AggDef, AggId>,
    /// Globals in declaration order.
    pub globals: PrimaryMap<GlobalId, Global>,
    /// Functions in declaration order.
    pub funcs: PrimaryMap<FuncId, Function>,
    /// Symbol table; kept by [`Module::add_global`] and [`Module::add_func`].
    symbols: FxHashMap<String, Symbol>,
    /// Source files by number.
    pub files: Vec<(u32, String)>,
    /// Symbols that stay although nothing in the module needs them, in the order in which they were named.
    pub used: Vec<Symbol>,
}

impl Module {
    /// An empty module.
    pub fn new() -> Module {
        Module::default()
    }

    /// Adds a global; `Err` gives the symbol that has the name already.
    pub fn add_global(&mut self, global: Global) -> Result<GlobalId, Symbol> {
        if let Some(symbol) = self.symbols.get(&global.name) {
            return Err(*symbol);
        }
        let name = global.name.clone();
        let id = self.globals.push(global);
        self.symbols.insert(name, Symbol::Global(id));
        Ok(id)
    }

    /// Adds a function; `Err` gives the symbol that has the name already.
    pub fn add_func(&mut self, func: Function) -> Result<FuncId, Symbol> {
        if let Some(symbol) = self.symbols.get(&func.name) {
            return Err(*symbol);
        }
        let name = func.name.clone();
        let id = self.funcs.push(func);
        self.symbols.insert(name, Symbol::Func(id));
        Ok(id)
    }

    /// What a name stands for.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        self.symbols.get(name).copied()
    }

    /// Gives each name what `new` makes of its symbol; drops names for which it gives none.
    pub(crate) fn rename_symbols(&mut self, new: impl Fn(Symbol) -> Option<Symbol>) {
        self.symbols.retain(|_, symbol| match new(*symbol) {
            Some(renamed) => {
                *symbol = renamed;
                true
            }
            None => false,
        });
    }

    /// An aggregate's definition and layout.
    pub fn agg(&self, id: AggId) -> &Aggregate {
        &self.aggregates[id]
    }

    /// True when the reference is one of this module's aggregates.
    pub fn has_agg(&self, id: AggId) -> bool {
        self.aggregates.is_valid(id)
    }

    /// Aggregates in creation order.
    pub fn aggregates(&self) -> impl Iterator<Item = (AggId, &Aggregate)> {
        self.aggregates.iter()
    }

    /// Interns an aggregate; structurally equal ones are one. `None` when nested deeper than [`MAX_AGG_DEPTH`].
    pub fn aggregate(&mut self, def: AggDef) -> Option<AggId> {
        if let Some(id) = self.agg_ids.get(&def) {
            return Some(*id);
        }
        let agg = self.lay_out(&def)?;
        let id = self.aggregates.push(agg);
        self.agg_ids.insert(def, id);
        Some(id)
    }

    /// Gives an aggregate the name it is printed with, unless it has one.
    pub fn name_aggregate(&mut self, id: AggId, name: &str) {
        self.aggregates[id].name.get_or_insert_with(|| name.to_string());
    }

    /// Size and alignment of a memory type.
    pub fn layout_of(&self, ty: MemType) -> MemLayout {
        match ty {
            MemType::Value(ty) => MemLayout { size: ty.size(), align: ty.align() },
            MemType::Agg(id) => self.aggregates[id].layout,
        }
    }

    /// Size and alignment of a parameter or result of a memory type, as functions and kernels pass it: those of the type,
    /// but a vector takes the next power of two of its size and is aligned to it (up to 128, the most that PTX has).
    pub fn layout_as_passed(&self, ty: MemType) -> MemLayout {
        match ty {
            MemType::Value(ty) if ty.is_vector() => {
                let size = ty.size().max(1).next_power_of_two();
                MemLayout { size, align: size.min(MAX_PASSED_ALIGN) }
            }
            _ => self.layout_of(ty),
        }
    }

    /// Size and alignment of the bytes that a launch gives for a kernel's parameter: the object's for one by value,
    /// otherwise as [`Module::layout_as_passed`] says.
    pub fn param_layout(&self, param: &Param) -> MemLayout {
        match param.attrs.byval {
            Some(inner) => self.layout_of(inner),
            None => self.layout_as_passed(param.ty),
        }
    }

    fn lay_out(&self, def: &AggDef) -> Option<Aggregate> {
        let depth_of = |ty: &MemType| match ty {
            MemType::Value(_) => 0,
            MemType::Agg(id) => self.aggregates[*id].depth,
        };
        let leaves_of = |ty: &MemType| match ty {
            MemType::Value(_) => 1,
            MemType::Agg(id) => self.aggregates[*id].leaves,
        };
        let (layout, offsets, leaves, depth) = match def {
            AggDef::Array { elem, len } => {
                let e = self.layout_of(*elem);
                let layout = MemLayout { size: e.size.saturating_mul(*len), align: e.align };
                (layout, Vec::new(), leaves_of(elem).saturating_mul(*len), depth_of(elem) + 1)
            }
            AggDef::Struct { fields, packed } => {
                let mut offsets = Vec::with_capacity(fields.len());
                let (mut at, mut align, mut leaves, mut depth) = (0u64, 1u64, 0u64, 0);
                for field in fields {
                    let f = self.layout_of(*field);
                    let field_align = if *packed { 1 } else { f.align };
                    at = at.checked_next_multiple_of(field_align).unwrap_or(u64::MAX);
                    offsets.push(at);
                    at = at.saturating_add(f.size);
                    align = align.max(field_align);
                    leaves = leaves.saturating_add(leaves_of(field));
                    depth = depth.max(depth_of(field));
                }
                let size = at.checked_next_multiple_of(align).unwrap_or(u64::MAX);
                (MemLayout { size, align }, offsets, leaves, depth + 1)
            }
        };
        (depth <= MAX_AGG_DEPTH).then(|| Aggregate { name: None, def: def.clone(), layout, offsets, leaves, depth })
    }

    /// Calls `f` with each scalar or vector leaf of a memory type and its byte offset, depth first. The caller checks
    /// that the number of leaves is reasonable ([`Aggregate::leaves`]).
    pub fn for_each_leaf(&self, ty: MemType, base: u64, f: &mut impl FnMut(Type, u64)) {
        match ty {
            MemType::Value(ty) => f(ty, base),
            MemType::Agg(id) => {
                let agg = &self.aggregates[id];
                match &agg.def {
                    _ if agg.leaves == 0 => {}
                    AggDef::Array { elem, len } => {
                        let stride = self.layout_of(*elem).size;
                        for i in 0..*len {
                            self.for_each_leaf(*elem, base.saturating_add(i.saturating_mul(stride)), f);
                        }
                    }
                    AggDef::Struct { fields, .. } => {
                        for (field, offset) in fields.iter().zip(&agg.offsets) {
                            self.for_each_leaf(*field, base.saturating_add(*offset), f);
                        }
                    }
                }
            }
        }
    }

    /// The value types that a memory type's leaves have, in order.
    pub fn leaf_types(&self, ty: MemType) -> Vec<Type> {
        let mut out = Vec::new();
        self.for_each_leaf(ty, 0, &mut |ty, _| out.push(ty));
        out
    }

    /// The operand type of a global's address.
    pub fn global_ptr(&self, id: GlobalId) -> Type {
        match self.globals[id].kind {
            GlobalKind::Variable(space) => Type::ptr(space),
            _ => Type::ptr(Space::Global),
        }
    }

    /// Types of the values a call of this signature passes, in order.
    pub fn sig_params(&self, sig: &Signature) -> Vec<Type> {
        let mut out = Vec::new();
        for param in &sig.params {
            self.for_each_leaf(param.ty, 0, &mut |ty, _| out.push(ty));
        }
        out
    }

    /// Types of the values a call of this signature returns, in order.
    pub fn sig_results(&self, sig: &Signature) -> Vec<Type> {
        sig.ret.map_or_else(Vec::new, |ret| self.leaf_types(ret))
    }

    /// Function ids in declaration order.
    pub fn func_ids(&self) -> impl Iterator<Item = FuncId> + use<> {
        (0..self.funcs.len()).map(FuncId::new)
    }
}
