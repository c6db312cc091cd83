; Something of everything that a file can hold.
source_filename = "everything.cu"
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%struct.pair = type { i32, float }
%packed = type <{ i8, i32 }>
%opaque = type opaque
%0 = type { [4 x %struct.pair], <2 x half> }

$comdat = comdat any

@table = internal addrspace(4) constant [3 x i32] [i32 1, i32 -2, i32 3], align 4
@text = private unnamed_addr constant [6 x i8] c"a\22b\5C\0A\00"
@pairs = global [2 x %struct.pair] [%struct.pair { i32 1, float 0x3FF8000000000000 }, %struct.pair zeroinitializer], comdat($comdat)
@tile = internal addrspace(3) global [32 x [33 x float]] undef, align 16
@place = global ptr getelementptr inbounds (i8, ptr addrspacecast (ptr addrspace(3) @tile to ptr), i64 16)
@other = external global %opaque
@vector = global <4 x i8> <i8 1, i8 2, i8 3, i8 4>
@wide = global i128 -170141183460469231731687303715884105728
@alias = alias i32 (i32), ptr @helper

; Function Attrs: convergent nounwind
define ptx_kernel void @kernel(ptr addrspace(1) noalias nocapture noundef readonly align 16 %in, ptr byval(%struct.pair) align 4 %pair, float %scale) local_unnamed_addr #0 !dbg !10 {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !dbg !12, !range !7
  %wide = zext nneg i32 %tid to i64
  %address = getelementptr inbounds nuw float, ptr addrspace(1) %in, i64 %wide
  %value = load float, ptr addrspace(1) %address, align 4, !invariant.load !6
  %more = icmp samesign ugt i32 %tid, 10
  br i1 %more, label %loop, label %exit, !prof !8

loop:                                             ; preds = %loop, %entry
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ %value, %entry ], [ %added, %loop ]
    #dbg_value(float %sum, !14, !DIExpression(DW_OP_plus_uconst, 4, DW_OP_stack_value), !12)
  %product = fmul fast float %sum, %scale
  %added = fadd reassoc contract float %product, 1.000000e+00
  %next = add nuw nsw i32 %i, 1
  %last = icmp eq i32 %next, 16
  br i1 %last, label %exit, label %loop, !llvm.loop !15

exit:
  %result = phi float [ %value, %entry ], [ %added, %loop ]
  %old = atomicrmw fadd ptr addrspace(1) %in, float %result syncscope("device") monotonic, align 4
  %swap = cmpxchg weak volatile ptr %pair, i32 0, i32 1 syncscope("block") acq_rel monotonic, align 4
  %first = extractvalue { i32, i1 } %swap, 0
  %changed = insertvalue { i32, i1 } %swap, i32 7, 0
  fence syncscope("agent") release
  call void @llvm.dbg.value(metadata i32 %first, metadata !14, metadata !DIExpression()), !dbg !13
  switch i32 %first, label %done [
    i32 0, label %done
    i32 -1, label %vectors
  ]

vectors:
  %v = insertelement <4 x i32> poison, i32 %first, i64 0
  %w = shufflevector <4 x i32> %v, <4 x i32> poison, <4 x i32> <i32 0, i32 0, i32 poison, i32 1>
  %e = extractelement <4 x i32> %w, i32 %tid
  %s = select i1 %more, <4 x i32> %w, <4 x i32> splat (i32 3)
  %f = freeze i32 %e
  %n = fneg nnan float %result
  %a = call { i32, i32 } asm sideeffect "mov.b64 {$0, $1}, $2;", "=r,=r,l"(i64 %wide) #2
  %c = tail call fastcc i32 @helper(i32 noundef signext %f) [ "tag"(i32 %e, ptr %pair) ]
  %stack = alloca [4 x i32], i32 2, align 16
  store volatile i32 %c, ptr %stack, align 4, !nontemporal !6
  store atomic i32 %c, ptr %stack release, align 4
  br label %done

done:
  ret void
}

define internal fastcc i32 @helper(i32 signext %0) #1 {
  %2 = trunc nuw i32 %0 to i8
  %3 = uitofp i8 %2 to double
  %4 = fptosi double %3 to i32
  %5 = or disjoint i32 %4, 1
  %6 = sdiv exact i32 %5, 3
  ret i32 %6
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1
declare void @llvm.dbg.value(metadata, metadata, metadata)

attributes #0 = { convergent nounwind "target-cpu"="sm_90" "nvvm.maxntid"="256" }
attributes #1 = { nounwind memory(argmem: read, inaccessiblemem: none) allocsize(0, 1) vscale_range(1,2) uwtable(sync) }
attributes #2 = { nounwind }

!llvm.dbg.cu = !{!9}
!llvm.module.flags = !{!0, !1}
!nvvm.annotations = !{!2}

!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = !{i32 4, !"nvvm-reflect-ftz", i32 0}
!2 = !{ptr @kernel, !"kernel", i32 1, !"maxntidx", i32 256}
!6 = !{}
!7 = !{i32 0, i32 1024}
!8 = !{!"branch_weights", i32 1, i32 99}
!9 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus_14, file: !11, producer: "x", isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)
!10 = distinct !DISubprogram(name: "kernel", linkageName: "kernel", scope: !11, file: !11, line: 3, type: !16, scopeLine: 3, flags: DIFlagPrototyped | DIFlagPublic, spFlags: DISPFlagDefinition, unit: !9)
!11 = !DIFile(filename: "everything.cu", directory: "/src", checksumkind: CSK_MD5, checksum: "0123456789abcdef0123456789abcdef")
!12 = !DILocation(line: 4, column: 9, scope: !10)
!13 = distinct !DILocation(line: 5, column: 1, scope: !17, inlinedAt: !12)
!14 = !DILocalVariable(name: "sum", scope: !10, file: !11, line: 5, type: !18)
!15 = distinct !{!15, !19}
!16 = !DISubroutineType(types: !{null, !18})
!17 = !DILexicalBlock(scope: !10, file: !11, line: 4, column: 3)
!18 = !DIBasicType(name: "float", size: 32, encoding: DW_ATE_float)
!19 = !{!"llvm.loop.unroll.count", i32 4}
