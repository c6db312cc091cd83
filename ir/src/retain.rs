//! Taking symbols out of a module.
//!
//! Functions and globals are named by their place in the module, so the ones that stay get new numbers, and everything
//! that names them is rewritten.

use cranelift_entity::packed_option::ReservedValue;
use cranelift_entity::{PrimaryMap, SecondaryMap};

use crate::dfg::ConstData;
use crate::entities::{FuncId, GlobalId};
use crate::instruction::{Extra, TargetOp, TargetOperand};
use crate::module::{Function, Init, Module, Symbol};

/// New numbers of the symbols that stay; the reserved one for the others.
struct Renumbering {
    funcs: SecondaryMap<FuncId, FuncId>,
    globals: SecondaryMap<GlobalId, GlobalId>,
}

impl Module {
    /// Keeps only the symbols for which the closures hold, in their order. Nothing that stays may use one that goes:
    /// no placed instruction and no initializer.
    pub fn retain_symbols(&mut self, func: impl Fn(FuncId) -> bool, global: impl Fn(GlobalId) -> bool) {
        let mut numbers = Renumbering {
            funcs: SecondaryMap::with_default(FuncId::reserved_value()),
            globals: SecondaryMap::with_default(GlobalId::reserved_value()),
        };
        let mut funcs = PrimaryMap::new();
        for (id, body) in std::mem::take(&mut self.funcs) {
            if func(id) {
                numbers.funcs[id] = funcs.push(body);
            }
        }
        let mut globals = PrimaryMap::new();
        for (id, data) in std::mem::take(&mut self.globals) {
            if global(id) {
                numbers.globals[id] = globals.push(data);
            }
        }
        funcs.values_mut().for_each(|func| numbers.rewrite_function(func));
        globals.values_mut().filter_map(|global| global.init.as_mut()).for_each(|init| numbers.rewrite_init(init));
        self.funcs = funcs;
        self.globals = globals;
        self.used.retain_mut(|symbol| match symbol {
            Symbol::Func(id) => {
                *id = numbers.funcs[*id];
                !id.is_reserved_value()
            }
            Symbol::Global(id) => {
                *id = numbers.globals[*id];
                !id.is_reserved_value()
            }
        });
        self.rename_symbols(|symbol| match symbol {
            Symbol::Func(id) => Some(numbers.funcs[id]).filter(|id| !id.is_reserved_value()).map(Symbol::Func),
            Symbol::Global(id) => Some(numbers.globals[id]).filter(|id| !id.is_reserved_value()).map(Symbol::Global),
        });
    }
}

impl Renumbering {
    fn rewrite_function(&self, func: &mut Function) {
        for data in func.dfg.insts.values_mut() {
            if let Extra::Call(callee) = &mut data.extra {
                *callee = self.funcs[*callee];
            }
        }
        for op in func.dfg.target_ops.values_mut() {
            if let TargetOp::Known { operands, .. } = op {
                for operand in operands {
                    if let TargetOperand::Global(global, _) = operand {
                        *global = self.globals[*global];
                    }
                }
            }
        }
        func.dfg.rewrite_constants(|data| match data {
            ConstData::Func(id) => *id = self.funcs[*id],
            ConstData::Global(id, _) => *id = self.globals[*id],
            _ => {}
        });
    }

    fn rewrite_init(&self, init: &mut Init) {
        match init {
            Init::Global { global, .. } => *global = self.globals[*global],
            Init::Func(id) => *id = self.funcs[*id],
            // As deep as aggregates are nested, which is bounded.
            Init::List(parts) => parts.iter_mut().for_each(|part| self.rewrite_init(part)),
            _ => {}
        }
    }
}
