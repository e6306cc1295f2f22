"""What each thread waits for, read from its futex and the interpreter's own objects, on every interpreter."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Dict, List

import pytest

from postmortem.capture.observe import pyspy, sampling
from postmortem.cpython.frames.calls import first_number
from postmortem.cpython.state.interpreter import Python, ThreadState
from postmortem.cpython.sync.freethreading import FreeThreading
from postmortem.cpython.sync.locks import Locks
from postmortem.extract.waits.joins import joined_thread
from postmortem.frameworks.asyncio.tasks import Asyncio
from postmortem.memory import ProcMem
from tests.support.bundles import samples_of

from ..support.interpreters import Program, matrix

pytestmark = pytest.mark.live

SETTLED = """
import os
def settled(count):
    # every thread but this one inside a system call: nothing moves any more
    while True:
        calls = []
        for tid in os.listdir("/proc/self/task"):
            if int(tid) != os.getpid():
                calls.append(open(f"/proc/self/task/{tid}/syscall").read().split()[0])
        if len(calls) == count and all(c in ("202", "230", "23", "270") for c in calls):
            return
        time.sleep(0.01)
"""

WAITS = (
    """
import sys, threading, time
plain, re, cond = threading.Lock(), threading.RLock(), threading.Condition()
plain.acquire()
re.acquire()
re.acquire()
def wants_plain(): plain.acquire()
def wants_re():
    with re: pass
def waits():
    with cond:
        cond.wait()
def timed(): plain.acquire(True, 3600)
def sleeps(): time.sleep(1234.5)
def joins(): threads[4].join()
"""
    + SETTLED
    + """
functions = (wants_plain, wants_re, waits, timed, sleeps, joins)
threads = [threading.Thread(target=f, name=f.__name__, daemon=True) for f in functions]
for t in threads: t.start()
settled(len(threads))
print("ready", flush=True)
sys.stdin.read()
"""
)


def futex(program: Program, thread: ThreadState) -> int:
    """The word that a thread sleeps on, as the kernel says."""
    call = Path(f"/proc/{program.pid}/task/{thread.native_id or _tid(program, thread)}/syscall").read_text().split()
    assert call[0] == "202", call
    return int(call[1], 16)


def _tid(program: Program, thread: ThreadState) -> int:
    """Up to 3.10 the interpreter does not note it: threads are numbered as they were started."""
    known = sorted(int(p.name) for p in Path(f"/proc/{program.pid}/task").iterdir())
    return known[sorted(PLACES, key=PLACES.__getitem__).index(str(thread.name)) + 1]


PLACES = {name: n for n, name in enumerate(("wants_plain", "wants_re", "waits", "timed", "sleeps", "joins"))}


@pytest.mark.parametrize("python", matrix())
def test_every_wait_is_explained(python: str, tmp_path: Path) -> None:
    """The lock behind a futex, timed or not; the owner of an RLock; a Condition that is waited on is not held; whom a
    join waits for; how long a sleep takes."""
    with Program(python, WAITS, tmp_path) as program, ProcMem(program.pid) as memory:
        reader = Python(memory)
        locks, main = Locks(reader.frames), reader.interpreters[0]
        threads: Dict[str, ThreadState] = {str(t.name): t for t in main.threads}
        named = {name: reader.module_value(main, "__main__", name) for name in ("plain", "re", "cond")}
        for name in ("wants_plain", "timed"):
            lock = locks.awaited(threads[name].frames, futex(program, threads[name]))
            assert lock is not None and (lock.address, lock.kind, lock.locked) == (named["plain"], "lock", True)
        lock = locks.awaited(threads["wants_re"].frames, futex(program, threads["wants_re"]))
        assert lock is not None and (lock.address, lock.kind, lock.locked) == (named["re"], "rlock", True)
        assert lock.owner_ident == threads["MainThread"].ident
        waiting = next(f for f in threads["waits"].frames if f.function == "waits")
        assert [held.lock.locked for held in locks.held(waiting)] == [False]
        own = locks.awaited(threads["waits"].frames, futex(program, threads["waits"]))
        assert own is not None and own.address != locks.held(waiting)[0].lock.address
        assert joined_thread(reader, threads["joins"].frames) == threads["sleeps"].ident
        assert first_number(reader.frames, threads["sleeps"].frames[0], "sleep") == 1234.5


SUBINTERPRETERS = """
import importlib, sys, threading
name = next(n for n in ("_interpreters", "_xxsubinterpreters") if importlib.util.find_spec(n))
made = importlib.import_module(name).create()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("python", matrix())
def test_the_main_interpreter_comes_first(python: str, tmp_path: Path) -> None:
    """A sub-interpreter is listed behind the main one, whose thread and frames are still there."""
    source = "import importlib.util\n" + SUBINTERPRETERS
    with Program(python, source, tmp_path) as program, ProcMem(program.pid) as memory:
        reader = Python(memory)
        assert [interpreter.id for interpreter in reader.interpreters] == [0, 1]
        assert [t.name for t in reader.interpreters[0].threads][:1] == ["MainThread"]
        assert reader.interpreters[0].threads[0].frames[-1].function == "<module>"
        assert reader.problems == []


