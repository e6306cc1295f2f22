"""Native and Python stacks as one.

A native interpreter loop runs a run of Python frames: those that called each other without leaving Python,
up to the one that C code entered. Walking from the most recent call on, each native loop frame therefore takes
Python frames up to and including an *entry* frame, and they stand just before it: they are what it was running.

Both stacks were read by different means at one moment, and either may be cut short, so counts can differ:
frames are then misplaced by one run at worst, never lost or doubled.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, List, Sequence, Tuple

if TYPE_CHECKING:  # gdb's Python imports this module too, and has nothing that `evidence` needs
    from ..evidence import Frame, NativeFrame, PythonFrame

#: What runs bytecode, by precedence: where a later one is on the stack, the earlier ones are only its wrappers.
#: PyEval_EvalFrameEx was the loop up to 3.5 and calls it since (Python/ceval.c); builds of 3.14 with tail calls
#: have one function an instruction, `_TAIL_CALL_<INSTRUCTION>`, which _PyEval_EvalFrameDefault enters.
_LOOPS = (
    re.compile(r"PyEval_EvalFrameEx$"),
    # GCC splits functions: .cold, .part.0, .constprop.1, .isra.2, .lto_priv.3
    re.compile(r"_PyEval_EvalFrameDefault(\.[\w.]+)?$"),
    re.compile(r"_TAIL_CALL_\w+(\.[\w.]+)?$"),
)
#: Where a thread's stack begins: a native stack that reaches one of these is whole.
_OUTERMOST = re.compile(r"(main|_start|clone\d*|__clone\d*|start_thread|__libc_start_\w+|__libc_start_call_main)$")
PYTHON_MODULE = re.compile(r"(libpython\d[^/]*\.so[^/]*|python\d*(\.\d+)?[a-z]*)( \(deleted\))?$")

#: gdb/stacks.py unwinds as many frames of a thread, the innermost ones.
DEEPEST = 1024

if TYPE_CHECKING:
    PythonCall = Tuple[PythonFrame, int]


def merge(python: Sequence[PythonCall], native: Sequence[NativeFrame]) -> Tuple[Frame, ...]:
    """The merged stack, most recent call first.

    python: frames, most recent first, each with how many native loops end at it: False/0 when the next older
    frame runs in the same loop, True/1 when C code entered it, 2 or more when loops without a frame of their own
    lie between (their frame is being torn down). native: frames, most recent first.
    """
    if not python or not native:
        return (*(frame for frame, _entry in python), *native)
    loops = loop_indices(native)
    if not loops:
        return _without_loops(python, native)
    runs = _runs(python)
    before = dict(zip(loops, runs))
    if len(loops) > len(runs) and _is_whole(native) and python[-1][1]:
        # Both reach the thread's beginning: it is the innermost loops that have no frame yet, or no longer.
        before = dict(zip(loops[len(loops) - len(runs) :], runs))
    merged: List[Frame] = []
    for index, frame in enumerate(native):
        merged.extend(before.get(index, ()))
        merged.append(frame)
    for run in runs[len(loops) :]:
        merged.extend(run)
    return tuple(merged)


def loop_indices(native: Sequence[NativeFrame]) -> List[int]:
    """Where the interpreter loops are in a native stack."""
    for pattern in reversed(_LOOPS):
        found = [index for index, frame in enumerate(native) if frame.function and pattern.match(frame.function)]
        if found:
            return found
    return []


def _runs(python: Sequence[PythonCall]) -> List[List[PythonFrame]]:
    """Python frames by the loop that runs them, innermost first; the last run may lack its entry frame."""
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
    """No loop has a name here: the Python frames follow the first stretch of frames inside the interpreter, which
    is what they called; without any such frame they are older than all."""
    if len(native) >= DEEPEST:
        return (
            *native,
            *(frame for frame, _entry in python),
        )  # C that calls itself: the loop is beyond what was unwound
    inside = [frame.module is not None and PYTHON_MODULE.search(frame.module) is not None for frame in native]
    at = len(native)
    if True in inside:
        at = inside.index(True)
        while at < len(native) and inside[at]:
            at += 1
    return (*native[:at], *(frame for frame, _entry in python), *native[at:])
