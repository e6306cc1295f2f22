"""Children that are asked and answered with a deadline: late, crashing, lying, and always without anything left behind."""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import pytest

from postmortem.foreign.children import Child, Lost

from .users import descriptors

SOON = 30.0


def until(seconds: float = SOON) -> float:
    return time.monotonic() + seconds


def echo(request: Any) -> Tuple[Any, Iterable[bytes], Optional[int]]:
    return request, (), None


def gone(pid: int) -> bool:
    """Whether a process has ended, one that its parent has not collected included."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_for(happened: Callable[[], bool]) -> bool:
    end = until()
    while not happened():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterable[None]:
    """No test leaves a descriptor open."""
    before = descriptors()
    yield
    assert descriptors() == before


def test_values_bytes_and_a_descriptor_come_back(tmp_path: Path) -> None:
    """One answer has them all, pieces of more than a frame included; the next question is answered as well."""
    (tmp_path / "x").write_text("content")

    def serve(request: Any) -> Tuple[Any, Iterable[bytes], Optional[int]]:
        return {"errno": request}, (b"ab", b"", b"c" * 3_000_000), os.open(tmp_path / "x", os.O_RDONLY)

    with Child(serve) as child:
        for number in (1, 2):
            answer = child.ask(number, until())
            assert answer.value == {"errno": number}  # a value may look like anything
            assert answer.data == b"ab" + b"c" * 3_000_000
            assert answer.descriptor is not None
            assert not os.get_inheritable(answer.descriptor)
            assert os.read(answer.descriptor, 9) == b"content"
            os.close(answer.descriptor)
    assert gone(child.pid)


def test_what_the_child_could_not_do_is_raised_here() -> None:
    """An OSError with number, sentence and name; any other exception as one that names it. The child stays."""

    def serve(request: Any) -> Tuple[Any, Iterable[bytes], Optional[int]]:
        if request == "path":
            raise PermissionError(errno.EACCES, "no", b"/x\xff")
        return os.stat("\ud800"), (), None

    with Child(serve) as child:
        with pytest.raises(PermissionError) as caught:
            child.ask("path", until())
        assert caught.value.filename == "/x\udcff"
        with pytest.raises(OSError, match="UnicodeEncodeError"):
            child.ask("other", until())
        assert not child.lost


def test_a_late_child_is_killed_and_not_asked_again() -> None:
    """The deadline holds, and afterwards there is one plain error, at once."""
    child = Child(lambda _request: (time.sleep(600), (), None))  # type: ignore[func-returns-value]
    with pytest.raises(Lost, match="did not answer in time"):
        child.ask(1, until(0.05))
    assert gone(child.pid)
    with pytest.raises(Lost, match="its reader was abandoned"):
        child.ask(1, until())


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGBUS, signal.SIGKILL, signal.SIGABRT])
def test_the_signal_that_ended_a_child_is_told(number: signal.Signals) -> None:
    """A parser that crashes, or is killed for want of memory, is named by its signal."""
    child = Child(lambda _request: (os.kill(os.getpid(), number), (), None))  # type: ignore[func-returns-value]
    with pytest.raises(Lost, match=number.name) as caught:
        child.ask(1, until())
    assert caught.value.signal == number


def test_a_child_that_cannot_prepare_is_lost() -> None:
    """What ``prepare`` raises ends the child, and nothing is served without it."""

    def fail() -> None:
        raise PermissionError("no")

    with Child(echo, prepare=fail) as child, pytest.raises(Lost):
        child.ask(1, until())


def raw(*data: bytes, stay: bool = False, pass_on: int = 0) -> Callable[[Any], Any]:
    """A serve that writes these bytes past the protocol, with descriptors; then ends, or stays silent."""

    def serve(_request: Any) -> Any:
        own = _own_socket()
        for piece in data:
            if pass_on:
                given = [os.open(os.devnull, os.O_RDONLY) for _ in range(pass_on)]
                own.sendmsg([piece], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", given))])
            else:
                own.sendall(piece)
        if stay:
            time.sleep(600)
        os._exit(0)

    return serve


def _own_socket() -> socket.socket:
    """The only socket that such a child has."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                return socket.socket(fileno=os.dup(int(name)))
        except FileNotFoundError:
            pass
    raise AssertionError("no socket")


