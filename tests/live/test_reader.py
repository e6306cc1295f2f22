"""The reader against what the interpreters themselves say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

from postmortem.cpython.state.interpreter import Python
from postmortem.cpython.sync.locks import Locks
from postmortem.frameworks.asyncio.tasks import Asyncio
from postmortem.memory import ProcMem

from ..support.interpreters import ROOT, Program, matrix

pytestmark = [pytest.mark.live, pytest.mark.parametrize("python", matrix())]

STACKS = """
import json, sys, threading
gate, reached = threading.Lock(), threading.Semaphore(0)
gate.acquire()
class Worker:
    def outer(self, depth):
        if depth:
            return self.outer(depth - 1)
        return [self.inner(x) for x in (1,)]
    def inner(self, x):
        for item in self.items():
            pass
    def items(self):
        with threading.Lock():
            reached.release()
            gate.acquire()
        yield 1
names = ["plain", "käse \\u20ac", "T" * 300]
threads = [threading.Thread(target=Worker().outer, args=(i,), name=n, daemon=bool(i)) for i, n in enumerate(names)]
for t in threads: t.start()
for t in threads: reached.acquire()
import time
def parked():
    # in C, so that no frame moves any more: sleep until every worker is inside gate.acquire()
    time.sleep(0.3)
    stacks = {}
    known = {t.ident: t.name for t in threads}
    for ident, frame in sys._current_frames().items():
        rows = []
        while frame:
            rows.append([frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name])
            frame = frame.f_back
        if ident in known: stacks[known[ident]] = rows
    return stacks
print(json.dumps(parked()), flush=True)
print("ready", flush=True)
sys.stdin.read()
"""


def test_stacks_equal_current_frames(python: str, tmp_path: Path) -> None:
    """Every thread's frames, lines and functions are those of sys._current_frames(), names and daemon flags too."""
    with Program(python, STACKS, tmp_path) as program:
        expected: Dict[str, List[List[object]]] = json.loads(program.lines[-1])
        with ProcMem(program.pid) as memory:
            reader = Python(memory)
            threads = {t.name: t for t in reader.interpreters[0].threads}
            assert set(threads) == {"MainThread", *expected}
            for name, rows in expected.items():
                assert [[f.code.filename, f.line, f.function] for f in threads[name].frames] == rows
                assert threads[name].cut is None
                assert threads[name].daemon is (name != "plain")
                assert str(threads[name].native_id) in os.listdir(f"/proc/{program.pid}/task")
            assert threads["MainThread"].frames[-1].function == "<module>"
            assert reader.finalizing is False


