"""One damaged input, and every command that reads it, each in a process of its own with limits."""

from __future__ import annotations

import contextlib
import gc
import json
import mmap
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Dict, Iterator, List, NamedTuple, NoReturn, Optional, Tuple
from xml.etree import ElementTree

from postmortem import report
from postmortem.classify.engine import all_patterns
from postmortem.cli import commands
from postmortem.cli.pages import listing

from .inputs import Input, lay_out

#: What one command may use. Seconds are of the processor's: the machine may be busy with others.
SECONDS, MEMORY = 5.0, 500 << 20
#: Bytes that the campaign has in a process of its own, measured. A case begins as a copy of the process that forks it: what other
#: tests have left there beyond this is not the case's.
_OWN = 45 << 20
#: One that sits in a long call of C code; one that sleeps, for so long without using the processor.
_WALL, _ASLEEP = 60.0, 6.0
_STATUSES = {"analyze": (0, 1), "report": (0, 1), "strip": (0, 1)}
#: What is printed when something went wrong that nobody foresaw.
_DEFECTS = ("Traceback (most recent call last)", "a defect of postmortem")
_JOURNALCTL = """#!/bin/sh
case "$*" in *--cursor*) exec /bin/cat '{0}/journal-core';; *) exec /bin/cat '{0}/journal';; esac
"""
#: Formats that draw what was sampled: of a core there is nothing.
_SAMPLED = ("speedscope", "collapsed")


class Outcome(NamedTuple):
    """The outcome of one command. ``failure`` is None when it ended well: with reports, or with one sentence."""

    command: str
    status: int
    seconds: float
    memory: int  # bytes, the peak
    said: str  # the first line on stderr
    failure: Optional[str]


class TookTooLong(BaseException):
    """No Exception: what the commands catch must not swallow it."""


class Limits(NamedTuple):
    seconds: float = SECONDS
    memory: int = MEMORY


def run(given: Input, limits: Limits = Limits(), coverage: Optional[Path] = None) -> List[Outcome]:  # noqa: B008 - a tuple
    """Runs the commands over an input that is laid out in a folder of its own, which is removed."""
    _warm_up()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        place = Path(scratch)
        for name in ("input", "tmp", "home", "out", "bin"):
            (place / name).mkdir()
        script = place / "bin" / "journalctl"
        script.write_text(_JOURNALCTL.format(place / "input"))
        script.chmod(0o755)
        lay_out(given, place / "input")
        return [_run(words, place, limits, coverage) for words in _commands(given)]


def _warm_up() -> None:
    """Imports once what every child would import."""
    all_patterns()
    for known in report.FORMATS.values():
        with contextlib.suppress(Exception):
            known.render(None, None, False, 80)  # type: ignore[arg-type]
    listing(80)
    for name in ("pipeline", "strip", "extract.assemble.bundles", "cores.coredumpctl", "cores.abrt", "cores.folder"):
        import_module(f"postmortem.{name}")


def _commands(given: Input) -> List[List[str]]:
    """Every way to read it, with every format; the first format goes to stdout."""
    lone = given.kind in ("apport", "abrt", "journal", "compressed")
    formats = [known for name, known in report.FORMATS.items() if not lone or name not in _SAMPLED]
    files = [f"--report=../out/{{}}{known.suffix}" for known in formats if known.suffix]
    first = formats[len(repr(given.said)) % len(formats)].name
    if lone:
        return [["analyze", given.target, "-f", first, *(name.format("analyzed") for name in files)]]
    found = [
        ["analyze", given.target, "-f", "json"],
        ["report", given.target, "-f", first, *(name.format("reported") for name in files)],
        ["report", given.target, "--strip", "-o", "../out/stripped"],
    ]
    return [[*words, "--locals"] if len(repr(given.said)) % 3 == 0 else words for words in found]


def _resident() -> int:
    """Return the memory of this process, in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def _run(words: List[str], place: Path, limits: Limits, coverage: Optional[Path]) -> Outcome:
    streams = {name: place / name for name in ("stdout", "stderr", "failed")}
    for path in streams.values():
        path.write_bytes(b"")
    sys.stdout.flush()
    others = max(0, _resident() - _OWN)
    child = os.fork()
    if child == 0:
        _child(words, place, streams, limits, coverage)
    late = not _ended(child, _WALL if coverage is None else 10 * _WALL)
    _pid, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status) if sys.version_info >= (3, 9) else status >> 8
    cpu, memory = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 - others
    said = streams["stderr"].read_text("utf-8", "backslashreplace")
    command = "strip" if "--strip" in words else words[0]
    failure = streams["failed"].read_text() or None
    if late:
        failure = "hangs: it was killed"
    failure = failure or _judged(command, words, code, said, place, streams["stdout"])
    if failure is None and coverage is None:
        if cpu > limits.seconds:
            failure = f"too long: {cpu:.1f} s"
        elif memory > limits.memory:
            failure = f"{memory >> 20} MB of memory"
    return Outcome(command, code, cpu, memory, said.partition("\n")[0], failure)


def _ended(child: int, seconds: float) -> bool:
    """Waits until a child ends; ends it when that takes too long, or nothing happens any more."""
    until = time.monotonic() + seconds
    used, since = _used(child), time.monotonic()
    while time.monotonic() < until and time.monotonic() < since + _ASLEEP:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            return True
        time.sleep(0.005)
        if used != _used(child):
            used, since = _used(child), time.monotonic()
    os.killpg(child, signal.SIGKILL)
    return False


def _used(child: int) -> Tuple[str, ...]:
    """What a process and its children that ended have used of the processor: fields 14 to 17 of proc(5)'s stat."""
    return tuple(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:15])


