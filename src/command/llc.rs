//! `ptxc llc …`, and the command under the name `llc`: takes the options of LLVM's `llc` that frontends for NVIDIA
//! GPUs pass, so that it can stand in its place.
//!
//! Options are spelled as LLVM spells them: one dash or two, a value after `=` or as the next argument.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ptxc::llvm::model::{AttributeValue, Emission, Metadata};
use ptxc::llvm::{Adjustments, Contraction, Module};
use ptxc::targets::{PtxVersion, Target};
use ptxc::{DebugInfo, Diagnostic, OptLevel, Options};

use crate::{Failure, compile, files};

/// What the options ask for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Input; `-` is standard input.
    pub input: PathBuf,
    /// Output; `None` writes nothing (`-filetype=null`).
    pub output: Option<PathBuf>,
    /// Level, 0 to 3.
    pub level: u8,
    /// `-mcpu`.
    pub cpu: Option<String>,
    /// `+ptxNN` of `-mattr`, as NN.
    pub ptx: Option<u32>,
    /// What to change in the module.
    pub adjustments: Adjustments,
    /// What to say although it is no error.
    pub warnings: Vec<String>,
}

/// The arguments behind `llc`, when the command line calls it: under that name, or as the first argument.
pub fn arguments(line: impl Iterator<Item = OsString>) -> Option<Vec<String>> {
    let mut line = line.map(|argument| argument.to_string_lossy().into_owned());
    let name = line.next()?;
    let name = Path::new(&name).file_stem()?.to_str()?.to_owned();
    let called = name == "llc" || name.starts_with("llc-");
    if called || line.next()? == "llc" { Some(line.collect()) } else { None }
}

/// Does what the arguments say.
pub fn run(arguments: &[String]) -> Result<(), Failure> {
    match parse(arguments)? {
        Action::Print(text) => files::write_output(None, &text),
        Action::Compile(request) => compile_request(*request),
    }
}

fn compile_request(mut request: Request) -> Result<(), Failure> {
    let bytes = files::read_bytes(&request.input)?;
    let name = files::display_name(&request.input);
    compile::keep_panics_quiet();
    let mut warnings = std::mem::take(&mut request.warnings);
    let result = ptxc::compile_llvm_prepared(&name, &bytes, |module| {
        request.adjustments.apply(module);
        options(&request, module, &mut warnings).map_err(Diagnostic::error)
    });
    for warning in warnings {
        files::to_stderr(&format!("warning: {warning}\n"));
    }
    match result {
        Ok(output) => {
            files::to_stderr(&output.warnings.to_string());
            match &request.output {
                Some(path) => files::write_output(Some(path), &output.text),
                None => Ok(()),
            }
        }
        Err(diagnostics) => Err(compile::report(&[], &diagnostics, &name, &bytes)),
    }
}

/// The options of a compilation, for a module.
fn options(request: &Request, module: &Module, warnings: &mut Vec<String>) -> Result<Options, String> {
    let cpu = request.cpu.clone().or_else(|| module_cpu(module));
    let target = match cpu {
        Some(cpu) => target(&cpu, warnings)?,
        None => Target::ALL[0],
    };
    let ptx_version = match request.ptx {
        Some(number) => ptx_version(number, target)?,
        None => None,
    };
    Ok(Options {
        opt_level: OptLevel::from_number(request.level).unwrap_or_default(),
        ptx_version,
        debug_info: debug_info(module),
        ..Options::new(target)
    })
}

/// The target that the functions of the module name.
fn module_cpu(module: &Module) -> Option<String> {
    let wanted = module.names.find(b"target-cpu")?;
    module.globals.values().filter_map(|global| global.function()).find_map(|function| {
        let mut attributes = module.attributes.function(function.attributes);
        attributes.find_map(|attribute| match attribute.value {
            AttributeValue::Text(text) if attribute.name == wanted => Some(module.names.text(text).into_owned()),
            _ => None,
        })
    })
}

