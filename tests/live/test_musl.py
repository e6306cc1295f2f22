"""CPython on musl, the C library of Alpine Linux: what is found elsewhere there than on glibc."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from postmortem.arch.registersets import stack_pointer
from postmortem.cpython.sync.semaphores import Count, read_count
from postmortem.extract.assemble.cores import from_core
from postmortem.libc.stackbounds import bounds
from postmortem.memory import ElfCore

from ..interpreters.wanted import BY_ID
from ..support.interpreters import Program, one
from ..support.takingcores import kernel_core
from ..support.targets import WAITERS

pytestmark = [pytest.mark.live, pytest.mark.parametrize("python", [one(BY_ID["3.11-musl"])])]

#: The regular expression takes for ever, and does not give the GIL up.
WANTED_GIL = f"""
import re
{WAITERS}
re.match("(a+)+$", "a" * 60 + "b")
"""

SEMAPHORES = """
import multiprocessing, threading, time
threading.stack_size(512 << 10)
empty, full = multiprocessing.Semaphore(0), multiprocessing.Semaphore(3)
def taking():
    empty.acquire()
threading.Thread(target=taking, daemon=True).start()
print(empty._semlock.handle, full._semlock.handle)
print("ready", flush=True)
time.sleep(3600)
"""


def _wait_until_all_want(pid: int) -> None:
    """Every thread but the main one in futex(2)."""
    deadline = time.monotonic() + 30
    while True:
        tasks = [task for task in Path(f"/proc/{pid}/task").iterdir() if task.name != str(pid)]
        if all((task / "syscall").read_text().startswith("202 ") for task in tasks):
            return
        assert time.monotonic() < deadline, "the threads never came to want the GIL"


def test_who_wants_the_gil_sleeps_on_his_own_stack(python: Any, tmp_path: Path) -> None:
    """The condition of the GIL has the list of those words; a thread that waits for a lock is none of them."""
    with Program(python, WANTED_GIL, tmp_path, cwd=tmp_path) as program:
        _wait_until_all_want(program.pid)
        core = kernel_core(program, tmp_path)
    threads = from_core(core).processes[0].threads
    said = [(thread.python[-4 if thread.name != "MainThread" else -1].function, thread.gil) for thread in threads]
    assert said.count(("<module>", "holds")) == 1
    assert said.count(("resting", "detached")) == 1
    # each wakes every 5 ms for a moment, so one of the four may be seen outside of its wait
    assert said.count(("wanting", "waits")) >= 3
    wants = [thread.wait for thread in threads if thread.gil == "waits"]
    assert {(wait.kind, wait.resource, wait.endless) for wait in wants if wait} == {("gil", "gil-0", True)}
    assert not any(frame.function == "memset" for thread in threads for frame in thread.native)


def test_semaphores_and_stacks(python: Any, tmp_path: Path) -> None:
    """A semaphore's value, also while somebody waits for it, and how large the stack of a thread is."""
    with Program(python, SEMAPHORES, tmp_path, cwd=tmp_path) as program:
        empty, full = map(int, program.lines[-1].split())
        image = ElfCore(str(kernel_core(program, tmp_path)))
    assert read_count(image, empty) == Count(0, 1)
    assert read_count(image, full) == Count(3, 0)
    (other,) = [thread for thread in image.threads if thread.tid != program.pid]
    found = bounds(image, other.regs, stack_pointer(other.regs))
    assert found is not None
    assert found.low <= stack_pointer(other.regs) < found.high
    assert found.low - found.guard >= 4096
    assert 512 << 10 <= found.high - found.low < 520 << 10  # with what is rounded up for the thread's own data
