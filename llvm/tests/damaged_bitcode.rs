//! Damaged bitcode is refused or read, in bounded time; it never panics.
//!
//! A run of the test damages each file of `tests/bitcode` a few hundred times; `DAMAGE_SECONDS=N` goes on for so long,
//! `DAMAGE_DIR=DIR` takes the files of another directory.
#![cfg(test)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ptxc_ir::testing::Rng;
use ptxc_llvm::{Module, bitcode};

/// Changes a file in one to eight places.
fn damage(random: &mut Rng, original: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=random.below(8) {
        let at = random.below(bytes.len());
        match random.below(10) {
            0..=3 => bytes[at] ^= 1 << random.below(8),
            4 => bytes[at] = random.bits() as u8,
            5 => {
                const WORDS: [u32; 6] = [0, u32::MAX, 0x7fff_ffff, 0x8000_0000, 0x0001_0000, 0x00ff_ffff];
                let word = WORDS[random.below(WORDS.len())].to_le_bytes();
                for (to, from) in bytes[at..].iter_mut().zip(word) {
                    *to = from;
                }
            }
            6 => bytes.truncate(at.max(4)),
            7 => {
                // Words are the unit of blocks.
                let word = at & !3;
                let count = (random.below(16) * 4).min(bytes.len() - word);
                bytes.drain(word..word + count);
            }
            8 => {
                let other = &others[random.below(others.len())];
                let from = random.below(other.len());
                let piece = &other[from..(from + random.below(64)).min(other.len())];
                for (to, from) in bytes[at..].iter_mut().zip(piece) {
                    *to = *from;
                }
            }
            _ => {
                // Shifts the bits of a piece by one.
                let end = (at + random.below(64)).min(bytes.len());
                let mut carry = 0;
                for byte in &mut bytes[at..end] {
                    let next = *byte >> 7;
                    *byte = *byte << 1 | carry;
                    carry = next;
                }
            }
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
    bytes
}

#[test]
fn damaged_files_are_refused_or_read() {
    let directory = std::env::var_os("DAMAGE_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/bitcode"), PathBuf::from);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "bc"));
    paths.sort();
    let files: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let seconds = std::env::var("DAMAGE_SECONDS").ok().and_then(|text| text.parse().ok());
    let start = Instant::now();
    let (mut read, mut refused, mut slowest) = (0u64, 0u64, Duration::ZERO);
    for seed in 0u64.. {
        match seconds {
            Some(seconds) if start.elapsed() > Duration::from_secs(seconds) => break,
            None if seed >= 200 * files.len() as u64 => break,
            _ => {}
        }
        let mut random = Rng::new(seed);
        let bytes = damage(&mut random, &files[seed as usize % files.len()], &files);
        let begin = Instant::now();
        let result = std::panic::catch_unwind(|| bitcode::read(&bytes, &mut Module::new()));
        let time = begin.elapsed();
        slowest = slowest.max(time);
        assert!(time < Duration::from_secs(5), "seed {seed} took {time:?}");
        match result {
            Ok(Ok(())) => read += 1,
            Ok(Err(error)) => {
                refused += 1;
                assert!(!error.message.is_empty());
            }
            Err(_) => panic!("seed {seed} panics"),
        }
    }
    println!("{read} read, {refused} refused, slowest {slowest:?}");
}
