"""asyncio's tasks against what the programs say of themselves, and against asyncio's own tools."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import pytest

from postmortem.cpython.state.interpreter import Python
from postmortem.evidence import Resource, Task
from postmortem.extract.ownership.ownership import plain
from postmortem.extract.ownership.pools import FutureFacts, Pools
from postmortem.extract.process.context import PythonContext, context_of
from postmortem.extract.process.threadtable import ThreadTable
from postmortem.extract.recorded.raw import NO_RAW
from postmortem.extract.waits.endpoints import DescriptorBook
from postmortem.extract.waits.tasks import TasksRead, read_tasks
from postmortem.frameworks.asyncio.cancels import cancels
from postmortem.memory import ProcMem

from ..support.interpreters import Program, matrix

pytestmark = pytest.mark.live

PROGRAM = """
import asyncio, contextlib, json, signal, socket, sys, threading

class Desk:
    def __init__(self):
        self.lock, self.other, self.by_hand = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()
        self.gate, self.changed = asyncio.Event(), asyncio.Condition()
        self.permits = asyncio.BoundedSemaphore(1)
        self.inbox, self.outbox, self.batch = asyncio.Queue(), asyncio.Queue(1), asyncio.Queue()
        self.replies = {}
    async def hold(self):
        async with self.lock:                                      # lock
            async with self.permits:
                await self.gate.wait()
    async def lock_(self):
        async with self.lock: pass
    async def permit(self):
        async with self.permits: pass
    @contextlib.asynccontextmanager
    async def session(self):
        async with self.other: yield
    async def through(self):
        async with self.session(): await self.gate.wait()
    async def other_(self):
        async with self.other: pass
    async def takes(self):
        await self.by_hand.acquire()                               # by hand
        await self.gate.wait()
    async def wants(self):
        await self.by_hand.acquire()
    async def condition(self):
        async with self.changed:
            await self.changed.wait_for(lambda: False)
    async def get(self): await self.inbox.get()
    async def put(self):
        self.outbox.put_nowait(1)
        await self.outbox.put(2)
    async def join(self):
        self.batch.put_nowait(1)
        await self.batch.join()
    async def reply(self):
        self.replies["first"] = asyncio.get_running_loop().create_future()
        await self.replies["first"]

async def one(task): await task
async def shielded(task): await asyncio.shield(task)
async def gathers(tasks): await asyncio.gather(*tasks)
async def every(tasks): await asyncio.wait(tasks)
async def first(tasks): await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
async def completed(tasks):
    for done in asyncio.as_completed(tasks): await done
async def bounded(task): await asyncio.wait_for(task, 500)
async def later(event):
    asyncio.get_running_loop().call_later(500, event.set)
    await event.wait()
def block(): started.set(); release.acquire()
async def thread(): await asyncio.get_running_loop().run_in_executor(None, block)
async def child():
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE)
    await process.wait()
async def receives(sock): await asyncio.get_running_loop().sock_recv(sock, 1)
async def sent(event): await event.wait()
def outside(loop, event): asyncio.run_coroutine_threadsafe(sent(event), loop).result()
async def nothing(): await asyncio.Event().wait()

started, release = threading.Event(), threading.Semaphore(0)

def chain(task):
    rows, awaited = [], task.get_coro()
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is None: break
        rows.append([frame.f_code.co_name, frame.f_lineno])
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return rows[::-1]

def report(loop, expected):
    tasks = asyncio.all_tasks(loop)
    if not started.is_set() or len(tasks) < expected:
        loop.call_later(0.02, report, loop, expected)
        return
    print(json.dumps({task.get_name(): chain(task) for task in tasks}), flush=True)
    print("ready", flush=True)

async def main():
    loop, desk, tasks = asyncio.get_running_loop(), Desk(), {}
    asyncio.current_task().set_name("main")
    async def begin(name, coroutine):
        tasks[name] = loop.create_task(coroutine)
        tasks[name].set_name(name)
        for _ in range(5): await asyncio.sleep(0)
        return tasks[name]
    for name in ("hold", "lock_", "permit", "through", "other_", "takes", "wants", "condition", "get", "put", "join", "reply"):
        await begin(name, getattr(desk, name)())
    both = [tasks["hold"], tasks["lock_"]]
    await begin("one", one(both[0])); await begin("shielded", shielded(both[0]))
    await begin("gathers", gathers(both)); await begin("every", every(both)); await begin("first", first(both))
    await begin("completed", completed(both))
    await begin("bounded", bounded(await begin("inner", nothing())))
    await begin("later", later(asyncio.Event())); await begin("thread", thread()); await begin("child", child())
    left, right = socket.socketpair(); left.setblocking(False)
    await begin("receives", receives(left))
    await begin("sleep", asyncio.sleep(1000))
    tasks["plain"] = asyncio.tasks._PyTask(desk.get(), loop=loop)
    tasks["plain"].set_name("plain")
    if hasattr(asyncio, "TaskGroup"):
        async def group():
            async with asyncio.TaskGroup() as members:
                members.create_task(desk.get()).set_name("member")
        async def timeout():
            async with asyncio.timeout(500): await desk.gate.wait()
        await begin("group", group()); await begin("timeout", timeout())
        await begin("barrier", asyncio.Barrier(2).wait())
    if hasattr(asyncio, "eager_task_factory"):
        tasks["begun"] = asyncio.eager_task_factory(loop, desk.get())
        tasks["begun"].set_name("begun")
    threading.Thread(target=outside, args=(loop, desk.gate), name="outside", daemon=True).start()
    loop.add_signal_handler(signal.SIGUSR1, print)
    loop.call_later(0.05, report, loop, len(tasks) + 2)
    await asyncio.gather(*tasks.values())
