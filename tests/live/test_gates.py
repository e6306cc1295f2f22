"""Pools, limiters and the like that no table knows: who waits for which, and who holds its parts since which line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from ..support.diagnosing import capture_pid
from ..support.interpreters import Program, kinds, old_and_new

pytestmark = pytest.mark.live

#: What the program imports: not its own code. A record in the pool's queue, a facade around it in the user's hands.
LIBRARY = """
import collections, contextlib, queue, threading

class Record:
    def __init__(self, pool): self._pool, self.raw = pool, object()
class Facade:
    def __init__(self, pool, record): self._pool, self._record = pool, record
    def close(self):
        record, self._record = self._record, None
        self._pool.put_back(record)
class Session:
    def __init__(self, facade): self.facade = facade
class QueuePool:
    def __init__(self, size, overflow):
        self._idle, self._max_overflow, self._made = queue.Queue(size), overflow, 0
    def connect(self):
        return Session(self.check_out())
    def check_out(self):
        if self._made < self._idle.maxsize + self._max_overflow:
            self._made += 1
            return Facade(self, Record(self))
        return Facade(self, self._idle.get())
    def put_back(self, record): self._idle.put(record)

class Client:
    def __init__(self): self.ready, self.link = threading.Event(), None
class Link: pass
class ListedPool:
    def __init__(self, max_size):
        self._max_size, self._all, self._free = max_size, [], collections.deque()
        self._waiting, self._lock = collections.deque(), threading.Lock()
    @contextlib.contextmanager
    def link(self):
        one = self.take()
        try: yield one
        finally: self._free.append(one)
    def take(self):
        with self._lock:
            if self._free: return self._free.popleft()
            if len(self._all) < self._max_size:
                self._all.append(Link())
                return self._all[-1]
            client = Client()
            self._waiting.append(client)
        client.ready.wait()
        return client.link
"""
THREADS = """
import queue, sys, threading
sys.path.insert(0, sys.argv[1])
from lenders import ListedPool, QueuePool

class Tokens:
    def __init__(self, most):
        self.free = ["token"] * most
        self.changed = threading.Condition()
    def take(self):
        with self.changed:
            while not self.free: self.changed.wait()
            return self.free.pop()
    def give(self, token):
        with self.changed:
            self.free.append(token)
            self.changed.notify()
class Turnstile:
    def __init__(self, places): self.gate = threading.BoundedSemaphore(places)
    def __enter__(self): self.gate.acquire()
    def __exit__(self, *_): self.gate.release()

meet = threading.Barrier(9)
queued, listed, listed_by_hand, tokens, turnstile = QueuePool(1, 1), ListedPool(2), ListedPool(2), Tokens(2), Turnstile(2)
spent = queued.connect()
spent.facade._record, spent.facade._pool._made = None, 0                     # given back long ago

def in_queue():
    session = queued.connect()                                               # takes-QueuePool
    meet.wait()
    queued.connect()
def in_body():
    with listed.link() as link:                                              # takes-ListedPool
        meet.wait()
        with listed.link(): pass
def by_source():
    token = tokens.take()                                                    # takes-Tokens
    meet.wait()
    other = tokens.take()
    tokens.give(token)
def around():
    with turnstile:                                                          # takes-Turnstile
        meet.wait()
        with turnstile: pass
threads = [threading.Thread(target=f, daemon=True) for f in (in_queue, in_body, by_source, around) for _ in range(2)]
for thread in threads: thread.start()
meet.wait()
print("ready", flush=True)
for thread in threads: thread.join()
"""


def gates(report: Dict[str, Any]) -> Dict[str, Dict[str, Any]]:
    """The pools of a report, by the name of the class."""
    found = [r for r in report["processes"][0]["resources"] if r["kind"] == "pool"]
    return {r["description"].split(" ")[0].rpartition(".")[2]: r for r in found}


def holders(gate: Dict[str, Any]) -> List[Tuple[str, int]]:
    """How each holder of a pool is known, and since which line it holds its part."""
    return [(w["basis"], w["frame"]["line"]) for w in gate["wakers"] if w["role"] == "holder"]


@pytest.mark.parametrize("python", kinds())
def test_what_threads_hold_of_a_pool(python: str, tmp_path: Path) -> None:
    """By what it made, what it lists, its `with` bodies and the source of who took from it; all of them are exhausted."""
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "lenders.py").write_text(LIBRARY)
    with Program(python, THREADS, tmp_path, str(tmp_path / "site-packages")) as program:
        report = capture_pid(program.pid, tmp_path)
        taken = {name: program.line_of(f"takes-{name}") for name in ("QueuePool", "ListedPool", "Tokens", "Turnstile")}
    found = gates(report)
    assert {name: holders(gate) for name, gate in found.items()} == {
        "QueuePool": [("memory", taken["QueuePool"])] * 2,
        "ListedPool": [("with-slot", taken["ListedPool"])] * 2,
        "Tokens": [("inferred", taken["Tokens"])] * 2,
        "Turnstile": [("with-slot", taken["Turnstile"])] * 2,
    }
    assert {name: (gate["limit"], gate["value"]) for name, gate in found.items()} == {
        "QueuePool": (2, 0), "ListedPool": (2, 0), "Tokens": (None, 0), "Turnstile": (2, 0)
    }  # fmt: skip
    exhausted = [f for f in report["findings"] if f["pattern"] == "pool-exhausted"]
    assert sorted(f["confidence"] for f in exhausted) == ["likely", "proven", "proven", "proven"]
    assert {f["culprits"][-1]["line"] for f in exhausted} == set(taken.values())
    waits = [t["wait"] for t in report["processes"][0]["threads"] if t["wait"] and t["wait"]["gate"]]
    assert len(waits) == 8 and all(wait["resource"] != wait["gate"] for wait in waits)


NO_POOLS = """
import contextlib, queue, threading, time
from concurrent.futures import ThreadPoolExecutor

