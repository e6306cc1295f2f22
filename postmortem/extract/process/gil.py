"""The interpreter lock (GIL) as a resource with waiters and a holder."""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Tuple

from ...cpython.state.interpreter import Python, ThreadState
from ...evidence import Interpreter, NativeFrame, Resource, Thread, Wait
from ...evidence.vocabulary import GilState


def gil_id(interpreter: int) -> str:
    """Return the resource id of an interpreter's GIL."""
    return f"gil-{interpreter}"


def wanted_gil(python: Python, word: int) -> Optional[str]:
    """Return the id of the GIL whose futex this is; None for other futexes."""
    wanted = next((i for i in python.interpreters if i.gil and i.gil.word_is_wait(word)), None)
    return gil_id(wanted.id) if wanted is not None else None


def is_gil(python: Optional[Python], word: int) -> Optional[bool]:
    """Return whether a futex is a GIL's; None if unknown.

    On musl a waiter's word lies on its own stack, and only those at the time of the core are known.
    """
    if python is None:
        return False
    return wanted_gil(python, word) is not None or (None if python.on_musl else False)


def gil_state(
    python: Optional[Python], state: Optional[ThreadState], wait: Optional[Wait], native: Sequence[NativeFrame]
) -> GilState:
    """Return a thread's relation to the GIL."""
    if python is None:
        return "unknown"
    if state is None:
        return "detached" if python.all_threads else "unknown"
    if any(i.gil and i.gil.holder == state.address for i in python.interpreters):
        return "holds"
    if (wait is not None and wait.kind == "gil") or any(f.function == "take_gil" for f in native[:6]):
        return "waits"
    if state.attached is False or wait is not None:
        return "detached"
    return "unknown"


def gil_resources(interpreters: Sequence[Interpreter], threads: Sequence[Thread]) -> Tuple[Resource, ...]:
    """Return a resource for each awaited GIL.

    A GIL shared by interpreters is named after the first of them.
    """
    waiters: Dict[str, List[int]] = {}
    for thread in threads:
        if thread.wait is not None and thread.wait.kind == "gil" and thread.wait.resource is not None:
            waiters.setdefault(thread.wait.resource, []).append(thread.tid)
    return tuple(
        Resource(
            id=gil_id(one.id),
            kind="gil",
            description="the GIL" if one.id == 0 else f"the GIL of interpreter {one.id}",
            owner_tid=one.gil.holder_tid,
            owner_basis="recorded" if one.gil.holder_tid is not None else None,
            waiters=tuple(waiters[gil_id(one.id)]),
            locked=one.gil.locked,
        )
        for one in interpreters
        if one.gil is not None and gil_id(one.id) in waiters
    )