asyncio.run(main())
"""


class _Descriptors(DescriptorBook):
    """Each is a socket."""

    def note(self, fd: int, tid: Optional[int] = None) -> Optional[str]:
        return f"socket-{fd}"


class Found(NamedTuple):
    book: TasksRead
    tasks: Dict[str, Task]
    resources: Dict[str, Resource]
    runner: Optional[FutureFacts]  # of the future that the thread "outside" waits for
    cancels: Optional[Tuple[str, ...]]

    def row(self, name: str) -> Tuple[Any, ...]:
        """(kind, names of tasks, any, endless, the object) of a task's wait."""
        wait = self.tasks[name].wait
        assert wait is not None, name
        names = sorted(t.name or "?" for t in self.tasks.values() if t.id in wait.tasks)
        resource = self.resources.get(wait.resource or "")
        return wait.kind, names, wait.any, wait.endless, resource.description if resource is not None else None


def read(program: Program) -> Found:
    def lines(file: str) -> Optional[List[str]]:
        return Path(file).read_text("utf-8").splitlines() if os.path.exists(file) else None

    with ProcMem(program.pid) as memory:
        python = Python(memory)
        threads = {t.native_id: t for i in python.interpreters for t in i.threads if t.native_id is not None}
        context = context_of(memory, python, NO_RAW, program.pid, lines, ThreadTable.of_states(threads))  # type: ignore[arg-type]
        assert isinstance(context, PythonContext)
        book = read_tasks(context, plain(python.frames), _Descriptors(None))
        pools = Pools(context, book.runner)
        runner = next(filter(None, map(book.runner, _futures(python))), None)
        return Found(
            book,
            {t.name or "?": t for t in book.tasks},
            {r.id: r for r in book.awaits.resources(pools.future)},
            runner,
            cancels(python, book.frames),
        )


def _futures(python: Python) -> Iterator[int]:
    """What threads wait for in ``Future.result``."""
    for thread in (t for i in python.interpreters for t in i.threads):
        for frame in thread.frames:
            future = (
                python.frames.local(frame, "self") if frame.is_in("result", "concurrent/futures/_base.py") else None
            )
            if future:
                yield future


_BOTH = ["hold", "lock_"]
#: What each task waits for, on every version.
WAITS: Dict[str, Tuple[Any, ...]] = {
    "hold": ("event", [], False, True, "asyncio.Event Desk.gate (not set)"),
    "lock_": ("lock", [], False, True, "asyncio.Lock Desk.lock"),
    "permit": ("semaphore", [], False, True, "asyncio.Semaphore Desk.permits (0 of 1 left)"),
    "other_": ("lock", [], False, True, "asyncio.Lock Desk.other"),
    "wants": ("lock", [], False, True, "asyncio.Lock Desk.by_hand"),
    "condition": ("condition", [], False, True, "asyncio.Condition Desk.changed"),
    "get": ("queue", [], False, True, "asyncio.Queue Desk.inbox (empty, no bound)"),
    "plain": ("queue", [], False, True, "asyncio.Queue Desk.inbox (empty, no bound)"),
    "put": ("queue", [], False, True, "asyncio.Queue Desk.outbox (full, 1 place, 1 not done)"),
    "join": ("queue", [], False, True, "asyncio.Queue Desk.batch (1 item, no bound, 1 not done)"),
    "reply": ("future", [], False, True, "Future Desk.replies['first']"),
    "one": ("task", ["hold"], False, True, None),
    "shielded": ("task", ["hold"], False, True, None),
    "gathers": ("tasks", _BOTH, False, True, None),
    "every": ("tasks", _BOTH, False, True, None),
    "first": ("tasks", _BOTH, True, True, None),
    "completed": ("tasks", _BOTH, True, True, None),
    "bounded": ("task", ["inner"], False, False, None),
    "later": ("event", [], False, False, "asyncio.Event event (not set)"),
    "sleep": ("sleep", [], False, False, None),
}
#: Those that only later versions have.
LATER: Dict[str, Tuple[Any, ...]] = {
    "group": ("tasks", ["member"], False, True, None),
    "timeout": ("event", [], False, False, "asyncio.Event Desk.gate (not set)"),
    "barrier": ("barrier", [], False, True, "asyncio.Barrier whose name was not found (1 of 2 have arrived)"),
    "begun": ("queue", [], False, True, "asyncio.Queue Desk.inbox (empty, no bound)"),
}


