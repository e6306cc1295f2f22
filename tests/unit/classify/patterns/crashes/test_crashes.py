"""Patterns of crashes: what ended a process, where in the program it was, and what it is not."""

from __future__ import annotations

import signal
from typing import Any, Optional, Tuple

import pytest

from postmortem.classify.facts.view import View
from postmortem.classify.patterns.crashes.crashing import crashes as crashes_of
from postmortem.classify.patterns.crashes.crashing import kind
from postmortem.classify.patterns.crashes.fatalwords import meaning
from postmortem.evidence import (
    Crash,
    Evidence,
    Frame,
    NativeFrame,
    Process,
    PythonFrame,
    Recursion,
    Resource,
    Thread,
    Wait,
)
from postmortem.evidence import replace as changed
from postmortem.findings import Finding
from postmortem.report.phrases.wording import Wording
from postmortem.waitgraph import Places

from .....support.diagnosed import classify
from .....support.make import counted, evidence, frame, process, thread, two_locks, verdict

LIBC, PYTHON, UNITS = "/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/python3.12", "/app/_units.so"
HANDLER = NativeFrame("<signal handler called>", LIBC, 9)
OURS = {"native-crash", "stack-overflow", "heap-corruption", "fatal-python-error", "killed"}


def c(function: Optional[str], module: str = LIBC, line: Optional[int] = None) -> NativeFrame:
    return NativeFrame(function, module, 3, "/src/units.c" if line else None, line)


ABORT = (c("__pthread_kill_implementation"), c("raise"), c("abort"))
CALLED: Tuple[Frame, ...] = (frame("convert", 7), frame("load", 20), frame("<module>", 30))


def crashed(frames: Tuple[Frame, ...] = CALLED, *others: Thread, **known: Any) -> Evidence:
    """A core of process 1, whose main thread got the signal; ``thread_``: more of that thread."""
    main = {name[7:]: known.pop(name) for name in [*known] if name.startswith("thread_")}
    about = {name[8:]: known.pop(name) for name in [*known] if name.startswith("process_")}
    crash = Crash(known.pop("signal", signal.SIGSEGV), tid=1, frame=known.pop("frame", 0), **known)
    return evidence(
        process([thread(1, frames, **main), *others], crash=crash, fatal_signal=crash.signal, **about),
        window=None,
        kind="core",
    )


def fault(frames: Tuple[Frame, ...] = (c("scale", UNITS, 40), *CALLED), **known: Any) -> Evidence:
    told = {"code_name": "SEGV_MAPERR", "address": 16, "access": "read", "pc": 3, "module": UNITS, "function": "scale"}
    return crashed(frames, **{**told, "instruction": "mov (%rdi),%rax", **known})


def aborted(*stack: Frame, **known: Any) -> Evidence:
    return crashed((*ABORT, *stack, *CALLED), signal=signal.SIGABRT, code_name="SI_TKILL", sender_pid=1, **known)


def sent(frames: Tuple[Frame, ...] = (c("read"), *CALLED), *others: Thread, **known: Any) -> Evidence:
    told = {"signal": signal.SIGABRT, "code_name": "SI_USER", "sender_pid": 99, "sender_uid": 5}
    return crashed(frames, *others, **{**told, **known})


def first(known: Evidence) -> Finding:
    return classify(known).findings[0]


def kind_of(known: Evidence) -> Optional[str]:
    return kind(next(crashes_of(View(known))))


def test_a_fault_says_what_failed_and_who_called_it() -> None:
    """The signal and the instruction are facts; the program's innermost line leads, then its caller, then the line in C."""
    found = first(fault())
    assert (found.pattern, found.confidence) == ("native-crash", "proven")
    assert "a null pointer with an offset" in found.summary and "scale of _units.so" in found.summary
    assert any("`mov (%rdi),%rax`" in fact for fact in found.evidence)
    assert any("not what made it" in fact for fact in found.evidence)
    assert [(culprit.file, culprit.line) for culprit in found.culprits] == [
        ("/app/service.py", 7),
        ("/app/service.py", 20),
        ("/src/units.c", 40),
    ]
    assert "NULL" in found.remedy


@pytest.mark.parametrize(
    ("known", "words", "remedy"),
    [
        ({"address": 0xDDDDDDDDDDDDDE85, "code_name": "SI_KERNEL"}, "freed memory", "Py_INCREF"),
        ({"address": 0x7F0000001000, "access": "execute"}, "it jumped to", "callback"),
        (
            {"signal": signal.SIGBUS, "code_name": "BUS_ADRERR", "address": 0x7F0000001000},
            "ends before",
            "truncate a file",
        ),
        ({"signal": signal.SIGFPE, "code_name": "FPE_INTDIV", "address": None}, "divided by zero", "divisor"),
        ({"signal": signal.SIGILL, "code_name": "ILL_ILLOPN", "address": None}, "does not have", "this processor"),
        ({"code_name": "SI_KERNEL", "address": None}, "no program can have", "Check what the line"),
    ],
)
def test_each_kind_of_fault_has_its_own_words(known: Any, words: str, remedy: str) -> None:
    """What the address and the signal say, and what is to be done about it."""
    found = first(fault(**known))
    assert found.pattern == "native-crash" and words in found.summary and remedy in found.remedy


