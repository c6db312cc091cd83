//! Loads and stores (PTX ISA 9.7.10, ld and st).

use ptxc_ir::{
    CacheOp, Effect, Extra, GlobalKind, Inst, L1Evict, L2Evict, MemAttrs, Opcode, Ordering, Scope, Space, Type, Value,
};
use ptxc_mir::{GroupKind, Operand, RegClass, VReg};
use ptxc_targets::{Tok, tok};
use smallvec::{SmallVec, smallvec};

use super::address::{Address, Base};
use super::{Lower, Output, Uses, WideLoad, space_tok};
use crate::rules::Pattern;

/// Mnemonic pieces under construction.
pub(super) type Toks = SmallVec<[Tok; 12]>;

/// The untyped suffix of a register class.
pub(super) fn untyped_tok(class: RegClass) -> Tok {
    match class {
        RegClass::Pred => tok::PRED,
        RegClass::B8 => tok::B8,
        RegClass::B16 => tok::B16,
        RegClass::B32 => tok::B32,
        RegClass::B64 => tok::B64,
        RegClass::B128 => tok::B128,
    }
}

/// The piece of a scope.
pub(super) fn scope_tok(scope: Scope) -> Tok {
    match scope {
        Scope::Cta => tok::CTA,
        Scope::Cluster => tok::CLUSTER,
        Scope::Gpu => tok::GPU,
        Scope::Sys => tok::SYS,
    }
}

/// How an access with these attributes is spelled, besides space, type and vector.
struct Spelling {
    /// `volatile`, `relaxed.gpu` and the like.
    order: SmallVec<[Tok; 2]>,
    /// Fences before and after.
    before: Option<FenceKind>,
    after: Option<FenceKind>,
}

/// The mnemonic of a load or store in parts.
struct Access {
    /// `ld` or `st`, order and space.
    head: Toks,
    /// Cache operator.
    cache: Option<Tok>,
    /// Read through the non-coherent path.
    read_only: bool,
    /// Vector length and type.
    tail: SmallVec<[Tok; 2]>,
    /// Index of the cache policy among the IR's arguments.
    policy: usize,
}

/// A fence of a load or store that the access itself cannot express.
#[derive(Clone, Copy)]
pub(super) enum FenceKind {
    /// Sequentially consistent.
    Sc(Scope),
    /// Acquire and release.
    AcqRel(Scope),
}

