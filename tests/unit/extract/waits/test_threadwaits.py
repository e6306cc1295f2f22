"""From a system call's registers to what is waited for."""

from __future__ import annotations

import struct
from typing import Optional, Tuple

import pytest

from postmortem.evidence import Wait
from postmortem.evidence.vocabulary import WaitKind
from postmortem.extract.waits import threadwaits
from postmortem.extract.waits.descriptors import Descriptors
from postmortem.memory import Segments

MEMORY = Segments({0x1000: struct.pack("<qq", 60, 500_000_000) + struct.pack("<ihh", 7, 1, 0) + b"\0" * 64})
FDS = Descriptors(
    {
        "3": "socket:[100]",
        "4": "pipe:[200]",
        "5": "/dev/pts/0",
        "6": "socket:[101]",
        "7": "socket:[102]",
        "8": "/tmp/x",
    },
    {
        "sockets": {
            "100": {"proto": "tcp", "local": "127.0.0.1:50000", "remote": "127.0.0.1:80", "state": "ESTABLISHED"},
            "101": {"proto": "tcp", "local": "127.0.0.1:8080", "remote": "127.0.0.1:50001", "state": "ESTABLISHED"},
            "102": {"proto": "tcp", "local": "0.0.0.0:8080", "remote": None, "state": "LISTEN"},
        },
        "listening_ports": [8080],
    },
)


def wait(name: str, *args: int, fds: Optional[Descriptors] = FDS) -> Wait:
    full: Tuple[int, ...] = (*args, 0, 0, 0, 0, 0, 0)[:6]
    return threadwaits.describe(threadwaits.SystemCall(name, full), MEMORY, fds, lambda word: None, ())  # type: ignore[arg-type]


def test_sleeps_tell_their_length() -> None:
    """A relative sleep's request is read from memory; of an absolute one only the deadline is there."""
    assert (wait("clock_nanosleep", 0, 0, 0x1000).timeout_s, wait("nanosleep", 0x1000).timeout_s) == (60.5, 60.5)
    assert wait("clock_nanosleep", 1, 1, 0x1000).timeout_s is None
    assert wait("nanosleep", 0x9999).kind == "sleep"
    assert wait("pselect6", 0, 0, 0, 0, 0x1000).kind == "sleep"


def test_descriptors_decide_the_kind() -> None:
    """read on a socket, a pipe and a terminal are three different waits; without /proc it stays open."""
    assert [wait("read", fd).kind for fd in (3, 4, 5, 8)] == ["socket", "pipe", "file", "file"]
    assert wait("read", 3, fds=None).kind == "other"
    assert wait("recvfrom", 3, fds=None).kind == "socket"
    assert wait("write", 4).syscall == "write"


def test_a_select_over_one_descriptor_is_a_wait_for_it() -> None:
    """As readline waits for a terminal; over two of different kinds it is neither."""
    one, two = struct.pack("<Q", 1 << 5) + b"\0" * 120, struct.pack("<Q", 1 << 5 | 1 << 4) + b"\0" * 120
    memory = Segments({0x1000: one, 0x2000: two})

    def chosen(sets: int) -> Wait:
        call = threadwaits.SystemCall("pselect6", (6, sets, 0, 0, 0, 0))
        return threadwaits.describe(call, memory, FDS, lambda word: None, ())

    assert (chosen(0x1000).kind, chosen(0x1000).fd, chosen(0x1000).endless) == ("file", 5, True)
    assert chosen(0x2000).fd is None


def test_accepted_and_listening_sockets() -> None:
    """A connection whose local port the tree listens on was accepted; a client's was not."""
    client, accepted, listening = FDS.get(3), FDS.get(6), FDS.get(7)
    assert client and accepted and listening
    assert (client.accepted, accepted.accepted, listening.listening) == (False, True, True)
    assert client.remote == "127.0.0.1:80"


def test_only_its_own_listening_sockets_are_a_process_s() -> None:
    """A server that the tree has started beside it does not make a client one."""
    net = {
        "sockets": {
            "1": {"proto": "tcp", "local": "0.0.0.0:8080", "state": "LISTEN"},
            "2": {"proto": "tcp", "local": "127.0.0.1:50000", "remote": "127.0.0.1:8080", "state": "ESTABLISHED"},
        },
        "listening_ports": [8080],
    }
    assert Descriptors({"3": "socket:[1]", "4": "/tmp/x"}, net).listening == (8080,)
    assert Descriptors({"3": "socket:[2]"}, net).listening == ()
    assert Descriptors({}, net).listening is None
    assert Descriptors({"3": "socket:[1]"}, {}).listening is None


@pytest.mark.parametrize(
    ("call", "timeout", "endless"),
    [
        (("epoll_wait", 4, 0, 9, (1 << 32) - 1), None, True),
        (("epoll_wait", 4, 0, 9, 2500), 2.5, False),
        (("epoll_wait", 4, 0, 9, 0), 0.0, False),
        (("pselect6", 5, 0, 0, 0, 0), None, True),
    ],
)
def test_selects_and_their_timeouts(call: Tuple[str, int], timeout: Optional[float], endless: bool) -> None:
    """Minus one and a null pointer mean for ever."""
    found = wait(*call)
    assert (found.kind, found.timeout_s, found.endless) in (
        ("event-loop", timeout, endless),
        ("other", timeout, endless),
    )


def test_poll_of_one_descriptor_is_a_wait_for_it() -> None:
    """A socket with a timeout waits in poll: the wait is for that socket, and has an end."""
    found = wait("poll", 0x1010, 1, 1500)
    assert (found.kind, found.fd, found.timeout_s, found.endless) == ("socket", 7, 1.5, False)


