//! What a mnemonic says about order.

use super::Chains;
use ptxc_targets::{Effects, Mechanism, Space, Tok, possible_effects, tok};

/// A set of memories.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Domains(u8);

impl Domains {
    /// None.
    pub const NONE: Domains = Domains(0);
    /// Global memory.
    pub const GLOBAL: Domains = Domains(1);
    /// Shared memory of the block or cluster.
    pub const SHARED: Domains = Domains(2);
    /// The thread's own memory.
    pub const LOCAL: Domains = Domains(4);
    /// Parameters.
    pub const PARAM: Domains = Domains(8);
    /// Where a generic address may point.
    pub const GENERIC: Domains = Domains(1 | 2 | 4);
    /// How many there are.
    pub const COUNT: usize = 4;

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether any of `other` is in `self`.
    pub const fn intersects(self, other: Domains) -> bool {
        self.0 & other.0 != 0
    }

    /// The numbers of its domains, below [`Domains::COUNT`], rising.
    pub fn numbers(self) -> impl Iterator<Item = usize> {
        (0..Domains::COUNT).filter(move |number| self.0 & (1 << number) != 0)
    }
}

impl std::ops::BitOr for Domains {
    type Output = Domains;

    fn bitor(self, other: Domains) -> Domains {
        Domains(self.0 | other.0)
    }
}

/// What a mnemonic says about order, whatever its operands.
#[derive(Clone, Debug, Default)]
pub struct OpcodeFacts {
    /// Chains it reads.
    pub reads: Chains,
    /// Chains it writes.
    pub writes: Chains,
    /// Memories that it reads.
    pub read: Domains,
    /// Memories that it writes.
    pub write: Domains,
    /// Bytes at its address; 0 is unknown.
    pub size: u32,
    /// Copies from its second address to its first: `cp.async`.
    pub copy: bool,
    /// Its accesses go on after the instruction.
    pub asynchronous: bool,
    /// Reads by a path that is for memory nobody writes: `.nc`, `ldu` and textures (PTX ISA 9.7.10.9, 9.7.11).
    pub constant_path: bool,
    /// Reads constant memory.
    pub in_constant_space: bool,
    /// Waits for the grids before (PTX ISA 9.7.15.14).
    pub waits_for_grid: bool,
    /// Its results depend on its operands alone, and it does nothing else.
    pub computes: bool,
    /// Loads from memory.
    pub loads: bool,
    /// What a comparison of floats seldom says: that they are equal, or that one is NaN.
    pub seldom: Option<bool>,
    /// Nothing moves past it.
    pub boundary: bool,
    /// Waits for asynchronous operations of the groups that it writes.
    pub waits: bool,
    /// Ends a group of asynchronous operations.
    pub commits: bool,
    /// Multiplies in `wgmma` groups: its matrix registers are in flight until a wait.
    pub wgmma: bool,
    /// Loads from tensor memory: its results are in flight until a wait.
    pub tensor_load: bool,
}

/// What a comparison with these pieces seldom says, if it is of floats and nothing else goes into its result.
fn seldom(has: &impl Fn(Tok) -> bool) -> Option<bool> {
    let floats = [tok::F16, tok::BF16, tok::F32, tok::F64].into_iter().any(has);
    if !floats || [tok::AND, tok::OR, tok::XOR].into_iter().any(has) {
        return None;
    }
    let any = |pieces: &[Tok]| pieces.iter().any(|piece| has(*piece));
    match () {
        () if any(&[tok::EQ, tok::EQU, tok::NAN]) => Some(true),
        () if any(&[tok::NE, tok::NEU, tok::NUM]) => Some(false),
        () => None,
    }
}

impl OpcodeFacts {
    /// Reads the effects of a mnemonic.
    pub fn of(toks: &[Tok]) -> OpcodeFacts {
        let Some(effects) = possible_effects(toks) else {
            return OpcodeFacts { writes: Chains::WALL, ..OpcodeFacts::default() };
        };
        let mut facts = OpcodeFacts {
            read: domains(effects, Effects::read),
            write: domains(effects, Effects::write),
            waits: effects.contains(Effects::WAIT),
            commits: effects.contains(Effects::COMMIT),
            in_constant_space: effects.contains(Effects::read(Space::Const)),
            computes: effects.is_pure(),
            loads: toks.first() == Some(&tok::LD),
            ..OpcodeFacts::default()
        };
        facts.describe(toks, effects);
        if facts.writes.intersects(Chains::WALL) {
            (facts.read, facts.write) = (Domains::NONE, Domains::NONE);
        }
        // Where other threads see it, what synchronizes threads orders it.
        facts.reads = facts.reads | visible(facts.read | facts.write);
        facts.reads = facts.reads.without(facts.writes);
        facts
    }

