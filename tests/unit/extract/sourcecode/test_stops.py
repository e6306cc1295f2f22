"""Where sources send a signal that stops a process: calls, tables of signals, commands; not handlers, nor words of their own."""

from __future__ import annotations

from typing import List, Optional, Tuple

import pytest

from postmortem.extract.sourcecode.stops import stops
from postmortem.extract.sourcecode.usages import Usages


def places(source: str, file: str = "/app/service.py") -> List[Tuple[Optional[int], str]]:
    usages = Usages(lambda asked: source.splitlines() if asked == file else None)
    return [(frame.line, frame.function) for frame in stops(usages, [file], None)]


@pytest.mark.parametrize(
    "line",
    [
        "os.kill(pid, signal.SIGSTOP)",
        "worker.send_signal(SIGTSTP)",
        "worker.suspend()",
        "worker.signal(signal.SIGSTOP)",
        "number = signal.SIGSTOP",
        "yield signal.SIGSTOP, 0.5",
        "subprocess.run(['pkill', '-STOP', name])",
        "actions = {'rest': signal.SIGSTOP}",
    ],
)
def test_what_stops(line: str) -> None:
    """The call itself, or where the signal is chosen that another function sends."""
    assert places(f"def rest():\n    {line}\n") == [(2, "rest")]


@pytest.mark.parametrize(
    "line",
    [
        "signal.signal(signal.SIGTSTP, on_stop)",
        "loop.add_signal_handler(signal.SIGTSTP, on_stop)",
        "if number == signal.SIGSTOP: pass",
        "queue.put('STOP')",
        "os.kill(pid, signal.SIGCONT)",
        "game.suspend(level)",
        "from signal import SIGSTOP",
    ],
)
def test_what_does_not(line: str) -> None:
    """Handlers receive it, comparisons look at it, and a sentinel is only a word."""
    assert places(f"def rest():\n    {line}\n") == []


def test_a_call_over_several_lines_is_one_place() -> None:
    """It is told once, at its first line."""
    assert places("def rest():\n    os.kill(\n        pid,\n        signal.SIGSTOP,\n    )\n") == [(2, "rest")]


def test_libraries_are_left_out() -> None:
    """subprocess itself can send any signal; what cannot be parsed tells nothing."""
    assert places("x.suspend()", "/usr/lib/python3.12/subprocess.py") == []
    assert places("os.kill(pid, signal.SIGSTOP", "/app/broken.py") == []
