"""Suspended greenlets against what greenlet, gevent and eventlet say of themselves, of several releases."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import pytest

from postmortem.api import analyze
from postmortem.cpython.state.interpreter import Python
from postmortem.evidence import Gap, PythonFrame, Resource, Task, TaskWait
from postmortem.extract.ownership.ownership import plain
from postmortem.extract.process.context import PythonContext, context_of
from postmortem.extract.process.threadtable import ThreadTable
from postmortem.extract.recorded.raw import NO_RAW
from postmortem.extract.waits.endpoints import DescriptorBook
from postmortem.extract.waits.tasks import TasksRead, read_tasks
from postmortem.frameworks.greenlet.switching import read_greenlets
from postmortem.memory import ProcMem

from ..corpora.runs import NotRecorded, environment
from ..support.diagnosing import assert_leads, capture_pid
from ..support.interpreters import ROOT, Program, find
from ..support.required import lacking

pytestmark = pytest.mark.live

#: Releases of greenlet with another layout, or another treatment of frames, and the interpreters that they support.
PLAIN = [
    ("3.8", "greenlet==1.1.3"),
    ("3.8", "greenlet==2.0.2"),
    ("3.9", "greenlet==3.0.0"),
    ("3.10", "greenlet==3.1.1"),
    ("3.11", "greenlet==1.1.3"),
    ("3.11", "greenlet==2.0.2"),
    ("3.11", "greenlet==3.2.4"),
    ("3.12", "greenlet==3.0.0"),
    ("3.12", "greenlet==3.0.3"),
    ("3.12", "greenlet==3.2.4"),
    ("3.13", "greenlet==3.1.1"),
    ("3.13", "greenlet==3.5.6"),
]
GEVENT = [
    ("3.8", "gevent==24.2.1"),
    ("3.9", "gevent==25.9.1"),
    ("3.11", "gevent==23.9.1"),
    ("3.12", "gevent==25.9.1"),
    ("3.13", "gevent==26.9.0"),
]
EVENTLET = [("3.8", "eventlet==0.36.1"), ("3.11", "eventlet==0.33.3"), ("3.12", "eventlet==0.41.3")]

#: Through C functions, generators and recursion; main is suspended while ``runner`` runs.
SWITCHES = """
import greenlet, json, sys, threading, time
main = greenlet.getcurrent()
def leaf(_): main.switch()
def items(): yield sorted([1], key=leaf)
def deep(n):
    if n:
        return deep(n - 1)
    for _ in items(): pass
def begin(n): return list(map(deep, [n]))
suspended = [greenlet.greenlet(begin) for _ in range(3)]
for n, one in enumerate(suspended): one.switch(n)
unstarted, ended = greenlet.greenlet(begin), greenlet.greenlet(len)
ended.switch(())
def other():
    first = greenlet.getcurrent()
    def inner(): first.switch()
    def outer(): inner()
    one = greenlet.greenlet(outer)
    one.switch()
    there.set()
    gone.wait()
there, gone = threading.Event(), threading.Event()
thread = threading.Thread(target=other, daemon=True)
thread.start()
there.wait()
print(json.dumps([thread.ident, threading.get_ident(), id(unstarted), id(ended), [id(one) for one in suspended]]))
def runner():
    print("ready", flush=True)
    sys.stdin.read()
