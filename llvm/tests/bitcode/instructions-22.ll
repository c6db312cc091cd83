; Every kind of instruction that device code has, as LLVM 22 writes it.
source_filename = "m"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%list = type { %pair, ptr, [4 x i8] }
%pair = type { i32, float }
%opaque = type opaque

$group = comdat any

@counter = internal addrspace(1) global i32 0, align 4
@table = addrspace(4) constant [3 x i16] [i16 1, i16 -2, i16 300], align 2
@tile = internal addrspace(3) global [32 x float] undef, align 16
@name = private unnamed_addr constant [6 x i8] c"hello\00"
@links = global [2 x ptr] [ptr getelementptr inbounds (i8, ptr addrspacecast (ptr addrspace(1) @counter to ptr), i64 4), ptr null]
@deep = global %list { %pair { i32 7, float 0x3FB99999A0000000 }, ptr @links, [4 x i8] c"abcd" }
@wide = global i128 -170141183460469231731687303715884105728
@other = external global %opaque

@again = alias i32, ptr addrspace(1) @counter

declare void @sink(...)

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #0

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: write)
declare void @llvm.assume(i1 noundef) #1

define linkonce_odr i32 @weak(i32 %x) comdat($group) {
  ret i32 %x
}

; Function Attrs: nounwind memory(argmem: read)
define i64 @integers(i64 %a, i64 %b, i8 %c) #2 {
entry:
  %add = add nuw nsw i64 %a, %b
  %sub = sub nsw i64 %add, 9223372036854775807
  %mul = mul nuw i64 %sub, -3
  %ud = udiv exact i64 %mul, %b
  %sd = sdiv i64 %ud, 7
  %ur = urem i64 %sd, 5
  %sr = srem i64 %ur, %a
  %shl = shl nuw i64 %sr, 3
  %lshr = lshr exact i64 %shl, 1
  %ashr = ashr i64 %lshr, 2
  %and = and i64 %ashr, 255
  %or = or disjoint i64 %and, 256
  %xor = xor i64 %or, -1
  %t = trunc i64 %xor to i8
  %z = zext nneg i8 %t to i64
  %s = sext i8 %c to i64
  %cmp = icmp ult i64 %z, %s
  %sel = select i1 %cmp, i64 %z, i64 %s
  %fr = freeze i64 %sel
  ret i64 %fr
}

define float @floats(float %a, double %b, half %c, bfloat %d) {
  %n = fneg nsz float %a
  %f = fadd fast float %n, 1.500000e+00
  %g = fsub contract float %f, 0x7FF0000000000000
  %h = fmul reassoc nnan float %g, %a
  %i = fdiv ninf arcp float %h, 0x36A0000000000000
  %j = frem afn float %i, %a
  %k = fptrunc double %b to float
  %l = fpext half %c to float
  %m = fptosi float %k to i32
  %o = uitofp i32 %m to float
  %q = bitcast float %o to i32
  %r = sitofp i32 %q to float
  %e = fpext bfloat %d to float
  %cmp = fcmp nnan olt float %r, %e
  %s = select nsz i1 %cmp, float %r, float %l
  %u = fcmp une float %j, %s
  call void @llvm.assume(i1 %u) [ "align"(ptr @wide, i64 16) ]
  ret float %s
}

