; RUN: ptxc %s -O0 --emit ir --sm sm_90 | filecheck %s
; Arithmetic, comparisons and conversions keep their flags.

define i32 @integers(i32 %a, i32 %b) {
  %1 = add nsw nuw i32 %a, %b
  %2 = or disjoint i32 %1, %b
  %3 = udiv exact i32 %2, %b
  %4 = shl nuw i32 %3, 3
  %5 = freeze i32 %4
  ret i32 %5
}
; CHECK-LABEL: func @integers(
; CHECK: add nsw nuw i32
; CHECK: or disjoint i32
; CHECK: udiv exact i32
; CHECK: shl nuw i32 {{.*}}, 3
; CHECK: freeze i32

define float @floats(float %a, float %b) {
  %1 = fadd fast float %a, %b
  %2 = fmul nnan contract float %1, 0x3FF8000000000000
  %3 = fneg float %2
  %4 = call float @llvm.fmuladd.f32(float %3, float %a, float %b)
  ret float %4
}
; CHECK-LABEL: func @floats(
; CHECK: fadd fast f32
; CHECK: fmul nnan contract f32 {{.*}}, 1.5
; CHECK: fneg f32
; CHECK: fma f32

; The attribute flushes float, and no other type.
define double @flushed(float %a, double %b) "denormal-fp-math-f32"="preserve-sign,preserve-sign" {
  %1 = fadd float %a, 1.0
  %2 = fpext float %1 to double
  %3 = fadd double %2, %b
  ret double %3
}
; CHECK-LABEL: func @flushed(
; CHECK: fadd ftz f32
; CHECK: fpext
; CHECK: fadd f64

define i1 @compared(i32 %a, float %x) {
  %1 = icmp slt i32 %a, 7
  %2 = fcmp nnan ult float %x, 0.0
  %3 = select i1 %1, i1 %2, i1 false
  ret i1 %3
}
; CHECK-LABEL: func @compared(
; CHECK: icmp slt i32 {{.*}}, 7
; CHECK: fcmp nnan ult f32
; CHECK: select i1 {{.*}}, i1 {{.*}}, false

define i64 @converted(i8 %a, double %x) {
  %1 = zext nneg i8 %a to i64
  %2 = fptosi double %x to i64
  %3 = trunc nsw i64 %2 to i16
  %4 = sext i16 %3 to i64
  %5 = add i64 %1, %4
  ret i64 %5
}
; CHECK-LABEL: func @converted(
; CHECK: zext nneg i8 {{.*}} to i64
; CHECK: fptosi f64 {{.*}} to i64
; CHECK: trunc nsw i64 {{.*}} to i16
; CHECK: sext i16

declare float @llvm.fmuladd.f32(float, float, float)
