; RUN: ptxc %s -O0 --emit ir --sm sm_90 | filecheck %s
; Initial contents: numbers keep their type; structs become bytes with the addresses among them.

target triple = "nvptx64-nvidia-cuda"

@numbers = addrspace(1) global [3 x i16] [i16 1, i16 -1, i16 3]
@text = internal addrspace(1) constant [3 x i8] c"ab\00"
@mixed = addrspace(1) global { i8, i32, ptr, i64 } { i8 1, i32 2, ptr addrspacecast (ptr addrspace(1) getelementptr (i8, ptr addrspace(1) @text, i64 1) to ptr), i64 ptrtoint (ptr addrspace(1) @numbers to i64) }
@function = addrspace(1) global ptr @f
@zeros = addrspace(1) global [100 x i32] zeroinitializer
@outside = external addrspace(1) global i32
@common = common addrspace(1) global i32 0
@size = addrspace(1) global i64 ptrtoint (ptr getelementptr ({ i8, double }, ptr null, i32 1) to i64)

; CHECK: global @numbers: [3 x i16] = [1, -1, 3]
; CHECK: internal global @text: [3 x i8] = "ab\00"
; CHECK: global @mixed: <{ [8 x i8], ptr, ptr<global> }> = {"\01\00\00\00\02\00\00\00", generic(@text + 1), @numbers}, align 8
; CHECK: global @function: ptr = @f
; CHECK: global @zeros: [100 x i32] = zero
; CHECK: extern global @outside: i32
; CHECK: common global @common: i32
; CHECK: global @size: i64 = 16

define void @f() {
  ret void
}
