"""Crashes, for several patterns: the cause of the end of a process, and its place in the program.

The kinds exclude each other, so that exactly one pattern reports each crash.
"""

from __future__ import annotations

import itertools
import re
import signal
from typing import Iterator, List, NamedTuple, Optional, Tuple

from ....evidence import Crash, NativeFrame, Process, PythonFrame, Thread
from ....findings import Culprit, Slot, Template, Text, ThreadName
from ....findings.found import Said
from ....signalnames import signal_name
from ...facts import clauses, native
from ...facts.knowledge import is_library, own_frame
from ...facts.view import View

#: Signals of an instruction that failed. SIGTRAP: `int3`, which compilers emit where code must not continue; SIGSYS: a system
#: call refused by a filter.
FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS)
_SENT = ("SI_USER", "SI_TKILL", "SI_QUEUE")

#: Messages of glibc 2.17 to 2.41 on its heap (malloc/malloc.c: malloc_printerr, and the assertions of that file).
_HEAP = re.compile(
    r"^(double free|corrupted |invalid fastbin|break adjusted to free|chunk_main_arena|unaligned |tcache_|heap corruption"
    r"|(free|malloc|realloc|calloc|memalign|malloc_consolidate|munmap_chunk|mremap_chunk|malloc_check_get_size)\(\)"
    r"|malloc: )|malloc assertion failure|\bmalloc\.c\b"
)
#: Python's own checks of a block (Objects/obmalloc.c, _PyMem_DebugCheckAddress), 3.8 to 3.15.
_BLOCK = re.compile(r"bad (leading|trailing) pad byte|bad ID: Allocated using API")
#: Messages of glibc's run-time checks (debug/fortify_fail.c, stack_chk_fail.c).
_SMASHED = re.compile(r"\*\*\* .+ \*\*\*|FORTIFY")

#: Callers of abort(): Python/pylifecycle.c. Those with a leading underscore are exported, also from stripped interpreters.
_FATAL_ERROR = re.compile(r"(fatal_error(_exit)?|_?Py_FatalError(Func|Format|_TstateNULL)?)(\.[\w.]+)?$")
#: Functions of glibc that send a signal, to the calling thread for instance.
_RAISES = re.compile(r"((__GI_|__)?(abort|raise|gsignal|kill|killpg|pthread_kill\w*|sigqueue)|pthread_sigqueue)(@.*)?$")
_CALLS_TO_RAISE = re.compile(r"(^|\.)(kill|killpg|abort|raise_signal|pthread_kill|_sigabrt|_sigsegv)$")
_KILLS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_ABORT = re.compile(r"(__GI_)?abort(@.*)?$")
#: gdb's name for the frame that the kernel makes for a signal handler.
_TRAMPOLINE = "<signal handler called>"
_NEAR = 8
#: Functions that release a Python function's variables on return (Python/ceval.c, Python/frame.c, Objects/frameobject.c;
#: 3.8 to 3.15).
_LEAVING = re.compile(
    r"(_PyEvalFrameClearAndPop|clear_thread_frame|_PyEval_FrameClearAndPop|_PyFrame_Clear\w*|frame_dealloc)"
)

_THREAD_UNKNOWN = Template("thread ?")
_CODE = Template(" ({code})")
_PLACE = Template("{function} of {module}")
_IN_NO_FILE = Template("code that belongs to no file")
_LED_THERE = Template("native code that led there: {calls}")
_WHICH_MEANS = Template("which means that {meaning}")
_COLLECTED = Template(
    "it was collecting garbage: the collector visits every object, so the line is where the damage was found, and seldom where "
    "it was done"
)
_RETURNED = Template("a function that this line called was returning, and was releasing its variables")
_WITHOUT_GIL = Template("it ran code of the interpreter without holding the GIL, which that code requires")


