; A stack object whose size is known when the program runs takes its alignment from its type; below sm_52 it is refused by
; name. One of constant size in a loop is another one in each round, unless no address lives into the next round.
; RUN: ptxc %s -O3 --sm sm_80 | filecheck %s
; RUN: not ptxc %s -O3 --sm sm_50 2>&1 | filecheck %s --check-prefix OLD
target triple = "nvptx64-nvidia-cuda"
declare ptr @llvm.stacksave()
declare void @llvm.stackrestore(ptr)

; CHECK-LABEL: .entry sized(
; CHECK: mul.wide.u32 [[SIZE:%rd[0-9]+]], {{.*}}, 4;
; CHECK: alloca.u64 [[A:%rd[0-9]+]], [[SIZE]], 4;
; CHECK: st.local.b32 {{\[}}[[A]]], 7;
; OLD: error: in @sized: `alloca.u64` needs PTX 7.3 on sm_52+, target is sm_50
define ptx_kernel void @sized(ptr addrspace(1) %out, i32 %n) {
  %a = alloca i32, i32 %n
  store volatile i32 7, ptr %a
  %v = load volatile i32, ptr %a
  store i32 %v, ptr addrspace(1) %out
  ret void
}

; Each round's object points to the one of the round before.
; CHECK-LABEL: .entry linked(
; CHECK-NOT: .local
; CHECK: stacksave.u64 [[S:%rd[0-9]+]];
; CHECK: [[LOOP:\$L.*]]:
; CHECK: mov.b64 [[EIGHT:%rd[0-9]+]], 8;
; CHECK: alloca.u64 {{%rd[0-9]+}}, [[EIGHT]], 16;
; CHECK: st{{.*}}.b64
; CHECK: bra{{.*}} [[LOOP]];
; CHECK: stackrestore.u64 [[S]];
; OLD: error: in @linked: `alloca.u64` needs PTX 7.3 on sm_52+, target is sm_50
define ptx_kernel void @linked(ptr addrspace(1) %out, i32 %n) {
entry:
  %s = call ptr @llvm.stacksave()
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %j, %loop ]
  %last = phi ptr [ null, %entry ], [ %a, %loop ]
  %a = alloca ptr, align 16
  store volatile ptr %last, ptr %a
  %j = add i32 %i, 1
  %more = icmp slt i32 %j, %n
  br i1 %more, label %loop, label %end
end:
  %before = load volatile ptr, ptr %a
  %b = ptrtoint ptr %before to i64
  call void @llvm.stackrestore(ptr %s)
  store i64 %b, ptr addrspace(1) %out
  ret void
}

; The address is stored where the next round may find it.
; CHECK-LABEL: .entry stored(
; CHECK: alloca.u64 {{%rd[0-9]+}}, {{%rd[0-9]+}}, 4;
define ptx_kernel void @stored(ptr addrspace(1) %out, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %j, %loop ]
  %a = alloca i32
  store volatile i32 %i, ptr %a
  store volatile ptr %a, ptr addrspace(1) %out
  %j = add i32 %i, 1
  %more = icmp slt i32 %j, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; No address lives into the next round, nor is there one outside of loops.
; CHECK-LABEL: .entry one(
; CHECK: .local .align 4 .b8 {{.*}}[8];
; CHECK-NOT: alloca
define ptx_kernel void @one(ptr addrspace(1) %out, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %j, %latch ]
  %a = alloca [2 x i32]
  %k = and i32 %i, 1
  %at = getelementptr i32, ptr %a, i32 %k
  store volatile i32 %i, ptr %at
  %c = icmp eq i32 %k, 0
  br i1 %c, label %other, label %latch
other:
  br label %latch
latch:
  %p = phi ptr [ %at, %loop ], [ %a, %other ]
  %v = load volatile i32, ptr %p
  store i32 %v, ptr addrspace(1) %out
  %j = add i32 %i, 1
  %more = icmp slt i32 %j, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
