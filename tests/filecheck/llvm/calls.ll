; RUN: ptxc %s -O0 --emit ir --sm sm_90 | filecheck %s
; Calls: structs go by their parts, aliases lead to their function, further arguments go through a buffer.

@other_name = alias i32 (i32), ptr @callee

declare void @outside(i8 signext) convergent

define internal i32 @callee(i32 %x) {
  ret i32 %x
}
; CHECK: declare func @outside(i8 signext)
; CHECK: internal func @callee(%x: i32) -> i32

define { i32, float } @parts({ i32, float } %s, ptr %f) {
  %i = extractvalue { i32, float } %s, 0
  %a = call i32 @callee(i32 %i)
  %b = call i32 @other_name(i32 %a)
  call void @outside(i8 signext 3)
  %c = call i32 %f(i32 %b)
  %t = insertvalue { i32, float } %s, i32 %c, 0
  ret { i32, float } %t
}
; CHECK-LABEL: func @parts((%i, %0): { i32, f32 }, %f: ptr) -> { i32, f32 }
; CHECK: [[A:%.*]] = call nonconvergent @callee(%i)
; CHECK: [[B:%.*]] = call nonconvergent @callee([[A]])
; CHECK: call @outside(3)
; CHECK: [[C:%.*]] = call_indirect nonconvergent (i32) -> i32, %f([[B]])
; CHECK: ret [[C]], %0

declare i32 @many(ptr, ...)

define i32 @further(ptr %format, i8 %c, double %d) {
  %r = call i32 (ptr, ...) @many(ptr %format, i8 %c, double %d)
  ret i32 %r
}
; CHECK-LABEL: func @further(
; CHECK: [[B:%.*]] = alloca [16 x i8], align 8
; CHECK: store i8 %c, [[B]]
; CHECK: [[D:%.*]] = gep i8, [[B]], 8
; CHECK: store f64 %d, [[D]]
; CHECK: [[G:%.*]] = addrspacecast ptr<local> [[B]] to ptr
; CHECK: call nonconvergent @many(%format, [[G]])
