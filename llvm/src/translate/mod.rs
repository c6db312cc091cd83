//! From the model of an LLVM module to the IR.
//!
//! Decides what LLVM IR means in terms of the IR: types become lists of parts (`types`), address spaces and data layout
//! become spaces and byte offsets (`layout`, `memory`), phis become block parameters (`body`), intrinsics what the
//! tables say (`intrinsics`). Knows no syntax.
//!
//! `poison` stays poison. `undef` becomes zero: each use of it may be any value, so one value is a right choice for all,
//! and poison, which spoils what is computed from it, would not be.
//!
//! A pointer of the generic address space whose space is known (of a variable, an `alloca`, a kernel parameter) keeps the
//! pointer type of that space here; it is cast where a generic one is needed. So accesses are to the right space without an
//! analysis. Pointers that a kernel reads from its parameters are to global memory (`by_value`).

mod aggregates;
mod annotations;
mod arithmetic;
mod assembly;
mod atomics;
mod body;
mod by_value;
mod calls;
mod constants;
mod control;
mod debug;
mod functions;
mod globals;
mod initializers;
mod intrinsics;
mod layout;
mod memory;
mod reflect;
mod rounds;
mod types;
mod values;
mod variadic;

use std::rc::Rc;

use cranelift_entity::SecondaryMap;
use ptxc_ir::{FuncId, GlobalId as IrGlobal, SourceLoc, SpanMap};
use rustc_hash::FxHashMap;

use crate::model::{GlobalId, MetadataId, Module, Name, TypeId};
use annotations::Annotations;
use intrinsics::Rule;
use layout::DataLayout;
use types::Shape;

/// Most faults of one run.
const MAX_FAULTS: usize = 50;

/// How to translate.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// Keep the names of values and blocks, for people who read the IR.
    pub keep_names: bool,
    /// The target has clusters (sm_90 and later); without, cluster dimensions of kernels are dropped, as LLVM does.
    pub clusters: bool,
    /// What `__CUDA_ARCH` is: 900 for sm_90.
    pub architecture: u32,
}

/// Something to say about the input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// What, in one line.
    pub text: String,
    /// Offset of the thing in the file.
    pub at: Option<u32>,
}

/// A translated module.
pub struct Translation {
    /// The module.
    pub module: ptxc_ir::Module,
    /// Where its parts stand in the file: the first byte of each.
    pub spans: SpanMap,
    /// What was dropped or changed.
    pub warnings: Vec<Message>,
}

/// A reason why something cannot be translated.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Fault(Box<Message>);

type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    fn new(text: impl Into<String>) -> Fault {
        Fault(Box::new(Message { text: text.into(), at: None }))
    }

    /// The fault at a place, unless it has one.
    fn at(mut self, at: u32) -> Fault {
        self.0.at.get_or_insert(at);
        self
    }
}

/// What a symbol of the source is here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Symbol {
    /// Not translated (yet), an intrinsic, or of no use.
    #[default]
    None,
    /// A variable.
    Variable(IrGlobal),
    /// A function.
    Function(FuncId),
}

/// The translation of a module.
struct Context<'m> {
    source: &'m Module,
    options: Options,
    layout: DataLayout,
    module: ptxc_ir::Module,
    spans: SpanMap,
    warnings: Vec<Message>,
    shapes: SecondaryMap<TypeId, Option<Rc<Shape>>>,
    symbols: SecondaryMap<GlobalId, Symbol>,
    /// Rules of the intrinsics that are called.
    rules: FxHashMap<GlobalId, Option<Rc<Rule>>>,
    annotations: Annotations,
    locations: FxHashMap<MetadataId, SourceLoc>,
    /// Numbers of source files, by path.
    files: FxHashMap<String, u32>,
    /// Code asks about the compilation ([`reflect`]).
    asks: bool,
    /// Kernel pointers of the generic space are to global memory, as CUDA passes them.
    kernel_pointers_are_global: bool,
}

/// Translates a module.
///
/// # Errors
/// Everything that has no equivalent, at most 50 messages.
pub fn translate(source: &Module, options: Options) -> std::result::Result<Translation, Vec<Message>> {
    let text = |name: Option<Name>| name.map(|name| source.names.text(name).into_owned()).unwrap_or_default();
    let mut context = Context {
        source,
        options,
        layout: DataLayout::parse(&text(source.data_layout)),
        module: ptxc_ir::Module::new(),
        spans: SpanMap::default(),
        warnings: Vec::new(),
        shapes: SecondaryMap::new(),
        symbols: SecondaryMap::new(),
        rules: FxHashMap::default(),
        annotations: Annotations::read(source),
        locations: FxHashMap::default(),
        files: FxHashMap::default(),
        asks: reflect::asks(source),
        kernel_pointers_are_global: !text(source.triple).ends_with("nvcl"),
    };
    let mut faults = Vec::new();
    context.check_target(&mut faults);
    context.declare_symbols(&mut faults);
    context.keep_used();
    context.initialize_variables(&mut faults);
    context.translate_bodies(&mut faults);
    if faults.is_empty() {
        let Context { module, spans, warnings, .. } = context;
        return Ok(Translation { module, spans, warnings });
    }
    // Headers are read before bodies; people read from top to bottom.
    faults.sort_by_key(|fault| fault.0.at);
    faults.truncate(MAX_FAULTS);
    Err(faults.into_iter().map(|fault| *fault.0).collect())
}

impl Context<'_> {
    fn text(&self, name: Name) -> String {
        self.source.names.text(name).into_owned()
    }

    fn warn(&mut self, at: u32, text: impl Into<String>) {
        self.warnings.push(Message { text: text.into(), at: Some(at) });
    }
}
