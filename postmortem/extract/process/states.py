"""Assignment of the interpreters' thread states to the kernel's threads.

A thread that runs code of several interpreters has a state in each: the caller's stack is in one, the called code
(``run_string`` and similar) in the next. Together they form one stack. Up to 3.12 ``_xxsubinterpreters.run_string``
uses the state made by ``create``, whichever thread calls it (Modules/_xxsubinterpretersmodule.c,
_run_script_in_interpreter): such a state has the creator's id, and only the C stack identifies the running thread.
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

#: Bytes searched of a C stack, from its top on.
_MOST_STACK = 1 << 20
_MOST_THREADS = 200


#: struct pthread.tid, from the thread pointer on (glibc's nptl/descr.h, x86-64, 2.17 to 2.41).
_TCB_TID = 0x2D0


def pointers(core: ElfCore) -> Dict[int, int]:
    """Return tid → thread pointer, of the threads that have one of their own.

    The kernel's io_uring threads (create_io_thread in kernel/fork.c) belong to the process and keep the thread pointer of
    the thread that made them, but never run its code. Of threads with equal pointers it is the one that its own control
    block names, or the oldest.
    """
    sharing: Dict[int, List[int]] = {}
    for thread in core.threads:
        pointer = thread.regs.get("fs_base", 0)
        if pointer:
            sharing.setdefault(pointer, []).append(thread.tid)
    found: Dict[int, int] = {}
    for pointer, tids in sharing.items():
        try:
            named = core.u32(pointer + _TCB_TID) if len(tids) > 1 else 0
        except Fault:
            named = 0
        found[named if named in tids else min(tids)] = pointer
    return found


def match_states(python: Python, core: ElfCore) -> Dict[int, ThreadState]:
    """Return tid → thread state.

    Matched by the thread pointer (pthread_self is fs_base on x86-64 glibc), else by the native id that the interpreter
    recorded, which is stale after a fork.
    """
    by_ident: Dict[int, List[ThreadState]] = {}
    by_native: Dict[int, List[ThreadState]] = {}
    for interpreter in python.interpreters:
        for state in interpreter.threads:
            by_ident.setdefault(state.ident, []).append(state)
            if state.native_id is not None:
                by_native.setdefault(state.native_id, []).append(state)
    own: Dict[int, List[ThreadState]] = {}
    known = pointers(core)
    for thread in core.threads:
        states = by_ident.get(known.get(thread.tid, -1)) or by_native.get(thread.tid)
        if states:
            own[thread.tid] = [*states]
    _pair_untold(core, own, [state for states in by_ident.values() for state in states])
    if len(python.interpreters) > 1:
        _give_back(core, own)
    return {tid: _nested(states) for tid, states in own.items()}


def _pair_untold(core: ElfCore, own: Dict[int, List[ThreadState]], states: Sequence[ThreadState]) -> None:
    """Assign states to threads without a thread pointer in the core.

    These could not be stopped (frozen, uninterruptible), and up to 3.10 states contain no native id. They are matched
    by their C stacks, or paired if one of each is left.
    """
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
    """Move states that another thread runs to that thread."""
    for tid, states in list(own.items()):
        running = [state for state in states if state.frames]
        for state in running[1:]:
            runner = _runner(core, state, tid)
            if runner is not None and runner != tid:
                own[tid].remove(state)
                own.setdefault(runner, []).append(state)


def _runner(core: ElfCore, state: ThreadState, first: int) -> Optional[int]:
    """Return the thread whose C stack refers to a state's innermost frame, as the interpreter loop does."""
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
    """Return a thread's states joined into one, main interpreter first.

    Interpreters are numbered as they are made, so the later one was entered from the earlier. A state without frames
    has not been entered, unless its frames could not be read.
    """
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
