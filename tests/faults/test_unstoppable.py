"""Targets that a tracer cannot stop, or that stand still already: what is to be read of them is read, in bounded time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List

import pytest

from postmortem.memory.elfcore import ElfCore
from tests.support.capturing import Captured, finished, start, state, wait_until

from ..support import required

pytestmark = pytest.mark.live

FREEZERS = {
    "version 1": ("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"),
    "version 2": ("/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"),
    "version 2 alone": ("/sys/fs/cgroup", "cgroup.freeze", "1", "0"),
}
WAITS_FOR_A_LOCK = """
import threading
print("up", flush=True)
threading.Thread(target=threading.Event().wait, name="other").start()
lock = threading.Lock()
lock.acquire()
lock.acquire()
"""
#: CLONE_VFORK without CLONE_VM: the kernel holds the parent, in uninterruptible sleep, until the child is gone.
VFORKS = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
print("up", flush=True)
child = ctypes.CDLL(None).syscall(56, 0x4000 | 17, 0, 0, 0, 0)
time.sleep(600)
"""


@contextlib.contextmanager
def running(code: str) -> Iterator[subprocess.Popen[str]]:
    """A Python program that has said "up"."""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as target:
        assert target.stdout is not None
        assert target.stdout.readline() == "up\n"
        try:
            yield target
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(target.pid, signal.SIGKILL)


def capture_pid(folder: Path, pid: int) -> Captured:
    bundle = folder / "bundle"
    return finished(start("--pid", str(pid), "--observe", "0.1", "-o", str(bundle)), bundle)


def states(pid: int) -> List[str]:
    """State letters of all threads."""
    stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return [text[text.rindex(")") + 2] for text in stats]


def system_call(core: ElfCore, tid: int) -> int:
    return next(thread for thread in core.threads if thread.tid == tid).regs["orig_rax"]


@pytest.mark.parametrize("version", FREEZERS)
def test_a_frozen_control_group(tmp_path: Path, version: str) -> None:
    """Its memory is read without stopping it, its threads have their stacks, nobody waits, and it stays frozen."""
    base, file, frozen, thawed = FREEZERS[version]
    group = Path(base) / f"postmortem-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as exc:
        pytest.skip(f"no freezer of {version} may be used here: {exc}")
    try:
        if not (group / file).exists():
            pytest.skip(f"{base} is no freezer of {version}")
        with running(WAITS_FOR_A_LOCK) as target:
            wait_until(lambda: states(target.pid) == ["S", "S"], "both threads to wait")
            (group / "cgroup.procs").write_text(str(target.pid))
            (group / file).write_text(frozen)
            wait_until(lambda: _is_frozen(group), "the group to be frozen")
            done = capture_pid(tmp_path, target.pid)
            assert _is_frozen(group)
            (group / file).write_text(thawed)
            assert done.status == 0, done.stderr
            core = ElfCore(str(done.core()))
            assert {system_call(core, thread.tid) for thread in core.threads} == {202}  # futex
            assert len(core.threads) == 2
            assert len(core.read(core.threads[0].regs["rsp"], 8)) == 8
            if version == "version 1":
                assert "its control group is frozen" in done.steps("core")[0]["error"]
            wait_until(lambda: set(states(target.pid)) == {"S"}, "it to go on")
    finally:
        _remove(group, file, thawed)


def test_a_command_that_is_frozen_cannot_be_ended(tmp_path: Path) -> None:
    """Not even KILL reaches it in a group of version 1: that is said, with what thaws it, in bounded time."""
    base, file, frozen, thawed = FREEZERS["version 1"]
    group = Path(base) / f"postmortem-test-end-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as exc:
        pytest.skip(f"no freezer of version 1 may be used here: {exc}")
    try:
        code = f"""
import os, time
open({str(group / "cgroup.procs")!r}, "w").write(str(os.getpid()))
open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
time.sleep(600)
"""
        bundle = tmp_path / "bundle"
        words = ["-t", "2", "-k", "0.2", "--observe", "0.1", "-o", str(bundle), "--", sys.executable, "-c", code]
        # no pipes: the command would hold them open
        process = start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until((tmp_path / "pid").exists, "the command to be in its group")
        (group / file).write_text(frozen)
        done = finished(process, bundle)
        assert done.status == 124
        (step,) = done.steps("end")
        assert f"did not end: {done.root}" in step["error"]
        assert step["remedy"] == f"echo THAWED > {group}/freezer.state"
        assert done.core().exists()
        (group / file).write_text(thawed)
        wait_until(lambda: state(done.root) is None, "KILL to arrive")
    finally:
        _remove(group, file, thawed)


