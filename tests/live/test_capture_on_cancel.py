"""``--on-cancel capture``: a job that is cancelled because it hangs leaves a bundle first."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any, List, Tuple

import pytest

from ..support.capturing import DRIVER, HANG_S, Captured, finished, start, state, wait_until

pytestmark = pytest.mark.live

#: Says so when a signal reaches it, and goes on: what a hung program does.
DEAF = """
import os, signal, sys, time
def note(number, frame): os.write(1, f"{signal.Signals(number).name}\\n".encode())
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), note)
os.write(1, b"ready\\n")
while True:
    time.sleep(600)
"""


def cancelled(folder: Path, *words: str, number: int, deaf: Tuple[str, ...] = (), **settings: Any) -> Captured:
    """A capture whose command never ends, ended by a signal to postmortem long before the deadline."""
    bundle = folder / "bundle"
    options = ["-t", "600", "--on-cancel", "capture", "-o", str(bundle), *words]
    process = start(*options, "--", sys.executable, "-c", DEAF, *deaf, **settings)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    return finished(process, bundle)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_is_captured_before_it_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    """With a core, and a report; the exit status is the command's, as without the option."""
    done = cancelled(tmp_path, number=number)
    assert done.status == 128 + number if number == signal.SIGTERM else done.status in (1, 130), done.stderr
    assert done.manifest["trigger"] == {"kind": "signal", "seconds": None, "signal": number.name}
    assert done.core().exists()
    assert f"diagnosed {done.bundle}" in done.stderr
    assert state(done.root) is None


def test_the_signal_comes_to_the_command_after_the_capture(tmp_path: Path) -> None:
    """Passed on as ever; who does not end gets KILL after -k."""
    done = cancelled(tmp_path, "-k", "0.2", number=signal.SIGTERM, deaf=("SIGTERM",))
    assert done.status == 128 + signal.SIGKILL
    assert done.stdout == "SIGTERM\n"
    assert done.core().exists()


@pytest.mark.parametrize(
    ("options", "number"), [(["--on-cancel", "capture"], signal.SIGUSR1), ([], signal.SIGTERM)], ids=["USR1", "default"]
)
def test_other_signals_and_the_default_pass_on(tmp_path: Path, options: List[str], number: signal.Signals) -> None:
    """USR1 asks for no end; without the option neither does TERM ask for a capture."""
    bundle = tmp_path / "bundle"
    words = ["-t", "600", *options, "-o", str(bundle), "--", sys.executable, "-c", DEAF, "SIGUSR1", "SIGTERM"]
    process = start(*words)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.stdout.readline() == f"{number.name}\n"
    assert not bundle.exists()
    process.send_signal(signal.SIGQUIT)
    process.communicate(timeout=HANG_S)


def test_a_diagnosis_that_has_begun_is_finished(tmp_path: Path) -> None:
    """After the deadline, too, the first signal is no reason to drop what takes a moment."""
    slow = "import os, time\n" + DRIVER.replace(
        "    stream.write", "    stream.write('begins\\n'); stream.flush(); time.sleep(0.5)\n    stream.write"
    )
    bundle = tmp_path / "bundle"
    words = ["-t", "0.2", "--observe", "0.1", "--on-cancel", "capture", "-o", str(bundle), "--", "sleep", "600"]
    process = start(*words, driver=slow)
    assert process.stderr is not None
    while process.stderr.readline() not in ("begins\n", ""):
        pass
    process.send_signal(signal.SIGTERM)
    done = finished(process, bundle)
    assert "diagnosed" in done.stderr
    assert done.status == 124


def test_it_is_for_commands(tmp_path: Path) -> None:
    """A process that somebody else started is never signalled: there is nothing to pass on."""
    process = start("--pid", str(os.getpid()), "--on-cancel", "capture")
    done = finished(process, tmp_path)
    assert done.status == 125
    assert "--on-cancel is for a command" in done.stderr


def test_the_job_is_cancelled_while_its_tree_is_large(tmp_path: Path) -> None:
    """A copy that would take longer than there is time is given up; the small things are there."""
    late = "from postmortem.capture.run import command\ncommand.HURRY_S = 0.0\n"
    done = cancelled(tmp_path, "--core", "full", number=signal.SIGTERM, driver=late + DRIVER)
    wait_until(lambda: state(done.root) is None, "the command's end")
    assert done.raw(f"proc/{done.root}/process.json")["pid"] == done.root
    assert done.raw(f"proc/{done.root}/window.json")
