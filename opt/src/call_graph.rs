//! Who calls whom, and an order in which callees come before callers.

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use ptxc_ir::{
    ConstData, Extra, FuncId, Function, Global, GlobalId, Init, Inst, Module, Symbol, TargetOp, TargetOperand,
};

use crate::edit::for_each_inst;

/// Direct calls of a module.
pub struct CallGraph {
    /// Callees of each function, one entry per call, in layout order.
    pub callees: PrimaryMap<FuncId, Vec<FuncId>>,
    /// Number of direct calls to each function.
    pub calls: SecondaryMap<FuncId, u32>,
    /// Functions whose address is used otherwise.
    pub address_taken: SecondaryMap<FuncId, bool>,
    /// Functions so that callees come first, except among functions that call each other.
    pub bottom_up: Vec<FuncId>,
    /// Number of the group of functions that call each other, directly or not.
    pub group: SecondaryMap<FuncId, u32>,
    /// Functions that may come to call themselves.
    pub recursive: SecondaryMap<FuncId, bool>,
}

impl CallGraph {
    /// Looks through a module once.
    pub fn new(module: &Module) -> CallGraph {
        let mut graph = CallGraph {
            callees: PrimaryMap::new(),
            calls: SecondaryMap::new(),
            address_taken: SecondaryMap::new(),
            bottom_up: Vec::new(),
            group: SecondaryMap::new(),
            recursive: SecondaryMap::new(),
        };
        for func in module.funcs.values() {
            let callees = graph.uses(func);
            graph.callees.push(callees);
        }
        for global in module.globals.values() {
            if let Some(init) = &global.init {
                graph.addresses(init);
            }
        }
        graph.order();
        graph
    }

    /// The callees of a function; notes addresses.
    fn uses(&mut self, func: &Function) -> Vec<FuncId> {
        let mut callees = Vec::new();
        for_each_inst(func, |inst| {
            if let Extra::Call(callee) = func.dfg.insts[inst].extra {
                callees.push(callee);
                self.calls[callee] += 1;
            }
            for_each_symbol(func, inst, |symbol| {
                if let Symbol::Func(id) = symbol {
                    self.address_taken[id] = true;
                }
            });
        });
        callees
    }

    fn addresses(&mut self, init: &Init) {
        match init {
            Init::Func(id) => self.address_taken[*id] = true,
            Init::List(parts) => parts.iter().for_each(|part| self.addresses(part)),
            _ => {}
        }
    }

    /// Strongly connected components by Tarjan's method, without recursion.
    fn order(&mut self) {
        let count = self.callees.len();
        const NEW: u32 = u32::MAX;
        let mut index = vec![NEW; count];
        let mut low = vec![0u32; count];
        let mut on_stack = vec![false; count];
        let mut stack: Vec<usize> = Vec::new();
        let mut next = 0;
        let mut groups = 0;
        for root in 0..count {
            if index[root] != NEW {
                continue;
            }
            let mut work: Vec<(usize, usize)> = vec![(root, 0)];
            while let Some((node, edge)) = work.last_mut() {
                let node = *node;
                if *edge == 0 {
                    index[node] = next;
                    low[node] = next;
                    next += 1;
                    stack.push(node);
                    on_stack[node] = true;
                }
                let callee = self.callees[FuncId::new(node)].get(*edge).map(|callee| callee.index());
                *edge += 1;
                match callee {
                    Some(callee) if index[callee] == NEW => work.push((callee, 0)),
                    Some(callee) => {
                        if on_stack[callee] {
                            low[node] = low[node].min(index[callee]);
                        }
                    }
                    None => {
                        work.pop();
                        if let Some((parent, _)) = work.last() {
                            low[*parent] = low[*parent].min(low[node]);
                        }
                        if low[node] == index[node] {
                            self.close_group(&mut stack, &mut on_stack, node, groups);
                            groups += 1;
                        }
                    }
                }
            }
        }
    }

