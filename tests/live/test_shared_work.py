"""Processes that share locks and work, on every interpreter: one tree in which five things are the matter, and one is not."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Dict, List

import pytest

from postmortem.evidence import SIGNALLED, Evidence, Process
from postmortem.findings import Finding
from tests.support.bundles import evidence_of

from ..support.capturing import finished, start
from ..support.diagnosed import classify
from ..support.interpreters import Program, kinds

pytestmark = pytest.mark.live

PROGRAM = """
import concurrent.futures, multiprocessing, os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")  # forks of a threaded process are what this is about
made = multiprocessing.get_context("fork")

class Ledger:
    def __init__(self):
        self.guard = made.Lock()
    def add(self, row):
        with self.guard:  # guard
            if row == "last":
                os.kill(os.getpid(), signal.SIGKILL)

class Desk:
    def __init__(self):
        self.free = made.Semaphore(1)
    def take(self):
        self.free.acquire()
    def use(self, row):
        self.take()  # desk
        try:
            if row == "last":
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            self.free.release()
    def called(self):
        self.free.acquire()

class Log:
    lock = threading.Lock()
    def write(self):
        with self.lock:  # write
            pass
    def rotate(self, has, over):
        with self.lock:
            has.set()
            over.wait()

class Audit:
    lock = threading.RLock()
    def note(self):
        with self.lock:  # note
            pass
    def keep(self, has):
        with self.lock:
            has.set()
            threading.Event().wait()

