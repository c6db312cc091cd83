; RUN: ptxc %s -O0 --sm sm_90 2>&1 | filecheck %s
; A module for another machine, and an alias that others might call.

target triple = "x86_64-unknown-linux-gnu"

; CHECK: warning: the module is for `x86_64-unknown-linux-gnu`, not for nvptx64

@other = alias void (), ptr @f
; CHECK: other_targets.ll:[[@LINE-1]]:{{[0-9]+}}: warning: the alias `other` is used in this module only

define void @f() {
  ret void
}