    /// Whether it accesses memory that has an order.
    pub fn touches_memory(&self) -> bool {
        !(self.read | self.write).is_empty()
    }

    /// Whether it reads memory and does not write it.
    pub fn reads_only(&self) -> bool {
        self.write.is_empty() && self.writes.is_empty()
    }

    fn describe(&mut self, toks: &[Tok], effects: Effects) {
        let has = |piece: Tok| toks.contains(&piece);
        let head = toks.first().copied().unwrap_or(tok::TRAP);
        let group = |mechanism| effects.contains(Effects::mechanism(mechanism));
        let ends_group = effects.intersects(Effects::COMMIT | Effects::WAIT);
        if effects.contains(Effects::CARRY) {
            self.writes = self.writes | Chains::CARRY;
        }
        match head {
            tok::LD | tok::LDU | tok::ST | tok::ATOM | tok::RED if !has(tok::ASYNC) => {
                self.size = access_size(toks);
                self.constant_path = head == tok::LDU || has(tok::NC);
                self.atomic(toks, effects);
            }
            tok::SETP => self.seldom = seldom(&has),
            tok::TEX | tok::TLD4 => self.constant_path = true,
            tok::SULD | tok::SUST | tok::SURED | tok::MULTIMEM if !has(tok::ASYNC) => self.atomic(toks, effects),
            tok::BAR | tok::BARRIER => self.barrier(toks),
            tok::FENCE | tok::MEMBAR => self.fence(toks, effects),
            tok::MBARRIER => self.mbarrier(toks, effects),
            tok::WGMMA => self.wgmma(effects),
            tok::TCGEN05 => self.tensor(effects),
            tok::GRIDDEPCONTROL => {
                self.writes = Chains::WALL;
                self.waits_for_grid = true;
            }
            tok::SETMAXNREG | tok::PMEVENT | tok::BRKPT => {
                self.writes = Chains::WALL;
                self.boundary = true;
            }
            tok::PREFETCH | tok::PREFETCHU | tok::APPLYPRIORITY if !effects.intersects(bulk()) => {}
            _ if group(Mechanism::CopyGroup) => self.copies(toks, effects, ends_group),
            _ if group(Mechanism::BulkGroup) => self.bulk(effects, ends_group),
            _ if group(Mechanism::MbarrierTx) && !ends_group => self.asynchronous = true,
            _ if effects.contains(Effects::ASYNC_PROXY) && !effects.contains(Effects::ORDERED) => {
                self.asynchronous = true;
            }
            _ => self.other(effects),
        }
    }

    /// Accesses that may be volatile or atomic. The relaxed ones keep their order among themselves; those that acquire
    /// or release order everything.
    fn atomic(&mut self, toks: &[Tok], effects: Effects) {
        const STRONG: [Tok; 5] = [tok::ACQUIRE, tok::RELEASE, tok::ACQ_REL, tok::SC, tok::MMIO];
        if toks.iter().any(|piece| STRONG.contains(piece)) {
            self.synchronize(Domains::GENERIC);
        } else if effects.intersects(Effects::ORDERED | Effects::SIDE_EFFECT) {
            self.writes = self.writes | Chains::ORDERED;
        }
    }

    /// Orders the accesses of these memories that other threads can see.
    fn synchronize(&mut self, memories: Domains) {
        self.writes = self.writes | visible(memories) | Chains::ORDERED;
        if memories == Domains::GENERIC {
            self.writes = self.writes | Chains::TENSOR;
        }
        (self.read, self.write) = (Domains::NONE, Domains::NONE);
    }

