"""Many of everything: processes that breed, five hundred children, two thousand threads; and targets that end at any step."""

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
from tests.support.capturing import DRIVER, Captured, capture, environment, finished, start, state, wait_until

pytestmark = pytest.mark.live

#: Every process forks again and again; a pipe of tokens bounds how many live at a time.
BREEDS = """
import os, random, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody collects them: the kernel does
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # tests beside this one keep the other processors
taking, giving = os.pipe()
os.set_blocking(taking, False)
os.write(giving, b"x" * 60)
print("up", flush=True)
root = os.getpid()
while True:
    try:
        os.read(taking, 1)
    except BlockingIOError:
        if os.getpid() != root and random.random() < 0.2:
            os.write(giving, b"x")
            os._exit(0)
        time.sleep(0.001)
        continue
    if os.fork() == 0:
        random.seed()
        if random.random() < 0.3:
            os.setsid()
"""
CROWD = """
import os, sys, time
for _ in range(500):
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
print("up", flush=True)
time.sleep(600)
"""
THREADS = """
import threading
threading.stack_size(1 << 17)
gate = threading.Event()
def wait_here(): gate.wait()
for _ in range(2000):
    threading.Thread(target=wait_here, daemon=True).start()
print("up", flush=True)
gate.wait()
"""


def descendants_left(mark: str) -> List[int]:
    """Live processes with ``mark`` in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (path / "environ").read_bytes() and state(int(path.name)) is not None:
                found.append(int(path.name))
        except OSError:
            continue
    return found


@pytest.fixture(autouse=True)
def nobody_left(tmp_path: Path) -> Iterator[None]:
    """A test that fails must not leave its crowd to the next one: a few that go on breeding slow down all that follow."""
    yield
    looks = 0
    while looks < 10:  # one that forks and ends is in none of the listings at times
        left = descendants_left(str(tmp_path))
        looks = 0 if left else looks + 1
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def marked(folder: Path, code: str, *options: str, timeout: float = 2.0) -> Captured:
    """A capture whose command's processes, and no others, have the folder's name in their environment."""
    bundle = folder / "bundle"
    words = ["env", f"POSTMORTEM_TEST_MARK={folder}", sys.executable, "-c", code]
    return finished(start("-t", str(timeout), "--observe", "0.2", "-o", str(bundle), *options, "--", *words), bundle)


def test_a_tree_that_forks_without_pause(tmp_path: Path) -> None:
    """It is captured as far as it goes and ended to the last one, with those in sessions of their own."""
    done = marked(tmp_path, BREEDS, "-k", "0.5")
    assert done.status == 124, done.stderr
    assert "Traceback" not in done.stderr
    assert len(list((done.bundle / "raw" / "cores").glob("*.core"))) > 20
    assert descendants_left(str(tmp_path)) == []
    assert done.steps("end")[0]["ok"], done.steps("end")


def test_five_hundred_children(tmp_path: Path) -> None:
    """Each has its facts and its core."""
    done = marked(tmp_path, CROWD, timeout=4)
    assert done.stdout == "up\n"
    assert done.status == 124, done.stderr
    assert len(done.manifest["processes"]) == 501
    assert len(list((done.bundle / "raw" / "cores").glob("*.core"))) == 501
    assert not [step for step in done.manifest["steps"] if not step["ok"] and step["step"] != "py-spy"]
    assert descendants_left(str(tmp_path)) == []


def test_two_thousand_threads(tmp_path: Path) -> None:
    """All of them are in the core, with their registers."""
    done = capture(tmp_path, "--", sys.executable, "-c", THREADS, timeout=4)
    assert done.stdout == "up\n"
    assert done.status == 124, done.stderr
    core = ElfCore(str(done.core()))
    assert len(core.threads) == 2001
    assert all(thread.regs["rsp"] for thread in core.threads)
    assert all(step["ok"] for step in done.steps("core"))
    assert state(done.root) is None


# ---------------------------------------------------------------------- ends

ENDS_AT_STEP = """
import os, signal, time
from postmortem.bundle import Bundle
real = Bundle.step
def ending(self, name, subject, **settings):
    if name == {step!r}:
        end()
    return real(self, name, subject, **settings)
Bundle.step = ending
"""
ENDS_INSIDE = """
import postmortem.capture.{module}
real = postmortem.capture.{module}.{name}
def ending(*args, **settings):
    end()
    return real(*args, **settings)
postmortem.capture.{module}.{name} = ending
"""
END = """
import os, signal, sys, time
def end():
    pid = int(os.environ["VICTIM"]) if "VICTIM" in os.environ else 0
    for child in [pid] if pid else map(int, open(f"/proc/self/task/{os.getpid()}/children").read().split()):
        try:
            if b"victim" in open(f"/proc/{child}/cmdline", "rb").read():
                os.kill(child, signal.SIGKILL)
        except OSError:
            pass
    time.sleep(0.02)
