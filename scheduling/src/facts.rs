//! What one instruction touches besides registers: memory, and the chains that keep instructions in order.
//!
//! This is the only place that looks at mnemonics. It turns the effects of the instruction tables into a few words that
//! graph and checker read:
//!
//! * [`Chains`]: sets of ordered things. An instruction that *writes* a chain keeps its place among all others of the
//!   chain, one that *reads* it keeps its place among the writers.
//! * [`Access`]: an access to memory, which is ordered with those that may overlap it when one of the two writes.
//!
//! An *asynchronous* access begins after everything before it that it may overlap, but what comes later is not ordered
//! after it: a program that touches the bytes of a copy before it has waited for it has no defined result, and the wait
//! is a member of the copy's chain and of the memory's. This is what lets copies sink between the loads and
//! multiplications of another buffer although nothing is known about the two addresses.

mod elsewhere;
mod opcode;
mod registers;

pub use opcode::{Domains, OpcodeFacts};

use ptxc_mir::{Function, GroupKind, Inst, Linkage, Module, Object, Op, Operand, Space, SymId, VReg};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use registers::InFlight;

/// A set of chains.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Chains(u16);

impl Chains {
    /// No chain.
    pub const NONE: Chains = Chains(0);
    /// Everything but pure computation. Written by calls, opaque assembly, `griddepcontrol` and what may end the thread.
    pub const WALL: Chains = Chains(1);
    /// Global memory as other threads see it: accesses read it; barriers, fences and waits write it.
    pub const GLOBAL: Chains = Chains(1 << 1);
    /// The same for shared memory.
    pub const SHARED: Chains = Chains(1 << 2);
    /// The same for tensor memory and the operations on it (PTX ISA 9.7.18.6).
    pub const TENSOR: Chains = Chains(1 << 3);
    /// The condition code register: its members stay in order, so that no other sum comes between a carry and its use.
    pub const CARRY: Chains = Chains(1 << 4);
    /// Volatile and atomic accesses.
    pub const ORDERED: Chains = Chains(1 << 5);
    /// Operations in which the threads of a warp or block meet.
    pub const MEETING: Chains = Chains(1 << 6);
    /// What needs a whole warp at one place reads it; what may bring a warp together writes it.
    pub const ALIGNED: Chains = Chains(1 << 7);
    /// Groups of `cp.async`: copies read it, commits and waits write it.
    pub const COPY_GROUP: Chains = Chains(1 << 8);
    /// Bulk groups.
    pub const BULK_GROUP: Chains = Chains(1 << 9);
    /// Groups of `wgmma`.
    pub const WGMMA: Chains = Chains(1 << 10);
    /// Registers of `wgmma` in flight: other accesses to them read it, products, `wgmma.fence` and `wait_group` write it.
    pub const WGMMA_REGISTERS: Chains = Chains(1 << 11);
    /// `tcgen05` operations, which stay in their order.
    pub const TENSOR_ORDER: Chains = Chains(1 << 12);
    /// Registers that `tcgen05.ld` fills: accesses to them read it, `tcgen05.wait` writes it.
    pub const TENSOR_REGISTERS: Chains = Chains(1 << 13);
    /// How many there are.
    pub const COUNT: usize = 14;

    /// Both.
    #[must_use]
    pub const fn union(self, other: Chains) -> Chains {
        Chains(self.0 | other.0)
    }

    /// What is in `self` and not in `other`.
    #[must_use]
    pub const fn without(self, other: Chains) -> Chains {
        Chains(self.0 & !other.0)
    }

    /// Whether any of `other` is in `self`.
    pub const fn intersects(self, other: Chains) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The numbers of its chains, below [`Chains::COUNT`], rising.
    pub fn numbers(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let number = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (number < 16).then_some(number as usize)
        })
    }
}

impl std::ops::BitOr for Chains {
    type Output = Chains;

    fn bitor(self, other: Chains) -> Chains {
        self.union(other)
    }
}

/// Where an access starts, as far as two accesses with the same base can be compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    /// A place that no other access is compared with: an unknown number of bytes, or addresses of several lanes.
    Anywhere,
    /// A register.
    Register(VReg),
    /// The start of the object itself.
    Object,
}

/// An access to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The memories in which it may lie.
    pub domains: Domains,
    /// The object.
    pub object: Object,
    /// Where in the object it starts.
    pub base: Base,
    /// The first byte, from the base.
    pub start: i64,
    /// The byte after the last.
    pub end: i64,
    /// It writes.
    pub write: bool,
}

