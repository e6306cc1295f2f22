"""Every kind of wait for an object of threading, queue, concurrent.futures and importlib, on every interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Optional, Tuple

import pytest

from postmortem.cpython.state.interpreter import ThreadState
from postmortem.evidence import Resource
from postmortem.memory import ProcMem

from ..support.interpreters import Program, matrix
from ..support.lockbooks import read

pytestmark = pytest.mark.live

PROGRAM = """
import contextlib, os, queue, sys, threading, time
from concurrent import futures

class Stock:
    by_hand = threading.Lock()
    def __init__(self):
        self.changed, self.busy = threading.Condition(), threading.Condition(threading.Lock())
        self.lock, self.relock, self.lost, self.gone = (
            threading.Lock(), threading.RLock(), threading.Lock(), threading.RLock())
        self.open, self.shelves = threading.Event(), {"left": threading.Event()}
        self.inbox, self.small, self.jobs, self.idle = (
            queue.Queue(), queue.Queue(2), queue.LifoQueue(), queue.Queue(1))
        self.simple, self.stacked = queue.SimpleQueue(), threading.Lock()
        self.permits, self.plain, self.meet = threading.BoundedSemaphore(1), threading.Semaphore(1), threading.Barrier(3)
        self.idle.put(object())
        self.box = queue.Queue()
    def begin(self):
        self.by_hand.acquire()
    @contextlib.contextmanager
    def item(self):
        one = self.idle.get()
        try:
            yield one
        finally:
            self.idle.put(one)
    def merge(self, rows):
        self.lost.acquire()  # lost
        for row in rows:
            float(row)
        self.lost.release()
    def has_lock(self):
        with self.lock: forever()
    def has_relock(self):
        with self.relock: forever()
    def has_busy(self):
        while not self.busy._waiters: time.sleep(0.01)
        with self.busy:
            self.busy.notify()
            forever()
    def has_permit(self):
        with self.permits: forever()
    def has_plain(self):
        self.plain.acquire()
        forever()
    def has_begun(self):
        self.begin()
        forever()
    def has_mutex(self):
        self.box.mutex.acquire()
        forever()
    def has_stacked(self):
        self.exits = contextlib.ExitStack()
        self.exits.enter_context(self.stacked)
        forever()
    def has_item(self):
        with self.item(): forever()
    def wants_lock(self):
        with self.lock: pass
    def wants_relock(self): self.relock.acquire()
    def wants_busy(self):
        with self.busy: self.busy.wait()
    def wants_permit(self):
        with self.permits: pass
    def wants_plain(self): self.plain.acquire()
    def wants_begun(self): self.by_hand.acquire()
    def wants_mutex(self): self.box.get()
    def wants_stacked(self): self.stacked.acquire()
    def wants_item(self):
        with self.item(): pass
    def wants_lost(self):
        with self.lost: pass
    def wants_gone(self): self.gone.acquire()
    def notified(self):
        with self.changed: self.changed.wait_for(lambda: False)
    def event(self): self.open.wait()
    def shelf(self): self.shelves["left"].wait()
    def gets(self): self.inbox.get()
    def timed(self): self.inbox.get(timeout=3600)
    def puts(self):
        for n in range(3): self.small.put(n)
    def empties(self):
        self.jobs.put(1)
        self.jobs.join()
    def simple_get(self): self.simple.get()
    def barrier(self): self.meet.wait()
    def joins(self): threads["has_lock"].join()
    def result(self): first.result()
    def queued(self): third.result()
    def all_of(self): futures.wait([first, second, third])
    def any_of(self):
        for _ in futures.as_completed([second]): pass
    def bare(self): futures.Future().result()
    def imports(self): import slow
    def wants_import(self): import slow

inside = threading.Semaphore(0)
def forever():
    inside.release()
    time.sleep(3600)
def ends(function, *args):
    with contextlib.suppress(ValueError): function(*args)
stock, threads = Stock(), {}
with open("slow.py", "w") as module: module.write("from __main__ import forever; forever()")
sys.path.insert(0, os.getcwd())
dying = [threading.Thread(target=ends, args=a) for a in ((stock.gone.acquire,), (stock.merge, ["x"]))]
for thread in dying: thread.start()
for thread in dying: thread.join()
pool = futures.ThreadPoolExecutor(2, thread_name_prefix="size")
first, second, third = pool.submit(forever), pool.submit(forever), pool.submit(stock.event)
names = [n for n in vars(Stock) if not n.startswith("_") and n not in ("begin", "item", "merge", "by_hand")]
has = [n for n in names if n.startswith("has_") or n == "imports"]
for name in (*has, *(n for n in names if n not in has)):
    threads[name] = threading.Thread(target=getattr(stock, name), name=name, daemon=True)
    threads[name].start()
    if name == has[-1]:
        for _ in (first, second, *has[1:]): inside.acquire()  # all but has_busy, who waits for wants_busy
inside.acquire()
calls = ("202", "230", "270", "23")  # futex, clock_nanosleep, pselect6, select
def resting():
    found = [open(f"/proc/self/task/{t.native_id}/syscall").read().split()[0] for t in threads.values()]
    return all(call in calls for call in found)
for _ in range(3):  # the interpreter lock is a futex, too
    while not resting(): time.sleep(0.01)
    time.sleep(0.02)
