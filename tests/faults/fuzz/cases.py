"""One damaged core, analysed to the last report in a process of its own, with limits on time and memory."""

from __future__ import annotations

import contextlib
import gc
import json
import mmap
import os
import resource
import select
import signal
import sys
import time
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, Dict, Iterator, NamedTuple, NoReturn, Optional

from postmortem import evidence, pipeline, report
from postmortem.errors import PostmortemError
from postmortem.evidence import Evidence
from postmortem.findings import Diagnosis
from postmortem.native.locate import VARIABLE

from .bases import Base
from .damage import Damage, lay_over, map_of, write_damaged
from .mutations import Mutator
from .reads import trace

#: What one case may use. Seconds are of the processor's: the machine may be busy with others.
SECONDS, MEMORY = 2.0, 500 << 20
#: With gdb, which has a deadline of its own.
GDB_SECONDS = 90.0
#: What the failure of a case that used more than its seconds begins with.
TOO_LONG = "too long: "
_WALL = 30.0  # a case that sleeps, or sits in one long call of C code


class Outcome(NamedTuple):
    """``failure`` is None for a case that ended well: with a report, or with one sentence."""

    seconds: float
    memory: int  # bytes, the peak
    failure: Optional[str]
    answer: Dict[str, Any]  # verdict, confidence, threads, frames; or {"refused": sentence}


class TookTooLong(BaseException):
    """No Exception: what the reader catches must not swallow it."""


class Prepared(NamedTuple):
    """A base core, ready to be damaged."""

    base: Base
    mutator: Mutator
    clean: Dict[str, Any]  # the answer of the undamaged core


def prepare(base: Base) -> Prepared:
    """Analyses the clean core twice: for what it reads, and for its answer."""
    layout = map_of(base.core)
    with base.core.open("rb") as stream:
        data = mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)
    mutator = Mutator(layout, trace(base, layout), data)
    outcome = run(base, Damage(), with_locals=True, seconds=20 * SECONDS)
    analysed(base.core, with_locals=True)  # here as well: what it imports, no case has to import again
    if outcome.failure is not None:
        raise RuntimeError(f"{base.core} cannot be analysed undamaged: {outcome.failure}")
    return Prepared(base, mutator, outcome.answer)


def run(base: Base, damage: Damage, with_locals: bool = False, gdb: bool = False, seconds: float = SECONDS) -> Outcome:
    """Forks; the child analyses, reports and ends. Whatever it does, this returns."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(writer, base, damage, with_locals, gdb, seconds)
    os.close(writer)
    said = _read_all(reader, child, GDB_SECONDS if gdb else _WALL)
    _pid, status, used = os.wait4(child, 0)
    memory = used.ru_maxrss * 1024
    cpu = used.ru_utime + used.ru_stime
    if said is None:
        return Outcome(cpu, memory, "hangs: it was killed", {})
    try:
        told = json.loads(said)
    except ValueError:
        return Outcome(cpu, memory, f"the process ended with {status}", {})
    failure = told["failure"]
    if failure is None and memory > MEMORY and not gdb:
        failure = f"{memory >> 20} MB of memory"
    return Outcome(told["seconds"], memory, failure, told["answer"])


def _read_all(reader: int, child: int, limit: float) -> Optional[bytes]:
    """What the child says until it ends; None when it had to be killed."""
    until, parts = time.monotonic() + limit, b""
    with contextlib.closing(os.fdopen(reader, "rb", 0)) as stream:
        while True:
            ready, _, _ = select.select([stream], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                os.kill(child, signal.SIGKILL)
                return None
            part = stream.read(1 << 16)
            if not part:
                return parts
            parts += part


def _child(writer: int, base: Base, damage: Damage, with_locals: bool, gdb: bool, seconds: float) -> NoReturn:
    failure: Optional[str] = None
    answer: Dict[str, Any] = {}
    began = time.process_time()
    try:
        with _target(base.core, damage, gdb) as core:
            if not gdb:
                _limit(seconds)
            answer = analysed(core, with_locals, gdb)
        signal.setitimer(signal.ITIMER_PROF, 0)
    except TookTooLong:
        failure = TOO_LONG + traceback.format_exc(-6)
    except BaseException:
        failure = traceback.format_exc(-12)
    with contextlib.suppress(BaseException):
        told = {"seconds": time.process_time() - began, "failure": failure, "answer": answer}
        os.write(writer, json.dumps(told).encode()[:60_000])
    os._exit(0)


@contextlib.contextmanager
def _target(core: Path, damage: Damage, gdb: bool) -> Iterator[Path]:
    if not gdb:
        lay_over(core, damage)
        yield core
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "core"
        write_damaged(core, damage, copy)
        yield copy


def _limit(seconds: float) -> None:
    gc.freeze()
    signal.signal(signal.SIGPROF, _late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    room = pages * mmap.PAGESIZE + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (room, room))


def _late(number: int, frame: Optional[FrameType]) -> NoReturn:
    raise TookTooLong


def analysed(core: Path, with_locals: bool, gdb: bool = False) -> Dict[str, Any]:
    """From the file to every report, and through the evidence's own form and back. A refusal in one sentence is an
    answer too; every other exception is a bug."""
    try:
        with contextlib.nullcontext() if gdb else without_gdb():
            found, diagnosis = pipeline.analyze_target(str(core), with_locals=with_locals)
    except PostmortemError as exc:
        return {"refused": exc.sentence()}
    for known in report.FORMATS.values():
        with contextlib.suppress(report.NothingToShow):  # a core has no samples
            known.render(found, diagnosis, True, 100).encode()
    json.loads(report.FORMATS["json"].render(found, diagnosis, False, 80))
    evidence.decode(evidence.encode(found))
    return _answer(found, diagnosis)


@contextlib.contextmanager
def without_gdb() -> Iterator[None]:
    """No gdb is found, and afterwards again the one that was: a test calls this in the process of all tests."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "/nonexistent/gdb"
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def _answer(found: Evidence, diagnosis: Diagnosis) -> Dict[str, Any]:
    leading = diagnosis.findings[0] if diagnosis.findings else None
    threads = [thread for process in found.processes for thread in process.threads]
    return {
        "verdict": diagnosis.verdict,
        "confidence": leading.confidence if leading else None,
        "threads": len(threads),
        "frames": sum(len(thread.python) for thread in threads),
        "gaps": len(found.gaps),
    }


def seeded(prepared: Prepared, seed: int, gdb: bool = False, seconds: float = SECONDS) -> Outcome:
    """The case of a seed. Every third reads local variables too."""
    return run(prepared.base, prepared.mutator.damage(seed), with_locals=seed % 3 == 0, gdb=gdb, seconds=seconds)
