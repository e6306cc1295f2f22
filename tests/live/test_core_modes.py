"""What each mode of ``--core`` keeps, and that the little that is kept says the same as all of it."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

from postmortem.capture.observe import pyspy
from postmortem.evidence import Evidence, Process
from postmortem.extract.assemble.how import How
from postmortem.extract.ownership import grading, wakers
from postmortem.memory.elfcore import ElfCore
from tests.support.bundles import evidence_of

from ..support import required
from ..support.capturing import DRIVER, Captured, capture, finished, start
from ..support.interpreters import Program, kinds
from ..support.inwords import reason, remedy

pytestmark = pytest.mark.live

MB = 1 << 20
FUTEX = 202  # x86-64
#: Locks of several kinds, tasks, deep stacks, variables, and a lot that nobody needs.
PROGRAM = """
import asyncio, queue, threading, time
lock, other, condition, jobs = threading.Lock(), threading.RLock(), threading.Condition(), queue.Queue()
data = [bytearray(1 << 20) for _ in range(150)]
class Worker:
    def __init__(self, number):
        self.number, self.settings = number, {"name": "x" * 50, "list": [1, 2, 3]}
    def run(self, depth=0):
        local = {"depth": depth, "name": "worker %d" % self.number}
        if depth < 10:
            return self.run(depth + 1)
        if self.number == 0:
            with lock:
                time.sleep(1000)
        elif self.number == 1:
            with other:
                with lock:
                    pass
        elif self.number == 2:
            with condition:
                condition.wait()
        else:
            jobs.get()
async def sleeper():
    async with asyncio.Lock():
        await asyncio.sleep(1000)
async def main():
    tasks = [asyncio.ensure_future(sleeper()) for _ in range(20)]
    await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.wait(tasks)
threads = [threading.Thread(target=Worker(n).run, name="worker-%d" % n, daemon=True) for n in range(6)]
for thread in threads:
    thread.start()
    time.sleep(0.02)
asyncio.run(main())
"""


def taken(program: Program, folder: Path, mode: str) -> Captured:
    options = ["--observe", "0", "--core", mode, "-o", str(folder / mode)]
    done = finished(start(*options, "--pid", str(program.pid)), folder / mode)
    assert done.status == 0, done.stderr
    return done


#: What the window measured: part of a process → keys.
_TIMED = {
    "interpreters": ("collections",),
    "loops": ("next_timer_s", "turn_s", "turned", "callback_lasts_s"),
    "tasks": ("moved",),
    "backlogs": ("growth", "seconds", "least"),
}


def said(evidence: Evidence) -> Dict[str, Any]:
    """All that is said of the process, without what time or the counters change, and without who could still reach an
    object: that is searched for in all of the memory, for a limited time."""
    (process,) = evidence.processes
    found = dataclasses.asdict(process) if dataclasses.is_dataclass(process) else _fields(process)
    moving = {"age_s", "io", "rss_growth", "cgroup", "counters", "faults", "seconds"}
    found = {key: value for key, value in found.items() if key not in moving}
    for resource in found["resources"]:
        reaches = any(waker["role"] == "reach" for waker in resource["wakers"])
        for key in ("closed", "because", "wakers") if reaches or resource["closed"] or not resource["wakers"] else ():
            resource.pop(key)
    for thread in found["threads"]:
        for key in ("counters", "samples", "timeline", "state"):
            thread.pop(key, None)
        if thread.get("wait"):
            for key in ("timeout_s", "remaining_s"):
                thread["wait"].pop(key, None)
        if thread.get("calling"):
            thread["calling"].pop("lasts_s", None)
    for task in found["tasks"]:
        (task.get("wait") or {}).pop("remaining_s", None)
    for part, keys in _TIMED.items():
        for one in found[part]:
            for key in keys:
                one.pop(key, None)
    return found


def _fields(process: Process) -> Dict[str, Any]:
    import msgspec  # noqa: PLC0415 - evidence's classes are its

    builtins = msgspec.to_builtins(process)
    assert isinstance(builtins, dict)
    return builtins


@pytest.mark.parametrize("python", kinds())
def test_a_selection_says_what_all_pages_say(tmp_path: Path, python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacks, locks with their holders, tasks, variables: equal, from a core of a few MB instead of 150; what was left out is
    one gap that says how to have it."""
    monkeypatch.setattr(wakers, "SECONDS", 60.0)  # what is found is under test, not how fast this machine is today
    monkeypatch.setattr(grading, "SECONDS", 60.0)
    with Program(os.fspath(python), PROGRAM, tmp_path) as program:
        whole, selected = taken(program, tmp_path, "sparse"), taken(program, tmp_path, "python")
    everything, little = (evidence_of(each.bundle, How(with_locals=True)) for each in (whole, selected))
    assert said(little) == said(everything)
    assert any(thread.holds for thread in little.processes[0].threads)
    assert len(little.processes[0].tasks) == 21
    assert len(everything.gaps) == 0
    (gap,) = little.gaps
    assert "MB of memory" in reason(gap)
    assert remedy(gap) is not None and "--core sparse" in remedy(gap)
    assert _stored(whole.core()) > 150 * MB
    assert _stored(selected.core()) < 12 * MB


