; RUN: ptxc %s -O0 --emit ir --sm sm_90 | filecheck %s
; Generic pointers whose space is known are used in that space; casts stand only where a generic pointer is needed.

target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [32 x float] undef, align 16
@table = addrspace(4) constant [2 x i32] [i32 1, i32 2]
@plain = global i32 5

; CHECK: internal shared @tile: [32 x f32], align 16
; CHECK: const @table: [2 x i32] = [1, 2]
; CHECK: global @plain: i32 = 5

define i32 @known(i32 %i, ptr addrspace(3) %s) {
  %local = alloca i32
  store i32 %i, ptr %local
  %generic = addrspacecast ptr addrspace(3) %s to ptr
  %at = getelementptr i32, ptr %generic, i32 %i
  %v = load i32, ptr %at
  %w = load i32, ptr @plain
  %x = load i32, ptr addrspacecast (ptr addrspace(4) @table to ptr)
  %y = add i32 %v, %w
  %z = add i32 %x, %y
  ret i32 %z
}
; CHECK-LABEL: func @known(
; CHECK: [[L:%.*]] = alloca i32
; CHECK-NOT: addrspacecast
; CHECK: store i32 %i, [[L]]
; CHECK: [[A:%.*]] = gep i32, %s, %i
; CHECK: load i32, [[A]]
; CHECK: load i32, @plain
; CHECK: load i32, @table

declare void @use(ptr)

define void @needed(ptr addrspace(3) %s) {
  %generic = addrspacecast ptr addrspace(3) %s to ptr
  call void @use(ptr %generic)
  ret void
}
; CHECK-LABEL: func @needed(
; CHECK: [[G:%.*]] = addrspacecast ptr<shared> %s to ptr
; CHECK: call nonconvergent @use([[G]])

; What the host passes is in global memory.
define ptx_kernel void @kernel(ptr %p) {
  store i32 1, ptr %p
  ret void
}
; CHECK-LABEL: kernel @kernel(%p: ptr<global>)
; CHECK: store i32 1, %p
