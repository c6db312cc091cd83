; RUN: ptxc %s -O3 --sm sm_90 | filecheck %s
; Vectors are passed in their size rounded up to a power of two, and aligned to it.

target triple = "nvptx64-nvidia-cuda"

; CHECK: .param .align 16 .b8 {{.*}}[16]
declare float @scale(<3 x float>)

define float @caller(<3 x float> %v) {
  %r = call float @scale(<3 x float> %v)
  ret float %r
}
; CHECK-LABEL: caller(
; CHECK: .param .align 16 .b8 caller_param_0[16]
; CHECK: .param .align 16 .b8 {{.*}}[16];

define <3 x i64> @wide(<3 x i64> %v) {
  ret <3 x i64> %v
}
; CHECK-LABEL: .func (.param .align 32 .b8 {{.*}}[32]) wide(
; CHECK: .param .align 32 .b8 wide_param_0[32]

define ptx_kernel void @kernel(<3 x i8> %c, <3 x float> %f, i32 %n) {
  ret void
}
; CHECK-LABEL: .entry kernel(
; CHECK: .param .align 4 .b8 kernel_param_0[4],
; CHECK: .param .align 16 .b8 kernel_param_1[16],
; CHECK: .param .u32 kernel_param_2