/// What the compile units of the module want to be written.
fn debug_info(module: &Module) -> DebugInfo {
    let units = module.named_metadata("llvm.dbg.cu").iter();
    let emissions = units.filter_map(|unit| match module.metadata.get(*unit) {
        Metadata::Unit(unit) => Some(unit.emission),
        _ => None,
    });
    emissions.fold(DebugInfo::None, |known, emission| match (known, emission) {
        (DebugInfo::Full, _) | (_, Emission::Full) => DebugInfo::Full,
        (known, Emission::None) => known,
        (_, Emission::Lines | Emission::Directives) => DebugInfo::Lines,
    })
}

/// What the command line asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// A compilation.
    Compile(Box<Request>),
    /// To print this.
    Print(String),
}

/// How an option is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    /// Has a value that matters.
    Value,
    /// Has a value that does not matter.
    IgnoredValue,
    /// May have a value behind `=`; it matters.
    Switch,
    /// May have a value behind `=`; does not matter.
    Ignored,
    /// Asks for a part of LLVM that does not exist here.
    Refused,
}

/// The options that are known, by name without dashes.
const OPTIONS: &[(&str, Use)] = &[
    ("mcpu", Use::Value),
    ("mattr", Use::Value),
    ("mtriple", Use::Value),
    ("march", Use::Value),
    ("filetype", Use::Value),
    ("o", Use::Value),
    ("x", Use::Value),
    ("fp-contract", Use::Value),
    ("nvptx-fma-level", Use::Value),
    ("nvptx-prec-divf32", Use::Value),
    ("denormal-fp-math", Use::Value),
    ("denormal-fp-math-f32", Use::Value),
    ("nvptx-prec-sqrtf32", Use::Switch),
    ("enable-unsafe-fp-math", Use::Switch),
    ("relocation-model", Use::IgnoredValue),
    ("code-model", Use::IgnoredValue),
    ("frame-pointer", Use::IgnoredValue),
    ("tail-dup-size", Use::IgnoredValue),
    ("thread-model", Use::IgnoredValue),
    ("exception-model", Use::IgnoredValue),
    ("float-abi", Use::IgnoredValue),
    ("nvptx-emit-src", Use::Ignored),
    ("verify-machineinstrs", Use::Ignored),
    ("asm-verbose", Use::Ignored),
    ("disable-post-ra", Use::Ignored),
    ("disable-cgp", Use::Ignored),
    ("disable-verify", Use::Ignored),
    ("disable-nvptx-load-store-vectorizer", Use::Ignored),
    ("discard-value-names", Use::Ignored),
    ("enable-no-nans-fp-math", Use::Ignored),
    ("enable-no-infs-fp-math", Use::Ignored),
    ("enable-no-signed-zeros-fp-math", Use::Ignored),
    ("enable-no-trapping-fp-math", Use::Ignored),
    ("enable-approx-func-fp-math", Use::Ignored),
    ("enable-tail-merge", Use::Ignored),
    ("nvptx-approx-log2f32", Use::Ignored),
    ("nvptx-early-byval-copy", Use::Ignored),
    ("nvptx-force-min-byval-param-align", Use::Ignored),
    ("nvptx-lower-global-ctor-dtor", Use::Ignored),
    ("nvptx-no-f16-math", Use::Ignored),
    ("nvptx-no-f32x2", Use::Ignored),
    ("nvptx-rsqrt-approx-opt", Use::Ignored),
    ("nvptx-sched4reg", Use::Ignored),
    ("nvptx-short-ptr", Use::Ignored),
    ("opaque-pointers", Use::Ignored),
    ("trap-unreachable", Use::Ignored),
    ("no-warn", Use::Ignored),
    ("W", Use::Ignored),
    ("debug-only", Use::Refused),
    ("debug-pass", Use::Refused),
    ("print-after", Use::Refused),
    ("print-after-all", Use::Refused),
    ("print-before", Use::Refused),
    ("print-before-all", Use::Refused),
    ("run-pass", Use::Refused),
    ("start-after", Use::Refused),
    ("start-before", Use::Refused),
    ("stop-after", Use::Refused),
    ("stop-before", Use::Refused),
];

