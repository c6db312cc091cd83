; Accumulators that one wgmma gives to the next by tied operands stay in their registers: nothing may touch them while the
; operations are under way.
; RUN: ptxc %s -O3 --sm sm_90a | filecheck %s

; CHECK:      wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {[[A:%r[0-9]+]], [[B:%r[0-9]+]], [[C:%r[0-9]+]], [[D:%r[0-9]+]]}, {{.*}}
; CHECK-NEXT: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {[[A]], [[B]], [[C]], [[D]]}, {{.*}}
; CHECK-NEXT: wgmma.commit_group.sync.aligned;
; CHECK-NEXT: wgmma.wait_group.sync.aligned 0;
; CHECK-NEXT: st.global.b32 [{{.*}}], [[D]];
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @k(ptr addrspace(1) %out, i64 %a, i64 %b, float %x, float %y) {
  %1 = call { float, float, float, float } asm sideeffect "{ .reg .pred p; setp.ne.b32 p, $10, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0,$1,$2,$3}, $8, $9, p, 1, 1, 0, 0; }", "=f,=f,=f,=f,0,1,2,3,l,l,r"(float %x, float %y, float %x, float %y, i64 %a, i64 %b, i32 1)
  %2 = extractvalue { float, float, float, float } %1, 0
  %3 = extractvalue { float, float, float, float } %1, 1
  %4 = extractvalue { float, float, float, float } %1, 2
  %5 = extractvalue { float, float, float, float } %1, 3
  %6 = call { float, float, float, float } asm sideeffect "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0,$1,$2,$3}, $8, $9, 1, 1, 1, 0, 0;", "=f,=f,=f,=f,0,1,2,3,l,l"(float %2, float %3, float %4, float %5, i64 %a, i64 %b)
  %7 = extractvalue { float, float, float, float } %6, 3
  call void asm sideeffect "wgmma.commit_group.sync.aligned;", ""()
  %8 = call float asm sideeffect "wgmma.wait_group.sync.aligned 0;", "=f,0"(float %7)
  store float %8, ptr addrspace(1) %out, align 4
  ret void
}
