//! Text and bitcode of one module are read into models that say the same.
//!
//! `READERS_AGREE=DIR` compares every `X.ll` in a directory with the `X.bc` beside it.
#![cfg(test)]

mod support;

use std::path::Path;

use ptxc_llvm::{Module, bitcode, text};
use support::dump::dump;

fn read(path: &Path) -> Result<Module, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let mut module = Module::new();
    let result = match bitcode::is_bitcode(&bytes) {
        true => bitcode::read(&bytes, &mut module),
        false => text::read(&bytes, &mut module),
    };
    match result {
        Ok(()) => Ok(module),
        Err(error) => Err(format!("{}: byte {}: {error}", path.display(), error.at)),
    }
}

/// The first lines that differ, or nothing.
fn difference(a: &str, b: &str) -> Option<String> {
    let mut lines = a.lines().zip(b.lines()).enumerate();
    match lines.find(|(_, (a, b))| a != b) {
        Some((number, (a, b))) => Some(format!("line {}:\n  text:    {a}\n  bitcode: {b}", number + 1)),
        None if a.lines().count() != b.lines().count() => Some("one is longer".to_owned()),
        None => None,
    }
}

fn compare(directory: &Path) -> usize {
    let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut compared = 0;
    let mut failures = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "bc")) {
        let outcome = read(&path.with_extension("ll")).and_then(|a| Ok((a, read(path)?)));
        match outcome {
            Ok((a, b)) => {
                if let Some(difference) = difference(&dump(&a), &dump(&b)) {
                    failures.push(format!("{}: {difference}", path.display()));
                }
            }
            Err(error) => failures.push(error),
        }
        compared += 1;
    }
    assert!(failures.is_empty(), "{} of {compared} differ:\n{}", failures.len(), failures.join("\n"));
    compared
}

#[test]
fn modules_of_the_suite_agree() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bitcode");
    assert!(compare(&directory) > 0);
}

#[test]
fn modules_of_a_directory_agree() {
    if let Some(directory) = std::env::var_os("READERS_AGREE") {
        println!("{} compared", compare(Path::new(&directory)));
    }
}
