"""The interpreter lock as a thing that threads wait for, with its holder."""

from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

from ...evidence import Interpreter, Resource, Thread


def gil_id(interpreter: int) -> str:
    return f"gil-{interpreter}"


def gil_resources(interpreters: Sequence[Interpreter], threads: Sequence[Thread]) -> Tuple[Resource, ...]:
    """One for each GIL that somebody waits for. Interpreters may share one: it is called after the first of them."""
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
