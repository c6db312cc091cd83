//! Whether two accesses may touch the same bytes.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Extra, Function, Linkage, Module, Opcode, Space, Value};

use crate::addresses::{Base, Linear, Root};

/// Bytes that an access touches.
#[derive(Clone, Debug)]
pub struct Touched {
    /// Where they start.
    pub address: Linear,
    /// How many.
    pub size: u64,
    /// The space of the pointer.
    pub space: Space,
}

/// What a root is, as far as objects are told apart by it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Object {
    /// A variable that is no other variable.
    Variable,
    /// Dynamic shared memory, which has one beginning for all its names.
    Dynamic,
    /// An object on the stack of this call.
    Stack,
    /// What a `noalias` parameter points to.
    Private,
    /// What another parameter points to.
    Parameter,
    /// Anything.
    Unknown,
}

/// Answers for one function.
pub struct Aliases<'m> {
    module: &'m Module,
    /// Pointers that are parameters of the function.
    parameters: SecondaryMap<Value, Option<Pointer>>,
}

/// What is promised of a parameter.
#[derive(Clone, Copy)]
struct Pointer {
    noalias: bool,
    align: u32,
}

impl<'m> Aliases<'m> {
    /// Looks at the function's parameters.
    pub fn new(module: &'m Module, func: &Function) -> Aliases<'m> {
        let mut parameters = SecondaryMap::new();
        for_each_pointer_parameter(module, func, |value, attrs| {
            parameters[value] = Some(Pointer { noalias: attrs.noalias, align: attrs.align });
        });
        Aliases { module, parameters }
    }

    /// The module that the function is of.
    pub fn module(&self) -> &'m Module {
        self.module
    }

    /// Whether two accesses may have a byte in common.
    pub fn may_overlap(&self, func: &Function, a: &Touched, b: &Touched) -> bool {
        if !spaces_meet(a.space, b.space) {
            return false;
        }
        let (x, y) = (&a.address, &b.address);
        if x.base == y.base {
            return overlap(x.offset, a.size, y.offset, b.size);
        }
        self.roots_meet(func, &x.base, &y.base)
    }

    /// Whether what two different bases reach may be one object.
    pub fn roots_meet(&self, func: &Function, a: &Base, b: &Base) -> bool {
        if a.root == b.root {
            return true;
        }
        use Object::{Dynamic, Parameter, Private, Stack, Unknown, Variable};
        match (self.object(func, a.root), self.object(func, b.root)) {
            (Unknown, _) | (_, Unknown) => true,
            (Dynamic, Dynamic) => true,
            // No pointer that comes from elsewhere reaches it, and these come from elsewhere.
            (Private, _) | (_, Private) => false,
            (Stack, _) | (_, Stack) => false,
            (Variable | Dynamic, Variable | Dynamic) => false,
            (Parameter, _) | (_, Parameter) => true,
        }
    }

    fn object(&self, func: &Function, root: Root) -> Object {
        match root {
            Root::Global(id) => {
                let global = &self.module.globals[id];
                let shared = matches!(global.kind, ptxc_ir::GlobalKind::Variable(Space::Shared));
                if shared && global.linkage == Linkage::Extern { Object::Dynamic } else { Object::Variable }
            }
            Root::Value(value) => match (self.parameters[value], func.dfg.def_inst(value)) {
                (Some(Pointer { noalias: true, .. }), _) => Object::Private,
                (Some(_), _) => Object::Parameter,
                (None, Some(inst)) if func.dfg.insts[inst].op == Opcode::Alloca => Object::Stack,
                _ => Object::Unknown,
            },
        }
    }

    /// log2 of the alignment that a root is known to have.
    pub fn root_align_log2(&self, func: &Function, root: Root) -> u32 {
        let align = match root {
            Root::Global(id) => self.module.globals[id].align,
            Root::Value(value) => match func.dfg.def_inst(value).map(|inst| func.dfg.insts[inst].extra) {
                Some(Extra::Alloca { ty, align, .. }) => u64::from(align).max(self.module.layout_of(ty).align),
                _ => self.parameters[value].map_or(1, |pointer| u64::from(pointer.align)),
            },
        };
        align.max(1).trailing_zeros()
    }
}

/// Calls `f` with the value and attributes of every parameter that is one pointer.
fn for_each_pointer_parameter(module: &Module, func: &Function, mut f: impl FnMut(Value, &ptxc_ir::ParamAttrs)) {
    let Some(entry) = func.layout.entry() else { return };
    let values = func.dfg.block_params(entry);
    let mut at = 0;
    for param in &func.sig.params {
        let mut leaves = 0;
        module.for_each_leaf(param.ty, 0, &mut |_, _| leaves += 1);
        if let (1, Some(value)) = (leaves, values.get(at))
            && func.dfg.ty(*value).is_ptr()
        {
            f(*value, &param.attrs);
        }
        at += leaves;
    }
}

/// Whether ranges of bytes overlap, both counted from one base. Addresses wrap.
pub fn overlap(a: i64, a_size: u64, b: i64, b_size: u64) -> bool {
    let (forward, backward) = (b.wrapping_sub(a) as u64, a.wrapping_sub(b) as u64);
    forward < a_size || backward < b_size
}

/// Whether pointers to these spaces can reach the same memory.
fn spaces_meet(a: Space, b: Space) -> bool {
    use Space::{Generic, Shared, SharedCluster};
    a == b || a == Generic || b == Generic || matches!((a, b), (Shared, SharedCluster) | (SharedCluster, Shared))
}
