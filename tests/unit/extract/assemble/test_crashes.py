"""From a core's notes, and what gdb saw of the thread, to what is known of the crash."""

from __future__ import annotations

import random
import signal
import struct
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import pytest

from postmortem.evidence import (
    Crash,
    Frame,
    Gap,
    Gil,
    Interpreter,
    NativeFrame,
    Process,
    PythonFrame,
    PythonInfo,
    Thread,
)
from postmortem.evidence.vocabulary import GilState
from postmortem.extract.assemble.crashes import fatal_signal, with_crash
from postmortem.memory import ElfCore
from postmortem.native import NativeStacks
from postmortem.native.stacks import CrashFrame, CrashLine, CrashPlace, Said

from ....support.crashing import Part, R, X, crashed, fault, sent, siginfo
from ....support.inwords import reason

CODE, TEXT = 0x40_0000, 0x50_0000
STACK, TOP = 0x7FFC_0000_0000, 0x7FFC_0020_0000
SP = TOP - 0x1000
MOV = b"\x48\x8b\x07"  # mov (%rdi),%rax
PROGRAM = [(CODE, CODE + 0x1000, 0, "/usr/bin/python3"), (TEXT, TEXT + 0x1000, 0x1000, "/usr/bin/python3")]


def parts(stack: bytes = b"", texts: bytes = b"") -> List[Part]:
    """``stack``: its bytes from SP on."""
    memory = (bytes(SP - STACK) + stack).ljust(TOP - STACK, b"\0")
    return [Part(CODE, MOV.ljust(64, b"\x90"), R | X), Part(TEXT, texts.ljust(4096, b"\0"), R), Part(STACK, memory)]


def core(tmp_path: Path, info: bytes, number: int = 11, memory: Optional[List[Part]] = None, **regs: int) -> ElfCore:
    known = {"rip": CODE, "rsp": SP, **regs}
    path = tmp_path / "core"
    return crashed(path, memory or parts(), info, number=number, files=PROGRAM, strings=TOP - 16, **known)


def place(index: int = 0, text: Optional[str] = "mov (%rdi),%rax", **regs: int) -> CrashPlace:
    return CrashPlace(index, text, MOV.hex(), {"rip": CODE, "rsp": SP, **regs})


def seen(*frames: CrashFrame, places: Sequence[CrashPlace] = (), said: Tuple[Said, ...] = ()) -> NativeStacks:
    return NativeStacks(crash=CrashLine(77, True, frames or (CrashFrame(CODE, "f", SP),), tuple(places), said))


def read(core: ElfCore, native: Optional[NativeStacks], **more: Any) -> Tuple[Crash, List[Gap]]:
    gaps: List[Gap] = []
    frames = native.crash.frames if native and native.crash else ()
    stack: Tuple[Frame, ...] = (
        PythonFrame("/app/x.py", 3, "work"),
        *(NativeFrame(f.function, None, f.address) for f in frames),
    )
    process = Process(77, threads=(Thread(77, stack=stack, is_main=True),), **more)
    found = with_crash(process, core, native, gaps)
    assert found.crash is not None and found.fatal_signal == core.threads[0].signal
    return found.crash, gaps


def test_a_fault(tmp_path: Path) -> None:
    """Signal, code, address, instruction, access, file: and where in the merged stack it is."""
    found, gaps = read(core(tmp_path, fault(11, 1, 8)), seen(places=[place(rdi=8)]))
    assert found == Crash(
        11,
        1,
        "SEGV_MAPERR",
        8,
        "recorded",
        tid=77,
        pc=CODE,
        instruction="mov (%rdi),%rax",
        access="read",
        module="/usr/bin/python3",
        function="f",
        frame=1,
        handler=False,
        stack_used=0x1000,
        native_depth=1,
        native_whole=True,
    )
    assert gaps == []


def test_without_gdb_the_notes_still_speak(tmp_path: Path) -> None:
    """What only a debugger knows is unknown; whether a handler ran, too."""
    found, _gaps = read(core(tmp_path, fault(11, 2, 8)), None)
    assert (found.code_name, found.address, found.pc, found.module) == ("SEGV_ACCERR", 8, CODE, "/usr/bin/python3")
    assert (found.instruction, found.access, found.frame, found.handler, found.native_whole) == (None,) * 5


def test_without_a_siginfo_the_signal_alone_is_known(tmp_path: Path) -> None:
    """A gap says so."""
    found, gaps = read(core(tmp_path, b""), seen(places=[place(rdi=8)]))
    assert (found.signal, found.code, found.address) == (11, None, None)
    assert [reason(gap) for gap in gaps] == ["the core has no siginfo"]


