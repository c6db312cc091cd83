//! One compilation, from text or module to output: runs the lists of [`crate::pipeline`], keeps time, prints and
//! verifies between steps, and turns errors of every stage into diagnostics.

mod link;
mod scheduling;

use std::any::Any;
use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use cranelift_entity::PrimaryMap;
use ptxc_ir::{FuncAttrs, FuncId, Function, Module, SpanMap, Symbol};
use ptxc_isel::SelectError;
use ptxc_opt::Pass;
use ptxc_targets::Target;
use rayon::prelude::*;

use crate::diagnostics::{Diagnostic, Diagnostics, InternalError, Severity};
use crate::input::Format;
use crate::options::{DebugInfo, Emit, OptLevel, Options, PrintAfter};
use crate::pipeline::{self, IrStep};
use crate::report::{Remark, Report};
use crate::verify::verify;

/// What a successful compilation gives.
#[derive(Clone, Debug)]
pub struct Output {
    /// The PTX, IR or machine IR text that [`Options::emit`] asks for.
    pub text: String,
    /// Warnings; there are no errors in it.
    pub warnings: Diagnostics,
    /// Rules that were applied, where [`Options::remarks`] asks for them: step by step, by function.
    pub remarks: Vec<Remark>,
    /// Times and counts.
    pub report: Report,
}

impl Output {
    /// Remarks as people read them: those of the steps and rules of these names, or all.
    pub fn remarks_of(&self, names: &[&str]) -> Diagnostics {
        let wanted =
            |remark: &&Remark| names.is_empty() || names.contains(&remark.step) || names.contains(&remark.rule);
        let text = |remark: &Remark| {
            let detail = remark.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
            let message = format!("{}: `{}`{detail}", remark.step, remark.rule);
            let at = Diagnostic::remark(message).at(remark.span.clone());
            let at = if remark.span.is_some() { at } else { at.note(format!("in @{}", remark.function)) };
            match &remark.origin {
                Some(origin) => at.note(format!("from {origin}")),
                None => at,
            }
        };
        let list = self.remarks.iter().filter(wanted).map(text).collect();
        Diagnostics { list, ..Diagnostics::new(&self.warnings.source_name, &self.warnings.source) }
    }
}

/// Receives intermediate forms as [`Options::print_after`] asks.
pub trait Observer {
    /// The module after `step`, as IR or machine IR text.
    fn after(&mut self, step: &str, text: &str);
}

/// Compiles IR text. `name` is how messages call the source.
///
/// # Errors
/// Everything that is wrong with the text, or an internal error.
pub fn compile_text(name: &str, text: &str, options: &Options) -> Result<Output, Diagnostics> {
    Session::new(name, text, options, None).compile_text()
}

