//! Launches every example, every run file, and every scalar operation, on a GPU, compiled at `-O0` and `-O3`, and
//! compares what it computes with a reference computed on the host.
//!
//! The program carries the examples and needs only a CUDA driver: it can be built on one machine and run on another.
//! Without a driver or a GPU every test is reported as skipped, by name, and the exit status is 0; `--require-gpu`
//! makes that a failure. Every test runs in a process of its own, since a fault in a kernel spoils the context of its
//! process, and is stopped when it takes too long.

mod cases;
mod compare;
mod operations;
mod random;
mod run_files;
mod semantics;

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use cases::{CASES, Failure, Outcome};
use clap::Parser;
use device::{Gpu, Module};
use ptxc::{OptLevel, Options};
use ptxc_gpu as device;

/// The optimization levels that are tested.
const LEVELS: [(&str, OptLevel); 2] = [("O0", OptLevel::O0), ("O3", OptLevel::O3)];

#[derive(Parser)]
#[command(name = "ptxc-gpu-tests", about = "Runs the examples on a GPU and compares them with references")]
struct Arguments {
    /// Take EXAMPLE.O0.ptx and EXAMPLE.O3.ptx from this directory instead of compiling; only the examples are run.
    #[arg(long, value_name = "DIR")]
    ptx_dir: Option<PathBuf>,
    /// The target to compile for, instead of the GPU's own.
    #[arg(long, value_name = "SM", conflicts_with = "ptx_dir")]
    sm: Option<String>,
    /// Fail, instead of skipping, where there is no GPU.
    #[arg(long)]
    require_gpu: bool,
    /// Run only the tests whose name contains this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Record what single instructions compute, one file a family in this directory, and run no test.
    #[arg(long, value_name = "DIR", conflicts_with = "ptx_dir")]
    record_semantics: Option<PathBuf>,
    /// Print every operand and result of the instructions with these texts, and run no test.
    #[arg(long, value_name = "TEXT", num_args = 1..)]
    print_semantics: Vec<String>,
    /// Stop a test after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// Run one test in this process and print its result as one line.
    #[arg(long, hide = true, value_name = "NAME.LEVEL")]
    child: Option<String>,
}

/// Runs the kernels of a loaded module and compares.
type Body = dyn Fn(&Gpu, &Module) -> Result<Outcome, Failure>;

/// One module and what is checked about it.
struct Test {
    /// Name of the example's file without suffix, or of the family of operations.
    name: String,
    /// What is computed, for the table.
    size: String,
    /// The module's IR.
    source: String,
    /// Runs the kernels and compares.
    body: Box<Body>,
}

/// All tests, or the examples alone.
fn tests(examples_only: bool) -> Vec<Test> {
    let mut list: Vec<Test> = CASES
        .iter()
        .map(|case| Test {
            name: case.name.into(),
            size: case.size.into(),
            source: case.source.into(),
            body: Box::new(case.test),
        })
        .collect();
    if !examples_only {
        list.extend(operations::families().into_iter().map(|family| Test {
            name: family.name.clone(),
            size: format!("{} operations", family.len()),
            source: family.source(),
            body: Box::new(move |gpu, module| family.test(gpu, module)),
        }));
    }
    list
}

/// How a test ended: as the columns of the table.
struct Line {
    passed: bool,
    result: String,
    time: String,
}

