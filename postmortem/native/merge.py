"""Native and Python stacks merged into one.

A native frame of the interpreter loop runs one or several Python frames: those that called each other without leaving
Python, up to the one entered from C. Walking from the most recent call on, each loop frame therefore takes the Python
frames up to and including an *entry* frame, which are placed just before it.

Both stacks were read by different means at one moment, and either may be incomplete, so the counts can differ: frames
are then misplaced by one such group at worst, never lost or duplicated.
"""

from __future__ import annotations

import re
from typing import List, Sequence, Tuple

from ..evidence import Frame, NativeFrame, PythonFrame

#: Functions that run bytecode, by precedence: if a later one is on the stack, the earlier ones are only its wrappers.
#: PyEval_EvalFrameEx was the loop up to 3.5 and calls it since (Python/ceval.c); builds of 3.14 with tail calls have
#: one function for each instruction, `_TAIL_CALL_<INSTRUCTION>`, entered by _PyEval_EvalFrameDefault.
_LOOPS = (
    re.compile(r"PyEval_EvalFrameEx$"),
    # GCC splits functions: .cold, .part.0, .constprop.1, .isra.2, .lto_priv.3
    re.compile(r"_PyEval_EvalFrameDefault(\.[\w.]+)?$"),
    re.compile(r"_TAIL_CALL_\w+(\.[\w.]+)?$"),
)
#: Functions in which a thread begins: a native stack that reaches one is complete.
_OUTERMOST = re.compile(r"(main|_start|clone\d*|__clone\d*|start_thread|__libc_start_\w+|__libc_start_call_main)$")
PYTHON_MODULE = re.compile(r"(libpython\d[^/]*\.so[^/]*|python\d*(\.\d+)?[a-z]*)( \(deleted\))?$")

#: Frames of a thread that gdb/stacks.py unwinds, the innermost ones.
DEEPEST = 1024

#: greenlet's extension. A greenlet's native stack begins there; what is older belongs to those that it was switched from.
_GREENLET = re.compile(r"/_?greenlet\.[^/]*so[^/]*$")

PythonCall = Tuple[PythonFrame, int]


def merge(python: Sequence[PythonCall], native: Sequence[NativeFrame]) -> Tuple[Frame, ...]:
    """Return the merged stack, most recent call first.

    - ``python``: frames, most recent first, each with the number of loops that end at it: False/0 when the next older
      frame runs in the same loop, True/1 when it was entered from C, 2 or more with loops in between that have no frame
      (which is being torn down)
    - ``native``: frames, most recent first
    """
    if not python or not native:
        return (*(frame for frame, _entry in python), *native)
    loops = loop_indices(native)
    if not loops:
        return _without_loops(python, native)
    runs = _runs(python)
    start = _start_of_greenlet(native, loops)
    loops = [index for index in loops if index < start]
    before = dict(zip(loops, runs))
    if len(loops) > len(runs) and (start < len(native) or _is_whole(native)) and python[-1][1]:
        # both reach the thread's beginning: the innermost loops have no Python frame yet, or no longer
        before = dict(zip(loops[len(loops) - len(runs) :], runs))
    left = [frame for run in runs[len(loops) :] for frame in run]
    merged: List[Frame] = []
    for index, frame in enumerate(native):
        merged.extend(before.get(index, ()))
        merged.extend(left if index == start else ())
        merged.append(frame)
    return (*merged, *(left if start == len(native) else ()))


def _start_of_greenlet(native: Sequence[NativeFrame], loops: Sequence[int]) -> int:
    """Return the index of the frame that started the greenlet that runs, whose Python frames a thread has; else their number."""
    inside = (
        index
        for index, frame in enumerate(native)
        if index > loops[0] and frame.module is not None and _GREENLET.search(frame.module)
    )
    return next(inside, len(native))


def loop_indices(native: Sequence[NativeFrame]) -> List[int]:
    """Return the indices of the interpreter loops in a native stack."""
    for pattern in reversed(_LOOPS):
        found = [index for index, frame in enumerate(native) if frame.function and pattern.match(frame.function)]
        if found:
            return found
    return []


def _runs(python: Sequence[PythonCall]) -> List[List[PythonFrame]]:
    """Group Python frames by the loop that runs them, innermost first; the last group may lack its entry frame."""
    runs: List[List[PythonFrame]] = [[]]
    for frame, entry in python:
        runs[-1].append(frame)
        runs.extend([] for _ in range(int(entry)))
    while not runs[-1]:
        runs.pop()
    return runs


def _is_whole(native: Sequence[NativeFrame]) -> bool:
    function = native[-1].function
    return function is not None and _OUTERMOST.match(function) is not None


def _without_loops(python: Sequence[PythonCall], native: Sequence[NativeFrame]) -> Tuple[Frame, ...]:
    """Merge stacks without a named loop.

    The Python frames follow the first group of frames inside the interpreter, which are calls from them; without any
    such frame they are older than all native ones.
    """
    if len(native) >= DEEPEST:
        return (
            *native,
            *(frame for frame, _entry in python),
        )  # recursive C code: the loop is beyond the unwound frames
    inside = [frame.module is not None and PYTHON_MODULE.search(frame.module) is not None for frame in native]
    at = len(native)
    if True in inside:
        at = inside.index(True)
        while at < len(native) and inside[at]:
            at += 1
    return (*native[:at], *(frame for frame, _entry in python), *native[at:])