def test_own_objects(python: str, tmp_path: Path) -> None:
    """An interpreter that reads itself finds the strings, numbers, containers, attributes and lines that it has."""
    done = subprocess.run(
        [python, str(ROOT / "tests" / "live" / "self_check.py")],
        cwd=str(tmp_path),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("ok\n", 0), done.stderr


LOCKS = """
import contextlib, sys, threading
plain, other, re, cond = threading.Lock(), threading.Lock(), threading.RLock(), threading.Condition()
inside, gate = threading.Semaphore(0), threading.Event()
class Guarded:
    def __init__(self): self.guard = threading.Lock()
    def work(self):
        with self.guard:                              # guard
            inside.release()
            gate.wait()
guarded = Guarded()
def nested():
    with plain:                                       # plain
        for x in range(3):
            try:
                with other as taken, open(__file__) as stream:   # other
                    inside.release()
                    gate.wait()
            except ValueError:
                pass
@contextlib.contextmanager
def through():
    with re:
        yield
def managed():
    with through():                                   # managed
        inside.release()
        gate.wait()
def notified():
    with cond:
        inside.release()
        cond.wait()
def wants():
    inside.release()
    with plain:                                       # wants
        pass
def left():
    with threading.Lock():
        pass
    inside.release()
    gate.wait()
for f in (nested, managed, guarded.work, notified, left): threading.Thread(target=f, daemon=True, name=f.__name__).start()
for i in range(5): inside.acquire()
threading.Thread(target=wants, daemon=True, name="wants").start()
inside.acquire()
import time; time.sleep(0.3)
print("ready", flush=True)
sys.stdin.read()
"""


def test_locks_held_by_with(python: str, tmp_path: Path) -> None:
    """The holder of every lock taken by `with` is read from its frame, with the line of the `with`: nested ones,
    beside a try, through a context manager made of a generator; what was left or waited on is not held."""
    with Program(python, LOCKS, tmp_path) as program, ProcMem(program.pid) as memory:
        reader = Python(memory)
        locks = Locks(reader.frames)
        threads = {t.name: t for t in reader.interpreters[0].threads}
        found = {
            name: [
                (held.lock.kind, held.line, locks.name(held.lock.address, [frame]))
                for frame in thread.frames
                for held in locks.held(frame)
                if held.lock.locked and frame.code.filename.endswith("program.py")
            ]
            for name, thread in threads.items()
        }
        line = program.line_of
        assert found["nested"] == [("lock", line("plain"), "plain"), ("lock", line("other"), "taken")] or found[
            "nested"
        ] == [("lock", line("plain"), "plain"), ("lock", line("other"), "other")]
        assert found["managed"] == [("rlock", line("managed"), "re")]
        assert found["work"] == [("lock", line("guard"), "Guarded.guard")]
        assert found["left"] == [] and found["wants"] == []
        assert threads["wants"].frames[0].line == line("wants")
        nested = next(f for f in threads["nested"].frames if f.function == "nested")
        plain = locks.held(nested)[0].lock
        awaited = locks.awaited(threads["wants"].frames, plain.word)
        assert awaited is not None and awaited.address == plain.address


TASKS = """
import asyncio, sys, threading
class Feed:
    def __aiter__(self): return self.items()
    async def items(self):
        await asyncio.Event().wait()                  # event
        yield 1
async def consume():
    async for item in Feed(): pass                    # consume
async def poll():
    while True: await asyncio.sleep(0)                # poll
async def joins(task): await task                     # joins
def tick(loop): print("ready", flush=True)
async def main():
    one = asyncio.create_task(consume(), name="consumer")
    two = asyncio.create_task(poll(), name="poller")
    three = asyncio.create_task(joins(one))
    three.set_name("joiner")
    asyncio.get_running_loop().call_later(0.2, tick, None)
    await asyncio.sleep(3600)                         # main
asyncio.run(main())
"""


def test_tasks_with_their_chains(python: str, tmp_path: Path) -> None:
    """Every asyncio task is found by name, its coroutines followed to the innermost frame, async generators
    included; what it awaits is told apart: a future, another task, a mere turn of the loop."""
    with Program(python, TASKS, tmp_path) as program:
        found, loops = _stopped(program)
        rows = {t.name: ([f.function for f in t.frames], t.awaiting, t.state) for t in found}
        lines = {t.name: [f.line for f in t.frames if f.code.filename.endswith("program.py")] for t in found}
        line = program.line_of
        assert lines["consumer"] == [line("event"), line("consume")]
        assert rows["consumer"][0] == ["wait", "items", "consume"] and rows["consumer"][1] == "Future"
        assert rows["joiner"] == (["joins"], "Task:consumer", "pending")
        assert lines["poller"] == [line("poll")]
        assert len(found) == 4 and len(loops) == 1
        assert loops[0].readers == 1 and loops[0].ident is not None


def _stopped(program: Program) -> Any:
    """Tasks while the program is stopped by a signal, so that its spinning loop holds still."""
    for _ in range(50):
        os.kill(program.pid, signal.SIGSTOP)
        while "T (stopped)" not in Path(f"/proc/{program.pid}/status").read_text():
            time.sleep(0.001)
        with ProcMem(program.pid) as memory:
            reader = Python(memory)
            asyncio = Asyncio(reader, reader.interpreters[0])
            tasks = asyncio.tasks()
            loops = asyncio.loops(tasks)
            for frame in (f for t in tasks for f in t.frames):
                assert frame.line is not None  # read now: the memory is closed below
        os.kill(program.pid, signal.SIGCONT)
        if any(t.name == "poller" and t.awaiting == "sleep(0)" for t in tasks):
            return tasks, loops
        time.sleep(0.005)
    raise AssertionError("the poller was never seen between two turns")
