"""Under a terminal and a real `bash -i`: everything goes with postmortem as it goes without.

Each story is played twice, once with ``run`` as a plain ``exec "$@"`` and once as ``postmortem capture -t 600 -- "$@"``;
what was seen must be the same.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import sys
import termios
import time
from pathlib import Path
from typing import Callable, List, Tuple

import pytest

from ..support import required
from ..support.capturing import DRIVER, HANG_S, environment, wait_until

pytestmark = pytest.mark.live

PROMPT = "sh>"


class Shell:
    """An interactive bash on a terminal of its own, 80 columns by 24 lines. ``run`` is the command under test."""

    def __init__(self, folder: Path, with_postmortem: bool) -> None:
        self.folder = folder
        folder.mkdir()
        prefix = [sys.executable, "-c", DRIVER, "-t", "600", "--"] if with_postmortem else []
        run = folder / "run"
        run.write_text(f'#!/bin/sh\nexec {" ".join(map(shlex.quote, prefix))} "$@"\n')
        run.chmod(0o755)
        changes = {"PATH": f"{folder}:{os.environ['PATH']}", "TERM": "xterm", "PS1": PROMPT, "LESSHISTFILE": "-"}
        env = environment(**changes)
        for name in ("LESS", "PROMPT_COMMAND", "COLUMNS", "LINES"):
            env.pop(name, None)
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(str(folder))
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], env)
        self.resize(24, 80)
        self.shown = ""
        self._seen = 0
        self.until(PROMPT)

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def until(self, part: str) -> str:
        """What was shown since the last time, up to and with this."""
        end = time.monotonic() + HANG_S
        while part not in self.shown[self._seen :]:
            assert time.monotonic() < end, f"{part!r} is not shown; this is: {self.shown!r}"
            if select.select([self.terminal], [], [], 1.0)[0]:
                self.shown += os.read(self.terminal, 65536).decode("utf-8", "replace")
        stop = self.shown.index(part, self._seen) + len(part)
        found, self._seen = self.shown[self._seen : stop], stop
        return found

    def command(self, line: str) -> str:
        """Runs a line to its end; what it showed."""
        self.type(line + "\n")
        self.until("\n")  # the echo
        return self.until(PROMPT)[: -len(PROMPT)]

    def foreground(self) -> int:
        return os.tcgetpgrp(self.terminal)

    def key(self, key: str) -> None:
        """A key for what is in the foreground, once that waits for one."""
        self.rest()
        self.type(key)

    def rest(self) -> None:
        """Until all of the foreground sleeps: less loses a signal between writing and reading."""
        wait_until(lambda: self._rests() and self._rests(), "the foreground's rest")

    def _rests(self) -> bool:
        group = self.foreground()
        states = [stat[0] for stat in map(_stat, filter(str.isdigit, os.listdir("/proc"))) if stat[2:3] == [str(group)]]
        return group != self.pid and set(states) == {"S"}

    def close(self) -> None:
        for group in {self.foreground(), self.pid}:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                continue
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


def _stat(pid: str) -> List[str]:
    """The state, the parent, the process group, …; nothing when it is gone."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return line[line.rindex(")") + 2 :].split()


Story = Callable[[Shell], List[str]]


def both(folder: Path, story: Story) -> Tuple[List[str], List[str]]:
    """What a story saw without and with postmortem."""
    seen = []
    for name, with_postmortem in (("without", False), ("with", True)):
        shell = Shell(folder / name, with_postmortem)
        try:
            seen.append([_scrubbed(each) for each in story(shell)])
        finally:
            shell.close()
    return seen[0], seen[1]


def _scrubbed(text: str) -> str:
    """Process ids differ from run to run."""
    return re.sub(r"\[(\d)\] \d+", r"[\1] PID", text)


