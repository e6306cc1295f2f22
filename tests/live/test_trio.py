"""trio and anyio as installed: their own view of tasks and stacks against the report's, hangs and healthy programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Tuple

import pytest

from postmortem.extract.ownership import gates, grading, reached, wakers

from ..corpora.runs import NotRecorded, environment, interpreter
from ..support.bundles import evidence_of
from ..support.diagnosed import classify
from ..support.diagnosing import capture_pid
from ..support.interpreters import Program
from ..support.required import lacking

pytestmark = pytest.mark.live

#: Releases of 2023 to 2026, with the interpreter of their time.
RELEASES = (
    ("3.9", "trio==0.22.2", "anyio==3.7.1"),
    ("3.11", "trio==0.24.0", "anyio==4.2.0"),
    ("3.12", "trio==0.27.0", "anyio==4.6.0"),
    ("3.13", "trio==0.35.0", "anyio==4.16.0"),
)
EVERY = pytest.mark.parametrize("release", RELEASES, ids=lambda release: f"{release[0]}-{release[1]}")
ENDS = pytest.mark.parametrize("release", (RELEASES[0], RELEASES[-1]), ids=lambda release: f"{release[0]}-{release[1]}")


def python(release: Tuple[str, ...]) -> str:
    """The interpreter with these libraries."""
    try:
        return str(environment(interpreter(release[0]), release[1:]))
    except NotRecorded as exc:
        lacking(str(exc))


def look(release: Tuple[str, ...], source: str, folder: Path) -> Tuple[Program, Dict[str, Any]]:
    """A program and its report, taken once it has said that it is ready."""
    with Program(python(release), source, folder) as program:
        return program, capture_pid(program.pid, folder, "--observe", "0.5")


# ---------------------------------------------------------------------- its own view

TREE = """
import json, sys, time, trio

def seen():
    found, wave = [], [trio.lowlevel.current_root_task()]
    while wave:
        task = wave.pop()
        frames = [[frame.f_code.co_name, line] for frame, line in task.iter_await_frames()]
        found.append([task.name, frames[::-1]])
        wave += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return found
class Seer(trio.abc.Instrument):
    def before_io_wait(self, timeout):
        if timeout > 1 and not asked.is_set():
            asked.set()
            trio.lowlevel.remove_instrument(self)
            print(json.dumps(seen()))
            print("ready", flush=True)
async def sends(end):
    await end.send("all")
async def holds(lock):
    async with lock:
        await trio.sleep_forever()
async def wants(lock):
    await trio.sleep(0.05)
    async with lock:
        pass
async def limited():
    with trio.move_on_after(600):
        await event.wait()
async def main():
    global asked, event
    asked, event, lock, limiter = trio.Event(), trio.Event(), trio.Lock(), trio.CapacityLimiter(1)
    sending, receiving = trio.open_memory_channel(0)
    async with trio.open_nursery() as outer:
        outer.start_soon(sends, sending)
        outer.start_soon(holds, lock)
        outer.start_soon(wants, lock)
        async with trio.open_nursery() as inner:
            inner.start_soon(limited, name="with a limit")
            inner.start_soon(trio.sleep, 900)
            inner.start_soon(trio.to_thread.run_sync, time.sleep, 900)
            await trio.sleep(0.2)
            trio.lowlevel.add_instrument(Seer())
