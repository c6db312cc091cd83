; RUN: not ptxc %s -O0 --sm sm_90 2>&1 | filecheck %s
; The base of the shared window is not known before the program runs.

target triple = "nvptx64-nvidia-cuda"

@x = addrspace(1) global ptr addrspacecast (ptr addrspace(3) null to ptr)
; CHECK: null_cast_initializer.ll:[[@LINE-1]]:{{[0-9]+}}: error: the initializer casts null or a number to another address space