def test_an_instruction_that_could_not_be_read() -> None:
    """A blank one is no trap."""
    found = first(fault(signal=signal.SIGILL, code_name="ILL_ILLOPN", address=None, instruction=" "))
    assert found.pattern == "native-crash" and "does not have" in found.summary


def test_a_pointer_that_ctypes_has_cut() -> None:
    """A result without a restype is an int: below ctypes, and of 32 bits, the address tells."""
    bridge = NativeFrame("ffi_call", "/usr/lib/libffi.so.8", 2)
    found = first(fault((c("strlen"), bridge, *CALLED), address=0x5A5A1230))
    assert "restype" in found.remedy and "32 bits" in found.summary
    assert "restype" not in first(fault((c("strlen"), *CALLED), address=0x5A5A1230)).remedy


def test_a_core_without_a_siginfo_is_less_sure() -> None:
    """SIGSEGV alone may have been sent by anybody."""
    assert first(fault(code_name=None)).confidence == "likely"


def test_a_crash_stands_before_what_the_core_seems_to_wait_for() -> None:
    """A wait for a peer, or a cycle of locks, in the core of a crash did not end the process; also when no line of the
    crash is known."""
    waits = Wait("socket", "recvfrom", "socket-1", endless=True)
    peer = Resource("socket-1", "socket", "socket to db:5432", None, None, (2,), True, remote="db:5432")
    main = fault((c("scale", UNITS),)).processes[0]
    known = evidence(
        changed(main, threads=(*main.threads, thread(2, CALLED, wait=waits)), resources=(peer,)),
        window=None,
        kind="core",
    )
    assert verdict(known) == "native-crash" and not first(known).culprits
    locked = two_locks()
    crash = Crash(signal.SIGSEGV, code_name="SEGV_MAPERR", address=0, tid=locked.threads[0].tid)
    assert verdict(evidence(changed(locked, crash=crash), window=None)) == "native-crash"


def test_a_thread_without_python_frames() -> None:
    """It was made by a library: the lines that have called that library are shown."""
    other = thread(2, (c("wait", UNITS), *CALLED))
    known = crashed((c("work", UNITS), c("start_thread")), other, code_name="SEGV_MAPERR", address=0)
    assert [(culprit.tid, culprit.line) for culprit in first(known).culprits] == [(2, 7)]
    assert any("no Python code is below it" in fact for fact in first(known).evidence)


def test_a_stack_that_came_to_its_end() -> None:
    """Proven by the guard: what recurses, how deep, and how large the stack is; the line that began it is shown, too."""
    inner, outer = frame("inner", 24), frame("full", 21)
    stack = (c("repr", PYTHON), *(inner, outer) * 60, *CALLED)
    known = fault(
        stack,
        stack="guard",
        stack_used=8 << 20,
        stack_limit=8 << 20,
        address=0x7FFC00000FF8,
        native_depth=500,
        native_whole=False,
        thread_recursion=Recursion(123, 60, (inner, outer)),
    )
    found = first(known)
    assert (found.pattern, found.confidence) == ("stack-overflow", "proven")
    assert "full → inner" in found.summary and "8 MB" in found.summary and "60 times" in found.summary
    assert [culprit.line for culprit in found.culprits][:3] == [24, 21, 7]
    assert any("at least 500 native frames" in fact for fact in found.evidence)
    assert "native-crash" not in [f.pattern for f in classify(known).findings]


def test_native_code_that_calls_itself() -> None:
    """The turn is found in C, behind what the last turn has called; without one nothing is said of recursion."""
    turn = (c("compose_sequence", UNITS), c("compose_node", UNITS))
    deep = fault((c("lookup", PYTHON), c("get", PYTHON), *turn * 50, *CALLED), stack="guard", native_depth=102)
    assert "compose_node → compose_sequence of _units.so" in first(deep).summary
    flat = first(fault(stack="guard", native_depth=8))
    assert "No recursion is visible" in flat.remedy and ", repeated" not in flat.summary


def test_an_address_inside_the_stack_is_no_overflow() -> None:
    """A pointer to a variable that went wrong."""
    assert verdict(fault(stack="inside", address=0x7FFC00000FF8)) == "native-crash"


