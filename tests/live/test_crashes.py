"""Programs that crash: what their cores say of it, on every interpreter."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import List, NamedTuple, Optional

import pytest

from postmortem.evidence import Crash, Gap, NativeFrame, Process, PythonFrame, Thread
from postmortem.extract.assemble.cores import from_core

from ..interpreters.wanted import Interpreter
from ..support import required
from ..support.interpreters import kinds, matrix
from ..support.takingcores import needs_cores

pytestmark = pytest.mark.live

PROGRAM = """
import ctypes, os, resource, signal, sys, threading
most = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (most, most))
libc = ctypes.CDLL(None)
libc.free.argtypes = [ctypes.c_void_p]
libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
libc.abs.argtypes = [ctypes.c_int]
def in_thread(function, *args):
    threading.stack_size(1 << 20)
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join()
def string():
    ctypes.string_at(16)                                                       # string
def in_a_thread():
    in_thread(string)
def without_gil():
    libc.PyThreadState_Get()                                                   # without_gil
def freed():
    block = ctypes.create_string_buffer(64)
    libc.free(ctypes.addressof(block) + 8)                                     # freed
def asserted():
    libc.__assert_fail(b"items > 0", b"shelf.c", 42, b"take")                  # asserted
def handled():
    import faulthandler
    faulthandler.enable(sys.stderr)
    string()                                                                   # handled
def aborting_handler():
    libc.signal(signal.SIGSEGV, ctypes.cast(libc.abort, ctypes.c_void_p))
    string()                                                                   # aborting_handler
def nested():
    rows = iter(())
    for number in range(200_000):
        rows = filter(None, rows)
    return rows
def overflow():
    next(nested())                                                             # overflow
def take(rows):
    next(rows)                                                                 # overflow_in_a_thread
def overflow_in_a_thread():
    in_thread(take, nested())
def sorted_badly():
    numbers = (ctypes.c_int * 4)(4, 3, 2, 1)
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    libc.qsort(numbers, 4, 4, compare(lambda a, b: len(ctypes.string_at(16)))) # sorted_badly
def without_python():
    thread = ctypes.c_ulong()
    libc.pthread_create.argtypes = [ctypes.c_void_p] * 4
    libc.pthread_create(ctypes.byref(thread), None, ctypes.cast(libc.strlen, ctypes.c_void_p), 16)
    signal.pause()
def from_outside():
    os.kill(os.getpid(), signal.SIGABRT)                                       # from_outside
globals()[sys.argv[1]]()
"""


class Crashed(NamedTuple):
    pid: int
    process: Process
    crash: Crash
    thread: Thread
    gaps: List[Gap]

    @property
    def line(self) -> Optional[int]:
        """Where the program's own innermost frame is."""
        return next((frame.line for frame in self.thread.python if frame.file.endswith("program.py")), None)

    @property
    def hit(self) -> NativeFrame:
        assert self.crash.frame is not None
        frame = self.thread.stack[self.crash.frame]
        assert isinstance(frame, NativeFrame)
        return frame


def crash(python: Interpreter, function: str, folder: Path) -> Crashed:
    needs_cores()
    required.gdb()
    (folder / "program.py").write_text(PROGRAM)
    with subprocess.Popen(
        [os.fspath(python), "-S", "program.py", function],
        cwd=folder,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    ) as started:
        assert started.wait(60) < 0
    core = next(folder.glob("core*"))
    evidence = from_core(core)
    core.unlink()
    process = evidence.processes[0]
    assert process.crash is not None
    thread = next(thread for thread in process.threads if thread.tid == process.crash.tid)
    return Crashed(started.pid, process, process.crash, thread, list(evidence.gaps))


def line_of(marker: str) -> int:
    return next(number for number, text in enumerate(PROGRAM.splitlines(), 1) if text.endswith(f"# {marker}"))


@pytest.mark.parametrize("python", matrix(ctypes=True))
def test_a_fault_in_a_thread(python: Interpreter, tmp_path: Path) -> None:
    """Which address, read by which instruction of which file; the line of Python that led there, with the GIL held."""
    found = crash(python, "in_a_thread", tmp_path)
    told = found.crash
    assert (told.signal, told.code_name, told.address, told.address_basis) == (11, "SEGV_MAPERR", 16, "recorded")
    assert told.access == "read" and told.instruction and "(%rdi)" in told.instruction
    assert told.module is not None and "libc" in told.module
    assert (told.tid != found.pid, found.line) == (True, line_of("string"))
    assert (told.frame, found.hit.address, told.handler, told.stack) == (0, told.pc, False, None)
    assert told.stack_limit is not None and told.stack_used is not None and told.stack_used < told.stack_limit
    assert (told.native_whole, told.native_depth) == (True, len(found.thread.native))
    assert told.holds_gil is (None if python.free_threaded else True)
    assert [gap for gap in found.gaps if "crash" in gap.subject] == []