impl Line {
    fn failed(text: impl Into<String>) -> Line {
        Line { passed: false, result: format!("FAILED: {}", text.into()), time: String::new() }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(test) = &arguments.child {
        return run_child(test, &arguments);
    }
    if let Some(directory) = &arguments.record_semantics {
        return semantics::record(directory, &arguments.only);
    }
    if !arguments.print_semantics.is_empty() {
        return semantics::print(&arguments.print_semantics);
    }
    let mut chosen = tests(arguments.ptx_dir.is_some());
    chosen.retain(|test| test.name.contains(&arguments.only));
    let run_files = if arguments.ptx_dir.is_some() { Vec::new() } else { run_files::names(&arguments.only) };
    if chosen.is_empty() && run_files.is_empty() {
        eprintln!("no test has `{}` in its name", arguments.only);
        return ExitCode::FAILURE;
    }
    match find_gpu() {
        Ok(description) => println!("{description}\n"),
        Err(reason) => {
            for name in chosen.into_iter().map(|test| test.name).chain(run_files) {
                println!("{name}: skipped: {reason}");
            }
            return if arguments.require_gpu { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    }
    println!("| test | size | level | result | time, µs |");
    println!("| --- | --- | --- | --- | ---: |");
    let (mut run, mut failed) = (0, 0);
    for test in &chosen {
        for (level, _) in LEVELS {
            let line = run_test(&format!("{}.{level}", test.name), &arguments);
            println!("| {} | {} | -{level} | {} | {} |", test.name, test.size, line.result, line.time);
            run += 1;
            failed += usize::from(!line.passed);
        }
    }
    for name in &run_files {
        let line = run_test(name, &arguments);
        println!("| {name} | | both | {} | |", line.result);
        run += 1;
        failed += usize::from(!line.passed);
    }
    println!("\n{run} tests, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Describes the GPU, or says why there is none.
fn find_gpu() -> Result<String, String> {
    if !device::driver_is_present() {
        return Err("no CUDA driver".into());
    }
    let gpu = Gpu::open().map_err(|error| format!("no GPU ({error})"))?;
    let (major, minor) = gpu.capability();
    Ok(format!("{}, compute capability {major}.{minor}", gpu.name()))
}

/// Runs one test in a child process and waits for it, at most as long as the arguments allow.
fn run_test(name: &str, arguments: &Arguments) -> Line {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return Line::failed(format!("cannot find this program: {error}")),
    };
    let mut command = Command::new(program);
    command.arg("--child").arg(name);
    if let Some(directory) = &arguments.ptx_dir {
        command.arg("--ptx-dir").arg(directory);
    }
    if let Some(sm) = &arguments.sm {
        command.arg("--sm").arg(sm);
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return Line::failed(format!("cannot start the test: {error}")),
    };
    // A test prints one line only: it never waits for somebody to read it.
    let deadline = Instant::now() + Duration::from_secs(arguments.timeout);
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                // It may have ended in this very moment: neither result matters.
                let _ = child.kill();
                let _ = child.wait();
                return Line::failed(format!("still running after {} s", arguments.timeout));
            }
            Err(error) => return Line::failed(format!("cannot wait for the test: {error}")),
        }
    }
    match child.wait_with_output() {
        Ok(output) => read_result(&output),
        Err(error) => Line::failed(format!("cannot read the test's result: {error}")),
    }
}

/// Takes apart the line that [`run_child`] prints.
fn read_result(output: &std::process::Output) -> Line {
    let text = String::from_utf8_lossy(&output.stdout);
    let fields: Vec<&str> = text.trim_end_matches('\n').split('\t').collect();
    match fields[..] {
        ["passed", result, time] => Line { passed: true, result: result.into(), time: time.into() },
        ["failed", reason] => Line::failed(reason),
        _ => {
            let complaint = String::from_utf8_lossy(&output.stderr);
            let last = complaint.lines().rfind(|line| !line.is_empty()).unwrap_or("no message");
            Line::failed(format!("{}: {last}", output.status))
        }
    }
}

/// Runs the test `NAME.LEVEL`, or a run file at both levels, in this process.
fn run_child(test: &str, arguments: &Arguments) -> ExitCode {
    if test.starts_with(run_files::PREFIX) {
        let result = Gpu::open().map_err(|error| error.to_string()).and_then(|gpu| run_files::run(test, &gpu));
        return match result {
            Ok(agreement) => {
                println!("passed\t{agreement}\t");
                ExitCode::SUCCESS
            }
            Err(reason) => {
                println!("failed\t{}", reason.replace(['\n', '\t'], " "));
                ExitCode::FAILURE
            }
        };
    }
    match run_here(test, arguments) {
        Ok(outcome) => {
            let time = outcome.time.map_or(String::new(), |time| format!("{time:.1}"));
            println!("passed\t{}\t{time}", outcome.agreement);
            ExitCode::SUCCESS
        }
        Err(reason) => {
            println!("failed\t{}", reason.replace(['\n', '\t'], " "));
            ExitCode::FAILURE
        }
    }
}

fn run_here(test: &str, arguments: &Arguments) -> Result<Outcome, String> {
    let (name, level) = test.split_once('.').ok_or("a test is named NAME.LEVEL")?;
    let mut list = tests(arguments.ptx_dir.is_some());
    list.retain(|test| test.name == name);
    let test = list.pop().ok_or_else(|| format!("no test `{name}`"))?;
    let gpu = Gpu::open().map_err(|error| error.to_string())?;
    let ptx = match &arguments.ptx_dir {
        Some(directory) => {
            let path = directory.join(format!("{name}.{level}.ptx"));
            std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?
        }
        None => compile(&test, level, &arguments.sm.clone().unwrap_or_else(|| target_of(&gpu)))?,
    };
    let module = gpu.load(&ptx).map_err(|error| error.to_string())?;
    (test.body)(&gpu, &module).map_err(|failure| failure.to_string())
}

/// The target that gives the GPU everything it has: from compute capability 9.0 on that is the one with the suffix `a`.
fn target_of(gpu: &Gpu) -> String {
    let (major, minor) = gpu.capability();
    format!("sm_{major}{minor}{}", if major >= 9 { "a" } else { "" })
}

/// Compiles a test's module for a target.
fn compile(test: &Test, level: &str, sm: &str) -> Result<String, String> {
    let target = sm.parse().map_err(|error| format!("{sm}: {error}"))?;
    let (_, opt_level) = LEVELS.into_iter().find(|(name, _)| *name == level).ok_or("no such level")?;
    let options = Options { opt_level, ..Options::new(target) };
    match ptxc::compile_text(&format!("{}.ir", test.name), &test.source, &options) {
        Ok(output) => Ok(output.text),
        Err(diagnostics) => Err(format!("not compiled: {diagnostics}")),
    }
}
