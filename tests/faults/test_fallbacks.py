"""What is had of processes that may not be traced: a last look by py-spy, the kernel's core, /proc; each is told."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, List

import pytest

from postmortem.memory.elfcore import ElfCore
from tests.support.capturing import DRIVER, ROOT, Captured, environment, finished, state, wait_until

PATTERN = Path("/proc/sys/kernel/core_pattern").read_text().strip()

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter is written for x86-64"),
]
to_a_file = pytest.mark.skipif(
    not PATTERN or PATTERN[0] in "|@/", reason=f"core_pattern leads to no file in the working directory: {PATTERN!r}"
)

#: On top of the filter: what kernel.yama.ptrace_scope 3 or a security module does. Neither can be set up for a test.
UNREADABLE = """
import postmortem.capture.freeze.cores as c
from postmortem.capture.freeze import refusal
def refuse(pid, start=None): raise refusal.explain(pid)
c.Source = refuse
"""
WAITS = """
import signal, threading
lock = threading.Lock()
lock.acquire()
print("up", flush=True)
lock.acquire()
"""


def denied(folder: Path, *words: str, driver: str = DRIVER, **settings: Any) -> Captured:
    """A capture that may not trace, run from ``folder``/here."""
    (folder / "here").mkdir(exist_ok=True)
    bundle = folder / "bundle"
    command = [sys.executable, "-m", "tests.faults.denied", sys.executable, "-c", driver, "-o", str(bundle), *words]
    process = subprocess.Popen(
        command,
        cwd=folder / "here",
        env=environment(PYTHONPATH=str(ROOT)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **settings,
    )
    return finished(process, bundle)


def capture(folder: Path, code: str, *options: str, driver: str = UNREADABLE + DRIVER, **settings: Any) -> Captured:
    words = ["-t", "1", "--observe", "0.2", *options, "--", sys.executable, "-c", code]
    return denied(folder, *words, driver=driver, **settings)


def left_in(folder: Path) -> List[str]:
    return sorted(path.name for path in (folder / "here").iterdir())


@to_a_file
def test_the_kernels_core(tmp_path: Path) -> None:
    """The process is ended with a core as the last act; it is in the bundle, private, and nowhere else."""
    done = capture(tmp_path, WAITS)
    assert done.status == 124, done.stderr
    assert "refused" in done.steps("core")[0]["error"]
    (step,) = done.steps("kernel-core")
    assert step["ok"], step
    assert done.manifest["steps"].index(step) > done.manifest["steps"].index(done.steps("core")[0])
    core = ElfCore(str(done.core()))
    assert core.pid == done.root
    assert core.threads[0].regs["orig_rax"] == 202  # futex
    assert done.core().stat().st_mode & 0o777 == 0o600
    assert done.core().stat().st_blocks * 512 <= done.core().stat().st_size + 65536
    assert left_in(tmp_path) == []
    assert done.raw(f"proc/{done.root}/window.json")["threads"]
    assert state(done.root) is None


@to_a_file
def test_a_tree_by_the_kernel(tmp_path: Path) -> None:
    """Each process of it leaves its core, the parent as it was before the child had ended."""
    code = "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).wait()\n"
    done = capture(tmp_path, code)
    assert [step["ok"] for step in done.steps("kernel-core")] == [True, True], done.steps("kernel-core")
    assert ElfCore(str(done.core())).threads[0].regs["orig_rax"] == 61  # wait4
    assert left_in(tmp_path) == []


@to_a_file
def test_signals_that_the_program_handles_are_not_used(tmp_path: Path) -> None:
    """faulthandler and handlers of its own stay silent: another signal is taken."""
    handlers = """
import faulthandler, signal
faulthandler.enable()
signal.signal(signal.SIGQUIT, lambda *_: print("QUIT came", flush=True))
signal.signal(signal.SIGSYS, signal.SIG_IGN)
"""
    done = capture(tmp_path, handlers + WAITS)
    assert done.steps("kernel-core")[0]["ok"], done.steps("kernel-core")
    assert done.stdout == "up\n"
    assert "Fatal" not in done.stderr
    assert done.core().exists()


@to_a_file
def test_a_program_that_handles_all_of_them(tmp_path: Path) -> None:
    """Then there is no core, in one sentence, and the tree is ended by its usual signal."""
    handlers = """
import signal
for number in (3, 4, 5, 6, 7, 8, 11, 24, 25, 31):
    signal.signal(number, lambda *_: print("came", flush=True))
"""
    done = capture(tmp_path, handlers + WAITS)
    (step,) = done.steps("kernel-core")
    assert "handles every signal" in step["error"]
    assert done.stdout == "up\n"
    assert state(done.root) is None


@to_a_file
def test_a_file_of_that_name_is_kept(tmp_path: Path) -> None:
    """What the kernel would overwrite is somebody's: no core then, and the file is as it was."""
    if "%" in PATTERN or Path("/proc/sys/kernel/core_uses_pid").read_text().strip() != "0":
        pytest.skip(f"names are unique here: {PATTERN}")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / PATTERN).write_text("apples")
    done = capture(tmp_path, WAITS)
    (step,) = done.steps("kernel-core")
    assert "would overwrite" in step["error"]
    assert (tmp_path / "here" / PATTERN).read_text() == "apples"
    assert state(done.root) is None


@to_a_file
def test_no_core_is_allowed(tmp_path: Path) -> None:
    """A hard limit of 0 is respected, and named with its remedy."""
    code = "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n" + WAITS
    done = capture(tmp_path, code)
    (step,) = done.steps("kernel-core")
    assert ("RLIMIT_CORE" in step["error"], "ulimit" in step["remedy"]) == (True, True)
    assert not done.core().exists()
    assert resource.getrlimit(resource.RLIMIT_CORE)[1] != 0