    fn barrier(&mut self, toks: &[Tok]) {
        self.synchronize(Domains::GENERIC);
        self.writes = self.writes | Chains::MEETING;
        // A warp is together at `bar` and at `.aligned`, else it would have no defined result: not so at the others,
        // which may be what brings it together.
        let cluster = toks.contains(&tok::CLUSTER);
        let together = toks.contains(&tok::ALIGNED) || toks.first() == Some(&tok::BAR) && !toks.contains(&tok::WARP);
        if !together || cluster {
            self.writes = self.writes | Chains::ALIGNED;
        }
    }

    fn fence(&mut self, toks: &[Tok], effects: Effects) {
        let proxy_of = |spaces: &[Tok]| toks.contains(&tok::ASYNC) && toks.iter().any(|piece| spaces.contains(piece));
        let only_shared =
            !effects.contains(Effects::write(Space::Generic)) || proxy_of(&[tok::SHARED__CTA, tok::SHARED__CLUSTER]);
        let memories = match (only_shared, proxy_of(&[tok::GLOBAL])) {
            (true, _) => Domains::SHARED,
            (_, true) => Domains::GLOBAL,
            _ => Domains::GENERIC,
        };
        self.synchronize(memories);
    }

    /// Objects that threads and copies meet at. Arriving releases and waiting acquires unless it says otherwise; what
    /// initializes or counts concerns the object alone.
    fn mbarrier(&mut self, toks: &[Tok], effects: Effects) {
        const LOCAL: [Tok; 4] = [tok::INIT, tok::INVAL, tok::EXPECT_TX, tok::COMPLETE_TX];
        const MEETS: [Tok; 4] = [tok::ARRIVE, tok::ARRIVE_DROP, tok::TEST_WAIT, tok::TRY_WAIT];
        if toks.iter().any(|piece| MEETS.contains(piece)) {
            self.synchronize(Domains::GENERIC);
        } else if toks.iter().any(|piece| LOCAL.contains(piece)) {
            self.synchronize(Domains::SHARED);
        } else if !effects.is_pure() && effects.contains(Effects::ORDERED) {
            self.writes = self.writes | Chains::ORDERED;
        }
    }

    fn copies(&mut self, toks: &[Tok], effects: Effects, ends_group: bool) {
        if !ends_group {
            self.asynchronous = true;
            self.copy = true;
            self.reads = self.reads | Chains::COPY_GROUP;
            return;
        }
        self.writes = self.writes | Chains::COPY_GROUP;
        if toks.contains(&tok::MBARRIER) {
            // `cp.async.mbarrier.arrive`: an arrival that happens when the copies are complete.
            self.synchronize(Domains::SHARED);
        } else if effects.contains(Effects::WAIT) {
            // Shared memory is written until here. Global memory was read until here: only writes stay behind.
            self.writes = self.writes | Chains::SHARED;
            (self.read, self.write) = (Domains::GLOBAL, Domains::NONE);
        }
    }

    fn bulk(&mut self, effects: Effects, ends_group: bool) {
        if !ends_group {
            self.asynchronous = true;
            self.reads = self.reads | Chains::BULK_GROUP;
            return;
        }
        self.writes = self.writes | Chains::BULK_GROUP;
        if effects.contains(Effects::WAIT) {
            self.writes = self.writes | Chains::SHARED | Chains::GLOBAL;
            (self.read, self.write) = (Domains::NONE, Domains::NONE);
        }
    }

    fn wgmma(&mut self, effects: Effects) {
        self.reads = self.reads | Chains::ALIGNED;
        if effects.contains(Effects::COMMIT) {
            self.writes = self.writes | Chains::WGMMA;
        } else if effects.contains(Effects::WAIT) {
            // Operands in shared memory were read until here.
            self.writes = self.writes | Chains::WGMMA | Chains::WGMMA_REGISTERS;
            self.read = Domains::SHARED;
        } else if effects.contains(Effects::mechanism(Mechanism::WgmmaGroup)) {
            // Other accesses to registers that it has in flight, reads of its first matrix too, stay on their side of it.
            self.reads = self.reads | Chains::WGMMA;
            self.writes = self.writes | Chains::WGMMA_REGISTERS;
            self.asynchronous = true;
            self.wgmma = true;
        } else {
            self.writes = self.writes | Chains::WGMMA | Chains::WGMMA_REGISTERS;
        }
    }

