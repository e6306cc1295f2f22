"""A program with a bit of everything, its core, and `postmortem debug` on it."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence

from ..support.capturing import HANG_S, finished, start
from ..support.interpreters import Program

#: A holder of `first` (by with) that waits for `second`; one that waits for `first`; a deep recursion; an event loop
#: with tasks. All but the main thread, which reads stdin.
PROGRAM = """
import asyncio, ctypes, json, os, sys, threading, time
sys.setrecursionlimit(20_000)
threading.stack_size(64 << 20)
first, second = threading.Lock(), threading.RLock()
up = threading.Semaphore(0)
accounts = {}
def account(frame):
    rows = []
    while frame:
        rows.append([frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return rows
def holder():
    with first:
        password, number, words = "hunter2", 41 + 1, ["a", "b"]
        up.release()
        second.acquire()
def waiter():
    up.release()
    first.acquire()
def deep(n=1500):
    if n:
        deep(n - 1)
    else:
        up.release()
        second.acquire()
async def inner():
    await asyncio.sleep(10_000)
async def outer():
    await inner()
async def keeps(gate):
    async with gate:
        await inner()
async def wants(gate):
    async with gate:
        pass
async def loop_main():
    tasks = [asyncio.ensure_future(outer()) for _ in range(3)]
    gate = asyncio.Lock()
    tasks += [asyncio.ensure_future(keeps(gate)), asyncio.ensure_future(wants(gate))]
    await asyncio.sleep(0.01)
    up.release()
    await asyncio.wait(tasks)
def looper():
    asyncio.run(loop_main())
second.acquire()
mutex = ctypes.create_string_buffer(40)  # zeros: a pthread_mutex_t that is free
lock_mutex = ctypes.CDLL(None).pthread_mutex_lock
lock_mutex(mutex)
def native():
    up.release()
    lock_mutex(mutex)
tids = {}
def named(function):
    tids[function.__name__] = threading.get_native_id()
    function()
for function in (holder, waiter, deep, looper, native):
    threading.Thread(target=named, args=(function,), name="the " + function.__name__, daemon=True).start()
    up.acquire()
def settled(tid):
    return open("/proc/self/task/%d/stat" % tid).read().rpartition(")")[2].split()[0] == "S"
while not all(map(settled, tids.values())):
    time.sleep(0.01)
time.sleep(0.2)
idents = {t.name: t.ident for t in threading.enumerate()}
stacks = {name: account(sys._current_frames()[ident]) for name, ident in idents.items() if name.startswith("the ")}
print(json.dumps({"tids": {**tids, "main": os.getpid()}, "stacks": stacks}), flush=True)
print("ready", flush=True)
sys.stdin.read()
"""


class Core(NamedTuple):
    path: Path
    bundle: Path
    tids: Dict[str, int]
    stacks: Dict[str, List[List[Any]]]
    minor: int
    free_threaded: bool


def take(python: Any, folder: Path) -> Core:
    with Program(python, PROGRAM, folder) as program:
        said = json.loads(program.lines[-1])
        bundle = folder / "bundle"
        done = finished(start("--observe", "0", "-o", str(bundle), "--pid", str(program.pid)), bundle)
        assert done.status == 0, done.stderr
        minor = getattr(python, "version", sys.version_info[:2])[1]
        free_threaded = getattr(python, "free_threaded", False)
        return Core(done.core(program.pid), bundle, said["tids"], said["stacks"], minor, free_threaded)


def debug(target: Any, *words: str, status: int = 0) -> str:
    """The output of `postmortem debug TARGET WORDS --batch`."""
    done = subprocess.run(
        [sys.executable, "-m", "postmortem", "debug", str(target), *words, "--batch"],
        capture_output=True,
        text=True,
        timeout=HANG_S * 2,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "defect of postmortem" not in done.stdout + done.stderr
    assert "\x1b" not in done.stdout  # colours are for terminals
    return done.stdout + done.stderr


def commands(target: Any, *named: str) -> Dict[str, str]:
    """The output of each command, by one run of gdb."""
    words = [word for command in named for word in ("-ex", f"echo @@{command}\\n", "-ex", command)]
    parts = re.split(r"^@@(.*)\n", debug(target, *words), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


class Terminal:
    """A program on a terminal of its own, ended with the block."""

    def __init__(self, words: Sequence[str], env: Dict[str, str]) -> None:
        self._leader, follower = pty.openpty()
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *words], stdin=follower, stdout=follower, stderr=follower, env=env
        )
        os.close(follower)
        self._said = b""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._leader)

    def write(self, text: bytes) -> None:
        """Type a text."""
        os.write(self._leader, text)

    def until(self, text: bytes) -> bytes:
        """Return what is printed up to and including a text, which must come."""
        end = time.monotonic() + HANG_S
        while text not in self._said:
            assert time.monotonic() < end, self._said
            if select.select([self._leader], [], [], 1.0)[0]:
                self._said += os.read(self._leader, 65536)
        before, found, self._said = self._said.partition(text)
        return before + found
