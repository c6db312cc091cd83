//! Libraries of bitcode: what a module needs is linked and hidden, what is missing is named.
#![cfg(test)]

use ptxc::{Library, OptLevel, Options, compile_bytes};

fn options(level: OptLevel) -> Options {
    let bytes: &[u8] = include_bytes!("link/library.bc");
    let library = Library { name: "library.bc".to_owned(), bytes: bytes.into() };
    let target = "sm_90".parse().unwrap();
    Options { opt_level: level, libraries: vec![library], ..Options::new(target) }
}

fn compile(source: &str, options: &Options) -> Result<String, String> {
    let output = compile_bytes("module.ll", source.as_bytes(), options);
    output.map(|output| output.text).map_err(|diagnostics| diagnostics.to_string())
}

const MODULE: &str = r#"
target triple = "nvptx64-nvidia-cuda"
@helper = internal addrspace(1) global i32 3
declare float @lib_polynomial(float)
declare i32 @lib_flushes()
declare i32 @lib_constant()
define ptx_kernel void @k(ptr addrspace(1) %p) {
  %x = load float, ptr addrspace(1) %p
  %y = call float @lib_polynomial(float %x)
  store float %y, ptr addrspace(1) %p
  %f = call i32 @lib_flushes()
  %c = call i32 @lib_constant()
  %s = add i32 %f, %c
  store i32 %s, ptr addrspace(1) @helper
  ret void
}
!llvm.module.flags = !{!0}
!0 = !{i32 4, !"nvvm-reflect-ftz", i32 1}
"#;

#[test]
fn what_is_needed_is_linked_and_hidden() {
    let text = compile(MODULE, &options(OptLevel::O0)).unwrap();
    for name in ["lib_polynomial", "lib_flushes", "lib_constant", "step", "coefficients"] {
        assert!(text.contains(name), "{name} is missing in\n{text}");
        assert!(!text.contains(&format!(".visible .func {name}")), "{name} is visible");
    }
    for name in ["unused", "lib_needs_more", "elsewhere"] {
        assert!(!text.contains(name), "{name} is in\n{text}");
    }
}

#[test]
fn what_is_linked_is_inlined() {
    let text = compile(MODULE, &options(OptLevel::O3)).unwrap();
    assert!(!text.contains("lib_polynomial") && !text.contains("lib_flushes"), "{text}");
    assert!(text.contains("lib_constant"), "{text}");
}

#[test]
fn questions_are_answered_by_the_module_not_by_the_library() {
    let flushes = compile(MODULE, &options(OptLevel::O3)).unwrap();
    let other = compile(&MODULE.replace("ftz\", i32 1", "ftz\", i32 0"), &options(OptLevel::O3)).unwrap();
    assert_ne!(flushes, other);
    assert!(flushes.contains("add.s32"), "{flushes}");
}

#[test]
fn what_no_library_defines_is_named() {
    let source = "declare void @lib_needs_more()\ndeclare i32 @vprintf(ptr, ptr)\n\
                  define ptx_kernel void @k(ptr %p) {\n  call void @lib_needs_more()\n\
                  %r = call i32 @vprintf(ptr %p, ptr %p)\n  ret void\n}\n";
    let message = compile(source, &options(OptLevel::O2)).unwrap_err();
    assert_eq!(message, "module.ll: error: `elsewhere` is used, and neither the module nor a library defines it\n");
}

#[test]
fn functions_of_libdevice_are_not_left_out() {
    let source = "declare float @__nv_sinf(float)\ndefine ptx_kernel void @k(ptr %p) {\n  \
                  %x = load float, ptr %p\n  %y = call float @__nv_sinf(float %x)\n  \
                  store float %y, ptr %p\n  ret void\n}\n";
    let plain = Options { libraries: Vec::new(), ..options(OptLevel::O2) };
    let message = compile(source, &plain).unwrap_err();
    assert!(message.contains("`__nv_sinf` is a function of libdevice"), "{message}");
}

#[test]
fn a_library_that_is_none_is_refused() {
    let library = Library { name: "text.bc".to_owned(), bytes: b"define void @f()".as_slice().into() };
    let broken = Options { libraries: vec![library], ..options(OptLevel::O2) };
    let message = compile(MODULE, &broken).unwrap_err();
    assert!(message.contains("library text.bc: it is no LLVM bitcode"), "{message}");
}
