; Functions that every module has a copy of are this module's own, and inlined; variables and kernels stay visible.
; RUN: ptxc %s --sm sm_90 -O2 | filecheck %s
; RUN: ptxc %s --sm sm_90 -O0 | filecheck %s --check-prefix=KEPT

; CHECK: .weak .global {{.*}} counter
; CHECK-NOT: template_function
; CHECK: .weak .entry template_kernel(
; CHECK-NOT: call

; KEPT-NOT: .weak .func
; KEPT: .weak .entry template_kernel(
; KEPT: call{{.*}} template_function

@counter = linkonce_odr addrspace(1) global i32 0

define linkonce_odr i32 @template_function(i32 %x) {
  %y = mul i32 %x, 3
  ret i32 %y
}

define weak_odr ptx_kernel void @template_kernel(ptr addrspace(1) %p) {
  %x = load i32, ptr addrspace(1) @counter
  %y = call i32 @template_function(i32 %x)
  store i32 %y, ptr addrspace(1) %p
  ret void
}
