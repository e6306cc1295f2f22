"""What several patterns ask of a crash: who or what ended the process, and where in the program it was then.

The kinds exclude each other, so that each crash has one pattern that states the fact.
"""

from __future__ import annotations

import itertools
import re
import signal
from typing import Iterator, List, NamedTuple, Optional, Tuple

from ....evidence import Crash, NativeFrame, Process, PythonFrame, Thread
from ....findings import Culprit
from ...facts import native
from ...facts.knowledge import is_library, own_frame
from ...facts.view import View, label

#: Signals of an instruction that failed. SIGTRAP: `int3`, by which compilers end what must not go on; SIGSYS: a system call
#: that a filter refuses.
FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS)
_SENT = ("SI_USER", "SI_TKILL", "SI_QUEUE")

#: What glibc 2.17 to 2.41 says of its heap (malloc/malloc.c: malloc_printerr, and the assertions of that file).
_HEAP = re.compile(
    r"^(double free|corrupted |invalid fastbin|break adjusted to free|chunk_main_arena|unaligned |tcache_|heap corruption"
    r"|(free|malloc|realloc|calloc|memalign|malloc_consolidate|munmap_chunk|mremap_chunk|malloc_check_get_size)\(\)"
    r"|malloc: )|malloc assertion failure|\bmalloc\.c\b"
)
#: Python's own checks of a block (Objects/obmalloc.c, _PyMem_DebugCheckAddress), 3.8 to 3.15.
_BLOCK = re.compile(r"bad (leading|trailing) pad byte|bad ID: Allocated using API")
#: What glibc's checks of a program say (debug/fortify_fail.c, stack_chk_fail.c).
_SMASHED = re.compile(r"\*\*\* .+ \*\*\*|FORTIFY")

#: Below abort(): Python/pylifecycle.c. Those with an underscore in front are exported, also from stripped interpreters.
_FATAL_ERROR = re.compile(r"(fatal_error(_exit)?|_?Py_FatalError(Func|Format|_TstateNULL)?)(\.[\w.]+)?$")
#: By which a thread sends a signal, to itself for instance (glibc).
_RAISES = re.compile(r"((__GI_|__)?(abort|raise|gsignal|kill|killpg|pthread_kill\w*|sigqueue)|pthread_sigqueue)(@.*)?$")
_CALLS_TO_RAISE = re.compile(r"(^|\.)(kill|killpg|abort|raise_signal|pthread_kill|_sigabrt|_sigsegv)$")
_KILLS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_ABORT = re.compile(r"(__GI_)?abort(@.*)?$")
#: What gdb calls the frame that the kernel makes for a signal handler.
_TRAMPOLINE = "<signal handler called>"
_NEAR = 8
#: Give back what a Python function held when it returns (Python/ceval.c, Python/frame.c, Objects/frameobject.c; 3.8 to 3.15).
_LEAVING = re.compile(
    r"(_PyEvalFrameClearAndPop|clear_thread_frame|_PyEval_FrameClearAndPop|_PyFrame_Clear\w*|frame_dealloc)"
)


class Crashed(NamedTuple):
    process: Process
    crash: Crash
    thread: Optional[Thread]  # that got the signal

    @property
    def who(self) -> str:
        return label(self.thread) if self.thread is not None else f"thread {self.crash.tid or '?'}"

    @property
    def signal(self) -> str:
        return signal_name(self.crash.signal)

    @property
    def below(self) -> Tuple[PythonFrame, ...]:
        """The Python frames that led to the place, most recent call first: not those of a handler that ran for it."""
        stack = self.thread.stack if self.thread is not None else ()
        return tuple(f for f in stack[self.crash.frame or 0 :] if isinstance(f, PythonFrame))

    @property
    def natives(self) -> List[NativeFrame]:
        stack = self.thread.stack if self.thread is not None else ()
        return [f for f in stack[self.crash.frame or 0 :] if isinstance(f, NativeFrame)]

    @property
    def sender_name(self) -> str:
        pid = self.crash.sender_pid
        if pid == 0:
            return "a process outside of its container"
        user = f" (user {self.crash.sender_uid})" if self.crash.sender_uid is not None else ""
        return f"its parent, process {pid}{user}," if pid == self.process.ppid else f"process {pid}{user}"


