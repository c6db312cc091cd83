; Debug information as LLVM 22 writes it: locations, inlined calls, variables.
source_filename = "square.cu"
target triple = "nvptx64-nvidia-cuda"

define i32 @square(i32 %x) !dbg !5 {
entry:
  %slot = alloca i32, align 4
    #dbg_declare(ptr %slot, !9, !DIExpression(), !10)
  store i32 %x, ptr %slot, align 4, !dbg !10
    #dbg_value(i32 %x, !12, !DIExpression(DW_OP_plus_uconst, 1, DW_OP_stack_value), !14)
  %y = mul i32 %x, %x, !dbg !14
    #dbg_value(!DIArgList(i32 %x, i32 %y), !12, !DIExpression(DW_OP_LLVM_arg, 0, DW_OP_LLVM_arg, 1, DW_OP_plus), !14)
  %z = add i32 %y, 1, !dbg !16
  ret i32 %z, !dbg !18
}

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!3, !4}

!0 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus_14, file: !1, producer: "hand", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug, enums: !2)
!1 = !DIFile(filename: "square.cu", directory: "/src", checksumkind: CSK_MD5, checksum: "000102030405060708090a0b0c0d0e0f")
!2 = !{}
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = !{i32 7, !"Dwarf Version", i32 5}
!5 = distinct !DISubprogram(name: "square", linkageName: "_Z6squarei", scope: !1, file: !1, line: 3, type: !6, scopeLine: 4, flags: DIFlagPrototyped, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0, retainedNodes: !2)
!6 = !DISubroutineType(types: !7)
!7 = !{!8, !8}
!8 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!9 = !DILocalVariable(name: "slot", scope: !5, file: !1, line: 5, type: !8)
!10 = !DILocation(line: 5, column: 7, scope: !11)
!11 = distinct !DILexicalBlock(scope: !5, file: !1, line: 5, column: 3)
!12 = !DILocalVariable(name: "y", arg: 1, scope: !13, file: !1, line: 1, type: !8)
!13 = distinct !DISubprogram(name: "inner", scope: !1, file: !1, line: 1, type: !6, scopeLine: 1, spFlags: DISPFlagDefinition, unit: !0, retainedNodes: !2)
!14 = !DILocation(line: 1, column: 20, scope: !13, inlinedAt: !15)
!15 = distinct !DILocation(line: 6, column: 10, scope: !11)
!16 = !DILocation(line: 7, scope: !17)
!17 = !DILexicalBlockFile(scope: !5, file: !1, discriminator: 2)
!18 = !DILocation(line: 8, column: 1, scope: !5)
