; RUN: not ptxc %s -O0 --sm sm_90 2>&1 | filecheck %s
; What has no equivalent is named with its place.

define i256 @wide(i256 %x) {
  ret i256 %x
}
; CHECK: errors.ll:[[@LINE-3]]:{{[0-9]+}}: error: integers of 256 bits are wider than 128 bits

define float @library(float %x) {
  %y = call float @llvm.exp.f32(float %x)
  ret float %y
}
; CHECK: errors.ll:[[@LINE-3]]:{{[0-9]+}}: error: llvm.exp.f32: it needs a math library

define void @unknown() {
  call void @llvm.nvvm.no.such.thing()
  ret void
}
; CHECK: errors.ll:[[@LINE-3]]:{{[0-9]+}}: error: the intrinsic `llvm.nvvm.no.such.thing` is not known

define void @space(ptr addrspace(9) %p) {
  ret void
}
; CHECK: errors.ll:[[@LINE-3]]:{{[0-9]+}}: error: NVPTX has no address space 9

declare float @llvm.exp.f32(float)
declare void @llvm.nvvm.no.such.thing()
