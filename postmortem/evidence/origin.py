"""Where a core came from, when a store of cores kept notes beside it."""

from __future__ import annotations

from time import gmtime, strftime
from typing import Optional

import msgspec

from .vocabulary import Store, Trust


class Origin(msgspec.Struct, frozen=True):
    """What the store noted. Never the environment of the process. Of an unverified entry only the process number that it was
    asked for by, and what journald adds itself: its time and machine."""

    store: Store
    core: Optional[str] = None  # path of the file that was read; None: it lay in the journal
    pid: Optional[int] = None  # as the machine numbers it: the core itself has a container's number
    command: Optional[str] = None  # the thread's or program's name
    signal: Optional[str] = None
    time: Optional[float] = None  # when it crashed, seconds since the epoch
    unit: Optional[str] = None  # of systemd
    hostname: Optional[str] = None
    container: Optional[str] = None  # its id or name, or its first program
    others: int = 0  # older cores that were meant as well
    trust: Optional[Trust] = None  # of an entry in systemd's journal
    written_by: Optional[int] = None  # the user who wrote an unverified one

    @property
    def when(self) -> Optional[str]:
        """``2026-01-31 12:00:00 UTC``."""
        try:
            return None if self.time is None else strftime("%Y-%m-%d %H:%M:%S UTC", gmtime(self.time))
        except (OverflowError, ValueError, OSError):
            return None
