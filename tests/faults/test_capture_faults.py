"""What goes wrong under a capture: refusals, missing tools, a tracer that dies, targets that come apart meanwhile."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from postmortem.memory.elfcore import ElfCore
from tests.support.capturing import DRIVER, HANG_S, capture, environment, finished, start, state, wait_until

pytestmark = pytest.mark.live

UNDUMPABLE = """
import ctypes, time
ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE
print("up", flush=True)
time.sleep(600)
"""


def as_nobody(words: List[str]) -> List[str]:
    """The words as an unprivileged user would run them: as they are, unless the tests run as root."""
    if os.geteuid() != 0:
        return words
    assert shutil.which("setpriv"), "util-linux's setpriv is needed to test as root what others may not"
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *words]


def test_a_process_that_forbids_ptrace(tmp_path: Path) -> None:
    """One sentence that names the cause, a next command, and a bundle with what could be had; 124 and ended."""
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents:
        if parent.owner() == Path("~").expanduser().owner() and parent != Path("/tmp"):
            parent.chmod(parent.stat().st_mode | 0o011)
    bundle = tmp_path / "bundle"
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
    options = ["-t", "3", "--observe", "0.2", "-o", str(bundle)]
    words = as_nobody([python, "-c", DRIVER, *options, "--", python, "-c", UNDUMPABLE])
    process = subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    done = finished(process, bundle)
    assert (done.status, done.stdout) == (124, "up\n"), done.stderr
    refused = done.steps("core")
    assert [step["ok"] for step in refused] == [False]
    assert "PR_SET_DUMPABLE" in refused[0]["error"]
    assert refused[0]["remedy"].startswith("run the same command as root")
    assert not done.core().exists()
    thread = done.raw(f"proc/{done.root}/window.json")["threads"][str(done.root)]
    assert thread["states"] == {"S": sum(thread["states"].values())}
    assert thread["last_syscall"] is None  # not permitted, so unknown
    assert state(done.root) is None


def test_py_spy_is_missing(tmp_path: Path) -> None:
    """A failed step with the command that helps; everything else is there."""
    driver = "import postmortem.capture.observe.pyspy as p\np.find = lambda: None\n" + DRIVER
    done = capture(tmp_path, "--", sys.executable, "-c", "import time; time.sleep(600)", timeout=1, driver=driver)
    (step,) = done.steps("py-spy")
    assert (step["ok"], step["remedy"].startswith("run pip install py-spy")) == (False, True)
    assert done.core().exists()


def test_py_spy_fails(tmp_path: Path) -> None:
    """What it said becomes the step's error; its output never reaches our streams."""
    broken = tmp_path / "py-spy"
    broken.write_text("#!/bin/sh\necho noise\necho 'Error: this interpreter is unknown to me' >&2\nexit 1\n")
    broken.chmod(0o755)
    driver = f"import postmortem.capture.observe.pyspy as p\np.find = lambda: {str(broken)!r}\n" + DRIVER
    done = capture(tmp_path, "--", sys.executable, "-c", "import time; time.sleep(600)", timeout=1, driver=driver)
    (step,) = done.steps("py-spy")
    assert "this interpreter is unknown to me" in step["error"]
    assert "noise" not in done.stdout + done.stderr


def test_py_spy_hangs(tmp_path: Path) -> None:
    """It is given a moment, then killed; the capture goes on."""
    stuck = tmp_path / "py-spy"
    stuck.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\ntrap '' INT TERM\nwhile :; do sleep 600; done\n")
    stuck.chmod(0o755)
    driver = (
        f"import postmortem.capture.observe.pyspy as p\np.find = lambda: {str(stuck)!r}\np._PATIENCE_S = 0.3\n" + DRIVER
    )
    done = capture(tmp_path, "--", sys.executable, "-c", "import time; time.sleep(600)", timeout=1, driver=driver)
    (step,) = done.steps("py-spy")
    assert "did not finish in time" in step["error"]
    assert done.core().exists()
    assert state(int((tmp_path / "pid").read_text())) is None


HOLDS_THE_STOP = """
import sys
from postmortem.capture.freeze import moment as core
def hold(*_):
    print("frozen", flush=True)
    sys.stdin.read()
core._images = hold
"""
BEATS = """
import threading, time
def beat():
    for number in range(10**6):
        print(number, flush=True)
        time.sleep(0.02)
for _ in range(5):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
beat()
"""


