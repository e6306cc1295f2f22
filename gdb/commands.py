"""The commands, each a class whose docstring is its help. None runs anything in the target."""

from __future__ import annotations

import gdb

from .command import Store
from .locks import GilRecord, LockTable
from .objects import Objects
from .tasks import Tasks
from .threads import Backtrace, Locals, Threads
from .why import Why


def register() -> None:
    """Makes the commands known to gdb, and forgets what was read whenever the target moves."""
    Store.forget()
    for command in (Threads, Backtrace, Locals, GilRecord, LockTable, Tasks, Objects, Why):
        command()
    for event in ("stop", "cont", "exited", "new_objfile", "memory_changed", "inferior_deleted"):
        registry = getattr(gdb.events, event, None)
        if registry is not None:
            registry.connect(Store.forget)
