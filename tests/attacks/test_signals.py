"""Signals go to the process that was meant, and a capture of one process does not stop a machine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Dict, Iterator, List

import pytest

from postmortem.capture.freeze import kernelcore, ptrace
from postmortem.capture.procfs import tree
from postmortem.capture.run import termination
from postmortem.capture.run.command import Command
from postmortem.errors import TargetNotFound
from postmortem.pytesting import page, start
from postmortem.pytesting.target import Target
from tests.support.capturing import DRIVER, Captured, finished
from tests.support.capturing import start as start_capture

from . import namespaces

pytestmark = pytest.mark.live

SLEEPER = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[str]]:
    """A child of ours that ends when its stdin does."""
    with subprocess.Popen(
        [sys.executable, "-S", "-c", SLEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def found(pid: int) -> tree.Member:
    member = tree.look(pid)
    assert member is not None
    return member


def unharmed(process: subprocess.Popen[str]) -> bool:
    """It ends as it was to, by itself."""
    assert process.stdin is not None
    process.stdin.close()
    return process.wait(60) == 0


class Ended(Command):
    """A command that has ended and was waited for, without a process group of its own."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid, False, False, set())
        self.status = 0

    def reap(self) -> None:
        """The test waits for its children itself."""

    def pause(self, seconds: float) -> bool:
        time.sleep(seconds)
        return True


# ---------------------------------------------------------------------- numbers that were given anew

#: The command ends at TERM and leaves a process of another session behind, which does not.
COMMAND = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open(sys.argv[1] + "/stubborn", "w").write(str(os.getpid()))
    time.sleep(600)
while not os.path.exists(sys.argv[1] + "/stubborn"):
    time.sleep(0.01)
with open(sys.argv[1] + "/leader.part", "w") as written:
    written.write(str(os.getpid()))
os.rename(sys.argv[1] + "/leader.part", sys.argv[1] + "/leader")
time.sleep(600)
"""
#: Somebody else's process gets the command's number as soon as that is free, and leads a group and a session by it.
TAKER = """
folder, command, words = sys.argv[1], sys.argv[2], sys.argv[3:]
capture = subprocess.Popen([*words, "--", sys.executable, "-c", command, folder])
while not os.path.exists(folder + "/leader"):
    assert capture.poll() is None
    time.sleep(0.01)
number = int(open(folder + "/leader").read())
while os.path.exists(f"/proc/{number}"):
    time.sleep(0.005)
bystander = fork_as(number)
if bystander == 0:
    os.setsid()
    time.sleep(600)
    os._exit(0)
while os.getpgid(number) != number:
    time.sleep(0.005)
assert capture.poll() is None, "it was over before the number was given anew"
status = capture.wait()
stubborn = int(open(folder + "/stubborn").read())
print("status", status, "bystander", "killed" if os.waitpid(bystander, os.WNOHANG)[0] else "lives",
      "stubborn", "lives" if os.path.exists(f"/proc/{stubborn}") else "gone")
"""


def test_who_gets_the_number_of_the_command_is_left_alone(tmp_path: Path) -> None:
    """The command ends at the first signal, its number and so its group's are another's by the time of the KILL, and that
    one is no part of the tree; what the command left behind is ended all the same."""
    namespaces.needed()
    bundle = tmp_path / "bundle"
    words = [
        sys.executable,
        "-c",
        DRIVER,
        "-t",
        "1",
        "--observe",
        "0.1",
        "-k",
        "3",
        "--core",
        "none",
        "-o",
        str(bundle),
    ]
    status, said, errors = namespaces.run(TAKER, str(tmp_path), COMMAND, *words)
    assert (status, said) == (0, "status 124 bystander lives stubborn gone\n"), errors
    captured = Captured(124, "", "", bundle)
    assert [step["ok"] for step in captured.steps("end")] == [True]


def test_a_member_that_ended_between_the_look_and_the_signal(sleeper: subprocess.Popen[str]) -> None:
    """A process that has taken over the number began later, and gets none of the signals that end a tree."""
    stale = found(sleeper.pid)._replace(start=1)
    looks: List[List[tree.Member]] = [[stale]]
    left = termination.end_tree(Ended(2**22 + 1), lambda: looks.pop() if looks else [], signal.SIGTERM, 1.0)
    assert left == []
    assert unharmed(sleeper)


def test_what_a_group_whose_leader_was_waited_for_has_started_since(sleeper: subprocess.Popen[str]) -> None:
    """The group cannot be signalled as a whole any more: its processes are, one by one, and those that the first look
    missed."""
    looks: List[List[tree.Member]] = [[], [found(sleeper.pid)], []]
    command = Ended(sleeper.pid)
    command.own_group = True
    assert not command.leads_group
    assert termination.end_tree(command, lambda: looks.pop(0) if looks else [], signal.SIGTERM, 1.0) == []
    assert sleeper.wait(10) == -signal.SIGTERM


def test_a_core_by_the_kernel_costs_nobody_else(sleeper: subprocess.Popen[str]) -> None:
    """Neither signals nor limits of a process whose number was another's."""
    import resource  # noqa: PLC0415

    stale = found(sleeper.pid)._replace(start=1)
    before = resource.prlimit(sleeper.pid, resource.RLIMIT_CORE)
    with pytest.raises(TargetNotFound):
        kernelcore._allow(stale, 1 << 30)
    assert kernelcore._end(Ended(2**22 + 1), stale, signal.SIGABRT)
    assert resource.prlimit(sleeper.pid, resource.RLIMIT_CORE) == before
    assert unharmed(sleeper)