/// Reads the arguments behind `llc`.
///
/// # Errors
/// An option that is not known, or a value that is none of the option's.
pub fn parse(arguments: &[String]) -> Result<Action, Failure> {
    let mut parsed = Parsed::new();
    let mut rest = arguments.iter();
    let mut only_inputs = false;
    while let Some(argument) = rest.next() {
        let Some(option) = argument.strip_prefix('-').filter(|option| !option.is_empty() && !only_inputs) else {
            parsed.input(argument)?;
            continue;
        };
        let option = option.strip_prefix('-').unwrap_or(option);
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option, None),
        };
        match name {
            "" => only_inputs = true,
            "version" => return Ok(Action::Print(version())),
            "help" | "h" => return Ok(Action::Print(help())),
            "O" => {
                let value = value.or_else(|| rest.next().cloned());
                parsed.level(value.as_deref().unwrap_or(""))?;
            }
            _ if name.len() == 2 && name.starts_with('O') => parsed.level(&name[1..])?,
            _ => match OPTIONS.iter().find(|(known, _)| *known == name).map(|(_, how)| *how) {
                Some(Use::Value) => {
                    let value = value.or_else(|| rest.next().cloned());
                    let Some(value) = value else { return fail(format!("option `-{name}` needs a value")) };
                    parsed.value(name, value)?;
                }
                Some(Use::IgnoredValue) => {
                    if value.is_none() {
                        rest.next();
                    }
                }
                Some(Use::Switch) => parsed.switch(name, value.as_deref())?,
                Some(Use::Ignored) => {}
                Some(Use::Refused) => return fail(format!("option `-{name}` is about LLVM's own passes")),
                None => return fail(format!("option `-{name}` is not known")),
            },
        }
    }
    Ok(Action::Compile(Box::new(parsed.finish())))
}

fn fail<T>(message: String) -> Result<T, Failure> {
    Err(Failure::message(format!("error: {message}\n")))
}

/// Options while they are read.
struct Parsed {
    request: Request,
    input: bool,
    discard: bool,
}

impl Parsed {
    fn new() -> Parsed {
        let request = Request {
            input: PathBuf::from("-"),
            output: None,
            level: 2,
            cpu: None,
            ptx: None,
            adjustments: Adjustments::default(),
            warnings: Vec::new(),
        };
        Parsed { request, input: false, discard: false }
    }

    fn input(&mut self, argument: &str) -> Result<(), Failure> {
        if self.input {
            return fail(format!("`{argument}` is a second input"));
        }
        self.input = true;
        self.request.input = PathBuf::from(argument);
        Ok(())
    }

    fn level(&mut self, value: &str) -> Result<(), Failure> {
        self.request.level = match value {
            "0" | "1" | "2" | "3" => value.as_bytes()[0] - b'0',
            "s" | "z" => 2,
            _ => return fail(format!("`{value}` is no optimization level")),
        };
        Ok(())
    }

