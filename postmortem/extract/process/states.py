"""Which thread states of the interpreters belong to which thread of the kernel.

A thread that runs code of several interpreters has a state in each: the caller's stack is in one, what it called
(``run_string`` and the like) in the next. They are one stack. Up to 3.12 ``_xxsubinterpreters.run_string`` runs the
state that ``create`` made, whichever thread calls it (Modules/_xxsubinterpretersmodule.c, _run_script_in_interpreter):
such a state bears the creator's id, and only the C stack of the thread that really runs it tells.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import replace
from typing import Dict, List, Optional, Sequence

from ...arch.registersets import stack_pointer
from ...cpython.frames.chains import Chain, joined
from ...cpython.state.interpreter import Python, ThreadState
from ...memory import CoreThread, ElfCore, Fault

#: Of a C stack this much is searched, from its top on.
_MOST_STACK = 1 << 20
_MOST_THREADS = 200


def match_states(python: Python, core: ElfCore) -> Dict[int, ThreadState]:
    """tid → its state: by the thread pointer (pthread_self is fs_base on x86-64 glibc), else by the id that the
    interpreter noted, which is stale after a fork."""
    by_ident: Dict[int, List[ThreadState]] = {}
    by_native: Dict[int, List[ThreadState]] = {}
    for interpreter in python.interpreters:
        for state in interpreter.threads:
            by_ident.setdefault(state.ident, []).append(state)
            if state.native_id is not None:
                by_native.setdefault(state.native_id, []).append(state)
    own: Dict[int, List[ThreadState]] = {}
    for thread in core.threads:
        states = by_ident.get(thread.regs.get("fs_base", -1)) or by_native.get(thread.tid)
        if states:
            own[thread.tid] = [*states]
    _pair_untold(core, own, [state for states in by_ident.values() for state in states])
    if len(python.interpreters) > 1:
        _give_back(core, own)
    return {tid: _nested(states) for tid, states in own.items()}


def _pair_untold(core: ElfCore, own: Dict[int, List[ThreadState]], states: Sequence[ThreadState]) -> None:
    """Threads that could not be stopped (frozen, uninterruptible) have no thread pointer in the core, and up to 3.10 states have
    no id of the kernel's: told by their C stacks, or paired when one of either is left."""
    threads = [t for t in core.threads[:_MOST_THREADS] if not t.regs.get("fs_base") and t.tid not in own]
    taken = {id(state) for several in own.values() for state in several}
    left = [state for state in states if id(state) not in taken][:_MOST_THREADS] if threads else []
    if len(threads) == len(left) == 1 == len(core.threads) - len(own):
        own[threads[0].tid] = left
        return
    stacks = {thread.tid: _stack(core, thread) for thread in threads} if left else {}
    for state in left:
        needle = struct.pack("<Q", state.frames[0].address) if state.frames else b""
        found = [tid for tid, stack in stacks.items() if needle and needle in stack]
        if len(found) == 1:
            own.setdefault(found[0], []).append(state)


def _give_back(core: ElfCore, own: Dict[int, List[ThreadState]]) -> None:
    """Moves states that another thread runs to that thread."""
    for tid, states in list(own.items()):
        running = [state for state in states if state.frames]
        for state in running[1:]:
            runner = _runner(core, state, tid)
            if runner is not None and runner != tid:
                own[tid].remove(state)
                own.setdefault(runner, []).append(state)


def _runner(core: ElfCore, state: ThreadState, first: int) -> Optional[int]:
    """The thread on whose C stack the innermost frame of a state is: the interpreter loop keeps it there."""
    needle = struct.pack("<Q", state.frames[0].address)
    threads = sorted(core.threads[:_MOST_THREADS], key=lambda thread: thread.tid != first)
    return next((thread.tid for thread in threads if needle in _stack(core, thread)), None)


def _stack(core: ElfCore, thread: CoreThread) -> bytes:
    top, areas = stack_pointer(thread.regs), core.writable
    index = bisect_right([start for start, _end in areas], top) - 1
    if index < 0 or top >= areas[index][1]:
        return b""
    try:
        return core.read(top, min(areas[index][1] - top, _MOST_STACK))
    except Fault:
        return b""


def _nested(states: List[ThreadState]) -> ThreadState:
    """One state of those that a thread has, main interpreter first. Interpreters are numbered as they are made, so the
    later one was entered from the earlier; states without frames are waiting to be entered, unless theirs are lost."""
    running = [state for state in states if state.frames or state.cut] or states[:1]
    inner, named = running[-1], next((s for s in running if s.name is not None), running[0])
    if len(running) == 1:
        return inner
    chain = running[0].chain or Chain([], None, 0)
    for state in running[1:]:
        chain = joined(state.chain or Chain([], None, 0), chain)
    return replace(
        inner,
        ident=running[0].ident,
        chain=chain,
        frames=chain.frames,
        cut=chain.cut,
        name=named.name,
        daemon=named.daemon,
        object=named.object,
    )
