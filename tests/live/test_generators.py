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
