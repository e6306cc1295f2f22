"""What ``--pid`` may name, on a /proc of our own making."""

from __future__ import annotations

import os

import pytest

from postmortem.capture.procfs import parsers
from postmortem.capture.run import running
from postmortem.errors import CaptureFailed


def test_a_process_is_one() -> None:
    """Ours, for one."""
    running.check(os.getpid())


def test_a_kernel_thread_has_nothing_to_look_into(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has neither memory nor a program of its own."""
    files = {
        "/proc/2/status": b"Name:\tkthreadd\nTgid:\t2\n",
        "/proc/2/stat": b"2 (kthread) d) S 0 0 0 0 -1 2129984" + b" 0" * 43 + b"\n",  # 52 fields
    }
    monkeypatch.setattr(parsers, "read", lambda path, *_: files[path])
    with pytest.raises(CaptureFailed, match="2 is a kernel thread"):
        running.check(2)


def test_a_process_that_is_not_there() -> None:
    """Beyond the kernel's largest pid."""
    with pytest.raises(CaptureFailed, match="there is no process"):
        running.check((1 << 31) - 1)