def test_nothing_is_sent_to_a_command_that_was_waited_for(sleeper: subprocess.Popen[str]) -> None:
    """TERM to postmortem while a capture on demand outlives the command: the number may be another's."""
    for own_group in (False, True):
        command = Ended(sleeper.pid)
        command.own_group = own_group
        command.send(signal.SIGKILL)
    assert unharmed(sleeper)


def test_the_tracer_does_not_take_the_commands_end(sleeper: subprocess.Popen[str]) -> None:
    """A command that ends while it is being stopped keeps its status, and with it its number, for whoever waits for it."""
    stops: List[ptrace.Stop] = []

    def stopping() -> None:
        ptrace.seize(sleeper.pid)
        assert sleeper.stdin is not None
        sleeper.stdin.close()
        stop = None
        while stop is None:
            stop = ptrace.poll_stop(sleeper.pid)
        stops.append(stop)

    tracer = threading.Thread(target=stopping)
    tracer.start()
    tracer.join(60)
    assert stops == [ptrace.Stop(0, True)]
    assert os.waitpid(sleeper.pid, os.WNOHANG) == (sleeper.pid, 0)
    sleeper.returncode = 0


def test_a_proc_of_another_namespace(tmp_path: Path) -> None:
    """There a number means another process than in a system call: nobody is signalled by what was read from it."""
    namespaces.needed()
    program = """
import ctypes
from postmortem import signalling
libc = ctypes.CDLL(None, use_errno=True)
child = os.fork()
if child == 0:
    time.sleep(600)
CLONE_NEWPID = 0x20000000
assert libc.unshare(CLONE_NEWPID) == 0
if os.fork() == 0:  # process 1 of the inner namespace, which sees the outer one's /proc
    inner = fork_as(child)
    if inner == 0:
        time.sleep(600)
    start = signalling.begun(child)  # the outer one's
    sent = signalling.send(inner, start, signal.SIGKILL)
    print("inner", inner == child, "known", start is not None, "sent", sent, "ended", os.waitpid(inner, os.WNOHANG)[0] != 0)
    sys.stdout.flush()
    os._exit(0)
os.wait()
"""
    status, said, errors = namespaces.run(program)
    assert (status, said) == (0, "inner True known True sent False ended False\n"), errors


def test_a_watchdog_wakes_nobody_else(sleeper: subprocess.Popen[str]) -> None:
    """pytest's watchdog is no child of pytest's: once it was killed its number may be given to any process."""

    class Page:
        def __init__(self) -> None:
            self.words = {page.WATCHDOG: sleeper.pid}

    dead = object.__new__(start.Watchdog)
    dead.page, dead._began = Page(), 1  # type: ignore[assignment]
    dead.wake()
    dead.close()
    assert unharmed(sleeper)