def frame(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


VALUE = frame(json.dumps(["value", 1]).encode())


@pytest.mark.parametrize(
    "sent",
    [
        b"\x05",
        frame(b"[]")[:5],
        VALUE,
        VALUE + frame(b"data"),
        frame(b"no JSON") + frame(b""),
        frame(b"\xff\xfe") + frame(b""),
        frame(b"{}") + frame(b""),
        frame(b'"value"') + frame(b""),
        frame(b'["value"]') + frame(b""),
        frame(b'["value", 1, 2]') + frame(b""),
        frame(b'["value", NaN]') + frame(b""),
        frame(b'["value", 1' + b"0" * 100_000 + b"]") + frame(b""),
        frame(b"[" * 100_000) + frame(b""),
        frame(b'["error", "x", "y", null]') + frame(b""),
        frame(b'["error", -1, "y", null]') + frame(b""),
        frame(b'["error", 1, 2, 3]') + frame(b""),
        frame(b'["other", 1, "", ""]') + frame(b""),
        frame(b""),
        b"\xff\xff\xff\xff" + b"x" * 100,
        VALUE + b"\xff\xff\xff\x7f",
    ],
    ids=lambda sent: repr(sent[:24]),
)
def test_half_an_answer_and_nonsense_are_no_answer(sent: bytes) -> None:
    """Cut off at any place, too long, no JSON, JSON of another form: Lost, and the child is gone."""
    child = Child(raw(sent))
    with pytest.raises(Lost):
        child.ask(1, until())
    assert child.lost
    assert gone(child.pid)


def test_half_an_answer_waits_for_the_deadline_only() -> None:
    """A child that sends a byte of its answer and then nothing is late like any other."""
    child = Child(raw(b"\x05", stay=True))
    with pytest.raises(Lost, match="in time"):
        child.ask(1, until(0.1))


@pytest.mark.parametrize("frames", [(VALUE + frame(b""),), (VALUE, frame(b"")), (VALUE, frame(b"x"), frame(b""))])
@pytest.mark.parametrize("number", [2, 5])
def test_more_than_one_descriptor_is_closed(frames: Tuple[bytes, ...], number: int) -> None:
    """Several at once, or with later frames: at most one is handed on, none stays open unseen."""
    child = Child(raw(*frames, pass_on=number))
    try:
        answer = child.ask(1, until())
    except Lost:
        return
    if answer.descriptor is not None:
        os.close(answer.descriptor)
    child.close()


def test_a_descriptor_that_comes_with_an_error_is_closed() -> None:
    """Nobody would ever see it."""
    failed = frame(json.dumps(["error", errno.ENOENT, "none", None]).encode()) + frame(b"")
    with Child(raw(failed, pass_on=1, stay=True)) as child, pytest.raises(FileNotFoundError):
        child.ask(1, until())


def test_a_child_that_never_stops_talking_is_bounded() -> None:
    """More bytes than were asked for end the child: they do not fill the parent's memory."""
    kept: List[int] = []

    def endless(_request: Any) -> Tuple[Any, Iterable[bytes], Optional[int]]:
        return 1, iter(lambda: b"x" * 65536, b""), None

    for sink in (None, lambda piece: kept.append(len(piece))):
        with Child(endless) as child, pytest.raises(Lost, match="no sense"):
            child.ask(1, until(), sink, most=1 << 20)
    assert sum(kept) <= 1 << 20
    exact = Child(lambda _request: (1, (b"x" * 1000,), None))
    with exact:
        assert len(exact.ask(1, until(), most=1000).data) == 1000


def test_what_the_sink_raises_comes_out_and_ends_the_child() -> None:
    """A full disk is told as such, and the rest of that answer is never taken for the next one."""

    def full(_piece: bytes) -> None:
        raise OSError(errno.ENOSPC, "full")

    child = Child(lambda _request: (1, (b"x" * 100, b"y" * 100), None))
    with pytest.raises(OSError, match="full"):
        child.ask(1, until(), full)
    assert child.lost


def test_a_signal_meanwhile_does_not_disturb_the_answer() -> None:
    """A handler runs while the answer is awaited (EINTR); one that raises ends the child, as its answer is lost."""
    seen: List[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _frame: seen.append(number))
    me = os.getpid()

    def serve(_request: Any) -> Tuple[Any, Iterable[bytes], Optional[int]]:
        for _ in range(20):
            os.kill(me, signal.SIGUSR1)
            time.sleep(0.002)
        return "done", (), None

    try:
        with Child(serve) as child:
            assert child.ask(1, until()).value == "done"
        assert seen

        raised: List[int] = []

        def interrupt(number: int, _frame: object) -> None:
            if not raised:  # the next ones come when they come, outside of the call, too
                raised.append(number)
                raise KeyboardInterrupt

        signal.signal(signal.SIGUSR1, interrupt)
        with Child(serve) as child:
            with pytest.raises(KeyboardInterrupt):
                child.ask(1, until())
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            assert child.lost
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_no_handler_of_the_parents_runs_in_the_child() -> None:
    """Signals do there what they do by default, and a wake-up descriptor of the parent's is not written to."""
    reading, writing = os.pipe2(os.O_NONBLOCK)
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    waker = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        child = Child(lambda _request: (os.kill(os.getpid(), signal.SIGUSR1), (), None), keep=None)  # type: ignore[func-returns-value]
        with pytest.raises(Lost, match="SIGUSR1"):
            child.ask(1, until())
        assert not select.select([reading], [], [], 0)[0]
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
    finally:
        signal.set_wakeup_fd(waker)
        signal.signal(signal.SIGUSR1, before)
        os.close(reading)
        os.close(writing)


def test_the_child_has_nothing_but_what_it_was_given(tmp_path: Path) -> None:
    """Its streams are /dev/null, and of all other descriptors it has its socket and those in ``keep``."""
    others = [os.open(tmp_path, os.O_RDONLY) for _ in range(50)]

    def serve(_request: Any) -> Tuple[Any, Iterable[bytes], Optional[int]]:
        found = {}
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):
                found[name] = os.readlink(f"/proc/self/fd/{name}")
        return found, (), None

    try:
        with Child(serve, keep=(others[25],)) as child:
            found = child.ask(1, until()).value
    finally:
        for descriptor in others:
            os.close(descriptor)
    assert {found.pop(stream) for stream in ("0", "1", "2")} == {"/dev/null"}
    assert found.pop(str(others[25])) == str(tmp_path)
    assert [target[:7] for target in found.values()] == ["socket:"]


