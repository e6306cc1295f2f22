"""Who holds the GIL and who waits for it, told without the name of any function inside the interpreter."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from postmortem.extract.cores import from_core

from .interpreters import matrix

pytestmark = [pytest.mark.live]

PROGRAM = """
import ctypes, sys, threading, time
holding = ctypes.PyDLL(None)  # does not give the GIL up around a call
def wanting():
    while True:
        time.sleep(0.01)
def resting():
    lock.acquire()
lock = threading.Lock()
lock.acquire()
threads = [threading.Thread(target=wanting, daemon=True) for _ in range(4)]
threads.append(threading.Thread(target=resting, daemon=True))
for thread in threads:
    thread.start()
time.sleep(0.2)
print("ready", flush=True)
holding.pause()
"""


def _all_want(pid: int) -> bool:
    """Is the main thread in pause(2), and every other in futex(2)?"""
    calls = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        calls[int(task.name)] = (task / "syscall").read_text().split()[0]
    return calls.pop(pid) == "34" and set(calls.values()) == {"202"}


@pytest.mark.parametrize("python", matrix())
def test_holder_waiters_and_those_who_do_without(python: Any, tmp_path: Path) -> None:
    """One thread holds it, four want it, and one that waits for a lock is neither; also where every symbol is
    stripped. A free-threaded build has no such lock, and nobody waits for it."""
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    with subprocess.Popen(
        [os.fspath(python), "-c", PROGRAM], stdout=subprocess.PIPE, cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, unlimited),  # noqa: PLW1509 - no threads here
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            deadline = time.monotonic() + 30
            while not python.free_threaded and not _all_want(process.pid):
                assert time.monotonic() < deadline, "the threads never came to want the GIL"
            process.send_signal(signal.SIGABRT)
            process.wait(60)
        finally:
            process.kill()
    threads = from_core(next(tmp_path.glob("core*"))).processes[0].threads
    said = {(t.python[0].function if t.python else "?"): [] for t in threads}
    for thread in threads:
        said[thread.python[0].function].append(thread.gil)
    if python.free_threaded:
        assert not {"holds", "waits"} & {t.gil for t in threads}
        return
    assert said["<module>"] == ["holds"]
    assert said["resting"] == ["detached"]
    # each wakes every 5 ms for a moment, so one of the four may be seen outside of its wait
    assert said["wanting"].count("waits") >= 3
