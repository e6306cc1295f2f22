"""Files that change while they are read: a core and its libraries cut off, overwritten and replaced, once at a chosen moment
and again and again by somebody else. The analysis ends in order, with what was read and a gap for what was not.

Each analysis is a process of its own: reading a file that is mapped ends a process with SIGBUS when it is cut off."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple

import pytest

from postmortem.memory import ElfCore
from tests.faults.fuzz.bases import NotTaken, base
from tests.support.capturing import ROOT, environment

from ..support.required import lacking, needs_gdb

pytestmark = pytest.mark.live

PYTHON = "3.12"
HANG_S = 120.0
RACES = 6
#: Analyses the first argument with the files below the second. At a moment it says so, and goes on when something has happened
#: to the file that the third names. Moments: "opened" is as soon as the core has been, "found" as soon as the file has been
#: opened as a library, a number is so many reads later. The last two are descriptors to say it and to hear it.
ANALYSIS = """
import os, sys
from pathlib import Path
from postmortem import pipeline, report
from postmortem.memory import ElfCore

core, root, victim, moment, say, hear = sys.argv[1:]

def happen():
    global happened
    happened = True
    os.write(int(say), b"now")
    os.read(int(hear), 1)

reads, happened = 0, False
plain = {name: getattr(ElfCore, name) for name in ("__init__", "read", "u64", "elf")}

def opening(self, *words, **named):
    plain["__init__"](self, *words, **named)
    if moment == "opened" and self.path == core and not happened:
        happen()

def finding(self, path):
    elf = plain["elf"](self, path)
    if moment == "found" and elf is not None and root + path == victim and not happened:
        happen()
    return elf

def reading(name):
    def counted(self, *words):
        global reads
        reads += 1
        if moment.isdigit() and reads >= int(moment) and not happened:
            happen()
        return plain[name](self, *words)
    return counted

ElfCore.__init__, ElfCore.read, ElfCore.u64 = opening, reading("read"), reading("u64")
ElfCore.elf = finding
found, diagnosis = pipeline.analyze_target(core, sysroot=Path(root))
assert happened
sys.stdout.write(report.FORMATS["json"].render(found, diagnosis, False, 80))
"""


Mishap = Callable[[Path], None]


class Case(NamedTuple):
    """A core, its files below a root of their own, and the largest of them that the reader needs."""

    core: Path
    root: Path
    library: Path


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The core of a program with a proven deadlock."""
    try:
        return base(PYTHON, "own", tmp_path_factory.mktemp("base")).core
    except NotTaken as exc:
        lacking(str(exc))


@pytest.fixture
def case(taken: Path, tmp_path: Path) -> Case:
    """Copies of all that is read."""
    core, root = tmp_path / "core", tmp_path / "root"
    shutil.copyfile(taken, core)
    image = ElfCore(str(taken))
    for path in {file.path for file in image.files}:
        with contextlib.suppress(OSError):
            (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, root / path[1:])
    image.close()
    return Case(core, root, max(root.rglob("*python3*"), key=lambda path: path.is_file() and path.stat().st_size))


def variables(gdb: bool) -> Dict[str, str]:
    found = {**environment(), "PYTHONPATH": str(ROOT)}
    return found if gdb else {**found, "POSTMORTEM_GDB": "/nonexistent/gdb"}


def cut(victim: Path) -> None:
    os.truncate(victim, 0)


def halve(victim: Path) -> None:
    os.truncate(victim, victim.stat().st_size // 2)


def overwrite(victim: Path) -> None:
    size = victim.stat().st_size
    with victim.open("r+b") as file:
        for at in range(0, size, 1 << 20):
            file.write(b"\xff" * min(1 << 20, size - at))


def replace(victim: Path) -> None:
    other = victim.with_name("other")
    other.write_bytes(b"another file")
    other.replace(victim)


def report_of(case: Case, victim: Path, mishap: Mishap, moment: str, gdb: bool = False) -> Dict[str, Any]:
    """The report of an analysis that ended in order, though something happened to a file."""
    (told, say), (hear, answer) = os.pipe(), os.pipe()
    words = [sys.executable, "-c", ANALYSIS, *map(str, (case.core, case.root, victim, moment, say, hear))]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables(gdb), pass_fds=(say, hear)
    )
    os.close(say)
    os.close(hear)
    try:
        if os.read(told, 3):
            mishap(victim)
            os.write(answer, b"!")
        out, err = process.communicate(timeout=HANG_S)
    finally:
        process.kill()
        process.wait()
        os.close(told)
        os.close(answer)
    assert process.returncode == 0, (process.returncode, err)
    found: Dict[str, Any] = json.loads(out)
    return found