def test_a_sibling_that_keeps_everything_keeps_no_socket_open() -> None:
    """A child learns of its parent's end by its socket: a later child with ``keep=None`` must not hold the other end."""
    with Child(echo) as first, Child(echo, keep=None) as second:
        first._socket.close()  # as the kernel does when the parent is gone
        assert wait_for(lambda: gone(first.pid))
        assert second.ask(2, until()).value == 2


def test_several_threads_may_ask() -> None:
    """Questions are answered one after the other, each with its own answer."""
    answers: Dict[int, Any] = {}
    with Child(echo) as child:

        def ask(number: int) -> None:
            answers[number] = [child.ask([number, turn], until()).value for turn in range(50)]

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == {number: [[number, turn] for turn in range(50)] for number in range(4)}


def test_forking_while_threads_hold_locks(tmp_path: Path) -> None:
    """Threads that allocate, load libraries and print all the time: a child made meanwhile still answers."""
    over = threading.Event()

    def busy() -> None:
        while not over.is_set():
            ctypes.CDLL(None)
            json.loads(json.dumps(list(range(500))))

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(20):
            with Child(echo) as child:
                assert child.ask(number, until()).value == number
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_no_more_descriptors_is_an_error_and_no_leak() -> None:
    """With none left, making a child fails as the system says, and nothing stays."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(int(n) for n in os.listdir("/proc/self/fd")) + 20, hard))
    taken: List[int] = []
    try:
        try:
            while True:
                taken.append(os.dup(0))
        except OSError:
            pass
        with pytest.raises(OSError):
            Child(echo)
        os.close(taken.pop())
        os.close(taken.pop())
        with Child(echo) as child:
            assert child.ask(1, until()).value == 1
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_one_that_somebody_else_collected_is_not_signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number may belong to another process by now."""
    child = Child(echo)
    os.kill(child.pid, signal.SIGKILL)
    os.waitpid(child.pid, 0)
    signalled: List[Tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *args: signalled.append(args))
    with pytest.raises(Lost):
        child.ask(1, until())
    child.close()
    assert signalled == []


