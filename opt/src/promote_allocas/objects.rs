//! Finds stack objects, the pointers derived from them by constant offsets, and every access through those.
//!
//! Decides which objects are known completely. An object *escapes* when a pointer to it is used for anything but plain
//! accesses of known place and size: it is passed on, stored, compared, indexed by a variable. What is done with the
//! objects that do not escape is decided elsewhere.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Cfg, Extra, Function, Inst, Module, Opcode, Space, Type, Value};

use crate::addresses::constant_step;

/// Largest object that is looked at, in bytes.
const MAX_OBJECT: u64 = 1 << 16;

/// An `alloca`.
pub struct Object {
    /// The instruction.
    pub alloca: Inst,
    /// Bytes.
    pub size: u64,
    /// Not every use is known.
    pub escaped: bool,
}

/// A byte of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spot {
    /// Index of the object.
    pub object: u32,
    /// Offset in bytes.
    pub offset: u64,
}

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `load` of this type.
    Load(Type),
    /// `store` of this type.
    Store(Type),
    /// `memcpy` or `memmove`.
    Copy,
    /// `memset`.
    Set,
}

/// One instruction that accesses objects.
pub struct Site {
    /// The instruction.
    pub inst: Inst,
    /// What it does.
    pub kind: Kind,
    /// Where it writes, if that is in an object.
    pub to: Option<Spot>,
    /// Where it reads, if that is in an object.
    pub from: Option<Spot>,
    /// Bytes.
    pub size: u64,
}

/// A pointer made from an object's address.
pub struct Derived {
    /// The instruction that makes it.
    pub inst: Inst,
    /// The object it points into.
    pub object: u32,
}

/// What there is to know about a function's stack objects.
pub struct Found {
    /// The objects.
    pub objects: Vec<Object>,
    /// The accesses, in reverse postorder.
    pub sites: Vec<Site>,
    /// The pointers, in reverse postorder.
    pub derived: Vec<Derived>,
}

impl Found {
    /// The place, unless its object escapes.
    pub fn known(&self, spot: Option<Spot>) -> Option<Spot> {
        spot.filter(|spot| !self.objects[spot.object as usize].escaped)
    }

    /// Gives an object up.
    pub fn escape(&mut self, object: u32) {
        self.objects[object as usize].escaped = true;
    }
}

/// A pointer into an object; the offset may leave it.
#[derive(Clone, Copy)]
struct Pointer {
    object: u32,
    offset: i64,
}

struct Finder<'f> {
    func: &'f Function,
    module: &'f Module,
    pointers: SecondaryMap<Value, Option<Pointer>>,
    found: Found,
}

/// Looks through the whole function once.
pub fn find(func: &Function, module: &Module, cfg: &Cfg) -> Found {
    let found = Found { objects: Vec::new(), sites: Vec::new(), derived: Vec::new() };
    let mut finder = Finder { func, module, pointers: SecondaryMap::new(), found };
    // Definitions come before uses in reverse postorder.
    for block in cfg.rpo() {
        for inst in func.layout.insts(*block) {
            finder.visit(inst);
        }
    }
    if !finder.found.objects.is_empty() {
        for block in func.layout.blocks().filter(|block| !cfg.is_reachable(*block)) {
            for inst in func.layout.insts(block) {
                finder.escape_operands(inst);
            }
        }
    }
    finder.found
}

