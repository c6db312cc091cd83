//! What an instruction does besides computing its results.

/// A state space as effects name it (PTX ISA 5.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Space {
    /// Any of the others, by address.
    Generic,
    /// Global memory.
    Global,
    /// Shared memory of the block or of its cluster.
    Shared,
    /// Memory of one thread.
    Local,
    /// Constant memory.
    Const,
    /// Kernel and function parameters.
    Param,
    /// Tensor memory (PTX ISA 9.7.18).
    Tensor,
}

/// The asynchronous mechanism an instruction takes part in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Mechanism {
    /// `cp.async` and its commit and wait groups.
    CopyGroup,
    /// Bulk copies completed through `cp.async.bulk.commit_group`.
    BulkGroup,
    /// Completion by `complete_tx` on an mbarrier.
    MbarrierTx,
    /// `wgmma` groups.
    WgmmaGroup,
    /// `tcgen05` operations tracked by `tcgen05.commit`.
    TensorCommit,
    /// `tcgen05` operations tracked by `tcgen05.wait`.
    TensorWait,
}

/// A set of effects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Effects(pub(crate) u32);

impl Effects {
    /// No effect: results depend on the sources alone.
    pub const NONE: Effects = Effects(0);
    /// Must be executed by converged threads and may not gain control dependence.
    pub const CONVERGENT: Effects = Effects(1 << 20);
    /// Waits for other threads.
    pub const BARRIER: Effects = Effects(1 << 21);
    /// Ends a basic block.
    pub const TERMINATOR: Effects = Effects(1 << 22);
    /// Volatile, or ordered stronger than weak: not to be removed, merged or reordered.
    pub const ORDERED: Effects = Effects(1 << 23);
    /// Has an effect that the other bits do not name: may not be removed.
    pub const SIDE_EFFECT: Effects = Effects(1 << 24);
    /// Acts through the asynchronous proxy.
    pub const ASYNC_PROXY: Effects = Effects(1 << 25);
    /// Orders accesses of different proxies.
    pub const PROXY_FENCE: Effects = Effects(1 << 26);
    /// All threads of a warp get the same result.
    pub const UNIFORM: Effects = Effects(1 << 27);
    /// Reads or writes the condition code register (`.cc`).
    pub const CARRY: Effects = Effects(1 << 28);
    /// Commits a group of asynchronous operations.
    pub const COMMIT: Effects = Effects(1 << 29);
    /// Waits for asynchronous operations.
    pub const WAIT: Effects = Effects(1 << 30);

    /// Reads memory of `space`.
    pub const fn read(space: Space) -> Effects {
        Effects(1 << space as u8)
    }

    /// Writes memory of `space`.
    pub const fn write(space: Space) -> Effects {
        Effects(1 << (7 + space as u8))
    }

    /// Takes part in `mechanism`.
    pub const fn mechanism(mechanism: Mechanism) -> Effects {
        Effects(1 << (14 + mechanism as u8))
    }

    /// Both.
    #[must_use]
    pub const fn union(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }

    /// Whether all of `other` are in `self`.
    pub const fn contains(self, other: Effects) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` is in `self`.
    pub const fn intersects(self, other: Effects) -> bool {
        self.0 & other.0 != 0
    }

    /// The effects in words, such as `reads global memory`, in a fixed order; none for an instruction that only computes.
    pub fn describe(self) -> Vec<String> {
        const SPACES: [(Space, &str); 7] = [
            (Space::Generic, "generic"),
            (Space::Global, "global"),
            (Space::Shared, "shared"),
            (Space::Local, "local"),
            (Space::Const, "constant"),
            (Space::Param, "parameter"),
            (Space::Tensor, "tensor"),
        ];
        const MECHANISMS: [(Mechanism, &str); 6] = [
            (Mechanism::CopyGroup, "completes in a cp.async group"),
            (Mechanism::BulkGroup, "completes in a bulk group"),
            (Mechanism::MbarrierTx, "completes by complete_tx on an mbarrier"),
            (Mechanism::WgmmaGroup, "completes in a wgmma group"),
            (Mechanism::TensorCommit, "completes by tcgen05.commit"),
            (Mechanism::TensorWait, "completes by tcgen05.wait"),
        ];
        const OTHERS: [(Effects, &str); 11] = [
            (Effects::COMMIT, "commits asynchronous operations"),
            (Effects::WAIT, "waits for asynchronous operations"),
            (Effects::ASYNC_PROXY, "acts through the asynchronous proxy"),
            (Effects::PROXY_FENCE, "orders accesses of different proxies"),
            (Effects::BARRIER, "waits for other threads"),
            (Effects::CONVERGENT, "needs converged threads"),
            (Effects::UNIFORM, "gives all threads of a warp the same result"),
            (Effects::ORDERED, "is ordered or volatile"),
            (Effects::CARRY, "uses the condition code"),
            (Effects::TERMINATOR, "ends control flow"),
            (Effects::SIDE_EFFECT, "has a side effect"),
        ];
        let reads = SPACES.iter().filter(|(space, _)| self.contains(Effects::read(*space)));
        let writes = SPACES.iter().filter(|(space, _)| self.contains(Effects::write(*space)));
        let mechanisms = MECHANISMS.iter().filter(|(mechanism, _)| self.contains(Effects::mechanism(*mechanism)));
        let others = OTHERS.iter().filter(|(effect, _)| self.contains(*effect));
        reads
            .map(|(_, name)| format!("reads {name} memory"))
            .chain(writes.map(|(_, name)| format!("writes {name} memory")))
            .chain(mechanisms.map(|(_, text)| (*text).to_owned()))
            .chain(others.map(|(_, text)| (*text).to_owned()))
            .collect()
    }

    /// Reads memory of any space.
    pub const fn reads_memory(self) -> bool {
        self.0 & 0x7f != 0
    }

    /// Writes memory of any space.
    pub const fn writes_memory(self) -> bool {
        self.0 & (0x7f << 7) != 0
    }

    /// Nothing but its results: may be removed when they are dead, duplicated and moved.
    pub const fn is_pure(self) -> bool {
        self.0 & !Effects::UNIFORM.0 == 0
    }
}

impl std::ops::BitOr for Effects {
    type Output = Effects;

    fn bitor(self, other: Effects) -> Effects {
        self.union(other)
    }
}