    fn value(&mut self, name: &str, value: String) -> Result<(), Failure> {
        let adjustments = &mut self.request.adjustments;
        match name {
            "o" => self.request.output = Some(PathBuf::from(value)),
            "mcpu" => self.request.cpu = (value != "generic").then_some(value),
            "mattr" => self.features(&value),
            "march" | "mtriple" => self.triple(&value)?,
            "filetype" => match value.as_str() {
                "asm" => self.discard = false,
                "null" => self.discard = true,
                _ => return fail(format!("`-filetype={value}` is not supported: the output is PTX text")),
            },
            "x" if value == "ir" => {}
            "x" => return fail(format!("`-x {value}` is not supported: the input is LLVM IR")),
            "fp-contract" => match value.as_str() {
                "fast" => adjustments.contraction = Contraction::Always,
                "on" | "off" => {}
                _ => return fail(format!("`-fp-contract={value}` is none of fast, on, off")),
            },
            "nvptx-fma-level" => match value.as_str() {
                "0" => adjustments.contraction = Contraction::Never,
                "1" | "2" => adjustments.contraction = Contraction::Always,
                _ => return fail(format!("`-nvptx-fma-level={value}` is none of 0, 1, 2")),
            },
            "nvptx-prec-divf32" => match value.as_str() {
                "0" | "1" => adjustments.approximate_division = true,
                "2" => {}
                _ => return fail(format!("`-nvptx-prec-divf32={value}` is none of 0, 1, 2")),
            },
            // denormal-fp-math and denormal-fp-math-f32.
            _ => adjustments.flush_subnormals |= value.starts_with("preserve-sign"),
        }
        Ok(())
    }

    fn features(&mut self, list: &str) {
        for feature in list.split(',') {
            let feature = feature.trim();
            if let Some(number) = feature.strip_prefix("+ptx").and_then(|digits| digits.parse().ok()) {
                self.request.ptx = Some(number);
            } else if let Some(cpu) = feature.strip_prefix('+').filter(|name| name.starts_with("sm_")) {
                self.request.cpu.get_or_insert_with(|| cpu.to_owned());
            }
        }
    }

    fn triple(&mut self, value: &str) -> Result<(), Failure> {
        match value.split('-').next().unwrap_or("") {
            "nvptx64" => Ok(()),
            "nvptx" => {
                let warning = "32-bit code does not exist any more; compiling for 64 bits";
                self.request.warnings.push(warning.to_owned());
                Ok(())
            }
            other => fail(format!("`{other}` is no architecture of NVIDIA GPUs: use nvptx64")),
        }
    }

    fn switch(&mut self, name: &str, value: Option<&str>) -> Result<(), Failure> {
        let on = match value {
            None | Some("" | "1" | "true" | "TRUE" | "True") => true,
            Some("0" | "false" | "FALSE" | "False") => false,
            Some(other) => return fail(format!("`-{name}={other}` is neither true nor false")),
        };
        match name {
            "nvptx-prec-sqrtf32" => self.request.adjustments.approximate_square_root = !on,
            _ => self.request.adjustments.unsafe_math = on,
        }
        Ok(())
    }

    fn finish(self) -> Request {
        let mut request = self.request;
        if self.discard {
            request.output = None;
        } else if request.output.is_none() {
            request.output = Some(default_output(&request.input));
        }
        request
    }
}

/// Where LLVM's command writes without `-o`: beside the input, with `.s` in place of `.ll` or `.bc`.
fn default_output(input: &Path) -> PathBuf {
    if crate::files::is_standard(input) {
        return PathBuf::from("-");
    }
    let known = input.extension().is_some_and(|extension| extension == "ll" || extension == "bc");
    if known {
        return input.with_extension("s");
    }
    let mut name = input.as_os_str().to_owned();
    name.push(".s");
    PathBuf::from(name)
}

/// The target of that name; what is older than sm_50 is compiled for sm_50, with a warning.
fn target(cpu: &str, warnings: &mut Vec<String>) -> Result<Target, String> {
    if let Ok(target) = cpu.parse() {
        return Ok(target);
    }
    let oldest = Target::ALL[0];
    match cpu.strip_prefix("sm_").and_then(|digits| digits.parse::<u16>().ok()) {
        Some(number) if number < oldest.sm() => {
            warnings.push(format!("{cpu} is not supported any more; compiling for {}", oldest.name()));
            Ok(oldest)
        }
        _ => Err(format!("the target `{cpu}` is not known; `ptxc targets` lists the known ones")),
    }
}