print("ready", flush=True)
sys.stdin.read()
"""

Row = Tuple[str, str, Optional[str], Optional[str]]
#: thread → (kind, description, who has it or could bring it, basis or role) of what it waits for
EXPECTED: Dict[str, Row] = {
    "wants_lock": ("lock", "Lock Stock.lock", "has_lock", "with-slot"),
    "wants_relock": ("rlock", "RLock Stock.relock", "has_relock", "recorded"),
    "wants_busy": ("lock", "the lock of Condition Stock.busy", "has_busy", "with-slot"),
    "wants_permit": ("semaphore", "BoundedSemaphore Stock.permits (0 of 1 permits left)", "has_permit", "holder"),
    "wants_plain": ("semaphore", "Semaphore Stock.plain (no permit left)", "has_plain", "holder"),
    "wants_begun": ("lock", "Lock Stock.by_hand", "has_begun", "inferred"),
    "wants_mutex": ("lock", "Lock Stock.box.mutex", "has_mutex", "inferred"),
    "wants_stacked": ("lock", "Lock Stock.stacked", "has_stacked", "inferred"),
    "wants_item": ("queue", "Queue Stock.idle (0 of 1 places taken)", "has_item", "holder"),
    "wants_lost": ("lock", "Lock Stock.lost", None, None),
    "notified": ("condition", "Condition Stock.changed", None, None),
    "event": ("event", "Event Stock.open (not set)", None, None),
    "shelf": ("event", "Event Stock.shelves['left'] (not set)", None, None),
    "gets": ("queue", "Queue Stock.inbox (empty, no bound)", None, None),
    "timed": ("queue", "Queue Stock.inbox (empty, no bound)", None, None),
    "puts": ("queue", "Queue Stock.small (2 of 2 places taken)", None, None),
    "empties": ("queue", "LifoQueue Stock.jobs (1 item, no bound, 1 item not done)", None, None),
    "simple_get": ("queue", "SimpleQueue Stock.simple (empty, no bound)", None, None),
    "barrier": ("barrier", "Barrier Stock.meet (1 of 3 have arrived)", None, None),
    "joins": ("thread", "thread has_lock", "has_lock", "recorded"),
    "result": ("future", "Future of forever, running on size_0", "size_0", "runner"),
    "queued": ("future", "Future of Stock.event, queued in ThreadPoolExecutor size", "size_0 size_1", "runner"),
    "all_of": (
        "future",
        "3 of 3 Futures: Future of Stock.event, queued in ThreadPoolExecutor size; Future of forever, running on size_0; "
        "Future of forever, running on size_1",
        "size_0 size_1",
        "runner",
    ),
    "any_of": ("future", "1 of 1 Futures: Future of forever, running on size_1", "size_1", "runner"),
    "bare": ("future", "Future (pending, of no thread pool that was found)", None, None),
    "wants_import": ("import-lock", "import of module slow", "imports", "recorded"),
}


def row(resource: Resource, threads: Dict[int, ThreadState]) -> Row:
    names: List[str] = sorted({str(threads[w.tid].name) for w in resource.wakers if w.tid})
    owner = str(threads[resource.owner_tid].name) if resource.owner_tid else " ".join(names) or None
    return (
        resource.kind,
        resource.description,
        owner,
        resource.owner_basis or next((w.role for w in resource.wakers), None),
    )


@pytest.mark.parametrize("python", matrix())
def test_every_wait_names_its_object(python: str, tmp_path: Path) -> None:
    """What the program calls it, how full it is, who has it and how that is known: the same on all interpreters."""
    with Program(python, PROGRAM, tmp_path, cwd=tmp_path) as program, ProcMem(program.pid) as memory:
        book, collected, pools, threads, waits = read(program, memory)
        gone = waits.pop("wants_gone")
        assert {name: row(resource, threads) for name, resource in waits.items()} == EXPECTED
        # its ident may have been given to another thread since: then nothing that it runs supports the record
        assert (gone.owner_gone, gone.owner_basis) in ((True, None), (None, "inferred"))
        lost = waits["wants_lost"]
        assert [frame.line for frame in lost.taken_at] == [program.line_of("lost")] and len(lost.because) == 2
        tids = {str(thread.name): tid for tid, thread in threads.items()}
        assert waits["gets"].waiters == tuple(sorted((tids["gets"], tids["timed"])))
        assert waits["wants_permit"].closed and waits["queued"].closed and not waits["wants_plain"].closed
        (pool,) = pools.evidence()
        assert (pool.limit, pool.queued, pool.idle, len(pool.threads)) == (2, 1, (), 2)
        assert collected.joined(tids["joins"]) == tids["has_lock"]
        assert [held.basis for held in book.held_by(tids["imports"])] == ["recorded"]


THREAD_POOL = """
import threading
from multiprocessing.pool import ThreadPool
def note(number): raise ValueError(number)
threading.excepthook = lambda _: None
pool = ThreadPool(1)
kept = pool.apply_async(int, ("1",), callback=MODE)
pool._result_handler.join(WAIT)
later = pool.apply_async(int, ("2",)) if MODE is note else pool.apply_async(forever.wait)
print("ready", flush=True)
later.get()
"""


@pytest.mark.parametrize("mode", ["note", "print"])
@pytest.mark.parametrize("python", matrix())
def test_a_result_that_no_thread_of_its_pool_delivers_any_more(python: str, mode: str, tmp_path: Path) -> None:
    """A callback's exception ends the thread in which results arrive, and nothing but that proves that none will come."""
    made = THREAD_POOL.replace("MODE", mode).replace("WAIT", "None" if mode == "note" else "0.1")
    source = made.replace("import threading", "import threading\nforever = threading.Event()", 1)
    with Program(python, source, tmp_path) as program, ProcMem(program.pid) as memory:
        result = read(program, memory)[4]["MainThread"]
        told = [one.code for one in result.because if not isinstance(one, str)]
        lost = (True, ["results-thread-ended"]) if mode == "note" else (None, [])
        assert (result.kind, result.closed, told) == ("event", *lost)
