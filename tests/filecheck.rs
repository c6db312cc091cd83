//! Runs the test files of `tests/filecheck`: `; RUN: ptxc %s … | filecheck %s`.
#![cfg(test)]

use std::path::Path;

#[test]
fn test_files_pass() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let command = Path::new(env!("CARGO_BIN_EXE_ptxc"));
    let folder = |name: &str| root.join(name).display().to_string();
    let path = command.parent().unwrap().display().to_string();
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join("filecheck").display().to_string();
    let arguments = ["--path", &path, "--output", &output, &folder("tests/filecheck")];
    let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
    assert_eq!(filecheck::lit::command::main(&arguments), 0, "test files fail; see the output above");
}
