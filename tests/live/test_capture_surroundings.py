"""What the window tells of the control groups that hold a process up: real groups, of whatever version is mounted."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator, Optional

import pytest

from postmortem.capture.procfs import cgroups, parsers
from postmortem.evidence import ControlGroup
from tests.support.bundles import surroundings_of

from ..support.capturing import finished, start, state, wait_until

pytestmark = pytest.mark.live


@contextlib.contextmanager
def group(hierarchy: str, pid: int) -> Iterator[Path]:
    """A control group of its own with one process in it; gone again afterwards."""
    mount = cgroups.mounts(parsers.text(parsers.read("/proc/self/mountinfo"))).get(hierarchy)
    if mount is None:
        pytest.skip(f"no {hierarchy or 'version 2'} hierarchy is mounted")
    folder = Path(mount.point) / f"postmortem-test-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / "cgroup.procs").write_text(str(pid))
    except OSError as exc:
        pytest.skip(f"control groups cannot be made here: {exc}")
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)

        def removed() -> bool:
            with contextlib.suppress(OSError):
                folder.rmdir()
            return not folder.exists()

        wait_until(removed, f"{folder} is empty")


@contextlib.contextmanager
def target(code: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()


def observed(tmp_path: Path, pid: int) -> Optional[ControlGroup]:
    bundle = tmp_path / "bundle"
    words = ("--pid", str(pid), "-o", str(bundle), "--observe", "0.6", "--core", "none")
    done = finished(start(*words), bundle)
    assert done.status == 0, done.stderr
    return surroundings_of(bundle / "raw" / "proc" / "machine.json").control_group(pid)


@pytest.mark.parametrize(
    ("hierarchy", "file", "freeze", "thaw"),
    [("", "cgroup.freeze", "1", "0"), ("freezer", "freezer.state", "FROZEN", "THAWED")],
    ids=["version 2", "version 1"],
)
def test_a_frozen_group_is_seen(tmp_path: Path, hierarchy: str, file: str, freeze: str, thaw: str) -> None:
    """And one that is not is known not to be."""
    with target("import time; print('up', flush=True); time.sleep(600)") as process, group(
        hierarchy, process.pid
    ) as folder:
        before = observed(tmp_path / "before", process.pid)
        (folder / file).write_text(freeze)
        try:
            wait_until(lambda: _frozen(folder), "the group is frozen")
            after = observed(tmp_path / "after", process.pid)
        finally:
            (folder / file).write_text(thaw)
    assert before is not None and before.frozen is False
    assert after is not None and after.frozen is True
    assert after.path == f"/{folder.name}"


def _frozen(folder: Path) -> bool:
    state = folder / "freezer.state"
    if state.exists():
        return state.read_text().strip() == "FROZEN"
    return "frozen 1" in (folder / "cgroup.events").read_text()


def test_throttling_is_seen(tmp_path: Path) -> None:
    """A busy process that may use a fiftieth of a CPU runs into its quota in nearly every period, on a busy machine too."""
    with target("print('up', flush=True)\nwhile True: pass") as process, group("cpu", process.pid) as folder:
        if not (folder / "cpu.cfs_quota_us").exists():
            pytest.skip("the kernel has no CPU quotas")
        (folder / "cpu.cfs_quota_us").write_text("2000")
        found = observed(tmp_path, process.pid)
    assert found is not None
    assert found.cpu_quota == 0.02
    assert found.throttled is not None and found.throttled > 0.5
    assert found.throttled_s is not None and found.throttled_s > 0.1


READER = """
import os, threading, mmap
def read():
    print("up", flush=True)
    while True:
        with open(os.devnull, "rb", 0) as stream:
            for _ in range(100):
                stream.read(1)
        block = mmap.mmap(-1, 1 << 20)
        block.write(bytes(1 << 20))
        block.close()
thread = threading.Thread(target=read, name="reader")
thread.start()
thread.join()
"""


def test_calls_and_faults_are_counted_per_thread(tmp_path: Path) -> None:
    """What reads and touches new memory is told from what waits beside it."""
    with target(READER) as process:
        bundle = tmp_path / "bundle"
        done = finished(start("--pid", str(process.pid), "-o", str(bundle), "--observe", "0.5"), bundle)
        window: Any = done.raw(f"proc/{process.pid}/window.json")
        process.kill()
    threads = window["threads"]
    idle = threads.pop(str(process.pid))
    (busy,) = threads.values()
    assert busy["read_calls"] > 100 and busy["minor_faults"] > 100
    assert idle["read_calls"] == 0 and idle["minor_faults"] == 0
    assert window["minor_faults"] >= busy["minor_faults"]
    assert window["cpu_s"] + 0.001 >= busy["cpu_s"] > 0  # they are rounded to different digits


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP])
def test_the_signal_that_stopped_it_is_told(tmp_path: Path, number: signal.Signals) -> None:
    """The kernel tells it to a tracer; it stays stopped when it is let go. Whoever runs has no such signal."""
    # in a group of its own: one without a parent in its session, as a runner's may be, is not stopped by SIGTSTP
    code = (
        "import os, signal, time; os.setpgid(0, 0); signal.signal(signal.SIGTSTP, signal.SIG_DFL); "
        "print('up', flush=True); time.sleep(600)"
    )
    with target(code) as process:
        before = _told(tmp_path / "before", process.pid)
        process.send_signal(number)
        wait_until(lambda: state(process.pid) == "T", "it is stopped")
        after = _told(tmp_path / "after", process.pid)
        assert state(process.pid) == "T"
    assert "stopped_by" not in before
    assert (after["stopped_by"], after["state"]) == (number, "T")


def _told(tmp_path: Path, pid: int) -> Any:
    bundle = tmp_path / "bundle"
    done = finished(start("--pid", str(pid), "-o", str(bundle), "--observe", "0.1"), bundle)
    assert done.status == 0, done.stderr
    return done.raw(f"proc/{pid}/process.json")