/// The PTX version that `+ptxNN` names, at least what the target needs; older ones than are known leave it open.
fn ptx_version(number: u32, target: Target) -> Result<Option<PtxVersion>, String> {
    let (major, minor) = (number / 10, number % 10);
    let version = u8::try_from(major).ok().and_then(|major| PtxVersion::new(major, minor as u8));
    match version {
        Some(version) => Ok(Some(version.max(target.min_ptx()))),
        None if number < 63 => Ok(None),
        None => Err(format!("PTX version {major}.{minor} is not known; known are up to {}", PtxVersion::MAX)),
    }
}

fn version() -> String {
    format!(
        "ptxc {} in place of llc\n\n  Registered Targets:\n    nvptx   - NVIDIA PTX, compiled as 64-bit\n    nvptx64 - \
         NVIDIA PTX 64-bit\n",
        env!("CARGO_PKG_VERSION")
    )
}

fn help() -> String {
    let mut text =
        String::from("usage: ptxc llc [options] [INPUT]\n\nLLVM IR in, PTX out. Options, as of LLVM's llc:\n");
    text.push_str("  -O0 -O1 -O2 -O3\n");
    for (name, how) in OPTIONS {
        let shown = match how {
            Use::Value => format!("  -{name}=VALUE\n"),
            Use::Switch => format!("  -{name}[=BOOL]\n"),
            Use::IgnoredValue => format!("  -{name}=VALUE (ignored)\n"),
            Use::Ignored => format!("  -{name} (ignored)\n"),
            Use::Refused => continue,
        };
        text.push_str(&shown);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Request {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match parse(&arguments) {
            Ok(Action::Compile(request)) => *request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_of_frontends() {
        let found = request("-O3 -mcpu=sm_90a --mattr=+ptx80,-foo -mtriple nvptx64-nvidia-cuda -o out.ptx in.ll");
        assert_eq!(found.level, 3);
        assert_eq!(found.cpu.as_deref(), Some("sm_90a"));
        assert_eq!(found.ptx, Some(80));
        assert_eq!(found.output, Some(PathBuf::from("out.ptx")));
        assert_eq!(found.input, PathBuf::from("in.ll"));
        assert!(found.warnings.is_empty());
    }

    #[test]
    fn options_of_floats() {
        let found =
            request("-fp-contract=fast -nvptx-prec-divf32=1 -nvptx-prec-sqrtf32=0 -denormal-fp-math-f32 preserve-sign");
        let expected = Adjustments {
            contraction: Contraction::Always,
            approximate_division: true,
            approximate_square_root: true,
            flush_subnormals: true,
            ..Adjustments::default()
        };
        assert_eq!(found.adjustments, expected);
        assert_eq!(request("-nvptx-fma-level=0").adjustments.contraction, Contraction::Never);
    }

    #[test]
    fn outputs() {
        assert_eq!(request("a/b.ll").output, Some(PathBuf::from("a/b.s")));
        assert_eq!(request("").output, Some(PathBuf::from("-")));
        assert_eq!(request("-filetype=null x.bc").output, None);
    }

    #[test]
    fn wrong_options_are_refused() {
        for line in ["-march=x86-64", "-stop-after=isel", "-nonsense", "-filetype=obj", "a.ll b.ll", "-O9", "-mcpu"] {
            let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert!(parse(&arguments).is_err(), "{line}");
        }
    }

    #[test]
    fn old_targets_become_the_oldest() {
        let mut warnings = Vec::new();
        assert_eq!(target("sm_20", &mut warnings).unwrap(), Target::ALL[0]);
        assert_eq!(warnings.len(), 1);
        assert!(target("sm_999", &mut warnings).is_err());
        let target = target("sm_90", &mut warnings).unwrap();
        assert_eq!(ptx_version(43, target).unwrap(), None);
        assert_eq!(ptx_version(70, target).unwrap(), Some(target.min_ptx()));
    }
}
