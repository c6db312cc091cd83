//! `update-checks`: the generator as a command.

use super::{Updated, update};
use crate::lit::shared_options::{self, SharedOptions};
use crate::lit::suite;

const USAGE_BEFORE: &str = "\
Writes the directives of tests from the output of their commands.

Usage: update-checks [options] <file or folder>...

  --new                    also for tests that do not say that theirs are generated
  --check                  change nothing; exit with 1 if something would change
";
const USAGE_AFTER: &str = "
Tests whose directives are generated say so in a line at the top. Those given by name without it are
left alone, unless there is --new. The exit status is 2 if a test cannot be updated.
";

/// Runs the command; returns its exit status.
pub fn main(given: &[String]) -> i32 {
    run(given).unwrap_or_else(|error| {
        eprintln!("update-checks: {error}");
        2
    })
}

fn run(given: &[String]) -> Result<i32, String> {
    let mut shared = SharedOptions::default();
    let mut paths = Vec::new();
    let (mut new, mut check) = (false, false);
    let mut words = given.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--new" => new = true,
            "--check" => check = true,
            "-h" | "--help" => {
                print!("{USAGE_BEFORE}{}{USAGE_AFTER}", shared_options::USAGE);
                return Ok(0);
            }
            name if SharedOptions::has(name) => {
                let value = words.next().ok_or_else(|| format!("{name} needs a value"))?;
                shared.set(name, value.clone())?;
            }
            name if name.starts_with('-') => return Err(format!("unknown option '{name}'")),
            _ => paths.push(word.clone()),
        }
    }
    if paths.is_empty() {
        return Err("no test given; try --help".to_string());
    }
    let settings = shared.settings()?;
    let tests = suite::find_tests(&paths, &settings)?;
    let mut status = 0;
    for test in &tests {
        match update(test, &settings, new) {
            Ok(Updated::Same) => {}
            Ok(Updated::NotGenerated) if paths.contains(&test.name) => {
                println!("{}: left alone; --new makes its directives generated", test.name);
            }
            Ok(Updated::NotGenerated) => {}
            Ok(Updated::Changed(_)) if check => {
                println!("{}: would change", test.name);
                status = status.max(1);
            }
            Ok(Updated::Changed(text)) => {
                std::fs::write(&test.path, text).map_err(|error| format!("{}: {error}", test.name))?;
                println!("{}: updated", test.name);
            }
            Err(error) => {
                eprintln!("{}: {error}", test.name);
                status = 2;
            }
        }
    }
    Ok(status)
}