    fn close_group(&mut self, stack: &mut Vec<usize>, on_stack: &mut [bool], first: usize, group: u32) {
        let start = stack.iter().rposition(|node| *node == first).unwrap_or(0);
        let several = stack.len() - start > 1;
        for node in stack.drain(start..) {
            on_stack[node] = false;
            let func = FuncId::new(node);
            self.group[func] = group;
            self.recursive[func] = several || self.callees[func].contains(&func);
            self.bottom_up.push(func);
        }
    }

    /// True when the only thing that is done with the function is to call it once.
    pub fn is_called_once(&self, func: FuncId) -> bool {
        self.calls[func] == 1 && !self.address_taken[func]
    }
}

/// Calls `f` on every symbol whose address an instruction uses; the callee of a `call` is not one of them.
fn for_each_symbol(func: &Function, inst: Inst, mut f: impl FnMut(Symbol)) {
    if let Extra::Target(op) = func.dfg.insts[inst].extra
        && let TargetOp::Known { operands, .. } = &func.dfg.target_ops[op]
    {
        for operand in operands {
            if let TargetOperand::Global(id, _) = operand {
                f(Symbol::Global(*id));
            }
        }
    }
    let mut constant = |data: &ConstData| match data {
        ConstData::Func(id) => f(Symbol::Func(*id)),
        ConstData::Global(id, _) => f(Symbol::Global(*id)),
        _ => {}
    };
    func.dfg.for_each_use(inst, |value| match func.dfg.as_const(value) {
        Some(ConstData::Vector(lanes)) => {
            lanes.iter().filter_map(|lane| func.dfg.as_const(*lane)).for_each(&mut constant)
        }
        Some(data) => constant(data),
        None => {}
    });
}

/// Symbols of a module that are needed.
#[derive(Default)]
pub struct Needed {
    /// By function.
    pub funcs: SecondaryMap<FuncId, bool>,
    /// By global.
    pub globals: SecondaryMap<GlobalId, bool>,
}

/// What remains to be looked at.
enum Work<'m> {
    Symbol(Symbol),
    Init(&'m Init),
}

/// Follows all uses from the module's list of used symbols and those for which `func_is_root` and `global_is_root` hold.
pub fn needed(
    module: &Module,
    func_is_root: impl Fn(&Function) -> bool,
    global_is_root: impl Fn(&Global) -> bool,
) -> Needed {
    let mut needed = Needed::default();
    let mut work: Vec<Work<'_>> = module.used.iter().copied().map(Work::Symbol).collect();
    let funcs = module.funcs.iter().filter(|(_, func)| func_is_root(func));
    work.extend(funcs.map(|(id, _)| Work::Symbol(Symbol::Func(id))));
    let globals = module.globals.iter().filter(|(_, global)| global_is_root(global));
    work.extend(globals.map(|(id, _)| Work::Symbol(Symbol::Global(id))));
    while let Some(item) = work.pop() {
        match item {
            Work::Symbol(Symbol::Func(id)) => {
                if !std::mem::replace(&mut needed.funcs[id], true) {
                    let func = &module.funcs[id];
                    for_each_inst(func, |inst| {
                        if let Extra::Call(callee) = func.dfg.insts[inst].extra {
                            work.push(Work::Symbol(Symbol::Func(callee)));
                        }
                        for_each_symbol(func, inst, |symbol| work.push(Work::Symbol(symbol)));
                    });
                }
            }
            Work::Symbol(Symbol::Global(id)) => {
                if !std::mem::replace(&mut needed.globals[id], true) {
                    work.extend(module.globals[id].init.as_ref().map(Work::Init));
                }
            }
            Work::Init(Init::Global { global, .. }) => work.push(Work::Symbol(Symbol::Global(*global))),
            Work::Init(Init::Func(id)) => work.push(Work::Symbol(Symbol::Func(*id))),
            Work::Init(Init::List(parts)) => work.extend(parts.iter().map(Work::Init)),
            Work::Init(_) => {}
        }
    }
    needed
}
