; RUN: ptxc %s -O0 --emit ir --sm sm_90 | filecheck %s
; RUN: ptxc %s -O0 --emit ir --sm sm_80 | filecheck %s --check-prefix OLD
; Kernels and launch bounds by convention and attribute, and by annotation as older frontends write them.

target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @attributes() "nvvm.maxntid"="128,2" "nvvm.minctasm"="2" "nvvm.maxnreg"="64" "nvvm.cluster_dim"="2,1,1" {
  ret void
}
; CHECK: kernel @attributes() maxntid(128, 2, 1) reqnctapercluster(2, 1, 1) minnctapersm(2) maxnreg(64)
; OLD: kernel @attributes() maxntid(128, 2, 1) minnctapersm(2) maxnreg(64) {

define void @annotated() {
  ret void
}
; CHECK: kernel @annotated() reqntid(64, 1, 1)

; The object is read where it is passed.
define ptx_kernel void @by_value(ptr byval({ i32, i64 }) align 8 %s, ptr %out) {
  %f = getelementptr inbounds { i32, i64 }, ptr %s, i32 0, i32 1
  %v = load i64, ptr %f
  store i64 %v, ptr %out
  ret void
}
; CHECK: kernel @by_value(%s: ptr<param> {{.*}}byval({ i32, i64 }){{.*}}, %out: ptr<global>)
; CHECK: [[F:%.*]] = gep inbounds i8, %s, 8
; CHECK: load i64, [[F]]

; It is copied where it may be written.
define ptx_kernel void @written(ptr byval(i32) %s) {
  store i32 1, ptr %s
  ret void
}
; CHECK: kernel @written(
; CHECK: [[C:%.*]] = alloca i32
; CHECK: memcpy [[C]], %{{.*}}, 4
; CHECK: store i32 1, [[C]]

!nvvm.annotations = !{!0, !1}
!0 = !{ptr @annotated, !"kernel", i32 1}
!1 = !{ptr @annotated, !"reqntidx", i32 64}