SECTION = (
    """
import sys, threading, time
shared = [3, 1, 2]
inside = threading.Event()
def key(x):
    inside.set()
    while True: pass
def sorts(): shared.sort(key=key)
def appends():
    inside.wait()
    shared.append(4)
for f in (sorts, appends): threading.Thread(target=f, name=f.__name__, daemon=True).start()
inside.wait()
"""
    + """
import os
def parked(name):
    tid = next(t.native_id for t in threading.enumerate() if t.name == name)
    return open(f"/proc/self/task/{tid}/syscall").read().startswith("202 ")
while not parked("appends") or inside._cond._waiters: time.sleep(0.01)
time.sleep(0.2)
print("ready", flush=True)
sys.stdin.read()
"""
)
FREE = [p for p in matrix() if p.id.endswith("t")]  # type: ignore[attr-defined]


@pytest.mark.parametrize("python", FREE)
def test_the_lock_of_an_object_and_whose_critical_section_it_is(python: str, tmp_path: Path) -> None:
    """One thread sorts a list for ever, another wants to append: it waits for that list's lock, which the first one's
    critical section holds."""
    with Program(python, SECTION, tmp_path) as program, ProcMem(program.pid) as memory:
        reader = Python(memory)
        threads: Dict[str, ThreadState] = {str(t.name): t for t in reader.interpreters[0].threads}
        free = FreeThreading(reader)
        lock = free.awaited(futex(program, threads["appends"]))
        assert lock is not None and lock.locked and lock.kind == "mutex" and lock.what == "critical section of list"
        assert lock.address == reader.module_value(reader.interpreters[0], "__main__", "shared")
        assert lock.owner_ident == threads["sorts"].ident
        assert list(free.held(threads["sorts"])) == [lock.word]
        assert list(free.held(threads["appends"])) == []
        assert free.stop_the_world(reader.interpreters[0]) == (False, False, None)
        assert reader.interpreters[0].gil is None and threads["sorts"].attached


WORLD = """
import gc, re, sys, threading, time
def spins(): re.match("(a+)+b", "a" * 64)
def collects(): gc.collect()
spinner = threading.Thread(target=spins, name="spins", daemon=True)
spinner.start()
time.sleep(0.3)
def late():
    open("/proc/self/comm").read()
    time.sleep(0.5)
threading.Thread(target=late, name="late", daemon=True).start()
print("ready", flush=True)
threading.Thread(target=collects, name="collects", daemon=True).start()
sys.stdin.read()
"""


