"""The command under ``capture`` on a terminal of its own: who is in the foreground, what keys do, how it is left."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from ..support.capturing import DRIVER, HANG_S, environment
from ..support.targets import COUNTS_SIGNALS

pytestmark = pytest.mark.live


def on_terminal(words: List[str], answers: List[Tuple[str, bytes]]) -> Tuple[int, str]:
    """Runs words on a terminal of their own; each answer is typed once its text has appeared."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(words[0], words, environment())
    shown, pending = "", list(answers)
    until = time.monotonic() + HANG_S
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                data = os.read(terminal, 4096)
            except OSError:
                break
            if not data:
                break
            shown += data.decode()
        if pending and pending[0][0] in shown:
            os.write(terminal, pending.pop(0)[1])
    else:
        os.kill(pid, signal.SIGKILL)
    _pid, status = os.waitpid(pid, 0)
    os.close(terminal)
    return (os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)), shown


def under_capture(*words: str) -> List[str]:
    return [sys.executable, "-c", DRIVER, *words]


def test_cat_reads_the_terminal(tmp_path: Path) -> None:
    """It is in the foreground: no SIGTTIN, what is typed comes back, and the deadline ends it."""
    words = under_capture("-t", "1", "--observe", "0.2", "-o", str(tmp_path / "bundle"), "--", "cat")
    status, shown = on_terminal(words, [("", b"typed\n")])
    assert status == 124
    assert shown.startswith("typed\r\ntyped\r\n")
    window = finished_window(tmp_path / "bundle")
    assert set(window["states"]) == {"S"}  # T would be the stop for reading from the background
    assert set(window["syscalls"]) == {"read"}


def test_the_terminal_is_taken_back_from_what_was_killed(tmp_path: Path) -> None:
    """A program that turned echo off and is ended cannot turn it on again: whoever typed must see his typing."""
    code = "import time,tty; tty.setraw(0); print('raw', flush=True); time.sleep(600)"
    options = ["-t", "2", "--observe", "0.1", "-s", "KILL", "-o", str(tmp_path / "bundle")]
    inner = [*under_capture(*options, "--"), sys.executable, "-c", code]
    outer = "import subprocess,sys; subprocess.run(sys.argv[1:]); subprocess.run(['stty', '-a'])"
    _status, shown = on_terminal([sys.executable, "-c", outer, *inner], [])
    assert "raw" in shown
    flags = shown[shown.rindex("speed") :].replace(";", " ").split()
    assert {"echo", "icanon", "opost"} <= set(flags)


def finished_window(bundle: Path) -> Dict[str, Any]:
    root = json.loads((bundle / "manifest.json").read_bytes())["root_pid"]
    threads = json.loads((bundle / "raw" / "proc" / str(root) / "window.json").read_bytes())["threads"]
    found: Dict[str, Any] = threads[str(root)]
    return found


def test_ctrl_c_reaches_the_command_once() -> None:
    """The terminal sends it to both of us; passing it on would make it two."""
    words = under_capture("-t", "60", "--", sys.executable, "-c", COUNTS_SIGNALS)
    status, shown = on_terminal(words, [("ready", b"\x03"), ("SIGINT", b"end\n")])
    assert status == 7
    assert "all: SIGINT\r\n" in shown


def test_ctrl_z_stops_both_and_the_time_stands_still() -> None:
    """A shell's job control sees a stopped job; the stop does not count against the deadline."""
    job = """
import os, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], "-t", "3", "--", "sh", "-c", "echo up; read x; exit 9"],
                         preexec_fn=lambda: (os.setpgid(0, 0)))
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
os.tcsetpgrp(0, child.pid)
_pid, status = os.waitpid(child.pid, os.WUNTRACED)
print("stopped by", os.WSTOPSIG(status), flush=True)
time.sleep(4)  # longer than all of the command's time
os.tcsetpgrp(0, child.pid)
os.killpg(child.pid, signal.SIGCONT)
print("again", flush=True)
print("status", child.wait(), flush=True)
"""
    words = [sys.executable, "-c", job, DRIVER]
    _status, shown = on_terminal(words, [("up", b"\x1a"), ("again", b"go on\n")])
    assert f"stopped by {int(signal.SIGTSTP)}" in shown
    assert "status 9" in shown


def test_a_pipeline_on_a_terminal(tmp_path: Path) -> None:
    """The command reads the terminal although its stdout is a pipe."""
    inner = " ".join(f"'{word}'" for word in under_capture("-t", "60", "--", "sh", "-c", "read x; echo got $x")[3:])
    words = ["/bin/sh", "-c", f'"$0" -c "$1" {inner} | cat; echo end', sys.executable, DRIVER]
    _status, shown = on_terminal(words, [("", b"line\n")])
    assert "got line" in shown
    assert shown.endswith("end\r\n")


def test_a_command_that_is_stopped_where_no_shell_would_continue_us(tmp_path: Path) -> None:
    """At a terminal what stops the command stops us; but not in a container's only process group, where the deadline
    would never come. STOP cannot be sent back, and is not sent on."""
    code = "import os, signal, time; print('up', flush=True); os.kill(os.getpid(), signal.SIGSTOP); time.sleep(600)"
    options = ["-t", "1.5", "-k", "1", "--observe", "0.1", "-o", str(tmp_path / "bundle"), "--"]
    status, shown = on_terminal([*under_capture(*options), sys.executable, "-c", code], [])
    assert status == 124, shown
    assert "diagnosed" in shown