trio.run(main)
"""


@EVERY
def test_tasks_are_those_that_trio_lists(release: Tuple[str, ...], tmp_path: Path) -> None:
    """With the same names and the same lines of the same functions; what they wait for and until when is told, too."""
    program, report = look(release, TREE, tmp_path)
    process = report["processes"][0]
    own = sorted((name, [tuple(frame) for frame in frames]) for name, frames in json.loads(program.lines[0]))
    read = sorted((t["name"], [(f["function"], f["line"]) for f in t["stack"]]) for t in process["tasks"])
    assert read == own
    waits = {task["name"]: task["wait"] for task in process["tasks"]}
    assert {name: wait["kind"] for name, wait in waits.items()} == {
        "<init>": "tasks", "<TrioToken.run_sync_soon task>": "queue", "__main__.main": "tasks", "__main__.sends": "queue",
        "__main__.holds": "event", "__main__.wants": "lock", "with a limit": "event", "trio.sleep": "sleep",
        "trio.to_thread.run_sync": "thread",
    }  # fmt: skip
    assert 500 < waits["with a limit"]["remaining_s"] < 600 and 800 < waits["trio.sleep"]["remaining_s"] < 900
    assert {name for name, wait in waits.items() if wait["endless"]} == set(waits) - {"with a limit", "trio.sleep"}
    (loop,) = process["loops"]
    main = next(task["id"] for task in process["tasks"] if task["name"] == "__main__.main")
    assert (loop["kind"], loop["scheduled"], loop["watched"], loop["main_task"]) == ("trio", 2, 0, main)
    resources = {r["id"]: r for r in process["resources"]}
    lock = resources[waits["__main__.wants"]["resource"]]
    holder = next(task for task in process["tasks"] if task["name"] == "__main__.holds")
    assert (lock["owner_task"], lock["owner_basis"]) == (holder["id"], "recorded")
    assert [held["resource"] for held in holder["holds"]] == [lock["id"]]
    thread = resources[waits["trio.to_thread.run_sync"]["resource"]]
    assert [waker["role"] for waker in thread["wakers"]] == ["runner"]
    assert {waker["tid"] for waker in thread["wakers"]} < {t["tid"] for t in process["threads"]}


# ---------------------------------------------------------------------- hangs

FERRY = """
import {library}
async def exchange(sending, receiving):
    await sending.send("mine")                       # blamed
    return await receiving.receive()
async def lights():
    while True: await {library}.sleep(0.2)
async def main():
    there, here = {channel}(0)
    back, away = {channel}(0)
    async with {group}() as group:
        group.start_soon(lights)
        group.start_soon(exchange, there, away)
        group.start_soon(exchange, back, here)
        await {library}.sleep(0.3)
        print("ready", flush=True)
{run}
"""
OF_TRIO = {"library": "trio", "channel": "trio.open_memory_channel", "group": "trio.open_nursery"}
OF_ANYIO = {"library": "anyio", "channel": "anyio.create_memory_object_stream", "group": "anyio.create_task_group"}
LOCKS = """
import trio
async def both(first, second):
    async with first:
        await trio.sleep(0.05)
        async with second: pass                      # blamed
async def main():
    keys, gold = trio.Lock(), trio.StrictFIFOLock()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(both, keys, gold)
        nursery.start_soon(both, gold, keys)
        await trio.sleep(0.2)
        print("ready", flush=True)
trio.run(main)
"""
LIMITER = """
import trio
async def walk(limiter, depth):
    async with limiter:
        await trio.sleep(0.05)
        async with trio.open_nursery() as nursery: nursery.start_soon(walk, limiter, depth - 1)  # blamed
async def main():
    limiter = trio.CapacityLimiter(2)
    async with trio.open_nursery() as nursery:
        for _ in range(3): nursery.start_soon(walk, limiter, 2)
        await trio.sleep(0.3)
        print("ready", flush=True)
trio.run(main)
"""
UNCLOSED = """
import trio
async def produce(sending):
    async with sending: await sending.send(1)
async def consume(receiving):
    async for _item in receiving: pass               # blamed
