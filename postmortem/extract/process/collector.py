"""Threads that run the cyclic garbage collector, from the interpreter's record and exact names of native frames."""

from __future__ import annotations

import re
from typing import Dict, Mapping, Optional, Sequence

from ...cpython.state.interpreter import InterpreterState, Python, ThreadState
from ...evidence import NativeFrame

#: Functions that collect or call those that do (Modules/gcmodule.c up to 3.12; Python/gc.c, gc_free_threading.c since),
#: with the suffixes of functions that GCC splits. Full names only: my_stats_collector_wait collects statistics.
_COLLECTS = re.compile(
    r"(collect|collect_generations|collect_with_callback|gc_collect_(main|generations|with_callback|full|young|"
    r"increment|region|internal)|_?PyGC_Collect(NoFail|IfEnabled)?|_Py_RunGC|gc_collect|gc_collect_impl)"
    r"(\.(part|constprop|isra|lto_priv|cold)(\.\d+)?)*$"
)


def collectors(
    python: Python, threads: Mapping[int, ThreadState], native: Mapping[int, Sequence[NativeFrame]]
) -> Dict[int, Optional[bool]]:
    """Return tid → whether the thread runs the collector; None: unknown.

    Without symbols, a collection may be any thread's, unless its interpreter has only one.
    """
    found: Dict[int, Optional[bool]] = {}
    for interpreter in python.interpreters:
        own = {tid for tid, state in threads.items() if state.interpreter == interpreter.id}
        named = {tid for tid in own if _collects(native.get(tid, ()), python.runtime.path)}
        found.update({tid: _answer(interpreter, tid in named, bool(named), len(own)) for tid in own})
    return found


def _answer(interpreter: InterpreterState, named: bool, any_named: bool, threads: int) -> Optional[bool]:
    if interpreter.collecting is not True:
        return interpreter.collecting  # its record outweighs function names: None stays unknown
    if named or any_named:
        return named
    return True if threads == 1 == len(interpreter.threads) else None


def _collects(frames: Sequence[NativeFrame], library: str) -> bool:
    """Return whether a frame collects in the interpreter's file; other files may have functions named `collect`."""
    name = library.rsplit("/", 1)[-1]
    return any(
        f.function and _COLLECTS.match(f.function) and (f.module or "").rsplit("/", 1)[-1] == name for f in frames
    )
