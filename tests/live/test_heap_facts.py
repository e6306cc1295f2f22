"""What fills memory and time, on every interpreter: queues that grow, exceptions that are kept, the collector's share, the
call in C that lasts. One program has all of it; the first capture of a matrix's interpreter answers all tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

import pytest

from postmortem.evidence import Evidence, Process, Thread, decode

from ..support.interpreters import Program, kinds, matrix

pytestmark = pytest.mark.live

#: Four threads: `fill` puts as long as it is watched, `keep` has stored what it caught, `match` is in a regular expression
#: without end (and lets nobody else run, so it is a process of its own), `collect` does little but collect.
GROWS = """
import collections, queue, sys, threading, time

class Intake:
    def __init__(self):
        self.jobs = queue.Queue()
        self.recent = collections.deque(maxlen=100)
        self.still = [None] * 500
    def fill(self):
        while True:
            for number in range(20):
                self.jobs.put(number)        # fills
                self.recent.append(number)
            time.sleep(0.005)
    def drain(self):
        while True:
            time.sleep(60)
            self.jobs.get()                  # empties

class Store:
    def __init__(self):
        self.failures = []
    def load(self, number):
        rows = [number] * 20_000
        raise ValueError("row %d" % len(rows))   # raises
    def run(self):
        for number in range(40):
            try:
                self.load(number)
            except ValueError as exc:
                self.failures.append(exc)    # keeps

intake, store = Intake(), Store()
store.run()
for work in (intake.fill, intake.drain):
    threading.Thread(target=work, name=work.__name__, daemon=True).start()
while intake.jobs.qsize() < 200: time.sleep(0.01)
print("ready", flush=True)
sys.stdin.read()
"""

MATCHES = """
import re
pattern, text = re.compile(r"(a+)+$"), "a" * 5000 + "b"
print("ready", flush=True)
pattern.match(text)                          # matches
"""

COLLECTS = """
import gc, sys, threading
class Node:
    pass
nodes = [Node() for _ in range(50_000)]
for node in nodes:
    node.me = node
def collect():
    while True:
        gc.collect()                         # collects
threading.Thread(target=collect, name="collect", daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


def captured(source: str, python: Any, folder: Path) -> Iterator[Any]:
    """(the program, its evidence), while it runs."""
    with Program(python, source, folder) as program:
        bundle = folder / "bundle"
        command = [sys.executable, "-m", "postmortem", "capture", "--pid", str(program.pid), "-o", str(bundle)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=180, check=False)
        assert done.returncode == 0, done.stderr
        yield program, decode((bundle / "evidence.json").read_bytes())


def only(known: Evidence) -> Process:
    (process,) = known.processes
    return process


def thread(known: Evidence, name: str) -> Thread:
    (found,) = [one for one in only(known).threads if one.name == name]
    return found


@pytest.mark.parametrize("python", matrix())
def test_what_grows_and_what_is_kept(python: Any, tmp_path: Path) -> None:
    """The queue by its name, with more in it at the end than at the beginning, and its lines; a bounded one and a list that
    stays say nothing of growth. The exceptions by their place, with the frames and rows that they keep, and who keeps them."""
    for program, known in captured(GROWS, python, tmp_path):
        backlogs = {one.name: one for one in only(known).backlogs}
        jobs = backlogs["Intake.jobs"]
        assert (jobs.kind, jobs.limit) == ("queue.Queue", 0)
        assert jobs.growth is not None and jobs.growth > 0
        assert jobs.least is not None and 200 <= jobs.least <= jobs.items - jobs.growth
        assert [one.line for one in jobs.filled_at] == [program.line_of("fills")]
        assert [one.line for one in jobs.emptied_at] == [program.line_of("empties")]
        recent = backlogs.get("Intake.recent")
        assert recent is None or (recent.limit, recent.items) == (100, 100)
        if python.free_threaded:  # whose memory is not searched
            assert only(known).kept_exceptions == ()
            return
        (kept,) = only(known).kept_exceptions
        assert (kept.type, kept.variable) == ("ValueError", "rows in load")
        assert (
            40 <= kept.count <= 44 and kept.frames == 2 * kept.count
        )  # tracebacks that nobody has any more count along
        assert kept.place is not None and (kept.place.function, kept.place.line) == ("load", program.line_of("raises"))
        assert kept.bytes is not None and kept.bytes > 40 * 20_000 * 8 * 0.9
        assert "Store.failures" in kept.keepers
        assert [one.line for one in kept.stored_at] == [program.line_of("keeps")]


@pytest.mark.parametrize("python", matrix())
def test_a_call_in_c_that_lasts(python: Any, tmp_path: Path) -> None:
    """Which function, on which pattern, over how long a text; the same call at the end of the window as at its beginning."""
    for _program, known in captured(MATCHES, python, tmp_path):
        main = next(one for one in only(known).threads if one.is_main)
        calling = main.calling
        assert calling is not None
        assert calling.function in ("re.Pattern.match", "_sre.SRE_Pattern.match")
        assert calling.detail == "pattern '(a+)+$'"
        assert calling.text == 5001
        assert calling.lasts_s is not None and known.window_s is not None
        assert calling.lasts_s > 0


@pytest.mark.parametrize("python", kinds())
def test_the_collectors_share(python: Any, tmp_path: Path) -> None:
    """In most looks it was at work, and its own counters moved; a program at rest collects nothing."""
    for _program, known in captured(COLLECTS, python, tmp_path):
        found = only(known).interpreters[0].collections
        assert found is not None
        share: Optional[float] = found.share
        assert share is not None and share > 0.5
        assert found.counts is None or sum(found.counts) > 0
    rest: Dict[str, Any] = {}
    folder = tmp_path / "rest"
    folder.mkdir()
    for _program, known in captured("import sys\nprint('ready', flush=True)\nsys.stdin.read()\n", python, folder):
        rest["found"] = only(known).interpreters[0].collections
    assert rest["found"] is not None
    assert (rest["found"].busy, sum(rest["found"].counts or ())) == (0, 0)