def test_a_jump_to_nowhere_is_an_execution(tmp_path: Path) -> None:
    """There is no instruction, and that is no gap."""
    found, gaps = read(
        core(tmp_path, fault(11, 1, 0x1234), rip=0x1234),
        seen(CrashFrame(0x1234, None, SP), places=[CrashPlace(0, None, None, {"rip": 0x1234, "rsp": SP})]),
    )
    assert (found.access, found.instruction, found.module, gaps) == ("execute", None, None, [])


def test_an_instruction_of_other_bytes_is_not_believed(tmp_path: Path) -> None:
    """gdb reads zeros, or another build, where it has not the file."""
    wrong = CrashPlace(0, "add %al,(%rax)", "0000", {"rip": CODE, "rsp": SP})
    found, gaps = read(core(tmp_path, fault(11, 1, 8)), seen(places=[wrong]))
    assert (found.instruction, found.access) == (None, None)
    assert [gap.subject for gap in gaps] == ["crash of thread 77: the instruction"]


def test_an_address_that_the_kernel_does_not_tell(tmp_path: Path) -> None:
    """A general protection fault: from the operand, and said to be."""
    bad = 0x4141414141414141
    found, _gaps = read(core(tmp_path, siginfo(11, 0x80, b"")), seen(places=[place(rdi=bad)]))
    assert (found.address, found.address_basis, found.access) == (bad, "instruction", "read")


@pytest.mark.parametrize(("code", "name"), [(0, "SI_USER"), (-6, "SI_TKILL"), (-1, "SI_QUEUE")])
def test_a_signal_that_was_sent(tmp_path: Path, code: int, name: str) -> None:
    """It has a sender, and neither an address nor an access: the instruction is where the thread happened to be."""
    found, _gaps = read(core(tmp_path, sent(11, code, 4711, 33)), seen(places=[place(rdi=8)]))
    assert (found.code_name, found.sender_pid, found.sender_uid) == (name, 4711, 33)
    assert (found.address, found.access, found.stack) == (None, None, None)


def test_other_faults_have_no_address(tmp_path: Path) -> None:
    """What the kernel writes for SIGFPE is where the instruction is."""
    found, _gaps = read(core(tmp_path, fault(8, 1, CODE), 8), seen(places=[place(text="idiv %ecx")]))
    assert (found.signal, found.code_name, found.address, found.pc) == (8, "FPE_INTDIV", None, CODE)


# ---------------------------------------------------------------------- the stack


@pytest.mark.parametrize(
    ("address", "sp", "stack", "limit"),
    [
        (STACK - 8, STACK, "guard", TOP - STACK),
        (STACK - 0x9000, STACK - 0xA000, "guard", TOP - STACK),
        (STACK - 8, TOP - 0x1000, None, None),  # a stray pointer: the stack would have grown
        (STACK + 0x5000, TOP - 0x1000, "inside", None),
        (8, TOP - 0x1000, None, None),
    ],
)
def test_an_overflow_is_met_near_the_stack_pointer(
    tmp_path: Path, address: int, sp: int, stack: Optional[str], limit: Optional[int]
) -> None:
    """Just below the stack, or in its guard; then the first thread's limit is as much as it has."""
    image = core(tmp_path, fault(11, 1, address), rsp=sp)
    found, _gaps = read(image, seen(CrashFrame(CODE, "f", sp), places=[place(rsp=sp)]))
    assert (found.stack, found.stack_limit, found.stack_used) == (stack, limit, TOP - sp)


def test_a_stack_that_is_not_known_is_a_gap(tmp_path: Path) -> None:
    """A greenlet's, or one in memory that the core does not list."""
    found, gaps = read(core(tmp_path, fault(11, 1, 8), rsp=0x1000), seen(places=[place(rsp=0x1000)]))
    assert (found.stack, found.stack_used) == (None, None)
    assert [gap.subject for gap in gaps] == ["crash of thread 77: the bounds of its stack"]


# ---------------------------------------------------------------------- what was said

ABORT = (CrashFrame(1, "raise", SP), CrashFrame(2, "__GI_abort", SP + 0x20))


def fatal(*, said: Tuple[Said, ...] = ()) -> NativeStacks:
    frames = (
        *ABORT,
        CrashFrame(3, None, SP + 0x40),
        CrashFrame(4, "_Py_FatalErrorFunc", SP + 0x80),
        CrashFrame(5, "PyThreadState_Get", SP + 0xA0),
        CrashFrame(6, "ffi_call", SP + 0xB0),
    )
    return seen(*frames, places=[place()], said=said)


