"""Semaphores that the program uses as permits: bounded ones, and those that each function which releases one has acquired."""

from __future__ import annotations

from ...evidence import Resource


def is_spent(resource: Resource) -> bool:
    """Return whether a semaphore of permits has none left.

    A semaphore that some function releases without acquiring it is a signal, which says nothing of who has what.
    """
    return (
        resource.kind in ("semaphore", "async-semaphore")
        and resource.value == 0
        and (bool(resource.limit) or (bool(resource.taken_at) and not resource.released_at))
    )