def test_job_control(tmp_path: Path) -> None:
    """Ctrl-Z gives the prompt back and a stopped job; fg goes on with it; its end and its status are as ever."""
    required.program("bash")

    def story(shell: Shell) -> List[str]:
        shell.type("run cat\n")
        shell.type("one\n")
        shell.until("one\r\none\r\n")
        shell.key("\x1a")
        seen = [shell.until(PROMPT), shell.command("jobs"), shell.command("echo $?")]
        shell.type("fg\n")
        shell.until("run cat\r\n")
        shell.type("two\n")
        seen.append(shell.until("two\r\ntwo\r\n"))
        shell.key("\x1a")
        seen.append(shell.until(PROMPT))
        shell.type("%1\n")
        shell.until("run cat\r\n")
        shell.type("three\n")
        seen.append(shell.until("three\r\nthree\r\n"))
        shell.key("\x04")
        seen.append(shell.until(PROMPT))
        return [*seen, shell.command("echo status $?; jobs")]

    without, under = both(tmp_path, story)
    assert under == without
    assert "Stopped" in without[0]
    assert without[-1] == "status 0\r\n"


PYTHON = shlex.quote(sys.executable)
#: One process: a shell that is stopped while it starts another one may wait for that in the kernel, for ever.
SLEEPS = 'import sys, time; print("up", flush=True); time.sleep(1); sys.exit(5)'


def test_a_stopped_job_goes_on_in_the_background(tmp_path: Path) -> None:
    """bg: the shell stays in the foreground, the job ends by itself, and the shell tells of it."""
    required.program("bash")

    def story(shell: Shell) -> List[str]:
        shell.type(f"run {PYTHON} -c '{SLEEPS}'\n")
        shell.until("up\r\n")
        shell.key("\x1a")
        seen = [shell.until(PROMPT), shell.command("bg"), shell.command("jobs")]
        seen.append(str(shell.foreground() == shell.pid))
        return [*seen, shell.command("wait %1; echo status $?"), shell.command("jobs")]

    without, under = both(tmp_path, story)
    assert under == without
    assert "status 5" in without[4]


def test_a_background_job_that_reads_is_stopped_and_reads_once_it_is_in_front(tmp_path: Path) -> None:
    """The shell learns that it waits for the terminal, and fg gives it that."""
    required.program("bash")

    def story(shell: Shell) -> List[str]:
        started = shell.command("run sh -c 'read x; echo got $x; exit 3' &")
        end = time.monotonic() + HANG_S
        while "Stopped" not in (listed := shell.command("jobs")):
            assert time.monotonic() < end, listed
        shell.type("fg\n")
        shell.until("exit 3'\r\n")
        shell.type("word\n")
        answered = shell.until("got word\r\n")
        shell.until(PROMPT)
        return [started.splitlines()[0], listed.splitlines()[-1], answered, shell.command("echo status $?")]

    without, under = both(tmp_path, story)
    assert under == without
    assert without[-1] == "status 3\r\n"


def test_kill_of_a_job(tmp_path: Path) -> None:
    """By its number, in the background."""
    required.program("bash")

    def story(shell: Shell) -> List[str]:
        shell.command("run sh -c 'echo > up; exec sleep 600' &")
        wait_until((shell.folder / "up").exists, "the job's start")
        return [shell.command("kill %1; wait %1; echo status $?").splitlines()[-1]]

    without, under = both(tmp_path, story)
    assert under == without == ["status 143"]


@pytest.mark.parametrize("key", ["\x03", "\x1c"], ids=["ctrl-c", "ctrl-backslash"])
def test_keys_that_end_a_program(tmp_path: Path, key: str) -> None:
    """The command dies of it, the shell says 128+N, and a script that ran it goes no further after Ctrl-C."""
    required.program("bash")

    def story(shell: Shell) -> List[str]:
        shell.command("ulimit -c 0")
        shell.type("run sh -c 'echo up; exec sleep 600'; echo and then $?\n")
        shell.until("up\r\n")
        shell.key(key)
        seen = [shell.until(PROMPT)]
        (shell.folder / "script").write_text(
            "for i in 1 2; do run sh -c 'echo up $0; exec sleep 600' $i; done; echo done\n"
        )
        shell.type("bash script\n")
        shell.until("up 1\r\n")
        shell.key(key)
        if key != "\x03":  # bash goes on with the loop then
            seen.append(shell.until("up 2\r\n"))
            shell.key(key)
        return [*seen, shell.until(PROMPT), shell.command("echo $?")]

    without, under = both(tmp_path, story)
    assert [re.sub(r"script: line 1: +\d+ ", "", text) for text in under] == [
        re.sub(r"script: line 1: +\d+ ", "", text) for text in without
    ]


