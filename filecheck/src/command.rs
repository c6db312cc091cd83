//! FileCheck as a command: arguments in, messages and an exit status out.

use crate::options::{Definition, DumpFilter, DumpInput, Options};
use crate::{Checker, DUMP_HELP, Status};
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

/// A parsed command line.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// The options of the check.
    pub options: Options,
    /// The check file.
    pub check_file: Option<String>,
    /// `--input-file`; `None` or `-` is standard input.
    pub input_file: Option<String>,
    /// `--color`; `None` decides by whether standard error is a terminal.
    pub color: Option<bool>,
    dump_input: Option<DumpInput>,
    dump_context: Option<usize>,
    /// `--help`.
    pub help: bool,
    /// `--version`.
    pub version: bool,
}

/// Where a command runs: what it would otherwise take from its process.
pub struct Environment<'a> {
    /// The name that messages begin with.
    pub program: &'a str,
    /// The value of `FILECHECK_OPTS`.
    pub extra_options: Option<String>,
    /// Relative paths are relative to this; `None` means the current directory.
    pub directory: Option<&'a Path>,
    /// Whether standard error is a terminal.
    pub is_terminal: bool,
}

/// Exit status: all directives satisfied.
pub const EXIT_PASSED: i32 = 0;
/// Exit status: the input is not as demanded, or the command line is wrong.
pub const EXIT_FAILED: i32 = 1;
/// Exit status: nothing could be checked.
pub const EXIT_INVALID: i32 = 2;

const USAGE: &str = "\
Checks that a file or standard input contains what the directives of <check-file> demand.

Usage: filecheck [options] <check-file>

  --input-file=<file>             what to check (default: standard input)
  --check-prefix=<prefix>         prefix of the directives (default: CHECK)
  --check-prefixes=<p,...>        several of them
  --comment-prefixes=<p,...>      prefixes of lines without directives (default: COM,RUN)
  --allow-unused-prefixes         no error if a given prefix does not occur
  -D<NAME>=<value>                define a string variable
  -D#<format>,<NAME>=<expression> define a numeric variable
  --enable-var-scope              variables without $ end at each LABEL
  --implicit-check-not=<pattern>  may occur nowhere between matches
  --match-full-lines              matches cover whole lines
  --strict-whitespace             blanks are matched as they are
  --ignore-case                   case does not matter
  --allow-empty                   empty input is not an error
  --allow-deprecated-dag-overlap  matches of CHECK-DAG may overlap
  --dump-input=<value>            help, always, fail (default) or never
  --dump-input-filter=<value>     all, annotation-full, annotation or error
  --dump-input-context=<N>        lines around those (default: 5)
  --color                         colors
  -v, -vv                         tell of good matches; of everything

One dash will do. Options in FILECHECK_OPTS come before those given.
";

enum Setter {
    Flag(fn(&mut Arguments, bool)),
    Value(fn(&mut Arguments, &str) -> Result<(), String>),
}

/// The options by name, as written after one or two dashes.
const OPTIONS: &[(&str, Setter)] = &[
    ("allow-deprecated-dag-overlap", Setter::Flag(|a, on| a.options.allow_dag_overlap = on)),
    ("allow-empty", Setter::Flag(|a, on| a.options.allow_empty = on)),
    ("allow-unused-prefixes", Setter::Flag(|a, on| a.options.allow_unused_prefixes = on)),
    ("check-prefix", Setter::Value(add_check_prefixes)),
    ("check-prefixes", Setter::Value(add_check_prefixes)),
    ("color", Setter::Flag(|a, on| a.color = Some(on))),
    ("comment-prefixes", Setter::Value(add_comment_prefixes)),
    ("D", Setter::Value(define)),
    ("dump-input", Setter::Value(dump_input)),
    ("dump-input-context", Setter::Value(dump_context)),
    ("dump-input-filter", Setter::Value(dump_filter)),
    ("enable-var-scope", Setter::Flag(|a, on| a.options.enable_var_scope = on)),
    ("h", Setter::Flag(|a, on| a.help = on)),
    ("help", Setter::Flag(|a, on| a.help = on)),
    ("ignore-case", Setter::Flag(|a, on| a.options.ignore_case = on)),
    (
        "implicit-check-not",
        Setter::Value(|a, value| {
            a.options.implicit_check_not.push(value.to_string());
            Ok(())
        }),
    ),
    (
        "input-file",
        Setter::Value(|a, value| {
            a.input_file = Some(value.to_string());
            Ok(())
        }),
    ),
    ("match-full-lines", Setter::Flag(|a, on| a.options.match_full_lines = on)),
    ("strict-whitespace", Setter::Flag(|a, on| a.options.strict_whitespace = on)),
    ("v", Setter::Flag(|a, on| a.options.verbose = on)),
    ("version", Setter::Flag(|a, on| a.version = on)),
    ("vv", Setter::Flag(|a, on| a.options.very_verbose = on)),
];

