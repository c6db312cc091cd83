//! Where lanes go after a step.

use super::{Stop, lanes};

/// Where the lanes that execute a step go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Flow {
    /// To the next step.
    Next,
    /// To a target of the step.
    Goto(u32),
    /// To several targets: which lanes go where; lanes that are not named go to the next step.
    Switch(Vec<(u32, u32)>),
    /// Into a function, by number, with these lanes; the others execute the step again.
    Call(usize, u32),
    /// Back to the caller.
    Return,
    /// To their end.
    Exit,
    /// They wait for other lanes of the warp to come to this step.
    Meet,
    /// These lanes have executed it, the others stay and execute it again when more have come.
    Executed(u32),
    /// They wait at a barrier of the block.
    Barrier(u8),
    /// They wait at the barrier of the cluster.
    Cluster,
}

impl Flow {
    /// Each lane of `mask` to the target that it asks for.
    ///
    /// # Errors
    /// What a lane says is wrong.
    pub fn each(mask: u32, mut target: impl FnMut(usize) -> Result<u32, Stop>) -> Result<Flow, Stop> {
        let mut parts: Vec<(u32, u32)> = Vec::new();
        for lane in lanes(mask) {
            let to = target(lane)?;
            match parts.iter_mut().find(|(known, _)| *known == to) {
                Some((_, mask)) => *mask |= 1 << lane,
                None => parts.push((to, 1 << lane)),
            }
        }
        Ok(match parts[..] {
            [(to, _)] => Flow::Goto(to),
            _ => Flow::Switch(parts),
        })
    }

    /// What lanes have done that execute a step together: `party` of the lanes `all` that came.
    pub fn together(party: u32, all: u32) -> Flow {
        if party == all { Flow::Next } else { Flow::Executed(party) }
    }
}
