"""The examination of this machine: each tool and permission is tried, not looked up, with a remedy for what is missing."""

from __future__ import annotations

from typing import Callable, List

from . import confinement, journal, rights, room, tools
from .check import Check

__all__ = ["Check", "checks"]


def checks() -> List[Check]:
    """Return all checks, in the order in which a capture needs their subjects."""
    looks = (
        tools.pyspy,
        rights.trace,
        rights.memory,
        rights.others,
        confinement.user_namespace,
        confinement.seccomp,
        confinement.proc,
        confinement.control_groups,
        room.memory,
        room.disk,
        tools.gdb,
        tools.cache,
        room.core_pattern,
        room.core_limit,
        journal.coredumpctl,
        tools.symbols,
    )
    return [_examined(look) for look in looks]


def _examined(look: Callable[[], Check]) -> Check:
    """Run one check; one that cannot be tried (no process can be started, no file opened) becomes a note."""
    try:
        return look()
    except OSError as exc:
        name = look.__name__.replace("_", " ")
        return Check(name, None, f"could not be examined: {exc.strerror or exc}", "a process or file limit is reached")
