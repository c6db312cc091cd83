//! Mutated modules are translated or refused; nothing panics, whatever the reader lets through.
//!
//! `MUTATE_SECONDS=N` goes on for so long instead of two seconds; `MUTATE_DIR=DIR` takes the `.ll` files of another
//! directory.
#![cfg(test)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ptxc_ir::testing::Rng;
use ptxc_llvm::{Module, Options, text, translate};

/// The words of a text, with what stands between them.
fn words(text: &str) -> Vec<&str> {
    text.split_inclusive(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '%' | '@' | '-'))).collect()
}

/// Exchanges, repeats and drops words and lines.
fn mutate(random: &mut Rng, original: &str, all: &[String]) -> String {
    let mut lines: Vec<String> = original.lines().map(str::to_owned).collect();
    for _ in 0..=random.below(4) {
        let at = random.below(lines.len());
        match random.below(6) {
            0 => {
                lines.remove(at);
            }
            1 => {
                let line = lines[random.below(lines.len())].clone();
                lines.insert(at, line);
            }
            2 => {
                let other = &all[random.below(all.len())];
                let count = other.lines().count();
                let line = other.lines().nth(random.below(count)).unwrap_or("").to_owned();
                lines.insert(at, line);
            }
            _ => {
                let mut parts: Vec<String> = words(&lines[at]).into_iter().map(str::to_owned).collect();
                let other = lines[random.below(lines.len())].clone();
                let others = words(&other);
                if !parts.is_empty() && !others.is_empty() {
                    let place = random.below(parts.len());
                    parts[place] = others[random.below(others.len())].to_owned();
                }
                lines[at] = parts.concat();
            }
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.join("\n")
}

fn inputs() -> Vec<String> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/filecheck/llvm");
    let folder = std::env::var_os("MUTATE_DIR").map_or(own, PathBuf::from);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ll"));
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).filter(|text| !text.is_empty()).collect()
}

#[test]
fn mutated_modules_do_not_panic() {
    let seconds = std::env::var("MUTATE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let end = Instant::now() + Duration::from_secs(seconds);
    let all = inputs();
    let mut random = Rng::new(std::env::var("MUTATE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1));
    let (mut tried, mut translated) = (0u64, 0u64);
    while Instant::now() < end {
        let mutant = mutate(&mut random, &all[random_index(tried, all.len())], &all);
        tried += 1;
        let outcome = std::panic::catch_unwind(|| {
            let mut module = Module::new();
            if text::read(mutant.as_bytes(), &mut module).is_err() {
                return false;
            }
            let options = Options { clusters: true, architecture: 900, ..Options::default() };
            match translate(&module, options) {
                Ok(translation) => {
                    // What the translation makes is printed and verified without a panic, too.
                    let _ = ptxc_ir::verify_module(&translation.module);
                    true
                }
                Err(messages) => {
                    assert!(!messages.is_empty());
                    false
                }
            }
        });
        match outcome {
            Ok(done) => translated += u64::from(done),
            Err(_) => panic!("a panic over this module:\n{mutant}"),
        }
    }
    println!("{tried} modules, {translated} translated");
    assert!(translated > 0);
}

fn random_index(tried: u64, len: usize) -> usize {
    (tried % len as u64) as usize
}
