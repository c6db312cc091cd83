; RUN: ptxc %s -O0 --emit ir --sm sm_90 | filecheck %s
; RUN: ptxc %s -O3 --sm sm_90 | filecheck %s --check-prefix PTX
; The generic address of address 0 of shared, local or constant memory is the base of that space's window, not null.

target triple = "nvptx64-nvidia-cuda"

define ptr @to_generic() {
  ret ptr addrspacecast (ptr addrspace(3) null to ptr)
}
; CHECK-LABEL: func @to_generic(
; CHECK: [[G:%.*]] = addrspacecast ptr<shared> {{.*}} to ptr
; CHECK: ret [[G]]
; PTX-LABEL: to_generic(
; PTX: cvta.shared.u64

define ptr addrspace(3) @from_generic() {
  ret ptr addrspace(3) addrspacecast (ptr null to ptr addrspace(3))
}
; CHECK-LABEL: func @from_generic(
; CHECK: addrspacecast ptr {{.*}} to ptr<shared>
; PTX-LABEL: from_generic(
; PTX: cvta.to.shared.u64

define i1 @local_is_not_null() {
  %p = addrspacecast ptr addrspace(5) null to ptr
  %c = icmp eq ptr %p, null
  ret i1 %c
}
; CHECK-LABEL: func @local_is_not_null(
; CHECK: addrspacecast ptr<local> {{.*}} to ptr
; CHECK: icmp eq
; PTX-LABEL: local_is_not_null(
; PTX: cvta.local.u64

; Addresses of global memory are generic addresses.
define ptr @global() {
  ret ptr addrspacecast (ptr addrspace(1) null to ptr)
}
; CHECK-LABEL: func @global(
; CHECK-NOT: addrspacecast
; CHECK: ret null
