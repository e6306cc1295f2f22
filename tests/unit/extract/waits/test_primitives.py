"""Threads that work on what others wait for: imports, and the threads that run them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from postmortem.cpython.sync.primitives import Layer
from postmortem.extract.process.threadtable import ThreadRow, ThreadTable
from postmortem.extract.waits import primitives
from postmortem.extract.waits.primitives import Primitives

from ....support.contexts import made

MODULE_LOCK, NATIVE = 0x5000, 0x7A00


def test_a_thread_of_cs_may_be_at_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """No interpreter knows it at the moment, but the import's own record does: it has not ended."""
    monkeypatch.setattr(primitives, "attributes", lambda _objects, _address: {"owner": NATIVE, "name": 1})
    objects: Any = SimpleNamespace(integer_or_none=lambda value: value, optional_text=lambda _at: "slow")
    python: Any = SimpleNamespace(objects=objects, all_threads=True, finalizing=False)
    pools: Any = None
    book = Primitives(made(python, ThreadTable([ThreadRow(11, NATIVE)])), pools)
    book.wait(Layer("import-lock", MODULE_LOCK, "acquire", 0), 12, [])
    (resource,) = book.resources({})
    assert (resource.owner_tid, resource.owner_basis, resource.owner_gone) == (11, "recorded", None)
    assert book.imports() == []  # where it stands is not known
