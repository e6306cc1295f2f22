"""Work on foreign input in a child: its end, however it comes, is told, and costs the parent nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Optional, Tuple

import pytest

from postmortem.supervision import Ended, Waiting, run_apart

ROOT = Path(__file__).resolve().parents[2]


def collect(pid: int) -> Optional[Tuple[Optional[int], Optional[int]]]:
    ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended:
        return None
    return (None, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else (os.WEXITSTATUS(status), None)


class Signals:
    """Hands out what was planned, in turn; then waits."""

    def __init__(self, *planned: int) -> None:
        self._planned = list(planned)

    def next(self, seconds: float) -> Optional[int]:
        if self._planned:
            return self._planned.pop(0)
        time.sleep(min(seconds, 0.01))
        return None


def run(work: object, *signals: int, seconds: float = 60.0, patience: float = 3.0) -> Ended:
    waiting = Waiting(Signals(*signals).next, collect, patience_s=patience)
    return run_apart(work, waiting, time.monotonic() + seconds)  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [0, 1, 3, 141])
def test_a_status_is_passed_on(status: int) -> None:
    """As the work returned it; there is nothing to say then."""
    ended = run(lambda: status)
    assert ended == Ended(status)
    assert ended.reason is None


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT])
def test_a_crash_is_told_by_its_signal(number: signal.Signals) -> None:
    """The parent lives on, and knows what it was."""
    ended = run(lambda: os.kill(os.getpid(), number))
    assert (ended.status, ended.signal) == (None, number)
    assert ended.reason == f"was ended by {number.name}"


def test_the_kernels_kill_may_be_for_want_of_memory() -> None:
    """KILL is nobody's but the OOM killer's, as a rule."""
    assert (
        run(lambda: os.kill(os.getpid(), signal.SIGKILL)).reason
        == "was ended by SIGKILL, perhaps because memory ran out"
    )


def test_an_exception_is_a_status() -> None:
    """An exception that the work does not handle becomes the exit status."""
    assert run(lambda: sys.exit(5)).status == 5


def test_what_nobody_has_caught_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    """POSTMORTEM_DEBUG lets exceptions through: they are printed as by an interpreter, with its status."""

    def broken() -> int:
        raise ZeroDivisionError("oops")

    assert run(broken).status == 1
    assert capfd.readouterr().err.splitlines()[-1] == "ZeroDivisionError: oops"


def test_work_without_end_is_ended() -> None:
    """At the moment that was named."""
    ended = run(lambda: time.sleep(600), seconds=0.1)
    assert ended.late
    assert ended.reason == "did not finish in time"


def test_a_signal_reaches_the_child_and_then_ends_it() -> None:
    """It may tidy up; what ignores the signal is killed after some patience."""
    read, write = os.pipe()

    def deaf() -> int:
        signal.signal(signal.SIGTERM, lambda *_: os.write(write, b"heard"))
        os.write(write, b"up...")
        while True:
            time.sleep(600)

    class AfterUp(Signals):
        def next(self, seconds: float) -> Optional[int]:
            if self._planned:
                assert os.read(read, 5) == b"up..."
            return super().next(seconds)

    ended = run_apart(deaf, Waiting(AfterUp(signal.SIGTERM).next, collect, patience_s=0.2))
    assert ended.asked == signal.SIGTERM
    assert ended.signal == signal.SIGKILL
    assert os.read(read, 5) == b"heard"
    os.close(read)
    os.close(write)


#: A command line in which the analysis of some targets ends the process that does it.
DRIVER = """
import os, signal, sys
from postmortem import pipeline
from postmortem.__main__ import main
real = pipeline.analyze_target
def analyse(target, **asked):
    if "crash" in target:
        os.kill(os.getpid(), signal.SIGSEGV)
    return real(target, **asked)
pipeline.analyze_target = analyse
sys.exit(main(["analyze", *sys.argv[1:]]))
"""


def analyze(folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    """Bundles of these names in a folder, analysed from there."""
    for name in names:
        (folder / name / "raw").mkdir(parents=True)
        (folder / name / "manifest.json").write_text('{"schema": "postmortem.manifest/1"}')
    return subprocess.run(
        [sys.executable, "-c", DRIVER, *names],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_a_target_that_ends_the_reader_is_one_sentence(tmp_path: Path) -> None:
    """Status 1, no traceback, what to do next."""
    done = analyze(tmp_path, "crash")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "the process that read it was ended by SIGSEGV" in line
    assert done.stdout == ""


def test_the_other_targets_are_analysed_all_the_same(tmp_path: Path) -> None:
    """Whichever of them crash; each once."""
    done = analyze(tmp_path, "first", "crash", "second", "crash-again")
    assert done.returncode == 1
    assert done.stderr.count("was ended by SIGSEGV") == 2
    assert done.stdout.count("=== first ===\n") == 1
    assert done.stdout.count("=== second ===\n") == 1
