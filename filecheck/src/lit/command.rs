//! `runtests`: the runner as a command.

use super::shared_options::{self, SharedOptions, quote};
use super::suite::{self, Ending, Failure, Finished, Test};
use crate::ere::Regex;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

const USAGE_BEFORE: &str = "\
Runs the commands in the RUN lines of test files.

Usage: runtests [options] <file or folder>...

  -j, --jobs <N>           tests at once (default: one for each processor)
  --filter <regex>         only tests whose names match
";
const USAGE_AFTER: &str = "\
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
#[derive(Default)]
struct Arguments {
    paths: Vec<String>,
    shared: SharedOptions,
    jobs: Option<usize>,
    filter: Option<String>,
    filecheck_as_process: bool,
    stop: bool,
    slowest: usize,
    list: bool,
    quiet: bool,
    verbose: bool,
    help: bool,
}

fn parse(given: &[String]) -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
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
            "-j" | "--jobs" => arguments.jobs = Some(number(value()?)?),
            "--filter" => arguments.filter = Some(value()?),
            "--slowest" => arguments.slowest = number(value()?)?,
            "--external-filecheck" => arguments.filecheck_as_process = true,
            "--stop" => arguments.stop = true,
            "-l" | "--list" => arguments.list = true,
            "-q" | "--quiet" => arguments.quiet = true,
            "-v" | "--verbose" => arguments.verbose = true,
            "-h" | "--help" => arguments.help = true,
            _ if SharedOptions::has(name) => arguments.shared.set(name, value()?)?,
            _ if name.starts_with('-') => return Err(format!("unknown option '{word}'")),
            _ => arguments.paths.push(word.clone()),
        }
    }
    Ok(arguments)
}

/// Runs the command; returns its exit status.
pub fn main(given: &[String]) -> i32 {
    let result = parse(given).and_then(|arguments| run(&arguments));
    result.unwrap_or_else(|error| {
        eprintln!("runtests: {error}");
        2
    })
}

fn run(arguments: &Arguments) -> Result<i32, String> {
    if arguments.help {
        print!("{USAGE_BEFORE}{}{USAGE_AFTER}", shared_options::USAGE);
        return Ok(0);
    }
    if arguments.paths.is_empty() {
        return Err("no test given; try --help".to_string());
    }
    let mut settings = arguments.shared.settings()?;
    settings.jobs = arguments.jobs.unwrap_or(settings.jobs);
    settings.filecheck_in_process = !arguments.filecheck_as_process;
    settings.stop_at_failure = arguments.stop;
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
    let options: String = arguments.shared.given.iter().map(|word| format!("{word} ")).collect();
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
