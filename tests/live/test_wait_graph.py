"""Wait-for edges in real processes: lock cycles on every interpreter, each edge with lock, holder, basis, line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

import pytest

from ..support.diagnosing import capture_pid
from ..support.interpreters import Program, matrix

pytestmark = pytest.mark.live

CIRCLES = """
import threading, time

class Shelf:
    def __init__(self, name, kind):
        self.name, self.guard = name, kind()

class Walker:
    def __init__(self, gate, mine, other):
        self.gate, self.mine, self.other = gate, mine, other

    def run(self):
        with self.mine.guard:         # holds
            self.gate.wait()
            with self.other.guard:    # wants
                pass

def circle(name, kinds):
    shelves = [Shelf(f"{name}{n}", kind) for n, kind in enumerate(kinds)]
    gate = threading.Barrier(len(shelves))
    pairs = zip(shelves, [*shelves[1:], shelves[0]])
    return [threading.Thread(target=Walker(gate, *pair).run, name=f"{name}{n}", daemon=True) for n, pair in enumerate(pairs)]

Lock, RLock, Condition = threading.Lock, threading.RLock, threading.Condition
plain_condition = lambda: Condition(Lock())
threads = [
    *circle("pair", [Lock, Lock]),
    *circle("trio", [RLock, RLock, RLock]),
    *circle("conditions", [Condition, plain_condition]),
    *circle("ten", [Lock, RLock, Condition, plain_condition, Lock, RLock, Condition, plain_condition, Lock, RLock]),
]
for thread in threads: thread.start()
time.sleep(0.3)
print("ready", flush=True)
threads[0].join()
"""
SIZES = {"pair": 2, "trio": 3, "conditions": 2, "ten": 10}


@pytest.mark.parametrize("python", matrix())
def test_circles_of_locks_are_proven(python: str, tmp_path: Path) -> None:
    """Circles of 2, 3 and 10 threads over plain locks, RLocks, Conditions and all of them mixed: one proven finding each;
    every link names the lock, the holder that was read, and both lines."""
    with Program(python, CIRCLES, tmp_path) as program:
        found = capture_pid(program.pid, tmp_path, "--observe", "0.2")
        holds, wants = program.line_of("holds"), program.line_of("wants")
    (process,) = found["processes"]
    names = {t["tid"]: t["name"] for t in process["threads"]}
    circles = {names[c[0]["tid"]].rstrip("0123456789"): c for c in found["graph"]["cycles"]}
    assert {name: len(circle) for name, circle in circles.items()} == SIZES
    for name, circle in circles.items():
        for number, agent in enumerate(circle):
            following = circle[(number + 1) % len(circle)]
            assert_link(process, edges_of(found, agent["tid"]), following["tid"], holds, name)
    proven = [f for f in found["findings"] if f["pattern"] == "lock-order-deadlock" and f["confidence"] == "proven"]
    assert sorted(int(f["summary"].split()[0]) for f in proven) == sorted(SIZES.values())
    assert all({c["line"] for c in f["culprits"]} == {holds, wants} for f in proven)
    assert found["verdict"] == "lock-order-deadlock"
    main = next(t for t in process["threads"] if t["is_main"])
    assert names[main["joins"]] == "pair0"


def edges_of(found: Dict[str, Any], tid: int) -> List[Dict[str, Any]]:
    return [edge for edge in found["graph"]["edges"] if edge["waiter"]["tid"] == tid]


def assert_link(process: Dict[str, Any], edges: List[Dict[str, Any]], owner: int, line: int, name: str) -> None:
    (edge,) = edges
    assert (edge["verb"], edge["stuck"], edge["basis"] in ("with-slot", "recorded")) == ("wants", "proven", True)
    assert [w["tid"] for w in edge["wakers"]] == [owner]
    resource = next(r for r in process["resources"] if r["id"] == edge["resource"])
    assert resource["owner_tid"] == owner
    holder = next(t for t in process["threads"] if t["tid"] == owner)
    held = [h for h in holder["holds"] if h["resource"] == resource["id"]]
    assert [(h["frame"]["function"], h["frame"]["line"]) for h in held] == [("run", line)]
    assert "Walker.other.guard" in resource["description"] or "Walker.mine.guard" in resource["description"], name