def crashes(view: View) -> Iterator[Crashed]:
    for process in view.processes:
        if process.crash is not None:
            yield Crashed(process, process.crash, view.thread(process, process.crash.tid))


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# ---------------------------------------------------------------------- who or what ended it


def kind(found: Crashed) -> Optional[str]:
    """What ended it; None: unknown.

    "fault"; "overflow": a fault beyond the end of a stack; "allocator"; "interpreter": Py_FatalError; "smashed": glibc
    found that native code wrote too far; "assertion"; "outside": sent by another process, or by the kernel; "inside":
    sent by another thread, or by a signal handler, of the same process; "hidden": sent, but a native handler raised it
    anew, which hides by whom; "itself".
    """
    crash = found.crash
    if crash.signal in FAULTS and crash.code_name not in _SENT:
        return "overflow" if crash.stack == "guard" else "fault"
    check = _failed_check(found)
    if check is not None:
        return check
    if crash.code_name == "SI_KERNEL":
        return "outside"
    if crash.code_name not in _SENT or crash.sender_pid is None:
        return None
    return "outside" if crash.sender_pid != found.process.pid else _own(found)


def _failed_check(found: Crashed) -> Optional[str]:
    """Whose check it was that failed before abort() was called."""
    crash = found.crash
    if crash.python_error is not None and _BLOCK.search(crash.python_error):
        return "allocator"
    if crash.python_error is not None or _in_fatal_error(found):
        return "interpreter"
    if crash.message is not None:
        if _HEAP.search(crash.message):
            return "allocator"
        return "smashed" if _SMASHED.search(crash.message) else "assertion"
    if gave_up_unnamed(found):
        return "interpreter"
    return None


def _own(found: Crashed) -> Optional[str]:
    """A signal of the process's own: did the thread that got it send it?"""
    thread = found.thread
    if thread is None:
        return None
    if raises(thread):
        below = _below_handler(thread)
        if below is not None and not any(f.function and _RAISES.match(f.function) for f in below):
            return "hidden"
        return "inside" if interrupted(thread) else "itself"
    if thread.native or (thread.wait is not None and thread.wait.syscall is not None):
        return "inside"
    return None


def raises(thread: Thread) -> bool:
    """Is it in a function that sends a signal?"""
    if thread.wait is not None and thread.wait.syscall in _KILLS:
        return True
    if any(f.function and _RAISES.match(f.function) for f in _innermost(thread)):
        return True
    return thread.calling is not None and bool(_CALLS_TO_RAISE.search(thread.calling.function))


def interrupted(thread: Thread) -> Tuple[PythonFrame, ...]:
    """What a Python signal handler on its stack has interrupted; empty without one."""
    at = next((i for i, f in enumerate(thread.python) if f.role == "signal-handler"), None)
    return thread.python[at + 1 :] if at is not None else ()


def _below_handler(thread: Thread) -> Optional[List[NativeFrame]]:
    """The native frames that a handler in C has interrupted, faulthandler's for instance; None without one."""
    inner = _innermost(thread)
    at = next((i for i, f in enumerate(inner) if f.function == _TRAMPOLINE), None)
    return inner[at + 1 :] if at is not None else None


def gave_up_unnamed(found: Crashed) -> bool:
    """Did the interpreter itself call abort()? Stripped ones do not name their fatal error; os.abort() alone calls it, too,
    and stands below a Python frame."""
    natives = found.natives
    at = next((i for i, f in enumerate(natives[:_NEAR]) if f.function and _ABORT.match(f.function)), None)
    if at is None or found.below or found.process.python is None or found.crash.sender_pid != found.process.pid:
        return False
    return any(native.is_interpreter(f) for f in natives[at + 1 : at + 2])


