//! The lanes of a warp that are at different positions.
//!
//! The group at the lowest position runs first, deeper calls before what follows the call, so that lanes that parted
//! meet again at the first place that all reach. Groups at the same position of the same frame become one. A group
//! that looks very long at memory that others may write lets them have a turn: it may wait for them. One that merely
//! computes for long is waited for, so that lanes stay together as far as they can.

use super::Link;

/// Steps, in turns that look at memory, that a group runs while others could, before they do.
const PATIENCE: u64 = 1 << 11;

/// What a group does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Runs.
    Ready,
    /// Waits for lanes of the warp at a convergent instruction.
    Meeting,
    /// Waits at a barrier of the block.
    Barrier(u8),
    /// Waits at the barrier of the cluster.
    Cluster,
}

impl State {
    /// Waits for other warps.
    fn at_barrier(self) -> bool {
        matches!(self, State::Barrier(_) | State::Cluster)
    }
}

/// Lanes at one position.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Lanes.
    pub mask: u32,
    /// Frame.
    pub frame: usize,
    /// Position in the frame's code.
    pub pc: u32,
    /// What it does.
    pub state: State,
}

/// The groups of a warp; none when all lanes have exited.
#[derive(Clone, Default, Debug)]
pub struct Groups {
    /// In no order.
    pub list: Vec<Group>,
    /// Steps of turns that looked at memory, since groups last changed other than by running.
    pub alone: u64,
    turn: usize,
}

impl Groups {
    /// One group at the start of frame 0.
    pub fn new(mask: u32) -> Groups {
        Groups { list: vec![Group { mask, frame: 0, pc: 0, state: State::Ready }], alone: 0, turn: 0 }
    }

    /// Makes one of groups at the same place.
    fn merge(&mut self) {
        let list = &mut self.list;
        let mut i = 0;
        while i < list.len() {
            let mut j = i + 1;
            while j < list.len() {
                let (a, b) = (list[i], list[j]);
                if (a.frame, a.pc) == (b.frame, b.pc) && !a.state.at_barrier() && !b.state.at_barrier() {
                    list[i].mask |= b.mask;
                    list[i].state = State::Ready;
                    list.swap_remove(j);
                    self.alone = 0;
                } else {
                    j += 1;
                }
            }
            i += 1;
        }
    }

    /// The group that runs next; `link` gives the caller of a frame.
    pub fn choose(&mut self, link: impl Fn(usize) -> Link) -> Option<usize> {
        if let [group] = self.list[..] {
            return (group.state == State::Ready).then_some(0);
        }
        self.merge();
        let ready: Vec<usize> = (0..self.list.len()).filter(|i| self.list[*i].state == State::Ready).collect();
        if self.alone > PATIENCE && ready.len() > 1 {
            self.turn += 1;
            return ready.get(self.turn % ready.len()).copied();
        }
        if let [only] = ready[..] {
            return Some(only);
        }
        // Positions from the kernel down to the group.
        let path = |index: usize| {
            let group = &self.list[index];
            let mut path = vec![group.pc];
            let mut frame = group.frame;
            while let Some((caller, pc)) = link(frame) {
                path.push(pc);
                frame = caller;
            }
            path.reverse();
            path
        };
        // A longer path with the same start is inside a call that the shorter one is about to make.
        ready.into_iter().min_by(|a, b| {
            let (a, b) = (path(*a), path(*b));
            let common = a.len().min(b.len());
            a[..common].cmp(&b[..common]).then(b.len().cmp(&a.len()))
        })
    }

    /// The lowest position above the group's at which others of its frame are: there they meet.
    pub fn limit(&self, index: usize) -> u32 {
        let Group { frame, pc, .. } = self.list[index];
        self.list.iter().filter(|g| g.frame == frame && g.pc > pc).map(|g| g.pc).min().unwrap_or(u32::MAX)
    }

    /// Counts steps of a turn in which a group has looked at memory.
    pub fn looked(&mut self, steps: u32) {
        self.alone += u64::from(steps);
    }

    /// Sends lanes of a group to several positions; together they are all its lanes.
    pub fn split(&mut self, index: usize, parts: impl IntoIterator<Item = (u32, u32)>) {
        let group = self.list[index];
        let mut first = true;
        for (pc, mask) in parts.into_iter().filter(|(_, mask)| *mask != 0) {
            let part = Group { mask, pc, ..group };
            if first {
                self.list[index] = part;
            } else {
                self.list.push(part);
            }
            first = false;
        }
        self.alone = 0;
    }

    /// Takes lanes out of a group, which may be all of it, and makes them a group of their own; gives its index.
    pub fn part(&mut self, index: usize, mask: u32) -> usize {
        let group = self.list[index];
        if mask == group.mask {
            return index;
        }
        self.list[index].mask &= !mask;
        self.list.push(Group { mask, ..group });
        self.list.len() - 1
    }

    /// A group has exited. Whoever waits for its lanes need not any more.
    pub fn exit(&mut self, index: usize) -> Group {
        let group = self.list.swap_remove(index);
        for group in self.list.iter_mut().filter(|g| g.state == State::Meeting) {
            group.state = State::Ready;
        }
        group
    }
}