def test_a_watchdog_ends_nobody_else(sleeper: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The test process may end between the watchdog's last look at it and the signal."""
    target = Target(sleeper.pid)
    assert target.alive
    target._start = ["1"]
    monkeypatch.setattr(Target, "alive", True)
    target.signal(signal.SIGKILL)
    assert unharmed(sleeper)


# ---------------------------------------------------------------------- one process, not a machine

#: A program with so many children; all of them end with its stdin.
PARENT = """
import os, sys, time
for _child in range(int(sys.argv[1])):
    if os.fork() == 0:
        os.read(0, 1)
        os._exit(0)
print("ready", flush=True)
os.read(0, 1)
"""
#: The entry point, with another process in the part of the first one, or another number of descendants that are too many.
CHANGED = """
import sys
from postmortem.capture.run import conclusion as aftermath
name, value = sys.argv.pop(1).split("=")
setattr(aftermath, name, int(value))
"""


@contextlib.contextmanager
def parent(children: int) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-S", "-c", PARENT, str(children)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process


def captured(folder: Path, pid: int, *words: str, change: str = "INIT=1") -> Captured:
    arguments = ["--pid", str(pid), "-o", str(folder / "bundle"), "--observe", "0.1", *words]
    return finished(start_capture(change, *arguments, driver=CHANGED + DRIVER), folder / "bundle")


def left_out(done: Captured) -> List[Dict[str, str]]:
    return [step for step in done.steps("processes") if "left_out" in step]


def test_the_first_process_is_captured_alone(tmp_path: Path) -> None:
    """All others descend from it: none of them is looked at, stopped or copied, and it is said who does that."""
    with parent(2) as process:
        done = captured(tmp_path, process.pid, change=f"INIT={process.pid}")
        assert done.status == 0
        assert done.manifest["processes"] == [process.pid]
        assert sorted(core.name for core in (done.bundle / "raw" / "cores").iterdir()) == [f"{process.pid}.core"]
        (step,) = left_out(done)
        assert step["ok"]
        assert step["left_out"] == f"process {process.pid} was captured without its descendants: 2 processes"
        assert step["remedy"] == f"postmortem capture --pid {process.pid} --tree takes all of them"
        told = f"capturing process {process.pid} alone, since every process descends from it: --tree takes all of them"
        assert told in done.stderr


def test_tree_takes_all_of_the_first_process(tmp_path: Path) -> None:
    """It was asked for."""
    with parent(2) as process:
        done = captured(tmp_path, process.pid, "--tree", change=f"INIT={process.pid}")
        assert len(done.manifest["processes"]) == 3
        assert all(done.core(pid).exists() for pid in done.manifest["processes"])
        assert left_out(done) == []


@pytest.mark.parametrize(("children", "words", "taken"), [(2, (), 3), (3, (), 1), (3, ("--tree",), 4)])
def test_so_many_descendants_are_taken(tmp_path: Path, children: int, words: List[str], taken: int) -> None:
    """As many as there may be, and not one more, unless all are asked for."""
    with parent(children) as process:
        done = captured(tmp_path, process.pid, *words, change="MOST_DESCENDANTS=2")
        assert len(done.manifest["processes"]) == taken
        assert bool(left_out(done)) == (taken == 1)
        assert ("since it has 3 descendants" in done.stderr) == (taken == 1)


def test_a_hundred_and_one_descendants(tmp_path: Path) -> None:
    """With the limit that is documented, and the report says that the others were left out."""
    with parent(101) as process:
        words = ["--pid", str(process.pid), "-o", str(tmp_path / "bundle"), "--observe", "0.1"]
        command = [sys.executable, "-m", "postmortem", "capture", *words]
        done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=120)
        assert done.returncode == 0
        bundle = Captured(0, "", done.stderr, tmp_path / "bundle")
        assert bundle.manifest["processes"] == [process.pid]
        report = " ".join(done.stderr.split())
        assert f"process {process.pid} was captured without its descendants: 101 processes" in report
        assert f"next time: postmortem capture --pid {process.pid} --tree takes all of them" in report


#: Process 1 has two children, and starts the capture as well.
FIRST = """
folder, words = sys.argv[1], sys.argv[2:]
children = []
for _child in range(2):
    children.append(os.fork())
    if children[-1] == 0:
        time.sleep(600)
        os._exit(0)
done = subprocess.run([*words, "--pid", "1", "-o", folder + "/bundle"], capture_output=True, text=True)
print(done.returncode, *[name in done.stderr for name in ("alone", "--tree")])
"""


@pytest.mark.parametrize(("more", "said"), [((), "0 True True\n"), (("--tree",), "0 False False\n")])
def test_the_real_first_process_of_a_namespace(tmp_path: Path, more: List[str], said: str) -> None:
    """The first process of a container, for example: the capture descends from it too, and is never part of the tree."""
    namespaces.needed()
    words = [sys.executable, "-c", DRIVER, "--observe", "0.1", *more]
    status, out, errors = namespaces.run(FIRST, str(tmp_path), *words)
    assert (status, out) == (0, said), errors
    done = Captured(0, "", "", tmp_path / "bundle")
    assert done.manifest["processes"] == ([1, 2, 3] if more else [1])
    assert {core.name for core in (done.bundle / "raw" / "cores").iterdir()} == {
        f"{pid}.core" for pid in done.manifest["processes"]
    }