fn add_check_prefixes(arguments: &mut Arguments, value: &str) -> Result<(), String> {
    arguments.options.check_prefixes.extend(value.split(',').map(str::to_string));
    Ok(())
}

fn add_comment_prefixes(arguments: &mut Arguments, value: &str) -> Result<(), String> {
    let prefixes = arguments.options.comment_prefixes.get_or_insert_default();
    prefixes.extend(value.split(',').map(str::to_string));
    Ok(())
}

fn define(arguments: &mut Arguments, value: &str) -> Result<(), String> {
    arguments.options.definitions.push(Definition { text: value.to_string() });
    Ok(())
}

fn unknown_name(value: &str) -> String {
    format!("Cannot find option named '{value}'!")
}

/// Of several values, the one that shows most wins.
fn dump_input(arguments: &mut Arguments, value: &str) -> Result<(), String> {
    let value = match value {
        "help" => DumpInput::Help,
        "always" => DumpInput::Always,
        "fail" => DumpInput::Fail,
        "never" => DumpInput::Never,
        other => return Err(unknown_name(other)),
    };
    let previous = arguments.dump_input;
    arguments.dump_input = Some(previous.map_or(value, |previous| previous.max(value)));
    Ok(())
}

fn dump_filter(arguments: &mut Arguments, value: &str) -> Result<(), String> {
    let value = match value {
        "all" => DumpFilter::All,
        "annotation-full" => DumpFilter::AnnotationFull,
        "annotation" => DumpFilter::Annotation,
        "error" => DumpFilter::Error,
        other => return Err(unknown_name(other)),
    };
    let filter = &mut arguments.options.dump_filter;
    *filter = Some(filter.map_or(value, |previous| previous.max(value)));
    Ok(())
}

fn dump_context(arguments: &mut Arguments, value: &str) -> Result<(), String> {
    let lines = value.parse().map_err(|_| format!("'{value}' value invalid for uint argument!"))?;
    let previous = arguments.dump_context;
    arguments.dump_context = Some(previous.map_or(lines, |previous: usize| previous.max(lines)));
    Ok(())
}