@pytest.mark.parametrize(
    "message",
    [
        "double free or corruption (fasttop)",
        "free(): invalid pointer",
        "corrupted size vs. prev_size",
        "malloc(): unaligned tcache chunk detected",
        "munmap_chunk(): invalid pointer",
        "Fatal glibc error: malloc assertion failure in sysmalloc: (old_top == initial_top (av))",
        "python: malloc.c:2617: sysmalloc: Assertion `(old_top == initial_top (av))' failed.",
    ],
)
def test_the_allocator_said_so(message: str) -> None:
    """glibc's words are a proof that its heap is damaged, and none of where that was done."""
    found = first(aborted(message=message))
    assert (found.pattern, found.confidence, found.culprits[0].line) == ("heap-corruption", "proven", 7)
    assert message in found.summary and "was noticed" in found.remedy


def test_the_debug_allocator_speaks_through_a_fatal_error() -> None:
    """Both are true; the damaged heap leads, and is the cause of the other."""
    told = {"python_error": "bad trailing pad byte", "python_error_function": "_PyMem_DebugRawFree"}
    heap, fatal = classify(aborted(c("fatal_error", PYTHON), **told)).findings[:2]
    assert (heap.pattern, fatal.pattern, fatal.because_of) == (
        "heap-corruption",
        "fatal-python-error",
        ("heap-corruption",),
    )
    assert "after a block" in heap.summary


def test_other_checks_of_the_c_library() -> None:
    """No allocator: native code wrote beyond a variable."""
    found = first(aborted(message="*** stack smashing detected ***: terminated"))
    assert (found.pattern, found.confidence) == ("native-crash", "likely")


def test_the_interpreter_gave_up() -> None:
    """Its message in words, the rule that was broken, and whether the thread had the GIL."""
    told = {
        "python_error": "the function must be called with the GIL held, but the GIL is released",
        "python_error_function": "PyThreadState_Get",
        "python_error_basis": "recorded",
        "holds_gil": False,
    }
    found = first(aborted(c("_Py_FatalErrorFunc", PYTHON), c("PyThreadState_Get", PYTHON), **told))
    assert (found.pattern, found.confidence, found.culprits[0].line) == ("fatal-python-error", "proven", 7)
    assert "did not hold the GIL" in found.summary and "PyDLL" in found.remedy


def test_a_fatal_error_whose_message_is_lost() -> None:
    """Its function stands below abort(): that is enough, and nothing is made up."""
    found = first(aborted(c("_Py_FatalErrorFunc", PYTHON)))
    assert found.pattern == "fatal-python-error" and "could not be read" in found.summary


def test_a_stripped_interpreter_that_gave_up() -> None:
    """Without names: the interpreter called abort(), and no Python frame is there that could have asked for it."""
    told = {"signal": signal.SIGABRT, "code_name": "SI_TKILL", "sender_pid": 1}
    found = first(crashed((*ABORT, c(None, PYTHON)), **told))
    assert (found.pattern, found.confidence) == ("fatal-python-error", "likely")
    assert kind_of(crashed((*ABORT, c(None, UNITS)), **told)) == "gave up"
    assert kind_of(crashed((*ABORT, c(None, PYTHON), *CALLED), **told)) == "itself"


def test_what_was_put_into_a_message_is_not_known() -> None:
    """The gaps of a format are shown as gaps."""
    told = {"python_error": "could not acquire lock for %s at interpreter shutdown, possibly due to daemon threads"}
    found = first(aborted(c("_Py_FatalErrorFormat", PYTHON), **told))
    assert "lock for … at" in found.summary and "daemon thread" in found.summary


@pytest.mark.parametrize(
    ("function", "message", "words"),
    [
        ("PyThreadState_Get", "no current thread", "did not hold the GIL"),
        (None, "Python memory allocator called without holding the GIL", "memory from Python's"),
        (None, "Cannot recover from stack overflow.", "recursion limit"),
        ("none_dealloc", "deallocating None", "released more often"),
        ("PyEval_RestoreThread", "NULL tstate", "out of order"),
        ("Py_EndInterpreter", "not the last thread", "sub-interpreter"),
        ("_Py_CheckFunctionResult", "a function returned NULL without setting an exception", "without an exception"),
    ],
)
def test_what_the_last_words_mean(function: Optional[str], message: str, words: str) -> None:
    """Every version's wording finds its row; unknown words have none."""
    found = meaning(function, message)
    assert found is not None and words in Wording(Places(evidence())).text(found.words)
    assert meaning(None, "the moon is full") is None


def test_internal_is_not_interned() -> None:
    """A message about something internal is not about the table of interned strings."""
    assert meaning(None, "an internal error of the extension") is None
    assert meaning("unicode_dealloc", "Inconsistent interned string state.") is not None


