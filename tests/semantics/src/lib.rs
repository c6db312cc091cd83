//! What single instructions compute, recorded on a GPU.
//!
//! `rows/*.txt` list instructions with the kinds of their operands ([`row`] describes the notation). [`inputs`] turns the
//! kinds into operands: all of them where they are few, the edges and random ones elsewhere. [`kernel`] writes a kernel
//! that applies a case's instructions to all its operands. Its results are hashed block by block, some are kept as they
//! are ([`record`]); `data/*.txt` hold what a GPU computed. Whoever executes the same kernels, or knows the same
//! functions, compares with that and needs no GPU.
//!
//! The recorder is `ptxc-gpu-tests --record-semantics DIR`, the comparison `interp/tests/semantics.rs`.

pub mod approximation;
pub mod inputs;
pub mod kernel;
pub mod record;
pub mod row;

pub use inputs::{Inputs, Kind};
pub use record::{Difference, Recording};
pub use row::{Case, Language};

/// A file of rows with what was recorded of it.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Name of the files, without suffix.
    pub name: &'static str,
    /// What the rows are written in.
    pub language: Language,
    /// The rows.
    pub rows: &'static str,
    /// The recorded results; empty where nothing has been recorded.
    pub data: &'static str,
}

impl Family {
    /// The cases of the rows.
    ///
    /// # Errors
    /// Names the line that is not understood.
    pub fn cases(&self) -> Result<Vec<Case>, String> {
        row::read(self.language, self.rows).map_err(|error| format!("{}.txt:{error}", self.name))
    }
}

macro_rules! family {
    ($name:literal, $language:ident) => {
        Family {
            name: $name,
            language: Language::$language,
            rows: include_str!(concat!("../rows/", $name, ".txt")),
            data: include_str!(concat!("../data/", $name, ".txt")),
        }
    };
}

/// All families.
pub const FAMILIES: &[Family] = &[
    family!("integer", Ptx),
    family!("logic", Ptx),
    family!("compare", Ptx),
    family!("single", Ptx),
    family!("double", Ptx),
    family!("half", Ptx),
    family!("convert", Ptx),
    family!("packed", Ptx),
    family!("exchange", Ptx),
    family!("video", Ptx),
    family!("matrix", Ptx),
    family!("approximate", Ptx),
    family!("operations", Ir),
];
