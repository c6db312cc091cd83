; RUN: ptxc %s -O3 --emit ir --sm sm_90 | filecheck %s
; RUN: ptxc %s -O3 --emit ir --sm sm_90 | ptxc - -O3 --emit ir --sm sm_90 | filecheck %s
; Members of the lists of used symbols stay, others do not.

target triple = "nvptx64-nvidia-cuda"

@kept = internal addrspace(1) global i32 1
@gone = internal addrspace(1) global i32 2
@llvm.used = appending global [1 x ptr] [ptr addrspacecast (ptr addrspace(1) @kept to ptr)], section "llvm.metadata"
@llvm.compiler.used = appending global [1 x ptr] [ptr @stays], section "llvm.metadata"

define internal void @stays() {
  ret void
}
define internal void @goes() {
  ret void
}
; CHECK: internal global @kept
; CHECK-NOT: @gone
; CHECK: used @kept
; CHECK: used @stays
; CHECK: internal func @stays
; CHECK-NOT: @goes
