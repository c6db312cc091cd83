//! The `ptxc` command: what it accepts, what it refuses and how.
#![cfg(test)]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const KERNEL: &str = "kernel @k(%p: ptr<global>) {\nentry:\n  %t = sreg.tid.x\n  store i32 %t, %p\n  ret\n}\n";

fn ptxc(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ptxc")).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn ptxc_with_input(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ptxc"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command may refuse its arguments before it reads.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The command fails with this status, prints exactly this on standard error, and nothing on standard output.
fn fails(output: &Output, status: i32, message: &str) {
    assert_eq!(stderr(output), message);
    assert_eq!(output.status.code(), Some(status));
    assert_eq!(stdout(output), "");
}

fn path(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

#[test]
fn ir_from_standard_input_comes_back_as_ir() {
    let output = ptxc_with_input(&["-", "-O0", "--emit", "ir"], KERNEL.as_bytes());
    assert_eq!(stderr(&output), "");
    assert_eq!(stdout(&output), KERNEL);
    assert!(output.status.success());
}

#[test]
fn the_output_does_not_replace_the_input() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder, "k.ir");
    fs::write(&file, KERNEL).unwrap();
    let message = format!("{file}: error: the output would replace the input\n");
    fails(&ptxc(&[&file, "--sm", "sm_90", "-o", &path(&folder, "./k.ir")]), 1, &message);
    assert_eq!(fs::read_to_string(&file).unwrap(), KERNEL);
}

#[test]
fn a_kernel_becomes_ptx() {
    let output = ptxc_with_input(&["-", "-O3", "--sm", "sm_90"], KERNEL.as_bytes());
    assert_eq!(stderr(&output), "");
    let ptx = stdout(&output);
    assert!(ptx.contains(".target sm_90\n") && ptx.contains(".entry k("), "{ptx}");
}

#[test]
fn errors_have_place_line_and_caret() {
    let text = KERNEL.replace("sreg.tid.x", "sreg.tid.q");
    let output = ptxc_with_input(&["-", "--sm", "sm_90"], text.as_bytes());
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<&str> = message.lines().collect();
    assert!(lines[0].starts_with("<stdin>:3:8: error: "), "{message}");
    assert_eq!(lines[1], "    %t = sreg.tid.q");
    assert!(lines[2].starts_with("         ^~~~"), "{message}");
}

#[test]
fn all_errors_of_a_text_are_reported() {
    let text = KERNEL.replace("sreg.tid.x", "nonsense i32 1").replace("ret", "retire");
    let output = ptxc_with_input(&["-", "--sm", "sm_90"], text.as_bytes());
    assert_eq!(stderr(&output).matches(": error: ").count(), 2, "{}", stderr(&output));
}

#[test]
fn a_missing_file_is_named() {
    let output = ptxc(&["no/such/file.ir", "--sm", "sm_90"]);
    fails(&output, 1, "no/such/file.ir: error: cannot read: no such file or directory\n");
}

#[test]
fn a_directory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().display().to_string();
    fails(&ptxc(&[&name, "--sm", "sm_90"]), 1, &format!("{name}: error: is a directory\n"));
}

#[test]
fn empty_input_is_refused() {
    for text in ["", "  \n\t\n"] {
        let output = ptxc_with_input(&["-", "--sm", "sm_90"], text.as_bytes());
        fails(&output, 1, "<stdin>: error: the input is empty\n");
    }
}

#[test]
fn text_that_is_not_utf8_is_refused_with_its_place() {
    let output = ptxc_with_input(&["-", "--sm", "sm_90"], b"; fine\n; \xff\n");
    fails(&output, 1, "<stdin>:2:3: error: this is not UTF-8 text: byte 0xff\n  ; \u{fffd}\n    ^\n");
}

#[test]
fn a_target_is_needed_for_code() {
    let output = ptxc_with_input(&["-"], KERNEL.as_bytes());
    fails(&output, 1, "error: a target is needed: `--sm sm_XX` (`ptxc targets` lists them)\n");
}

