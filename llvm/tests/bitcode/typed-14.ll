; Pointers with types, as LLVM 14 writes them.
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%node = type { i32, %node*, [2 x float] }
%args = type { i32, float }

@head = internal addrspace(1) global %node zeroinitializer, align 8
@values = addrspace(4) constant [3 x i32] [i32 1, i32 2, i32 3]
@second = global i32* addrspacecast (i32 addrspace(4)* getelementptr inbounds ([3 x i32], [3 x i32] addrspace(4)* @values, i64 0, i64 1) to i32*)

declare i32 @callee(i32*, ...)

define void @kernel(float addrspace(1)* nocapture %out, %args* byval(%args) align 4 %a, i32 (i32)* %f) {
entry:
  %slot = alloca %node, align 8
  %field = getelementptr inbounds %node, %node* %slot, i64 0, i32 2, i64 1
  %v = load float, float* %field, align 4
  store float %v, float addrspace(1)* %out, align 4
  %bits = bitcast float addrspace(1)* %out to i32 addrspace(1)*
  %old = atomicrmw add i32 addrspace(1)* %bits, i32 1 syncscope("device") monotonic, align 4
  %pair = cmpxchg i32 addrspace(1)* %bits, i32 %old, i32 7 acq_rel acquire, align 4
  %won = extractvalue { i32, i1 } %pair, 1
  %n = call i32 %f(i32 %old)
  %next = getelementptr %node, %node* %slot, i32 %n, i32 1
  %p = load %node*, %node** %next, align 8
  %i = getelementptr %node, %node* %p, i64 0, i32 0
  %m = call i32 (i32*, ...) @callee(i32* %i, i1 %won)
  store volatile i32 %m, i32* getelementptr inbounds ([3 x i32], [3 x i32]* addrspacecast ([3 x i32] addrspace(4)* @values to [3 x i32]*), i64 0, i64 2), align 4
  ret void
}

!nvvm.annotations = !{!0}
!0 = !{void (float addrspace(1)*, %args*, i32 (i32)*)* @kernel, !"kernel", i32 1}
