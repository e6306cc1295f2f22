"""Holder and waiters of the GIL, found without the name of any function inside the interpreter."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

from postmortem.extract.assemble.cores import from_core

from ..support.interpreters import Program, matrix
from ..support.takingcores import kernel_core
from ..support.targets import WAITERS

pytestmark = [pytest.mark.live]

PROGRAM = f"""
import ctypes
holding = ctypes.PyDLL(None)  # does not give the GIL up around a call
{WAITERS}
holding.pause()
"""


def _all_want(pid: int) -> bool:
    """Is the main thread in pause(2), and every other in futex(2)?"""
    calls = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        calls[int(task.name)] = (task / "syscall").read_text().split()[0]
    return calls.pop(pid) == "34" and set(calls.values()) == {"202"}


@pytest.mark.parametrize("python", matrix(ctypes=True))
def test_holder_waiters_and_those_who_do_without(python: Any, tmp_path: Path) -> None:
    """One thread holds it, four want it, and one that waits for a lock is neither; also where every symbol is
    stripped. A free-threaded build has no such lock, and nobody waits for it."""
    with Program(python, PROGRAM, tmp_path, cwd=tmp_path) as program:
        deadline = time.monotonic() + 30
        while not python.free_threaded and not _all_want(program.pid):
            assert time.monotonic() < deadline, "the threads never came to want the GIL"
        core = kernel_core(program, tmp_path)
    threads = from_core(core).processes[0].threads
    said: Dict[str, List[str]] = {(t.python[0].function if t.python else "?"): [] for t in threads}
    for thread in threads:
        said[thread.python[0].function].append(thread.gil)
    if python.free_threaded:
        assert not {"holds", "waits"} & {t.gil for t in threads}
        return
    assert said["<module>"] == ["holds"]
    assert said["resting"] == ["detached"]
    # each wakes every 5 ms for a moment, so one of the four may be seen outside of its wait
    assert said["wanting"].count("waits") >= 3