def test_a_helper_is_left_to_its_collector() -> None:
    """With ``helpers`` the child is registered, killed while it is not collected, and never waited for here."""
    helpers: Dict[int, Optional[int]] = {}
    child = Child(echo, helpers=helpers)
    assert helpers == {child.pid: None}
    child.close()
    assert os.waitpid(child.pid, 0)[0] == child.pid


PARENT = """
import os, sys, time
from postmortem.foreign.children import Child
from postmortem.foreign.rights import Rights, take
mode = sys.argv[1]
def prepare():
    if "rights" in mode:
        take(Rights(12345, 12345))
    if "early" in mode:
        while os.getppid() == parent: time.sleep(0.001)
def serve(request):
    while True: pass
parent = os.getpid()
child = Child(serve, prepare=prepare, keep=None)
os.write(1, b"%d\\n" % child.pid)
if "early" not in mode:
    child._send(b"1", time.monotonic() + 9)
    time.sleep(0.2 if mode else 0)
os._exit(0)
"""


@pytest.mark.parametrize("mode", ["busy", "busy-rights", "early"])
def test_a_child_ends_with_its_parent(mode: str) -> None:
    """In the middle of its work, with another user's rights, and when the parent is gone before it can ask the kernel for
    that."""
    if "rights" in mode and os.geteuid() != 0:
        pytest.skip("needs root, to take another user's rights")
    found = subprocess.run([sys.executable, "-c", PARENT, mode], stdout=subprocess.PIPE, check=True, timeout=SOON)
    assert wait_for(lambda: gone(int(found.stdout)))


STREAMLESS = """
import os, sys
for number in map(int, sys.argv[2:]):
    os.close(number)
from postmortem.foreign.children import Child
import time
said = int(sys.argv[1])
root = os.open("/", os.O_PATH)
def serve(request):
    return os.fstat(root).st_ino, (), os.open("/", os.O_PATH)
with Child(serve, keep=(root,)) as child:
    for turn in range(2):
        answer = child.ask(1, time.monotonic() + 9)
        assert answer.value == os.fstat(answer.descriptor).st_ino == os.stat("/").st_ino
        os.close(answer.descriptor)
os.write(said, b"fine")
"""


@pytest.mark.parametrize("closed", [(), (0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)])
def test_a_parent_without_streams_has_working_children(closed: Tuple[int, ...]) -> None:
    """Descriptors 0 to 2 are free then, and become the socket's or the root's unless care is taken."""
    reading, writing = os.pipe()
    try:
        subprocess.run(
            [sys.executable, "-c", STREAMLESS, str(writing), *map(str, closed)],
            pass_fds=(writing,),
            check=True,
            timeout=SOON,
        )
        assert os.read(reading, 9) == b"fine"
    finally:
        os.close(reading)
        os.close(writing)
