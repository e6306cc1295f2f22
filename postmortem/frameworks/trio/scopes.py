"""Deadlines of trio's cancel scopes, and the clock that they refer to.

- A task's ``_cancel_status`` belongs to its innermost scope and leads to those around it, over nurseries too; a shielded
  scope keeps out the cancellations of those around it. ``_registered_deadline`` is infinite without a deadline, and once
  the scope has been cancelled.
- SystemClock adds a random ``offset`` to time.perf_counter(), which is time.monotonic() on Linux. Times of other clocks,
  such as MockClock, are unknown.

Source: trio/_core/_run.py of 0.20-0.35: CancelScope, CancelStatus, SystemClock.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Optional

from ...cpython.heap.parts import Parts
from ...cpython.objects.builtins import NotThat, Objects
from ...memory import Fault

_MOST_SCOPES = 500


class Expiry(NamedTuple):
    """When a cancel scope ends a task's waits.

    ``limited`` is None if it is unknown whether any does; ``due``: seconds of time.monotonic(), None if unknown.
    """

    limited: Optional[bool]
    due: Optional[float] = None


class Scopes:
    """Cancel scopes of one interpreter; methods never raise."""

    def __init__(self, objects: Objects, parts: Parts) -> None:
        self._objects, self._parts = objects, parts

    def offset(self, runner: int) -> Optional[float]:
        """Return what a runner's clock adds to time.monotonic(); None for another clock than trio's own."""
        clock = self._parts.attributes(runner).get("clock")
        if clock is None or self._objects.type_name(clock) != "SystemClock":
            return None
        return self._finite(self._parts.attributes(clock).get("offset"))

    def expiry(self, task: int, offset: Optional[float]) -> Expiry:
        """Return when the first of the scopes around a task is due.

        ``offset``: of the runner's clock.
        """
        status, due = self._parts.attributes(task).get("_cancel_status"), math.inf
        for _ in range(_MOST_SCOPES):
            if status is None or self._objects.type_name(status) == "NoneType":
                break
            values = self._parts.attributes(status)
            scope = self._parts.attributes(values.get("_scope", 0)) if "_scope" in values else {}
            own = self._number(scope.get("_registered_deadline"))
            if own is None:
                return Expiry(None)
            due = min(due, own)
            if self._objects.integer_or_none(scope.get("_shield")):
                break
            status = values.get("_parent")
        else:
            return Expiry(None)
        if due == math.inf:
            return Expiry(False)
        return Expiry(True, due - offset if offset is not None and math.isfinite(due) else None)

    def deadline(self, scope: int) -> Optional[float]:
        """Return the deadline with which a scope is registered; None if it has none, or it is unknown."""
        return self._finite(self._parts.attributes(scope).get("_registered_deadline"))

    def _finite(self, address: Optional[int]) -> Optional[float]:
        found = self._number(address)
        return found if found is not None and math.isfinite(found) else None

    def _number(self, address: Optional[int]) -> Optional[float]:
        try:
            found = self._objects.number(address) if address else None
        except (Fault, NotThat, OverflowError):
            return None
        return None if found is None or math.isnan(found) else found