def work(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number

def produce(tables):
    tables.put("a row of a table" * 40000)

def results(pool):
    for answer in [pool.apply_async(work, (n,)) for n in range(6)]:
        answer.get()  # answer

def collect(tables, child):
    child.join()  # collect
    tables.get()

def calls(pid):
    found = []
    for tid in os.listdir("/proc/%d/task" % pid):
        found.append(open("/proc/%d/task/%s/syscall" % (pid, tid)).read().split()[0])
    return found

def rest(*pids, waits=("202", "0", "1")):
    # every thread of them in one of these calls: futex, read, write
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            if all(call in waits for pid in pids for call in calls(pid)):
                return
        except OSError:
            pass
        time.sleep(0.01)
    raise SystemExit("it does not come to rest")

def main():
    ledger, audit, tables = Ledger(), Audit(), made.Queue()
    writer = made.Process(target=produce, args=(tables,))
    writer.start()
    first = made.Process(target=ledger.add, args=("last",))
    first.start()
    first.join()
    second = made.Process(target=ledger.add, args=("next",))
    second.start()
    desk, bell = Desk(), Desk()
    last = made.Process(target=desk.use, args=("last",))
    last.start()
    last.join()
    bell.free.acquire()
    guest, servant = made.Process(target=desk.use, args=("next",)), made.Process(target=bell.called)
    guest.start()
    servant.start()
    log, has, over = Log(), threading.Event(), threading.Event()
    rotation = threading.Thread(target=log.rotate, args=(has, over))
    rotation.start()
    has.wait()
    late = made.Process(target=log.write)
    late.start()
    over.set()
    rotation.join()
    resting, pool = made.Pool(2), made.Pool(2)
    assert resting.map(abs, range(4)) == [0, 1, 2, 3]
    farm = concurrent.futures.ProcessPoolExecutor(1, mp_context=made)
    nap = farm.submit(time.sleep, 600)
    workers = [p.pid for p in pool._pool]
    has = threading.Event()
    threading.Thread(target=audit.keep, args=(has,), name="keeper", daemon=True).start()
    has.wait()
    copy = made.Process(target=audit.note)
    copy.start()
    threading.Thread(target=collect, args=(tables, writer), name="collector", daemon=True).start()
    threading.Thread(target=nap.result, name="sleeper", daemon=True).start()
    threading.Thread(target=results, args=(pool,), name="customer", daemon=True).start()
    while len(pool._pool) < 2 or [p.pid for p in pool._pool] == workers or len(pool._cache) != 1:
        time.sleep(0.01)
    while not nap.running():
        time.sleep(0.01)
    rest(writer.pid, second.pid, copy.pid, guest.pid, servant.pid, late.pid, *[p.pid for p in pool._pool + resting._pool])
    for name, pids in (("second", [second.pid]), ("copy", [copy.pid]), ("guest", [guest.pid]),
                       ("servant", [servant.pid]), ("late", [late.pid]), ("resting", [p.pid for p in resting._pool])):
        print(name, *pids)
    print("ready", flush=True)
    sys.stdin.read()

main()
"""


def captured(program: Program, folder: Path) -> Evidence:
    bundle = folder / "bundle"
    words = ("--pid", str(program.pid), "--observe", "0.2", "-o", str(bundle))
    assert finished(start(*words, stdin=subprocess.DEVNULL), bundle).status == 0
    return evidence_of(bundle)


def by_pid(known: Evidence) -> Dict[int, Process]:
    return {p.pid: p for p in known.processes}


@pytest.mark.parametrize("python", kinds())
def test_what_processes_share_is_told_apart(python: str, tmp_path: Path) -> None:
    """A lock whose holder was killed, one that a fork took along, a result whose worker was killed, a join before the queue
    is drained: each at its line, in its process; and a pool at rest, of which nothing is said."""
    with Program(python, PROGRAM, tmp_path) as program:
        said: Dict[str, List[int]] = {n: list(map(int, pids)) for n, *pids in map(str.split, program.lines)}
        known = captured(program, tmp_path)
        diagnosis = classify(known)
        found: Dict[str, Finding] = {f.pattern: f for f in reversed(diagnosis.findings) if f.confidence != "possible"}
        places = {
            name: (f.culprits[0].pid, f.culprits[0].line, f.confidence) for name, f in found.items() if f.culprits
        }
        assert places["semaphore-orphan"] == (*said["second"], program.line_of("guard"), "proven")
        assert places["fork-inherited-lock"] == (*said["copy"], program.line_of("note"), "proven")
        assert places["mp-worker-died"] == (program.pid, program.line_of("answer"), "proven")
        # another thread of the parent moves, and might read the pipe
        assert places["mp-join-before-drain"] == (program.pid, program.line_of("collect"), "likely")
        assert not {c.pid for f in found.values() for c in f.culprits} & set(said["resting"])

        root = by_pid(known)[program.pid]
        orphan = next(r for r in by_pid(known)[said["second"][0]].resources if r.kind == "shared-semaphore")
        assert (orphan.description, orphan.value) == ("Lock Ledger.guard, shared by processes", 0)
        inherited = [f for f in diagnosis.findings if f.pattern == "fork-inherited-lock"]
        assert [(f.culprits[0].pid, f.culprits[0].line, f.confidence) for f in inherited[1:]] == [
            (*said["late"], program.line_of("write"), "likely")  # its holder has ended in the parent since
        ]

        asked = [by_pid(known)[said[name][0]] for name in ("guest", "servant")]
        permits = [next(r for r in p.resources if r.kind == "shared-semaphore" and r.waiters) for p in asked]
        assert [r.description for r in permits] == ["Semaphore Desk.free, shared by processes"] * 2
        assert [[f.line for f in r.taken_at] for r in permits] == [[program.line_of("desk")], []]
        waits = [f for f in diagnosis.findings if f.pattern == "semaphore-orphan" and f.confidence == "possible"]
        # a thread of the parent moves, and might release either
        assert [{c.pid for c in f.culprits} for f in waits] == [{p.pid} for p in asked]

        idle = next(pool for pool in root.pools if set(pool.processes) == set(said["resting"]))
        assert (sorted(idle.idle), idle.replaced, idle.pending) == (sorted(said["resting"]), 0, 0)
        farm = next(pool for pool in root.pools if pool.kind == "ProcessPoolExecutor")
        assert (farm.description, farm.limit, farm.pending, farm.idle) == ("ProcessPoolExecutor farm", 1, 1, ())
        assert (len(farm.processes), farm.broken, farm.shutdown) == (1, False, False)
        nap = next(r for r in root.resources if r.kind == "future")
        assert nap.description == "Future of sleep, with ProcessPoolExecutor farm"
        assert next(w.tid for w in nap.wakers if w.role == "runner") in farm.threads
        pool = next(pool for pool in root.pools if pool not in (idle, farm))
        assert (pool.description, pool.replaced, pool.pending) == ("multiprocessing.Pool pool", 1, 1)


MADE = """
import multiprocessing, time
made = multiprocessing.get_context("fork")
for seconds in (0, 0, 3600):
    child = made.Process(target=time.sleep, args=(seconds,))
    child.start()
    if not seconds: child.join()
print("ready", flush=True)
child.join()
"""


@pytest.mark.parametrize("python", kinds())
def test_how_many_children_were_made(python: str, tmp_path: Path) -> None:
    """Those that have ended and were collected count, too; a child begins anew."""
    with Program(python, MADE, tmp_path) as program:
        finished(start("--pid", str(program.pid), "-o", str(tmp_path / "bundle")), tmp_path / "bundle")
    known = evidence_of(tmp_path / "bundle")
    assert {p.ppid == program.pid: p.children_made for p in known.processes} == {False: 3, True: 0}


SHORT = """
import multiprocessing, time
made = multiprocessing.get_context("fork")
gate = made.Barrier(3)
def work():
    gate.wait()
for _ in range(2): made.Process(target=work, daemon=True).start()
while gate.n_waiting < 2: time.sleep(0.01)
print("ready", flush=True)
for child in multiprocessing.active_children(): child.join()
"""


@pytest.mark.parametrize("python", kinds())
def test_a_barrier_of_processes_that_one_never_reaches(python: str, tmp_path: Path) -> None:
    """A condition shared by processes is waited for: its semaphore is no lock that somebody holds."""
    with Program(python, SHORT, tmp_path) as program:
        known = captured(program, tmp_path)
    waits = [r for p in known.processes for r in p.resources if r.kind == "shared-semaphore" and r.waiters]
    assert {(r.description, r.state) for r in waits} == {
        ("Barrier gate (its notification), shared by processes", SIGNALLED)
    }
    first = classify(known).findings[0]
    assert (first.pattern, first.confidence, first.culprits[0].line) == ("missed-wakeup", "likely", 6)
