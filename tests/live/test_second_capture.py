"""A process that was stopped before: its calls are restarted through restart_syscall(2), and say what they said."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Tuple

import pytest

from ..support.diagnosing import postmortem, report
from ..support.interpreters import Program, kinds

pytestmark = pytest.mark.live

WAITS = """
import ctypes, select, socket, threading, time
lock = threading.Lock()
lock.acquire()
def timed(): lock.acquire(True, 36000)
def sleeps(): time.sleep(36000)
def nanosleeps(): ctypes.CDLL(None).sleep(36000)
for f in (timed, sleeps, nanosleeps):
    threading.Thread(target=f, name=f.__name__, daemon=True).start()
near, far = socket.socketpair()
poll = select.poll()
poll.register(near, select.POLLIN)
while True:
    calls = {open(f"/proc/self/task/{t.native_id}/syscall").read().split()[0]
             for t in threading.enumerate() if t is not threading.main_thread()}
    if not calls & {"running"} and all(t._started.is_set() for t in threading.enumerate()):
        break
print("ready", flush=True)
poll.poll()
"""


def _captured(program: Program, folder: Path, name: str) -> Tuple[str, Dict[str, Tuple[Any, ...]]]:
    """(signature, what each thread waits for)."""
    done = postmortem("capture", "--pid", str(program.pid), "--observe", "0.2", "-o", name, cwd=folder)
    assert done.returncode == 0, done.stderr
    found = report(folder / name)
    threads = {t["name"]: t["wait"] for p in found["processes"] for t in p["threads"]}
    return found["signature"], {
        n: tuple(w.get(k) for k in ("kind", "syscall", "resource", "fd", "endless")) for n, w in threads.items()
    }


@pytest.mark.parametrize("python", kinds())
def test_a_second_capture_says_what_the_first_said(python: str, tmp_path: Path) -> None:
    """Each thread waits for the same, and the signature is the same."""
    with Program(python, WAITS, tmp_path) as program:
        first, second = (_captured(program, tmp_path, name) for name in ("one", "two"))
        calls = [task.read_text().split()[0] for task in Path(f"/proc/{program.pid}/task").glob("*/syscall")]
        assert "219" in calls  # else nothing was restarted, and this test says nothing
        assert {wait[0] for wait in first[1].values()} >= {"socket", "lock", "sleep"}
    assert second == first
