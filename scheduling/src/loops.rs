//! How many loops a block is in.

use cranelift_entity::SecondaryMap;
use ptxc_mir::{Block, Cfg, Function};

/// The natural loops of a function.
#[derive(Debug, Default)]
pub struct Loops {
    /// The innermost loop of a block, plus one.
    innermost: SecondaryMap<Block, u32>,
    /// The loop right around each loop; itself when there is none. Outer loops have the higher numbers.
    around: Vec<u32>,
    depths: Vec<u32>,
}

impl Loops {
    /// Finds the loops of a function, in time near linear in its edges: inner loops first, each of which an outer one
    /// passes as a whole.
    pub fn of(func: &Function, cfg: &Cfg) -> Loops {
        let mut loops = Loops { innermost: SecondaryMap::with_capacity(func.blocks.len()), ..Loops::default() };
        let mut headers: Vec<Block> = Vec::new();
        // The outermost loop known around each loop; shortened on the way.
        let mut top: Vec<u32> = Vec::new();
        let mut pending: Vec<Block> = Vec::new();
        for &header in cfg.postorder() {
            pending.extend(cfg.predecessors(header).iter().filter(|latch| cfg.dominates(header, **latch)));
            if pending.is_empty() {
                continue;
            }
            let number = headers.len() as u32;
            headers.push(header);
            top.push(number);
            loops.around.push(number);
            while let Some(block) = pending.pop() {
                let Some(found) = loops.innermost[block].checked_sub(1) else {
                    loops.innermost[block] = number + 1;
                    if block != header {
                        pending.extend(cfg.predecessors(block));
                    }
                    continue;
                };
                let inner = outermost(&mut top, found);
                if inner != number {
                    top[inner as usize] = number;
                    loops.around[inner as usize] = number;
                    pending.extend(cfg.predecessors(headers[inner as usize]));
                }
            }
            // A header whose latch is an inner loop's block, or that is its own latch.
            if loops.innermost[header] == 0 {
                loops.innermost[header] = number + 1;
            }
        }
        loops.depths = vec![1; headers.len()];
        for number in (0..headers.len()).rev() {
            let around = loops.around[number] as usize;
            if around != number {
                loops.depths[number] = loops.depths[around] + 1;
            }
        }
        loops
    }

    /// How many loops a block is in.
    pub fn depth(&self, block: Block) -> u32 {
        self.innermost[block].checked_sub(1).map_or(0, |number| self.depths[number as usize])
    }
}

/// The outermost loop around one, with the way to it made shorter.
fn outermost(top: &mut [u32], mut number: u32) -> u32 {
    while top[number as usize] != number {
        let next = top[top[number as usize] as usize];
        top[number as usize] = next;
        number = next;
    }
    number
}
