"""The closed vocabularies of evidence, each a ``Literal``.

mypy checks them where evidence is made, msgspec where it is read.

A value that is not listed here is a defect of the code that writes it. Open vocabularies stay plain ``str``: names
of system calls, classes and signals, states of processes and sockets, which the kernel and the libraries define.
"""

from __future__ import annotations

from typing import Literal

#: The kind of object that a thread, task or process waits for.
ResourceKind = Literal[
    # used by threads, in Python
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
    # used by threads and tasks: an object that lends parts of itself
    "pool",
    # used by asyncio tasks
    "async-lock",
    "async-event",
    "async-condition",
    "async-semaphore",
    "async-queue",
    "async-barrier",
    "async-future",
    # used by native code
    "mutex",
    "rwlock",
    # provided by the kernel, and whole processes
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

#: How a thread waits: the kind of the resource if known, else derived from the system call.
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

#: The kind of operation that a suspended task awaits.
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

#: How an agent could end a wait. holder: holds the resource; runner: does the awaited work; callback: on its completion a
#: function is called that was given the object; reach: refers to the object; end: has the other end of it; before-fork:
#: held it in the process from which this one was forked.
WakerRole = Literal["holder", "runner", "callback", "reach", "end", "before-fork"]

#: How the holder of a lock is known. recorded: in the lock itself; with-slot: a frame keeps the lock of its ``with`` block
#: on its value stack; inferred: a frame has acquired it, according to its bytecode.
OwnerBasis = Literal["recorded", "with-slot", "inferred"]

#: How a waker is known: as an owner, from a kernel table, or from a reference in memory.
WakerBasis = Literal["recorded", "with-slot", "inferred", "kernel", "memory"]

#: What a waker found by references could do. names: code that it can still run, or start, applies an operation that ends
#: the wait to the object, or hands the object on to something unknown; refers: none does.
WakerGrade = Literal["names", "refers"]

#: How it is known, besides the task's own count, that a task was cancelled. closing: ``asyncio.run`` has ended and waits for
#: it; awaited: ``wait_for`` waits for its end after the time limit; gather: the gather that it is part of was cancelled; called:
#: the function that awaits it calls ``cancel()`` before, according to its source; limit: an ``asyncio.timeout`` that it is in has
#: expired.
CancelBasis = Literal["closing", "awaited", "gather", "called", "limit"]

#: How the end of a process is known. zombie: its parent has not collected its status; recorded: an object of its parent has
#: its status; missing: an object of its parent has its PID, and no such process was found.
EndBasis = Literal["zombie", "recorded", "missing"]

#: How a fact of a crash is known. instruction: from the operands of the instruction and the registers.
CrashBasis = Literal["recorded", "instruction", "inferred"]

#: Why native code called abort(): a C++ exception that nobody caught, std::terminate without one, a panic of Rust, or a check of
#: its own.
AbortKind = Literal["exception", "terminate", "panic", "call"]

#: How an instruction accessed an invalid address.
Access = Literal["read", "write", "execute"]

#: Where an address lies relative to a thread's stack; guard: in its guard pages, or below them.
StackPart = Literal["inside", "guard"]

EndMode = Literal["r", "w", "rw"]

#: holds, waits: the GIL; detached: the thread runs no Python code at the moment.
GilState = Literal["holds", "waits", "detached", "unknown"]

#: What a thread's code names that ends waits for its whole process: reads a pipe or socket, releases a lock on a file, ends a
#: database's transaction.
Deed = Literal["reads", "releases", "unlocks", "cancels", "commits", "ends", "continues"]

#: A thread's activity over a span of the window. holds, waits: the GIL; runs: on a CPU or ready to, as far as known without
#: the GIL; blocked: in a system call, not for the GIL; unknown: includes a futex that may or may not be the GIL's.
Doing = Literal["holds", "waits", "runs", "blocked", "unknown"]

#: symbol, unwind: as unwound by gdb; scan: a return address found on the stack.
FrameTrust = Literal["symbol", "unwind", "scan"]

#: signal-handler: called by the interpreter with (signal number, frame).
FrameRole = Literal["signal-handler"]

#: handled: an except or finally clause runs; raised: still propagating.
ExceptionState = Literal["handled", "raised"]

LoopState = Literal["running", "stopped", "closed"]
TaskState = Literal["pending", "running", "done", "unknown"]
PoolKind = Literal["ThreadPoolExecutor", "twisted.ThreadPool", "ProcessPoolExecutor", "multiprocessing.Pool"]

#: The reason for a capture.
TriggerKind = Literal["timeout", "stall", "signal", "pid", "core"]

#: The program or place that stored a core.
Store = Literal["systemd", "apport", "abrt", "directory"]

#: Whether a core's metadata was written by the store's own program. verified: by systemd-coredump, according to fields that
#: only journald writes; copied: the same in a journal copied from elsewhere, as reliable as its source; unverified: by
#: another process.
Trust = Literal["verified", "copied", "unverified"]

#: The kind of fact that could not be read; its words and slots stand in ``report/phrases/gaps.py``.
GapCode = Literal[
    # a core, its program and its files
    "core-cut-short", "core-cut-by-systemd", "core-unread", "file-changed", "file-unusable", "no-program", "program-unnamed",
    "program-loaded", "program-unusable", "wrong-program", "program-doubtful", "threads-lost", "no-threads-listed",
    "no-threads", "container-files", "origin-unverified", "report-damaged", "folder-refused", "unpacked-short",
    # a capture and its bundle
    "capture-cut-short", "capture-not-begun", "step-failed", "evidence-unusable", "evidence-too-large", "recorded-instead",
    "stripped", "no-time-for-core",
    # native stacks
    "no-native-stacks", "gdb-incomplete", "gdb-stopped", "gdb-damaged", "stack-incomplete", "no-native-frame",
    "thread-unseen", "frames-guessed", "frames-guessed-unread", "no-time-for-gdb",
    # Python: interpreter, stacks, values, sources
    "no-interpreter", "interpreter-unread", "interpreter-ending", "stack-cut", "frames-unread", "frames-left-out",
    "greenlets", "greenlets-unread", "tasks-unread", "locals-unread", "locals-left-out", "no-locals", "no-locals-in-report",
    "locals-stripped",
    "sources-unread", "unassigned-samples",
    # waits and wakers
    "call-unread", "restarted-call", "restarted-calls", "semaphores-unread", "no-handler-table", "native-handlers",
    "references-uncounted", "references-unfound", "references-overcounted", "no-reference-count", "weak-reference-unread",
    "no-object-lists", "no-time-for-references", "too-many-referrers", "referrers-too-deep", "referrers-unread",
    # crashes
    "no-siginfo", "instruction-unread", "crash-stack-unknown", "abort-message-unread", "fatal-error-unread",
    "stack-bounds-unknown",
]  # fmt: skip

#: The verb before a wait's phrase: the thread ``waits`` (until, for, to be …), ``wants`` or ``asks`` for it; ``call``: a system
#: call on a descriptor.
WaitVerb = Literal["waits", "wants", "asks", "call"]

#: The kind of fact that supports a conclusion; its words and slots stand in ``report/phrases/facts.py``.
FactCode = Literal[
    "work-item-queued", "work-item-runs", "job-queued", "unreferred", "pool-full", "with-manager", "coroutine-queued",
    "coroutine-runs",
    "function-runs", "call-runs", "call-queued",
    "set-by-shutdown", "workers-wait", "no-job-queued", "no-job-sent", "no-result-sent", "results-thread-ended",
    "taker-ended", "taker-ended-here",
    "shared-taken", "shared-none-has", "shared-taker-gone", "shared-mapped-by", "shared-none-took", "shared-guards",
    "left-behind-here", "forked-from", "left-behind", "records-no-thread-here", "no-frame-holds", "only-thread-waits",
    "records-one-left", "parent-unread", "recorded-ended-in-parent", "recorded-in-parent", "same-address-held",
    "same-address-free", "permits-held", "parts-held", "records-ended-task", "stacks-hold-none", "stacks-took-none",
    "tasks-hold-none", "tasks-took-none", "mutex-owner-gone",
    "shared-lock-records", "alone-inside", "alone-inside-library", "alone-runs-loop",
    "readers-hold",
    "kernel-lock", "held-through", "taker-is-no-more",
    "taker-has-closed", "pipe-moves", "other-end", "end-held", "more-ends", "named-file", "hidden-holder",
    "holders-unrecorded", "descriptors-unread", "descriptors-in-flight", "machine-unsearched", "younger-processes",
    "given-by-others", "all-searched", "child-ends-it", "only-waiters-refer", "only-waiters-and-jobs-refer", "has-a-way",
    "referred-to",
    # what agents wait for, and what else may end a wait
    "until-continued", "stopper", "selector-timeout", "timer", "perhaps-timer", "watched-descriptors",
    "perhaps-descriptor", "ready-callbacks", "handled-signal", "idle-loop", "one-thread-moves", "status-uncollected",
    "process-not-captured", "child-not-captured", "any-child", "some-call", "something", "gil", "loop-runner",
    "loop-of-thread", "awaits-unknown", "tasks", "tasks-of", "native-code",
]  # fmt: skip