def _stored(path: Path) -> int:
    return path.stat().st_blocks * 512


CHURNS = """
import threading, time
class Job:
    def __init__(self, number):
        self.number, self.data = number, ["x" * number for number in range(100)]
    def work(self, depth):
        if depth:
            return self.work(depth - 1)
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            sum(map(len, self.data))
def serve(name):
    while True:
        threads = [threading.Thread(target=Job(n).work, args=(n % 30,), daemon=True) for n in range(10)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
lock = threading.Lock()
def wants():
    lock.acquire()
def holds():
    with lock:
        wants()
stuck = threading.Thread(target=holds, name="stuck", daemon=True)
stuck.start()
while not open("/proc/self/task/%d/syscall" % stuck.native_id).read().startswith("202 ") or not lock.locked():
    time.sleep(0.01)
print("ready", flush=True)
serve("main")
"""


@pytest.mark.parametrize("python", kinds())
def test_a_process_that_never_rests(tmp_path: Path, python: str) -> None:
    """Threads, frames and objects come and go hundreds of times a second: the one that is stuck is found with its lock and
    holder. Four stops cannot always catch up, and then there is a gap that says so, and another capture."""
    with Program(os.fspath(python), CHURNS, tmp_path) as program:
        for attempt in range(4):
            folder = tmp_path / str(attempt)
            folder.mkdir()
            done = taken(program, folder, "python")
            assert program.process.poll() is None
            assert 1 <= len(done.manifest["stops_s"]) <= 4
            evidence = evidence_of(done.bundle)
            if _shows_who_is_stuck(evidence.processes[0]):
                return
            assert [gap for gap in evidence.gaps if "not in the core" in reason(gap)], "missing without a word"
    pytest.fail("four captures in a row were overtaken")


def _shows_who_is_stuck(process: Process) -> bool:
    stuck = [t for t in process.threads if [frame.function for frame in t.python][:2] == ["wants", "holds"]]
    main = next(thread for thread in process.threads if thread.is_main)
    return (
        len(stuck) == 1
        and stuck[0].name == "stuck"
        and stuck[0].wait is not None
        and [lock.resource for lock in stuck[0].holds] == [stuck[0].wait.resource]
        and bool(main.python)
        and main.python[-1].function == "<module>"
    )