/// [`compile_text`] with an observer of the steps.
///
/// # Errors
/// As [`compile_text`].
pub fn compile_text_observed(
    name: &str,
    text: &str,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Output, Diagnostics> {
    Session::new(name, text, options, Some(observer)).compile_text()
}

/// Compiles IR text, LLVM IR or LLVM bitcode; [`Format::of`] says which it is. `name` is how messages call the source.
///
/// # Errors
/// Everything that is wrong with the input, or an internal error.
pub fn compile_bytes(name: &str, bytes: &[u8], options: &Options) -> Result<Output, Diagnostics> {
    compile_input(name, bytes, options, None)
}

/// [`compile_bytes`] with an observer of the steps.
///
/// # Errors
/// As [`compile_bytes`].
pub fn compile_bytes_observed(
    name: &str,
    bytes: &[u8],
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Output, Diagnostics> {
    compile_input(name, bytes, options, Some(observer))
}

fn compile_input<'a>(
    name: &str,
    bytes: &[u8],
    options: &'a Options,
    observer: Option<&'a mut dyn Observer>,
) -> Result<Output, Diagnostics> {
    match Format::of(name, bytes) {
        Format::Ir => match std::str::from_utf8(bytes) {
            Ok(text) => Session::new(name, text, options, observer).compile_text(),
            Err(error) => {
                let at = error.valid_up_to();
                let text = String::from_utf8_lossy(bytes);
                let mut diagnostics = Diagnostics::new(name, &text);
                let message = format!("this is not UTF-8 text: byte 0x{:02x}", bytes[at]);
                diagnostics.list.push(Diagnostic::error(message).at(Some(at..at + 1)));
                Err(diagnostics)
            }
        },
        format => Session::new(name, "", options, observer).compile_llvm(bytes, format),
    }
}

/// Compiles LLVM IR, text or bitcode, as `prepare` says when it has seen, and perhaps changed, the module.
///
/// # Errors
/// Everything that is wrong with the input, the error of `prepare`, or an internal error.
pub fn compile_llvm_prepared(
    name: &str,
    bytes: &[u8],
    prepare: impl FnOnce(&mut ptxc_llvm::Module) -> Result<Options, Diagnostic>,
) -> Result<Output, Diagnostics> {
    let format = match Format::of(name, bytes) {
        Format::LlvmBitcode => Format::LlvmBitcode,
        _ => Format::LlvmText,
    };
    // Reading asks for no options.
    let options = Options::new(Target::ALL[0]);
    let mut session = Session::new(name, "", &options, None);
    let mut module = match session.read_llvm(bytes, format) {
        Ok(module) => module,
        Err(Stop) => {
            session.place_llvm(bytes, format, true);
            return Err(session.diagnostics);
        }
    };
    match prepare(&mut module) {
        Ok(options) => Session::new(name, "", &options, None).compile_llvm_module(&module, bytes, format),
        Err(error) => {
            session.diagnostics.list.push(error);
            Err(session.diagnostics)
        }
    }
}

/// Compiles modules built in memory.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let module = ptxc::ir::Module::new();
/// let output = ptxc::Compiler::new("sm_90".parse()?).opt_level(ptxc::OptLevel::O3).compile(&module)?;
/// assert!(output.text.contains(".target sm_90"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Compiler {
    options: Options,
}

impl Compiler {
    /// A compiler for that target with the default options.
    pub fn new(target: Target) -> Compiler {
        Compiler { options: Options::new(target) }
    }

    /// The same with another level.
    #[must_use]
    pub fn opt_level(mut self, level: OptLevel) -> Compiler {
        self.options.opt_level = level;
        self
    }

    /// The same with these options.
    #[must_use]
    pub fn options(mut self, options: Options) -> Compiler {
        self.options = options;
        self
    }

    /// Compiles a module of LLVM IR that was read, and perhaps changed, before. `name` is how messages call it.
    ///
    /// # Errors
    /// Everything that has no equivalent, or an internal error.
    pub fn compile_llvm(&self, name: &str, module: &ptxc_llvm::Module) -> Result<Output, Diagnostics> {
        let mut session = Session::new(name, "", &self.options, None);
        let result = session.translate(module).and_then(|module| {
            session.verify_input(&module)?;
            session.lower(module)
        });
        session.finish(result)
    }

    /// Compiles a module.
    ///
    /// # Errors
    /// Everything the verifier and the stages refuse, or an internal error.
    pub fn compile(&self, module: &Module) -> Result<Output, Diagnostics> {
        let mut session = Session::new("<module>", "", &self.options, None);
        let result = session.verify_input(module).and_then(|()| session.lower(module.clone()));
        session.finish(result)
    }
}

/// Compilation cannot go on; the reason is in the session's diagnostics.
#[derive(Debug)]
struct Stop;

struct Session<'a> {
    options: &'a Options,
    observer: Option<&'a mut dyn Observer>,
    spans: Option<SpanMap>,
    /// Symbols as `spans` numbers them, once passes may have changed the numbers.
    symbols: Option<HashMap<String, Symbol>>,
    diagnostics: Diagnostics,
    remarks: Vec<Remark>,
    report: Report,
}

