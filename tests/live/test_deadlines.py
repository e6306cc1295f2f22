"""Remaining and given time of each timed wait, on every interpreter.

A program notes when it began each wait; the capture notes when it stopped the program. What remains then lies between the
limit less the time that passed since, and the limit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

import pytest

from postmortem.evidence import Evidence, Process
from postmortem.extract.assemble.how import How
from tests.support.bundles import evidence_of

from ..support.capturing import finished, start
from ..support.interpreters import Program, kinds, matrix

pytestmark = pytest.mark.live

#: Rounding of what remains, and of milliseconds to which poll rounds up.
ROUNDED = 0.005

THREADS = """
import concurrent.futures, json, os, queue, select, selectors, signal, socket, subprocess, sys, threading, time

lock, rlock, condition, event = threading.Lock(), threading.RLock(), threading.Condition(), threading.Event()
semaphore, barrier, full = threading.Semaphore(0), threading.Barrier(2), queue.Queue(1)
full.put(1)
lock.acquire()
rlock.acquire()
pair = socket.socketpair()
pair[0].settimeout(1010)
timed_receive = pair[0]
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(0)
listener.settimeout(1011)
crowded = socket.socket()
crowded.bind(("127.0.0.1", 0))
crowded.listen(0)
crowd = []
for _ in range(4):  # until its backlog is full
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex(crowded.getsockname())
    crowd.append(one)
caller = socket.socket()
caller.settimeout(1012)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100000)"])
poller, epoller = select.poll(), select.epoll()
poller.register(pair[1].fileno(), select.POLLIN)
epoller.register(pair[1].fileno(), select.EPOLLIN)
selector = selectors.DefaultSelector()
selector.register(pair[1], selectors.EVENT_READ)
forever = threading.Thread(target=threading.Event().wait, daemon=True)
forever.start()

def waits_on_condition():
    with condition:
        condition.wait(1003)

def waits_for_predicate():
    with condition:
        condition.wait_for(lambda: False, timeout=1004)

WAITS = {
    "lock": (1001, lambda: lock.acquire(True, 1001)),
    "rlock": (1002, lambda: rlock.acquire(timeout=1002)),
    "condition": (1003, waits_on_condition),
    "predicate": (1004, waits_for_predicate),
    "event": (1005, lambda: event.wait(1005)),
    "get": (1006, lambda: queue.Queue().get(timeout=1006)),
    "put": (1007, lambda: full.put(2, True, 1007)),
    "simple": (1008, lambda: queue.SimpleQueue().get(timeout=1008)),
    "semaphore": (1009, lambda: semaphore.acquire(timeout=1009)),
    "receive": (1010, lambda: pair[0].recv(1)),
    "accept": (1011, lambda: listener.accept()),
    "connect": (1012, lambda: caller.connect(crowded.getsockname())),
    "select": (1013, lambda: select.select([pair[1]], [], [], 1013)),
    "poll": (1014, lambda: poller.poll(1014000)),
    "epoll": (1015, lambda: epoller.poll(1015)),
    "selector": (1016, lambda: selector.select(1016)),
    "sleep": (1017, lambda: time.sleep(1017)),
    "child": (1018, lambda: child.wait(1018)),
    "join": (1019, lambda: forever.join(1019)),
    "result": (1020, lambda: concurrent.futures.Future().result(1020)),
    "barrier": (1021, lambda: barrier.wait(1021)),
    "signal": (1022, lambda: signal.sigtimedwait([signal.SIGUSR2], 1022)),
}
begun = {}

def run(name, wait):
    begun[name] = time.monotonic()
    wait()

for name, (_limit, wait) in WAITS.items():
    threading.Thread(target=run, args=(name, wait), name=name, daemon=True).start()
while len(begun) < len(WAITS):
    time.sleep(0.01)
tids = [tid for tid in os.listdir("/proc/self/task") if int(tid) != os.getpid()]
while any(open(f"/proc/self/task/{tid}/syscall").read().startswith("running") for tid in tids):
    time.sleep(0.01)
print(json.dumps({name: [begun[name], limit] for name, (limit, _wait) in WAITS.items()}), flush=True)
print("ready", flush=True)
sys.stdin.read()
"""


def captured(program: Program, folder: Path, *words: str) -> Tuple[Evidence, float]:
    """The evidence of the running program, and CLOCK_MONOTONIC when it was stopped."""
    bundle = folder / "b"
    done = finished(start("--observe", "0", *words, "-o", str(bundle), "--pid", str(program.pid)), bundle)
    assert done.status == 0, done.stderr
    return evidence_of(bundle, How(gdb_s=0)), float(done.raw(f"proc/{program.pid}/stop.json")["monotonic"])


def process_of(found: Evidence, pid: int) -> Process:
    return next(process for process in found.processes if process.pid == pid)


def plausible(remaining: Optional[float], began: float, limit: float, now: float) -> bool:
    """Whether that remains of a wait that was entered at ``began`` or later, and before ``now``."""
    return remaining is not None and began + limit - now - ROUNDED <= remaining <= limit + ROUNDED


@pytest.mark.parametrize("python", matrix())
def test_threads(python: str, tmp_path: Path) -> None:
    """Every wait of a thread tells what it was given and what remains of that."""
    with Program(python, THREADS, tmp_path) as program:
        found, now = captured(program, tmp_path)
        noted: Dict[str, Any] = json.loads(program.lines[-1])
    waits = {thread.name: thread.wait for thread in process_of(found, program.pid).threads}
    by_order = dict(zip(noted, [t.wait for t in process_of(found, program.pid).threads if not t.is_main][1:]))
    wrong = {}
    for name, (began, limit) in noted.items():
        wait = waits.get(name) or by_order.get(name)
        told = (wait.endless, wait.timeout_s, wait.remaining_s) if wait is not None else (None, None, None)
        if told[:2] != (False, limit) or not plausible(told[2], began, limit, now):
            wrong[name] = told
    assert wrong == {}


TASKS = """
import asyncio, json, sys, threading, time

