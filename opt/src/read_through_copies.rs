//! Reads memory that never changes where it is, instead of a copy of it on the stack.
//!
//! A stack object that is written once, by a copy of a kernel parameter or of constant memory, and otherwise only read,
//! is the original: its pointers become pointers to that, whatever indexes them. Frontends make such copies of objects
//! that are passed by value. Reading before the copy would give unspecified bytes, for which those of the original are
//! as good, so it does not matter where the copy stands.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{
    Block, Cfg, ConstData, Extra, Function, FunctionBuilder, Inst, Module, Opcode, Space, Type, Value, ValueDef,
};

use crate::addresses::constant_step;
use crate::edit::resolve_all_uses;
use crate::pass::Context;

/// Longest chain of copies and address arithmetic that is followed.
const MAX_STEPS: usize = 64;

/// A stack object.
struct Object {
    alloca: Inst,
    size: u64,
    /// The one instruction that writes it.
    copy: Option<Inst>,
    /// Instructions that make pointers from its address, in reverse postorder.
    pointers: Vec<Inst>,
    /// Something else than a read or the one copy is done with it.
    unsuitable: bool,
}

/// A pointer into an object.
#[derive(Clone, Copy)]
struct Pointer {
    object: usize,
    /// It points to the first byte.
    first: bool,
}

/// The pass.
pub fn read_through_copies(func: &mut Function, ctx: &Context<'_>) -> bool {
    let Some(entry) = func.layout.entry() else { return false };
    if !func.layout.insts(entry).any(|inst| func.dfg.insts[inst].op == Opcode::Alloca) {
        return false;
    }
    resolve_all_uses(func);
    let cfg = Cfg::new(func);
    let objects = find(func, ctx.module, &cfg);
    let mut changed = false;
    for index in 0..objects.len() {
        if let Some((root, offset)) = original(func, ctx.module, entry, &objects, index) {
            replace(func, &objects[index], root, offset);
            changed = true;
        }
    }
    if changed {
        resolve_all_uses(func);
    }
    changed
}

/// What is done with each stack object.
fn find(func: &Function, module: &Module, cfg: &Cfg) -> Vec<Object> {
    let mut objects: Vec<Object> = Vec::new();
    let mut pointers: SecondaryMap<Value, Option<Pointer>> = SecondaryMap::new();
    let reachable = cfg.rpo().iter().copied();
    let others = func.layout.blocks().filter(|block| !cfg.is_reachable(*block));
    for block in reachable.chain(others) {
        for inst in func.layout.insts(block) {
            let data = &func.dfg.insts[inst];
            if let Extra::Alloca { ty, count, .. } = data.extra {
                let size = module.layout_of(ty).size.saturating_mul(u64::from(count));
                let result = func.dfg.result(inst, 0);
                pointers[result] = Some(Pointer { object: objects.len(), first: true });
                objects.push(Object { alloca: inst, size, copy: None, pointers: Vec::new(), unsuitable: false });
                continue;
            }
            let understood = cfg.is_reachable(block) && visit(func, &mut objects, &mut pointers, inst);
            if !understood {
                func.dfg.for_each_use(inst, |value| {
                    if let Some(pointer) = pointers[value] {
                        objects[pointer.object].unsuitable = true;
                    }
                });
            }
        }
    }
    objects
}

/// Tells whether the instruction only reads objects, makes pointers to them, or is the first copy to one.
fn visit(
    func: &Function,
    objects: &mut [Object],
    pointers: &mut SecondaryMap<Value, Option<Pointer>>,
    inst: Inst,
) -> bool {
    let data = &func.dfg.insts[inst];
    let args = func.dfg.args(inst);
    let argument = |index: usize| args.get(index).and_then(|value| pointers[*value]);
    match data.op {
        Opcode::Gep | Opcode::Addrspacecast | Opcode::Freeze => {
            let Some(base) = argument(0) else { return true };
            let result = func.dfg.result(inst, 0);
            if !func.dfg.ty(result).is_ptr() {
                return false;
            }
            let first = base.first && data.op != Opcode::Gep;
            pointers[result] = Some(Pointer { first, ..base });
            objects[base.object].pointers.push(inst);
            true
        }
        Opcode::Load => !matches!(data.extra, Extra::Mem(attrs) if attrs.is_ordered()),
        Opcode::Memcpy | Opcode::Memmove => {
            let (to, from) = (argument(0), argument(1));
            let plain = matches!(data.extra, Extra::Copy { volatile: false, .. });
            let Some(to) = to else { return plain };
            let size = args.get(2).and_then(|size| func.dfg.as_bits(*size));
            let object = &mut objects[to.object];
            let whole = to.first && size == Some(u128::from(object.size));
            let other = from.is_none_or(|from| from.object != to.object);
            let fits = plain && whole && other && object.copy.is_none();
            if fits {
                object.copy = Some(inst);
            }
            fits
        }
        _ => false,
    }
}

/// Where the bytes of an object stand for good: a kernel parameter or constant memory, and an offset.
fn original(func: &Function, module: &Module, entry: Block, objects: &[Object], index: usize) -> Option<(Value, i64)> {
    let object = &objects[index];
    if object.unsuitable {
        return None;
    }
    let mut value = *func.dfg.args(object.copy?).get(1)?;
    let mut offset = 0i64;
    for _ in 0..MAX_STEPS {
        value = func.dfg.resolve(value);
        let lasting = matches!(func.dfg.ty(value).space(), Some(Space::Param | Space::Const));
        match func.dfg.def(value) {
            ValueDef::Param(block, _) if block == entry && lasting => return Some((value, offset)),
            ValueDef::Const(_) if lasting => {
                return matches!(func.dfg.as_const(value), Some(ConstData::Global(..))).then_some((value, offset));
            }
            ValueDef::Result(inst, _) => match func.dfg.insts[inst].op {
                Opcode::Addrspacecast | Opcode::Freeze => value = *func.dfg.args(inst).first()?,
                Opcode::Gep => {
                    offset = offset.checked_add(constant_step(func, module, inst)?)?;
                    value = *func.dfg.args(inst).first()?;
                }
                _ => return None,
            },
            _ => return None,
        }
    }
    None
}

/// Makes the object's pointers those to the original.
fn replace(func: &mut Function, object: &Object, root: Value, offset: i64) {
    let mut b = FunctionBuilder::before(func, object.alloca);
    let original = b.byte_offset(root, offset);
    let ty: Type = func.dfg.ty(original);
    let address = func.dfg.result(object.alloca, 0);
    func.dfg.set_ty(address, ty);
    func.dfg.alias(address, original);
    func.layout.remove_inst(object.alloca);
    for pointer in &object.pointers {
        let result = func.dfg.result(*pointer, 0);
        func.dfg.set_ty(result, ty);
        if func.dfg.insts[*pointer].op != Opcode::Gep {
            let base = func.dfg.args(*pointer)[0];
            func.dfg.alias(result, base);
            func.layout.remove_inst(*pointer);
        }
    }
    if let Some(copy) = object.copy {
        func.layout.remove_inst(copy);
    }
}