class Job:
    def __init__(self, service): self.service, self.done = service, threading.Event()
class Jobs:
    def __init__(self): self.inbox, self.finished = queue.Queue(), []
    def next(self): return self.inbox.get()
    def add(self, job): self.inbox.put(job)
    def finish(self, job): self.finished.append(job)
def consumes(jobs):
    while True:
        job = jobs.next()
        jobs.finish(job if job else busy())
def busy():
    started.release()
    time.sleep(3600)

class Service:                       # as many workers as jobs at most; they have jobs that it made
    def __init__(self, most):
        self.max_jobs, self.inbox, self.results = most, queue.Queue(), queue.Queue()
        self.changed = threading.Condition()
        self.workers = [Worker(self) for _ in range(most)]
        for worker in self.workers: worker.start()
    def submit(self):
        job = Job(self)
        self.inbox.put(job)
        return job
    def ask(self): self.submit().done.wait()
    def collect(self): return self.results.get()
    def idle(self):
        with self.changed: self.changed.wait()
class Worker(threading.Thread):
    def __init__(self, service):
        super().__init__(daemon=True)
        self.service = service
    def run(self):
        while True:
            job = self.service.inbox.get()
            busy()
            job.done.set()

class Actor(threading.Thread):       # replies refer to it, and those that ask have them
    def __init__(self):
        super().__init__(daemon=True)
        self.box = queue.Queue()
    def run(self):
        while True: self.answer(self.box.get())
    def answer(self, reply): busy()
    def ask(self):
        reply = Reply(self)
        self.box.put(reply)
        reply.come.wait()
class Reply:
    def __init__(self, actor): self.actor, self.come = actor, threading.Event()

class Server:                        # as many clients as it admits; it waits to be stopped
    def __init__(self, most):
        self.max_clients, self.stopped, self.clients = most, threading.Event(), []
    def serve(self): self.stopped.wait()
class Client:
    def __init__(self, server):
        self.server = server
        server.clients.append(self)
def talks(client): busy()

class Portal:                        # whose end is called as the work that others wait for is
    def __init__(self): self.answers = queue.Queue()
    def call(self, function):
        function()
        return self.answers.get()
@contextlib.contextmanager
def portal():
    made = Portal()
    try: yield made
    finally: made.call(made.answers.join)
def calls():
    with portal() as made: made.call(int)

class Session:                       # opened as a whole by what made it; threads beside it ask it for answers
    def __init__(self): self.max_size, self.answers = 1, queue.Queue()
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def ask(self):
        Opened(None)
        return self.answers.get()
    def put(self, answer): self.answers.put(answer)
    def close(self): self.answers.get()
class Opened:
    def __init__(self, made): self.made = made
    def __enter__(self): return self.made.__enter__()
    def __exit__(self, *_): return self.made.__exit__()
def opens():
    with Opened(Session()) as session:
        asking = threading.Thread(target=lambda: session.ask(), daemon=True)
        asking.start()
        asking.join()
def closes():                        # a thread that closes it wants no part of it
    session = Session()
    closing = threading.Thread(target=lambda: session.close(), daemon=True)
    closing.start()
    closing.join()

