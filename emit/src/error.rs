//! What emission refuses.

use ptxc_targets::{PtxVersion, Target};

/// Why no PTX is made. Messages name the function and the source line where there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// The target never has what is used.
    #[error("{place}{refusal}")]
    Refused {
        /// Where, ending in `: `.
        place: String,
        /// What is needed and what the target is.
        refusal: String,
    },
    /// The `.version` asked for is too low.
    #[error("{place}{feature} needs PTX ISA version {needed}, but version {asked} was asked for")]
    Version {
        /// Where, ending in `: `, or empty.
        place: String,
        /// What needs more.
        feature: String,
        /// The version it needs.
        needed: PtxVersion,
        /// The version asked for.
        asked: PtxVersion,
    },
    /// A mnemonic that is in no table.
    #[error("{place}{message}")]
    Form {
        /// Where, ending in `: `.
        place: String,
        /// What the tables say.
        message: String,
    },
    /// A name that is used and neither defined nor declared.
    #[error("{place}`{name}` is neither defined nor declared")]
    Undefined {
        /// Where, ending in `: `.
        place: String,
        /// The name.
        name: String,
    },
    /// Two definitions of one name.
    #[error("`{0}` is defined twice")]
    DefinedTwice(String),
    /// A variable that PTX cannot express.
    #[error("variable `{name}`: {message}")]
    Variable {
        /// Its name.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// A feature of a declaration that the target lacks.
    #[error("`{name}`: {feature} needs {needs}, target is {target}")]
    Feature {
        /// The function or variable.
        name: String,
        /// The directive or type.
        feature: &'static str,
        /// What it needs.
        needs: String,
        /// The target.
        target: Target,
    },
    /// Internal variables whose initializers point to each other: PTX cannot declare them ahead.
    #[error("internal variables point to each other, which PTX cannot express: `{0}`; make one of them visible")]
    Cycle(String),
    /// Launch bounds on something that is not launched.
    #[error("`{0}`: launch bounds are for kernels")]
    LaunchBounds(String),
    /// Machine IR that was not taken out of SSA, or that is malformed: an error of the compiler.
    #[error("internal error: {0}")]
    Internal(String),
}