@pytest.mark.parametrize("python", kinds())
def test_a_fatal_error_of_python_s(python: Interpreter, tmp_path: Path) -> None:
    """What it said, of which function: recorded where there is debug information, else from the stack's words."""
    found = crash(python, "without_gil", tmp_path)
    told = found.crash
    assert (told.signal, told.code_name, told.sender_pid) == (signal.SIGABRT, "SI_TKILL", found.pid)
    assert told.python_error_function == "PyThreadState_Get"
    assert told.python_error is not None and ("GIL" in told.python_error or "no current thread" in told.python_error)
    assert told.python_error_basis in ("recorded", "inferred")
    assert found.line == line_of("without_gil")
    assert told.holds_gil is (None if python.free_threaded else False)


@pytest.mark.parametrize("function", ["handled", "aborting_handler"])
@pytest.mark.parametrize("python", kinds())
def test_below_a_handler(python: Interpreter, function: str, tmp_path: Path) -> None:
    """faulthandler raises the signal again, another aborts: it is the fault below that is told."""
    found = crash(python, function, tmp_path)
    told = found.crash
    assert (told.signal, told.code_name, told.address, told.access) == (11, "SEGV_MAPERR", 16, "read")
    assert found.process.fatal_signal == (signal.SIGABRT if function == "aborting_handler" else signal.SIGSEGV)
    assert told.handler is True and told.frame is not None and told.frame > 0
    assert found.hit.address == told.pc
    assert found.thread.native[told.frame - 1].function == "<signal handler called>"
    assert line_of(function) in [frame.line for frame in found.thread.python]


@pytest.mark.parametrize("function", ["overflow", "overflow_in_a_thread"])
@pytest.mark.parametrize("python", kinds())
def test_a_stack_that_is_used_up(python: Interpreter, function: str, tmp_path: Path) -> None:
    """200,000 calls of C in each other: the innermost are shown, then the line of Python that led there."""
    found = crash(python, function, tmp_path)
    told = found.crash
    assert (told.signal, told.stack, told.access) == (signal.SIGSEGV, "guard", "write")
    assert told.stack_limit is not None and told.stack_used is not None
    assert abs(told.stack_used - told.stack_limit) < 1 << 16
    assert function == "overflow" or told.stack_limit == 1 << 20
    assert (told.native_whole, told.native_depth) == (False, 1024)
    assert isinstance(found.thread.stack[1023], NativeFrame) and isinstance(found.thread.stack[1024], PythonFrame)
    assert found.line == line_of(function)


SAID = {
    "freed": ("free(): invalid pointer", "SI_TKILL"),
    "asserted": ("shelf.c:42: take: Assertion `items > 0' failed.", "SI_TKILL"),
    "from_outside": (None, "SI_USER"),
}


@pytest.mark.parametrize("function", SAID)
@pytest.mark.parametrize("python", kinds()[:4])
def test_an_abort(python: Interpreter, function: str, tmp_path: Path) -> None:
    """What the C library said before; nothing, when the signal was sent."""
    found = crash(python, function, tmp_path)
    message, code = SAID[function]
    told = found.crash
    assert (told.signal, told.code_name, told.sender_pid, told.python_error) == (6, code, found.pid, None)
    assert (told.message or "").endswith(message or "") and (told.message is None) == (message is None)
    assert found.line == line_of(function)


@pytest.mark.parametrize("python", kinds()[1:5])
def test_in_a_callback_of_the_c_library_s(python: Interpreter, tmp_path: Path) -> None:
    """Two loops of the interpreter with qsort between them: each has its Python frames."""
    found = crash(python, "sorted_badly", tmp_path)
    functions = [frame.function for frame in found.thread.stack]
    python_frames = [frame.function for frame in found.thread.python]
    assert python_frames[:4] == ["string_at", "<lambda>", "sorted_badly", "<module>"]
    between = functions[functions.index("<lambda>") : functions.index("sorted_badly")]
    assert any("EvalFrame" in (name or "") for name in between)
    assert found.line == line_of("sorted_badly")


@pytest.mark.parametrize("python", kinds()[1:5])
def test_a_thread_without_python(python: Interpreter, tmp_path: Path) -> None:
    """Its native stack is there, and no Python frame of others'."""
    found = crash(python, "without_python", tmp_path)
    assert (found.crash.tid != found.pid, found.crash.address, found.thread.python) == (True, 16, ())
    assert found.crash.native_whole is True and len(found.thread.native) >= 3
