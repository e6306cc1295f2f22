"""Tornado as installed: its coroutines of both kinds, and what they wait for."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..corpora.runs import NotRecorded, environment, interpreter
from ..support.diagnosing import assert_leads, capture_pid
from ..support.interpreters import Program
from ..support.required import lacking

pytestmark = pytest.mark.live

RELEASES = pytest.mark.parametrize(("version", "release"), [("3.9", "6.1"), ("3.13", "6.5.2")])

SOURCE = """
import sys
from tornado import gen, ioloop, locks, queues

def soon():
    ioloop.IOLoop.current().call_later(0.3, lambda: print("ready", flush=True))

class Store:
    def __init__(self):
        self.lock, self.places, self.rows = locks.Lock(), locks.BoundedSemaphore(2), queues.Queue(maxsize=3)

    async def write(self, row):
        await self.lock.acquire()  # kept
        await gen.sleep(0.01)
        if row == 1:
            raise ValueError(row)
        self.lock.release()

    @gen.coroutine
    def fetch(self, row):
        yield self.places.acquire()  # leaked
        yield gen.sleep(0.01)

    async def move(self, other):
        async with self.lock:
            await gen.sleep(0.1)
            async with other.lock:  # circle
                pass

    async def work(self):
        async for row in self.rows:
            await gen.sleep(0.01)
            if row != 5:
                self.rows.task_done()

    @gen.coroutine
    def save(self):
        while True:
            row = yield self.rows.get()
            yield gen.sleep(0.5)
            self.rows.task_done()

async def kept():
    store = Store()
    soon()
    for row in range(3):
        try:
            await store.write(row)
        except ValueError:
            pass

@gen.coroutine
def leaked():
    store = Store()
    soon()
    for row in range(4):
        yield store.fetch(row)

async def circle():
    first, second = Store(), Store()
    soon()
    await gen.multi([first.move(second), second.move(first)])

async def unfinished():
    store = Store()
    soon()
    ioloop.IOLoop.current().spawn_callback(store.work)
    for row in range(8):
        await store.rows.put(row)
    await store.rows.join()  # unfinished

@gen.coroutine
def rests():
    store = Store()
    soon()
    ioloop.IOLoop.current().spawn_callback(store.save)
    for row in range(1000):
        yield store.rows.put(row)

ioloop.IOLoop.current().run_sync(globals()[sys.argv[1]])
"""

STUCK = {
    "kept": ("orphaned-lock", ("proven",)),
    "leaked": ("pool-exhausted", ("likely", "proven")),
    "circle": ("async-deadlock", ("proven",)),
    "unfinished": ("future-never-resolved", ("likely", "proven")),
}


@RELEASES
@pytest.mark.parametrize("does", [*STUCK, "rests"])
def test_coroutines_that_wait_for_tornados_primitives(version: str, release: str, does: str, tmp_path: Path) -> None:
    """Named with the line that waits; coroutines that go on every half second get no finding above possible."""
    try:
        python = str(environment(interpreter(version), (f"tornado=={release}",)))
    except NotRecorded as exc:
        lacking(str(exc))
    with Program(python, SOURCE, tmp_path, does) as program:
        report = capture_pid(program.pid, tmp_path)
    if does in STUCK:
        assert_leads(report, STUCK[does], SOURCE, does)
    else:
        assert all(finding["confidence"] == "possible" for finding in report["findings"])