impl<'a> Session<'a> {
    fn new(name: &str, text: &str, options: &'a Options, observer: Option<&'a mut dyn Observer>) -> Session<'a> {
        let diagnostics = Diagnostics::new(name, text);
        let (remarks, report) = (Vec::new(), Report::default());
        Session { options, observer, spans: None, symbols: None, diagnostics, remarks, report }
    }

    fn compile_text(mut self) -> Result<Output, Diagnostics> {
        let result = self.read().and_then(|module| {
            self.verify_input(&module)?;
            self.lower(module)
        });
        self.finish(result)
    }

    fn compile_llvm(mut self, bytes: &[u8], format: Format) -> Result<Output, Diagnostics> {
        match self.read_llvm(bytes, format) {
            Ok(mut module) => match self.link(&mut module) {
                Ok(()) => self.compile_llvm_module(&module, bytes, format),
                Err(stop) => self.finish(Err(stop)),
            },
            Err(stop) => {
                self.place_llvm(bytes, format, true);
                self.finish(Err(stop))
            }
        }
    }

    fn compile_llvm_module(
        mut self,
        module: &ptxc_llvm::Module,
        bytes: &[u8],
        format: Format,
    ) -> Result<Output, Diagnostics> {
        let result = self.translate(module).and_then(|module| {
            self.verify_input(&module)?;
            self.lower(module)
        });
        self.place_llvm(bytes, format, result.is_err());
        self.finish(result)
    }

    /// Gives messages their text, or says the place in bitcode by a note.
    fn place_llvm(&mut self, bytes: &[u8], format: Format, failed: bool) {
        // Only messages need the text.
        if format == Format::LlvmText && (failed || !self.diagnostics.list.is_empty()) {
            self.diagnostics.source = String::from_utf8_lossy(bytes).into_owned();
            let source = &self.diagnostics.source;
            for diagnostic in &mut self.diagnostics.list {
                diagnostic.span = diagnostic.span.take().map(|span| statement(source, span));
            }
        } else {
            let unplaced = |span: Range<usize>| format!("at byte {} of the file", span.start);
            for diagnostic in &mut self.diagnostics.list {
                diagnostic.notes.extend(diagnostic.span.take().map(unplaced));
            }
        }
    }

    /// Reads LLVM IR.
    fn read_llvm(&mut self, bytes: &[u8], format: Format) -> Result<ptxc_llvm::Module, Stop> {
        let read = || {
            let mut module = ptxc_llvm::Module::new();
            match format {
                Format::LlvmBitcode => ptxc_llvm::bitcode::read(bytes, &mut module)?,
                _ => ptxc_llvm::text::read(bytes, &mut module)?,
            }
            Ok(module)
        };
        let result: Result<_, ptxc_llvm::ReadError> = self.step(pipeline::READ, read)?;
        result.map_err(|error| {
            let span = error.at..error.at + error.len.max(1);
            self.diagnostics.list.push(Diagnostic::error(error.message).at(Some(span)));
            Stop
        })
    }

    /// Translates a module of LLVM IR.
    fn translate(&mut self, module: &ptxc_llvm::Module) -> Result<Module, Stop> {
        let options = ptxc_llvm::Options {
            keep_names: self.options.emit == Emit::Ir || self.options.print_after != PrintAfter::Nothing,
            clusters: self.options.target.has_clusters(),
            architecture: u32::from(self.options.target.sm()) * 10,
        };
        // What comes from a library has no place.
        let place = |at: Option<u32>| at.filter(|at| *at != u32::MAX).map(|at| at as usize..at as usize + 1);
        match self.step(pipeline::TRANSLATE, || ptxc_llvm::translate(module, options))? {
            Ok(translation) => {
                let warnings = translation.warnings.into_iter();
                self.diagnostics.list.extend(warnings.map(|w| Diagnostic::warning(w.text).at(place(w.at))));
                self.spans = Some(translation.spans);
                self.print_ir(pipeline::TRANSLATE, &translation.module);
                Ok(translation.module)
            }
            Err(messages) => {
                let errors = messages.into_iter().map(|m| Diagnostic::error(m.text).at(place(m.at)));
                self.diagnostics.list.extend(errors);
                Err(Stop)
            }
        }
    }

    fn finish(self, result: Result<String, Stop>) -> Result<Output, Diagnostics> {
        match result {
            Ok(text) if !self.diagnostics.has_errors() => {
                Ok(Output { text, warnings: self.diagnostics, remarks: self.remarks, report: self.report })
            }
            _ => Err(self.diagnostics),
        }
    }

    /// Runs one step that works on the whole module; a panic becomes an internal error.
    fn step<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> Result<T, Stop> {
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(work));
        self.report.time(name, start.elapsed());
        result.map_err(|payload| self.fail(name, None, panic_message(payload.as_ref())))
    }

    /// Records an internal error.
    fn fail(&mut self, step: &str, function: Option<&str>, message: String) -> Stop {
        let function = function.map(str::to_owned);
        let internal = InternalError { step: step.to_owned(), function, message };
        self.diagnostics.internal.get_or_insert_with(|| Box::new(internal));
        Stop
    }

    fn read(&mut self) -> Result<Module, Stop> {
        let text = std::mem::take(&mut self.diagnostics.source);
        let result = self.step(pipeline::READ, || ptxc_ir::read_module_with_spans(&text));
        self.diagnostics.source = text;
        match result? {
            Ok((module, spans)) => {
                self.spans = Some(spans);
                let instructions: usize = module.funcs.values().map(|func| func.dfg.insts.len()).sum();
                self.report.count("functions", module.funcs.len() as u64);
                self.report.count("instructions read", instructions as u64);
                self.print_ir(pipeline::READ, &module);
                Ok(module)
            }
            Err(errors) => {
                let source = &self.diagnostics.source;
                let placed = |note: String, at: usize| {
                    let (line, column) = ptxc_ir::line_col(source, at);
                    format!("{note}, at {line}:{column}")
                };
                self.diagnostics.list.extend(errors.into_iter().map(|error| {
                    let diagnostic = Diagnostic::error(error.message).at(Some(error.span));
                    error.notes.into_iter().fold(diagnostic, |d, (note, span)| d.note(placed(note, span.start)))
                }));
                Err(Stop)
            }
        }
    }

    /// Verifies what the user gave: faults are the user's.
    fn verify_input(&mut self, module: &Module) -> Result<(), Stop> {
        let spans = self.spans.take();
        let faults = self.step(pipeline::VERIFY, || verify(module, spans.as_ref()));
        self.spans = spans;
        self.diagnostics.list.extend(faults?);
        if self.diagnostics.has_errors() { Err(Stop) } else { Ok(()) }
    }

    /// Verifies what a step made: faults are ours.
    fn verify_after(&mut self, step: &'static str, module: &Module) -> Result<(), Stop> {
        if !self.options.verify_each {
            return Ok(());
        }
        let faults = self.step(pipeline::VERIFY, || verify(module, None))?;
        match faults.iter().find(|fault| fault.severity == Severity::Error) {
            Some(fault) => Err(self.fail(step, None, format!("made wrong IR: {}", fault.message))),
            None => Ok(()),
        }
    }

    fn print_ir(&mut self, step: &str, module: &Module) {
        if let Some(observer) = &mut self.observer
            && self.options.print_after.wants(step)
        {
            observer.after(step, &ptxc_ir::print_module(module));
        }
    }

    fn print_mir(&mut self, step: &str, module: &ptxc_mir::Module) {
        if let Some(observer) = &mut self.observer
            && self.options.print_after.wants(step)
        {
            observer.after(step, &ptxc_mir::print_module(module));
        }
    }

    /// Everything after reading and verifying.
    fn lower(&mut self, mut module: Module) -> Result<String, Stop> {
        self.expand_assembly(&mut module)?;
        if self.options.remarks {
            self.remember_symbols(&module);
        }
        let legalized = self.optimize(&mut module)?;
        if self.options.emit == Emit::Ir {
            return self.step("print", || ptxc_ir::print_module(&module));
        }
        self.check_externs(&module)?;
        if !legalized {
            self.legalize(&mut module)?;
        }
        let mut machine = self.select(&module)?;
        drop(module);
        if self.options.emit == Emit::Mir {
            return self.step("print", || ptxc_mir::print_module(&machine));
        }
        self.schedule(&mut machine)?;
        if matches!(self.options.emit, Emit::Sched | Emit::SchedDrawing) {
            return self.show_schedule(&machine);
        }
        self.assign_registers(&mut machine)?;
        self.emit(&machine)
    }

    /// Makes target operations of inline assembly; warns of text that stays opaque.
    fn expand_assembly(&mut self, module: &mut Module) -> Result<(), Stop> {
        let opaque = self.step(pipeline::EXPAND_ASSEMBLY, || ptxc_ir::inline_assembly::expand_module(module))?;
        for (func, inst) in opaque {
            let span = self.spans.as_ref().map(|spans| spans.func(func).inst(inst));
            let message = "the instruction table does not know this assembly; it is passed on unchecked";
            self.diagnostics.list.push(Diagnostic::warning(message).at(span.filter(|span| !span.is_empty())));
        }
        Ok(())
    }

    /// Runs the IR passes of the level, or those that were asked for. Tells whether legalization was among them.
    fn optimize(&mut self, module: &mut Module) -> Result<bool, Stop> {
        let options = self.options;
        let asked: Vec<&str> = match &options.passes {
            Some(names) => names.iter().map(String::as_str).collect(),
            None => pipeline::names(options.opt_level).to_vec(),
        };
        let mut legalized = false;
        for name in asked {
            match IrStep::find(name) {
                Some(IrStep::Pass(pass)) => {
                    self.run_pass(module, pass)?;
                    self.print_ir(pass.name, module);
                    self.verify_after(pass.name, module)?;
                }
                Some(IrStep::ModulePass(pass)) => {
                    self.remember_symbols(module);
                    self.step(pass.name, || (pass.run)(module))?;
                    self.print_ir(pass.name, module);
                    self.verify_after(pass.name, module)?;
                }
                Some(IrStep::Legalize) => {
                    self.legalize(module)?;
                    legalized = true;
                }
                None => {
                    self.diagnostics.list.push(Diagnostic::error(format!("there is no pass `{name}`")));
                    return Err(Stop);
                }
            }
        }
        Ok(legalized)
    }

    fn run_pass(&mut self, module: &mut Module, pass: &'static Pass) -> Result<(), Stop> {
        let start = Instant::now();
        let mut funcs = std::mem::take(&mut module.funcs);
        let attrs: PrimaryMap<FuncId, FuncAttrs> = funcs.values().map(|func| func.attrs.clone()).collect();
        let (wants_remarks, target, version) = (self.options.remarks, self.options.target, self.options.ptx_version);
        let mut bodies: Vec<&mut Function> = funcs.values_mut().filter(|func| !func.is_declaration()).collect();
        let outcomes = each(&mut bodies, self.options.jobs, |func| {
            let remarks = wants_remarks.then(ptxc_opt::Remarks::default);
            let context = ptxc_opt::Context {
                module,
                attrs: &attrs,
                remarks: remarks.as_ref(),
                has_operation: &|op, flags, ty| ptxc_isel::legalize::has_operation(target, version, op, flags, ty),
            };
            (pass.run)(func, &context);
            remarks.map(ptxc_opt::Remarks::into_list).unwrap_or_default()
        });
        let failed = outcomes.iter().position(Result::is_err).map(|index| bodies[index].name.clone());
        if wants_remarks {
            let names: Vec<String> = bodies.iter().map(|func| func.name.clone()).collect();
            for (function, list) in names.iter().zip(outcomes.iter().flatten()) {
                for (inst, rule) in list {
                    self.remark(pass.name, rule.name(), function, Some(*inst));
                }
            }
        }
        module.funcs = funcs;
        self.report.time(pass.name, start.elapsed());
        match outcomes.into_iter().find_map(Result::err) {
            Some(message) => Err(self.fail(pass.name, failed.as_deref(), message)),
            None => Ok(()),
        }
    }

    fn legalize(&mut self, module: &mut Module) -> Result<(), Stop> {
        let (target, version) = (self.options.target, self.options.ptx_version);
        let mut remarks = self.options.remarks.then(Vec::new);
        let legalize = || ptxc_isel::legalize_with_remarks(module, target, version, remarks.as_mut());
        let result = self.step(pipeline::LEGALIZE, legalize)?;
        for remark in remarks.into_iter().flatten() {
            let function = module.funcs.get(remark.func).map_or("", |func| func.name.as_str());
            self.remark(pipeline::LEGALIZE, remark.rule.name, function, remark.inst);
        }
        if let Err(errors) = result {
            return Err(self.refuse(module, errors));
        }
        self.print_ir(pipeline::LEGALIZE, module);
        self.verify_after(pipeline::LEGALIZE, module)
    }

    fn select(&mut self, module: &Module) -> Result<ptxc_mir::Module, Stop> {
        let target = self.options.target;
        let locations = self.options.debug_info != DebugInfo::None || self.options.remarks;
        let separate_stack = self.options.opt_level == OptLevel::O0;
        let options = ptxc_isel::Options { locations, ptx_version: self.options.ptx_version, separate_stack };
        let mut remarks = self.options.remarks.then(Vec::new);
        let select = || ptxc_isel::select_with_remarks(module, target, &options, remarks.as_mut());
        let result = self.step(pipeline::SELECT, select)?;
        for remark in remarks.into_iter().flatten() {
            let function = module.funcs.get(remark.func).map_or("", |func| func.name.as_str());
            self.remark(pipeline::SELECT, remark.rule.name, function, remark.inst);
        }
        let machine = match result {
            Ok(machine) => machine,
            Err(errors) => return Err(self.refuse(module, errors)),
        };
        self.print_mir(pipeline::SELECT, &machine);
        if self.options.verify_each {
            self.verify_machine(pipeline::SELECT, &machine)?;
        }
        Ok(machine)
    }

    fn verify_machine(&mut self, step: &'static str, machine: &ptxc_mir::Module) -> Result<(), Stop> {
        for func in &machine.functions {
            let faults = self.step(pipeline::VERIFY, || ptxc_mir::verify(func))?;
            if let Err(faults) = faults {
                let name = machine.symbols.name(func.name);
                let text: Vec<String> = faults.iter().take(3).map(ToString::to_string).collect();
                let message = format!("made wrong machine IR: {}", text.join("; "));
                return Err(self.fail(step, Some(name), message));
            }
        }
        Ok(())
    }

    fn assign_registers(&mut self, machine: &mut ptxc_mir::Module) -> Result<(), Stop> {
        let start = Instant::now();
        let kinds = ptxc_regalloc::Kinds::new(&machine.opcodes);
        let mut functions: Vec<&mut ptxc_mir::Function> = machine.functions.iter_mut().collect();
        let outcomes = each(&mut functions, self.options.jobs, |func| {
            ptxc_regalloc::run(func, &kinds).map_err(|error| error.to_string())
        });
        let names: Vec<_> = functions.iter().map(|func| func.name).collect();
        self.report.time(pipeline::ASSIGN_REGISTERS, start.elapsed());
        for (outcome, name) in outcomes.into_iter().zip(names) {
            match outcome.and_then(|inner| inner) {
                Ok(stats) => {
                    self.report.count("moves out of SSA", stats.moves.into());
                    self.report.count("PTX registers", stats.registers.iter().map(|n| u64::from(*n)).sum());
                }
                Err(message) => {
                    let name = machine.symbols.name(name).to_owned();
                    return Err(self.fail(pipeline::ASSIGN_REGISTERS, Some(&name), message));
                }
            }
        }
        let (moved, fences) = ptxc_regalloc::order_moves(machine);
        self.report.count("moves before wgmma.fence", moved);
        self.report.count("further wgmma.fence", fences);
        self.print_mir(pipeline::ASSIGN_REGISTERS, machine);
        Ok(())
    }

    fn emit(&mut self, machine: &ptxc_mir::Module) -> Result<String, Stop> {
        let debug_info = self.options.debug_info;
        let options = ptxc_emit::EmitOptions {
            lineinfo: debug_info != DebugInfo::None,
            debug: debug_info == DebugInfo::Full,
            ..ptxc_emit::EmitOptions::default()
        };
        let result = self.step(pipeline::EMIT, || ptxc_emit::emit_module(machine, &options))?;
        match result {
            Ok(text) => {
                self.report.count("bytes of PTX", text.len() as u64);
                Ok(text)
            }
            Err(ptxc_emit::EmitError::Internal(message)) => Err(self.fail(pipeline::EMIT, None, message)),
            Err(error) => {
                self.diagnostics.list.push(Diagnostic::error(error.to_string()));
                Err(Stop)
            }
        }
    }

    /// Keeps the numbers of symbols that the places in the text go by.
    fn remember_symbols(&mut self, module: &Module) {
        if self.spans.is_some() && self.symbols.is_none() {
            let funcs = module.funcs.iter().map(|(id, func)| (func.name.clone(), Symbol::Func(id)));
            let globals = module.globals.iter().map(|(id, global)| (global.name.clone(), Symbol::Global(id)));
            self.symbols = Some(funcs.chain(globals).collect());
        }
    }

    /// Keeps that a rule was applied.
    fn remark(&mut self, step: &'static str, rule: &'static str, function: &str, inst: Option<ptxc_ir::Inst>) {
        let func = match self.symbols.as_ref().and_then(|symbols| symbols.get(function)) {
            Some(Symbol::Func(func)) => Some(*func),
            _ => None,
        };
        let span = |spans: &SpanMap| known(spans.func(func?).inst(inst?));
        let span = self.spans.as_ref().and_then(span);
        self.remarks.push(Remark { step, rule, function: function.to_owned(), detail: None, origin: None, span });
    }

    /// Turns errors of legalization and selection into diagnostics.
    fn refuse(&mut self, module: &Module, errors: Vec<SelectError>) -> Stop {
        for error in errors {
            let symbol = match &self.symbols {
                Some(symbols) => symbols.get(&error.func).copied(),
                None => module.symbol(&error.func),
            };
            let place = |spans| symbol.and_then(|symbol| place_of_refusal(spans, symbol, &error));
            let span = self.spans.as_ref().and_then(place);
            let mut diagnostic = Diagnostic::error(error.to_string()).at(span);
            if error.loc.line != 0 {
                let file = module.files.iter().find(|(number, _)| *number == error.loc.file);
                let file = file.map_or("<unknown>", |(_, path)| path.as_str());
                diagnostic = diagnostic.note(format!("from {file}:{}:{}", error.loc.line, error.loc.col));
            }
            self.diagnostics.list.push(diagnostic);
        }
        // Stages walk functions in orders of their own; people read from top to bottom.
        self.diagnostics.list.sort_by_key(|diagnostic| diagnostic.span.as_ref().map(|span| span.start));
        Stop
    }
}

