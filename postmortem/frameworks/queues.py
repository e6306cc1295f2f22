"""Queues of a process, those that a library compiled among them: their fields are read as that library's are."""

from __future__ import annotations

from functools import cached_property
from typing import Optional

from ..cpython.heap.queues import Backlogs, Queue
from .greenlet.structs import Structs


class Queues(Backlogs):
    """The queues of one process, with gevent's compiled ones."""

    @cached_property
    def _structs(self) -> Structs:
        return Structs(self.python)

    def made_queue(self, name: str, value: int, kind: str) -> Optional[Queue]:
        """Return the queue at an address; None if it is none. Raises Fault or NotThat."""
        found = super().made_queue(name, value, kind)
        if found is not None or not self._structs.is_compiled(value):
            return found
        known, items = self._structs.at(value), self._structs.items_of(value)
        if known is None or known.kind != "queue" or items is None or known.limit is None:
            return None
        return Queue(value, f"{known.library}.queue.{kind.rsplit('.', 1)[-1]}", name, items, known.limit, [])
