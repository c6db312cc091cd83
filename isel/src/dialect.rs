//! What may be written: a target and the newest version of PTX. Legalization and selection ask nothing else whether there
//! is an instruction, and the floors are the instruction tables'.

use ptxc_targets::{Form, PtxVersion, Refusal, Shape, Target, Tok, resolve, variants};

/// A target, and the newest version of PTX that may be written for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Dialect {
    /// The target.
    pub target: Target,
    /// The newest version.
    pub newest: PtxVersion,
}

impl Dialect {
    /// Every version may be written where none is named. One that does not know the target is refused when the module is
    /// written, as a whole; here it counts as the first that does.
    pub fn new(target: Target, newest: Option<PtxVersion>) -> Dialect {
        Dialect { target, newest: newest.unwrap_or(PtxVersion::MAX).max(target.min_ptx()) }
    }

    /// Why an instruction cannot be written; `name` is how the message calls it.
    pub fn refusal(self, form: &Form, name: impl FnOnce() -> String) -> Option<String> {
        self.judge(form.requirement(self.target), name)
    }

    /// The same of what has this requirement.
    pub fn judge(self, requirement: Result<PtxVersion, Refusal>, name: impl FnOnce() -> String) -> Option<String> {
        match requirement {
            Err(refusal) => Some(refusal.to_string()),
            Ok(version) if version <= self.newest => None,
            Ok(version) => {
                Some(format!("{} needs PTX ISA version {version}, but version {} was asked for", name(), self.newest))
            }
        }
    }

    /// Whether the instruction of these pieces and operands can be written.
    pub fn has_form(self, toks: &[Tok], operands: &[Shape]) -> bool {
        let written = |form: Form| form.requirement(self.target).is_ok_and(|version| version <= self.newest);
        resolve(toks, operands).is_ok_and(written)
    }

    /// Whether the instruction of this mnemonic and these operands can be written.
    pub fn has(self, mnemonic: &str, operands: &[Shape]) -> bool {
        self.lacks(mnemonic, operands).is_none()
    }

    /// Why the instruction of this mnemonic and these operands cannot be written.
    pub fn lacks(self, mnemonic: &str, operands: &[Shape]) -> Option<String> {
        let toks: Option<Vec<Tok>> = mnemonic.split('.').map(Tok::from_text).collect();
        let name = || format!("`{mnemonic}`");
        match toks.map(|toks| resolve(&toks, operands)) {
            Some(Ok(form)) => self.refusal(&form, name),
            Some(Err(error)) => Some(error.to_string()),
            None => Some(format!("{} is no instruction", name())),
        }
    }

    /// Whether these pieces can be written with some operands.
    pub fn has_some_form(self, toks: &[Tok]) -> bool {
        let written = |version: PtxVersion| version <= self.newest;
        variants(toks).iter().any(|variant| variant.requirement(self.target).is_ok_and(written))
    }
}

/// Whether the machine compares numbers of f64 about as fast as it works on their bits (CUDA C++ Programming Guide, arithmetic
/// instructions: half as many f64 as f32 operations, or nearly).
pub(crate) fn has_fast_doubles(target: Target) -> bool {
    matches!(target.sm(), 60 | 70 | 72 | 80 | 90 | 100)
}
