//! Changes of the module as a whole: functions, globals, parameters, attributes.

use ptxc_ir::{
    ConstData, Extra, FuncAttrs, FuncId, FuncKind, Function, Global, Init, Linkage, MemType, Module, Opcode,
    ParamAttrs, print_function, print_module, read_module,
};

use crate::Reduction;
use crate::instructions::{remove, zero};

impl Reduction<'_> {
    /// Removes functions, their calls with them.
    pub fn remove_functions(&mut self) {
        let mut index = self.module.funcs.len();
        while index > 0 {
            index -= 1;
            let Some(id) = self.module.func_ids().nth(index) else { continue };
            if let Some(candidate) = without_function(&self.module, id) {
                self.offer(candidate);
            }
        }
    }

    /// Removes globals that nothing refers to; empties the initializers of others.
    pub fn remove_globals(&mut self) {
        let mut index = self.module.globals.len();
        while index > 0 {
            index -= 1;
            let Some((id, global)) = self.module.globals.iter().nth(index) else { continue };
            let name = global.name.clone();
            let has_contents = global.init.as_ref().is_some_and(|init| *init != Init::Zero);
            if let Some(candidate) = without_global(&self.module, global) {
                // Its name is gone, or it is still needed and nothing has changed.
                if candidate.symbol(&name).is_none() && self.offer(candidate) {
                    continue;
                }
            }
            if has_contents {
                self.attempt(|module| {
                    module.globals[id].init = Some(Init::Zero);
                    true
                });
            }
        }
    }

    /// Removes parameters of functions that are only called directly, with the arguments of the calls.
    pub fn remove_params(&mut self) {
        if self.module.funcs.values().any(is_indirect) || self.module.globals.values().any(names_functions) {
            return;
        }
        for id in self.bodies() {
            let kernel = self.module.funcs[id].kind == FuncKind::Kernel;
            if kernel && self.options.keep_kernels {
                continue;
            }
            let mut index = self.module.funcs[id].sig.params.len();
            while index > 0 {
                index -= 1;
                self.attempt(|module| remove_param(module, id, index));
            }
        }
    }

    /// Attributes of functions and parameters to their defaults.
    pub fn remove_attributes(&mut self) {
        for id in self.module.func_ids() {
            let func = &self.module.funcs[id];
            if func.attrs != FuncAttrs::default() {
                self.attempt_in(id, |func| {
                    func.attrs = FuncAttrs::default();
                    true
                });
            }
            if matches!(self.module.funcs[id].linkage, Linkage::Internal | Linkage::Weak) {
                self.attempt_in(id, |func| {
                    func.linkage = Linkage::Visible;
                    true
                });
            }
            for index in 0..self.module.funcs[id].sig.params.len() {
                self.attempt_in(id, |func| {
                    let Some(param) = func.sig.params.get_mut(index) else { return false };
                    let plain = ParamAttrs { byval: param.attrs.byval, ..ParamAttrs::default() };
                    std::mem::replace(&mut param.attrs, plain.clone()) != plain
                });
            }
        }
    }
}

fn is_indirect(func: &Function) -> bool {
    let addresses = func.dfg.values().any(|v| matches!(func.dfg.as_const(v), Some(ConstData::Func(_))));
    addresses
        || func.layout.blocks().flat_map(|b| func.layout.insts(b)).any(|i| func.dfg.insts[i].op == Opcode::CallIndirect)
}

fn names_functions(global: &Global) -> bool {
    let mut left: Vec<&Init> = global.init.iter().collect();
    while let Some(init) = left.pop() {
        match init {
            Init::Func(_) => return true,
            Init::List(list) => left.extend(list),
            _ => {}
        }
    }
    false
}

/// The module without a function: calls of it give zeros, its address is null.
fn without_function(module: &Module, id: FuncId) -> Option<Module> {
    let mut module = module.clone();
    for func in module.funcs.values_mut() {
        forget(func, id);
    }
    for global in module.globals.values_mut() {
        let mut left: Vec<&mut Init> = global.init.iter_mut().collect();
        while let Some(init) = left.pop() {
            match init {
                Init::Func(func) if *func == id => *init = Init::Bits(0),
                Init::List(list) => left.extend(list.iter_mut()),
                _ => {}
            }
        }
    }
    let text = print_module(&module);
    read_module(&text.replacen(&print_function(&module, id), "", 1)).ok()
}

/// Removes the calls of a function and the uses of its address.
fn forget(func: &mut Function, id: FuncId) {
    let insts: Vec<_> = func.layout.blocks().flat_map(|b| func.layout.insts(b)).collect();
    for inst in insts {
        if matches!(func.dfg.insts[inst].extra, Extra::Call(callee) if callee == id) {
            remove(func, inst);
        }
    }
    for value in func.dfg.values() {
        if matches!(func.dfg.as_const(value), Some(ConstData::Func(named)) if *named == id) {
            let null = zero(func, func.dfg.ty(value));
            let resolved = func.dfg.resolve(value);
            if resolved != null {
                let all: Vec<_> = func.layout.blocks().flat_map(|b| func.layout.insts(b)).collect();
                for inst in all {
                    let of = |v| func.dfg.resolve(v) == resolved;
                    let mut uses = false;
                    func.dfg.for_each_use(inst, |v| uses |= of(v));
                    if uses {
                        let known: Vec<_> = func.dfg.values().filter(|v| func.dfg.resolve(*v) == resolved).collect();
                        func.dfg.map_uses(inst, |v| if known.contains(&v) { null } else { v });
                    }
                }
            }
        }
    }
}

/// The module without the line that defines a global; `None` when something needs it.
fn without_global(module: &Module, global: &Global) -> Option<Module> {
    let text = print_module(module);
    let defines = |line: &str| {
        let first = line.split_whitespace().take(4);
        let named = format!("@{}", global.name);
        !line.starts_with(' ')
            && first.map(|word| word.trim_end_matches(':')).any(|word| word == named)
            && !line.ends_with('{')
    };
    let kept: String = text.split_inclusive('\n').filter(|line| !defines(line)).collect();
    read_module(&kept).ok()
}

fn remove_param(module: &mut Module, id: FuncId, index: usize) -> bool {
    let leaves = |module: &Module, ty: MemType| module.leaf_types(ty).len();
    let params: Vec<MemType> = module.funcs[id].sig.params.iter().map(|p| p.ty).collect();
    let Some(removed) = params.get(index).copied() else { return false };
    let first: usize = params.iter().take(index).map(|ty| leaves(module, *ty)).sum();
    let gone = first..first + leaves(module, removed);
    let func = &mut module.funcs[id];
    let Some(entry) = func.layout.entry() else { return false };
    for value in func.dfg.block_params(entry).to_vec().get(gone.clone()).unwrap_or(&[]) {
        let constant = zero(func, func.dfg.ty(*value));
        func.dfg.alias(*value, constant);
    }
    func.dfg.retain_block_params(entry, |at, _| !gone.contains(&at));
    func.sig.params.remove(index);
    for func in module.funcs.values_mut() {
        let insts: Vec<_> = func.layout.blocks().flat_map(|b| func.layout.insts(b)).collect();
        for inst in insts {
            if matches!(func.dfg.insts[inst].extra, Extra::Call(callee) if callee == id) {
                let args = func.dfg.args(inst).to_vec();
                let kept: Vec<_> = args.into_iter().enumerate().filter(|(at, _)| !gone.contains(at)).collect();
                let kept: Vec<_> = kept.into_iter().map(|(_, v)| v).collect();
                func.dfg.insts[inst].args = func.dfg.list(&kept);
            }
        }
    }
    true
}
