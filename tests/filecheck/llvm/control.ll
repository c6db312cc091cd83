; RUN: ptxc %s -O0 --emit ir --sm sm_90 | filecheck %s
; Phis become block parameters; blocks that nothing reaches are left out.

define i32 @loop(i32 %n) {
entry:
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %body, label %done, !prof !2

body:
  %i = phi i32 [ 0, %entry ], [ %next, %body ]
  %sum = phi i32 [ 0, %entry ], [ %more, %body ]
  %more = add i32 %sum, %i
  %next = add i32 %i, 1
  %again = icmp slt i32 %next, %n
  br i1 %again, label %body, label %done, !llvm.loop !0

dead:
  br label %done

done:
  %result = phi i32 [ 0, %entry ], [ %more, %body ], [ 7, %dead ]
  ret i32 %result
}
; CHECK-LABEL: func @loop(
; CHECK: br %some, body(0, 0), done(0), weights(9, 1)
; CHECK: body(%i: i32, %sum: i32) unroll(4):
; CHECK: br %again, body(%next, %more), done(%more)
; CHECK-NOT: dead
; CHECK: done(%result: i32):

define i32 @choice(i32 %x) {
entry:
  switch i32 %x, label %other [
    i32 -1, label %minus
    i32 4, label %other
  ]
minus:
  br label %other
other:
  %r = phi i32 [ 1, %entry ], [ 1, %entry ], [ 2, %minus ]
  ret i32 %r
}
; CHECK-LABEL: func @choice(
; CHECK: switch i32 %x, other(1) [-1: minus, 4: other(1)]

@places = internal constant [2 x i32] zeroinitializer

define i32 @computed(i1 %c) {
entry:
  %to = select i1 %c, ptr blockaddress(@computed, %one), ptr blockaddress(@computed, %two)
  indirectbr ptr %to, [label %one, label %two]
one:
  ret i32 1
two:
  ret i32 2
}
; CHECK-LABEL: func @computed(
; CHECK: [[N:%.*]] = ptrtoint ptr {{.*}} to i64
; CHECK: switch i64 [[N]]

!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.count", i32 4}
!2 = !{!"branch_weights", i32 9, i32 1}