async def main():
    sending, receiving = trio.open_memory_channel(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(consume, receiving)
        nursery.start_soon(produce, sending.clone())
        await trio.sleep(0.2)
        print("ready", flush=True)
trio.run(main)
"""
BACK = """
import threading, trio
lock = threading.Lock()
def work():
    with lock: return trio.from_thread.run(ask)
async def ask():
    with lock: return 1                              # blamed
async def main():
    print("ready", flush=True)
    await trio.to_thread.run_sync(work)
trio.run(main)
"""
HANGS = {
    "channels": (FERRY.format(run="trio.run(main)", **OF_TRIO), "async-deadlock", {"proven"}),
    "streams-on-trio": (FERRY.format(run="anyio.run(main, backend='trio')", **OF_ANYIO), "async-deadlock", {"likely"}),
    "streams-on-asyncio": (FERRY.format(run="anyio.run(main)", **OF_ANYIO), "async-deadlock", {"likely"}),
    "locks": (LOCKS, "async-deadlock", {"proven"}),
    "limiter": (LIMITER, "pool-exhausted", {"proven"}),
    "unclosed": (UNCLOSED, "future-never-resolved", {"proven"}),
    "back": (BACK, "loop-self-wait", {"proven"}),
}


@ENDS
@pytest.mark.parametrize("name", HANGS)
def test_hangs_are_named(release: Tuple[str, ...], name: str, tmp_path: Path) -> None:
    """The verdict, how sure it is, and the line."""
    source, pattern, confidences = HANGS[name]
    program, report = look(release, source, tmp_path)
    first = report["findings"][0]
    assert (first["pattern"], first["confidence"] in confidences) == (pattern, True), first
    assert program.line_of("blamed") in {culprit["line"] for culprit in first["culprits"]}


# ---------------------------------------------------------------------- healthy

HEALTHY = {
    "server": """
import trio
async def echo(stream):
    async for data in stream: await stream.send_all(data)
async def main():
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_tcp, echo, 0)
        print("ready", flush=True)
        await trio.sleep_forever()
trio.run(main)
""",
    "consumers": """
import trio
async def produce(sending):
    async with sending:
        while True:
            await sending.send(1)
            await trio.sleep(5)
async def consume(receiving):
    async for _item in receiving: pass
async def main():
    sending, receiving = trio.open_memory_channel(0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce, sending)
        for _ in range(2): nursery.start_soon(consume, receiving.clone())
        await trio.sleep(0.2)
        print("ready", flush=True)
trio.run(main)
""",
    "threads": """
import time, trio
async def main():
    async with trio.open_nursery() as nursery:
        for _ in range(3): nursery.start_soon(trio.to_thread.run_sync, time.sleep, 600)
        await trio.sleep(0.2)
        print("ready", flush=True)
trio.run(main)
""",
    "limited": """
import trio
async def job(limiter):
    async with limiter:
        with trio.move_on_after(30): await trio.sleep(60)
async def holds(lock, done):
    async with lock: await trio.sleep(30)
    done.set()
async def wants(lock):
    async with lock: pass
async def main():
    limiter, lock, done = trio.CapacityLimiter(2), trio.Lock(), trio.Event()
    async with trio.open_nursery() as nursery:
        for _ in range(4): nursery.start_soon(job, limiter)
        nursery.start_soon(holds, lock, done)
        await trio.sleep(0.1)
        nursery.start_soon(wants, lock)
        nursery.start_soon(done.wait)
        await trio.sleep(0.1)
        print("ready", flush=True)
trio.run(main)
""",
    "conditions": """
import trio
async def main():
    condition, permits, items = trio.Condition(), trio.Semaphore(1), []
    async def takes():
        async with permits, condition:
            while not items: await condition.wait()
    async def gives():
        while True:
            await trio.sleep(20)
            async with condition: condition.notify()
    async with trio.open_nursery() as nursery:
        for function in (takes, takes, gives): nursery.start_soon(function)
        await trio.sleep(0.2)
        print("ready", flush=True)
trio.run(main)
""",
}


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every search come to its end, however busy the machine is."""
    for module in (gates, grading, reached, wakers):
        monkeypatch.setattr(module, "SECONDS", 100.0)


@ENDS
@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_programs_get_no_sure_finding(
    release: Tuple[str, ...], name: str, tmp_path: Path, unhurried: None
) -> None:
    """Waits that a deadline, a socket, a thread or another task ends are none of these hangs."""
    look(release, HEALTHY[name], tmp_path)
    findings = classify(evidence_of(tmp_path / "bundle")).findings
    assert [f.pattern for f in findings if f.confidence != "possible"] == []
    assert {f.pattern for f in findings} <= {"sleeping"}
