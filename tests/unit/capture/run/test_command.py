"""A capture with ``--pid`` has children of its own too: the samplers."""

from __future__ import annotations

import os
import signal
import sys
from typing import Iterator

import pytest

from postmortem.capture.run.command import Watch


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Yield a watch of this process's parent, which no test signals; then put the signal mask back."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        yield Watch(os.getppid())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ended(*words: str) -> int:
    """A child that has ended and that nobody has collected."""
    pid = os.posix_spawn(sys.executable, [sys.executable, "-S", "-c", *words], os.environ)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return pid


def test_helpers_are_collected(watch: Watch) -> None:
    """Else a sampler that has ended is waited for until the capture loses patience, and seems to hang."""
    helper = _ended("raise SystemExit(3)")
    watch.helpers[helper] = None
    watch.reap()
    assert watch.helpers == {helper: 3}
    watch.reap()
    assert watch.helpers == {helper: 3}


def test_other_children_are_left_to_their_parent(watch: Watch) -> None:
    """The status of another child of this process is left to its parent."""
    other = _ended("pass")
    watch.reap()
    assert watch.status is None
    assert os.waitpid(other, 0) == (other, 0)
