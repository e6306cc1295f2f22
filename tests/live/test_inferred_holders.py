"""Holders that only sources tell: of locks taken in functions that have returned, of things taken out of pools."""

from __future__ import annotations

from pathlib import Path

import pytest

from postmortem.memory import ProcMem

from ..support.interpreters import Program, kinds
from ..support.lockbooks import read

pytestmark = pytest.mark.live

LIBRARY = """
import threading
class Guard:
    def __init__(self): self.turns = []
    def __enter__(self): self.acquire()
    def __exit__(self, *_): self.turns.pop().release()
    def acquire(self):
        before = self.turns[-1] if self.turns else None
        self.turns.append(threading.Lock())
        self.turns[-1].acquire()
        if before is not None: before.acquire()
class Transaction:
    def __init__(self, latch): self.latch = latch
    def begin(self):
        self.latch.acquire()
        return self
    def touch(self):
        self.latch.acquire()
        self.latch.release()
    def commit(self, then):
        then()
        self.latch.release()
"""

PROGRAM = """
import contextlib, logging, queue, sys, threading, time
from transactions import Guard, Transaction

class Lease:
    def __init__(self, pool): self.pool = pool
    def __enter__(self): self.one = self.pool.idle.get()
    def __exit__(self, *_): self.pool.idle.put(self.one)

class Pool:
    def __init__(self):
        self.idle = queue.LifoQueue()
        self.idle.put("one")
    def checkout(self): return self.idle.get()
    def checkin(self, one): self.idle.put(one)

class Shelf:
    latch = threading.Lock()
    @contextlib.contextmanager
    def hold(self):
        self.latch.acquire()
        try: yield self
        finally: self.latch.release()

begun, committing, touched, several, tried, lent = (threading.Lock() for _ in range(6))
handler = logging.Handler()
leased, checked, consumed = Pool(), Pool(), Pool()
inside = threading.Semaphore(0)
def forever():
    inside.release()
    time.sleep(3600)
def has_begun():
    transaction = Transaction(begun)
    transaction.begin()
    forever()
    transaction.commit(print)
def commits():
    Transaction(committing).begin().commit(forever)
def has_touched():
    transaction = Transaction(touched)
    transaction.touch()
    forever()
def either():
    several.acquire(False)
    forever()
class Client:
    def __init__(self): self.answer = threading.Lock()
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def ask(self, answer):
        answer.acquire()
client = Client()
def wants_asked():
    with client: client.ask(client.answer)
guard = Guard()
def guards():
    with guard: forever()
def wants_guarded():
    with guard: pass
def has_tried():
    tried.acquire()
    forever()
def stacks():
    with contextlib.ExitStack() as stack:
        stack.enter_context(Shelf().hold())
        forever()
def lends():
    with lent: without(lent.release, lent.acquire)
def without(drop, take):
    drop()
    forever()
    take()
def borrows():
    lent.acquire(); forever(); lent.release()
def handles():
    handler.acquire()
    try: forever()
    finally: handler.release()
def leases():
    with Lease(leased): forever()
def checks():
    one = checked.checkout()
    try:
        forever()
    finally:
        checked.checkin(one)
def consumes():
    consumed.checkout()
    forever()
def wants_begun(): begun.acquire()
def wants_committing(): committing.acquire()
def wants_touched(): touched.acquire()
def wants_several(): several.acquire()
def wants_tried():
    if not tried.acquire(False):
        tried.acquire()
def wants_stacked():
    cls = Shelf
    cls.latch.acquire()
def wants_lent(): lent.acquire()
def wants_handler(): handler.acquire()
def wants_leased(): leased.idle.get()
def wants_checked(): checked.idle.get()
def wants_consumed(): consumed.idle.get()
has = (guards, has_begun, commits, has_touched, either, either, has_tried, stacks, handles, leases, checks, consumes)
wants = (wants_begun, wants_committing, wants_touched, wants_several, wants_tried, wants_stacked, wants_lent,
         wants_guarded, wants_asked, wants_handler, wants_leased, wants_checked, wants_consumed)
def start():
    for function in has: threading.Thread(target=function, name=function.__name__, daemon=True).start()
    for _ in has: inside.acquire()
    for function in (lends, borrows):  # one after the other: the second takes what the first has let go
        threading.Thread(target=function, name=function.__name__, daemon=True).start()
        inside.acquire()
    touched.acquire()
    gone = threading.Thread(target=client.answer.acquire)
    gone.start()
    gone.join()
    threads = [threading.Thread(target=function, name=function.__name__, daemon=True) for function in wants]
    for thread in threads: thread.start()
    for _ in range(3):  # the interpreter lock is a futex, too
        while any(open(f"/proc/self/task/{t.native_id}/syscall").read().split()[0] != "202" for t in threads):
            time.sleep(0.01)
        time.sleep(0.02)
start()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("python", kinds())
def test_holders_by_source(python: str, tmp_path: Path) -> None:
    """Taken in a function of another file that has returned; yet to be released by one that was entered with it; taken out
    of a queue and to be put back. Not: taken and given back; by one of two; taken for good."""
    (tmp_path / "transactions.py").write_text(LIBRARY)
    with Program(python, PROGRAM, tmp_path) as program, ProcMem(program.pid) as memory:
        _book, _collected, _pools, threads, waits = read(program, memory)
        names = {tid: str(thread.name) for tid, thread in threads.items()}
        owners = {
            name: (names.get(r.owner_tid or 0), r.owner_basis) for name, r in waits.items() if r.kind.endswith("lock")
        }
        places = [frame.code.location(frame.lasti) for thread in threads.values() for frame in thread.frames]
        columns = any(place is not None and place.column is not None for place in places)  # since 3.11
        assert owners == {
            "wants_begun": ("has_begun", "inferred"),
            "wants_committing": ("commits", "inferred"),
            "wants_touched": ("MainThread", "inferred"),  # not has_touched, who has given it back
            "wants_several": (None, None),
            "wants_tried": ("has_tried", "inferred"),
            "wants_stacked": ("stacks", "inferred"),
            "wants_lent": ("borrows", "inferred") if columns else (None, None),
            "wants_guarded": ("guards", "inferred"),  # a lock of a class of its own
            "wants_asked": (None, None),  # in a with statement of an object that is no lock
            "wants_handler": ("handles", "recorded"),
        }
        assert waits["wants_stacked"].description == "Lock Shelf.latch"
        holders = {name: [names[w.tid or 0] for w in r.wakers] for name, r in waits.items() if r.kind == "queue"}
        assert holders == {"wants_leased": ["leases"], "wants_checked": ["checks"], "wants_consumed": []}
        assert {w.basis for r in waits.values() for w in r.wakers} == {"inferred"}