started = threading.Semaphore(0)
jobs, service, actor, server = Jobs(), Service(2), Actor(), Server(2)
actor.start()
jobs.add(None)
work = [lambda: consumes(jobs), lambda: consumes(jobs), service.ask, service.ask, service.collect, service.idle]
work += [actor.ask, actor.ask, server.serve, lambda: service.collect(), lambda: server.serve(), calls, opens, closes]
work += [lambda client=Client(server): talks(client) for _ in range(2)]
for one in work: threading.Thread(target=one, daemon=True).start()
executor = ThreadPoolExecutor(2)
executor.submit(int).result()
for _ in range(6): started.acquire()
print("ready", flush=True)
def rests(): service.idle()
rests()
"""


LOCKED = """
import contextlib, threading, time
class BookLock:
    def __init__(self): self._cond, self._readers, self._writes = threading.Condition(), 0, False
    @contextlib.contextmanager
    def reading(self):
        with self._cond:
            while self._writes: self._cond.wait()
            self._readers += 1
        try: yield
        finally:
            with self._cond:
                self._readers -= 1
                self._cond.notify_all()
    @contextlib.contextmanager
    def writing(self):
        with self._cond:
            while self._writes or self._readers: self._cond.wait()
            self._writes = True
        try: yield
        finally:
            with self._cond:
                self._writes = False
                self._cond.notify_all()
lock = BookLock()
def total():
    with lock.reading(): pass
def add():
    with lock.writing():             # holds
        total()
class Desk:                          # refers to the lock, but being inside takes nothing of it
    def __init__(self): self.lock = lock
    def __enter__(self): return self
    def __exit__(self, *problem): pass
def beat():
    with Desk():
        while True: time.sleep(0.5)
threading.Thread(target=beat, name="beat", daemon=True).start()
adding = threading.Thread(target=add, name="adding")
adding.start()
time.sleep(0.2)
print("ready", flush=True)
adding.join()
"""


@pytest.mark.parametrize("python", old_and_new())
def test_a_lock_of_the_programs_own_is_held_in_its_with_body(python: str, tmp_path: Path) -> None:
    """A writer that reads in between waits for itself; the condition inside the lock does not tell who holds it."""
    with Program(python, LOCKED, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path, "--observe", "0.3")
    first = report["findings"][0]
    assert (first["pattern"], first["confidence"]) == ("self-deadlock", "likely")
    line = next(n for n, text in enumerate(LOCKED.splitlines(), 1) if text.endswith("# holds"))
    assert line in [culprit["line"] for culprit in first["culprits"]]


@pytest.mark.parametrize("python", kinds())
def test_what_is_no_pool(python: str, tmp_path: Path) -> None:
    """Consumers, services with workers, actors with replies, servers with clients and portals that are closed lend nothing."""
    with Program(python, NO_POOLS, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path)
    assert gates(report) == {}
    assert not [f for f in report["findings"] if f["pattern"] == "pool-exhausted"]


KEPT = """
import threading, time

class Link:
    def __init__(self, pool): self.pool = pool
class Pool:
    def __init__(self, size):
        self.size, self.made, self.idle, self.changed = size, 0, [], threading.Condition()
    def take(self):
        with self.changed:
            while not self.idle and self.made == self.size: self.changed.wait()
            if self.idle: return self.idle.pop()
            self.made += 1
            return Link(self)
    def give(self, link):
        with self.changed:
            self.idle.append(link)
            self.changed.notify()
def keeps(pool, kept):
    link = pool.take()                             # keeps
    kept.release()
    threading.Event().wait(3600)
def wants(pool):
    link = pool.take()
    pool.give(link)
def works(pool):
    while True:
        link = pool.take()
        time.sleep(0.01)
        pool.give(link)
leaking, lively, kept = Pool(2), Pool(2), threading.Semaphore(0)
work = [(keeps, (leaking, kept))] * 2 + [(works, (lively,))] * 4
threads = [threading.Thread(target=f, args=arguments, daemon=True) for f, arguments in work]
for thread in threads: thread.start()
for _ in range(2): kept.acquire()
waiter = threading.Thread(target=wants, args=(leaking,), daemon=True)
waiter.start()
while not leaking.changed._waiters: pass
print("ready", flush=True)
waiter.join()
"""


@pytest.mark.parametrize("python", kinds())
def test_parts_that_are_kept(python: str, tmp_path: Path) -> None:
    """Holders that rest elsewhere, for an hour, are named with the line that took; a pool whose users come and go is none."""
    with Program(python, KEPT, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path)
        line = program.line_of("keeps")
    kept = [f for f in report["findings"] if f["pattern"] == "pool-exhausted"]
    assert [(f["confidence"], [c["line"] for c in f["culprits"]]) for f in kept] == [("likely", [line])]


FORGOTTEN = """
import threading

class Link:
    def __init__(self, pool): self.pool = pool
class Pool:
    def __init__(self, max_links):
        self.max_links, self.links, self.idle, self.changed = max_links, 0, [], threading.Condition()
    def take(self):
        with self.changed:
            while not self.idle and self.links >= self.max_links: self.changed.wait()
            if self.idle: return self.idle.pop()
            self.links += 1
            return Link(self)
    def give(self, link):
        with self.changed:
            self.idle.append(link)
            self.changed.notify()