def test_children() -> None:
    """wait4 and waitid name the child when they wait for one."""
    assert (wait("wait4", 4711).kind, wait("wait4", 4711).pid) == ("process", 4711)
    assert wait("wait4", (1 << 32) - 1).pid is None
    assert wait("waitid", 1, 99).pid == 99


@pytest.mark.parametrize("call", ["vfork", "clone", "clone3"])
def test_a_parent_that_lends_its_memory(call: str) -> None:
    """In state D until its child has run another program: a wait for a process, not for a disk."""
    known = wait(call, 0x4111)
    assert (known.kind, known.endless, known.pid) == ("process", True, None)


def test_a_thread_that_has_not_run_yet_waits_for_no_child() -> None:
    """Its registers are those of the call that made it, whose flags say that nobody waits."""
    assert wait("clone", 0x3D0F00).kind == "other"
    assert wait("clone", 0x4111).kind == "process"


def test_futexes() -> None:
    """A shared futex is a semaphore between processes; a wake is no wait; a known word is what the owner says. The timer
    in a wait for the GIL ends nothing: the thread asks, and goes on waiting; that of a lock does."""
    assert wait("futex", 0x5000, 0x189).kind == "futex" and wait("futex", 0x5000, 0x189).endless
    assert wait("futex", 0x5000, 0x109).kind == "semaphore"
    assert wait("futex", 0x5000, 0x81).kind == "other"
    rows: Tuple[Tuple[WaitKind, bool], ...] = (("gil", True), ("lock", False))
    for kind, endless in rows:
        facts = threadwaits.FutexFacts(kind, None, None)
        known = threadwaits.describe(
            threadwaits.SystemCall("futex", (0x5000, 0x189, 0, 0x1000, 0, 0)),
            MEMORY,
            None,
            {0x5000: facts}.get,
            (),
        )
        assert (known.kind, known.endless) == (kind, endless)


def test_a_restarted_call_is_what_it_was_before() -> None:
    """restart_syscall says nothing; what /proc showed before the stop does."""
    before = threadwaits.SystemCall("clock_nanosleep", (1, 2, 3, 4, 5, 6))
    assert threadwaits.in_core({"orig_rax": 219}, before) == before
    assert threadwaits.in_core({"orig_rax": (1 << 64) - 1}, before) is None
    found = threadwaits.in_core({"orig_rax": 61, "rdi": 9}, None)
    assert found is not None and (found.name, found.args[0]) == ("wait4", 9)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (b"\xb8\x07\0\0\0\x0f\x05", "poll"),
        (b"\xb8\xca\0\0\0\x48\x89\xd7\x45\x31\xc9\x0f\x05", "futex"),
        (b"\xb8\xca\0\0\0\x90\xb8\xe6\0\0\0\x0f\x05", "clock_nanosleep"),
        (b"\xb8\0\0\0\0\x0f\x05", None),
        (b"\xb8\x07\0\0\0\x90\x90", None),
        (b"\xb8\x07\0\0\x0f\x05", None),
    ],
)
@pytest.mark.parametrize("room", [0, 64])
def test_the_code_tells_which_call_is_restarted(code: bytes, name: Optional[str], room: int) -> None:
    """A process that was stopped once shows restart_syscall: the number that is loaded before ``syscall`` is the
    call's, the arguments are still in the registers. Anything else stays unknown."""
    text = b"\x90" * room + code
    rip = 0x7000 + len(text)
    found = threadwaits.in_core({"orig_rax": 219, "rip": rip, "rdi": 0x1010, "rsi": 1}, None, Segments({0x7000: text}))
    assert found is not None and found.args[:2] == (0x1010, 1)
    assert (found.name, threadwaits.is_known(found)) == (name or "restart_syscall", name is not None)


def test_a_restart_that_no_code_tells_is_what_proc_said() -> None:
    """The file of the code may be elsewhere."""
    before = threadwaits.SystemCall("poll", (1, 2, 3, 4, 5, 6))
    assert threadwaits.in_core({"orig_rax": 219, "rip": 0x5000}, before, Segments({})) == before


def test_the_number_may_lie_on_the_stack() -> None:
    """Where one piece of code makes all calls, its caller was given the number, above the address that it returns to."""
    text = {0x7000: b"\x4c\x89\x5c\x24\x08" * 2 + b"\x0f\x05", 0x8000: b"\xe8\0\0\0\0"}
    regs = {"orig_rax": 219, "rip": 0x700C, "rsp": 0x100}
    given = struct.pack("<6Q", 0x4242, 7, 0x8005, 202, 0, 0)
    found = threadwaits.in_core(regs, None, Segments({**text, 0x100: given}))
    assert found is not None and found.name == "futex"
    found = threadwaits.in_core(regs, None, Segments({**text, 0x100: given.replace(b"\xca", b"\x01")}))
    assert not threadwaits.is_known(found)


def test_a_socket_has_a_timeout_of_its_own() -> None:
    """SO_RCVTIMEO ends a receive and an accept, SO_SNDTIMEO a send; where they could not be read, nothing is claimed."""
    fds = Descriptors({"3": "socket:[100]", "4": "socket:[101]"}, {"timeouts": {"100": [2.5, 0.0]}})
    assert [(w.timeout_s, w.endless) for w in (wait(n, 3, fds=fds) for n in ("recvfrom", "accept4", "read"))] == [
        (2.5, False)
    ] * 3
    assert [wait(name, 3, fds=fds).endless for name in ("sendto", "connect", "write")] == [True] * 3
    assert (wait("recvfrom", 4, fds=fds).endless, wait("recvfrom", 3, fds=None).endless) == (None, None)