def test_what_debug_information_tells_is_recorded(tmp_path: Path) -> None:
    """The arguments of the outermost function; up to 3.8 the name is in the message."""
    info = sent(6, -6, 77)
    said: Tuple[Said, ...] = (
        Said("fatal_error", "prefix", "f"),
        Said("fatal_error", "msg", "no GIL"),
        Said("x", "func", "PyThing"),
    )
    found, _gaps = read(core(tmp_path, info, 6), fatal(said=said))
    assert (found.python_error_function, found.python_error, found.python_error_basis) == (
        "PyThing",
        "no GIL",
        "recorded",
    )
    said = (Said("fatal_error", "msg", "PyEval_RestoreThread: NULL tstate"),)
    found, _gaps = read(core(tmp_path, info, 6), fatal(said=said))
    assert (found.python_error_function, found.python_error) == ("PyEval_RestoreThread", "NULL tstate")


def test_what_the_stack_points_to_is_inferred(tmp_path: Path) -> None:
    """Between abort and the fatal error, texts that nobody may write."""
    texts = b"PyThreadState_Get\0the GIL is released"
    words = struct.pack("<2Q", TEXT, TEXT + 18)
    found, gaps = read(core(tmp_path, sent(6, -6, 77), 6, parts(bytes(0x50) + words, texts=texts)), fatal())
    assert (found.python_error_function, found.python_error, found.python_error_basis, gaps) == (
        "PyThreadState_Get",
        "the GIL is released",
        "inferred",
        [],
    )


def test_a_message_that_is_nowhere_is_a_gap(tmp_path: Path) -> None:
    """The frames say that Python ended itself; why, its stderr has."""
    found, gaps = read(core(tmp_path, sent(6, -6, 77), 6), fatal())
    assert (found.python_error, found.python_error_basis) == (None, None)
    assert [gap.subject for gap in gaps] == ["crash of thread 77: the message of Py_FatalError()"]


def test_an_abort_of_others_has_no_message_of_python_s(tmp_path: Path) -> None:
    """Without a fatal error's frame nothing is looked for, and nothing is missing."""
    found, gaps = read(core(tmp_path, sent(6, -6, 77), 6), seen(*ABORT, places=[place()]))
    assert (found.python_error, gaps) == (None, [])


# ---------------------------------------------------------------------- handlers

UCONTEXT = SP + 0x100


def handled(trap: int, error: int, address: int, told: bytes = b"") -> List[Part]:
    """Memory with the frame that the kernel makes for a handler."""
    frame = bytearray(0x400)
    struct.pack_into("<QQ", frame, 0x100 + 40 + 8 * 19, error, trap)
    struct.pack_into("<Q", frame, 0x100 + 40 + 8 * 22, address)
    frame[0x100 + 304 : 0x100 + 304 + len(told)] = told
    return parts(bytes(frame))


def below(function: str = "strlen", *, text: str = "mov (%rdi),%rax", inner: Tuple[str, ...] = (), **regs: int) -> Any:
    """A handler that raises, called for what the last frame did."""
    frames = [CrashFrame(1, "raise", SP), *(CrashFrame(2, name, SP) for name in inner)]
    frames += [CrashFrame(3, "__restore_rt", UCONTEXT, True), CrashFrame(CODE, function, SP + 0x400)]
    at = len(frames) - 1
    frames += [CrashFrame(9, "abort", SP + 0x420)] if function == "pthread_kill" else []
    hit = CrashPlace(at, text, MOV.hex(), {"rip": CODE, "rsp": SP + 0x400, **regs})
    return seen(*frames, places=[CrashPlace(0, "nop", "90", {"rip": 1, "rsp": SP}), hit]), at


@pytest.mark.parametrize("ended", [signal.SIGSEGV, signal.SIGABRT])
def test_what_a_handler_was_called_for_is_the_crash(tmp_path: Path, ended: int) -> None:
    """Whether it raised the signal again or aborted: the fault below it, told by the processor's own words."""
    native, at = below(rdi=16, inner=("abort",) if ended == signal.SIGABRT else ())
    found, _gaps = read(core(tmp_path, sent(ended, -6, 77), ended, handled(14, 4, 16)), native)
    assert (found.signal, found.code_name, found.address, found.access) == (11, "SEGV_MAPERR", 16, "read")
    assert (found.handler, found.function, found.frame, found.sender_pid) == (True, "strlen", at + 1, None)
    assert found.stack_used == TOP - SP - 0x400


def test_a_handler_s_siginfo_is_believed_first(tmp_path: Path) -> None:
    """It says more than what the processor told."""
    native, _at = below(rdi=16)
    memory = handled(14, 6, 16, fault(11, 2, 16))
    found, _gaps = read(core(tmp_path, sent(11, -6, 77), 11, memory), native)
    assert (found.code_name, found.access) == ("SEGV_ACCERR", "write")


def test_a_page_fault_of_long_ago_is_not_the_crash(tmp_path: Path) -> None:
    """The kernel leaves the last one there: the instruction must touch its address. The signal was sent, then, and
    its first sender is not known."""
    native, _at = below(text="mov (%rdi),%rax", rdi=0x999000)
    found, _gaps = read(core(tmp_path, sent(11, -6, 77), 11, handled(14, 4, 16)), native)
    assert (found.handler, found.signal, found.code, found.address, found.sender_pid) == (True, 11, None, None, None)