greenlet.greenlet(runner).switch()
"""


def interpreter(version: str, *requirements: str) -> Path:
    """The interpreter of an environment that has these packages."""
    base = find(version)
    if base is None:
        lacking(f"no Python {version}")
    try:
        return environment(Path(base), requirements)
    except NotRecorded as exc:
        lacking(str(exc))


@pytest.mark.parametrize(("version", "package"), PLAIN)
def test_plain_greenlets(version: str, package: str, tmp_path: Path) -> None:
    """Frames of suspended greenlets, also behind those that are on the C stack; each with its state and thread."""
    with Program(interpreter(version, package), SWITCHES, tmp_path) as program:
        there, here, unstarted, ended, suspended = json.loads(program.lines[-1])
        with ProcMem(program.pid) as memory:
            python = Python(memory)
            switched = read_greenlets(python, python.interpreters[0])
            lines = {address: [(f.function, f.line) for f in s.frames] for address, s in switched.states.items()}
            assert not switched.problems and not switched.loops
            assert switched.states[unstarted].phase == "new" and switched.states[ended].phase == "ended"
            assert [s.phase for s in switched.states.values()].count("running") == 2
            for turns, address in enumerate(suspended):
                expected = ["leaf", "items", *["deep"] * (turns + 1), "begin"]
                assert [function for function, _line in lines[address]] == expected
                idents = {(task.name or "").split(".")[-1]: task.ident for task in switched.tasks}
            assert idents["begin-1"] == here and idents["outer"] == there
            main = next(task.address for task in switched.tasks if task.name == "main greenlet")
            assert [function for function, _line in lines[main]] == ["<module>"]


#: (function to wait in, its text); the name of each is that of the greenlet.
WAITS = """
import gevent, gevent.event, gevent.lock, gevent.pool, gevent.queue, gevent.socket, gevent.util, queue, sys, threading
native = gevent.monkey.get_original("threading", "Lock")
empty, two = gevent.lock.Semaphore(0), gevent.lock.BoundedSemaphore(2)
two.acquire(), two.acquire()
lock, reentrant, patched = gevent.thread.LockType(), gevent.lock.RLock(), threading.Lock()
event, result, never = gevent.event.Event(), gevent.event.AsyncResult(), gevent.event.Event()
inbox, outbox = gevent.queue.Queue(), gevent.queue.Queue(1)
outbox.put(1)
ours, theirs = gevent.socket.socketpair()
condition, flag, jobs = threading.Condition(), threading.Event(), queue.Queue()
permits = threading.Semaphore(1)
pool = gevent.pool.Pool(1)
def semaphore(): empty.acquire()
def bounded():
    with two: pass
def limited(): two.acquire(timeout=500)
def holds():
    with lock, reentrant: never.wait()
def wants():
    with lock: pass
def wants_again():
    with reentrant: pass
def by_hand():
    patched.acquire()
    never.wait()
def wants_patched(): patched.acquire()
def event_(): event.wait()
def result_(): result.get()
def get(): inbox.get()
def put(): outbox.put(2)
def receive(): ours.recv(1)
def sleep(): gevent.sleep(1000)
def timeout():
    with gevent.Timeout(900): event.wait()
def join(): all_["sleep"].join()
def joinall(): gevent.joinall([all_["sleep"], all_["holds"]])
def conditional():
    with condition: condition.wait()
def flagged(): flag.wait()
def job(): jobs.get()
def permitted():
    with permits: never.wait()
def unpermitted(): permits.acquire()
def joined(): thread.join()
thread = threading.Thread(target=never.wait, name="thread", daemon=True)
def occupies(): pool.spawn(never.wait).name = "occupant"
def full(): pool.spawn(never.wait)
if gevent.monkey.is_module_patched("threading"): thread.start()
all_ = {}
def begin(function):
    one = all_[function.__name__] = gevent.spawn(function)
    gevent.sleep(0)
for function in (sleep, holds, semaphore, bounded, limited, wants, wants_again, by_hand, wants_patched, event_, result_,
                 get, put, receive, timeout, join, joinall, conditional, flagged, job,
                 permitted, unpermitted, joined, occupies, full):
    begin(function)
