//! Changes of instructions: what they give, what they take, whether they are there.

use ptxc_ir::{FuncId, Function, Inst, Type, Value};

use crate::Reduction;

/// The zero of a type.
pub fn zero(func: &mut Function, ty: Type) -> Value {
    func.dfg.bits(ty, 0)
}

/// Takes an instruction out; its results become zeros.
pub fn remove(func: &mut Function, inst: Inst) {
    let results: Vec<Value> = func.dfg.results(inst).collect();
    for result in results {
        if func.dfg.resolve(result) == result {
            let constant = zero(func, func.dfg.ty(result));
            func.dfg.alias(result, constant);
        }
    }
    func.layout.remove_inst(inst);
}

/// Instructions that do not end blocks.
fn removable(func: &Function) -> Vec<Inst> {
    let all = func.layout.blocks().flat_map(|block| func.layout.insts(block));
    all.filter(|inst| !func.dfg.insts[*inst].op.is_terminator()).collect()
}

impl Reduction<'_> {
    /// Removes runs of instructions, long ones first, from the end.
    pub fn remove_instructions(&mut self) {
        for id in self.bodies() {
            let mut insts = removable(&self.module.funcs[id]);
            let mut run = insts.len();
            while run > 0 {
                let mut end = insts.len();
                while end > 0 {
                    let start = end.saturating_sub(run);
                    let chunk: Vec<Inst> = insts.get(start..end).unwrap_or(&[]).to_vec();
                    let removed = self.attempt_in(id, |func| {
                        chunk.iter().for_each(|inst| remove(func, *inst));
                        !chunk.is_empty()
                    });
                    if removed {
                        insts.drain(start..end);
                    }
                    end = start;
                }
                run /= 2;
            }
        }
    }

    /// Results become operands of the same type.
    pub fn replace_results(&mut self) {
        for id in self.bodies() {
            let mut insts = removable(&self.module.funcs[id]);
            insts.reverse();
            for inst in insts {
                self.replace_result(id, inst);
            }
        }
    }

    fn replace_result(&mut self, id: FuncId, inst: Inst) {
        let func = &self.module.funcs[id];
        let results: Vec<Value> = func.dfg.results(inst).collect();
        let [result] = results[..] else { return };
        let mut operands: Vec<Value> = func.dfg.args(inst).iter().map(|v| func.dfg.resolve(*v)).collect();
        operands.retain(|v| func.dfg.ty(*v) == func.dfg.ty(result) && *v != result);
        operands.dedup();
        for operand in operands {
            let replaced = self.attempt_in(id, |func| {
                func.dfg.alias(result, operand);
                func.layout.remove_inst(inst);
                true
            });
            if replaced {
                return;
            }
        }
    }

    /// Operands become zero or one.
    pub fn replace_operands(&mut self) {
        for id in self.bodies() {
            let func = &self.module.funcs[id];
            let insts: Vec<Inst> = func.layout.blocks().flat_map(|block| func.layout.insts(block)).collect();
            for inst in insts {
                self.replace_operands_of(id, inst);
            }
        }
    }

    fn replace_operands_of(&mut self, id: FuncId, inst: Inst) {
        let mut count = 0;
        self.module.funcs[id].dfg.for_each_use(inst, |_| count += 1);
        for index in 0..count {
            let func = &self.module.funcs[id];
            let mut uses = Vec::new();
            func.dfg.for_each_use(inst, |v| uses.push(v));
            let Some(value) = uses.get(index).copied() else { return };
            let ty = func.dfg.ty(value);
            if ty.is_ptr_like() || func.dfg.as_bits(value).is_some_and(|bits| bits <= 1) {
                continue;
            }
            for bits in [0, 1] {
                let replaced = self.attempt_in(id, |func| {
                    let constant = func.dfg.bits(ty, bits);
                    if func.dfg.resolve(value) == constant {
                        return false;
                    }
                    let mut at = 0;
                    func.dfg.map_uses(inst, |v| {
                        at += 1;
                        if at == index + 1 { constant } else { v }
                    });
                    true
                });
                if replaced {
                    break;
                }
            }
        }
    }
}
