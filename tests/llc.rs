//! `ptxc llc`: LLVM's command, as far as frontends call it.
#![cfg(test)]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const KERNEL: &str = "define ptx_kernel void @k(ptr addrspace(1) %p, float %a) #0 {\n  \
                      %m = fmul float %a, %a\n  %s = fadd float %m, 1.0\n  %d = fdiv float %s, %a\n  \
                      store float %d, ptr addrspace(1) %p, align 4\n  ret void\n}\n\
                      attributes #0 = { \"target-cpu\"=\"sm_90\" }\n";

fn run(program: &Path, arguments: &str) -> Output {
    let mut child = Command::new(program)
        .args(arguments.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command may refuse its arguments before it reads.
    let _ = child.stdin.take().unwrap().write_all(KERNEL.as_bytes());
    child.wait_with_output().unwrap()
}

fn llc(arguments: &str) -> Output {
    run(Path::new(env!("CARGO_BIN_EXE_ptxc")), &format!("llc {arguments}"))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn ptx(arguments: &str) -> String {
    let output = llc(arguments);
    assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

#[test]
fn the_target_comes_from_the_option_or_the_module() {
    assert!(ptx("-march=nvptx64 -mcpu=sm_80 -O3").contains(".target sm_80\n"));
    assert!(ptx("-mtriple=nvptx64-nvidia-cuda").contains(".target sm_90\n"));
    let old = llc("-mcpu sm_20 -mattr=+ptx32");
    assert!(text(&old.stdout).contains(".target sm_50\n"));
    assert_eq!(text(&old.stderr), "warning: sm_20 is not supported any more; compiling for sm_50\n");
    assert!(ptx("-mcpu=sm_80 -mattr=+ptx75").starts_with(".version 7.5\n"));
}

#[test]
fn options_of_floats_change_the_code() {
    let plain = ptx("-O2");
    assert!(!plain.contains("fma.rn.f32") && plain.contains("div.rn.f32"), "{plain}");
    assert!(ptx("-O2 -fp-contract=fast").contains("fma.rn.f32"));
    assert!(ptx("-O2 -nvptx-fma-level=2").contains("fma.rn.f32"));
    assert!(!ptx("-O2 -nvptx-prec-divf32=0").contains("div.rn.f32"));
    assert!(ptx("-O2 -denormal-fp-math-f32=preserve-sign").contains("div.rn.ftz.f32"));
    assert!(!ptx("-O2 --enable-unsafe-fp-math").contains("div.rn.f32"));
}

#[test]
fn the_output_is_named_or_stands_beside_the_input() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("k.ll");
    std::fs::write(&input, KERNEL).unwrap();
    ptx(&input.display().to_string());
    assert!(std::fs::read_to_string(folder.path().join("k.s")).unwrap().contains(".entry k("));
    let named = folder.path().join("other.ptx");
    ptx(&format!("{} -filetype=asm -o {}", input.display(), named.display()));
    assert!(named.exists());
    assert_eq!(ptx("-filetype=null"), "");
}

#[test]
fn what_is_not_known_is_refused() {
    let output = llc("-frobnicate");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "error: option `-frobnicate` is not known\n");
    assert!(text(&llc("-mcpu=sm_999").stderr).contains("the target `sm_999` is not known"));
    assert!(text(&llc("--version").stdout).contains("nvptx64"));
}

#[cfg(unix)]
#[test]
fn the_name_of_the_command_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("llc");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ptxc"), &link).unwrap();
    let output = run(&link, "-mcpu=sm_75 -o -");
    assert!(text(&output.stdout).contains(".target sm_75\n"), "{}", text(&output.stderr));
}

#[test]
fn errors_show_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("wrong.ll");
    std::fs::write(&input, "define void @f() {\n  %x = add i32 %y, 1\n  ret void\n}\n").unwrap();
    let output = llc(&input.display().to_string());
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stderr).replace(&input.display().to_string(), "wrong.ll");
    assert_eq!(shown.lines().next(), Some("wrong.ll:2:16: error: `%y` is not defined"));
    assert!(!folder.path().join("wrong.s").exists());
}