begun = {}
limits = {}

async def note(name, limit, awaitable):
    limits[name] = limit
    begun[name] = time.monotonic()
    try:
        return await awaitable
    finally:
        begun.pop(name)

async def timeout(seconds):
    async with asyncio.timeout(seconds):
        await asyncio.Event().wait()

async def timeout_at(seconds):
    async with asyncio.timeout_at(asyncio.get_running_loop().time() + seconds):
        await asyncio.Lock_held.acquire()

async def until_called_later(seconds):
    event = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, event.set)
    await event.wait()

async def until_set(seconds):
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(seconds, future.set_result, None)
    await future

async def endless():
    await asyncio.Event().wait()

async def main():
    loop = asyncio.get_running_loop()
    asyncio.Lock_held = asyncio.Lock()
    await asyncio.Lock_held.acquire()
    asked = {
        "wait_for": (2001, asyncio.wait_for(endless(), 2001)),
        "queue": (2002, asyncio.wait_for(asyncio.Queue().get(), timeout=2002)),
        "wait": (2003, asyncio.wait([loop.create_task(endless())], timeout=2003)),
        "sleep": (2004, asyncio.sleep(2004)),
        "call_later": (2005, until_called_later(2005)),
        "set_result": (2006, until_set(2006)),
        "near": (1900, asyncio.sleep(1900)),
    }
    if sys.version_info >= (3, 11):
        asked["timeout"] = (2007, timeout(2007))
        asked["timeout_at"] = (2008, timeout_at(2008))
    for name, (limit, what) in asked.items():
        loop.create_task(note(name, limit, what)).set_name(name)
    loop.create_task(endless()).set_name("endless")
    await asyncio.sleep(0.01)
    print(json.dumps({name: [begun[name], limits[name]] for name in asked}), flush=True)
    print("ready", flush=True)
    await endless()

asyncio.run(main())
"""
#: Waits whose limit is noted only as the time at which it ends.
NOT_GIVEN = ("call_later", "set_result", "timeout", "timeout_at")


@pytest.mark.parametrize("python", matrix())
def test_tasks(python: str, tmp_path: Path) -> None:
    """Every wait of a task that a timer of its loop ends; a loop's thread waits until the first timer is due."""
    with Program(python, TASKS, tmp_path) as program:
        found, now = captured(program, tmp_path)
        noted: Dict[str, Any] = json.loads(program.lines[-1])
    process = process_of(found, program.pid)
    waits = {task.name: task.wait for task in process.tasks}
    wrong = {}
    for name, (began, limit) in noted.items():
        wait = waits.get(name)
        told = (wait.endless, wait.timeout_s, wait.remaining_s) if wait is not None else (None, None, None)
        given = None if name in NOT_GIVEN else limit
        if told[:2] != (False, given) or not plausible(told[2], began, limit, now):
            wrong[name] = told
    assert wrong == {}
    free = waits["endless"]
    assert free is not None and (free.endless, free.timeout_s, free.remaining_s) == (True, None, None)
    main, (loop,) = next(thread for thread in process.threads if thread.is_main), process.loops
    assert main.wait is not None and main.wait.kind == "event-loop"
    assert main.wait.remaining_s == loop.next_timer_s == (waits["near"] or free).remaining_s


@pytest.mark.parametrize("python", kinds())
def test_selected_pages_suffice(python: str, tmp_path: Path) -> None:
    """The memory that tells the deadlines is in a core of only those pages that a diagnosis reads."""
    told = []
    with Program(python, TASKS, tmp_path) as program:
        for mode in ("python", "sparse"):
            found, now = captured(program, tmp_path / mode, "--core", mode)
            waits = {task.name: task.wait for task in process_of(found, program.pid).tasks}
            told.append(
                {
                    name: (wait.timeout_s, None if wait.remaining_s is None else now + wait.remaining_s)
                    for name, wait in waits.items()
                    if wait is not None
                }
            )
    assert told[0].keys() == told[1].keys()
    for name, (given, due) in told[0].items():
        other = told[1][name]
        assert given == other[0]
        assert due == other[1] or (due is not None and due == pytest.approx(other[1], abs=ROUNDED))
