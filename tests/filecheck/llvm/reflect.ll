; RUN: ptxc %s -O0 --sm sm_70 | filecheck %s --check-prefix OLD
; RUN: ptxc %s -O0 --sm sm_90 | filecheck %s --check-prefix NEW
; `__nvvm_reflect` is answered, and what another target would do is left out at every level: it may not have the means.

@name = private constant [12 x i8] c"__CUDA_ARCH\00"

declare i32 @__nvvm_reflect(ptr)
declare i32 @llvm.nvvm.redux.sync.add(i32, i32)

define i32 @f(i32 %x) {
  %arch = call i32 @__nvvm_reflect(ptr @name)
  %new = icmp uge i32 %arch, 800
  br i1 %new, label %yes, label %no
yes:
  %r = call i32 @llvm.nvvm.redux.sync.add(i32 %x, i32 -1)
  ret i32 %r
no:
  ret i32 %x
}
; OLD-NOT: redux
; OLD-NOT: __nvvm_reflect
; NEW: redux.sync.add
; NEW-NOT: __nvvm_reflect
