"""The fault that ended a crashed process, as recorded in its core file."""

from __future__ import annotations

from typing import Optional

import msgspec

from .vocabulary import AbortKind, Access, CrashBasis, StackPart


class Abort(msgspec.Struct, frozen=True):
    """Why native code called abort(), where neither glibc nor the interpreter recorded a message."""

    kind: AbortKind
    exception: Optional[str] = None  # class of the C++ exception: "std::length_error"
    message: Optional[str] = None  # of the exception or panic; else a line that was printed to stderr before
    place: Optional[str] = None  # "src/lib.rs:88:5", as the panic cites it
    # of the kind and the message; recorded: by the language's runtime; inferred: found on the stack, perhaps older
    basis: Optional[CrashBasis] = None


class Crash(msgspec.Struct, frozen=True):
    """The fatal signal and the place where it struck.

    If a handler installed by the program (faulthandler's, for instance) ran first and then raised the signal again or
    aborted, every field describes the original fault; ``Process.fatal_signal`` is the signal that ended the process.
    """

    signal: int
    code: Optional[int] = None  # si_code; None: not recorded in the core
    code_name: Optional[str] = None  # "SEGV_MAPERR", "SI_USER", "SI_TKILL", "FPE_INTDIV", "SI_KERNEL", …
    address: Optional[int] = None  # the inaccessible address; SIGSEGV and SIGBUS only
    address_basis: Optional[CrashBasis] = None  # recorded: by the kernel
    sender_pid: Optional[int] = None  # SI_USER, SI_TKILL, SI_QUEUE; 0: a process outside the target's pid namespace
    sender_uid: Optional[int] = None
    syscall: Optional[int] = None  # number of the system call refused by seccomp (SIGSYS)
    tid: Optional[int] = None  # the thread that received the signal
    pc: Optional[int] = None  # address of the faulting instruction
    instruction: Optional[str] = None  # in AT&T syntax: "mov (%rdi),%rax"
    access: Optional[Access] = None
    module: Optional[str] = None  # path of the mapped file that contains pc; None: not in a file, or pc unknown
    function: Optional[str] = None  # native function at pc, if a symbol is available
    frame: Optional[int] = None  # index of that native frame in Thread.stack: 0, or below the handler's frames
    handler: Optional[bool] = None  # True: a handler installed by the program ran for it, see above
    # did the thread hold its interpreter's GIL (the main interpreter's, if it has none)?
    holds_gil: Optional[bool] = None
    message: Optional[str] = None  # glibc's message before it aborted: "free(): invalid pointer", an assertion
    abort: Optional[Abort] = None  # None too where glibc or the interpreter recorded a message
    python_error: Optional[str] = None  # the interpreter's message before it aborted, without the function's name
    python_error_function: Optional[str] = None  # the function that issued it: "PyThreadState_Get"
    # recorded: arguments known to gdb; inferred: strings near the stack
    python_error_basis: Optional[CrashBasis] = None
    stack: Optional[StackPart] = None  # where the address lies relative to the thread's stack
    stack_used: Optional[int] = None  # bytes, from the base of the stack to the stack pointer
    stack_limit: Optional[int] = None  # bytes; for the main thread only if the limit was reached
    native_depth: Optional[int] = None  # number of native frames that were unwound
    native_whole: Optional[bool] = None  # False: older frames were not unwound
