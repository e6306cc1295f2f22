"""Signals to a process that is still the one that was meant, on every way that a kernel offers."""

from __future__ import annotations

import errno
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List, Tuple

import pytest

from postmortem import signalling


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    with process:
        yield process
        process.kill()


@pytest.fixture(params=["as it is", "system calls", "no such calls", "a filter in between"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Python's own functions; Python 3.8; a kernel before 5.3; a seccomp filter that lets pidfds be opened, and no more."""
    way: str = request.param
    if way != "as it is":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
        monkeypatch.delattr("postmortem.signalling.signal.pidfd_send_signal", raising=False)
    if way in ("no such calls", "a filter in between"):
        real = signalling._call

        def call(number: int, *arguments: int) -> int:
            if way == "no such calls" or number == signalling._PIDFD_SEND_SIGNAL:
                raise OSError(errno.ENOSYS, "Function not implemented")
            return real(number, *arguments)

        monkeypatch.setattr(signalling, "_call", call)
    return way


def test_the_process_that_was_meant_gets_it(way: str, child: subprocess.Popen[bytes]) -> None:
    """All of the signals, in their order."""
    assert signalling.send(child.pid, signalling.begun(child.pid), signal.SIGCONT, signal.SIGTERM)
    assert child.wait() == -signal.SIGTERM


def test_another_with_its_number_does_not(way: str, child: subprocess.Popen[bytes]) -> None:
    """It began at another time; nor does anybody when it is not known when the one that is meant began."""
    start = signalling.begun(child.pid)
    assert start is not None
    assert not signalling.send(child.pid, start - 1, signal.SIGKILL)
    assert not signalling.send(child.pid, None, signal.SIGKILL)
    assert signalling.begun(child.pid) == start
    assert child.poll() is None


def test_what_has_ended_is_said_to_be_gone(way: str, child: subprocess.Popen[bytes]) -> None:
    """Also when nobody has its number."""
    start = signalling.begun(child.pid)
    child.kill()
    child.wait()
    assert not signalling.send(child.pid, start, signal.SIGTERM)
    assert signalling.begun(child.pid) is None


def test_who_ends_after_it_was_looked_at(
    way: str, child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the comparison and the signal: nothing is raised, and what had a pidfd is signalled through that alone."""
    sent: List[Tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    start = signalling.begun(child.pid)

    def ends_then(pid: int, proc: str = "/proc") -> object:
        assert child.stdin is not None
        child.stdin.close()
        child.wait()
        return start

    monkeypatch.setattr(signalling, "begun", ends_then)
    if way in ("as it is", "system calls"):
        assert not signalling.send(child.pid, start, signal.SIGTERM)
        assert sent == []
    else:  # nothing better than the comparison is to be had there
        assert signalling.send(child.pid, start, signal.SIGTERM)


def test_no_descriptor_is_left_open(way: str, child: subprocess.Popen[bytes]) -> None:
    """A tree may have thousands of processes."""
    gc.collect()  # files of earlier tests
    before = sorted(os.listdir("/proc/self/fd"))
    start = signalling.begun(child.pid)
    assert start is not None
    for began in (start, start - 1, None):
        signalling.send(child.pid, began, signal.SIGCONT)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_when_a_process_began(tmp_path: Path) -> None:
    """Whatever it calls itself; what is no stat line is nobody's."""
    fields = " ".join(str(number) for number in range(4, 53))
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_bytes(b"7 (a) S 1) \xff) S " + fields.encode())
    (tmp_path / "8").mkdir()
    (tmp_path / "8" / "stat").write_bytes(b"8 (x")
    assert signalling.begun(7, str(tmp_path)) == 22
    assert signalling.begun(8, str(tmp_path)) is None
    assert signalling.begun(9, str(tmp_path)) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="it takes root to become somebody who may not")
def test_a_refusal_is_said(way: str, child: subprocess.Popen[bytes]) -> None:
    """PermissionError is not mistaken for an end."""
    start = signalling.begun(child.pid)
    pid = os.fork()
    if pid == 0:
        os.setuid(65534)
        try:
            signalling.send(child.pid, start, signal.SIGTERM)
        except PermissionError:
            os._exit(3)
        os._exit(4)
    assert os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == 3
