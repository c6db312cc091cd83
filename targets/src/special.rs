//! Special registers (PTX ISA, chapter 10).

use crate::form::Refusal;
use crate::tables;
use crate::{PtxVersion, RegType, Target};
use std::fmt;

/// The widest group of threads that always reads one and the same value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Uniformity {
    /// Threads of a warp may differ.
    Thread,
    /// The same for a warp.
    Warp,
    /// The same for a block.
    Cta,
    /// The same for a cluster.
    Cluster,
    /// The same for a grid.
    Grid,
}

/// A special register or one component of it: `%tid` and `%tid.x` are two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpecialReg(u8);

impl SpecialReg {
    /// Every special register, in the table's order.
    pub const ALL: &'static [SpecialReg] = &{
        let mut all = [SpecialReg(0); tables::SPECIAL.len()];
        let mut i = 0;
        while i < all.len() {
            all[i] = SpecialReg(i as u8);
            i += 1;
        }
        all
    };

    /// The register spelled `name`, with or without the leading `%`.
    pub fn from_name(name: &str) -> Option<SpecialReg> {
        let bare = name.strip_prefix('%').unwrap_or(name);
        let at = tables::SPECIAL_BY_NAME
            .binary_search_by(|&index| tables::SPECIAL[usize::from(index)].name[1..].cmp(bare))
            .ok()?;
        Some(SpecialReg(tables::SPECIAL_BY_NAME[at]))
    }

    fn row(self) -> &'static tables::SpecialRow {
        &tables::SPECIAL[usize::from(self.0)]
    }

    /// Position in [`SpecialReg::ALL`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The name with its `%`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The type of the register, or of each of its lanes.
    pub fn ty(self) -> RegType {
        self.row().ty
    }

    /// 4 for `%tid`, `%ntid` and their like, else 1.
    pub fn lanes(self) -> u8 {
        self.row().lanes
    }

    /// Who reads the same value.
    pub fn uniformity(self) -> Uniformity {
        match self.row().uniform {
            0 => Uniformity::Thread,
            1 => Uniformity::Warp,
            2 => Uniformity::Cta,
            3 => Uniformity::Cluster,
            _ => Uniformity::Grid,
        }
    }

    /// Two reads may give two values: clocks, counters, and what preemption changes.
    pub fn is_volatile(self) -> bool {
        self.row().volatile
    }

    /// The lowest `.version` that has it on `target`.
    ///
    /// # Errors
    /// The target does not have it.
    pub fn requirement(self, target: Target) -> Result<PtxVersion, Refusal> {
        crate::form::requirement_on(self.row().requirement, target, self.name())
    }
}

impl fmt::Display for SpecialReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for SpecialReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_register_is_found_by_its_name() {
        for &register in SpecialReg::ALL {
            assert_eq!(SpecialReg::from_name(register.name()), Some(register));
        }
        let tid = SpecialReg::from_name("tid.x").unwrap();
        assert_eq!((tid.ty(), tid.uniformity()), (RegType::U32, Uniformity::Thread));
        assert_eq!(SpecialReg::from_name("%nonsense"), None);
    }
}
