"""What the code of threads that go on will do: read, release a lock on a file, end a transaction or a child; or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from postmortem.extract.assemble.how import How
from tests.support.bundles import evidence_of
from tests.support.diagnosing import capture_pid
from tests.support.interpreters import Program, matrix

pytestmark = pytest.mark.live

#: Threads by the name of what they will do, each in another way: by itself, in a method of its object or of one that this has,
#: in a function that the library is to call.
SOURCE = """
import sched, threading, time

class Line:
    def __init__(self, source):
        self.source = source
    def next(self):
        return self.source.read(10)

class Reader:
    def __init__(self, line):
        self.line = line
    def run(self):
        time.sleep(600)
        self.take()
    def take(self):
        return self.line.next()

class Guard:
    def __init__(self, lock):
        self.lock = lock
    def give(self):
        self.lock.unlock()

def press(guard):
    started.set()
    while True:
        sum(range(1000))
    guard.give()

def closing(link):
    time.sleep(600)
    link.execute("commit")

class Fetch:
    def __init__(self, child):
        self.child = child
    def cut_short(self):
        self.child.kill()

class Drive:
    def __init__(self, line):
        self.plan, self.line = sched.scheduler(time.monotonic, time.sleep), line
        self.plan.enter(600, 1, self.record)
    def record(self):
        for block in iter(lambda: self.line.source.read(9), b""):
            pass

def count(seen):
    while True:
        seen.append(len(seen))
        time.sleep(600)

def forget(seen):
    seen.clear()

def waits(line):
    threading.Event().wait()
    line.next()

reader, started = Reader(Line(None)), threading.Event()
calendar = sched.scheduler(time.monotonic, time.sleep)
calendar.enter(600, 1, reader.take)
timer = threading.Timer(600, reader.line.next)
timer.name = "timer reads"
limit = threading.Timer(600, Fetch(None).cut_short)
limit.name = "ends"
lease = threading.Timer(600, threading.Lock().release)
lease.name = "unlocks"
idle = threading.Timer(600, forget, ([],))
idle.name = "idle"
threads = [timer, limit, lease, idle, *(
    threading.Thread(target=target, args=args, name=name)
    for name, target, args in (
        ("reads", reader.run, ()), ("sched reads", calendar.run, ()), ("releases", press, (Guard(None),)),
        ("lambda reads", Drive(Line(None)).plan.run, ()), ("commits", closing, (None,)), ("counts", count, ([],)),
        ("for ever", waits, (reader.line,)),
    )
)]
for thread in threads:
    thread.daemon = True
    thread.start()
started.wait()
time.sleep(0.2)
print("ready", flush=True)
time.sleep(600)
"""
DEEDS = {
    "reads": ("reads",),
    "timer reads": ("reads",),
    "sched reads": ("reads",),
    "lambda reads": ("reads",),
    "unlocks": ("releases", "unlocks"),
    "releases": ("releases",),
    "commits": ("commits",),
    "ends": ("ends",),
    "counts": (),
    "idle": (),
    "for ever": None,
}


@pytest.mark.parametrize("python", matrix())
def test_what_threads_will_do(python: str, tmp_path: Path) -> None:
    """The names that their code uses; of a thread that waits without a limit it is not asked."""
    with Program(python, SOURCE, tmp_path) as program:
        capture_pid(program.pid, tmp_path, "--observe", "0.1", "--core", "sparse")
    found = evidence_of(tmp_path / "bundle", How(gdb_s=0))
    process = next(process for process in found.processes if process.pid == program.pid)
    told = {thread.name: thread.deeds for thread in process.threads if thread.name in DEEDS}
    assert told == DEEDS
