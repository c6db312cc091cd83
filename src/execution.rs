//! Running a module's kernels as its directives say (`run/FORMAT.md`): in which form, by which executor, and whether
//! all of them agree.

use std::fmt;
use std::path::Path;

use ptxc_gpu::{Gpu, Kernels};
use ptxc_interp::launch::{Buffer, Failure, Outcome};
use ptxc_interp::ptx;
use ptxc_ir::{Module, SourceLoc};
use ptxc_run::{Case, Emulator, Executor, Interpreter, Prepared, RunFile};
use ptxc_targets::Target;

use crate::compiler::compile_text;
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::options::{Emit, OptLevel, Options, Schedule};
use crate::pipeline;
use crate::verify::verify;

/// What executes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// The interpreter of the IR.
    Interpreter,
    /// The emulator of PTX.
    Emulator,
    /// A GPU.
    Gpu,
}

impl Place {
    /// Name in run files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Place::Interpreter => "interpreter",
            Place::Emulator => "emulator",
            Place::Gpu => "gpu",
        }
    }
}

/// A form of a module and what executes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Form {
    /// What executes it.
    pub place: Place,
    /// After the passes of this level; none is the module as it was written.
    pub level: Option<OptLevel>,
    /// After legalization. PTX always is.
    pub legal: bool,
    /// The target, by name, instead of the one that the file or the GPU asks for.
    pub target: Option<&'static str>,
}

impl Form {
    /// The module as it was written, in the interpreter.
    pub const WRITTEN: Form = Form { place: Place::Interpreter, level: None, legal: false, target: None };

    /// The forms in the interpreter.
    pub const INTERPRETER: &'static [Form] = &[
        Form::WRITTEN,
        Form { level: Some(OptLevel::O3), ..Form::WRITTEN },
        Form { level: Some(OptLevel::O0), legal: true, ..Form::WRITTEN },
        Form { level: Some(OptLevel::O3), legal: true, ..Form::WRITTEN },
    ];

    /// The forms in the emulator: old and new targets lack and have different instructions.
    pub const EMULATOR: &'static [Form] = &[
        Form { level: Some(OptLevel::O0), ..Form::EMULATED },
        Form { level: Some(OptLevel::O3), ..Form::EMULATED },
        Form { level: Some(OptLevel::O3), target: Some("sm_50"), ..Form::EMULATED },
        Form { level: Some(OptLevel::O3), target: Some("sm_75"), ..Form::EMULATED },
        Form { level: Some(OptLevel::O3), target: Some("sm_100a"), ..Form::EMULATED },
    ];

    /// The forms on a GPU.
    pub const GPU: &'static [Form] = &[
        Form { place: Place::Gpu, level: Some(OptLevel::O0), ..Form::EMULATED },
        Form { place: Place::Gpu, level: Some(OptLevel::O3), ..Form::EMULATED },
    ];

    const EMULATED: Form = Form { place: Place::Emulator, level: None, legal: true, target: None };
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.place.name())?;
        if let Some(level) = self.level {
            write!(f, " -{level:?}")?;
        }
        if self.legal && self.place == Place::Interpreter {
            f.write_str(" legal")?;
        }
        if let Some(target) = self.target {
            write!(f, " --sm {target}")?;
        }
        Ok(())
    }
}

/// A module with its directives.
pub struct Program {
    name: String,
    text: String,
    module: Module,
    /// The directives.
    pub file: RunFile,
    /// How instructions are ordered for the emulator and for GPUs.
    pub schedule: Schedule,
}

/// What one form made of one case.
pub struct Run<'a> {
    /// The case, ready to judge results.
    pub prepared: Prepared<'a>,
    /// The buffers after the launches.
    pub buffers: Vec<Buffer>,
    /// How it ended.
    pub result: Result<Outcome, Failure>,
}

impl Program {
    /// Reads a module and its directives. `name` is how messages call the text.
    ///
    /// # Errors
    /// Everything that is wrong with the module, or the first thing that is wrong with the directives.
    pub fn read(name: &str, text: &str) -> Result<Program, Diagnostics> {
        let mut diagnostics = Diagnostics::new(name, text);
        let file = match RunFile::read(text) {
            Ok(file) => file,
            Err(error) => {
                diagnostics.list.push(diagnostic(error));
                return Err(diagnostics);
            }
        };
        let (mut module, spans) = match ptxc_ir::read_module_with_spans(text) {
            Ok(read) => read,
            Err(errors) => {
                let place = |error: ptxc_ir::ReadError| Diagnostic::error(error.message).at(Some(error.span));
                diagnostics.list.extend(errors.into_iter().map(place));
                return Err(diagnostics);
            }
        };
        diagnostics.list.extend(verify(&module, Some(&spans)));
        if diagnostics.has_errors() {
            return Err(diagnostics);
        }
        locate(&mut module, &spans, name, text);
        // What is not known to the tables stays, and is refused where it is reached.
        let _ = ptxc_ir::inline_assembly::expand_module(&mut module);
        Ok(Program { name: name.to_owned(), text: text.to_owned(), module, file, schedule: Schedule::default() })
    }

