//! Compiles the tables of intrinsics to static data.

mod pattern;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use pattern::Piece;

fn main() {
    println!("cargo::rerun-if-changed=tables");
    println!("cargo::rerun-if-changed=build");
    if let Err(message) = run() {
        eprintln!("error: {message}");
        process::exit(1);
    }
}

fn run() -> Result<(), String> {
    let mut files: Vec<PathBuf> = fs::read_dir("tables")
        .map_err(|e| format!("tables: {e}"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "tbl"))
        .collect();
    files.sort();
    let mut out = String::from("pub(super) static LINES: &[Line] = &[\n");
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for file in &files {
        let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        for (number, line) in text.lines().enumerate() {
            let place = format!("{}:{}", file.display(), number + 1);
            let Some(line) = pattern::parse(line).map_err(|e| format!("{place}: {e}"))? else { continue };
            let mut twice = None;
            pattern::names(&line.pieces, &mut |name| {
                if let Some(other) = seen.insert(name.clone(), place.clone()) {
                    twice = Some(format!("{place}: `{name}` is also matched at {other}"));
                }
            });
            if let Some(message) = twice {
                return Err(message);
            }
            write_line(&mut out, &line);
        }
    }
    out.push_str("];\n");
    let target = env::var("OUT_DIR").map_err(|e| e.to_string())?;
    fs::write(Path::new(&target).join("intrinsics.rs"), out).map_err(|e| e.to_string())
}

fn write_line(out: &mut String, line: &pattern::Line) {
    out.push_str("Line { pieces: &[");
    for piece in &line.pieces {
        match piece {
            Piece::Text(text) => {
                let _ = write!(out, "Piece::Text({text:?}),");
            }
            Piece::Choice(choices) => {
                out.push_str("Piece::Choice(&[");
                for choice in choices {
                    let _ = write!(out, "Choice {{ name: {:?}, values: &{:?} }},", choice.name, choice.values);
                }
                out.push_str("]),");
            }
        }
    }
    let _ = writeln!(out, "], what: {:?} }},", line.what);
}
