"""Recursion without end in sight: read to its beginning, in bounded time, and told in two lines."""

from __future__ import annotations

import time
from pathlib import Path
from typing import List, Tuple

import pytest

from postmortem.cpython.frames.chains import KEEP_INNER, KEEP_OUTER, Chain
from postmortem.cpython.state.interpreter import Python
from postmortem.evidence import Gap, PythonFrame
from postmortem.extract.process.stacks import Stacks
from postmortem.memory import ProcMem

from ..interpreters.wanted import Interpreter
from ..support.interpreters import Program, matrix
from ..support.inwords import reason

pytestmark = [pytest.mark.live, pytest.mark.parametrize("python", matrix())]

TURNS = 33_334
HANG_S = 120.0

DEEP = """
import os, sys, threading
threading.excepthook = lambda args: os._exit(3)
sys.setrecursionlimit(10 ** 9)
threading.stack_size(1 << 30)
gate = threading.Lock()
gate.acquire()
def walk(n):
    return visit(n)                                   # walk
def visit(n):
    return accept(n - 1)                              # visit
def accept(n):
    if n <= 0:
        print("ready", flush=True)
        gate.acquire()                                # end
    return walk(n)                                    # accept
threading.Thread(target=walk, args=(int(sys.argv[1]),), daemon=True, name="deep").start()
sys.stdin.read()
"""


def parked(memory: ProcMem, line: int) -> Tuple[Python, Chain]:
    """The deep thread's stack, once it has come to a line; fails when that or its reading takes too long."""
    until = time.monotonic() + HANG_S
    while time.monotonic() < until:
        reader = Python(memory)
        chain = next(t for t in reader.interpreters[0].threads if t.name == "deep").chain
        if chain is not None and chain.frames[0].line == line:
            return reader, chain
    raise AssertionError("the thread was never seen in its last call")


def test_a_hundred_thousand_frames(python: Interpreter, tmp_path: Path) -> None:
    """Both ends are there, what lies between is counted, and the three functions that call each other are named with
    their lines and how often."""
    with Program(python, DEEP, tmp_path, str(TURNS)) as program, ProcMem(program.pid) as memory:
        reader, chain = parked(memory, program.line_of("end"))
        assert chain.cut is None
        own = 3 * TURNS
        assert own <= chain.depth <= own + 10
        assert len(chain.frames) == KEEP_INNER + KEEP_OUTER
        assert chain.frames[-1].function == "_bootstrap"
        gaps: List[Gap] = []
        stack = Stacks(reader, None, gaps).of(chain, (), 1)
        assert stack.left_out is not None and len(stack.frames) + stack.left_out.frames == chain.depth
        assert stack.recursion is not None and stack.recursion.depth == chain.depth
        assert stack.recursion.times >= TURNS - 1 and stack.recursion.same_lines
        cycle = {(frame.function, frame.line) for frame in stack.recursion.cycle}
        assert cycle == {(name, program.line_of(name)) for name in ("walk", "visit", "accept")}
        assert len(gaps) == 1 and str(stack.left_out.frames) in reason(gaps[0])
        python_frames = [f for f in stack.frames if isinstance(f, PythonFrame)]
        assert [f.function for f in python_frames[-4:]] == ["walk", "run", "_bootstrap_inner", "_bootstrap"]


THROUGH_C = """
import os, sys, threading
threading.excepthook = lambda args: os._exit(3)       # nobody waits for a thread that is gone
sys.setrecursionlimit(10 ** 9)
threading.stack_size(1 << 30)
def descend(n):
    if not n:
        print("ready", flush=True)
        gate.acquire()                                # end
    return sorted([n - 1], key=descend)
gate = threading.Lock()
gate.acquire()
threading.Thread(target=descend, args=(int(sys.argv[1]),), daemon=True, name="deep").start()
sys.stdin.read()
"""


def test_recursion_through_c(python: Interpreter, tmp_path: Path) -> None:
    """Each turn enters an interpreter loop of its own: as many are counted among the frames that are left out, so that
    native frames can still be put beside the outermost Python ones."""
    # From 3.12 on the interpreter itself ends recursion through C early.
    turns = 6_000 if python.version < (3, 12) else 300
    with Program(python, THROUGH_C, tmp_path, str(turns)) as program, ProcMem(program.pid) as memory:
        _reader, chain = parked(memory, program.line_of("end"))
        assert turns <= chain.depth <= turns + 10
        assert chain.recursion is not None
        assert [f.function for f in chain.recursion.frames] == ["descend"]
        if turns > KEEP_INNER + KEEP_OUTER:
            assert chain.left_out is not None and chain.left_out.entries == chain.left_out.frames