def threads_stopped(pid: int) -> List[str]:
    """State letters of all threads."""
    paths = Path(f"/proc/{pid}/task").glob("*/stat")
    return [re.sub(r".*\) ", "", path.read_text(), flags=re.DOTALL)[0] for path in paths]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_postmortem_dies_while_the_target_is_stopped(tmp_path: Path, number: signal.Signals) -> None:
    """The target goes on at once: nothing of ours can leave it stopped."""
    with subprocess.Popen([sys.executable, "-c", BEATS], stdout=subprocess.PIPE, text=True) as target:
        assert target.stdout is not None
        target.stdout.readline()
        words = ["--pid", str(target.pid), "-o", str(tmp_path / "b"), "--observe", "0.1"]
        tracer = start(*words, driver=HOLDS_THE_STOP + DRIVER, stdin=subprocess.PIPE)
        assert tracer.stdout is not None
        assert tracer.stdout.readline() == "frozen\n"
        assert set(threads_stopped(target.pid)) == {"t"}
        tracer.send_signal(number)
        tracer.wait(HANG_S)
        wait_until(lambda: "t" not in threads_stopped(target.pid), "the target to go on")
        seen = int(target.stdout.readline())
        wait_until(lambda: int(target.stdout.readline()) > seen + 50, "its heartbeat")  # type: ignore[union-attr]
        tracer.communicate()
        target.kill()


def test_an_error_in_the_middle_of_the_stop_lets_everything_go(tmp_path: Path) -> None:
    """The step says what happened, the target runs."""
    driver = "from postmortem.capture.freeze import moment as core\ncore._images = lambda *_: 1 / 0\n" + DRIVER
    with subprocess.Popen([sys.executable, "-c", BEATS], stdout=subprocess.PIPE, text=True) as target:
        assert target.stdout is not None
        target.stdout.readline()
        bundle = tmp_path / "b"
        done = finished(start("--pid", str(target.pid), "-o", str(bundle), "--observe", "0.1", driver=driver), bundle)
        assert set(threads_stopped(target.pid)) <= {"S", "R"}
        target.kill()
    assert done.status == 0
    assert "ZeroDivisionError" in done.steps("freeze")[0]["error"]


def test_the_main_thread_has_exited(tmp_path: Path) -> None:
    """A zombie leader: its other threads are captured all the same, through one of them."""
    code = """
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(600,), name="survivor").start()
print(threading.enumerate()[1].native_id, flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""
    done = capture(tmp_path, "--", sys.executable, "-c", code, timeout=2)
    survivor = done.stdout.split()[0]
    assert done.status == 124
    window = done.raw(f"proc/{done.root}/window.json")
    assert window["threads"][survivor]["last_syscall"]["name"] == "clock_nanosleep"
    assert done.raw(f"proc/{done.root}/process.json")["exe"] is not None
    assert [thread.tid for thread in ElfCore(str(done.core())).threads] == [int(survivor)]
    assert state(done.root) is None


def test_threads_that_come_and_go(tmp_path: Path) -> None:
    """New threads are caught, vanished ones left out: the core has whoever was there, and nobody stays behind."""
    code = """
import threading, time
def short(): time.sleep(0.001)
while True:
    try:
        threading.Thread(target=short).start()
    except RuntimeError:
        time.sleep(0.01)
"""
    done = capture(tmp_path, "--", sys.executable, "-c", code, timeout=1, observe=0.5)
    assert done.status == 124
    assert done.core().exists()
    assert all(step["ok"] for step in done.manifest["steps"]), done.manifest["steps"]


def test_processes_that_come_and_go(tmp_path: Path) -> None:
    """A tree that forks all the time is captured and ended whole."""
    script = "while :; do sleep 0.01; sleep 0.01 & done"
    done = capture(tmp_path, "--", "sh", "-c", script, timeout=1, observe=0.3)
    assert done.status == 124
    assert done.core().exists()
    group = done.root
    assert not [p for p in Path("/proc").glob("[0-9]*") if _group(p) == group]


RUNS_ANOTHER_PROGRAM = """
import os, signal, time
from postmortem.capture.freeze import stop as freeze
stop = freeze.Freezer.stop
def stop_late(self, pids, also_children):
    root = list(pids)[0]
    os.kill(root, signal.SIGUSR1)
    while open(f"/proc/{root}/comm").read() != "sleep\\n":
        time.sleep(0.01)
    stop(self, [root], also_children)
