//! Lists the run files and examples, so that the program carries them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    let mut list = String::from("/// Name and text of every run file.\npub const FILES: &[(&str, &str)] = &[\n");
    for folder in ["examples", "tests/run"] {
        let folder = root.join(folder);
        println!("cargo::rerun-if-changed={}", folder.display());
        for path in files(&folder) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let _ = writeln!(list, "    ({name:?}, include_str!({:?})),", path.display().to_string());
        }
    }
    list += "];\n";
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("run_files.rs");
    if let Err(error) = fs::write(&out, list) {
        println!("cargo::error={}: {error}", out.display());
    }
}

/// The `.ir` files of a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut out: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    out.retain(|path| path.extension().is_some_and(|extension| extension == "ir"));
    out.sort();
    out
}
