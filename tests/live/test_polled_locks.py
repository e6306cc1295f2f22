"""Threads that ask for a lock on a file again and again: whose lock it is, on every interpreter."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ..support.diagnosing import capture_pid
from ..support.interpreters import Program, kinds

pytestmark = pytest.mark.live

#: The main thread holds the lock that ``asks`` wants through another descriptor; ``rests`` sleeps as often, with a lock.
POLLS = """
import fcntl, os, sys, threading, time

class Lock:
    def __init__(self, path):
        self.path = path
    def attempt(self):
        file = os.open(self.path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return False
        return True
    def acquire(self):
        while not self.attempt():
            time.sleep(0.2)                    # asks
        return self

def rest(lock):
    while lock.path:
        time.sleep(0.2)                        # rests

mine = Lock(__file__ + ".lock").acquire()
threading.Thread(target=rest, args=(mine,), daemon=True).start()
asks = threading.Thread(target=Lock(mine.path).acquire, daemon=True)
asks.start()
print("ready", flush=True)
asks.join()
"""

#: A child has the database for itself; the parent's busy handler sleeps in between.
DATABASE = """
import sqlite3, subprocess, sys
PATH = __file__ + ".db"
CHILD = f"import sqlite3, sys; c = sqlite3.connect({PATH!r}, isolation_level=None); c.execute('BEGIN EXCLUSIVE'); " \\
        "print('has it', flush=True); sys.stdin.read()"
child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print("ready", flush=True)
sqlite3.connect(PATH, timeout=1000).execute("CREATE TABLE t (a)")  # asks
"""


@pytest.mark.parametrize("python", kinds())
def test_who_asks_is_told_from_who_sleeps(python: str, tmp_path: Path) -> None:
    """The function that sleeps asks for the lock through a method of its own; one that sleeps likewise, and knows the same
    path, does not."""
    with Program(python, POLLS, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path)
        asks = program.line_of("asks")
    threads = report["processes"][0]["threads"]
    waits = {next(f["line"] for f in t["stack"] if f["kind"] == "python"): t["wait"] for t in threads}
    assert waits[asks]["kind"] == "file"
    assert waits[program.line_of("rests")]["kind"] == "sleep"
    (lock,) = [r for r in report["processes"][0]["resources"] if r["kind"] == "file-lock"]
    assert (lock["owner_pid"], lock["id"]) == (program.pid, waits[asks]["resource"])
    leading = report["findings"][0]
    assert leading["pattern"] == "file-lock-wait"
    # the process has the lock itself: while another thread of it is seen to move, that may be the one who holds it
    assert leading["confidence"] in ("likely", "possible")


@pytest.mark.parametrize("python", kinds())
def test_a_database_that_another_process_has(python: str, tmp_path: Path) -> None:
    """Found below SQLite's own call, by the bytes that it locks."""
    if subprocess.run([python, "-c", "import sqlite3"], capture_output=True, check=False).returncode:
        pytest.skip("this interpreter was built without sqlite3")
    with Program(python, DATABASE, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path)
        line = program.line_of("asks")
    leading = report["findings"][0]
    assert leading["pattern"] == "database-lock-wait"
    # the process has the lock itself: while another thread of it is seen to move, that may be the one who holds it
    assert leading["confidence"] in ("likely", "possible")
    assert [c["line"] for c in leading["culprits"]] == [line]