    /// The target that the file asks for, or one that has most of what there is.
    pub fn target(&self) -> Target {
        self.file.target.unwrap_or(Target::ALL.iter().copied().find(|t| t.name() == "sm_90").unwrap_or(Target::ALL[0]))
    }

    /// Makes what executes a form. `gpu` is needed for forms on a GPU alone.
    ///
    /// # Errors
    /// The module does not compile for the target, or there is no GPU.
    pub fn executor<'g>(
        &self,
        form: Form,
        target: Target,
        gpu: Option<&'g Gpu>,
    ) -> Result<Box<dyn Executor + 'g>, Diagnostics> {
        let failed = |message: &str| {
            let mut diagnostics = Diagnostics::new(&self.name, &self.text);
            diagnostics.list.push(Diagnostic::error(message));
            diagnostics
        };
        match form.place {
            Place::Interpreter => Ok(Box::new(Interpreter::new(self.form(form, target)?))),
            Place::Emulator => {
                let text = self.ptx(form, target)?;
                let refused = |error: ptx::ReadError| failed(&format!("{form}: the PTX is refused: {error}"));
                Ok(Box::new(Emulator::new(ptx::Program::read(&text).map_err(refused)?)))
            }
            Place::Gpu => {
                let gpu = gpu.ok_or_else(|| failed("there is no GPU"))?;
                Ok(Box::new(Kernels { gpu, ptx: self.ptx(form, target)? }))
            }
        }
    }

    /// The module in a form for the interpreter.
    fn form(&self, form: Form, target: Target) -> Result<Module, Diagnostics> {
        let Some(level) = form.level else { return Ok(self.module.clone()) };
        let legalize = form.legal.then_some(pipeline::LEGALIZE);
        let passes = pipeline::names(level).iter().copied().chain(legalize).map(str::to_owned).collect();
        let options = Options { emit: Emit::Ir, passes: Some(passes), ..Options::new(target) };
        let text = compile_text(&self.name, &self.text, &options)?.text;
        ptxc_ir::read_module(&text).map_err(|errors| {
            // What the printer printed: a fault of ours.
            let mut diagnostics = Diagnostics::new(&format!("{} after {form}", self.name), &text);
            let place = |error: ptxc_ir::ReadError| Diagnostic::error(error.message).at(Some(error.span));
            diagnostics.list.extend(errors.into_iter().map(place));
            diagnostics
        })
    }

    fn ptx(&self, form: Form, target: Target) -> Result<String, Diagnostics> {
        let opt_level = form.level.unwrap_or_default();
        let options = Options { opt_level, schedule: self.schedule, ..Options::new(target) };
        compile_text(&self.name, &self.text, &options).map(|output| output.text)
    }

    /// Runs a case. `folder` is where the files that it names lie.
    ///
    /// # Errors
    /// A directive cannot be evaluated. That the kernel fails is [`Run::result`].
    pub fn run<'a>(&'a self, case: &'a Case, executor: &dyn Executor, folder: &Path) -> Result<Run<'a>, Diagnostics> {
        let prepared = ptxc_run::prepare(&self.file, case, &self.module, folder);
        let prepared = prepared.map_err(|error| self.diagnostics([diagnostic(error)]))?;
        let mut buffers = prepared.buffers.clone();
        let result = executor.run(&prepared.launches, &mut buffers);
        Ok(Run { prepared, buffers, result })
    }

    /// Diagnostics about this program's text.
    pub fn diagnostics(&self, list: impl IntoIterator<Item = Diagnostic>) -> Diagnostics {
        let mut diagnostics = Diagnostics::new(&self.name, &self.text);
        diagnostics.list.extend(list);
        diagnostics
    }

    /// Runs all cases in forms, the first of which is what the others are compared with, and says everything that is not
    /// as the directives say.
    pub fn agreement(&self, forms: &[Form], folder: &Path, gpu: Option<&Gpu>) -> Vec<Diagnostic> {
        let mut first: Vec<Option<(Form, Vec<Buffer>)>> = vec![None; self.file.cases.len()];
        let mut problems = Vec::new();
        for form in forms {
            let named = form.target.and_then(|name| name.parse().ok());
            let target = match (named, form.place, gpu) {
                (None, Place::Gpu, Some(gpu)) => native_target(gpu),
                (None, _, _) => Some(self.target()),
                (named, _, _) => named,
            };
            let enough = |target: &Target| self.file.target.is_none_or(|needs| needs.runs_on(*target));
            let Some(target) = target.filter(enough) else { continue };
            let found = match self.executor(*form, target, gpu) {
                Ok(executor) => self.all_cases(*form, executor.as_ref(), folder, &mut first),
                Err(diagnostics) => self.own(diagnostics),
            };
            match (self.file.gap(form.place.name()), found.is_empty()) {
                (None, _) => {
                    let named = |d: Diagnostic| Diagnostic { message: format!("{form}: {}", d.message), ..d };
                    problems.extend(found.into_iter().map(named));
                }
                (Some(_), false) => {}
                (Some(reason), true) => {
                    problems.push(Diagnostic::error(format!("{form}: the gap `{reason}` is closed: remove it")));
                }
            }
        }
        problems
    }

    fn all_cases(
        &self,
        form: Form,
        executor: &dyn Executor,
        folder: &Path,
        first: &mut [Option<(Form, Vec<Buffer>)>],
    ) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        for (case, first) in self.file.cases.iter().zip(first) {
            // What is wrong with a program need not be wrong any more after the passes.
            if form != Form::WRITTEN && case.failure().is_some() {
                continue;
            }
            let found = match self.run(case, executor, folder) {
                Ok(run) => self.compare(case, form, run, first),
                Err(diagnostics) => diagnostics.list,
            };
            let prefix = if case.name.is_empty() { String::new() } else { format!("case {}: ", case.name) };
            problems.extend(found.into_iter().map(|d| Diagnostic { message: prefix.clone() + &d.message, ..d }));
        }
        problems
    }

    /// What is wrong with a run: how it ended, what came out, how that differs from the first form's.
    fn compare(&self, case: &Case, form: Form, run: Run, first: &mut Option<(Form, Vec<Buffer>)>) -> Vec<Diagnostic> {
        let mut problems = self.judge(case, run.result, form);
        if !problems.is_empty() || case.failure().is_some() {
            return problems;
        }
        let mut prepared = run.prepared;
        match prepared.judge(&run.buffers) {
            Ok(mismatches) => {
                problems.extend(mismatches.into_iter().map(|m| Diagnostic::error(m.message).at(Some(m.span))));
            }
            Err(error) => problems.push(diagnostic(error)),
        }
        match first {
            Some((other, buffers)) => {
                let differences = prepared.differences(buffers, &run.buffers);
                let say = |text: String| Diagnostic::error(format!("differs from {other}: {text}"));
                problems.extend(differences.into_iter().map(say));
            }
            None => *first = Some((form, run.buffers)),
        }
        problems
    }

    /// What is wrong with how a run ended.
    fn judge(&self, case: &Case, result: Result<Outcome, Failure>, form: Form) -> Vec<Diagnostic> {
        let error = |message: String| vec![Diagnostic::error(message)];
        match (result, case.failure()) {
            (Err(failure), Some(wanted)) if failure.to_string().contains(wanted) => Vec::new(),
            (Err(failure), Some(wanted)) => error(format!("fails with `{failure}`, which does not contain `{wanted}`")),
            (Err(failure), None) => error(failure.to_string()),
            (Ok(_), Some(wanted)) => error(format!("should fail with `{wanted}`")),
            (Ok(outcome), None) => {
                let wanted = case.warning();
                let expected = |warning: &String| wanted.is_some_and(|text| warning.contains(text));
                if let Some(text) = wanted.filter(|_| form == Form::WRITTEN && !outcome.warnings.iter().any(expected)) {
                    return error(format!("should warn of `{text}`"));
                }
                outcome.warnings.into_iter().filter(|warning| !expected(warning)).map(Diagnostic::error).collect()
            }
        }
    }

    /// Diagnostics of a compilation of this text; those about other texts keep their excerpt in the message.
    fn own(&self, diagnostics: Diagnostics) -> Vec<Diagnostic> {
        if diagnostics.internal.is_none() && diagnostics.source == self.text {
            return diagnostics.list;
        }
        vec![Diagnostic::error(diagnostics.to_string().trim_end().to_owned())]
    }
}

