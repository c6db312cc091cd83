//! `runtests`: the runner as a command.

use super::config::Config;
use super::suite::{self, Ending, Failure, Finished, Settings, Test};
use crate::ere::Regex;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const USAGE: &str = "\
Runs the commands in the RUN lines of test files.

Usage: runtests [options] <file or folder>...

  -j, --jobs <N>           tests at once (default: one for each processor)
  --filter <regex>         only tests whose names match
  --feature <name>         what tests may require; more than once
  -D <name>=<value>        %name and %{name} in RUN lines
  --path <folder>          where commands are looked for first; more than once
  --timeout <seconds>      for one test (default: 300)
  --output <folder>        where tests write (default: target/runtests)
  --external-filecheck     run filecheck as a process
  --stop                   start no more tests after a failure
  --slowest <N>            name the slowest tests
  -l, --list               name the tests and do nothing
  -q, --quiet              only failures
  -v, --verbose            every test, and why some are not run

Folders say what their tests are and what they need in runtests.cfg.
The exit status is 0 if nothing failed, 1 if something did, and 2 if nothing could be run.
";

/// A parsed command line.
struct Arguments {
    paths: Vec<String>,
    /// The options, as they were given, for repeating a test.
    repeated: Vec<String>,
    jobs: usize,
    filter: Option<String>,
    config: Config,
    search: Vec<String>,
    output: Option<String>,
    filecheck_in_process: bool,
    stop: bool,
    slowest: usize,
    list: bool,
    quiet: bool,
    verbose: bool,
    help: bool,
}

fn parse(given: &[String]) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        paths: Vec::new(),
        repeated: Vec::new(),
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
        filter: None,
        config: Config { timeout: Some(Duration::from_secs(300)), ..Config::default() },
        search: Vec::new(),
        output: None,
        filecheck_in_process: true,
        stop: false,
        slowest: 0,
        list: false,
        quiet: false,
        verbose: false,
        help: false,
    };
    let mut words = given.iter();
    while let Some(word) = words.next() {
        let (name, inline) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_string())),
            _ => (word.as_str(), None),
        };
        let mut value = || {
            let next = inline.clone().or_else(|| words.next().cloned());
            next.ok_or_else(|| format!("{name} needs a value"))
        };
        let number = |text: String| text.parse().map_err(|_| format!("'{text}' is no number"));
        match name {
            "-j" | "--jobs" => arguments.jobs = number(value()?)?,
            "--filter" => arguments.filter = Some(value()?),
            "--slowest" => arguments.slowest = number(value()?)?,
            "--external-filecheck" => arguments.filecheck_in_process = false,
            "--stop" => arguments.stop = true,
            "-l" | "--list" => arguments.list = true,
            "-q" | "--quiet" => arguments.quiet = true,
            "-v" | "--verbose" => arguments.verbose = true,
            "-h" | "--help" => arguments.help = true,
            "--feature" | "--path" | "--output" | "--timeout" | "-D" => {
                let value = value()?;
                arguments.repeated.extend([name.to_string(), quote(&value)]);
                match name {
                    "--feature" => _ = arguments.config.features.insert(value),
                    "--path" => arguments.search.push(value),
                    "--output" => arguments.output = Some(value),
                    "--timeout" => {
                        let seconds = number(value)? as u64;
                        arguments.config.timeout = Some(Duration::from_secs(seconds));
                    }
                    _ => {
                        let (name, value) = value.split_once('=').ok_or("-D needs name=value")?;
                        arguments.config.substitutions.insert(name.to_string(), value.to_string());
                    }
                }
            }
            _ if name.starts_with('-') => return Err(format!("unknown option '{word}'")),
            _ => arguments.paths.push(word.clone()),
        }
    }
    Ok(arguments)
}

/// Quotes a word for a shell where it needs to be.
fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Runs the command; returns its exit status.
pub fn main(given: &[String]) -> i32 {
    let result = parse(given).and_then(|arguments| run(&arguments));
    result.unwrap_or_else(|error| {
        eprintln!("runtests: {error}");
        2
    })
}

fn settings(arguments: &Arguments) -> Result<Settings, String> {
    let mut environment: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    // The programs beside this one are those that were built with it.
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_path_buf()));
    let given = arguments.search.iter().map(PathBuf::from);
    let mut search: Vec<PathBuf> = given.chain(beside).collect();
    for folder in &mut search {
        *folder = std::path::absolute(&*folder).map_err(|error| error.to_string())?;
    }
    let inherited = environment.get("PATH").cloned().unwrap_or_default();
    search.extend(std::env::split_paths(&inherited));
    let search = std::env::join_paths(search).map_err(|error| error.to_string())?;
    environment.insert("PATH".to_string(), search.to_string_lossy().into_owned());
    let output = match &arguments.output {
        Some(output) => PathBuf::from(output),
        None if PathBuf::from("target").is_dir() => PathBuf::from("target/runtests"),
        None => std::env::temp_dir().join("runtests"),
    };
    Ok(Settings {
        config: arguments.config.clone(),
        environment,
        output: std::path::absolute(output).map_err(|error| error.to_string())?,
        jobs: arguments.jobs,
        filecheck_in_process: arguments.filecheck_in_process,
        stop_at_failure: arguments.stop,
    })
}

