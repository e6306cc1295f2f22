"""What a pool of any class has lent while others wait for its condition: told from those who merely use one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..support.diagnosing import capture_pid
from ..support.interpreters import Program, kinds

pytestmark = pytest.mark.live

POOLS = """
import threading

class Link:
    def __init__(self, pool):
        self.pool, self.open = pool, True
    def close(self):
        self.pool, self.open = self.pool, None

class Pool:
    def __init__(self, most):
        self.most_out = self.max_links = most
        self.out, self.changed = 0, threading.Condition()
    def take(self):
        with self.changed:
            while self.out >= self.max_links:
                self.changed.wait()
            self.out += 1
            return Link(self)

class User:
    def __init__(self, store):
        self.store = store
    def work(self):
        with self.store.changed:
            self.store.changed.wait()          # only uses it

def twice(pool, meet):
    first = pool.take()
    meet.wait()
    second = pool.take()                       # wants another

pool, store, meet = Pool(2), Pool(2), threading.Barrier(3)
spare = Link(pool)
spare.close()
threads = [threading.Thread(target=twice, args=(pool, meet), daemon=True) for _ in range(2)]
threads += [threading.Thread(target=User(store).work, daemon=True) for _ in range(2)]
for thread in threads: thread.start()
meet.wait()
print("ready", flush=True)
for thread in threads: thread.join()
"""


@pytest.mark.parametrize("python", kinds())
def test_as_many_things_as_the_pool_lends(python: str, tmp_path: Path) -> None:
    """Each with one thread, and one more that was given back: exhausted. Two users of another such object have nothing."""
    with Program(python, POOLS, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path)
        line = program.line_of("wants another")
    lent = {
        r["description"]: sum(w["role"] == "holder" for w in r["wakers"])
        for r in report["processes"][0]["resources"]
        if r["kind"] == "condition"
    }
    assert sorted(lent.values()) == [0, 2]
    exhausted = [f for f in report["findings"] if f["pattern"] == "pool-exhausted"]
    assert [f["confidence"] for f in exhausted] == ["likely"]
    assert line in [c["line"] for c in exhausted[0]["culprits"]]