def changed(report: Dict[str, Any]) -> List[str]:
    """What the report says was changed under the reader."""
    return [gap["subject"] for gap in report["gaps"] if "changed while it was read" in gap["reason"]]


@pytest.mark.parametrize("moment", ["opened", "100", "1000"])
@pytest.mark.parametrize("mishap", [cut, halve, overwrite])
def test_a_core_that_changes_under_the_reader(case: Case, mishap: Mishap, moment: str) -> None:
    """What was read is reported, threads above all, which the core's beginning names; that the rest is not to be trusted
    is a gap."""
    report = report_of(case, case.core, mishap, moment)
    assert changed(report) == [str(case.core)]
    assert report["processes"][0]["threads"]


@pytest.mark.parametrize("moment", ["found", "1000"])
@pytest.mark.parametrize("mishap", [cut, halve, overwrite])
def test_a_library_that_changes_under_the_reader(case: Case, mishap: Mishap, moment: str) -> None:
    """The same of the interpreter's own file."""
    report = report_of(case, case.library, mishap, moment)
    assert changed(report) == [f"/{case.library.relative_to(case.root)}"]
    assert report["processes"][0]["threads"]


@pytest.mark.parametrize("moment", ["opened", "100"])
def test_a_core_that_is_replaced_is_read_on(case: Case, moment: str) -> None:
    """Another file under its path is not this core: the verdict is that of the one that was opened, and nothing is missing."""
    report = report_of(case, case.core, replace, moment)
    assert report["verdict"] == "lock-order-deadlock"
    assert changed(report) == []


@needs_gdb
def test_gdb_reads_the_core_that_was_opened(case: Case) -> None:
    """Replaced before gdb is started, the core still has its native stacks."""
    report = report_of(case, case.core, replace, "opened", gdb=True)
    assert report["verdict"] == "lock-order-deadlock"
    assert all(thread["native"] for thread in report["processes"][0]["threads"])
    assert not [gap for gap in report["gaps"] if gap["source"] == "gdb"]


@contextlib.contextmanager
def again_and_again(path: Path, mishap: Callable[[Path, bytes, random.Random], None]) -> Iterator[List[int]]:
    """A thread that does something to a file until the block ends; the list counts."""
    whole, stop, count = path.read_bytes(), threading.Event(), [0]

    def work() -> None:
        chance = random.Random(16)
        while not stop.is_set():
            mishap(path, whole, chance)
            count[0] += 1
            stop.wait(0.001)  # leaves something to read

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield count
    finally:
        stop.set()
        thread.join()


def cut_and_mend(path: Path, whole: bytes, chance: random.Random) -> None:
    os.truncate(path, chance.choice((0, 64, 4096, chance.randrange(len(whole)))))
    with path.open("r+b") as file:
        file.write(whole)


def overwrite_a_part(path: Path, whole: bytes, chance: random.Random) -> None:
    at = chance.randrange(len(whole))
    with path.open("r+b") as file:
        file.seek(at)
        file.write(chance.choice((b"\0", b"\xff")) * min(1 << 20, len(whole) - at))
        file.seek(at)
        file.write(whole[at : at + (1 << 20)])


def swap(path: Path, whole: bytes, chance: random.Random) -> None:
    other = path.with_name("other")
    other.write_bytes(whole[: chance.choice((0, 100, len(whole)))])
    other.replace(path)


@pytest.mark.parametrize("mishap", [cut_and_mend, overwrite_a_part, swap])
@pytest.mark.parametrize("which", ["core", "library"])
def test_a_file_that_somebody_changes_all_the_time(case: Case, which: str, mishap: Any) -> None:
    """However often: each analysis ends with a report or, where what was opened is no core, one sentence; never by a signal,
    never with a traceback."""
    victim = case.core if which == "core" else case.library
    statuses = []
    with again_and_again(victim, mishap) as count:
        for _ in range(RACES):
            words = ["-m", "postmortem", "analyze", "-f", "json", "--sysroot", str(case.root), str(case.core)]
            done = subprocess.run(
                [sys.executable, *words],
                capture_output=True,
                text=True,
                timeout=HANG_S,
                check=False,
                env=variables(False),
            )
            statuses.append(done.returncode)
            assert done.returncode in (0, 1), done.stderr
            assert "Traceback" not in done.stderr and "defect" not in done.stderr
            if done.returncode == 0:
                assert json.loads(done.stdout)["processes"]
    assert count[0] > RACES
    assert which == "core" or statuses == [0] * RACES
