//! The three commands, as processes.

// Helpers outside of test functions unwrap, too.
#![allow(clippy::unwrap_used)]
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, program: &str, arguments: &[&str], input: &str, extra: Option<&str>) -> Output {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.path()).env_remove("FILECHECK_OPTS");
        if let Some(extra) = extra {
            command.env("FILECHECK_OPTS", extra);
        }
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        // The command may not want any input.
        _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn filecheck(&self, arguments: &[&str], input: &str) -> Output {
        self.run(env!("CARGO_BIN_EXE_filecheck"), arguments, input, None)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn filecheck_says_by_its_status_what_happened() {
    let folder = Folder::new(&[("c", "CHECK: a\n"), ("bad", "CHECK: {{*}}\n")]);
    assert_eq!(folder.filecheck(&["c"], "a\n").status.code(), Some(0));
    assert_eq!(folder.filecheck(&["c"], "b\n").status.code(), Some(1));
    assert_eq!(folder.filecheck(&["bad"], "b\n").status.code(), Some(2));
    let empty = folder.filecheck(&["c"], "");
    assert_eq!(empty.status.code(), Some(2));
    assert!(text(&empty.stderr).starts_with("FileCheck error: '<stdin>' is empty."));
    let missing = folder.filecheck(&["none"], "a\n");
    assert_eq!(text(&missing.stderr), "Could not open check file 'none': No such file or directory\n");
}

#[test]
fn filecheck_takes_options_in_every_spelling() {
    let folder = Folder::new(&[("c", "ABC: a[[V]]\n"), ("i", "A1\n")]);
    for arguments in [
        ["-check-prefix=ABC", "--ignore-case", "-DV=1", "-input-file=i", "c"].as_slice(),
        &["--check-prefix", "ABC", "-ignore-case=true", "c", "--DV=1", "--input-file", "i"],
        &["-D", "V=1", "c"],
    ] {
        let output = folder.filecheck(arguments, "a1\n");
        // Only after -D the value has to follow at once.
        assert_eq!(output.status.success(), arguments[0] != "-D", "{arguments:?}: {}", text(&output.stderr));
    }
    let unknown = folder.filecheck(&["--nonsense", "c"], "a\n");
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("Unknown command line argument '--nonsense'"));
}

#[test]
fn filecheck_options_come_from_the_environment_too() {
    let folder = Folder::new(&[("c", "CHECK: a\n")]);
    let program = env!("CARGO_BIN_EXE_filecheck");
    let output = folder.run(program, &["c"], "a\n", Some("-dump-input=always -v"));
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("check:1     ^\n"), "{}", text(&output.stderr));
}

#[test]
fn runtests_shows_how_to_repeat_a_failure() {
    let folder = Folder::new(&[
        ("good.t", "# RUN: echo 5 | filecheck %s\n# CHECK: {{[0-9]}}\n"),
        ("bad.t", "# RUN: echo 5 | %{check}\n# CHECK: 6\n"),
    ]);
    let program = env!("CARGO_BIN_EXE_runtests");
    let output = folder.run(program, &["-D", "check=filecheck %s", "--output", "out", "."], "", None);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    let repeat = "runtests -D 'check=filecheck %s' --output out ./bad.t\n";
    assert!(said.contains(repeat), "{said}");
    assert!(said.contains("&& echo 5 | filecheck "), "{said}");
    assert!(said.contains("bad.t:2:10: error: CHECK: expected string not found in input"), "{said}");
    assert!(said.contains("2 tests in "), "{said}");
    let good = folder.run(program, &["good.t", "--output", "out"], "", None);
    assert_eq!(good.status.code(), Some(0));
    let none = folder.run(program, &["--filter", "nothing", "."], "", None);
    assert_eq!(text(&none.stderr), "runtests: no tests found\n");
}

#[test]
fn update_checks_writes_what_filecheck_then_accepts() {
    let ptx = ".version 7.0\n.visible .entry k()\n{\n\tmov.u32 %r1, %tid.x;\n\tadd.s32 %r2, %r1, 1;\n\tret;\n}\n";
    let folder = Folder::new(&[("k.ptx.in", ptx), ("k.t", "// RUN: cat %S/k.ptx.in | filecheck %s\n")]);
    let program = env!("CARGO_BIN_EXE_update-checks");
    let run = |arguments: &[&str]| folder.run(program, &[arguments, &["--output", "out", "k.t"]].concat(), "", None);
    assert_eq!(run(&["--new", "--check"]).status.code(), Some(1));
    assert_eq!(text(&run(&["--new"]).stdout), "k.t: updated\n");
    let test = std::fs::read_to_string(folder.path().join("k.t")).unwrap();
    assert!(test.contains("// CHECK-NEXT: add.s32 [[R2:%r[0-9]+]], [[R1]], 1;\n"), "{test}");
    let renumbered = ptx.replace("%r2", "%r7").replace("%r1", "%r9");
    assert!(folder.filecheck(&["k.t"], &renumbered).status.success());
    assert_eq!(run(&["--check"]).status.code(), Some(0));
}