@to_a_file
def test_no_room_for_a_core(tmp_path: Path) -> None:
    """Room is looked for before the process is ended so; the sentence says how much is wanted."""
    driver = (
        "from postmortem.foreign.held import Folder\nFolder.free = 17 << 20\n"
        "import postmortem.capture.freeze.kernelcore as k\nk._size = lambda pid: 5 << 20\n" + UNREADABLE + DRIVER
    )
    done = capture(tmp_path, WAITS, driver=driver)
    (step,) = done.steps("kernel-core")
    assert "needs 5 MB, but only 1 MB are free" in step["error"]
    assert left_in(tmp_path) == []


def test_none_asked_for_none_taken(tmp_path: Path) -> None:
    """--core none means the kernel's too."""
    done = capture(tmp_path, WAITS, "--core", "none")
    assert done.steps("kernel-core") == []
    assert left_in(tmp_path) == []
    assert done.status == 124


@pytest.mark.parametrize("readable", [True, False])
def test_a_process_that_is_not_ours_to_end(tmp_path: Path, readable: bool) -> None:
    """With --pid nothing is signalled: the refusal is told, /proc is there, and the process lives on."""
    code = """
import signal
for number in set(signal.valid_signals()) - {9, 19}:
    try:
        signal.signal(number, lambda number, _frame: print("signal", number, flush=True))
    except OSError:
        pass
print("up", flush=True)
while True:
    signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as target:
        assert target.stdout is not None
        assert target.stdout.readline() == "up\n"
        driver = DRIVER if readable else UNREADABLE + DRIVER
        done = denied(tmp_path, "--pid", str(target.pid), "--observe", "0.2", driver=driver)
        assert done.status == 0, done.stderr
        assert "refused" in done.steps("core")[0]["error"]
        assert done.steps("kernel-core") == []
        assert done.raw(f"proc/{target.pid}/process.json")["fds"]
        assert done.core().exists() == readable
        target.send_signal(10)  # were there another before it, it would be said first
        assert target.stdout.readline() == "signal 10\n"
        target.kill()


def test_a_copy_of_a_process_that_runs_on(tmp_path: Path) -> None:
    """Where only ptrace is refused its memory is read, its threads are seen as they wait, and no signal ends it first."""
    code = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n" + WAITS
    done = capture(tmp_path, code, driver=DRIVER)
    (step,) = done.steps("core")
    assert "2 threads did not stop (ptrace is refused)" in step["error"]
    assert "SYS_PTRACE" in step["remedy"]
    assert done.steps("kernel-core") == []
    core = ElfCore(str(done.core()))
    assert sorted(thread.regs["orig_rax"] for thread in core.threads) == [202, 230]  # futex, clock_nanosleep
    assert len(core.read(core.threads[0].regs["rsp"], 8)) == 8
    assert done.manifest["timings"]["pause_s"] is None
    assert done.status == 124


@to_a_file
def test_one_that_never_waits(tmp_path: Path) -> None:
    """/proc shows no registers of a running thread, so the kernel writes the core."""
    done = capture(tmp_path, "print('up', flush=True)\nwhile True: pass", driver=DRIVER)
    assert "refused" in done.steps("core")[0]["error"]
    assert done.steps("kernel-core")[0]["ok"], done.steps("kernel-core")
    assert ElfCore(str(done.core())).pid == done.root
    assert left_in(tmp_path) == []


NO_CORE = """
import postmortem.capture.freeze.moment as core
from postmortem.errors import CaptureFailed
def refuse(*_, **__): raise CaptureFailed("no room for cores", "make some")
core.freeze_and_copy = refuse
"""


def test_a_last_look_by_py_spy(tmp_path: Path) -> None:
    """No window and no core: py-spy is asked once more, and its stack is in the bundle."""
    bundle = tmp_path / "bundle"
    with subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE, text=True) as target:
        assert target.stdout is not None
        assert target.stdout.readline() == "up\n"
        words = ["--pid", str(target.pid), "--observe", "0", "-o", str(bundle)]
        process = subprocess.Popen(
            [sys.executable, "-c", NO_CORE + DRIVER, *words],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        done = finished(process, bundle)
        wait_until(lambda: state(target.pid) == "S", "the target to wait as before")
        target.kill()
    assert "no room for cores" in done.steps("freeze")[0]["error"]
    (step,) = done.steps("py-spy")
    assert step["ok"], step
    events = done.raw(f"pyspy/{target.pid}.chrometrace.json")
    assert any(event["name"] == "<module>" for event in events)


def test_it_ends_in_time_when_a_dump_never_does(tmp_path: Path) -> None:
    """A dump that does not come to an end is cut short; the tree is ended."""
    driver = (
        "import postmortem.capture.freeze.kernelcore as k\nk._PATIENCE_S = k._NO_ANSWER_S = 0.3\n"
        "k._lives = lambda command, pid, lives=k._lives: lives(command, pid) or bool(command.reap())\n"
        "k._signal_for = lambda pid: 18\n" + UNREADABLE + DRIVER  # CONT: no answer
    )
    done = capture(tmp_path, WAITS, driver=driver)
    (step,) = done.steps("kernel-core")
    assert step["ok"] is False
    assert done.status == 124
    assert state(done.root) is None
    assert left_in(tmp_path) == []
    assert os.path.isdir(tmp_path)
