; RUN: not ptxc %s -O0 --sm sm_90 2>&1 | filecheck %s
target datalayout = "E-i64:64"
target triple = "nvptx64-nvidia-cuda"
; CHECK: error: the data layout is big-endian
define void @f() {
  ret void
}