freeze.Freezer.stop = stop_late
"""


def test_a_process_runs_another_program_just_before_the_stop(tmp_path: Path) -> None:
    """What was opened beforehand shows the old program's memory; the core shows the new one's."""
    script = "trap 'exec sleep 600' USR1; while :; do sleep 0.05; done"
    done = capture(tmp_path, "--", "sh", "-c", script, driver=RUNS_ANOTHER_PROGRAM + DRIVER)
    core = ElfCore(str(done.core()))
    assert core.argv == "sleep 600"
    assert len(core.read(core.threads[0].regs["rsp"], 8)) == 8
    assert any(mapped.path.endswith("/sleep") for mapped in core.files)


def _group(process: Path) -> int:
    try:
        line = (process / "stat").read_text()
    except OSError:
        return -1
    fields = line[line.rindex(")") + 2 :].split()
    return -1 if fields[0] in "ZX" else int(fields[2])


def test_the_command_ends_during_the_window(tmp_path: Path) -> None:
    """Its time was up, so 124 as timeout(1) says; the bundle tells what was seen. It ends once its facts are there."""
    facts = f"{tmp_path}/bundle/raw/proc/$$/process.json"
    done = capture(tmp_path, "--", "sh", "-c", f"until test -s {facts}; do sleep 0.05; done", timeout=0.4, observe=600)
    assert done.status == 124
    assert done.raw(f"proc/{done.root}/process.json")["comm"] == "sh"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_postmortem_is_asked_to_end_during_the_window(tmp_path: Path, number: signal.Signals) -> None:
    """It hurries: the window is short, the copy is made, the tree is ended; the bundle says why it is short."""
    bundle = tmp_path / "bundle"
    process = start("-t", "0.3", "--observe", "600", "-o", str(bundle), "--", "sleep", "600")
    assert process.stderr is not None
    assert "capturing into" in process.stderr.readline()
    wait_until(lambda: bool(list(bundle.glob("raw/proc/*/process.json"))), "the first facts")
    process.send_signal(number)
    done = finished(process, bundle)
    assert done.status == 124
    assert state(done.root) is None
    assert number.name in done.steps("window")[0]["left_out"]
    assert done.steps("freeze")[0]["ok"]
    assert done.core().exists()
    assert done.raw(f"proc/{done.root}/window.json")["seconds"] < HANG_S


def test_postmortem_is_asked_to_end_twice(tmp_path: Path) -> None:
    """The second wish, which a runner sends some seconds after the first, is meant: nothing more is copied."""
    late = "import signal\nfrom postmortem.capture import steps as session\nhurry = session.Session._hurry\n"
    late += "def _hurry(self, step): hurry(self, step); self.command.interrupted = signal.SIGTERM\n"
    late += "session.Session._hurry = _hurry\n"
    bundle = tmp_path / "bundle"
    process = start("-t", "0.3", "--observe", "600", "-o", str(bundle), "--", "sleep", "600", driver=late + DRIVER)
    wait_until(lambda: bool(list(bundle.glob("raw/proc/*/process.json"))), "the first facts")
    process.send_signal(signal.SIGINT)
    done = finished(process, bundle)
    assert done.status == 124
    assert state(done.root) is None
    assert "SIGTERM" in done.steps("freeze")[0]["error"]
    assert not done.core().exists()


def test_the_bundle_cannot_be_written(tmp_path: Path) -> None:
    """125 and a sentence, and the tree is ended all the same."""
    driver = "import postmortem.bundle as b\ndef no(*_): raise OSError(28, 'No space left on device')\n"
    driver += "b.Bundle.write = no\n" + DRIVER
    code = "import os,time; print(os.getpid(), flush=True); time.sleep(600)"
    done = capture(tmp_path, "--", sys.executable, "-c", code, timeout=1, driver=driver)
    assert done.status == 125
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert state(int(done.stdout)) is None


def test_a_full_disk_is_foreseen(tmp_path: Path) -> None:
    """Cores that would not fit are not begun; the step says how much is needed."""
    driver = "from postmortem.foreign.held import Folder\nFolder.free = 1 << 20\n" + DRIVER
    done = capture(tmp_path, "--", "sleep", "600", driver=driver)
    (step,) = done.steps("freeze")
    assert "MB are free" in step["error"]
    assert done.status == 124


def test_a_signal_on_its_way_when_the_tree_stops_is_not_lost(tmp_path: Path) -> None:
    """Each of many signals, sent while the capture stops and goes on, is delivered."""
    code = """
import os, signal
reading, writing = os.pipe()
os.set_blocking(writing, False)
signal.set_wakeup_fd(writing)  # the C handler itself writes: no signal falls between a check and a wait
signal.signal(signal.SIGUSR1, lambda *_: None)
while True:
    os.write(1, b"x")
    os.read(reading, 1)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, bufsize=0) as target:
        assert target.stdout is not None
        assert target.stdout.read(1) == b"x"
        tracer = start("--pid", str(target.pid), "-o", str(tmp_path / "b"), "--observe", "0.05")
        sent = 0
        while tracer.poll() is None:
            target.send_signal(signal.SIGUSR1)
            sent += 1
            assert select.select([target.stdout], [], [], HANG_S)[0], f"signal {sent} was lost"
            assert target.stdout.read(1) == b"x"
        tracer.communicate()
        target.kill()
    assert tracer.returncode == 0
    assert sent > 10
