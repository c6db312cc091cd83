//! Makes a table of the files of `tests/rules`, whose functions programs call.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../tests/rules");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder of rules exists")
        .map(|entry| entry.expect("the folder of rules is readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ir"))
        .collect();
    files.sort();
    let mut out = String::from("/// Texts of the files.\nstatic FILES: &[&str] = &[\n");
    for file in files {
        let _ = writeln!(out, "    include_str!({:?}),", file.display().to_string());
    }
    out.push_str("];\n");
    let path = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("rule_files.rs");
    fs::write(path, out).expect("OUT_DIR is writable");
}