@pytest.mark.parametrize("python", matrix())
def test_every_task_is_read_as_it_says_itself(python: str, tmp_path: Path) -> None:
    """The tasks are those of asyncio.all_tasks(), with the chains of coroutines that cr_await leads along; each says what
    it waits for by the program's own name of it, and what holds locks is known from `async with` and from the source."""
    with Program(python, PROGRAM, tmp_path) as program:
        told: Dict[str, List[Any]] = json.loads(program.lines[-1])
        found = read(program)
        chains = {n: [[f.function, f.line] for f in t.stack] for n, t in found.tasks.items()}
        for name in ("plain", "main"):
            # of futures written in Python its own walk tells more, and 3.14's all_tasks() does not know such tasks
            own = told.pop(name, None)
            assert own is None or chains[name][-1] == own[-1]
            del chains[name]
        assert chains == told
        expected = {**WAITS, **{n: row for n, row in LATER.items() if n in told}}
        assert {name: found.row(name) for name in expected} == expected
        assert {t.state for t in found.tasks.values()} == {"pending"} and not any(t.ready for t in found.tasks.values())
        owners = {
            r.description: (r.owner_task, r.owner_basis) for r in found.resources.values() if r.kind == "async-lock"
        }
        ids = {name: task.id for name, task in found.tasks.items()}
        assert owners["asyncio.Lock Desk.lock"] == (ids["hold"], "with-slot")
        assert owners["asyncio.Lock Desk.other"] == (ids["through"], "with-slot")
        assert owners["asyncio.Lock Desk.by_hand"] == (ids["takes"], "inferred")
        held = found.tasks["hold"].holds[0]
        assert (held.frame.line, held.depth, held.basis) == (program.line_of("lock"), 1, "with-slot")
        _check_others(found)
        (loop,) = found.book.loops
        assert loop.state == "running" and loop.main_task == ids["main"] and loop.signals == (10,)
        assert loop.ready == 0 and loop.watched == len(loop.descriptors) and loop.watched >= 1
        assert found.cancels == ("TaskGroup", "all_tasks")  # by name, in functions inside functions too


def _check_others(found: Found) -> None:
    """Those that wait for a thread, a child, a descriptor; and the thread that waits for a coroutine."""
    work = found.resources[(found.tasks["thread"].wait or pytest.fail()).resource or ""]
    assert work.description.startswith("Future of block, running on ") and work.closed is True
    assert [waker.role for waker in work.wakers] == ["runner"]
    child = found.resources[(found.tasks["child"].wait or pytest.fail()).resource or ""]
    assert child.kind == "process" and child.owner_pid is not None
    assert found.row("receives")[:2] == ("descriptor", [])
    assert found.tasks["receives"].resource is not None
    assert found.runner is not None and found.runner.closed is True
    assert found.runner.what.startswith("Future of coroutine sent, run by task Task-")


_NODE = re.compile(r"^(?P<indent>[ │├└─]*)(?P<task>\(T\) )?\s*(?P<text>.+)$")


def _pstree(text: str) -> Tuple[Dict[str, List[Tuple[str, int]]], Set[Tuple[str, str]]]:
    """(task → (function, line) of its coroutines, outermost first; (awaiting, awaited) tasks)."""
    stacks: Dict[str, List[Tuple[str, int]]] = {}
    edges: Set[Tuple[str, str]] = set()
    above: List[Tuple[int, str]] = []  # (indent, task), the tasks that a line stands below
    for line in text.splitlines():
        node = _NODE.match(line)
        if node is None:
            continue
        indent, name = len(node["indent"]), node["text"]
        while above and above[-1][0] >= indent:
            above.pop()
        if node["task"]:
            edges |= {(above[-1][1], name)} if above else set()
            above.append((indent, name))
            stacks[name] = []
        elif above:
            function, _, line_number = name.rpartition(":")
            stacks[above[-1][1]].append((function.split()[0].split(".")[-1], int(line_number)))
    return stacks, edges


@pytest.mark.parametrize("python", [p for p in matrix() if getattr(p, "id", None) == "3.14"])
def test_tasks_equal_those_of_pstree(python: str, tmp_path: Path) -> None:
    """``python -m asyncio pstree`` of 3.14, which asks the running process, tells the same names, coroutines and lines,
    and who awaits whom."""
    with Program(python, PROGRAM, tmp_path) as program:
        found = read(program)
        command = [os.fspath(python), "-m", "asyncio", "pstree", str(program.pid)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        stacks, edges = _pstree(done.stdout)
        ours = {n: [(f.function, f.line) for f in reversed(t.stack)] for n, t in found.tasks.items() if n in stacks}
        assert len(stacks) > 20 and ours == stacks
        names = {task.id: name for name, task in found.tasks.items()}
        awaited = {(n, names[id_]) for n, t in found.tasks.items() for id_ in (t.wait.tasks if t.wait else ())}
        assert {(one, other) for one, other in awaited if other in stacks and one in stacks} == edges