/// What an instruction touches besides registers.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Chains it reads.
    pub reads: Chains,
    /// Chains it writes.
    pub writes: Chains,
    /// Accesses to memory.
    pub accesses: SmallVec<[Access; 2]>,
    /// The accesses go on after the instruction.
    pub asynchronous: bool,
    /// Nothing moves past it in either direction: it reads a clock or changes how many registers there are.
    pub boundary: bool,
}

impl Facts {
    /// Whether it touches registers alone.
    pub fn is_pure(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty() && self.accesses.is_empty() && !self.boundary
    }
}

/// What is known of a module's mnemonics and variables; computed once.
#[derive(Clone, Debug)]
pub struct ModuleFacts {
    opcodes: Vec<OpcodeFacts>,
    /// Extern shared variables all begin at one address (PTX ISA 5.1.8): they count as the first of them.
    dynamic: FxHashMap<SymId, SymId>,
    /// Size and alignment of the constant variables that are defined here.
    constants: FxHashMap<SymId, (u64, u32)>,
}

impl ModuleFacts {
    /// Reads a module.
    pub fn new(module: &Module) -> ModuleFacts {
        let opcodes = module.opcodes.all().map(OpcodeFacts::of).collect();
        let mut dynamic = FxHashMap::default();
        let mut constants = FxHashMap::default();
        let mut first = None;
        for global in module.globals.values() {
            let is_ours = matches!(global.linkage, Linkage::Visible | Linkage::Internal);
            if let (Space::Const, true, Some(size)) = (global.space, is_ours, global.size) {
                constants.insert(global.symbol, (size, global.align));
            }
            if global.space == Space::Shared && (global.linkage == Linkage::Extern || global.size.is_none()) {
                dynamic.insert(global.symbol, *first.get_or_insert(global.symbol));
            }
        }
        ModuleFacts { opcodes, dynamic, constants }
    }

    /// What the mnemonic of an instruction says; `None` for copies, calls and opaque assembly.
    pub fn opcode(&self, func: &Function, inst: Inst) -> Option<&OpcodeFacts> {
        match func.insts[inst].op {
            Op::Ptx(opcode) => self.opcodes.get(opcode.index()),
            _ => None,
        }
    }

    fn object(&self, object: Object) -> Object {
        match object {
            Object::Symbol(symbol) => Object::Symbol(*self.dynamic.get(&symbol).unwrap_or(&symbol)),
            other => other,
        }
    }
}

/// Facts about the instructions of one function.
#[derive(Debug)]
pub struct FunctionFacts<'a> {
    module: &'a ModuleFacts,
    in_flight: InFlight,
    /// The kernel waits for another: what is constant is so after that wait only.
    waits_for_grid: bool,
}

impl<'a> FunctionFacts<'a> {
    /// What a comparison seldom says, if that is known ([`OpcodeFacts::seldom`]).
    pub fn seldom(&self, func: &Function, inst: Inst) -> Option<bool> {
        self.module.opcode(func, inst)?.seldom
    }

