"""The closed vocabularies of evidence. Each is a ``Literal``: mypy checks it where evidence is made, msgspec where it is read.

A value that is not listed here is a defect of whoever writes it. What is open by nature stays a plain ``str``: names of system
calls, classes, signals, states of processes and sockets, which the kernel and the libraries define.
"""

from __future__ import annotations

from typing import Literal

#: What a thread, task or process waits for.
ResourceKind = Literal[
    # of threads, in Python
    "lock",
    "rlock",
    "condition",
    "event",
    "semaphore",
    "barrier",
    "queue",
    "future",
    "thread",
    "import-lock",
    "pool-result",
    "gil",
    # of asyncio
    "async-lock",
    "async-event",
    "async-condition",
    "async-semaphore",
    "async-queue",
    "async-barrier",
    "async-future",
    # of native code
    "mutex",
    "rwlock",
    # of the kernel, and of whole processes
    "shared-semaphore",
    "file-lock",
    "process",
    "pipe",
    "socket",
    "descriptors",
    "eventfd",
    "timerfd",
    "signalfd",
    "inotify",
    "terminal",
    "file",
]

#: How a thread waits: the kind of the resource where one is known, else what the system call says.
WaitKind = Literal[
    "gil",
    "lock",
    "rlock",
    "condition",
    "event",
    "semaphore",
    "mutex",
    "rwlock",
    "thread",
    "futex",
    "event-loop",
    "socket",
    "pipe",
    "file",
    "process",
    "sleep",
    "signal",
    "other",
]

#: What a suspended task awaits.
TaskWaitKind = Literal[
    "future",
    "task",
    "tasks",
    "lock",
    "event",
    "condition",
    "semaphore",
    "queue",
    "barrier",
    "sleep",
    "descriptor",
    "thread",
    "process",
    "other",
]

#: How an agent could end a wait. holder: has the resource; runner: does the work that is waited for; callback: at its end a
#: function is called that was handed the object; reach: refers to the object; end: has the other end of it; before-fork: had it
#: in the process from which this one was forked.
WakerRole = Literal["holder", "runner", "callback", "reach", "end", "before-fork"]

#: How it is known who holds a lock. recorded: the lock itself says so; with-slot: a frame keeps the lock of its ``with`` block on
#: its value stack; inferred: a frame has acquired it by its bytecode.
OwnerBasis = Literal["recorded", "with-slot", "inferred"]

#: How a waker is known: as an owner, from a table of the kernel, or from a reference in memory.
WakerBasis = Literal["recorded", "with-slot", "inferred", "kernel", "memory"]

#: How a fact of a crash is known. instruction: from the operands of the instruction and the registers.
CrashBasis = Literal["recorded", "instruction", "inferred"]

#: What an instruction did with the address that it could not use.
Access = Literal["read", "write", "execute"]

#: Where an address lies in a thread's stack; guard: in its guard pages, or below them.
StackPart = Literal["inside", "guard"]

EndMode = Literal["r", "w", "rw"]

#: holds and waits are of the GIL; detached: the thread runs no Python code at the moment.
GilState = Literal["holds", "waits", "detached", "unknown"]

#: What a thread did over a stretch of the window. holds, waits: of the GIL; runs: on a CPU or ready to, without the GIL for all
#: that is known; blocked: in a system call, not for the GIL; unknown: also in a futex that may be the GIL's or not.
Doing = Literal["holds", "waits", "runs", "blocked", "unknown"]

#: symbol and unwind: as gdb unwound it; scan: a return address that was found on the stack.
FrameTrust = Literal["symbol", "unwind", "scan"]

#: signal-handler: entered by the interpreter with (signal number, frame).
FrameRole = Literal["signal-handler"]

#: handled: an except or finally clause runs; raised: it is on its way up.
ExceptionState = Literal["handled", "raised"]

LoopState = Literal["running", "stopped", "closed"]
TaskState = Literal["pending", "running", "done", "unknown"]
PoolKind = Literal["ThreadPoolExecutor", "ProcessPoolExecutor", "multiprocessing.Pool"]

#: Why processes were captured.
TriggerKind = Literal["timeout", "stall", "signal", "pid", "core"]

#: Who kept a core.
Store = Literal["systemd", "apport", "abrt", "directory"]

#: Whether the store's own program wrote what is known of a core. verified: systemd-coredump did, by fields that only journald
#: writes; copied: so a journal says that was brought here, which is as good as its source; unverified: another process wrote it.
Trust = Literal["verified", "copied", "unverified"]

#: What could not be read.
GapCode = Literal[
    # of a core, its program and its files
    "core-cut-short", "core-unread", "file-changed", "file-unusable", "no-program", "wrong-program", "threads-lost",
    "container-files", "origin-unverified", "report-damaged", "folder-refused", "unpacked-short",
    # of a capture and its bundle
    "capture-cut-short", "step-failed", "evidence-unusable", "recorded-instead", "stripped", "no-time-for-core",
    # of native stacks
    "no-native-stacks", "gdb-incomplete", "gdb-damaged", "stack-incomplete", "frames-guessed", "no-time-for-gdb",
    # of Python: interpreter, stacks, values, sources
    "no-interpreter", "interpreter-unread", "interpreter-ending", "stack-cut", "frames-unread", "frames-left-out", "greenlets",
    "tasks-unread", "locals-unread", "locals-left-out", "no-locals", "sources-unread", "unassigned-samples",
    # of waits and what could end them
    "call-unread", "restarted-call", "semaphores-unread", "wakers-unknown", "no-handler-table", "native-handlers",
    # of a crash
    "crash-unread",
]  # fmt: skip

#: What a thread does beside a phrase that names its object: it ``waits`` (until, for, to be …), ``wants`` or ``asks`` for it; a
#: ``call`` waits on a descriptor.
WaitVerb = Literal["waits", "wants", "asks", "call"]