def _is_frozen(group: Path) -> bool:
    old = group / "freezer.state"
    if old.exists():
        return old.read_text() == "FROZEN\n"
    return "frozen 1" in (group / "cgroup.events").read_text()


def _remove(group: Path, file: str, thawed: str) -> None:
    if (group / file).exists():
        (group / file).write_text(thawed)
    wait_until(lambda: _removed(group), "the group to be empty")


def _removed(group: Path) -> bool:
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()


def test_a_thread_in_uninterruptible_sleep(tmp_path: Path) -> None:
    """Not waited for long; the other threads are stopped as ever, its own registers are what /proc tells."""
    with running(VFORKS) as target:
        wait_until(lambda: sorted(states(target.pid)) == ["D", "S"], "uninterruptible sleep")
        done = capture_pid(tmp_path, target.pid)
        assert done.status == 0, done.stderr
        (step,) = [step for step in done.steps("core") if step["subject"] == f"process {target.pid}"]
        assert "1 thread did not stop (uninterruptible sleep)" in step["error"]
        core = ElfCore(str(done.core()))
        assert len(core.threads) == 2
        assert system_call(core, target.pid) == 56  # clone
        assert sorted(states(target.pid)) == ["D", "S"]
        children = [int(p) for p in Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text().split()]
        assert [done.core(child).exists() for child in children] == [True]


def test_a_stopped_job_stays_stopped(tmp_path: Path) -> None:
    """SIGSTOP's state T is neither lifted nor lost, and everything is in the core."""
    with running(WAITS_FOR_A_LOCK) as target:
        wait_until(lambda: states(target.pid) == ["S", "S"], "both threads to wait")
        target.send_signal(signal.SIGSTOP)
        wait_until(lambda: set(states(target.pid)) == {"T"}, "a stopped job")
        done = capture_pid(tmp_path, target.pid)
        assert done.status == 0, done.stderr
        assert all(step["ok"] for step in done.steps("core"))
        assert len(ElfCore(str(done.core())).threads) == 2
        wait_until(lambda: set(states(target.pid)) == {"T"}, "the job to be as it was")
        target.send_signal(signal.SIGCONT)
        wait_until(lambda: set(states(target.pid)) == {"S"}, "the job to go on")


def test_another_debugger_is_named(tmp_path: Path) -> None:
    """One who traces the target already keeps it; who that is stands in the manifest."""
    with running(WAITS_FOR_A_LOCK) as target:
        words = [required.program("gdb"), "-nx", "-q", "-p", str(target.pid)]
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
        ) as gdb:
            wait_until(lambda: set(states(target.pid)) == {"t"}, "gdb to stop it")
            done = capture_pid(tmp_path, target.pid)
            gdb.kill()
        assert done.status == 0, done.stderr
        (step,) = done.steps("core")
        assert step["ok"] is False
        assert f"already being traced by gdb (process {gdb.pid})" in step["error"]
        assert state(target.pid) is not None


def test_a_busy_thread_is_waited_for(tmp_path: Path) -> None:
    """Patience with the sleeping is none with the running: the core has both, read by ptrace, at any load."""
    spins = WAITS_FOR_A_LOCK.replace("lock.acquire()\nlock.acquire()", "while True: pass")
    with running(spins) as target:
        wait_until(lambda: len(states(target.pid)) == 2, "both threads to run")
        done = capture_pid(tmp_path, target.pid)
        assert all(step["ok"] for step in done.steps("core")), done.manifest["steps"]
        assert len(ElfCore(str(done.core())).threads) == 2
