; RUN: ptxc %s -O0 --emit ir --sm sm_90 | filecheck %s
; Inline assembly becomes operations of the instruction tables.

define i32 @simple(i32 %a, i16 %h) {
  %r = call i32 asm "add.s32 $0, $1, $2;", "=r,r,n"(i32 %a, i32 7)
  ret i32 %r
}
; CHECK-LABEL: func @simple(
; CHECK: ptx.add.s32 %a, 7

; An argument in the register of a result, and two results.
define { i32, i32 } @tied(i32 %a, i32 %b) {
  %r = call { i32, i32 } asm "add.s32 $0, $0, $2; mov.b32 $1, %laneid;", "=r,=r,r,0"(i32 %b, i32 %a)
  ret { i32, i32 } %r
}
; CHECK-LABEL: func @tied(
; CHECK: [[M:%.*]] = ptx.mov.b32 %a
; CHECK: [[S:%.*]] = ptx.add.s32 [[M]], %b
; CHECK: ptx.mov.b32 sreg.laneid

; Halves, predicates, bytes and pointers take the registers of their constraints.
define i8 @registers(half %h, i1 %p, i8 %b, ptr addrspace(1) %q) {
  %r = call i16 asm sideeffect "@$1 st.global.b16 [$2], $3;\0A mov.b16 $0, $4;", "=h,b,l,h,h,~{memory}"(i1 %p, ptr addrspace(1) %q, half %h, i8 %b)
  %t = trunc i16 %r to i8
  ret i8 %t
}
; CHECK-LABEL: func @registers(
; CHECK: ptx.@%p st.global.b16 [%q], %h
; CHECK: ptx.mov.b16
