; RUN: ptxc %s -O0 --emit ir --sm sm_90 | filecheck %s
; Offsets and sizes are those of LLVM's data layout, whatever the IR's own would be.

target datalayout = "e-p3:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%pair = type { i8, <3 x float>, i8 }

; A vector of three takes 16 bytes, the struct 48.
define float @strides(ptr addrspace(1) %p, i64 %i) {
  %a = getelementptr inbounds %pair, ptr addrspace(1) %p, i64 %i, i32 1, i32 2
  %v = load float, ptr addrspace(1) %a, align 8
  ret float %v
}
; CHECK-LABEL: func @strides(
; CHECK: [[STEP:%.*]] = gep [48 x i8], %p, %i
; CHECK: [[AT:%.*]] = gep i8, [[STEP]], 24
; CHECK: load f32, [[AT]], align 8

; Three bytes, and no fourth.
define void @odd(ptr addrspace(1) %p, i24 %x) {
  store i24 %x, ptr addrspace(1) %p, align 1
  ret void
}
; CHECK-LABEL: func @odd(
; CHECK: store i16 {{.*}}, %p, align 1
; CHECK: gep i8, %p, 2
; CHECK: store i8

; Pointers to shared memory have 32 bits in this layout.
define ptr addrspace(3) @short(ptr addrspace(1) %p) {
  %v = load ptr addrspace(3), ptr addrspace(1) %p
  ret ptr addrspace(3) %v
}
; CHECK-LABEL: func @short({{.*}}) -> i32
; CHECK: [[N:%.*]] = load i32, %p
; CHECK: [[W:%.*]] = zext i32 [[N]] to i64
; CHECK: inttoptr i64 [[W]] to ptr<shared>

define void @attributes(ptr addrspace(1) %p, ptr %q) {
  %1 = load volatile i32, ptr addrspace(1) %p
  %2 = load i32, ptr addrspace(1) %p, !invariant.load !0
  %3 = load i32, ptr %q, align 2, !nontemporal !1
  %4 = load atomic i32, ptr addrspace(1) %p syncscope("block") acquire, align 4
  store atomic i32 %4, ptr %q release, align 4
  ret void
}
; CHECK-LABEL: func @attributes(
; CHECK: load i32, %p, volatile
; CHECK: load i32, %p, invariant
; CHECK: load i32, %q, align 2, cache(cs)
; CHECK: load i32, %p, acquire, scope(cta)
; CHECK: store i32 {{.*}}, %q, release

; Loads and stores of structs go part by part.
define void @whole(ptr addrspace(1) %p, ptr addrspace(1) %q) {
  %v = load { i8, i64 }, ptr addrspace(1) %p
  store { i8, i64 } %v, ptr addrspace(1) %q
  ret void
}
; CHECK-LABEL: func @whole(
; CHECK: load i8, %p, align 8
; CHECK: load i64
; CHECK: store i8 {{.*}}, %q, align 8
; CHECK: store i64

!0 = !{}
!1 = !{i32 1}