gevent.sleep(0.05)
print("\\n".join(gevent.util.format_run_info(current_thread_ident=0)))
print("ready", flush=True)
never.wait()
"""
PATCHED = "from gevent import monkey\nmonkey.patch_all()\n"

_PLACE = re.compile(r'^[ :]*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')


class Read(NamedTuple):
    """Facts read of a program."""

    tasks: Dict[str, Task]
    resources: Dict[Optional[str], Resource]
    found: TasksRead
    gaps: List[Gap]

    def resource(self, name: str) -> Resource:
        wait = self.tasks[name].wait
        assert wait is not None and wait.resource is not None
        return self.resources[wait.resource]

    def wait(self, name: str) -> TaskWait:
        wait = self.tasks[name].wait
        assert wait is not None
        return wait


class Descriptors(DescriptorBook):
    """Names descriptors by their numbers."""

    def note(self, fd: int, tid: Optional[int] = None) -> Optional[str]:
        return f"fd-{fd}"


def read(program: Program) -> Read:
    """Read the tasks of a running program."""

    def lines(file: str) -> Optional[List[str]]:
        try:
            return Path(file).read_text().splitlines()
        except OSError:
            return None

    with ProcMem(program.pid) as memory:
        python = Python(memory)
        table = ThreadTable.of_states({program.pid: python.interpreters[0].threads[-1]})
        context = context_of(memory, python, NO_RAW, program.pid, lines, table)  # type: ignore[arg-type]
        assert isinstance(context, PythonContext)
        found = read_tasks(context, plain(python.frames), Descriptors(None))
        resources: Dict[Optional[str], Resource] = {r.id: r for r in found.awaits.resources(lambda _future: None)}
    return Read({task.name or task.id: task for task in found.tasks}, resources, found, context.gaps)


def blocks(lines: Sequence[str]) -> Iterator[Tuple[Tuple[str, int, str], ...]]:
    """Yield the stacks that gevent's report says are running, most recent call first."""
    places: List[Tuple[str, int, str]] = []
    for line in lines:
        found = _PLACE.match(line)
        if found is not None:
            places.append((found["file"], int(found["line"]), found["function"]))
        elif line.endswith(("Running:", "Spawned at:")) or "--- <" in line:
            yield tuple(reversed(places))
            places = []
    yield tuple(reversed(places))


def rows(frames: Sequence[PythonFrame]) -> Tuple[Tuple[str, int, str], ...]:
    return tuple((frame.file, frame.line or 0, frame.function) for frame in frames)


@pytest.mark.parametrize(("version", "package"), GEVENT)
@pytest.mark.parametrize("patched", [False, True], ids=["plain", "patched"])
def test_gevent(version: str, package: str, patched: bool, tmp_path: Path) -> None:
    """Stacks equal those of gevent's own report frame for frame; each greenlet has its wait, holder and limit."""
    source = (PATCHED if patched else "import gevent.monkey, gevent.thread\n") + WAITS
    if not patched:  # these would stop the hub
        for function in (
            "by_hand",
            "wants_patched",
            "conditional",
            "flagged",
            "job",
            "permitted",
            "unpermitted",
            "joined",
        ):
            source = source.replace(f" {function},", "")
    with Program(interpreter(version, package), source, tmp_path) as program:
        told = set(blocks(program.lines))
        found = read(program)
    for name, task in found.tasks.items():
        if name != "main greenlet":
            assert rows(task.stack) in told, name
    assert [(loop.kind, loop.state, loop.scheduled) for loop in found.found.loops] == [("gevent", "running", 3)]
    assert not found.gaps and found.tasks["main greenlet"].id == found.found.loops[0].main_task
    check_waits(found)
    if patched:
        check_patched(found)


def check_waits(found: Read) -> None:
    """The waits of a program of ``WAITS``."""
    kinds = {name: (found.wait(name).kind, found.resource(name).kind) for name in ("semaphore", "wants", "event_")}
    assert kinds == {
        "semaphore": ("semaphore", "async-semaphore"),
        "wants": ("lock", "async-lock"),
        "event_": ("event", "async-event"),
    }
    assert (found.resource("bounded").value, found.resource("bounded").limit) == (0, 2)
    assert found.wait("limited").endless is False and found.wait("bounded").endless is True
    for wants, basis in (("wants", "with-slot"), ("wants_again", "recorded")):
        lock = found.resource(wants)
        assert (lock.owner_task, lock.owner_basis) == (found.tasks["holds"].id, basis)
    assert len(found.tasks["holds"].holds) == 2
    assert found.resource("result_").kind == "async-future"
    assert (found.resource("get").value, found.resource("get").limit) == (0, 0)
    assert (found.resource("put").value, found.resource("put").limit) == (1, 1)
    assert found.wait("receive").kind == "descriptor" and (found.wait("receive").resource or "").startswith("fd-")
    assert (found.wait("sleep").kind, found.wait("sleep").timeout_s) == ("sleep", 1000)
    assert (found.wait("timeout").kind, found.wait("timeout").endless) == ("event", False)
    assert found.wait("join").tasks == (found.tasks["sleep"].id,)
    assert set(found.wait("joinall").tasks) == {found.tasks["sleep"].id, found.tasks["holds"].id}
    assert [waker.task for waker in found.resource("full").wakers] == [found.tasks["occupant"].id]