define void @memory(ptr addrspace(1) %p, ptr %q, i32 %n, ptr byval(%pair) align 4 %s) {
entry:
  %local = alloca %list, align 16
  %many = alloca i32, i32 %n, align 4
  %f = getelementptr inbounds %list, ptr %local, i64 0, i32 0, i32 1
  %v = load volatile float, ptr %f, align 4
  store float %v, ptr %f, align 8, !nontemporal !1
  %w = load i32, ptr addrspace(1) %p, align 4, !range !2, !invariant.load !3
  %x = load atomic i32, ptr addrspace(1) %p syncscope("agent") acquire, align 4
  store atomic i32 %x, ptr addrspace(1) %p release, align 4
  %y = atomicrmw add ptr addrspace(1) %p, i32 %w syncscope("block") monotonic, align 4
  %z = atomicrmw volatile fadd ptr %q, float %v seq_cst, align 4
  %c = cmpxchg weak ptr %q, i32 %y, i32 5 acq_rel monotonic, align 4
  %old = extractvalue { i32, i1 } %c, 0
  fence syncscope("singlethread") seq_cst
  %cast = addrspacecast ptr addrspace(1) %p to ptr
  %int = ptrtoint ptr %cast to i64
  %ptr = inttoptr i64 %int to ptr
  %gep = getelementptr i32, ptr %ptr, i32 %old
  store ptr %gep, ptr %q, align 8
  ret void
}

define <4 x float> @vectors(<4 x float> %a, <4 x i32> %i, i32 %n) {
  %e = extractelement <4 x float> %a, i32 %n
  %v = insertelement <4 x float> poison, float %e, i64 0
  %s = shufflevector <4 x float> %v, <4 x float> %a, <4 x i32> <i32 0, i32 5, i32 poison, i32 3>
  %c = icmp slt <4 x i32> %i, <i32 1, i32 2, i32 3, i32 4>
  %r = select <4 x i1> %c, <4 x float> %s, <4 x float> zeroinitializer
  %p = getelementptr float, ptr @wide, <4 x i32> %i
  %q = ptrtoint <4 x ptr> %p to <4 x i64>
  call void (...) @sink(<4 x i64> %q, i1 true)
  ret <4 x float> %r
}

define { i32, [2 x float] } @aggregates({ i32, [2 x float] } %a, float %f) {
  %x = extractvalue { i32, [2 x float] } %a, 1, 0
  %b = insertvalue { i32, [2 x float] } %a, float %f, 1, 1
  %c = insertvalue { i32, [2 x float] } %b, i32 3, 0
  ret { i32, [2 x float] } %c
}

define i32 @control(i32 %n, ptr %where) {
entry:
  switch i32 %n, label %loop [
    i32 0, label %done
    i32 -5, label %other
  ]

loop:                                             ; preds = %loop, %entry
  %i = phi i32 [ %next, %loop ], [ 0, %entry ]
  %next = add i32 %i, 1
  %c = icmp eq i32 %next, %n
  br i1 %c, label %done, label %loop, !prof !4, !llvm.loop !5

other:                                            ; preds = %entry
  indirectbr ptr %where, [label %done, label %dead]

done:                                             ; preds = %other, %loop, %entry
  %r = phi i32 [ 1, %entry ], [ %next, %loop ], [ 2, %other ]
  ret i32 %r

dead:                                             ; preds = %other
  unreachable
}

; Function Attrs: convergent
define ptx_kernel void @calls(ptr readonly captures(none) %f, i32 signext %n) #3 {
  %a = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = tail call fastcc noundef i32 %f(i32 zeroext %a)
  %c = call { i32, i32 } asm sideeffect "mov.b32 $0, $2; mov.b32 $1, $2;", "=r,=r,r,~{memory}"(i32 %n)
  %d = call nnan float @floats(float 1.000000e+00, double 2.000000e+00, half 0xH3C00, bfloat 0xR3F80)
  call void (...) @sink(ptr blockaddress(@control, %done), float %d)
  ret void
}

attributes #0 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: write) }
attributes #2 = { nounwind memory(argmem: read) "nvvm.maxnreg"="64" }
attributes #3 = { convergent "nvvm.maxntid"="256" "target-cpu"="sm_90" "target-features"="+ptx83" }

!nvvm.annotations = !{}
!llvm.module.flags = !{!0}

!0 = !{i32 4, !"nvvm-reflect-ftz", i32 1}
!1 = !{i32 1}
!2 = !{i32 0, i32 1024}
!3 = !{}
!4 = !{!"branch_weights", i32 1, i32 99}
!5 = distinct !{!5, !6}
!6 = !{!"llvm.loop.unroll.count", i32 4}
