"""Locks that `with` statements hold, wherever in a function these stand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Dict, List, Optional, Union

import pytest

from postmortem.cpython.state.interpreter import Python
from postmortem.cpython.sync.locks import Locks
from postmortem.memory import ProcMem

from ..support.interpreters import Program, matrix

pytestmark = [pytest.mark.live, pytest.mark.parametrize("python", matrix())]

PROGRAM = """
import contextlib, sys, threading
locks = [threading.Lock() for _ in range(9)]
inside, gate = threading.Semaphore(0), threading.Event()
def wait():
    inside.release()
    gate.wait()
def in_finally():
    try: pass
    finally:
        with locks[0]:                  # in_finally
            wait()
def in_except():
    try: 1 / 0
    except ZeroDivisionError as e:
        with locks[1]:                  # in_except
            for x in (1,):
                try: wait()
                finally: pass
def raised_finally():
    try: 1 / 0
    finally:
        with locks[2]:                  # raised_finally
            wait()
def several_lines():
    with locks[3], \\
         locks[4] as taken, open(__file__):  # several_lines
        wait()
def left():
    try:
        with locks[5]: 1 / 0
    except ZeroDivisionError:
        with locks[6]:                  # left
            wait()
def argument_in_cell(lock=locks[7]):
    def inner(): return lock
    with lock:                          # argument_in_cell
        wait()
def within_return():
    x = [0]
    with locks[8]:                      # within_return
        return sum([len(x), *(wait() or 1 for _ in (1,))])
LONG
functions = [in_finally, in_except, raised_finally, several_lines, left, argument_in_cell, within_return, long_body]
for f in functions: threading.Thread(target=f, daemon=True, name=f.__name__).start()
for f in functions: inside.acquire()
import time; time.sleep(0.3)
print("ready", flush=True)
sys.stdin.read()
"""
#: A body so long that the jump over it needs prefixes.
LONG = (
    """
def long_body():
    with threading.Lock():              # long_body
        wait()
"""
    + "        print(1, 2, 3)\n" * 200
)


def test_holders_wherever_a_with_stands(python: Union[str, os.PathLike[str]], tmp_path: Path) -> None:
    """In handlers, behind exceptions, over several lines, over long bodies: the lock that is held and the line of its
    manager, and none that was left."""
    with Program(python, PROGRAM.replace("LONG", LONG), tmp_path) as program, ProcMem(program.pid) as memory:
        reader = Python(memory)
        locks = Locks(reader.frames)
        found: Dict[str, List[Optional[int]]] = {}
        for thread in reader.interpreters[0].threads:
            for frame in thread.frames:
                held = [one.line for one in locks.held(frame) if one.lock.locked]
                if held and frame.code.filename.endswith("program.py"):
                    found[frame.function] = held
        expected = {
            name: [program.line_of(name)]
            for name in (
                "in_finally",
                "in_except",
                "raised_finally",
                "left",
                "argument_in_cell",
                "within_return",
                "long_body",
            )
        }
        second = program.line_of("several_lines")
        assert found == {**expected, "several_lines": [second - 1, second]}