def _judged(command: str, words: List[str], code: int, said: str, place: Path, stdout: Path) -> Optional[str]:
    """What is wrong with how a command ended; None when nothing is."""
    if code not in _STATUSES[command]:
        return f"{command} ended with {code}: {said[:500]}"
    if any(defect in said for defect in _DEFECTS):
        return said[-2000:]
    if code == 1 and not said.startswith("postmortem: "):
        return f"{command} ended with 1 and said {said[:500]!r}"
    left = sorted(path.name for path in (place / "tmp").iterdir())
    if left:
        return f"{command} left {left} in TMPDIR"
    strange = sorted(path.name for path in (place / "home").iterdir())
    if strange:
        return f"{command} wrote {strange} below HOME"
    return _badly_formed(words, place, stdout) if code == 0 else None


def _badly_formed(words: List[str], place: Path, stdout: Path) -> Optional[str]:
    """The first report that no strict reader takes."""
    files = [path for path in (place / "out").rglob("*") if path.is_file()]
    for path in [*files, stdout]:
        first = words[words.index("-f") + 1] if path == stdout and "-f" in words else ""
        suffix = report.FORMATS[first].suffix if first else path.suffix
        try:
            data = path.read_bytes()
            if suffix in (".json", ".sarif", ".speedscope.json") and data:
                json.loads(data.decode("utf-8"), parse_constant=_no_json)
            elif suffix == ".xml":
                ElementTree.fromstring(data)
            else:
                data.decode("utf-8")
        except (ValueError, ElementTree.ParseError, RecursionError) as exc:
            return f"{path.name}: {exc}"
    return None


def _no_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


# ---------------------------------------------------------------------- the child


def _child(
    words: List[str], place: Path, streams: Dict[str, Path], limits: Limits, coverage: Optional[Path]
) -> NoReturn:
    os.setsid()
    code, failed = 99, ""
    try:
        _redirect(place, streams)
        if coverage is None:
            _limit(limits)
        with _measured(coverage):
            code = commands.main(words)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.flush()
        sys.stderr.flush()
    except TookTooLong:
        failed = "too long: " + traceback.format_exc(-6)
    except BaseException:
        signal.setitimer(signal.ITIMER_PROF, 0)
        failed = traceback.format_exc(-8)
    with contextlib.suppress(BaseException):
        streams["failed"].write_text(failed)
    os._exit(code)


def _redirect(place: Path, streams: Dict[str, Path]) -> None:
    os.chdir(str(place / "input"))
    for number, path in ((0, Path(os.devnull)), (1, streams["stdout"]), (2, streams["stderr"])):
        descriptor = os.open(str(path), os.O_RDWR)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.environ.update(
        {
            "POSTMORTEM_DEBUG": "1",
            "POSTMORTEM_GDB": "/nonexistent/gdb",
            "TMPDIR": str(place / "tmp"),
            "HOME": str(place / "home"),
            "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
        }
    )
    tempfile.tempdir = None


def _limit(limits: Limits) -> None:
    gc.freeze()
    signal.signal(signal.SIGPROF, _late)
    signal.setitimer(signal.ITIMER_PROF, limits.seconds)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    room = pages * mmap.PAGESIZE + limits.memory
    resource.setrlimit(resource.RLIMIT_AS, (room, room))


def _late(number: int, frame: Optional[FrameType]) -> NoReturn:
    raise TookTooLong


@contextlib.contextmanager
def _measured(coverage: Optional[Path]) -> Iterator[None]:
    """Notes the branches that run, for `coverage combine`, where a folder for that is given."""
    if coverage is None:
        yield
        return
    library: Any = import_module("coverage")
    measuring = library.Coverage(
        data_file=str(coverage / ".coverage"), data_suffix=True, branch=True, source_pkgs=["postmortem"]
    )
    measuring.start()
    try:
        yield
    finally:
        measuring.stop()
        measuring.save()


def worst(outcomes: List[Outcome]) -> Tuple[float, int]:
    """(seconds, bytes) of the slowest and of the largest command."""
    return max(one.seconds for one in outcomes), max(one.memory for one in outcomes)
