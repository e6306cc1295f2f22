"""One trial: a capture, a SIGKILL at some moment of it, and what must hold afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional

from ...support.capturing import environment
from .target import Target, stopped, tracers

#: What takes longer than this hangs.
HANG_S = 120.0
_MODES = ("sparse", "python")
_OBSERVE = ("--observe", "0.2")


class Outcome(NamedTuple):
    """``problem`` is None when everything held; ``bundle``: "whole", "read", "empty", "none"."""

    mode: str
    after_s: float
    traced: bool
    bundle: str
    problem: Optional[str]


class Failed(AssertionError):
    """Something that must hold did not."""


def postmortem(*words: str) -> List[str]:
    return [sys.executable, "-m", "postmortem", *words]


def started(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        postmortem(*words),
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


class Span(NamedTuple):
    """How long a capture takes, with its diagnosis, and how long it stops the target: seconds, the medians of three."""

    whole_s: float
    pause_s: float


def measured(folder: Path, target: Target, mode: str) -> Span:
    """Return the median time and pause of three runs of ``capture --pid``. Raises Failed."""
    spans = []
    for number in range(3):
        began = time.monotonic()
        bundle = folder / f"measured-{number}"
        done = started("capture", "--pid", str(target.pid), "--core", mode, *_OBSERVE, "-o", str(bundle))
        _out, err = done.communicate(timeout=HANG_S)
        if done.returncode:
            raise Failed(err.decode())
        pause = json.loads((bundle / "manifest.json").read_bytes())["timings"]["pause_s"]
        spans.append(Span(time.monotonic() - began, pause))
        shutil.rmtree(bundle)
    return Span(statistics.median(s.whole_s for s in spans), statistics.median(s.pause_s for s in spans))


# ---------------------------------------------------------------------- postmortem is killed


def kill_postmortem(folder: Path, target: Target, mode: str, after_s: float, while_traced: bool) -> Outcome:
    """``while_traced``: as soon as the target is seen to be traced, and ``after_s`` later; else ``after_s`` after the start."""
    bundle = folder / "bundle"
    capture = started("capture", "--pid", str(target.pid), "--core", mode, *_OBSERVE, "-o", str(bundle))
    if while_traced:
        _await_tracer(capture, target.pid)
    time.sleep(after_s)
    traced = any(_is_of(capture.pid, tracer) for tracer in tracers(target.pid)[:4])
    capture.kill()
    capture.communicate(timeout=HANG_S)
    kind, problem = "none", None
    try:
        _goes_on(target)
        kind = _is_read(bundle)
    except Failed as exc:
        problem = str(exc)
    shutil.rmtree(bundle, ignore_errors=True)
    return Outcome(mode, after_s, traced, kind, problem)


def _await_tracer(capture: subprocess.Popen[bytes], pid: int) -> None:
    path = f"/proc/{pid}/status"
    while capture.poll() is None:
        for _look in range(50):
            with open(path, "rb") as stream:
                if b"TracerPid:\t0\n" not in stream.read():
                    return


def _is_of(pid: int, tid: int) -> bool:
    return tid != 0 and os.path.isdir(f"/proc/{pid}/task/{tid}")


def _goes_on(target: Target) -> None:
    """No thread of it stands still or is traced, and its heart beats. Raises Failed."""
    until = time.monotonic() + 5
    while stopped(target.pid) or any(tracers(target.pid)):
        if time.monotonic() > until:
            raise Failed(f"the target stands still: {stopped(target.pid)}, tracers {set(tracers(target.pid))}")
        time.sleep(0.001)
    before = target.beat
    while target.beat < before + 5:
        if time.monotonic() > until:
            raise Failed("the target's heart does not beat")
        time.sleep(0.005)


def _is_read(bundle: Path) -> str:
    """``analyze`` reads what there is; for a folder that holds nothing it has a sentence. Raises Failed."""
    if not bundle.exists():
        return "none"
    words = postmortem("analyze", str(bundle))
    done = subprocess.run(words, env=environment(), capture_output=True, timeout=HANG_S, check=False)
    said = done.stderr.decode()
    if "Traceback" in said:
        raise Failed(f"analyze: {said}")
    whole = (bundle / "report.json").exists()
    if done.returncode == 0:
        return "whole" if whole else "read"
    files = [path for path in bundle.rglob("*") if path.is_file() and not path.name.endswith(".part")]
    if done.returncode == 1 and not files and len(said.strip().splitlines()) == 1:
        return "empty"
    raise Failed(f"analyze ended with {done.returncode}: {said}; there are {files}")


# ---------------------------------------------------------------------- the job is cancelled

#: Who gets the signals: postmortem alone, its process group, or it and the shell around it.
CANCELLED = ("process", "group", "shell")
_GRACE_S = 10.0


def cancel_job(
    folder: Path, whom: str, mode: str, after_s: float, deadline_s: float, threads: int, heap_mb: int
) -> Outcome:
    """As a runner does: TERM ``after_s`` after the command is up (the ``deadline_s`` of which may have struck by then), and
    KILL ten seconds later to whoever is left. ``traced``: KILL was needed."""
    bundle = folder / "bundle"
    beats = folder / "beats"
    beats.write_bytes(bytes(4096))
    options = ["-t", str(deadline_s), "-k", "2", "--on-cancel", "capture", "--core", mode, "-o", str(bundle)]
    program = [
        sys.executable,
        str(Path(__file__).with_name("target.py")),
        str(beats),
        str(threads),
        str(heap_mb),
        "deaf",
    ]
    words = postmortem("capture", *options, "--", *program)
    if whom == "shell":
        words = ["sh", "-c", '"$@"; exit $?', "sh", *words]
    with open(folder / "said", "w+") as said:
        job = subprocess.Popen(
            words,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
        )
        assert job.stdout is not None
        job.stdout.readline()
        time.sleep(after_s)
        _signal_job(job, whom, signal.SIGTERM)
        killed = False
        try:
            job.wait(_GRACE_S)
            _await_last(job.pid, time.monotonic() + _GRACE_S)
        except subprocess.TimeoutExpired:
            killed = True
        _signal_job(job, whom, signal.SIGKILL)
        _end_rest(beats)
        job.communicate(timeout=HANG_S)
        said.seek(0)
        told = said.read()
    kind, problem = "none", None
    try:
        kind = _is_read(bundle)
        if kind in ("none", "empty"):
            raise Failed(f"no bundle that analyze reads: {told}")
    except Failed as exc:
        problem = str(exc)
    shutil.rmtree(bundle, ignore_errors=True)
    return Outcome(mode, after_s, killed, kind, problem)


def _signal_job(job: subprocess.Popen[bytes], whom: str, number: int) -> None:
    """A shell that waits for its last command is its parent; the session has nobody else."""
    targets = [job.pid] if whom == "process" else _session(job.pid)
    if whom == "shell":
        targets = [pid for pid in targets if pid == job.pid or _parent(pid) == job.pid]
    for pid in targets:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _session(leader: int) -> List[int]:
    """The processes of the leader's own group."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            fields = path.read_text().rsplit(")", 1)[1].split()
            if int(fields[2]) == leader and fields[0] not in "ZX":
                found.append(int(path.parent.name))
    return found


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return -1


