"""native-abort: a library called abort(), and what it said before."""

from __future__ import annotations

import signal
from typing import Any, Optional

import pytest

from postmortem.evidence import Abort, Crash, Evidence, Frame, NativeFrame

from .....support.diagnosed import classify
from .....support.make import evidence, frame, process, thread

LIBC, CXX, GRID = "/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/libstdc++.so.6.0.30", "/app/libgrid.so"
FFI, PYTHON = "/usr/lib/libffi.so.8", "/usr/bin/python3.12"


def c(function: Optional[str], module: str = GRID) -> NativeFrame:
    return NativeFrame(function, module, 3)


CALLED = (frame("load", 7), frame("<module>", 30))


def aborted(*above: Frame, told: Optional[Abort] = None, python: bool = True, **known: Any) -> Evidence:
    """A core whose main thread called abort() from these frames."""
    stack = (c("raise", LIBC), c("abort", LIBC), *above, *(CALLED if python else ()))
    found = {"code_name": "SI_TKILL", "sender_pid": 1, **known}
    crash = Crash(signal.SIGABRT, tid=1, frame=0, abort=told, **found)
    return evidence(process([thread(1, stack)], crash=crash, fatal_signal=6), window=None, kind="core")


def test_an_exception_is_named_with_its_library() -> None:
    """The library is the innermost code beside the runtimes; class and text are recorded: proven."""
    told = Abort("exception", "std::length_error", "shelf is full", basis="recorded")
    throws = (c("std::terminate()", CXX), c("__cxa_throw", CXX), c("std::__throw_length_error(char const*)", CXX))
    found = classify(aborted(*throws, c("grid_open"), told=told)).findings[0]
    assert (found.pattern, found.confidence) == ("native-abort", "proven")
    assert 'std::length_error ("shelf is full")' in found.summary and "grid_open of libgrid.so" in found.summary
    assert [culprit.line for culprit in found.culprits] == [7]


@pytest.mark.parametrize(
    ("exception", "message", "words"),
    [
        ("std::bad_alloc", None, "Memory ran out"),
        ("std::system_error", "Resource temporarily unavailable", "No further thread"),
        ("std::system_error", "Permission denied", "Read the message"),
    ],
)
def test_resources_that_ran_out_have_their_own_remedy(exception: str, message: Optional[str], words: str) -> None:
    """Memory and threads are limited from outside."""
    told = Abort("exception", exception, message, basis="recorded")
    assert words in classify(aborted(c("std::terminate()", CXX), c("grid_open"), told=told)).findings[0].remedy


def test_a_panic_cites_its_line() -> None:
    """The frames of the panic itself are no library's; a message that was not found leaves it likely."""
    panics = (c("rust_panic"), c("core::panicking::panic_fmt"), c("grid_open"))
    told = Abort("panic", None, "index out of bounds", "src/lib.rs:8:5", "recorded")
    found = classify(aborted(*panics, told=told)).findings[0]
    assert found.confidence == "proven" and "Rust code of grid_open of libgrid.so" in found.summary
    assert any("src/lib.rs:8:5" in fact for fact in found.evidence)
    told = Abort("panic", place="src/lib.rs:8:5", basis="recorded")
    assert classify(aborted(*panics, told=told)).findings[0].confidence == "likely"


def test_a_check_of_its_own_is_likely() -> None:
    """The printed message is on the stack, if anywhere: the library is a fact, the reason is not."""
    told = Abort("call", message="Bad file descriptor (signaler.cpp:157)", basis="inferred")
    found = classify(aborted(c("zmq_close"), told=told)).findings[0]
    assert (found.pattern, found.confidence) == ("native-abort", "likely") and "signaler.cpp:157" in found.summary
    silent = classify(aborted(c(None), told=Abort("call", basis="inferred"))).findings[0]
    assert silent.pattern == "native-abort" and any("stderr has it" in fact for fact in silent.evidence)


def test_an_assertion_of_a_library_is_recorded() -> None:
    """glibc keeps the text of assert(): proven where the library is known."""
    said = "python: grid.c:88: grid_open: Assertion `rows > 0' failed."
    found = classify(aborted(c("__assert_fail", LIBC), c("grid_open"), message=said)).findings[0]
    assert (found.pattern, found.confidence) == ("native-abort", "proven") and said in found.summary
    alone = classify(aborted(c("__assert_fail", LIBC), c("ffi_call", FFI), message=said)).findings[0]
    assert (alone.pattern, alone.confidence) == ("native-abort", "likely")


def test_terminate_without_an_exception() -> None:
    """At the exit of the program, from a destructor: there is no Python code left, which is said."""
    exits = (c("std::terminate()", CXX), c("grid_close"), c("__run_exit_handlers", LIBC), c("exit", LIBC))
    found = classify(aborted(*exits, told=Abort("terminate", basis="inferred"), python=False)).findings[0]
    assert found.pattern == "native-abort" and "without an exception" in found.summary
    assert any("The program had ended" in fact or "the program had ended" in fact for fact in found.evidence)


@pytest.mark.parametrize("above", [(c("os_abort", PYTHON),), (c("ffi_call", FFI), c("_ctypes_callproc", PYTHON))])
def test_the_programs_own_abort_is_none(above: Any) -> None:
    """os.abort(), and abort() through ctypes: the program ended itself."""
    assert "native-abort" not in [f.pattern for f in classify(aborted(*above)).findings]


def test_a_signal_from_outside_is_none() -> None:
    """A watchdog's SIGABRT may hit a thread inside a library."""
    stack = (c("read", LIBC), c("grid_open"), *CALLED)
    crash = Crash(signal.SIGABRT, tid=1, frame=0, code_name="SI_USER", sender_pid=99)
    found = classify(evidence(process([thread(1, stack)], crash=crash, fatal_signal=6), window=None, kind="core"))
    assert found.verdict == "killed" and any(r.pattern == "native-abort" for r in found.ruled_out)