impl Lower<'_> {
    pub(super) fn load(&mut self, inst: Inst) {
        let Extra::Mem(attrs) = self.ir.dfg.insts[inst].extra else { return };
        let ptr = self.arg(inst, 0);
        let address = self.address(ptr);
        if self.refuse_access(inst, address) {
            return;
        }
        self.note_address(ptr, address);
        let spelling = self.spelling(address.space, attrs, false);
        self.emit_fence(spelling.before);
        let (dest, ty_tok) = match self.wide_loads.get(&inst).copied() {
            Some(wide) => (self.def_regs(wide.result), wide_tok(self.ir.dfg.insts[inst].ty, wide.signed)),
            None => self.load_destination(inst),
        };
        let mut head: Toks = SmallVec::from_slice(&[tok::LD]);
        head.extend(spelling.order);
        head.extend(space_tok(address.space));
        let plain = !attrs.is_ordered();
        let read_only = plain && address.space == Space::Global && (attrs.invariant || self.is_read_only(ptr));
        let mut operands: SmallVec<[Operand; 16]> = SmallVec::new();
        // The two registers of a vector access may be seen half changed.
        let whole = is_whole_128(attrs, address.space, dest.len());
        self.note_width(whole, &dest);
        if read_only {
            self.note(Pattern::LoadReadOnly);
        }
        let (loaded, ty_tok): (Output, Tok) =
            if whole { (smallvec![self.new_reg(RegClass::B128)], tok::B128) } else { (dest.clone(), ty_tok) };
        push_vector(&mut operands, loaded.iter().map(|r| Operand::Def(*r)));
        let address = self.address_operands(address);
        operands.extend(address);
        let access = Access {
            head,
            cache: load_cache_tok(attrs.cache).filter(|_| plain),
            read_only,
            tail: vector_tok(loaded.len()).into_iter().chain([ty_tok]).collect(),
            policy: 1,
        };
        self.memory = Some(self.memory_ref(ptr, attrs.invariant && plain));
        self.emit_access(inst, access, attrs, operands);
        self.emit_fence(spelling.after);
        if let (true, Some(result)) = (whole, self.ir.dfg.first_result(inst)) {
            let limbs = self.unpack(loaded[0], RegClass::B64);
            self.bind_value(result, &limbs);
        }
    }

    /// Registers and element type of a plain load.
    fn load_destination(&mut self, inst: Inst) -> (Output, Tok) {
        let ty = self.ir.dfg.insts[inst].ty;
        let dest = match self.ir.dfg.first_result(inst) {
            Some(result) => self.def_regs(result),
            None => Output::new(),
        };
        let class = dest.first().map_or(RegClass::B32, |r| self.func.class(*r));
        (dest, if ty.bits() <= 8 { tok::U8 } else { untyped_tok(class) })
    }

    pub(super) fn store(&mut self, inst: Inst) {
        let Extra::Mem(attrs) = self.ir.dfg.insts[inst].extra else { return };
        let (value, ptr) = (self.arg(inst, 0), self.arg(inst, 1));
        let address = self.address(ptr);
        if self.refuse_access(inst, address) {
            return;
        }
        self.note_address(ptr, address);
        let spelling = self.spelling(address.space, attrs, true);
        self.emit_fence(spelling.before);
        let (mut sources, mut ty_tok) = match self.stored_halves(value, attrs) {
            Some(halves) => (halves, tok::B32),
            None => self.store_source(value),
        };
        let whole = is_whole_128(attrs, address.space, sources.len());
        if let [Operand::Imm(_)] = sources[..] {
            self.note(Pattern::StoreImmediate);
        }
        let registers: Output = sources.iter().filter_map(|source| source.used()).collect();
        self.note_width(whole, &registers);
        if whole {
            let limbs = self.regs_of(value);
            sources = smallvec![Operand::Use(self.pack(RegClass::B128, &limbs))];
            ty_tok = tok::B128;
        }
        let mut head: Toks = SmallVec::from_slice(&[tok::ST]);
        head.extend(spelling.order);
        head.extend(space_tok(address.space));
        let mut operands: SmallVec<[Operand; 16]> = SmallVec::new();
        let address = self.address_operands(address);
        operands.extend(address);
        push_vector(&mut operands, sources.iter().copied());
        let access = Access {
            head,
            cache: store_cache_tok(attrs.cache).filter(|_| !attrs.is_ordered()),
            read_only: false,
            tail: vector_tok(sources.len()).into_iter().chain([ty_tok]).collect(),
            policy: 2,
        };
        self.memory = Some(self.memory_ref(ptr, false));
        self.emit_access(inst, access, attrs, operands);
        self.emit_fence(spelling.after);
    }

    /// Operands and element type that store a value.
    pub(super) fn store_source(&mut self, value: Value) -> (SmallVec<[Operand; 8]>, Tok) {
        let ty = self.ty(value);
        let layout = self.layout(ty);
        if ty.bits() <= 8 {
            return (SmallVec::from_slice(&[self.byte_source(value)]), tok::B8);
        }
        if layout.count == 1 {
            return (SmallVec::from_slice(&[self.bit_source(value)]), untyped_tok(layout.class));
        }
        let regs = self.regs_of(value);
        (regs.iter().map(|r| Operand::Use(*r)).collect(), untyped_tok(layout.class))
    }

    /// The words of a value of 64 bits that is put together of two. Of a `.b64` register that no instruction of 64 bits
    /// wrote, ptxas copies both halves before it stores them.
    fn stored_halves(&mut self, value: Value, attrs: MemAttrs) -> Option<SmallVec<[Operand; 8]>> {
        let layout = self.layout(self.ty(value));
        if attrs.is_ordered()
            || layout.count != 1
            || layout.class != RegClass::B64
            || self.ir.dfg.as_const(value).is_some()
        {
            return None;
        }
        let pair = Type::F32.with_lanes(2);
        let halves = if self.ty(value) == pair {
            let whole = self.reg_of(value);
            self.unpack(whole, RegClass::B32)
        } else {
            let inst = self.single_use(value).filter(|inst| self.ir.dfg.insts[*inst].op == Opcode::Bitcast)?;
            let source = self.arg(inst, 0);
            if self.ty(source) == pair && self.ir.dfg.as_const(source).is_none() {
                let whole = self.reg_of(source);
                let halves = self.unpack(whole, RegClass::B32);
                return Some(halves.iter().map(|half| Operand::Use(*half)).collect());
            }
            let layout = self.layout(self.ty(source));
            if layout.count != 2 || layout.class != RegClass::B32 {
                return None;
            }
            self.regs_of(source)
        };
        Some(halves.iter().map(|half| Operand::Use(*half)).collect())
    }

    /// An 8-bit value to be stored: a wider register will do, so a truncation is looked through.
    fn byte_source(&mut self, value: Value) -> Operand {
        if let Some(inst) = self.pure_def(value)
            && self.ir.dfg.insts[inst].op == Opcode::Trunc
            && matches!(self.arg_type(inst, 0), Type::I16 | Type::I32 | Type::I64)
        {
            let wide = self.arg(inst, 0);
            if self.ir.dfg.as_const(wide).is_none() {
                self.note(Pattern::StoreLowByte);
                return Operand::Use(self.reg_of(wide));
            }
        }
        self.bit_source(value)
    }

    /// Marks a load as extending when this extension is all that uses it. An instruction that took the extension into
    /// itself (an index, a factor, a shift amount) asked for the narrow value already: then both are needed.
    pub(super) fn extend_load(&mut self, inst: Inst) -> bool {
        let data = &self.ir.dfg.insts[inst];
        let signed = match data.op {
            Opcode::Sext => true,
            Opcode::Zext => false,
            _ => return false,
        };
        let value = self.arg(inst, 0);
        let narrow = matches!(self.ty(value), Type::I8 | Type::I16 | Type::I32);
        if !narrow || self.uses[value] != Uses::ONCE || self.is_assigned(value) {
            return false;
        }
        let Some(load) = self.ir.dfg.def_inst(value) else { return false };
        let (Opcode::Load, Some(result)) = (self.ir.dfg.insts[load].op, self.ir.dfg.first_result(inst)) else {
            return false;
        };
        debug_assert_eq!(self.ir.dfg.insts[load].op.info().effect, Effect::Read);
        self.wide_loads.insert(load, WideLoad { signed, result });
        self.note(Pattern::LoadExtended);
        true
    }

    /// Order and fences of a load or store on this target (PTX ISA 8.5, 8.7).
    fn spelling(&self, space: Space, attrs: MemAttrs, is_store: bool) -> Spelling {
        let mut spelling = Spelling { order: SmallVec::new(), before: None, after: None };
        let private = is_private(space);
        if !attrs.is_ordered() || (private && attrs.order != Ordering::NotAtomic && !attrs.volatile) {
            return spelling;
        }
        let scoped = self.env.target.sm() >= 70;
        let unordered = attrs.order == Ordering::NotAtomic || private || !scoped;
        // Nobody else sees a thread's own memory, and `.volatile` on it needs PTX 9.1.
        if unordered && !private {
            spelling.order.push(tok::VOLATILE);
        }
        if attrs.order == Ordering::NotAtomic || private {
            return spelling;
        }
        let scope = if attrs.volatile { Scope::Sys } else { attrs.scope };
        if scoped {
            let order = match (attrs.order, is_store) {
                (Ordering::Relaxed, _) => tok::RELAXED,
                (_, false) => tok::ACQUIRE,
                (_, true) => tok::RELEASE,
            };
            // A sequentially consistent store is a fence and a relaxed store; the fence releases as well.
            let order = if attrs.order == Ordering::SeqCst && is_store { tok::RELAXED } else { order };
            spelling.order.extend([order, scope_tok(scope)]);
            if attrs.order == Ordering::SeqCst {
                spelling.before = Some(FenceKind::Sc(scope));
            }
            return spelling;
        }
        match (attrs.order, is_store) {
            (Ordering::Relaxed, _) => {}
            (Ordering::SeqCst, false) => {
                spelling.before = Some(FenceKind::Sc(scope));
                spelling.after = Some(FenceKind::AcqRel(scope));
            }
            (_, false) => spelling.after = Some(FenceKind::AcqRel(scope)),
            (_, true) => spelling.before = Some(FenceKind::AcqRel(scope)),
        }
        spelling
    }

    /// Emits a fence, if there is one: `fence` from sm_70, before that `membar`, which is stronger (PTX ISA 9.7.13).
    pub(super) fn emit_fence(&mut self, fence: Option<FenceKind>) {
        let (order, scope) = match fence {
            None => return,
            Some(FenceKind::Sc(scope)) => (tok::SC, scope),
            Some(FenceKind::AcqRel(scope)) => (tok::ACQ_REL, scope),
        };
        if self.env.target.sm() >= 70 {
            self.emit_toks(&[tok::FENCE, order, scope_tok(scope)], &[]);
            return;
        }
        let level = match scope {
            Scope::Cta => tok::CTA,
            Scope::Cluster | Scope::Gpu => tok::GL,
            Scope::Sys => tok::SYS,
        };
        self.emit_toks(&[tok::MEMBAR, level], &[]);
    }

    /// Reports accesses to what is no memory for `ld`, `st` and `atom`: tensor memory, and textures and their like.
    pub(super) fn refuse_access(&mut self, inst: Inst, address: Address) -> bool {
        if address.space == Space::Tensor {
            self.error(inst, "tensor memory is accessed by `ptx.tcgen05.ld` and `ptx.tcgen05.st` only");
            return true;
        }
        let Base::Symbol(symbol) = address.base else { return false };
        let global = self.env.symbols.global_of(symbol).map(|id| &self.env.module.globals[id]);
        match global {
            Some(global) if !matches!(global.kind, GlobalKind::Variable(_)) => {
                let message = format!("@{} is a texture, surface or sampler, not memory", global.name);
                self.error(inst, message);
                true
            }
            _ => false,
        }
    }

    /// Emits a load or store with its cache operator and hints, or without them where the target or the form has none:
    /// they never change what is loaded or stored.
    fn emit_access(&mut self, inst: Inst, access: Access, attrs: MemAttrs, mut operands: SmallVec<[Operand; 16]>) {
        let mut toks = access.head.clone();
        toks.extend(access.cache);
        toks.extend((access.read_only && access.cache.is_none()).then_some(tok::NC));
        let before = toks.len();
        self.cache_toks(&mut toks, attrs);
        let hinted = toks.len() > before || access.cache.is_some();
        toks.extend_from_slice(&access.tail);
        if !hinted {
            self.emit_toks(&toks, &operands);
            return;
        }
        let bare = operands.len();
        self.push_policy(inst, attrs, access.policy, &mut operands);
        if !self.is_available(&toks, &operands) {
            operands.truncate(bare);
            toks = access.head;
            toks.extend(access.read_only.then_some(tok::NC));
            toks.extend_from_slice(&access.tail);
            self.note(Pattern::AccessHintLeftOut);
        } else {
            self.note(Pattern::AccessHinted);
        }
        self.emit_toks(&toks, &operands);
    }

    /// Names an access of several registers.
    fn note_width(&mut self, whole: bool, registers: &[VReg]) {
        let bits: u32 = registers.iter().map(|reg| self.func.class(*reg).bits()).sum();
        match (whole, registers.len()) {
            (_, 0 | 1) => {}
            (true, _) => self.note(Pattern::AccessWhole128),
            (false, _) if bits > 128 => self.note(Pattern::AccessVector256),
            (false, _) => self.note(Pattern::AccessVector),
        }
    }

    fn cache_toks(&self, toks: &mut Toks, attrs: MemAttrs) {
        toks.extend(match attrs.l1 {
            L1Evict::None => None,
            L1Evict::Normal => Some(tok::L1__EVICT_NORMAL),
            L1Evict::Unchanged => Some(tok::L1__EVICT_UNCHANGED),
            L1Evict::First => Some(tok::L1__EVICT_FIRST),
            L1Evict::Last => Some(tok::L1__EVICT_LAST),
            L1Evict::NoAllocate => Some(tok::L1__NO_ALLOCATE),
        });
        toks.extend(match attrs.l2 {
            L2Evict::None => None,
            L2Evict::Normal => Some(tok::L2__EVICT_NORMAL),
            L2Evict::First => Some(tok::L2__EVICT_FIRST),
            L2Evict::Last => Some(tok::L2__EVICT_LAST),
        });
        if attrs.has_policy {
            toks.push(tok::L2__CACHE_HINT);
        }
        toks.extend(match attrs.prefetch {
            64 => Some(tok::L2__64B),
            128 => Some(tok::L2__128B),
            256 => Some(tok::L2__256B),
            _ => None,
        });
    }

    pub(super) fn push_policy(
        &mut self,
        inst: Inst,
        attrs: MemAttrs,
        index: usize,
        operands: &mut SmallVec<[Operand; 16]>,
    ) {
        if attrs.has_policy && index < self.ir.dfg.args(inst).len() {
            let policy = self.arg(inst, index);
            operands.push(Operand::Use(self.reg_of(policy)));
        }
    }

    /// An address as used by other instructions.
    pub(super) fn bracketed(&mut self, address: Address, operands: &mut SmallVec<[Operand; 16]>) {
        let address = self.address_operands(address);
        operands.extend(address);
    }
}