class Crashed(NamedTuple):
    """A process that crashed, with the thread that received the signal."""

    process: Process
    crash: Crash
    thread: Optional[Thread]  # the thread that received the signal

    @property
    def who(self) -> Slot:
        """Return the thread as the slot of a text, also if the evidence does not have it."""
        if self.thread is not None:
            return clauses.named(self.thread)
        return ThreadName(self.crash.tid) if self.crash.tid else _THREAD_UNKNOWN()

    @property
    def signal(self) -> str:
        """Return the signal's name."""
        return signal_name(self.crash.signal)

    @property
    def code(self) -> Optional[Text]:
        """Return " (SEGV_MAPERR)", to follow the signal's name; None if it is not known."""
        return _CODE(code=self.crash.code_name) if self.crash.code_name else None

    @property
    def below(self) -> Tuple[PythonFrame, ...]:
        """Return the Python frames that led to the fault, most recent call first, without those of a handler that ran for it."""
        stack = self.thread.stack if self.thread is not None else ()
        return tuple(f for f in stack[self.crash.frame or 0 :] if isinstance(f, PythonFrame))

    @property
    def natives(self) -> List[NativeFrame]:
        """Return the native frames at and below the fault, most recent call first."""
        stack = self.thread.stack if self.thread is not None else ()
        return [f for f in stack[self.crash.frame or 0 :] if isinstance(f, NativeFrame)]


def crashes(view: View) -> Iterator[Crashed]:
    """Yield the processes that crashed."""
    for process in view.processes:
        if process.crash is not None:
            yield Crashed(process, process.crash, view.thread(process, process.crash.tid))


# ---------------------------------------------------------------------- the cause


def kind(found: Crashed) -> Optional[str]:
    """Return the cause of a crash; None if unknown.

    - "fault": a failed instruction;
    - "overflow": a fault beyond the end of a stack;
    - "allocator": an allocator found damage;
    - "interpreter": Py_FatalError;
    - "smashed": glibc found that native code wrote beyond a buffer;
    - "assertion": another failed check of native code, with a message that glibc recorded;
    - "gave up": native code called abort() for a reason of its own;
    - "outside": sent by another process, or by the kernel;
    - "inside": sent by another thread, or by a signal handler, of the same process;
    - "hidden": raised again by a native handler, which hides the sender;
    - "itself": sent by the thread to itself.
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
    """Return the kind of the check that failed before abort() was called; None if there was none."""
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
    """Return the kind of a signal that the process sent to itself, by the thread that sent it; None if unknown."""
    thread = found.thread
    if thread is None:
        return None
    if raises(thread):
        below = _below_handler(thread)
        if below is not None and not any(f.function and _RAISES.match(f.function) for f in below):
            return "hidden"
        if interrupted(thread):
            return "inside"
        return "gave up" if _gave_up(found) else "itself"
    if thread.native or (thread.wait is not None and thread.wait.syscall is not None):
        return "inside"
    return None


def _gave_up(found: Crashed) -> bool:
    """Return whether native code called abort(): not Python code by os.abort(), and not through ctypes or cffi."""
    caller = abort_caller(found)
    return caller is not None and not native.is_interpreter(caller) and not native.is_bridge(caller)


def abort_caller(found: Crashed) -> Optional[NativeFrame]:
    """Return the frame that called abort(); None if there is none in a file."""
    natives = found.natives
    at = next((i for i, f in enumerate(natives[:_NEAR]) if f.function and _ABORT.match(f.function)), None)
    return next((f for f in natives[at + 1 :] if f.module is not None), None) if at is not None else None


def raises(thread: Thread) -> bool:
    """Return whether a thread is in a function that sends a signal."""
    if thread.wait is not None and thread.wait.syscall in _KILLS:
        return True
    if any(f.function and _RAISES.match(f.function) for f in _innermost(thread)):
        return True
    return thread.calling is not None and bool(_CALLS_TO_RAISE.search(thread.calling.function))


def interrupted(thread: Thread) -> Tuple[PythonFrame, ...]:
    """Return the Python frames interrupted by a Python signal handler on the thread's stack; () if there is none."""
    at = next((i for i, f in enumerate(thread.python) if f.role == "signal-handler"), None)
    return thread.python[at + 1 :] if at is not None else ()


def _below_handler(thread: Thread) -> Optional[List[NativeFrame]]:
    """Return the native frames interrupted by a C handler, such as faulthandler's; None if there is none."""
    inner = _innermost(thread)
    at = next((i for i, f in enumerate(inner) if f.function == _TRAMPOLINE), None)
    return inner[at + 1 :] if at is not None else None


