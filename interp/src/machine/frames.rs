//! The calls that lanes of a warp are inside.
//!
//! A frame holds the values of one call for all lanes that make it: lanes that come to the call later join those that
//! are inside it, as the threads of a warp meet in the code of a function and not in a copy of it that each entered.

use super::Lanes;

/// The caller's frame and the call's position in it; `None` in the kernel.
pub type Link = Option<(usize, u32)>;

/// One call, or the kernel.
#[derive(Clone, Default, Debug)]
pub struct Frame<V> {
    /// Number of the function.
    pub function: usize,
    /// The values of each lane.
    pub values: V,
    /// Where it was called.
    pub caller: Link,
    /// Lanes that are inside it.
    pub live: u32,
    /// Calls below this one.
    pub depth: u32,
    /// Heights of the lanes' stacks at the call, where the function takes from them.
    pub marks: Option<Box<Lanes>>,
}

/// The frames of a warp. Those that all lanes have left are used again.
#[derive(Clone, Default, Debug)]
pub struct Frames<V> {
    list: Vec<Frame<V>>,
    free: Vec<usize>,
}

impl<V: Default> Frames<V> {
    /// The frame of the kernel alone, with number 0.
    pub fn new(kernel: Frame<V>) -> Frames<V> {
        Frames { list: vec![kernel], free: Vec::new() }
    }

    /// A frame.
    pub fn get(&self, index: usize) -> &Frame<V> {
        &self.list[index]
    }

    /// A frame.
    pub fn get_mut(&mut self, index: usize) -> &mut Frame<V> {
        &mut self.list[index]
    }

    /// The frame of a call of `function` that other lanes are inside.
    pub fn inside(&self, caller: Link, function: usize) -> Option<usize> {
        self.list.iter().position(|f| f.live != 0 && f.caller == caller && f.function == function)
    }

    /// A frame for a call that no lane is inside yet. Its values are those of some earlier call.
    pub fn open(&mut self, caller: Link, function: usize, depth: u32) -> usize {
        let index = self.free.pop().unwrap_or_else(|| {
            self.list.push(Frame::default());
            self.list.len() - 1
        });
        let frame = &mut self.list[index];
        (frame.function, frame.caller, frame.depth) = (function, caller, depth);
        (frame.live, frame.marks) = (0, None);
        index
    }

    /// Lanes leave a frame.
    pub fn leave(&mut self, index: usize, mask: u32) {
        let frame = &mut self.list[index];
        frame.live &= !mask;
        if frame.live == 0 {
            frame.caller = None;
            self.free.push(index);
        }
    }
}