/// `{a, b}` or `a`.
pub(super) fn push_vector(operands: &mut SmallVec<[Operand; 16]>, elements: impl ExactSizeIterator<Item = Operand>) {
    if elements.len() != 1 {
        operands.push(Operand::Open(GroupKind::Vector, elements.len() as u16));
    }
    operands.extend(elements);
}

/// `.v2 .v4 .v8`
pub(super) fn vector_tok(count: usize) -> Option<Tok> {
    match count {
        2 => Some(tok::V2),
        4 => Some(tok::V4),
        8 => Some(tok::V8),
        _ => None,
    }
}

/// Whether an access of so many registers is atomic as a whole: of two, which is an `i128` (PTX ISA 8.2.2: a vector
/// access is one access for each element).
fn is_whole_128(attrs: MemAttrs, space: Space, registers: usize) -> bool {
    attrs.order != Ordering::NotAtomic && registers == 2 && !is_private(space)
}

/// Whether no other thread writes memory of this space.
fn is_private(space: Space) -> bool {
    matches!(space, Space::Local | Space::Const | Space::Param)
}

/// The memory type of a load that extends.
fn wide_tok(ty: Type, signed: bool) -> Tok {
    match (ty.bits(), signed) {
        (8, false) => tok::U8,
        (8, true) => tok::S8,
        (16, false) => tok::U16,
        (16, true) => tok::S16,
        (_, false) => tok::U32,
        (_, true) => tok::S32,
    }
}

fn load_cache_tok(cache: CacheOp) -> Option<Tok> {
    match cache {
        CacheOp::Ca => Some(tok::CA),
        CacheOp::Cg => Some(tok::CG),
        CacheOp::Cs => Some(tok::CS),
        CacheOp::Lu => Some(tok::LU),
        CacheOp::Cv => Some(tok::CV),
        _ => None,
    }
}

fn store_cache_tok(cache: CacheOp) -> Option<Tok> {
    match cache {
        CacheOp::Wb => Some(tok::WB),
        CacheOp::Cg => Some(tok::CG),
        CacheOp::Cs => Some(tok::CS),
        CacheOp::Wt => Some(tok::WT),
        _ => None,
    }
}