def check_patched(found: Read) -> None:
    """The waits of the standard library's objects under gevent."""
    lock = found.resource("wants_patched")
    assert (lock.owner_task, lock.owner_basis) == (found.tasks["by_hand"].id, "inferred")
    assert found.wait("conditional").kind == "condition"
    assert found.wait("flagged").kind == "event"
    assert found.wait("job").kind == "queue"
    assert (found.wait("unpermitted").kind, found.resource("unpermitted").value) == ("semaphore", 0)
    permits = found.resource("unpermitted")
    assert [(waker.role, waker.task) for waker in permits.wakers] == [("holder", found.tasks["permitted"].id)]
    assert (found.wait("joined").kind, found.wait("joined").tasks) == ("task", (found.tasks["thread"].id,))


GREEN = """
import eventlet, eventlet.event, eventlet.greenpool, eventlet.queue, eventlet.semaphore, json, sys
from eventlet.green import socket, threading
empty, event, inbox = eventlet.semaphore.Semaphore(0), eventlet.event.Event(), eventlet.queue.Queue()
lock, pool, never = threading.Lock(), eventlet.GreenPool(1), eventlet.event.Event()
listening = socket.socket(); listening.bind(("127.0.0.1", 0)); listening.listen()
def semaphore(): empty.acquire()
def event_(): event.wait()
def get(): inbox.get()
def sleep(): eventlet.sleep(1000)
def timeout():
    with eventlet.Timeout(900): event.wait()
def accept(): listening.accept()
def holds():
    with lock: never.wait()
def wants():
    with lock: pass
def join(): all_["sleep"].wait()
def occupies(): pool.spawn(never.wait)
def full(): pool.spawn(never.wait)
all_ = {}
for function in (sleep, semaphore, event_, get, timeout, accept, holds, wants, join, occupies, full):
    all_[function.__name__] = eventlet.spawn(function)
    eventlet.sleep(0)
def rows(frame):
    return [[frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name], *rows(frame.f_back)] if frame else []
eventlet.sleep(0.05)
print(json.dumps({name: rows(one.gr_frame) for name, one in all_.items()}))
print("ready", flush=True)
never.wait()
"""


@pytest.mark.parametrize(("version", "package"), EVENTLET)
def test_eventlet(version: str, package: str, tmp_path: Path) -> None:
    """Stacks equal ``gr_frame``; each greenlet has its wait."""
    with Program(interpreter(version, package, "setuptools"), GREEN, tmp_path) as program:
        told = json.loads(program.lines[-1])
        found = read(program)
    for name, expected in told.items():
        assert not expected or [list(row) for row in rows(found.tasks[name].stack)] == expected
    assert [loop.kind for loop in found.found.loops] == ["eventlet"]
    kinds = {name: found.wait(name).kind for name in ("semaphore", "event_", "get", "sleep", "accept", "wants", "join")}
    assert kinds == {
        "semaphore": "semaphore",
        "event_": "future",
        "get": "queue",
        "sleep": "sleep",
        "accept": "descriptor",
        "wants": "lock",
        "join": "task",
    }
    assert found.wait("timeout").endless is False and found.wait("event_").endless is True
    assert found.wait("join").tasks == (found.tasks["sleep"].id,)
    assert found.resource("wants").owner_task == found.tasks["holds"].id
    assert len(found.resource("full").wakers) == 1


BRIDGED = """
import asyncio
from sqlalchemy.util import await_only, greenlet_spawn
async def fetch(lock):
    async with lock: await asyncio.sleep(1000)
def query(lock): return await_only(fetch(lock))
def view(lock): return query(lock)
async def handler(lock): return await greenlet_spawn(view, lock)
async def main():
    lock = asyncio.Lock()
    tasks = [asyncio.ensure_future(handler(lock)) for _ in range(2)]
    await asyncio.sleep(0.05)
    print("ready", flush=True)
    await asyncio.gather(*tasks)
asyncio.run(main())
"""