def test_an_abort_that_a_handler_raised_again(tmp_path: Path) -> None:
    """faulthandler's, of os.abort(): abort stands below the handler."""
    native, _at = below("pthread_kill", text="mov %eax,%ebp")
    found, _gaps = read(core(tmp_path, sent(6, -6, 77), 6, handled(0, 0, 0)), native)
    assert (found.handler, found.signal, found.function, found.code) == (True, 6, "pthread_kill", None)


def test_the_handler_of_another_signal_that_aborts_is_the_crash_itself(tmp_path: Path) -> None:
    """An alarm is no fault: what it interrupted has nothing to do with it."""
    native, _at = below("nanosleep", text="neg %eax", inner=("abort",))
    found, _gaps = read(core(tmp_path, sent(6, -6, 77), 6, handled(0, 0, 0)), native)
    assert (found.handler, found.signal, found.frame, found.sender_pid) == (False, 6, 1, 77)


@pytest.mark.parametrize(
    ("number", "trap", "text", "name"),
    [
        (11, 13, "mov (%rdi),%rax", "SI_KERNEL"),
        (8, 0, "idiv %ecx", "FPE_INTDIV"),
        (8, 0, "nop", None),
        (4, 6, "ud2", "ILL_ILLOPN"),
        (4, 0, "nop", None),
    ],
)
def test_other_traps_below_a_handler(tmp_path: Path, number: int, trap: int, text: str, name: Optional[str]) -> None:
    """Where the processor's trap and the instruction fit the signal, its code is known."""
    native, _at = below(text=text)
    found, _gaps = read(core(tmp_path, sent(number, -6, 77), number, handled(trap, 0, 0)), native)
    assert (found.handler, found.signal, found.code_name) == (True, number, name)


# ---------------------------------------------------------------------- the lock, and what is no crash


@pytest.mark.parametrize(
    ("gil", "state", "free", "held"),
    [
        (Gil(True, 77), "holds", False, True),
        (Gil(False, None), "unknown", False, False),
        (Gil(True, 99), "detached", False, False),
        (Gil(True, None), "unknown", False, None),
        (Gil(None, None), "unknown", True, None),
        (None, "unknown", False, None),
    ],
)
def test_whether_the_thread_held_the_gil(
    tmp_path: Path, gil: Optional[Gil], state: GilState, free: bool, held: Optional[bool]
) -> None:
    """By the interpreter's own record; without one, or where there is no such lock, it is not known."""
    process = Process(
        77,
        threads=(Thread(77, gil=state),),
        interpreters=(Interpreter(0, gil),),
        python=PythonInfo("3.13.0", free_threaded=free),
    )
    found = with_crash(process, core(tmp_path, fault(11, 1, 8)), None, [])
    assert found.crash is not None and found.crash.holds_gil is held


@pytest.mark.parametrize(("number", "info"), [(2, b""), (19, b""), (5, b""), (0, b""), (60, b"")])
def test_what_a_debugger_stopped_did_not_crash(tmp_path: Path, number: int, info: bytes) -> None:
    """gcore's cores have SIGINT, SIGSTOP, SIGTRAP or nothing."""
    image = core(tmp_path, info, number)
    assert fatal_signal(image) is None
    process = Process(77)
    assert with_crash(process, image, None, []) is process


@pytest.mark.parametrize("seed", range(40))
def test_damage_is_unknown_not_an_error(tmp_path: Path, seed: int) -> None:
    """Whatever the registers, the frames and the siginfo say."""
    chance = random.Random(seed)

    def any_number() -> int:
        return chance.choice([0, 8, CODE, STACK - 8, TOP, SP, (1 << 64) - 8, chance.getrandbits(64)])

    regs: Dict[str, int] = {name: any_number() for name in ("rip", "rsp", "fs_base", "rdi")}
    memory = handled(
        chance.choice([0, 13, 14]),
        any_number(),
        any_number(),
        bytes(chance.choices(range(256), k=32)) if seed % 2 else b"",
    )
    number = chance.choice([11, 6, 7, 8])
    frames = [
        CrashFrame(any_number(), chance.choice(["abort", "fatal_error", None]), any_number(), chance.random() < 0.3)
        for _ in range(chance.randrange(8))
    ]
    hit = [CrashPlace(chance.randrange(9), "mov (%rdi),%rax", MOV.hex(), regs) for _ in range(3)]
    image = core(tmp_path, fault(number, chance.choice([1, 0x80, -6]), any_number()), number, memory, **regs)
    read(image, NativeStacks(crash=CrashLine(77, False, tuple(frames), tuple(hit))))
