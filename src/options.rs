//! What a compilation is asked to do.

use ptxc_targets::{PtxVersion, Target};

/// How much work goes into better code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum OptLevel {
    /// Fast compilation, code close to the input.
    O0,
    /// Cheap clean-ups.
    O1,
    /// The default.
    #[default]
    O2,
    /// Everything.
    O3,
}

impl OptLevel {
    /// Every level, lowest first.
    pub const ALL: [OptLevel; 4] = [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3];

    /// The level of that number, 0 to 3.
    pub fn from_number(number: u8) -> Option<OptLevel> {
        OptLevel::ALL.get(usize::from(number)).copied()
    }
}

/// The form in which the result is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Emit {
    /// PTX text.
    #[default]
    Ptx,
    /// The IR after the passes of the level, before legalization.
    Ir,
    /// The machine IR after selection, in SSA form.
    Mir,
    /// When each instruction would issue on the target's machine, as text.
    Sched,
    /// The same as a drawing, in SVG.
    SchedDrawing,
}

/// Which source positions the output carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum DebugInfo {
    /// None.
    #[default]
    None,
    /// `.file` and `.loc`.
    Lines,
    /// Lines and DWARF sections.
    Full,
}

/// Which intermediate forms are handed to the [`crate::Observer`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum PrintAfter {
    /// None.
    #[default]
    Nothing,
    /// The form after each of these steps.
    Steps(Vec<String>),
    /// The form after every step.
    All,
}

impl PrintAfter {
    /// Whether the form after this step is wanted.
    pub fn wants(&self, step: &str) -> bool {
        match self {
            PrintAfter::Nothing => false,
            PrintAfter::Steps(names) => names.iter().any(|name| name == step),
            PrintAfter::All => true,
        }
    }
}

/// A library of LLVM bitcode, such as libdevice.
#[derive(Clone, PartialEq, Eq)]
pub struct Library {
    /// How messages call it.
    pub name: String,
    /// Its contents.
    pub bytes: std::sync::Arc<[u8]>,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Library({:?}, {} bytes)", self.name, self.bytes.len())
    }
}

/// How instructions are ordered after selection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Schedule {
    /// As the level says: by latencies from `-O2` on, in source order below.
    #[default]
    Level,
    /// In source order.
    Off,
    /// By latencies, with at most so many 32-bit registers live where that can be.
    Registers(u32),
    /// In any order that the dependences allow, by this seed: for tests of the dependences.
    Random(u64),
}

/// Options of one compilation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The `.target` to compile for.
    pub target: Target,
    /// Which pipeline runs.
    pub opt_level: OptLevel,
    /// The `.version` to write; `None` is the lowest that target and instructions need.
    pub ptx_version: Option<PtxVersion>,
    /// What to produce.
    pub emit: Emit,
    /// IR passes to run instead of the level's, by name ([`ptxc_opt::PASSES`], and `legalize`).
    pub passes: Option<Vec<String>>,
    /// How instructions are ordered.
    pub schedule: Schedule,
    /// What to print between steps.
    pub print_after: PrintAfter,
    /// Run the verifier after every step. On by default in builds with debug assertions.
    pub verify_each: bool,
    /// Source positions in the output.
    pub debug_info: DebugInfo,
    /// Libraries of LLVM bitcode, of which a module of LLVM IR gets the functions that it needs.
    pub libraries: Vec<Library>,
    /// Tell which rules were applied, and what became of scheduled blocks ([`crate::Output::remarks`]).
    pub remarks: bool,
    /// Threads that work on the functions of a module; 0 is one per processor. The output does not depend on it.
    pub jobs: usize,
}

impl Options {
    /// The defaults for a target: `-O2`, PTX, minimal `.version`, one thread.
    pub fn new(target: Target) -> Options {
        Options {
            target,
            opt_level: OptLevel::default(),
            ptx_version: None,
            emit: Emit::default(),
            passes: None,
            schedule: Schedule::default(),
            print_after: PrintAfter::default(),
            verify_each: cfg!(debug_assertions),
            debug_info: DebugInfo::default(),
            libraries: Vec::new(),
            remarks: false,
            jobs: 1,
        }
    }
}