class Cache:
    def __init__(self): self.links = {}
    def link(self, customer):
        if customer not in self.links:
            self.links[customer] = pool.take()            # takes
        return self.links[customer]
pool, cache = Pool(3), Cache()
def work(first):
    for customer in range(first, 9, 2): cache.link(customer)
threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(2)]
for thread in threads: thread.start()
while len(pool.changed._waiters) < 2: pass
print("ready", flush=True)
for thread in threads: thread.join()
"""


@pytest.mark.parametrize("python", kinds())
def test_parts_that_nobody_alone_has(python: str, tmp_path: Path) -> None:
    """A cache that threads share keeps them: the pool's own count says that all of them are out."""
    with Program(python, FORGOTTEN, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path)
        line = program.line_of("takes")
    pool = gates(report)["Pool"]
    assert (pool["limit"], pool["value"], holders(pool), len(pool["waiters"])) == (3, 0, [], 2)
    first = report["findings"][0]
    assert (first["pattern"], line in [c["line"] for c in first["culprits"]]) == ("pool-exhausted", True)


#: A method that calls itself while it holds what it took, as retries of HTTP clients do.
RETRIES = """
import queue, threading, time

class Answer:
    def __init__(self, pool): self.pool, self.status = pool, 503
class Pool:
    def __init__(self, size):
        self.idle = queue.LifoQueue(size)
        for _ in range(size): self.idle.put(object())
        self.met = threading.Barrier(size)
    def take(self):
        return self.idle.get()
    def give(self, connection):
        self.idle.put(connection)
    def open(self, retries):
        connection = self.take()
        answer = Answer(self)
        answer.connection = connection
        if retries:
            self.met.wait()
            self.open(retries - 1)
        self.give(connection)
        return answer
pool = Pool(2)
for _ in range(2): threading.Thread(target=lambda: pool.open(1)).start()
while len(pool.idle.not_empty._waiters) < 2: time.sleep(0.01)
print("ready", flush=True)
"""


@pytest.mark.parametrize("python", kinds())
def test_a_method_that_waits_below_itself_holds_a_part_since_the_outer_call(python: str, tmp_path: Path) -> None:
    """The answer that the outer call made is lent, not a request of the inner one."""
    with Program(python, RETRIES, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path)
    pool = gates(report)["Pool"]
    assert (pool["limit"], len(pool["wakers"]), len(pool["waiters"])) == (2, 2, 2)
    first = report["findings"][0]
    assert (first["pattern"], first["confidence"]) == ("pool-exhausted", "proven")


TASKS = """
import anyio

async def inside(limiter):
    async with limiter: pass
async def nested(limiter, met):
    async with limiter:                            # takes
        met.append(True)
        while len(met) < 2: await anyio.sleep(0.01)
        async with anyio.create_task_group() as group: group.start_soon(inside, limiter)
async def main():
    limiter, met = anyio.CapacityLimiter(2), []
    async with anyio.create_task_group() as group:
        for _ in range(2): group.start_soon(nested, limiter, met)
        while limiter.statistics().tasks_waiting < 2: await anyio.sleep(0.01)
        print("ready", flush=True)
anyio.run(main)
"""


def test_what_tasks_hold_of_a_limiter(tmp_path: Path) -> None:
    """anyio's CapacityLimiter: each waiter sleeps on an event of its own; holders are in its `async with`."""
    with Program(sys.executable, TASKS, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path)
        line = program.line_of("takes")
    limiter = gates(report)["CapacityLimiter"]
    assert holders(limiter) == [("with-slot", line)] * 2 and len(limiter["waiting_tasks"]) == 2
    first = report["findings"][0]
    assert (first["pattern"], first["confidence"]) == ("pool-exhausted", "proven")


RESPONSES = """
import http.server, threading
from pip._vendor import urllib3

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        self.wfile.write(b"x" * 1000)
        threading.Event().wait()
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
pool = urllib3.HTTPConnectionPool("127.0.0.1", server.server_port, maxsize=2, block=True)
meet = threading.Barrier(3)
def fetch():
    first = pool.request("GET", "/", preload_content=False)        # takes
    meet.wait()
    pool.request("GET", "/", preload_content=False)
threads = [threading.Thread(target=fetch, daemon=True) for _ in range(2)]
for thread in threads: thread.start()
meet.wait()
print("ready", flush=True)
for thread in threads: thread.join()
"""


def test_connections_of_urllib3(tmp_path: Path) -> None:
    """A response that was not read keeps its connection; pip's copy of the library stands for it."""
    with Program(sys.executable, RESPONSES, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path)
        line = program.line_of("takes")
    assert holders(gates(report)["HTTPConnectionPool"]) == [("memory", line)] * 2
    assert report["findings"][0]["pattern"] == "pool-exhausted"