fn run(arguments: &Arguments) -> Result<i32, String> {
    if arguments.help {
        print!("{USAGE}");
        return Ok(0);
    }
    if arguments.paths.is_empty() {
        return Err("no test given; try --help".to_string());
    }
    let settings = settings(arguments)?;
    let mut tests = suite::find_tests(&arguments.paths, &settings)?;
    if let Some(filter) = &arguments.filter {
        let regex = Regex::new(filter.as_bytes(), false).map_err(|error| format!("--filter: {error}"))?;
        tests.retain(|test| matches!(regex.find(test.name.as_bytes()), Ok(Some(_))));
    }
    if arguments.list {
        tests.iter().for_each(|test| println!("{}", test.name));
        return Ok(0);
    }
    if tests.is_empty() {
        return Err("no tests found".to_string());
    }
    let started = Instant::now();
    let finished = suite::run(&tests, &settings, |result| announce(arguments, &tests, result));
    for result in &finished {
        print_failure(arguments, &tests[result.index], &result.ending);
    }
    summarize(arguments, &tests, &finished, started.elapsed());
    let failed = finished.iter().any(|result| result.ending.is_bad());
    Ok(i32::from(failed))
}

/// One line for a test that ended, if it is worth one.
fn announce(arguments: &Arguments, tests: &[Test], result: &Finished) {
    let is_quiet = matches!(result.ending, Ending::Pass | Ending::ExpectedFailure | Ending::Unsupported(_));
    if is_quiet && !arguments.verbose {
        return;
    }
    let word = result.ending.word();
    let name = &tests[result.index].name;
    let reason = match &result.ending {
        Ending::Unsupported(reason) | Ending::Unresolved(reason) => format!(": {reason}"),
        _ => String::new(),
    };
    println!("{word}: {name} ({} ms){reason}", result.time.as_millis());
}

fn print_failure(arguments: &Arguments, test: &Test, ending: &Ending) {
    let (Ending::Fail(failure) | Ending::Timeout(failure)) = ending else {
        return;
    };
    let mut out = std::io::stdout().lock();
    // Nobody is left to read what cannot be written.
    _ = write_failure(&mut out, arguments, test, ending.word(), failure);
}

fn write_failure(
    out: &mut impl Write,
    arguments: &Arguments,
    test: &Test,
    word: &str,
    failure: &Failure,
) -> std::io::Result<()> {
    writeln!(out, "\n**** {word}: {} ****", test.name)?;
    writeln!(out, "{}:{}: RUN: {}", test.name, failure.line, failure.command)?;
    match &failure.result {
        Err(problem) => writeln!(out, "{problem}")?,
        Ok(outcome) => {
            match outcome.timed_out {
                true => writeln!(out, "ran out of time")?,
                false if outcome.status >= 128 => writeln!(out, "killed by signal {}", outcome.status - 128)?,
                false => writeln!(out, "exit status {}", outcome.status)?,
            }
            for (name, bytes) in [("standard output", &outcome.out), ("standard error", &outcome.err)] {
                if !bytes.is_empty() {
                    writeln!(out, "---- {name} ----")?;
                    out.write_all(bytes)?;
                    if !bytes.ends_with(b"\n") {
                        writeln!(out)?;
                    }
                }
            }
        }
    }
    let options: String = arguments.repeated.iter().map(|word| format!("{word} ")).collect();
    writeln!(out, "---- to repeat ----")?;
    writeln!(out, "runtests {options}{}", quote(&test.name))?;
    writeln!(out, "cd {} && {}", quote(&failure.directory.to_string_lossy()), failure.command)
}

fn summarize(arguments: &Arguments, tests: &[Test], finished: &[Finished], time: Duration) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for result in finished {
        *counts.entry(result.ending.word()).or_default() += 1;
    }
    if arguments.slowest > 0 {
        let mut slowest: Vec<&Finished> = finished.iter().collect();
        slowest.sort_by_key(|result| std::cmp::Reverse(result.time));
        println!("\nSlowest tests:");
        for result in slowest.iter().take(arguments.slowest) {
            println!("{:>8} ms {}", result.time.as_millis(), tests[result.index].name);
        }
    }
    let bad: Vec<&Finished> = finished.iter().filter(|result| result.ending.is_bad()).collect();
    if !bad.is_empty() {
        println!("\nFailed tests ({}):", bad.len());
        for result in bad {
            println!("  {} {}", result.ending.word(), tests[result.index].name);
        }
    } else if arguments.quiet {
        return;
    }
    let counts: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    println!("{} tests in {:.1} s: {}", finished.len(), time.as_secs_f64(), counts.join(", "));
}