/// A place in LLVM's text, which is known by its first byte, to the end of the line.
fn statement(text: &str, span: Range<usize>) -> Range<usize> {
    if span.len() > 1 || span.start >= text.len() || !text.is_char_boundary(span.start) {
        return span;
    }
    let line = text[span.start..].lines().next().unwrap_or("");
    span.start..span.start + line.trim_end().len().max(1)
}

/// A range that says something; the span table gives an empty one for what is not from the text.
fn known(span: Range<usize>) -> Option<Range<usize>> {
    (!span.is_empty()).then_some(span)
}

fn place_of_refusal(spans: &SpanMap, symbol: Symbol, error: &SelectError) -> Option<Range<usize>> {
    match symbol {
        Symbol::Func(func) => {
            let spans = spans.func(func);
            error.inst.and_then(|inst| known(spans.inst(inst))).or_else(|| known(spans.name.clone()))
        }
        Symbol::Global(global) => known(spans.global(global)),
    }
}

/// Runs `work` on every item, on `jobs` threads (0: one per processor). Results are in the items' order; a panic is
/// the error of its item.
fn each<T: Send, R: Send>(items: &mut [T], jobs: usize, work: impl Fn(&mut T) -> R + Sync) -> Vec<Result<R, String>> {
    let guarded =
        |item: &mut T| catch_unwind(AssertUnwindSafe(|| work(item))).map_err(|payload| panic_message(payload.as_ref()));
    if jobs == 1 || items.len() < 2 {
        return items.iter_mut().map(guarded).collect();
    }
    match rayon::ThreadPoolBuilder::new().num_threads(jobs).build() {
        Ok(pool) => pool.install(|| items.par_iter_mut().map(guarded).collect()),
        // No threads to be had: the result is the same without.
        Err(_) => items.iter_mut().map(guarded).collect(),
    }
}