#[test]
fn unknown_names_are_refused_with_the_known_ones() {
    let output = ptxc(&["x.ir", "--sm", "sm_9"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("unknown target `sm_9`"), "{}", stderr(&output));
    let output = ptxc(&["x.ir", "--sm", "sm_90", "--ptx-version", "8.9"]);
    assert!(stderr(&output).contains("unknown PTX version `8.9`"), "{}", stderr(&output));
    let output = ptxc(&["x.ir", "--sm", "sm_90", "--passes", "make-faster"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("error: there is no pass `make-faster`; passes are: "), "{}", stderr(&output));
    let output = ptxc(&["x.ir", "--sm", "sm_90", "--print-after", "lunch"]);
    assert!(stderr(&output).starts_with("error: there is no step `lunch`; steps are: "), "{}", stderr(&output));
    assert_eq!(ptxc(&["x.ir", "-O4"]).status.code(), Some(2));
    assert_eq!(ptxc(&[]).status.code(), Some(2));
}

#[test]
fn outputs_appear_whole_and_alone() {
    let folder = tempfile::tempdir().unwrap();
    let out = path(&folder, "k.ir");
    fs::write(&out, "old").unwrap();
    let output = ptxc_with_input(&["-", "-O0", "--emit", "ir", "-o", &out], KERNEL.as_bytes());
    assert_eq!((stderr(&output), stdout(&output)), (String::new(), String::new()));
    assert_eq!(fs::read_to_string(&out).unwrap(), KERNEL);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "temporary files are left");
}

#[test]
fn failing_compilations_leave_outputs_alone() {
    let folder = tempfile::tempdir().unwrap();
    let out = path(&folder, "k.ptx");
    fs::write(&out, "old").unwrap();
    let output = ptxc_with_input(&["-", "--sm", "sm_90", "-o", &out], b"nonsense");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_to_string(&out).unwrap(), "old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "temporary files are left");
}

#[test]
fn outputs_that_cannot_be_written_are_named() {
    let output = ptxc_with_input(&["-", "--emit", "ir", "-o", "no/such/folder/k.ir"], KERNEL.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.starts_with("no/such/folder/k.ir: error: cannot write: no such file or directory"), "{message}");
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().display().to_string();
    let output = ptxc_with_input(&["-", "--emit", "ir", "-o", &name], KERNEL.as_bytes());
    assert!(stderr(&output).starts_with(&format!("{name}: error: cannot write: ")), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn devices_are_written_to_and_links_written_through() {
    let output = ptxc_with_input(&["-", "--emit", "ir", "-o", "/dev/null"], KERNEL.as_bytes());
    assert!(output.status.success());
    assert!(!Path::new("/dev/null").is_file());
    let folder = tempfile::tempdir().unwrap();
    let (link, real) = (path(&folder, "link.ir"), path(&folder, "real.ir"));
    fs::write(&real, "old").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    assert!(ptxc_with_input(&["-", "-O0", "--emit", "ir", "-o", &link], KERNEL.as_bytes()).status.success());
    assert_eq!(fs::read_to_string(&real).unwrap(), KERNEL);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn steps_are_printed_and_timed_on_request() {
    let arguments = ["-", "-O1", "--emit", "ir", "--print-after", "all", "--time-passes", "--stats"];
    let output = ptxc_with_input(&arguments, KERNEL.as_bytes());
    let message = stderr(&output);
    for name in ["read", "simplify-control-flow", "fold-constants", "merge-block-params", "remove-dead-code"] {
        assert!(message.contains(&format!("; after {name}\nkernel @k(")), "{name} in {message}");
        assert!(message.contains(&format!("%  {name}\n")), "{name} in {message}");
    }
    assert!(message.contains("%  total\n"), "{message}");
    assert!(message.contains("instructions read\n"), "{message}");
}

#[test]
fn passes_can_be_chosen() {
    let text = KERNEL.replace("sreg.tid.x", "add i32 1, 2");
    let run = |passes: &str| stdout(&ptxc_with_input(&["-", "--emit", "ir", "--passes", passes], text.as_bytes()));
    assert!(run("").contains("%t = add i32 1, 2"));
    assert!(run("fold-constants").contains("store i32 3, %p"));
}

#[test]
fn the_table_of_targets_lists_all() {
    let table = stdout(&ptxc(&["targets"]));
    for target in ptxc::targets::Target::ALL {
        let row = table.lines().find(|line| line.split_whitespace().next() == Some(target.name()));
        assert!(row.is_some_and(|row| row.contains(&target.min_ptx().to_string())), "{target} in {table}");
    }
    assert!(table.contains("sm_103, sm_107"), "{table}");
}

/// A kernel that doubles, with directives.
const DOUBLE: &str = ";! let n = 4\n;! buffer x: u32[n] = i\n;! launch @double(x) block(n)\n\
     kernel @double(%x: ptr<global>) {\nentry:\n  %t = sreg.tid.x\n  %p = gep i32, %x, %t\n  %v = load i32, %p\n  \
     %w = shl i32 %v, 1\n  store i32 %w, %p\n  ret\n}\n";

#[test]
fn kernels_run_in_every_executor_and_print_what_they_leave() {
    let run = |arguments: &[&str]| ptxc_with_input(&[&["run", "-"], arguments].concat(), DOUBLE.as_bytes());
    for (arguments, title) in [
        (&[][..], "interpreter"),
        (&["-O3", "--legal"], "interpreter -O3 legal"),
        (&["--executor", "emulator", "-O0"], "emulator -O0"),
    ] {
        let output = run(arguments);
        let text = stdout(&output);
        assert!(text.starts_with(&format!("{title}: as expected, ")), "{text}{}", stderr(&output));
        assert!(text.ends_with("\nx[0..4] = 0 2 4 6\n"), "{text}");
    }
    let output = run(&["-d", "expect x = 2 * i", "-d", "print x[3]", "--executor", "all"]);
    assert!(stdout(&output).starts_with("agree: interpreter, "), "{}", stderr(&output));
}

#[test]
fn what_goes_wrong_in_a_run_has_its_place() {
    let run = |text: &str, arguments: &[&str]| ptxc_with_input(&[&["run", "-"], arguments].concat(), text.as_bytes());
    let output = run(DOUBLE, &["-d", "expect x[1] = 3"]);
    assert_eq!(
        stderr(&output),
        "<stdin>:14:11: error: interpreter: x[1] is 2, expected 3\n  ;! expect x[1] = 3\n            ^~~~\n"
    );
    assert_eq!(output.status.code(), Some(1));
    let output = run(&DOUBLE.replace("block(n)", "block(n + 1)"), &[]);
    let place = "at @double, `%v = load` in block entry, <stdin>:8:3 (block [0, 0, 0], thread 4)\n";
    assert!(stderr(&output).ends_with(place), "{}", stderr(&output));
    fails(
        &run(DOUBLE, &["-d", "expects"]),
        1,
        "<stdin>:14:4: error: there is no directive `expects`; there are: let def array buffer launch expect check case \
         fails warns print free gap target\n  ;! expects\n     ^~~~~~~\n",
    );
    fails(&run(DOUBLE, &["--case", "b"]), 1, "<stdin>: error: there is no case `b`\n");
    let hint = "a line like `;! launch @kernel(8, x) grid(2)` launches a kernel";
    fails(&run(KERNEL, &[]), 1, &format!("<stdin>: error: the file launches nothing; {hint}\n"));
}

#[test]
fn stats_refuses_what_is_no_cubin() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder, "x.cubin");
    fs::write(&file, "text").unwrap();
    let output = ptxc(&["stats", &file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with(&format!("{file}: error: not a readable ELF file")), "{}", stderr(&output));
}

#[test]
fn check_says_what_a_target_does_not_take() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder, "k.ptx");
    let text = ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k() {\n  .reg .b32 %r<3>;\n  \
                redux.sync.add.s32 %r0, %r1, -1;\n  ret;\n}\n";
    fs::write(&file, text).unwrap();
    let accepted = ptxc(&["check", &file, "--sm", "sm_90"]);
    assert_eq!((stderr(&accepted), accepted.status.code()), (String::new(), Some(0)));
    let refused = ptxc(&["check", &file, "--sm", "sm_75"]);
    assert_eq!(refused.status.code(), Some(1));
    let message = stderr(&refused);
    assert!(message.starts_with(&format!("{file}:6:3: error: ")) && message.contains("sm_80"), "{message}");
}

#[test]
fn isa_describes_instructions() {
    let whole = stdout(&ptxc(&["isa", "redux.sync.add.s32"]));
    assert!(whole.contains("redux.sync") && whole.contains("sm_80"), "{whole}");
    assert!(!whole.contains(" sm_75"), "{whole}");
    let begun = stdout(&ptxc(&["isa", "redux"]));
    assert!(begun.contains("(section 9.7.") && begun.contains("  OP: "), "{begun}");
    let output = ptxc(&["isa", "reduks"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), "error: `reduks`: there is no instruction `reduks`; did you mean `redux`?\n");
}

#[test]
fn reduce_keeps_what_the_command_looks_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder, "k.ir");
    fs::write(&file, KERNEL).unwrap();
    let small = stdout(&ptxc(&["reduce", &file, "--test", "grep -q 'sreg.tid.x'"]));
    let lines: Vec<&str> = small.lines().collect();
    assert!(lines.len() <= 5 && small.contains("sreg.tid.x") && small.contains("ret"), "{small}");
    let output = ptxc(&["reduce", &file, "--test", "false"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), format!("{file}: error: the test fails for the whole module\n"));
    fs::write(&file, "kernel @k() {\nentry:\n  %a = add i32 %b, 1\n  ret\n}\n").unwrap();
    let output = ptxc(&["reduce", &file, "--test", "true"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(":3:"), "{}", stderr(&output));
}