def test_auto_takes_every_page_of_a_small_process_and_few_of_a_large_one(tmp_path: Path) -> None:
    """The limit is 64 MB."""
    code = "import time\nheap = b'x' * (%d << 20)\ntime.sleep(600)"
    small = capture(tmp_path / "small", "--", sys.executable, "-c", code % 10, timeout=1)
    large = capture(tmp_path / "large", "--", sys.executable, "-c", code % 100, timeout=1.5)
    assert _stored(small.core()) > 10 * MB
    assert "left_out" not in small.steps("core")[0]
    assert _stored(large.core()) < 10 * MB
    assert "MB of memory" in large.steps("core")[0]["left_out"]


def test_full_has_what_files_hold_too(tmp_path: Path) -> None:
    """The code of the program itself is in the core, not only on the disk."""
    done = capture(tmp_path, "--core", "full", "--", sys.executable, "-c", "import time; time.sleep(600)")
    core = ElfCore(str(done.core()), lambda name: None)
    code = [segment.filesz for segment in core._loads if segment.flags & 1]
    assert sum(code) > 256 << 10


def test_none_takes_no_core_and_stops_nobody(tmp_path: Path) -> None:
    """The diagnosis rests on /proc and py-spy; that there is no core is said."""
    done = capture(tmp_path, "--core", "none", "--", sys.executable, "-c", "import time; time.sleep(600)", timeout=1)
    assert not done.core().exists()
    assert done.manifest["timings"]["pause_s"] is None
    (gap,) = [gap for gap in evidence_of(done.bundle).gaps if gap.source == "core"]
    assert "--core none" in reason(gap)


SHARED = """
import multiprocessing, time
def child(lock, array, ready):
    ready.set()
    with lock:
        time.sleep(600)
if __name__ == "__main__":
    heap = bytearray(100 << 20)
    context = multiprocessing.get_context("fork")
    lock, array, ready = context.Lock(), context.Array("d", 4 << 20), context.Event()
    lock.acquire()
    children = [context.Process(target=child, args=(lock, array, ready)) for _ in range(2)]
    for process in children: process.start()
    ready.wait()
    time.sleep(0.2)
    print("ready", flush=True)
    for process in children: process.join()
"""


def test_semaphores_are_in_every_core_and_shared_arrays_are_not(tmp_path: Path) -> None:
    """A parent forks two children; the semaphore that each waits on can be read in its core."""
    with Program(sys.executable, SHARED, tmp_path) as program:
        done = taken(program, tmp_path, "python")
    evidence = evidence_of(done.bundle)
    assert len(evidence.processes) == 3
    for process in evidence.processes:
        core = ElfCore(str(done.core(process.pid)))
        words = [t.regs["rdi"] for t in core.threads if t.regs["orig_rax"] == FUTEX]
        assert words or process.pid == program.pid
        for word in words:
            assert core.mapped_file(word) is not None, "a semaphore in shared memory"
            assert len(core.read(word, 8)) == 8
        assert _stored(done.core(process.pid)) < 12 * MB


def test_a_newcomer_during_the_stop_is_not_copied_whole(tmp_path: Path) -> None:
    """A child that a large process forks between the look and the stop would otherwise double the pause."""
    code = """
import os, signal, time
heap = bytearray(100 << 20)
def fork(*_):
    if os.fork() == 0:
        time.sleep(600)
signal.signal(signal.SIGUSR1, fork)
print("up", flush=True)
while True: time.sleep(0.01)
"""
    late = """
import os, signal, time
from postmortem.capture.freeze import stop as freeze
stop = freeze.Freezer.stop
def stop_late(self, pids, also_children):
    root = list(pids)[0]
    if also_children:
        os.kill(root, signal.SIGUSR1)
        while not open(f"/proc/{root}/task/{root}/children").read():
            time.sleep(0.01)
    stop(self, pids, also_children)
freeze.Freezer.stop = stop_late
"""
    done = capture(tmp_path, "--", sys.executable, "-c", code, timeout=2, driver=late + DRIVER)
    cores: List[Path] = list((done.bundle / "raw" / "cores").iterdir())
    assert len(cores) == 2
    assert all(_stored(core) < 12 * MB for core in cores)
    for core in cores:
        process = next(p for p in evidence_of(done.bundle).processes if str(p.pid) == core.stem)
        assert process.python is not None