CATCHES = """
import os, signal, sys
def note(number, frame):
    os.write(1, b"caught" + bytes([10]))
signal.signal(signal.SIGINT, note)
print("ready", flush=True)
sys.stdin.readline()
sys.exit(4)
"""


def test_ctrl_c_that_is_caught(tmp_path: Path) -> None:
    """Once, and the program goes on."""
    required.program("bash")

    def story(shell: Shell) -> List[str]:
        shell.type(f"run {PYTHON} -c '{CATCHES.strip()}'\n")
        shell.until("ready\r\n")
        shell.key("\x03")
        seen = [shell.until("caught\r\n")]
        shell.type("\n")
        return [*seen, shell.until(PROMPT), shell.command("echo $?")]

    without, under = both(tmp_path, story)
    assert under == without
    assert "caught" not in without[1]


RESIZED = """
import os, signal, sys
def note(number, frame):
    os.write(1, "changed to {} {}".format(*os.get_terminal_size()).encode() + bytes([10]))
signal.signal(signal.SIGWINCH, note)
print("starts with", *os.get_terminal_size(), flush=True)
sys.stdin.readline()
"""


def test_window_size(tmp_path: Path) -> None:
    """stty tells it right, and a change reaches the command."""
    required.program("bash")
    required.program("stty")

    def story(shell: Shell) -> List[str]:
        seen = [shell.command("run stty size"), shell.command("run stty -a")]
        shell.type(f"run {PYTHON} -c '{RESIZED.strip()}'\n")
        seen.append(shell.until("starts with 80 24\r\n"))
        shell.rest()
        shell.resize(50, 132)
        seen.append(shell.until("changed to 132 50\r\n"))
        shell.type("\n")
        shell.until(PROMPT)
        return [seen[0], seen[1], seen[3], shell.command("run stty size")]

    without, under = both(tmp_path, story)
    assert under == without
    assert without[0] == "24 80\r\n"


def test_a_pager(tmp_path: Path) -> None:
    """less: pages, stops with its screen put away, comes back, follows the window, ends, byte for byte."""
    required.program("bash")
    required.program("less")

    def story(shell: Shell) -> List[str]:
        shell.command("seq -f 'line %g.' 1000 > lines")
        shell.type("run less -X lines\n")
        seen = [shell.until("line 23.\r\n")]
        shell.key(" ")
        seen.append(shell.until("line 46.\r\n:\x1b[K"))  # its prompt: it waits for a key
        shell.key("\x1a")
        seen.append(shell.until(PROMPT))
        shell.type("fg\n")
        seen.append(shell.until("line 46.\r\n:\x1b[K"))
        shell.rest()
        shell.resize(12, 80)
        seen.append(shell.until("line 34.\r\n:\x1b[K"))
        shell.key("g")
        seen.append(shell.until("line 11.\r\n"))
        shell.key("q")
        return [*seen, shell.until(PROMPT), shell.command("echo $?; stty -a")]

    without, under = both(tmp_path, story)
    assert under == without


def test_an_editor(tmp_path: Path) -> None:
    """vi: typed text is saved, also after it was stopped and brought back."""
    required.program("bash")
    required.program("vi")

    def story(shell: Shell) -> List[str]:
        shell.type("run vi -u NONE -i NONE -n text\n")
        shell.until("[New File]")
        shell.until("\x1b[?25h")  # the cursor is there: it takes keys
        shell.type("ifirst\x1b")
        shell.until("first")
        shell.key("\x1a")
        shell.until("Stopped")
        shell.until(PROMPT)
        shell.type("fg\n")
        shell.until("first")
        shell.type("osecond\x1b:wq\n")
        shell.until(PROMPT)
        return [shell.command("echo $?"), shell.command("cat text"), shell.command("stty -a")]

    without, under = both(tmp_path, story)
    assert under == without
    assert without[1] == "first\r\nsecond\r\n"


def test_top(tmp_path: Path) -> None:
    """It draws, and leaves the terminal as it found it."""
    required.program("bash")
    required.program("top")

    def story(shell: Shell) -> List[str]:
        shell.type("run top\n")
        shell.until("COMMAND")
        shell.key("q")
        shell.until(PROMPT)
        return [shell.command("echo $?"), shell.command("stty -a")]

    without, under = both(tmp_path, story)
    assert under == without
