"""What ended a process that crashed, as its core tells."""

from __future__ import annotations

from typing import Optional

import msgspec

from .vocabulary import Access, CrashBasis, StackPart


class Crash(msgspec.Struct, frozen=True):
    """The fatal signal and the place that it hit.

    Where a handler of the program's own ran first (faulthandler's, say) and then raised the signal anew or aborted, all
    of this is of the fault that the handler was called for; ``Process.fatal_signal`` is what ended the process in the end.
    """

    signal: int
    code: Optional[int] = None  # si_code; None: the core does not say
    code_name: Optional[str] = None  # "SEGV_MAPERR", "SI_USER", "SI_TKILL", "FPE_INTDIV", "SI_KERNEL", …
    address: Optional[int] = None  # that could not be accessed; for SIGSEGV and SIGBUS alone
    address_basis: Optional[CrashBasis] = None  # recorded: by the kernel
    sender_pid: Optional[int] = None  # SI_USER, SI_TKILL, SI_QUEUE; 0: a process outside of its pid namespace
    sender_uid: Optional[int] = None
    syscall: Optional[int] = None  # number of the call that seccomp refused (SIGSYS)
    tid: Optional[int] = None  # of the thread that got the signal
    pc: Optional[int] = None  # address of its instruction
    instruction: Optional[str] = None  # in AT&T's notation: "mov (%rdi),%rax"
    access: Optional[Access] = None
    module: Optional[str] = None  # path of the mapped file that pc lies in; None: in no file, or no pc
    function: Optional[str] = None  # the native function there, when a symbol tells
    frame: Optional[int] = None  # index in Thread.stack of that native frame: 0, or below the handler's frames
    handler: Optional[bool] = None  # did a handler of the program's own run for it, see above?
    holds_gil: Optional[bool] = (
        None  # did the thread hold the lock of its interpreter (of the main one, if it has none)?
    )
    message: Optional[str] = None  # what glibc said before it aborted: "free(): invalid pointer", an assertion
    python_error: Optional[str] = None  # what the interpreter said before it aborted, without the function's name
    python_error_function: Optional[str] = None  # that said it: "PyThreadState_Get"
    python_error_basis: Optional[CrashBasis] = (
        None  # recorded: arguments that gdb knows; inferred: texts near the stack
    )
    stack: Optional[StackPart] = None  # where the address lies in the thread's stack
    stack_used: Optional[int] = None  # bytes, from the stack's beginning to the stack pointer
    stack_limit: Optional[int] = None  # bytes; of the main thread only when it has run into it
    native_depth: Optional[int] = None  # native frames of the thread that were unwound
    native_whole: Optional[bool] = None  # False: there are older ones