@pytest.mark.parametrize(("version", "package"), [("3.8", "sqlalchemy==1.4.54"), ("3.12", "sqlalchemy==2.0.40")])
def test_sqlalchemys_bridge(version: str, package: str, tmp_path: Path) -> None:
    """Synchronous code that a task runs in a greenlet is in the task's stack, between the coroutines around it."""
    with Program(interpreter(version, package, "greenlet==3.1.1"), BRIDGED, tmp_path) as program:
        found = read(program)
    stacks = [tuple(frame.function for frame in task.stack if frame.function[0] != "_") for task in found.found.tasks]
    assert len(stacks) == 3
    between = [stack for stack in stacks if stack[-1] == "handler"]
    assert [stack[stack.index("fetch") :] for stack in between] == [
        ("fetch", "await_only", "query", "view", "greenlet_spawn", "handler")
    ] * 2
    lock = next(resource for resource in found.resources.values() if resource.kind == "async-lock")
    assert lock.owner_basis == "with-slot"


STUCK = """
from gevent import monkey
monkey.patch_all()
import gevent, gevent.event, gevent.pool, sys, threading, time
def beat():
    while True: time.sleep(0.05)
def cycle():
    one, other = threading.Lock(), threading.Lock()
    def by_hand():
        one.acquire()
        gevent.sleep(0.01)
        other.acquire()
    def by_with():
        with other:
            gevent.sleep(0.01)
            with one: pass
    return [gevent.spawn(by_hand), gevent.spawn(by_with)]
def nested():
    pool = gevent.pool.Pool(2)
    def job():
        gevent.sleep(0.01)
        pool.spawn(beat).get()
    return [pool.spawn(job), pool.spawn(job)]
def unset():
    def waits(result): result.get()
    return [gevent.spawn(waits, gevent.event.AsyncResult())]
def rescued():
    result = gevent.event.AsyncResult()
    def later():
        gevent.sleep(1000)
        result.set(1)
    gevent.spawn(later)
    return [gevent.spawn(result.get), gevent.spawn(lambda: result.get())]
gevent.spawn(beat)
several = globals()[sys.argv[1]]()
gevent.sleep(0.1)
print("ready", flush=True)
gevent.joinall(several)
"""


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("cycle", ("async-deadlock", "likely")),
        ("nested", ("pool-exhausted", "likely")),
        ("unset", ("future-never-resolved", "proven")),
        ("rescued", None),
    ],
)
@pytest.mark.parametrize(("version", "package"), GEVENT[1:4:2])
def test_verdicts(version: str, package: str, what: str, expected: Optional[Tuple[str, str]], tmp_path: Path) -> None:
    """Greenlets beside a heartbeat: a cycle, a full pool, a result that nobody sets, and one that a greenlet will set."""
    with Program(interpreter(version, package), STUCK, tmp_path, what) as program:
        bundle = tmp_path / "bundle"
        subprocess.run(
            [sys.executable, "-m", "postmortem", "capture", "--pid", str(program.pid), "-o", str(bundle)],
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
    report = analyze(bundle)
    sure = [(f.pattern, f.confidence) for f in report.findings if f.confidence != "possible"]
    assert sure[:1] == ([expected] if expected is not None else [])


#: A thread gives what a greenlet of another thread waits for, which does not wake the hub (a result only up to gevent 20.12).
UNWOKEN = """
import gevent, gevent.event, gevent.queue, gevent.server, sys, threading, time
result, items = gevent.event.AsyncResult(), gevent.queue.Queue()

def signs():
    time.sleep(0.5)
    if sys.argv[2] == "waits":
        print("ready", flush=True)
        time.sleep(1000)
    result.set(1) if sys.argv[1] == "result" else items.put(1)
    print("ready", flush=True)
    time.sleep(1000)

threading.Thread(target=signs, daemon=True).start()
gevent.server.StreamServer(("127.0.0.1", 0), print).start()
gevent.spawn(lambda: result.get() if sys.argv[1] == "result" else items.get()).join()
"""


@pytest.mark.parametrize(
    ("what", "packages"),
    [
        ("result", ("gevent==20.12.1", "greenlet<1")),
        ("items", ("gevent==20.12.1", "greenlet<1")),
        ("items", ("gevent==22.10.2",)),
    ],
)
@pytest.mark.parametrize(("does", "expected"), [("gives", "loop-not-woken"), ("waits", None)])
def test_what_another_thread_gives(
    what: str, packages: Tuple[str, ...], does: str, expected: Optional[str], tmp_path: Path
) -> None:
    """The result or item is there, and the hub sleeps on; what is not there yet may still come."""
    with Program(interpreter("3.8", *packages), UNWOKEN, tmp_path, what, does) as program:
        report = capture_pid(program.pid, tmp_path, "--observe", "0.5")
    sure = [finding["pattern"] for finding in report["findings"] if finding["confidence"] != "possible"]
    assert sure[:1] == ([expected] if expected else [])


#: A native thread of gevent's pool has a lock for a while, which greenlets want meanwhile; its release wakes none of them.
UNRELEASED = """
from gevent import monkey
monkey.patch_all()
import gevent, gevent.threadpool, threading, time
lock = threading.RLock()

def rotates():
    with lock:
        time.sleep(0.3)

def logs():
    gevent.sleep(0.1)
    with lock:
        pass

def beats():
    while True:
        gevent.sleep(0.2)

native = gevent.threadpool.ThreadPool(1)
native.spawn(rotates)
gevent.spawn(beats)
gevent.spawn_later(1.0, print, "ready", flush=True)
gevent.joinall([gevent.spawn(logs) for _ in range(3)])
"""


def test_a_lock_that_a_native_thread_gave_back(tmp_path: Path) -> None:
    """It is free, its waiters sleep on, and the hub turns for others; the only other thread waited for jobs meanwhile."""
    with Program(interpreter("3.11", "gevent==24.2.1"), UNRELEASED, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path, "--observe", "0.5")
    told = {finding["pattern"]: finding["confidence"] for finding in report["findings"]}
    assert told.get("loop-not-woken") == "likely"


#: A native thread of eventlet's pool waits for a lock that a green thread has: each has a hub, and the release wakes one of
#: them alone.
OF_ANOTHER_HUB = """
import eventlet
eventlet.monkey_patch()
import threading
from eventlet import tpool
lock = threading.Lock()

def total():
    with lock:  # waits
        return 1

def asks():
    return tpool.execute(total)

with lock:
    asking = eventlet.spawn(asks)
    eventlet.sleep(0.5)
eventlet.spawn_after(0.5, print, "ready", flush=True)
asking.wait()
"""


def test_a_lock_of_eventlet_between_two_hubs(tmp_path: Path) -> None:
    """It is free, and the hub of the native thread sleeps for a minute with the waiter ready."""
    with Program(interpreter("3.10", "eventlet==0.33.3"), OF_ANOTHER_HUB, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path, "--observe", "0.5")
    first = report["findings"][0]
    marked = OF_ANOTHER_HUB.splitlines().index("    with lock:  # waits") + 1
    assert (first["pattern"], first["confidence"]) == ("loop-not-woken", "likely")
    assert marked in {culprit["line"] for culprit in first["culprits"]}


GROWING = """
import gevent, sys
from gevent.queue import Queue
class Intake:
    def __init__(self): self.letters = Queue(items=range(1000))
    def sort(self):
        while True:
            for number in range(4): self.letters.put(number)  # fills
            gevent.sleep(0.002)
    def read(self):
        while True:
            self.letters.get()
            gevent.sleep(0.01)
intake = Intake()
print("ready", flush=True)
gevent.joinall([gevent.spawn(intake.sort), gevent.spawn(intake.read)])
"""


@pytest.mark.parametrize(("version", "package"), [GEVENT[0], GEVENT[-1]])
def test_a_growing_queue(version: str, package: str, tmp_path: Path) -> None:
    """A compiled queue that only suspended greenlets lead to is found in the window, so that its growth is known."""
    with Program(interpreter(version, package), GROWING, tmp_path) as program:
        found = capture_pid(program.pid, tmp_path, "--observe", "1")
    assert_leads(found, ("unbounded-queue", ["likely"]), GROWING, "fills")
