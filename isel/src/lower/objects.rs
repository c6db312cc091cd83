//! Which object each pointer of the function points into, for the order of accesses later on, and whether it is read only.
//!
//! A value is *based on* what `gep`, `addrspacecast`, `select` and block parameters derive it from. What is loaded,
//! returned by a call or made of an integer may be based on anything.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, ConstData, FuncKind, Inst, Opcode, Value, ValueDef};
use ptxc_mir::{MemoryRef, Object};

use super::Lower;

/// What is known of pointers; `None` is "nothing reached it yet".
#[derive(Default)]
pub(super) struct Objects {
    of: SecondaryMap<Value, Option<Known>>,
}

/// What is known of a pointer.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Known {
    object: Object,
    /// It is based on parameters of a kernel that nothing in the kernel writes through, and that nothing else points to.
    read_only: bool,
}

impl Known {
    fn object(object: Object) -> Known {
        Known { object, read_only: false }
    }

    /// What holds for a pointer that is one or the other.
    fn join(self, other: Known) -> Known {
        let object = if self.object == other.object { self.object } else { Object::Unknown };
        Known { object, read_only: self.read_only && other.read_only }
    }
}

impl Lower<'_> {
    /// Finds the objects of all pointers. Each is refined at most three times, so that few rounds reach the fixed point.
    pub(super) fn find_objects(&mut self, entry: Block, postorder: &[Block]) {
        let mut objects = Objects::default();
        for (index, &param) in self.ir.dfg.block_params(entry).iter().enumerate() {
            if !self.ir.dfg.ty(param).is_ptr() {
                continue;
            }
            let attrs = self.param_attrs(index);
            let noalias = attrs.is_some_and(|attrs| attrs.noalias);
            let kernel = self.ir.kind == FuncKind::Kernel;
            objects.of[param] = Some(Known {
                object: if noalias { Object::NoAlias(index as u32) } else { Object::Parameters },
                read_only: noalias && kernel && attrs.is_some_and(|attrs| attrs.readonly),
            });
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
        if dfg.num_results(inst) > 1 {
            for result in dfg.results(inst).filter(|value| dfg.ty(*value).is_ptr()) {
                changed |= raise(&mut objects.of[result], Some(Known::default()));
            }
        } else if let Some(result) = dfg.first_result(inst).filter(|value| dfg.ty(*value).is_ptr()) {
            let data = &dfg.insts[inst];
            let known = match data.op {
                Opcode::Gep | Opcode::Addrspacecast | Opcode::Freeze => self.known_in(self.arg(inst, 0), objects),
                Opcode::Select => {
                    let [a, b] = [1, 2].map(|index| self.known_in(self.arg(inst, index), objects));
                    a.map_or(b, |a| Some(b.map_or(a, |b| a.join(b))))
                }
                Opcode::Alloca => {
                    let slot = self.frame.get(&inst);
                    Some(Known::object(slot.map_or(Object::Unknown, |slot| Object::Frame(*slot))))
                }
                _ => Some(Known::default()),
            };
            changed |= raise(&mut objects.of[result], known);
        }
        dfg.for_each_target(inst, |target| {
            let params = dfg.block_params(target.block);
            for (&param, &arg) in params.iter().zip(target.args.as_slice(&dfg.pool)) {
                if dfg.ty(param).is_ptr() {
                    let known = self.known_in(dfg.resolve(arg), objects);
                    changed |= raise(&mut objects.of[param], known);
                }
            }
        });
        changed
    }

    fn known_in(&self, value: Value, objects: &Objects) -> Option<Known> {
        match self.ir.dfg.def(value) {
            ValueDef::Const(_) => Some(Known::object(match self.ir.dfg.as_const(value) {
                Some(ConstData::Global(global, _)) => Object::Symbol(self.env.symbols.global(*global)),
                _ => Object::Unknown,
            })),
            _ => objects.of[value],
        }
    }

    fn known_of(&self, pointer: Value) -> Known {
        self.known_in(self.ir.dfg.resolve(pointer), &self.objects).unwrap_or_default()
    }

    /// What a pointer points into.
    pub(super) fn object(&self, pointer: Value) -> Object {
        self.known_of(pointer).object
    }

    /// Whether memory behind a pointer is not written while the kernel runs, as far as the function's parameters say.
    pub(super) fn is_read_only(&self, pointer: Value) -> bool {
        self.known_of(pointer).read_only
    }

    /// What is known of an access through one pointer; `invariant` as the access itself says.
    pub(super) fn memory_ref(&self, pointer: Value, invariant: bool) -> MemoryRef {
        let Known { object, read_only } = self.known_of(pointer);
        MemoryRef { objects: [object, Object::Unknown], constant: invariant || read_only }
    }
}

/// Adds an alternative to what a pointer may be.
fn raise(known: &mut Option<Known>, more: Option<Known>) -> bool {
    let Some(more) = more else { return false };
    let joined = known.map_or(more, |known| known.join(more));
    let changed = *known != Some(joined);
    *known = Some(joined);
    changed
}
