"""Locks that an asynchronous generator holds while it yields, on every interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..support.diagnosing import capture_pid
from ..support.interpreters import Program, kinds

pytestmark = pytest.mark.live

#: A loop over notifications, as of a database's connection, asks the same connection for more.
PROGRAM = """
import asyncio
class Connection:
    def __init__(self):
        self.lock = asyncio.Lock()
    async def notifies(self):
        async with self.lock:
            while True:
                yield "a notification"
    async def execute(self):
        async with self.lock:                  # asks
            pass
async def work(connection):
    async for _notification in connection.notifies():
        asyncio.get_running_loop().call_soon(lambda: print("ready", flush=True))
        await connection.execute()             # works
async def main():
    await work(Connection())
asyncio.run(main())
"""


@pytest.mark.parametrize("python", kinds())
def test_a_generator_holds_for_the_task_that_loops_over_it(python: str, tmp_path: Path) -> None:
    """The generator is suspended inside its `async with`, on the stack of the loop: that task waits for itself."""
    with Program(python, PROGRAM, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path)
        lines = {program.line_of("asks"), program.line_of("works")}
    leading = report["findings"][0]
    assert leading["pattern"] == "async-deadlock"
    assert leading["confidence"] in ("likely", "proven")
    assert {culprit["line"] for culprit in leading["culprits"]} & lines


#: A generator over one over one that has the lock, in a thread and in a task; and a class that takes it in `__aenter__`.
NESTED = """
import asyncio, threading
class Shelf:
    def __init__(self):
        self.lock = threading.Lock()
    def rows(self):
        with self.lock: yield from range(3)
    def chosen(self):
        for row in self.rows(): yield row
    def update(self, row):
        with self.lock: pass                   # sorts
def sort(shelf):
    for row in shelf.chosen():
        threading.Timer(0.2, print, ["ready"], {"flush": True}).start()
        shelf.update(row)
sort(Shelf())
"""
NESTED_TASKS = """
import asyncio
class Connection:
    def __init__(self):
        self.lock = asyncio.Lock()
    async def rows(self):
        async with self.lock: yield "a row"
    async def chosen(self):
        async for row in self.rows(): yield row
    async def execute(self):
        async with self.lock: pass
async def main():
    connection = Connection()
    async for _row in connection.chosen():
        asyncio.get_running_loop().call_soon(lambda: print("ready", flush=True))
        await connection.execute()             # sorts
asyncio.run(main())
"""
TRANSACTION = """
import asyncio
class Transaction:
    def __init__(self, lock):
        self.lock = lock
    async def __aenter__(self):
        await self.lock.acquire()
        return self
    async def __aexit__(self, *_exc):
        self.lock.release()
async def main():
    lock = asyncio.Lock()
    async with Transaction(lock):              # sorts
        asyncio.get_running_loop().call_soon(lambda: print("ready", flush=True))
        async with Transaction(lock): pass
asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("source", "pattern"),
    [(NESTED, "self-deadlock"), (NESTED_TASKS, "async-deadlock"), (TRANSACTION, "async-deadlock")],
)
@pytest.mark.parametrize("python", kinds())
def test_what_is_held_for_who_loops_or_is_in_a_body(source: str, pattern: str, python: str, tmp_path: Path) -> None:
    """By generators within generators, and by a class whose body is entered: whoever runs it waits for itself."""
    with Program(python, source, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path)
    first = report["findings"][0]
    assert (first["pattern"], first["confidence"] in ("likely", "proven")) == (pattern, True)
    assert program.line_of("sorts") in {culprit["line"] for culprit in first["culprits"]}
