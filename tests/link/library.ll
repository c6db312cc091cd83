; A library as `ptxc --link` takes it: what is needed of it is read and hidden.
; library.bc is this file as LLVM 19 writes it.
target triple = "nvptx64-nvidia-cuda"

@coefficients = internal addrspace(4) constant [2 x float] [float 0.5, float 0.25]
@unused = addrspace(1) global [1024 x i32] zeroinitializer
@question = private addrspace(4) constant [11 x i8] c"__CUDA_FTZ\00"
@helper = internal addrspace(4) constant i32 7

declare i32 @__nvvm_reflect(ptr)
declare void @elsewhere()

define float @lib_polynomial(float %x) {
  %c = load float, ptr addrspace(4) @coefficients
  %y = call float @step(float %x, float %c)
  ret float %y
}

define internal float @step(float %x, float %c) {
  %y = fmul float %x, %c
  ret float %y
}

define i32 @lib_flushes() alwaysinline {
  %r = call i32 @__nvvm_reflect(ptr addrspacecast (ptr addrspace(4) @question to ptr))
  ret i32 %r
}

define i32 @lib_constant() noinline {
  %r = load i32, ptr addrspace(4) @helper
  ret i32 %r
}

define void @lib_needs_more() {
  call void @elsewhere()
  ret void
}

define void @lib_unused() {
  call void @lib_needs_more()
  ret void
}

!llvm.module.flags = !{!0}
!0 = !{i32 4, !"nvvm-reflect-ftz", i32 0}
