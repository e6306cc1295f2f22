"""Locks of native code with their holders, the GIL among them, on every interpreter: from the call and the memory."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any, Dict

import pytest

from postmortem.evidence import Process, Resource, Thread
from postmortem.extract.assemble.cores import from_core

from ..support import required
from ..support.diagnosed import classify
from ..support.interpreters import Program, matrix
from ..support.takingcores import kernel_core

pytestmark = [pytest.mark.live]

PROGRAM = """
import ctypes, os, sys, threading, time
library = ctypes.CDLL(sys.argv[1])
keeping = ctypes.PyDLL(sys.argv[1])  # does not give the GIL up around a call
function = ctypes.CFUNCTYPE(None)
book, in_table, has_book, in_shelf, in_gate = threading.Lock(), *(threading.Event() for _ in range(4))

def wants_book():
    in_table.set()
    has_book.wait()
    book.acquire()  # wants book

def table_then_book():
    library.table(function(wants_book))  # has table

def book_then_table():
    with book:
        has_book.set()
        in_table.wait()
        library.table(function(print))  # wants table

def stays():
    in_shelf.set()
    forever.wait()

def writer():
    library.write_shelf(function(stays))

def reader():
    in_shelf.wait()
    library.read_shelf()

def twice():
    library.twice()

def listener():
    library.wait_for_news()

def joiner():
    library.join_resting()

def inside():
    in_gate.set()
    library.until_somebody_arrives()

def gatekeeper():
    library.pass_gate(function(inside))

forever = threading.Event()
for f in (table_then_book, book_then_table, writer, reader, twice, listener, joiner, gatekeeper):
    threading.Thread(target=f, name=f.__name__, daemon=True).start()
in_gate.wait()
quiet = 0
while quiet < 5:  # nobody gets the GIL again after this: everybody must have arrived where it stays
    calls = [open(f"/proc/self/task/{tid}/syscall").read().split()[0] for tid in os.listdir("/proc/self/task")]
    stays = sum(call in ("202", "34") for call in calls)  # futex and pause; the gatekeeper naps, this thread reads
    quiet = quiet + 1 if stays >= len(calls) - 2 else 0
    time.sleep(0.02)  # gives the GIL to whoever wants it
print("ready", flush=True)
keeping.arrive()  # arrives
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = required.compiler()
    target = tmp_path_factory.mktemp("library") / "libshelves.so"
    source = Path(__file__).with_name("native_locks.c")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-pthread", "-o", str(target), str(source)], check=True)
    return target


def _await_rest(pid: int) -> None:
    """Until every thread but the one that rests in pause(2) waits in futex(2), and twice so: those who want the GIL wake
    every 5 ms."""
    until, quiet = time.monotonic() + 30, 0
    while quiet < 2:
        calls = [(task / "syscall").read_text().split()[0] for task in Path(f"/proc/{pid}/task").iterdir()]
        quiet = quiet + 1 if sorted(set(calls)) in (["202", "34"], ["0", "202", "34"]) else 0
        assert time.monotonic() < until, f"the threads never came to rest: {calls}"
        time.sleep(0.05)


class _Told:
    """Threads by name, with what they wait for."""

    def __init__(self, process: Process) -> None:
        self.threads: Dict[str, Thread] = {str(t.name): t for t in process.threads}
        self._resources = {r.id: r for r in process.resources}

    def wanted(self, name: str) -> Resource:
        wait = self.threads[name].wait
        assert wait is not None and wait.resource is not None, (name, wait)
        assert wait.endless is True
        return self._resources[wait.resource]

    def owner(self, name: str) -> str:
        """Return the name of the thread that holds what another wants, as the lock itself records."""
        resource = self.wanted(name)
        assert resource.owner_basis == "recorded", resource
        return next(str(t.name) for t in self.threads.values() if t.tid == resource.owner_tid)


@pytest.mark.parametrize("python", matrix(ctypes=True))
def test_native_locks_have_holders(python: Any, library: Path, tmp_path: Path) -> None:
    """The holders of a mutex and an rwlock, the thread that pthread_join waits for, and a lock that its own holder wants are
    read. A cycle of a mutex and a Python lock, and one of a mutex and the GIL, are proven, with the lines of both sides."""
    with Program(python, PROGRAM, tmp_path, str(library), cwd=tmp_path) as program:
        _await_rest(program.pid)
        lines = {mark: program.line_of(mark) for mark in ("wants book", "has table", "wants table", "arrives")}
        evidence = from_core(kernel_core(program, tmp_path))
    told = _Told(evidence.processes[0])
    assert told.owner("book_then_table") == "table_then_book"
    assert told.wanted("book_then_table").description == "mutex `table_lock` of libshelves.so"
    assert (told.owner("reader"), told.wanted("reader").kind) == ("writer", "rwlock")
    assert (told.owner("twice"), told.wanted("twice").owner_gone) == ("twice", False)
    assert (told.wanted("listener").kind, told.wanted("listener").owner_tid) == ("condition", None)
    resting = [t for t in told.threads.values() if t.tid == told.threads["joiner"].joins]
    assert [t.wait.syscall for t in resting if t.wait is not None] == ["pause"]
    assert [h.frame.line for h in told.threads["table_then_book"].holds] == [lines["has table"]]
    found = {f.pattern: f for f in classify(evidence).findings}
    circle = found["lock-order-deadlock"]
    assert circle.confidence == "proven"
    assert {lines[mark] for mark in ("wants book", "has table", "wants table")} <= {c.line for c in circle.culprits}
    assert found["self-deadlock"].confidence == "proven"
    if python.free_threaded:
        assert "native-lock-gil-inversion" not in found
        return
    assert (told.owner("MainThread"), told.owner("gatekeeper")) == ("gatekeeper", "MainThread")
    assert told.wanted("gatekeeper").kind == "gil"
    inversion = found["native-lock-gil-inversion"]
    assert inversion.confidence == "proven" and inversion.culprits[0].line == lines["arrives"]
