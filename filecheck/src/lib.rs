//! FileCheck, and a runner for tests written in the style of lit.
//!
//! [`Checker`] matches text against the `CHECK:` directives of another text, as LLVM's tool of that name
//! does; [`command`] is the same as a command line. [`lit`] runs test files whose comments say which
//! commands to run. [`update`] writes the directives of a test from the output of its commands.
//!
//! ```
//! use filecheck::{Checker, Options};
//!
//! let check = "CHECK: add [[REG:r[0-9]+]]\nCHECK-NEXT: use [[REG]]\n";
//! let result = Checker::new(Options::default()).check("test", check, "output", "add r1\nuse r1\n");
//! assert!(result.passed());
//! ```

pub mod command;
pub mod ere;
pub mod lit;
pub mod update;

mod checks;
mod directive;
mod dump;
mod expression;
mod matching;
mod near_miss;
mod number;
mod options;
mod pattern;
mod report;
mod source;
mod variables;

pub use directive::{Directive, Kind};
pub use dump::DUMP_HELP;
pub use options::{Definition, DumpFilter, DumpInput, Options};
pub use report::{Mark, Outcome};
pub use source::{Location, Message, Severity, SourceId, Sources};

use matching::Matching;
use report::Report;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Every directive was satisfied.
    Passed,
    /// The input is not what the directives demand.
    Failed,
    /// The options or directives make no sense: nothing was checked.
    Invalid,
    /// The input is empty, which is rarely intended, and the options do not allow it.
    EmptyInput,
}

/// Checks inputs under given options.
#[derive(Clone, Debug)]
pub struct Checker {
    options: Options,
}

/// What a check found.
#[derive(Debug)]
pub struct CheckResult {
    /// How it ended.
    pub status: Status,
    /// All there is to say, in order.
    pub messages: Vec<Message>,
    /// Marks in the input; none unless a dump is to be made.
    pub marks: Vec<Mark>,
    /// The texts that messages and marks refer to.
    pub sources: Sources,
    options: Options,
    input: SourceId,
    check_file: SourceId,
    implicit: Vec<SourceId>,
}

impl Checker {
    /// A checker.
    pub fn new(options: Options) -> Self {
        let mut options = options;
        options.verbose |= options.very_verbose;
        Self { options }
    }

    /// Matches `input` against the directives in `check`. Names are for messages.
    pub fn check(
        &self,
        check_name: &str,
        check: impl Into<Vec<u8>>,
        input_name: &str,
        input: impl Into<Vec<u8>>,
    ) -> CheckResult {
        let mut sources = Sources::default();
        let (mut check, mut input) = (check.into(), input.into());
        source::canonicalize(&mut check, self.options.strict_whitespace);
        source::canonicalize(&mut input, self.options.strict_whitespace);
        let is_empty = input.is_empty();
        let check_file = sources.add(check_name, check);
        let input = sources.add(input_name, input);
        let mut result = CheckResult {
            status: Status::Invalid,
            messages: Vec::new(),
            marks: Vec::new(),
            sources,
            options: self.options.clone(),
            input,
            check_file,
            implicit: Vec::new(),
        };
        let mut checks = match checks::read(&self.options, &mut result.sources, check_file) {
            Ok(checks) => checks,
            Err(messages) => {
                result.messages = messages;
                return result;
            }
        };
        result.implicit = std::mem::take(&mut checks.implicit);
        if is_empty && !self.options.allow_empty {
            result.status = Status::EmptyInput;
            return result;
        }
        let dump = self.options.dump_input != DumpInput::Never;
        let mut report = Report { messages: Vec::new(), marks: dump.then(Vec::new) };
        let outcome = Matching {
            options: &self.options,
            input: result.sources.text(input),
            source: input,
            variables: &mut checks.variables,
            report: &mut report,
        }
        .run(&checks.steps);
        result.messages = report.messages;
        result.marks = report.marks.unwrap_or_default();
        result.status = if outcome.is_ok() { Status::Passed } else { Status::Failed };
        result
    }
}

impl CheckResult {
    /// Whether every directive was satisfied.
    pub fn passed(&self) -> bool {
        self.status == Status::Passed
    }

    /// The messages, and after them the input dump if the options ask for one.
    pub fn render(&self, color: bool) -> Vec<u8> {
        let mut out = Vec::new();
        for message in &self.messages {
            out.extend_from_slice(&self.sources.render(message, color));
        }
        let wanted = match self.options.dump_input {
            DumpInput::Always => matches!(self.status, Status::Passed | Status::Failed),
            DumpInput::Fail => self.status == Status::Failed,
            DumpInput::Never | DumpInput::Help => false,
        };
        if wanted {
            self.dump(&mut out, color);
        }
        out
    }

    fn dump(&self, out: &mut Vec<u8>, color: bool) {
        let default = match self.options.dump_input {
            DumpInput::Always => DumpFilter::All,
            _ => DumpFilter::Error,
        };
        let header = format!(
            "\nInput file: {}\nCheck file: {}\n\n\
             -dump-input=help explains the following input dump.\n\n",
            self.sources.name(self.input),
            self.sources.name(self.check_file)
        );
        out.extend_from_slice(header.as_bytes());
        dump::Dump {
            options: &self.options,
            filter: self.options.dump_filter.unwrap_or(default),
            sources: &self.sources,
            input: self.input,
            check_file: self.check_file,
            implicit: &self.implicit,
            marks: &self.marks,
            color,
        }
        .write(out);
    }
}
