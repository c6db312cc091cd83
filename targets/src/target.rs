//! Targets and PTX versions.

use crate::tables;
use std::fmt;
use std::str::FromStr;

/// A version of PTX, as `.version` spells it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PtxVersion(u8);

impl PtxVersion {
    /// The lowest version that is written and checked.
    pub const MIN: PtxVersion = PtxVersion(63);
    /// The highest version known.
    pub const MAX: PtxVersion = PtxVersion(95);
    /// Every version from [`PtxVersion::MIN`] to [`PtxVersion::MAX`] that exists.
    pub const ALL: &'static [PtxVersion] = &{
        let numbers = [
            63u8, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77, 78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90, 91, 92, 93, 94,
            95,
        ];
        let mut all = [PtxVersion(0); 27];
        let mut i = 0;
        while i < all.len() {
            all[i] = PtxVersion(numbers[i]);
            i += 1;
        }
        all
    };

    /// The version `major.minor`, if there is one in the known range.
    pub fn new(major: u8, minor: u8) -> Option<PtxVersion> {
        let number = major.checked_mul(10)?.checked_add(minor)?;
        (minor < 10 && Self::ALL.contains(&PtxVersion(number))).then_some(PtxVersion(number))
    }

    /// A version written as `major * 10 + minor` in the tables, raised to the floor.
    pub(crate) fn from_row(number: u8) -> PtxVersion {
        PtxVersion(number.max(Self::MIN.0))
    }

    /// The version as the tables write it, `major * 10 + minor`.
    pub(crate) fn number(self) -> u8 {
        self.0
    }

    /// The part before the dot.
    pub fn major(self) -> u8 {
        self.0 / 10
    }

    /// The part after the dot.
    pub fn minor(self) -> u8 {
        self.0 % 10
    }
}

impl fmt::Display for PtxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major(), self.minor())
    }
}

impl fmt::Debug for PtxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PtxVersion {
    type Err = ParseTargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.split_once('.')
            .and_then(|(major, minor)| PtxVersion::new(major.parse().ok()?, minor.parse().ok()?))
            .ok_or_else(|| ParseTargetError(format!("unknown PTX version `{text}`")))
    }
}

/// A name that is not a target or a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseTargetError(String);

/// The suffix of a target's name (PTX ISA 11.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Suffix {
    /// `sm_100`: code runs on this and every later architecture.
    None,
    /// `sm_100f`: code runs on the later members of the same family.
    Family,
    /// `sm_100a`: code runs on this architecture alone.
    Architecture,
}

/// A `.target`: an architecture number and a suffix.
///
/// Ordered by number, then none, `a`, `f`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target(u8);

impl Target {
    /// Every known target, in order.
    pub const ALL: &'static [Target] = &{
        let mut all = [Target(0); tables::TARGETS.len()];
        let mut i = 0;
        while i < all.len() {
            all[i] = Target(i as u8);
            i += 1;
        }
        all
    };

    fn row(self) -> &'static tables::TargetRow {
        &tables::TARGETS[usize::from(self.0)]
    }

    /// Position in [`Target::ALL`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The name as `.target` spells it: `sm_100a`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The architecture number: 100 for `sm_100a`.
    pub fn sm(self) -> u16 {
        self.row().number
    }

    /// The suffix of the name.
    pub fn suffix(self) -> Suffix {
        match self.row().suffix {
            b'a' => Suffix::Architecture,
            b'f' => Suffix::Family,
            _ => Suffix::None,
        }
    }

    /// The first member of the family that the `f` suffix speaks of, if it has one.
    pub fn family(self) -> Option<u16> {
        Some(self.row().family).filter(|&family| family != 0)
    }

    /// The lowest `.version` that knows the target, at least [`PtxVersion::MIN`].
    pub fn min_ptx(self) -> PtxVersion {
        PtxVersion::from_row(self.row().ptx)
    }

    /// Whether code assembled for `self` may run on a GPU of architecture `gpu`, whose
    /// suffix is ignored (PTX ISA 11.1.2).
    pub fn runs_on(self, gpu: Target) -> bool {
        match self.suffix() {
            Suffix::None => gpu.sm() >= self.sm(),
            Suffix::Family => gpu.sm() >= self.sm() && gpu.family() == self.family(),
            Suffix::Architecture => gpu.sm() == self.sm(),
        }
    }

    /// The largest shared memory of one block, in bytes, after opting in.
    pub fn max_shared_bytes(self) -> u32 {
        u32::from(self.row().shared_kib) * 1024
    }

    /// Shared memory that a block may use without opting in, in bytes.
    pub fn static_shared_bytes(self) -> u32 {
        48 * 1024
    }

    /// The most registers of one thread.
    pub fn max_registers(self) -> u32 {
        255
    }

    /// Thread block clusters exist.
    pub fn has_clusters(self) -> bool {
        self.row().cluster
    }

    /// Loads and stores of 256 bits exist (`ld.global.v8.b32`).
    pub fn has_256_bit_memory(self) -> bool {
        self.row().wide
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Target {
    type Err = ParseTargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Target::ALL
            .iter()
            .copied()
            .find(|target| target.name() == text)
            .ok_or_else(|| ParseTargetError(format!("unknown target `{text}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for &target in Target::ALL {
            assert_eq!(target.name().parse(), Ok(target));
        }
        assert!("sm_101".parse::<Target>().is_err());
        assert!("8.9".parse::<PtxVersion>().is_err());
        assert_eq!("9.4".parse::<PtxVersion>().unwrap().to_string(), "9.4");
    }

    #[test]
    fn suffixes_limit_where_code_runs() {
        let target = |name: &str| name.parse::<Target>().unwrap();
        assert!(target("sm_80").runs_on(target("sm_90a")));
        assert!(target("sm_100f").runs_on(target("sm_103")));
        assert!(!target("sm_100f").runs_on(target("sm_120")));
        assert!(!target("sm_100a").runs_on(target("sm_103")));
    }
}