def _await_last(leader: int, until: float) -> None:
    """Where the shell has ended before it, postmortem is still at work. Raises TimeoutExpired."""
    while _session(leader):
        if time.monotonic() > until:
            raise subprocess.TimeoutExpired("postmortem", _GRACE_S)
        time.sleep(0.01)


def _end_rest(beats: Path) -> None:
    """The command of a postmortem that was killed: a runner kills the whole tree."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(beats).encode() in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)


# ---------------------------------------------------------------------- the target is killed


def kill_target(folder: Path, mode: str, after_s: float, threads: int, heap_mb: int, watched: bool) -> Outcome:
    """``watched``: under --pid, else as a command whose time is up. The clock starts when the capture has begun."""
    bundle = folder / "bundle"
    options = ["--core", mode, *_OBSERVE, "-o", str(bundle)]
    problem = None
    with _victim(folder, options, threads, heap_mb, watched) as (capture, pid, target):
        assert capture.stderr is not None
        first = capture.stderr.readline().decode()
        time.sleep(after_s)
        if target is not None:
            target.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _out, err = capture.communicate(timeout=HANG_S)
        said = first + err.decode()
        wanted = 0 if watched else 124
        if capture.returncode != wanted or "Traceback" in said:
            problem = f"status {capture.returncode}, not {wanted}: {said}"
        else:
            problem = _reported(bundle, pid)
    shutil.rmtree(bundle, ignore_errors=True)
    return Outcome(mode, after_s, False, "whole" if problem is None else "none", problem)


@contextlib.contextmanager
def _victim(
    folder: Path, options: List[str], threads: int, heap_mb: int, watched: bool
) -> Iterator[tuple[subprocess.Popen[bytes], int, Optional[Target]]]:
    if watched:
        target = Target(folder, threads, heap_mb)
        try:
            yield started("capture", "--pid", str(target.pid), *options), target.pid, target
        finally:
            target.kill()
        return
    program = str(Path(__file__).with_name("target.py"))
    beats = folder / "beats"
    beats.write_bytes(bytes(4096))
    words = ["--", sys.executable, program, str(beats), str(threads), str(heap_mb)]
    capture = started("capture", "-t", "1.2", *options, *words)
    yield capture, _child(capture), None


def _child(capture: subprocess.Popen[bytes]) -> int:
    """The command that a capture has started."""
    until = time.monotonic() + HANG_S
    while time.monotonic() < until:
        children = Path(f"/proc/{capture.pid}/task/{capture.pid}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.005)
    raise Failed("the capture starts no command")


def _reported(bundle: Path, pid: int) -> Optional[str]:
    """What is wrong with the report; None for one that names the target."""
    try:
        report = json.loads((bundle / "report.json").read_bytes())
    except (OSError, ValueError) as exc:
        return f"no report: {exc}"
    if not report["processes"] and not report["gaps"]:
        return "a report without a process says nothing of why"
    if any(process["pid"] != pid for process in report["processes"]):
        return f"a report of others: {[process['pid'] for process in report['processes']]}"
    return None


def moments(count: int, over_s: float, seed: int) -> List[float]:
    """Uniform over a duration."""
    chance = random.Random(seed)
    return [chance.uniform(0, over_s) for _ in range(count)]


def mode_of(number: int) -> str:
    return _MODES[number % len(_MODES)]