/// An error about directives as a diagnostic.
pub fn diagnostic(error: ptxc_run::Error) -> Diagnostic {
    Diagnostic::error(error.message).at(Some(error.span))
}

/// The target that gives a GPU everything it has: from compute capability 9.0 on the one with the suffix `a`.
pub fn native_target(gpu: &Gpu) -> Option<Target> {
    let (major, minor) = gpu.capability();
    format!("sm_{major}{minor}{}", if major >= 9 { "a" } else { "" }).parse().ok()
}

/// Gives instructions without a source location their place in the text, for messages of the interpreter.
fn locate(module: &mut Module, spans: &ptxc_ir::SpanMap, name: &str, text: &str) {
    let number = module.files.iter().map(|(number, _)| *number).max().unwrap_or(0) + 1;
    module.files.push((number, name.to_owned()));
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    for (id, func) in module.funcs.iter_mut() {
        let insts: Vec<ptxc_ir::Inst> = func.dfg.insts.keys().collect();
        for inst in insts {
            let span = spans.func(id).inst(inst);
            if func.dfg.locs[inst].line != 0 || span.is_empty() {
                continue;
            }
            let line = starts.partition_point(|start| *start <= span.start);
            let begin = starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
            let col = span.start.saturating_sub(begin) + 1;
            func.dfg.locs[inst] = SourceLoc { file: number, line: line as u32, col: col as u32 };
        }
    }
}