"""
MOMENTS = [
    *(ENDS_AT_STEP.format(step=step) for step in ("processes", "window", "net", "freeze", "core")),
    ENDS_INSIDE.format(module="procfs.facts", name="process_json"),
    ENDS_INSIDE.format(module="observe.window", name="Window"),
    ENDS_INSIDE.format(module="freeze.stop", name="run"),
    ENDS_INSIDE.format(module="freeze.image", name="Source"),
    ENDS_INSIDE.format(module="freeze.moment", name="looks"),
    ENDS_INSIDE.format(module="freeze.moment", name="_images"),
    ENDS_INSIDE.format(module="freeze.memcopy", name="into_arena"),
    ENDS_INSIDE.format(module="freeze.elfcore", name="notes"),
    ENDS_INSIDE.format(module="fallbacks", name="last_look"),
]


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda code: code.split("== ")[-1].split("\n")[0].split("real = ")[-1])
def test_the_target_ends_at_a_step(tmp_path: Path, moment: str) -> None:
    """Whichever it is: a bundle, the documented status, no defect of ours told as a step's failure."""
    done = capture(
        tmp_path, "--", sys.executable, "-c", "victim = 1; import time; time.sleep(600)", driver=END + moment + DRIVER
    )
    assert done.status == 124, done.stderr
    assert "Traceback" not in done.stderr
    assert done.manifest["root_pid"] > 0
    assert not [step for step in done.manifest["steps"] if "inside postmortem" in (step["error"] or "")]
    assert done.steps("end")[0]["ok"]


# ---------------------------------------------------------------------- signals

HEARS = """
import os, signal
heard = sorted(set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP})
signal.pthread_sigmask(signal.SIG_BLOCK, heard)
print("up", os.getpid(), flush=True)
while True:
    print(signal.sigwaitinfo(heard).si_signo, flush=True)
"""


@pytest.mark.parametrize("core", ["sparse", "python", "full", "none"])
def test_no_signal_reaches_a_process_that_is_watched(tmp_path: Path, core: str) -> None:
    """Under --pid nothing but ptrace's stop: a target that hears every signal hears none before the test's own."""
    with subprocess.Popen([sys.executable, "-c", HEARS], stdout=subprocess.PIPE, text=True) as target:
        assert target.stdout is not None
        assert target.stdout.readline() == f"up {target.pid}\n"
        bundle = tmp_path / "bundle"
        words = [sys.executable, "-m", "postmortem", "capture", "--pid", str(target.pid), "--observe", "0.2"]
        process = subprocess.Popen(
            [*words, "--core", core, "-o", str(bundle)], env=environment(), stderr=subprocess.PIPE, text=True
        )
        done = finished(process, bundle)
        assert done.status == 0, done.stderr
        target.send_signal(signal.SIGUSR2)
        assert target.stdout.readline() == f"{int(signal.SIGUSR2)}\n"
        wait_until(lambda: state(target.pid) == "S", "the target to wait as before")
        target.kill()


def test_a_command_that_is_left_running(tmp_path: Path) -> None:
    """--on-timeout leave: captured, no signal heard, alive after postmortem has ended."""
    words = ["--on-timeout", "leave", "--", sys.executable, "-c", HEARS]
    with (tmp_path / "said").open("w+") as said:  # a pipe would be held open by the command
        done = capture(tmp_path, *words, timeout=1, stdout=said, stderr=said)
        said.seek(0)
        lines = said.read().splitlines()
    assert done.status == 124
    try:
        assert state(done.root) == "S"
        assert done.core().exists()
        assert done.steps("kernel-core") == []
        assert lines[0] == f"up {done.root}"
        assert not [line for line in lines if line.isdigit()], "it heard a signal"
    finally:
        os.kill(done.root, signal.SIGKILL)


def test_deadlines_do_not_follow_the_clock() -> None:
    """Setting the machine's clock makes no capture longer or shorter: durations come from the monotonic clock alone."""
    package = Path(__file__).resolve().parents[2] / "postmortem"
    uses = {
        str(path.relative_to(package)): path.read_text().count("time.time()")
        for path in package.rglob("*.py")
        if "time.time()" in path.read_text()
    }
    told = {
        "capture/run/command.py": 1,
        "pytesting/junit.py": 1,
        "capture/freeze/moment.py": 1,  # both clocks, so that what a core holds can be told in either
        "cores/dumptimes.py": 1,  # when a core's file was written, told in the monotonic clock of this boot
    }
    assert uses == told, (
        "the clock tells only the moments at which something began or was stopped, never how long to wait"
    )
