; RUN: ptxc %s -O0 --emit ir --sm sm_100a | filecheck %s
; Intrinsics as the tables map them: generic operations, special registers, operations of the instruction tables.

define i32 @generic(i32 %a, i32 %b) {
  %1 = call i32 @llvm.fshl.i32(i32 %a, i32 %b, i32 5)
  %2 = call { i32, i1 } @llvm.uadd.with.overflow.i32(i32 %1, i32 %b)
  %3 = extractvalue { i32, i1 } %2, 0
  %4 = call i32 @llvm.ctlz.i32(i32 %3, i1 true)
  ret i32 %4
}
; CHECK-LABEL: func @generic(
; CHECK: fshl i32 %a, %b, 5
; CHECK: uadd_overflow i32
; CHECK: ctlz nonzero i32

; What the second argument says of one operand is a flag.
define i32 @promises(i32 %a) {
  %1 = call i32 @llvm.ctlz.i32(i32 %a, i1 false)
  %2 = call i32 @llvm.cttz.i32(i32 %1, i1 true)
  %3 = call i32 @llvm.cttz.i32(i32 %2, i1 false)
  %4 = call i32 @llvm.abs.i32(i32 %3, i1 true)
  %5 = call i32 @llvm.abs.i32(i32 %4, i1 false)
  ret i32 %5
}
; CHECK-LABEL: func @promises(
; CHECK: ctlz i32
; CHECK: cttz nonzero i32
; CHECK: cttz i32
; CHECK: abs nsw i32
; CHECK: abs i32

define float @nvvm(float %a, float %b) {
  %1 = call float @llvm.nvvm.fma.rz.ftz.f(float %a, float %b, float %a)
  %2 = call float @llvm.nvvm.ex2.approx.ftz.f(float %1)
  %3 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %2, i32 16, i32 31)
  ret float %3
}
; CHECK-LABEL: func @nvvm(
; CHECK: fma rz ftz f32 %a, %b, %a
; CHECK: fexp2 afn ftz f32
; CHECK: shfl.bfly f32 {{.*}}, 16, 31, -1

define i32 @registers() {
  %1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %2 = call i32 @llvm.nvvm.read.ptx.sreg.warpsize()
  %3 = add i32 %1, %2
  ret i32 %3
}
; CHECK-LABEL: func @registers(
; CHECK: sreg.tid.x
; CHECK: add i32 {{.*}}, 32

define { float, float, float, float } @matrix(<2 x half> %a, float %c) {
  %r = call { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %a, <2 x half> %a, <2 x half> %a, <2 x half> %a, <2 x half> %a, <2 x half> %a, float %c, float %c, float %c, float %c)
  ret { float, float, float, float } %r
}
; CHECK-LABEL: func @matrix(
; CHECK: ptx.mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%a, %a, %a, %a}, {%a, %a}, {%c, %c, %c, %c}

; Flags choose among the instruction's forms.
define void @copied(ptr addrspace(7) %d, ptr addrspace(3) %bar, ptr %map, i32 %x, i32 %y, i16 %mask, i64 %hint) {
  call void @llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(7) %d, ptr addrspace(3) %bar, ptr %map, i32 %x, i32 %y, i16 %mask, i64 %hint, i1 true, i1 false, i32 2)
  ret void
}
; CHECK-LABEL: func @copied(
; CHECK: ptx.cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2 [%d], [%map, {%x, %y}], [%bar], %mask

declare i32 @llvm.fshl.i32(i32, i32, i32)
declare { i32, i1 } @llvm.uadd.with.overflow.i32(i32, i32)
declare i32 @llvm.ctlz.i32(i32, i1)
declare i32 @llvm.cttz.i32(i32, i1)
declare i32 @llvm.abs.i32(i32, i1)
declare float @llvm.nvvm.fma.rz.ftz.f(float, float, float)
declare float @llvm.nvvm.ex2.approx.ftz.f(float)
declare float @llvm.nvvm.shfl.sync.bfly.f32(i32, float, i32, i32)
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.warpsize()
declare { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half>, <2 x half>, <2 x half>, <2 x half>, <2 x half>, <2 x half>, float, float, float, float)
declare void @llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(7), ptr addrspace(3), ptr, i32, i32, i16, i64, i1, i1, i32)