def gave_up_unnamed(found: Crashed) -> bool:
    """Return whether the interpreter itself called abort(), without a function that names its fatal error.

    Stripped interpreters have none. os.abort() calls abort() as well, but below it there is a Python frame.
    """
    natives = found.natives
    at = next((i for i, f in enumerate(natives[:_NEAR]) if f.function and _ABORT.match(f.function)), None)
    if at is None or found.below or found.process.python is None or found.crash.sender_pid != found.process.pid:
        return False
    return any(native.is_interpreter(f) for f in natives[at + 1 : at + 2])


def _in_fatal_error(found: Crashed) -> bool:
    """Return whether the innermost frames include the interpreter's function for fatal errors."""
    return any(f.function and _FATAL_ERROR.match(f.function) for f in found.natives[:_NEAR])


def _innermost(thread: Thread) -> List[NativeFrame]:
    """Return the innermost native frames above all Python code."""
    above = itertools.takewhile(lambda f: isinstance(f, NativeFrame), thread.stack)
    return [f for f in above if isinstance(f, NativeFrame)][:_NEAR]


def _above_python(found: Crashed) -> List[NativeFrame]:
    """Return the native frames between the fault and the innermost Python frame."""
    stack = found.thread.stack[found.crash.frame or 0 :] if found.thread is not None else ()
    return [f for f in itertools.takewhile(lambda f: isinstance(f, NativeFrame), stack) if isinstance(f, NativeFrame)]


# ---------------------------------------------------------------------- the place


def place(crash: Crash) -> Optional[Said]:
    """Return the place of the fault: ``strlen of libc.so.6``; None if unknown."""
    if crash.pc is None:
        return None
    module = crash.module.rsplit("/", 1)[-1] if crash.module else None
    if crash.function and module:
        return _PLACE(function=crash.function, module=module)
    return crash.function or module or _IN_NO_FILE()


def lines(view: View, found: Crashed, frames: Optional[Tuple[PythonFrame, ...]] = None) -> Tuple[Culprit, ...]:
    """Return the lines that led to the fault.

    They are the program's innermost line, two callers of it in other functions, and the C line if there is debug
    information. For a thread without Python frames, the lines of other threads that called the same library.
    """
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
    """Return whether a frame is the program's, in another function and at another line."""
    return not is_library(frame) and frame.line != own.line and frame.function not in (own.function, "<module>")


def _beside(view: View, found: Crashed) -> Iterator[Culprit]:
    """Yield the lines of other threads that called the library of a thread without Python frames."""
    modules = {f.module for f in found.natives if native.is_program(f)}
    for thread in found.process.threads:
        module = next((f.module for f in thread.native if f.module in modules), None)
        frame = native.entered_at(thread, module) if module is not None and thread is not found.thread else None
        if frame is not None:
            yield view.culprit(found.process, frame, thread)


def said(text: str) -> str:
    """Return an interpreter's message with its placeholders as "…": only the format string is known."""
    return re.sub(r"%[-+ #0-9.]*(l|ll|z)?[sRSUVpdiuxc]", "…", text)


def without_gil(found: Crashed) -> bool:
    """Return whether the thread ran code of the interpreter, which requires the GIL, without holding it."""
    return found.crash.holds_gil is False and any(native.is_interpreter(f) for f in found.natives[:2])


def led_there(found: Crashed) -> Tuple[Text, ...]:
    """Return the fact which calls of extensions led to the fault; () if there were none."""
    calls = native.chain(found.natives)
    return (_LED_THERE(calls=calls),) if calls is not None else ()


def which_means(meaning: Optional[Text]) -> Tuple[Text, ...]:
    """Return the fact what a message means, to follow the message; () if that is unknown."""
    return (_WHICH_MEANS(meaning=meaning),) if meaning is not None else ()


def whereabouts(found: Crashed) -> Tuple[Text, ...]:
    """Return what the thread did at the fault, if it limits how far the place is to be trusted; else ()."""
    if found.thread is not None and found.thread.gc:
        return (_COLLECTED(),)
    if found.below and any(f.function and _LEAVING.match(f.function) for f in _above_python(found)):
        return (_RETURNED(),)
    return (_WITHOUT_GIL(),) if without_gil(found) else ()