def test_a_stack_overflow_that_the_interpreter_reports() -> None:
    """3.14 measures the stack: both are true."""
    told = {
        "python_error": "Unrecoverable stack overflow (used 8012 kB)",
        "python_error_function": "_Py_CheckRecursiveCall",
    }
    found = classify(aborted(c("_Py_FatalErrorFunc", PYTHON), **told)).findings
    assert [f.pattern for f in found[:2]] == ["fatal-python-error", "stack-overflow"]


def test_ended_by_another_process() -> None:
    """A fact; where the main thread was is the line to look at, and the sender is named."""
    found = first(sent())
    assert (found.pattern, found.confidence, found.culprits[0].line) == ("killed", "proven", 7)
    assert "process 99 (user 5) ended process 1 with SIGABRT" in found.summary
    assert "outside of its container" in first(sent(sender_pid=0)).summary
    assert "its parent" in first(sent(process_ppid=99)).summary


def test_what_explains_a_kill_stands_before_it() -> None:
    """A deadlock that a watchdog ended is a deadlock; what is merely possible is named as a cause, and follows."""
    locked = changed(two_locks(), crash=sent().processes[0].crash)
    diagnosis = classify(evidence(locked, window=None))
    assert diagnosis.verdict == "lock-order-deadlock"
    killed = next(f for f in diagnosis.findings if f.pattern == "killed")
    assert "lock-order-deadlock" in killed.because_of
    spins = thread(1, CALLED, gil="holds")
    busy = process([spins], crash=sent().processes[0].crash)
    assert [f.pattern for f in classify(evidence(busy, window=None)).findings] == ["killed", "python-busy-loop"]


def test_a_watchdog_thread_of_its_own() -> None:
    """The thread that got the signal did not send it: by name, when the sender is found in the call."""
    watchdog = thread(2, (c("kill"), frame("watch", 50)), name="watchdog")
    own = sent((c("read"), *CALLED), watchdog, sender_pid=1)
    assert kind_of(own) == "inside" and "watchdog" in first(own).summary
    assert (first(own).pattern, first(own).confidence) == ("killed", "proven")
    assert first(sent(sender_pid=1)).confidence == "likely"


def test_a_kill_during_a_window() -> None:
    """A thread with counters is a culprit like any other, once."""
    known = sent(thread_counters=counted({"S": 16}, {"read": 16}), code_name="SI_TKILL")
    assert (first(known).pattern, first(known).culprits[0].line) == ("killed", 7)


def test_an_alarm_that_aborts() -> None:
    """A signal handler of the program's own interrupted what is to be looked at."""
    handler = PythonFrame("/app/service.py", 3, "too_long", role="signal-handler")
    known = crashed((*ABORT, handler, *CALLED), signal=signal.SIGABRT, code_name="SI_TKILL", sender_pid=1)
    assert (first(known).pattern, first(known).confidence, first(known).culprits[0].line) == ("killed", "likely", 7)


def test_a_handler_in_c_hides_who_sent_it() -> None:
    """faulthandler raises SIGABRT anew: what it interrupted had not asked for it, unless that was abort() itself."""
    raised = (c("raise"), HANDLER)
    told = {"signal": signal.SIGABRT, "code_name": "SI_TKILL", "sender_pid": 1}
    hidden = crashed((*raised, *CALLED), **told)
    assert (kind_of(hidden), first(hidden).pattern, first(hidden).confidence) == ("hidden", "killed", "likely")
    assert kind_of(crashed((*raised, *ABORT, *CALLED), **told)) == "itself"


def test_its_own_abort_is_no_pattern() -> None:
    """os.abort() was the program's decision: nothing is claimed, and the line is said."""
    diagnosis = classify(aborted())
    assert not {f.pattern for f in diagnosis.findings} & OURS
    assert any(out.pattern == "killed" and "service.py:7" in out.because for out in diagnosis.ruled_out)


def test_without_a_siginfo_nobody_is_blamed() -> None:
    """SIGABRT of unknown origin: two patterns abstain."""
    diagnosis = classify(crashed(signal=signal.SIGABRT))
    assert not {f.pattern for f in diagnosis.findings} & OURS
    assert {"killed", "native-crash"} <= {a.pattern for a in diagnosis.abstained}


def test_a_fault_that_somebody_sent() -> None:
    """kill -SEGV is no fault of an instruction."""
    known = sent(signal=signal.SIGSEGV)
    assert verdict(known) == "killed"


def test_a_process_that_did_not_crash() -> None:
    """A core without a fatal signal, a capture: none of them has anything to say."""
    healthy: Process = process([thread(1, CALLED)])
    assert not {f.pattern for f in classify(evidence(healthy, window=None)).findings} & OURS