def test_a_program_that_is_no_python_keeps_its_stacks(tmp_path: Path) -> None:
    """Native stacks are whole from a selection too."""
    done = capture(tmp_path, "--core", "python", "--", "sleep", "600")
    (process,) = evidence_of(done.bundle).processes
    assert [thread.native[-1].function for thread in process.threads] in (
        ["_start"],
        ["__libc_start_main"],
        ["main"],
        [None],
    )
    assert subprocess.run(["readelf", "-h", str(done.core())], capture_output=True, check=True, text=True)


HOLES = """
import mmap, time
maps = [mmap.mmap(-1, 16 << 20) for _ in range(8)]
small = [mmap.mmap(-1, 16 << 10) for _ in range(8)]
small[0][:4] = b"here"
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("mode", ["auto", "sparse", "python", "full"])
def test_memory_that_was_never_used_stays_so(tmp_path: Path, mode: str) -> None:
    """Reading a hole of shared memory would make a page there, and could end a target at its limit."""
    with Program(sys.executable, HOLES, tmp_path) as program:
        before = _shared(program.pid)
        done = taken(program, tmp_path, mode)
        assert _shared(program.pid) == before
    core = ElfCore(str(done.core(program.pid)))
    assert _stored(Path(core.path)) < 64 * MB


def _shared(pid: int) -> str:
    return next(row for row in Path(f"/proc/{pid}/status").read_text().splitlines() if row.startswith("RssShmem"))


@pytest.mark.parametrize("mode", ["sparse", "python"])
def test_pages_that_a_thread_of_the_target_would_have_to_fill(tmp_path: Path, mode: str) -> None:
    """userfaultfd(2): whoever reads such a page waits for a thread that stands still. They are not asked for."""
    compiler = required.compiler()
    program = tmp_path / "faults"
    source = Path(__file__).with_name("userfaults.c")
    subprocess.run([compiler, "-o", str(program), str(source), "-lpthread"], check=True)
    with subprocess.Popen([str(program)], stdout=subprocess.PIPE, text=True) as target:
        assert target.stdout is not None
        said = target.stdout.readline()
        if "ready" not in said:
            pytest.skip(f"userfaultfd is not to be had here: {said}")
        bundle = tmp_path / "b"
        done = finished(start("--pid", str(target.pid), "--core", mode, "--observe", "0", "-o", str(bundle)), bundle)
        target.kill()
    assert done.status == 0
    assert done.core(target.pid).exists()


@pytest.mark.parametrize("python", kinds())
def test_peers_read_a_selection(tmp_path: Path, python: str) -> None:
    """py-spy finds the same threads and frames in it as in all pages, where it reads cores of that build at all. It guesses the
    version from what looks like one in the program's data, and is given a second and a third core to guess from."""
    sampler = pyspy.find()
    assert sampler is not None, "py-spy is a dependency"
    said = ""
    with Program(os.fspath(python), PROGRAM, tmp_path) as program:
        whole = _dump(sampler, taken(program, tmp_path, "sparse").core(program.pid))
        if whole.returncode:
            return
        for attempt in range(3):
            folder = tmp_path / str(attempt)
            folder.mkdir()
            selected = _dump(sampler, taken(program, folder, "python").core(program.pid))
            if _without_lines(selected.stdout) == _without_lines(whole.stdout):
                return
            said += selected.stdout + selected.stderr
    pytest.fail(said)


def _dump(sampler: str, core: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sampler, "dump", "--core", str(core)], capture_output=True, text=True, check=False)


def _without_lines(shown: str) -> List[str]:
    """py-spy reads the tables of lines to their ends, we to the line: of those it may lack a piece, and names none."""
    return [re.sub(r":\d+\)$", ")", row) for row in shown.splitlines() if "Signal" not in row]