def _in_fatal_error(found: Crashed) -> bool:
    """glibc's raise and abort, and then the interpreter's function, stand on top."""
    return any(f.function and _FATAL_ERROR.match(f.function) for f in found.natives[:_NEAR])


def _innermost(thread: Thread) -> List[NativeFrame]:
    """Its native frames above all Python code."""
    above = itertools.takewhile(lambda f: isinstance(f, NativeFrame), thread.stack)
    return [f for f in above if isinstance(f, NativeFrame)][:_NEAR]


def _above_python(found: Crashed) -> List[NativeFrame]:
    stack = found.thread.stack[found.crash.frame or 0 :] if found.thread is not None else ()
    return [f for f in itertools.takewhile(lambda f: isinstance(f, NativeFrame), stack) if isinstance(f, NativeFrame)]


# ---------------------------------------------------------------------- where


def place(crash: Crash) -> Optional[str]:
    """``strlen of libc.so.6``; None where it is not known."""
    if crash.pc is None:
        return None
    module = crash.module.rsplit("/", 1)[-1] if crash.module else None
    known = f"{crash.function} of {module}" if crash.function and module else crash.function or module
    return known or "code that lies in no file"


def instruction(crash: Crash) -> Optional[str]:
    """``strlen of libc.so.6 (`mov (%rdi),%rax`)``; None without a place."""
    text = f" (`{crash.instruction}`)" if crash.instruction else ""
    known = place(crash)
    return None if known is None else f"{known}{text}"


def lines(view: View, found: Crashed, frames: Optional[Tuple[PythonFrame, ...]] = None) -> Tuple[Culprit, ...]:
    """The program's innermost line that led to the place, two callers of it in other functions, and the line in C, where
    there is debug information. Of a thread without Python frames, where others are in the same library."""
    process, thread = found.process, found.thread
    below = found.below if frames is None else frames
    own = own_frame(below)
    culprits: List[Culprit] = []
    if own is not None:
        callers = [f for f in below[below.index(own) + 1 :] if _is_caller(own, f)]
        culprits += [view.culprit(process, f, thread) for f in (own, *callers[:2])]
    inner = next((f for f in found.natives[:_NEAR] if native.is_program(f)), None)
    if inner is not None and thread is not None:
        culprits += [c for c in [native.culprit(process, thread, inner)] if c is not None]
    if own is None:
        culprits += _beside(view, found)
    return tuple(dict.fromkeys(culprits))


def _is_caller(own: PythonFrame, frame: PythonFrame) -> bool:
    return not is_library(frame) and frame.line != own.line and frame.function not in (own.function, "<module>")


def _beside(view: View, found: Crashed) -> Iterator[Culprit]:
    """A thread that a library has made: who has called that library?"""
    modules = {f.module for f in found.natives if native.is_program(f)}
    for thread in found.process.threads:
        module = next((f.module for f in thread.native if f.module in modules), None)
        frame = native.entered_at(thread, module) if module is not None and thread is not found.thread else None
        if frame is not None:
            yield view.culprit(found.process, frame, thread)


def said(text: str) -> str:
    """The interpreter's words, whose format is known, but not what was put into it."""
    return re.sub(r"%[-+ #0-9.]*(l|ll|z)?[sRSUVpdiuxc]", "…", text)


def without_gil(found: Crashed) -> bool:
    """Did it run code of the interpreter, which is for those alone that hold the GIL?"""
    return found.crash.holds_gil is False and any(native.is_interpreter(f) for f in found.natives[:2])


def whereabouts(found: Crashed) -> str:
    """What the thread did at the place, where that says how far the place is to be trusted."""
    if found.thread is not None and found.thread.gc:
        return (
            "it was collecting garbage: the collector visits every object, so the line is where the damage was met, and "
            "seldom where it was done"
        )
    if found.below and any(f.function and _LEAVING.match(f.function) for f in _above_python(found)):
        return "a function that this line called was returning, and gave back what its variables held"
    if without_gil(found):
        return "it ran code of the interpreter without holding the GIL, which is for those alone that hold it"
    return ""
