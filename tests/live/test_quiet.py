"""Threads that only sleep and count take no proof away, on every interpreter; those that do more still do."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..support.diagnosing import capture_pid
from ..support.interpreters import Program, kinds

pytestmark = pytest.mark.live

SOURCE = """
import signal, threading, time

class Meter:
    def __init__(self): self.beats, self.last = 0, 0.0
    def run(self):
        while True: self.beat()
    def beat(self):
        self.beats += 1
        self.last = time.monotonic()
        time.sleep(3)
class Desk:
    def __init__(self): self.lock, self.wanted = threading.Lock(), False
    def outer(self):
        with self.lock: self.inner()
    def inner(self):
        with self.lock: pass
beats, desk, rare = 0, Desk(), threading.Event()
def count():
    global beats
    while True:
        beats += 1
        if beats % 10 == 11: beats = 0
        time.sleep(3)
def rescues():
    while True:
        time.sleep(3)
        if beats < 0: rare.set()
def ask(number, frame): desk.wanted = True
signal.signal(signal.SIGUSR1, ask)
for one in (count, Meter().run, rescues):
    threading.Thread(target=one, name=one.__name__, daemon=True).start()
waits = threading.Thread(target=desk.outer, name="waits")
waits.start()
print("ready", flush=True)
desk.outer()
"""


@pytest.mark.parametrize("python", kinds())
def test_heartbeats_and_flags(python: str, tmp_path: Path) -> None:
    """Two heartbeats are quiet, and the handler sets a flag; a thread that may set an event is none."""
    with Program(python, SOURCE, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path)
    (process,) = report["processes"]
    quiet = {t["name"]: t["quiet"] for t in process["threads"]}
    assert (quiet["count"], quiet["run"]) == (True, True)
    assert all(state is None for name, state in quiet.items() if name not in ("count", "run"))
    assert [handler["quiet"] for handler in process["signal_handlers"]] == [True]
    assert [(f["pattern"], f["confidence"]) for f in report["findings"]][:1] == [("self-deadlock", "proven")]
