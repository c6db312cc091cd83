; RUN: ptxc %s -O0 --lineinfo --sm sm_90 | filecheck %s
; Locations go to the file of their scope.

define void @f(ptr addrspace(1) %p) !dbg !5 {
  store i32 1, ptr addrspace(1) %p, !dbg !8
  ret void, !dbg !9
}
; CHECK: .file 1 "/src/kernel.cu"
; CHECK: .loc 1 11 3
; CHECK: st.global
; CHECK: .loc 1 12 1

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!3, !4}
!0 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !1, isOptimized: false, runtimeVersion: 0, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "kernel.cu", directory: "/src")
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = !{i32 7, !"Dwarf Version", i32 4}
!5 = distinct !DISubprogram(name: "f", scope: !1, file: !1, line: 10, type: !6, scopeLine: 10, unit: !0)
!6 = !DISubroutineType(types: !7)
!7 = !{}
!8 = !DILocation(line: 11, column: 3, scope: !10)
!9 = !DILocation(line: 12, column: 1, scope: !5)
!10 = distinct !DILexicalBlock(scope: !5, file: !1, line: 10, column: 1)