impl Finder<'_> {
    fn pointer(&self, value: Value) -> Option<Pointer> {
        self.pointers[self.func.dfg.resolve(value)]
    }

    fn argument(&self, inst: Inst, index: usize) -> Option<Pointer> {
        self.func.dfg.args(inst).get(index).and_then(|value| self.pointer(*value))
    }

    fn escape_operands(&mut self, inst: Inst) {
        let mut escaping: Vec<u32> = Vec::new();
        self.func.dfg.for_each_use(inst, |value| escaping.extend(self.pointer(value).map(|pointer| pointer.object)));
        escaping.into_iter().for_each(|object| self.found.escape(object));
    }

    fn visit(&mut self, inst: Inst) {
        let func = self.func;
        let data = &func.dfg.insts[inst];
        if let Extra::Alloca { ty, count, .. } = data.extra {
            let size = self.module.layout_of(ty).size.saturating_mul(u64::from(count));
            if size <= MAX_OBJECT {
                let object = self.found.objects.len() as u32;
                self.found.objects.push(Object { alloca: inst, size, escaped: false });
                self.pointers[func.dfg.result(inst, 0)] = Some(Pointer { object, offset: 0 });
            }
            return;
        }
        if self.found.objects.is_empty() {
            return;
        }
        let understood = match data.op {
            Opcode::Gep | Opcode::Addrspacecast | Opcode::Freeze => self.derive(inst),
            Opcode::Load | Opcode::Store => self.access(inst),
            Opcode::Memcpy | Opcode::Memmove | Opcode::Memset => self.block_access(inst),
            _ => false,
        };
        if !understood {
            self.escape_operands(inst);
        }
    }

    /// Pointer arithmetic. Each of these tells whether the instruction is understood as far as objects are concerned.
    fn derive(&mut self, inst: Inst) -> bool {
        let Some(base) = self.argument(inst, 0) else { return true };
        let dfg = &self.func.dfg;
        let result = dfg.result(inst, 0);
        let reachable = dfg.ty(result) == Type::PTR || dfg.ty(result) == Type::ptr(Space::Local);
        let step = match dfg.insts[inst].op {
            Opcode::Gep => constant_step(self.func, self.module, inst),
            _ => Some(0),
        };
        let offset = step.and_then(|step| base.offset.checked_add(step));
        match offset {
            Some(offset) if reachable => {
                self.pointers[result] = Some(Pointer { offset, ..base });
                self.found.derived.push(Derived { inst, object: base.object });
                true
            }
            _ => false,
        }
    }

    /// The bytes `size` at a pointer, if they lie within its object.
    fn spot(&self, pointer: Pointer, size: u64) -> Option<Spot> {
        let offset = u64::try_from(pointer.offset).ok()?;
        let end = offset.checked_add(size)?;
        (end <= self.found.objects[pointer.object as usize].size).then_some(Spot { object: pointer.object, offset })
    }

    fn access(&mut self, inst: Inst) -> bool {
        let data = &self.func.dfg.insts[inst];
        let Extra::Mem(attrs) = data.extra else { return false };
        let is_store = data.op == Opcode::Store;
        if is_store && self.argument(inst, 0).is_some() {
            return false;
        }
        let Some(pointer) = self.argument(inst, usize::from(is_store)) else { return true };
        let size = data.ty.size();
        let Some(spot) = self.spot(pointer, size) else { return false };
        if attrs.is_ordered() {
            return false;
        }
        let (kind, to, from) = match is_store {
            true => (Kind::Store(data.ty), Some(spot), None),
            false => (Kind::Load(data.ty), None, Some(spot)),
        };
        self.found.sites.push(Site { inst, kind, to, from, size });
        true
    }

    fn block_access(&mut self, inst: Inst) -> bool {
        let data = &self.func.dfg.insts[inst];
        let Extra::Copy { volatile, .. } = data.extra else { return false };
        let is_set = data.op == Opcode::Memset;
        let to = self.argument(inst, 0);
        let from = if is_set { None } else { self.argument(inst, 1) };
        if to.is_none() && from.is_none() {
            return true;
        }
        let size = self.func.dfg.args(inst).get(2).and_then(|size| self.func.dfg.as_bits(*size));
        let Some(size) = size.and_then(|size| u64::try_from(size).ok()) else { return false };
        let same = to.zip(from).is_some_and(|(to, from)| to.object == from.object);
        if volatile || same {
            return false;
        }
        let place = |pointer: Option<Pointer>| pointer.map(|pointer| self.spot(pointer, size));
        let (to, from) = (place(to), place(from));
        if matches!(to, Some(None)) || matches!(from, Some(None)) {
            return false;
        }
        let kind = if is_set { Kind::Set } else { Kind::Copy };
        self.found.sites.push(Site { inst, kind, to: to.flatten(), from: from.flatten(), size });
        true
    }
}
