"""Locks of buffered files that threads wait for, as resources."""

from __future__ import annotations

import time
from typing import Dict, List, NamedTuple, Optional, Tuple

from ...cpython.sync.buffered import BufferedLock, awaited_buffer
from ...evidence import Resource
from ...timelimits import TimeLimit
from ..cross_process.forks import LockPlace
from ..process.context import PythonContext
from .threadwaits import FutexFacts

_STANDARD = {"descriptor 0": "<stdin>", "descriptor 1": "<stdout>", "descriptor 2": "<stderr>"}
#: Seconds for all futexes of a process: each search reads its whole memory, about 1 GB/s.
_SEARCHES_S = 1.5


class _Draft(NamedTuple):
    ident: str
    lock: BufferedLock
    waiters: List[int]


class BufferBook:
    """A collector of waits for buffered files' locks."""

    def __init__(self, context: PythonContext) -> None:
        self._python, self._core, self._threads = context.python, context.core, context.threads
        self._drafts: Dict[int, _Draft] = {}
        self._searched: Dict[int, Optional[BufferedLock]] = {}
        self._left = _SEARCHES_S

    def futex(self, word: int, tid: int) -> Optional[FutexFacts]:
        """Return the facts of a futex word that nothing else explains; None if it is no buffered file's lock."""
        lock = self._lock(word)
        if lock is None:
            return None
        draft = self._drafts.setdefault(lock.address, _Draft(f"buffer-{len(self._drafts) + 1}", lock, []))
        draft.waiters.append(tid)
        return FutexFacts("lock", draft.ident, "until another thread is done with a buffered file", "waits")

    def _lock(self, word: int) -> Optional[BufferedLock]:
        if word not in self._searched and self._left > 0:
            began = time.thread_time()
            limit = TimeLimit(self._left)
            self._searched[word] = awaited_buffer(self._python.objects, word, self._core.written, limit)
            self._left -= time.thread_time() - began
        return self._searched.get(word)

    def places(self) -> Dict[str, LockPlace]:
        """Return address and owner's ident of each lock by resource id."""
        return {d.ident: LockPlace(d.lock.address, d.lock.owner_ident or None) for d in self._drafts.values()}

    def resources(self) -> Tuple[Resource, ...]:
        """Return all locks as resources."""
        return tuple(map(self._resource, self._drafts.values()))

    def _resource(self, draft: _Draft) -> Resource:
        lock = draft.lock
        owner = self._threads.tid_of_ident(lock.owner_ident)
        name = _STANDARD.get(lock.name or "", lock.name)
        return Resource(
            id=draft.ident,
            kind="lock",
            description=f"lock of {lock.type} {name}" if name else f"lock of a {lock.type}",
            owner_tid=owner,
            owner_basis="recorded" if owner is not None else None,
            waiters=tuple(draft.waiters),
            locked=lock.owner_ident != 0,
        )