/// Runs the command with the arguments, environment and streams of this process.
pub fn main(arguments: &[String]) -> i32 {
    let program = arguments.first().map_or("filecheck", String::as_str);
    let program = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or("filecheck");
    let environment = Environment {
        program,
        extra_options: std::env::var("FILECHECK_OPTS").ok(),
        directory: None,
        is_terminal: std::io::stderr().is_terminal(),
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let given = arguments.get(1..).unwrap_or_default();
    let code = run(given, &environment, read_standard_input, &mut out, &mut err);
    // A reader that went away is no reason to fail a check.
    _ = std::io::stdout().lock().write_all(&out);
    _ = std::io::stderr().lock().write_all(&err);
    code
}

#[cfg(unix)]
fn read_standard_input() -> std::io::Result<Vec<u8>> {
    use std::os::fd::AsFd;
    // As a file, so that the size of a redirected one is known before it is read.
    let mut file = std::fs::File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut input = Vec::new();
    file.read_to_end(&mut input).map(|_| input)
}

#[cfg(not(unix))]
fn read_standard_input() -> std::io::Result<Vec<u8>> {
    let mut input = Vec::new();
    std::io::stdin().lock().read_to_end(&mut input).map(|_| input)
}

/// Runs the command; `input` is called if standard input is to be checked. Returns the exit status.
pub fn run(
    given: &[String],
    environment: &Environment<'_>,
    input: impl FnOnce() -> std::io::Result<Vec<u8>>,
    out: &mut Vec<u8>,
    err: &mut Vec<u8>,
) -> i32 {
    let mut all = split_words(environment.extra_options.as_deref().unwrap_or_default());
    all.extend_from_slice(given);
    let arguments = match parse(&all) {
        Ok(arguments) => arguments,
        Err(message) => {
            err.extend_from_slice(format!("{}: {message}\n", environment.program).as_bytes());
            return EXIT_FAILED;
        }
    };
    if arguments.help {
        out.extend_from_slice(USAGE.as_bytes());
        return EXIT_PASSED;
    }
    if arguments.version {
        out.extend_from_slice(concat!("filecheck ", env!("CARGO_PKG_VERSION"), "\n").as_bytes());
        return EXIT_PASSED;
    }
    if arguments.options.dump_input == DumpInput::Help {
        out.extend_from_slice(DUMP_HELP.as_bytes());
        return EXIT_PASSED;
    }
    match check(&arguments, &all, environment, input, err) {
        Ok(code) => code,
        Err(message) => {
            err.extend_from_slice(message.as_bytes());
            err.push(b'\n');
            EXIT_INVALID
        }
    }
}

fn check(
    arguments: &Arguments,
    given: &[String],
    environment: &Environment<'_>,
    input: impl FnOnce() -> std::io::Result<Vec<u8>>,
    err: &mut Vec<u8>,
) -> Result<i32, String> {
    let Some(check_file) = &arguments.check_file else {
        return Err("<check-file> not specified".to_string());
    };
    check_definitions(&arguments.options)?;
    let read = |path: &str| {
        let path = match environment.directory {
            Some(directory) => directory.join(path),
            None => PathBuf::from(path),
        };
        std::fs::read(path)
    };
    let mut input = Some(input);
    let mut read_or_take = |path: &str| match path {
        "-" => input.take().map_or_else(|| Ok(Vec::new()), |input| input()),
        path => read(path),
    };
    let check_text = read_or_take(check_file)
        .map_err(|error| format!("Could not open check file '{check_file}': {}", describe(&error)))?;
    let input_file = arguments.input_file.as_deref().unwrap_or("-");
    let input_text = read_or_take(input_file)
        .map_err(|error| format!("Could not open input file '{input_file}': {}", describe(&error)))?;
    let input_name = if input_file == "-" { "<stdin>" } else { input_file };
    let checker = Checker::new(arguments.options.clone());
    let result = checker.check(check_file, check_text, input_name, input_text);
    let color = arguments.color.unwrap_or(environment.is_terminal);
    err.extend_from_slice(&result.render(color));
    Ok(match result.status {
        Status::Passed => EXIT_PASSED,
        Status::Failed => EXIT_FAILED,
        Status::Invalid => EXIT_INVALID,
        Status::EmptyInput => {
            let command = given.join(" ");
            let program = environment.program;
            let message =
                format!("FileCheck error: '{input_name}' is empty.\nFileCheck command line:  {program} {command}");
            return Err(message);
        }
    })
}

fn check_definitions(options: &Options) -> Result<(), String> {
    let mut problems = Vec::new();
    for Definition { text } in &options.definitions {
        match text.find('=') {
            None => problems.push(format!("Missing equal sign in command-line definition '-D{text}'")),
            Some(0) => problems.push(format!("Missing variable name in command-line definition '-D{text}'")),
            Some(_) => {}
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

fn describe(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "No such file or directory".to_string(),
        _ => error.to_string(),
    }
}

/// Parses arguments: options with one dash or two, values after `=` or as the next argument.
///
/// # Errors
/// What is wrong with them, without the name of the program.
pub fn parse(given: &[String]) -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
    let mut words = given.iter();
    let mut only_files = false;
    while let Some(word) = words.next() {
        let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
        let Some(name) = name.filter(|_| !only_files && word != "-") else {
            if arguments.check_file.replace(word.clone()).is_some() {
                return Err("Too many positional arguments specified!".to_string());
            }
            continue;
        };
        if word == "--" {
            only_files = true;
            continue;
        }
        option(&mut arguments, word, name, &mut words)?;
    }
    let options = &mut arguments.options;
    options.dump_input = arguments.dump_input.unwrap_or(options.dump_input);
    options.dump_context = arguments.dump_context.unwrap_or(options.dump_context);
    Ok(arguments)
}

fn option<'a>(
    arguments: &mut Arguments,
    word: &str,
    name: &str,
    words: &mut impl Iterator<Item = &'a String>,
) -> Result<(), String> {
    let (name, value) = match name.split_once('=') {
        // `-DNAME=value` is `D` and all that follows it.
        _ if name.starts_with('D') => {
            let value = &name[1..];
            ("D", Some(value).filter(|value| !value.is_empty()))
        }
        Some((name, value)) => (name, Some(value)),
        None => (name, None),
    };
    let dashes = if name.len() == 1 { "-" } else { "--" };
    let Some((_, setter)) = OPTIONS.iter().find(|(known, _)| *known == name) else {
        return Err(format!("Unknown command line argument '{word}'.  Try: '--help'"));
    };
    let named = |problem: String| format!("for the {dashes}{name} option: {problem}");
    match setter {
        Setter::Flag(set) => {
            let on = match value {
                None | Some("" | "true" | "TRUE" | "True" | "1") => true,
                Some("false" | "FALSE" | "False" | "0") => false,
                Some(other) => {
                    let problem = format!("'{other}' is invalid value for boolean argument! Try 0 or 1");
                    return Err(named(problem));
                }
            };
            set(arguments, on);
        }
        Setter::Value(set) => {
            let value = match value {
                Some(value) => value,
                None if name == "D" => return Err(named("requires a value!".to_string())),
                None => words.next().map(String::as_str).ok_or_else(|| named("requires a value!".into()))?,
            };
            set(arguments, value).map_err(named)?;
        }
    }
    Ok(())
}

/// Splits text into words as a shell would: blanks separate, quotes and backslashes protect.
pub fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                while let Some(inner) = chars.next().filter(|inner| *inner != c) {
                    match inner {
                        '\\' if c == '"' => word.extend(chars.next()),
                        inner => word.push(inner),
                    }
                }
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}