    /// Reads a function in SSA form.
    pub fn new(module: &'a ModuleFacts, func: &Function) -> FunctionFacts<'a> {
        let mut waits_for_grid = false;
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                waits_for_grid |= module.opcode(func, inst).is_some_and(|facts| facts.waits_for_grid);
            }
        }
        FunctionFacts { module, in_flight: InFlight::of(module, func), waits_for_grid }
    }

    /// What is known of the module.
    pub fn module(&self) -> &'a ModuleFacts {
        self.module
    }

    /// What an instruction touches.
    pub fn of(&self, func: &Function, inst: Inst) -> Facts {
        let mut facts = match func.insts[inst].op {
            Op::Copy(_) => Facts::default(),
            Op::Call(_) | Op::Asm(_) => Facts { writes: Chains::WALL, ..Facts::default() },
            Op::Ptx(_) => match self.module.opcode(func, inst) {
                Some(opcode) => self.known(func, inst, opcode),
                None => Facts { writes: Chains::WALL, ..Facts::default() },
            },
        };
        self.in_flight.add(func, inst, &mut facts);
        // The end of everything that is not pure: a wall.
        if facts.writes.intersects(Chains::WALL) {
            facts.writes = facts.writes | Chains::CARRY;
        } else if !(facts.reads.is_empty() && facts.writes.is_empty() && facts.accesses.is_empty()) {
            facts.reads = facts.reads | Chains::WALL;
        }
        facts
    }

    fn known(&self, func: &Function, inst: Inst, opcode: &OpcodeFacts) -> Facts {
        let operands = func.inst_operands(inst);
        let clock = operands.iter().any(|o| matches!(o, Operand::SReg(register) if register.is_volatile()));
        let mut facts = Facts {
            reads: opcode.reads,
            writes: opcode.writes,
            accesses: SmallVec::new(),
            asynchronous: opcode.asynchronous,
            boundary: opcode.boundary || clock,
        };
        if !opcode.touches_memory() {
            return facts;
        }
        let known = func.memory[inst];
        let is_parameter = operands.iter().any(|o| matches!(o, Operand::Param(..)));
        if opcode.reads_only() && (is_parameter || opcode.in_constant_space) {
            // Nobody writes constants and parameters.
            return facts;
        }
        if (opcode.constant_path || known.constant) && opcode.reads_only() && !self.waits_for_grid {
            facts.reads = facts.reads.without(Chains::GLOBAL | Chains::SHARED) | Chains::WALL;
            return facts;
        }
        self.accesses(func, inst, opcode, &mut facts);
        facts
    }

    fn accesses(&self, func: &Function, inst: Inst, opcode: &OpcodeFacts, facts: &mut Facts) {
        let operands = func.inst_operands(inst);
        let known = func.memory[inst].objects;
        let addresses: SmallVec<[usize; 3]> =
            (0..operands.len()).filter(|&at| matches!(operands[at], Operand::Open(GroupKind::Address, _))).collect();
        let exact = match (opcode.copy, &addresses[..]) {
            (true, [_, _, ..]) => 2,
            (false, [_]) => 1,
            _ => 0,
        };
        if exact == 0 {
            let anywhere = |domains, write| Access {
                domains,
                object: Object::Unknown,
                base: Base::Anywhere,
                start: 0,
                end: 0,
                write,
            };
            facts.accesses.extend((!opcode.read.is_empty()).then(|| anywhere(opcode.read, false)));
            facts.accesses.extend((!opcode.write.is_empty()).then(|| anywhere(opcode.write, true)));
            return;
        }
        for (index, &at) in addresses.iter().take(exact).enumerate() {
            let (domains, write, size) = match (opcode.copy, index) {
                (true, 0) => (opcode.write, true, copy_size(operands)),
                (true, _) => (opcode.read, false, copy_size(operands)),
                (false, _) => (opcode.read | opcode.write, !opcode.write.is_empty(), opcode.size),
            };
            let access = Access {
                domains,
                object: self.module.object(known.get(index).copied().unwrap_or_default()),
                base: Base::Anywhere,
                start: 0,
                end: 0,
                write,
            };
            facts.accesses.push(self.place(&operands[at..], access, size));
        }
    }

    /// Where an address operand points.
    fn place(&self, operands: &[Operand], mut access: Access, size: u32) -> Access {
        let parts = match operands.first() {
            Some(Operand::Open(_, len)) => operands.get(1..1 + usize::from(*len)).unwrap_or_default(),
            _ => &[],
        };
        let (base, start) = match *parts {
            [Operand::Use(reg)] => (Base::Register(reg), 0),
            [Operand::Use(reg), Operand::Offset(offset)] => (Base::Register(reg), offset),
            [Operand::Sym(symbol, offset)] => {
                access.object = self.module.object(Object::Symbol(symbol));
                (Base::Object, i64::from(offset))
            }
            // All of the frame counts as one object where its own name is used: offsets tell slots apart.
            [Operand::Depot(offset)] => {
                access.object = match access.object {
                    Object::Frame(slot) => Object::Frame(slot),
                    _ => Object::Unknown,
                };
                (Base::Object, i64::from(offset))
            }
            [Operand::RetParam(_, offset)] => (Base::Object, i64::from(offset)),
            _ => (Base::Anywhere, 0),
        };
        if size != 0 && base != Base::Anywhere {
            access.base = base;
            access.start = start;
            access.end = start.saturating_add(i64::from(size));
        }
        access
    }
}

/// Bytes that a `cp.async` copies: its first operand that is a number.
fn copy_size(operands: &[Operand]) -> u32 {
    let number = operands.iter().find_map(|operand| match operand {
        Operand::Imm(bytes) => u32::try_from(*bytes).ok(),
        _ => None,
    });
    number.filter(|bytes| *bytes <= 16).unwrap_or(0)
}
