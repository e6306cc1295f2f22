"""Holders of a semaphore shared between processes, as one process sees them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from postmortem.cpython.sync.semaphores import SemLock
from postmortem.extract.cross_process import semaphores
from postmortem.extract.cross_process.semaphores import SemaphoreBook
from postmortem.extract.ownership.ownership import Ownership
from postmortem.extract.process.threadtable import ThreadRow, ThreadTable

from ....support.contexts import made

LOCK = 0x7F00
NATIVE = 0x7A00


def test_a_thread_of_cs_may_have_taken_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs Python only now and then, so no interpreter knows it at the moment: it is there all the same."""
    taken = SemLock(0x1000, LOCK, NATIVE, 1, 1, False, None)
    monkeypatch.setattr(semaphores, "find_semlocks", lambda *_args: ([taken], True))
    monkeypatch.setattr(semaphores, "read_count", lambda *_args: None)
    python: Any = SimpleNamespace(
        locks=None, all_threads=True, frames=SimpleNamespace(objects=None), objects=SimpleNamespace()
    )
    image: Any = SimpleNamespace(files=[])
    maps = [f"{LOCK:x}-{LOCK + 0x1000:x} rw-s 00000000 00:1a 7 /dev/shm/sem.x"]
    table = ThreadTable([ThreadRow(11, NATIVE)])
    book = SemaphoreBook(made(python, table, core=image, facts={"maps": maps}))
    found = book.holders()
    (claim,) = book.claims(found).values()
    assert (claim.taken, claim.holder) == (1, Ownership(LOCK, 11, "recorded"))
    (resource,) = book.resources(found)
    assert (resource.owner_tid, resource.owner_gone) == (11, None)