@pytest.mark.parametrize("python", FREE)
def test_who_stops_the_world_and_who_waits_for_it(python: str, tmp_path: Path) -> None:
    """A collection has to wait for a thread that computes in C: who asked for the world to stop is known, and those who
    came back meanwhile are suspended."""
    with Program(python, WORLD, tmp_path) as program, ProcMem(program.pid) as memory:
        for _ in range(100):
            reader = Python(memory)
            free, interpreter = FreeThreading(reader), reader.interpreters[0]
            threads: Dict[str, ThreadState] = {str(t.name): t for t in interpreter.threads}
            world = free.stop_the_world(interpreter)
            late = threads.get("late")
            if world is not None and world.requested and late is not None and late.attached is False:
                call = Path(f"/proc/{program.pid}/task/{late.native_id}/syscall").read_text().split()
                if call[0] == "202" and free.world_wait(int(call[1], 16), late) == "stopped":
                    break
            time.sleep(0.05)
        assert world is not None and world.requested and not world.stopped
        assert world.requester == threads["collects"].address
        assert free.world_wait(futex(program, threads["late"]), threads["late"]) == "stopped"
        assert threads["spins"].attached


EAGER = (
    """
import asyncio, sys, threading, time
async def inner(event): await event.wait()            # inner
async def outer(event): await inner(event)            # outer
async def main(name):
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    kept = asyncio.create_task(outer(asyncio.Event()), name=name)
    await asyncio.Event().wait()                      # main
def run(name): asyncio.run(main(name))
threads = [threading.Thread(target=run, args=(name,), daemon=True) for name in ("left", "right")]
for t in threads: t.start()
"""
    + SETTLED.replace('"270"', '"270", "232", "281"')
    + """
settled(len(threads))
print("ready", flush=True)
sys.stdin.read()
"""
)


@pytest.mark.parametrize("python", [p for p in matrix() if not p.id.startswith(("3.8", "3.9", "3.10", "3.11"))])  # type: ignore[attr-defined]
def test_eager_tasks_of_several_loops(python: str, tmp_path: Path) -> None:
    """Each thread's loop with its two tasks, those that began to run before they were scheduled included."""
    with Program(python, EAGER, tmp_path) as program, ProcMem(program.pid) as memory:
        reader = Python(memory)
        asyncio = Asyncio(reader, reader.interpreters[0])
        tasks = asyncio.tasks()
        loops = asyncio.loops(tasks)
        assert asyncio.problems == [] and len(loops) == 2 and len(tasks) == 4
        assert len({loop.ident for loop in loops}) == 2
        for name in ("left", "right"):
            task = next(t for t in tasks if t.name == name)
            assert [f.function for f in task.frames] == ["wait", "inner", "outer"] and task.awaiting == "Future"
            assert [f.line for f in task.frames[1:]] == [program.line_of("inner"), program.line_of("outer")]
            assert sum(t.loop == task.loop for t in tasks) == 2

            # with offsets of another release the coroutine is still found: no other one is in the task
            asyncio._layout = replace(asyncio._layout, task_coro=asyncio._layout.fut_state)
            again = next(t for t in asyncio.tasks() if t.name == name)
            assert [f.function for f in again.frames] == ["wait", "inner", "outer"]


POLLS = """
import sys, threading
def turn(n): return n + 1
def polls():
    n = 0
    while True:
        n = turn(n)
threading.Thread(target=polls, name="polls", daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("python", FREE)
def test_samples_of_a_free_threaded_program(python: str, tmp_path: Path) -> None:
    """Where py-spy gives up, a busy thread's stacks are seen all the same, most of them whole."""
    (tmp_path / "json.py").write_text("raise SystemExit('not this one')")
    with Program(python, POLLS, tmp_path) as program:
        assert sampling.wanted_for(program.pid)
        output = tmp_path / "trace.json"
        words = pyspy.stand_in(program.pid, 1.0, str(output))
        subprocess.run(words, cwd=str(tmp_path), check=True, timeout=60)
        name = next(t.native_id for t in _threads(program) if t.name == "polls")
    samples = samples_of(output)[name or 0]
    busy = [s for s in samples if s.frames[-1].function == "_bootstrap"]
    assert sum(s.count for s in busy) >= 10
    assert {s.frames[0].function for s in busy} <= {"polls", "turn"}


def _threads(program: Program) -> List[ThreadState]:
    with ProcMem(program.pid) as memory:
        return Python(memory).interpreters[0].threads