/// What a panic said.
fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_FUNCTIONS: &str = "func @first() {\nentry:\n  ret\n}\nfunc @second() {\nentry:\n  ret\n}\n";

    static FAILING: Pass = Pass {
        name: "fail",
        summary: "panics in @second",
        run: |func, _| {
            assert!(func.name != "second", "lost count");
            false
        },
    };

    #[test]
    fn a_panic_in_a_pass_names_pass_and_function_whatever_the_threads() {
        for jobs in [1, 2] {
            let options = Options { jobs, ..Options::new(Target::ALL[0]) };
            let mut session = Session::new("t.ir", TWO_FUNCTIONS, &options, None);
            let mut module = session.read().unwrap();
            assert!(session.run_pass(&mut module, &FAILING).is_err());
            let text = session.diagnostics.to_string();
            assert_eq!(text, "t.ir: internal error in fail of @second: lost count\n");
        }
    }

    #[test]
    fn a_panic_of_a_whole_step_names_the_step() {
        let options = Options::new(Target::ALL[0]);
        let mut session = Session::new("t.ir", "", &options, None);
        assert!(session.step("select", || -> u32 { panic!("no {}", "rule") }).is_err());
        assert_eq!(session.diagnostics.to_string(), "t.ir: internal error in select: no rule\n");
        assert!(session.finish(Ok(String::new())).is_err());
    }
}
