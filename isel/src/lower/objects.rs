//! Which object each pointer of the function points into, for the order of accesses later on.
//!
//! A value is *based on* what `gep`, `addrspacecast`, `select` and block parameters derive it from. What is loaded,
//! returned by a call or made of an integer may be based on anything.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, ConstData, FuncKind, Inst, Opcode, Value, ValueDef};
use ptxc_mir::{MemoryRef, Object};

use super::Lower;

/// Objects of pointers; `None` is "nothing reached it yet".
#[derive(Default)]
pub(super) struct Objects {
    of: SecondaryMap<Value, Option<Object>>,
    /// Parameters, by leaf, that the kernel only reads through and that nothing else writes.
    read_only: Vec<u32>,
}

impl Lower<'_> {
    /// Finds the objects of all pointers. Each is refined at most twice, so that few rounds reach the fixed point.
    pub(super) fn find_objects(&mut self, entry: Block, postorder: &[Block]) {
        let mut objects = Objects::default();
        for (index, &param) in self.ir.dfg.block_params(entry).iter().enumerate() {
            if !self.ir.dfg.ty(param).is_ptr() {
                continue;
            }
            let attrs = self.param_attrs(index);
            let noalias = attrs.is_some_and(|attrs| attrs.noalias);
            objects.of[param] = Some(if noalias { Object::NoAlias(index as u32) } else { Object::Parameters });
            if noalias && self.ir.kind == FuncKind::Kernel && attrs.is_some_and(|attrs| attrs.readonly) {
                objects.read_only.push(index as u32);
            }
        }
        loop {
            let mut changed = false;
            for &block in postorder.iter().rev() {
                for inst in self.ir.layout.insts(block) {
                    changed |= self.propagate(inst, &mut objects);
                }
            }
            if !changed {
                break;
            }
        }
        self.objects = objects;
    }

    /// What an instruction says about its result and about parameters of blocks.
    fn propagate(&self, inst: Inst, objects: &mut Objects) -> bool {
        let dfg = &self.ir.dfg;
        let mut changed = false;
        if let Some(result) = dfg.first_result(inst).filter(|value| dfg.ty(*value).is_ptr()) {
            let data = &dfg.insts[inst];
            let object = match data.op {
                Opcode::Gep | Opcode::Addrspacecast | Opcode::Freeze => self.object_in(self.arg(inst, 0), objects),
                Opcode::Select => {
                    let [a, b] = [1, 2].map(|index| self.object_in(self.arg(inst, index), objects));
                    a.map_or(b, |a| Some(b.map_or(a, |b| join(a, b))))
                }
                Opcode::Alloca => Some(self.frame.get(&inst).map_or(Object::Unknown, |slot| Object::Frame(*slot))),
                _ => Some(Object::Unknown),
            };
            changed |= raise(&mut objects.of[result], object);
        }
        dfg.for_each_target(inst, |target| {
            let params = dfg.block_params(target.block);
            for (&param, &arg) in params.iter().zip(target.args.as_slice(&dfg.pool)) {
                if dfg.ty(param).is_ptr() {
                    let object = self.object_in(dfg.resolve(arg), objects);
                    changed |= raise(&mut objects.of[param], object);
                }
            }
        });
        changed
    }

    fn object_in(&self, value: Value, objects: &Objects) -> Option<Object> {
        match self.ir.dfg.def(value) {
            ValueDef::Const(_) => Some(match self.ir.dfg.as_const(value) {
                Some(ConstData::Global(global, _)) => Object::Symbol(self.env.symbols.global(*global)),
                _ => Object::Unknown,
            }),
            _ => objects.of[value],
        }
    }

    /// What a pointer points into.
    pub(super) fn object(&self, pointer: Value) -> Object {
        self.object_in(self.ir.dfg.resolve(pointer), &self.objects).unwrap_or_default()
    }

    /// What is known of an access through one pointer; `invariant` as the access itself says.
    pub(super) fn memory_ref(&self, pointer: Value, invariant: bool) -> MemoryRef {
        let object = self.object(pointer);
        let read_only = matches!(object, Object::NoAlias(index) if self.objects.read_only.contains(&index));
        MemoryRef { objects: [object, Object::Unknown], constant: invariant || read_only }
    }
}

/// What holds for a pointer that is one or the other.
fn join(a: Object, b: Object) -> Object {
    if a == b { a } else { Object::Unknown }
}

/// Adds an alternative to what a pointer may be.
fn raise(known: &mut Option<Object>, more: Option<Object>) -> bool {
    let Some(more) = more else { return false };
    let joined = known.map_or(more, |known| join(known, more));
    let changed = *known != Some(joined);
    *known = Some(joined);
    changed
}