    /// All `tcgen05` operations stay in their order, which keeps every pair of PTX ISA 9.7.18.6 and every address of
    /// tensor memory right, and on their side of what synchronizes threads.
    fn tensor(&mut self, effects: Effects) {
        self.writes = self.writes | Chains::TENSOR_ORDER;
        self.reads = self.reads | Chains::TENSOR;
        if effects.contains(Effects::CONVERGENT) {
            self.reads = self.reads | Chains::ALIGNED;
        }
        if effects.contains(Effects::ASYNC_PROXY) {
            self.asynchronous = true;
        }
        if effects.contains(Effects::COMMIT) {
            self.writes = self.writes | Chains::ORDERED;
        }
        if effects.contains(Effects::WAIT) {
            self.writes = self.writes | Chains::TENSOR_REGISTERS;
        }
        self.tensor_load = !effects.contains(Effects::ASYNC_PROXY)
            && effects.contains(Effects::mechanism(Mechanism::TensorWait))
            && effects.contains(Effects::read(Space::Tensor))
            && !effects.contains(Effects::WAIT);
        if self.tensor_load {
            self.reads = self.reads | Chains::TENSOR_REGISTERS;
        }
    }

    /// What has no rule of its own.
    fn other(&mut self, effects: Effects) {
        let convergent = effects.contains(Effects::CONVERGENT);
        if effects.intersects(Effects::TERMINATOR | Effects::ORDERED | Effects::COMMIT | Effects::WAIT)
            || effects.contains(Effects::PROXY_FENCE)
            || effects.contains(Effects::BARRIER)
        {
            self.writes = Chains::WALL;
            if convergent {
                self.writes = self.writes | Chains::MEETING | Chains::ALIGNED;
            }
            return;
        }
        let silent = !effects.reads_memory() && !effects.writes_memory();
        match (convergent, effects.contains(Effects::SIDE_EFFECT), silent) {
            // Votes, shuffles, matches: threads exchange values.
            (true, true, true) => self.writes = self.writes | Chains::MEETING,
            (true, false, true) if effects.contains(Effects::UNIFORM) => self.writes = self.writes | Chains::MEETING,
            // Matrix operations of a whole warp.
            (true, ..) => self.reads = self.reads | Chains::ALIGNED,
            (false, true, _) => self.writes = Chains::WALL,
            (false, false, _) => {}
        }
    }
}

fn bulk() -> Effects {
    Effects::mechanism(Mechanism::BulkGroup) | Effects::ASYNC_PROXY
}

/// The chains of memories that other threads see.
fn visible(memories: Domains) -> Chains {
    let global = if memories.intersects(Domains::GLOBAL) { Chains::GLOBAL } else { Chains::NONE };
    let shared = if memories.intersects(Domains::SHARED) { Chains::SHARED } else { Chains::NONE };
    global | shared
}

fn domains(effects: Effects, access: impl Fn(Space) -> Effects) -> Domains {
    const MEMORIES: [(Space, Domains); 5] = [
        (Space::Generic, Domains::GENERIC),
        (Space::Global, Domains::GLOBAL),
        (Space::Shared, Domains::SHARED),
        (Space::Local, Domains::LOCAL),
        (Space::Param, Domains::PARAM),
    ];
    let held = MEMORIES.iter().filter(|(space, _)| effects.contains(access(*space)));
    held.fold(Domains::NONE, |all, (_, domains)| all | *domains)
}

/// Bytes that a load, store or atomic accesses: its last type times its vector length; 0 when it is not plain.
fn access_size(toks: &[Tok]) -> u32 {
    let lanes = toks.iter().find_map(|piece| match *piece {
        tok::V2 => Some(2),
        tok::V4 => Some(4),
        tok::V8 => Some(8),
        _ => None,
    });
    let bits = toks.iter().rev().find_map(|piece| type_bits(piece.text()));
    bits.unwrap_or(0) / 8 * lanes.unwrap_or(1)
}

/// Bits of a type by its name: `b32` is 32, `bf16x2` is 32; `None` for other pieces.
fn type_bits(text: &str) -> Option<u32> {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_lowercase());
    if digits.len() == text.len() || digits.is_empty() {
        return None;
    }
    match digits.split_once('x') {
        Some((bits, count)) => Some(bits.parse::<u32>().ok()? * count.parse::<u32>().ok()?),
        None => digits.parse().ok(),
    }
    .filter(|bits| matches!(bits, 8 | 16 | 32 | 64 | 128))
}
