"""The origin of a core file, for stores that keep metadata beside it."""

from __future__ import annotations

from time import gmtime, strftime
from typing import Optional

import msgspec

from .vocabulary import Store, Trust


class Origin(msgspec.Struct, frozen=True):
    """The metadata of a core in its store; never the environment of the process.

    For an entry that is not verified only these are kept: the process id by which it was requested, and the time and
    machine that journald itself adds.
    """

    store: Store
    core: Optional[str] = None  # path of the file that was read; None: stored in the journal
    pid: Optional[int] = None  # as numbered by the machine: the core itself records the number inside the container
    command: Optional[str] = None  # name of the thread or program
    signal: Optional[str] = None
    time: Optional[float] = None  # time of the crash, seconds since the epoch
    unit: Optional[str] = None  # systemd's unit
    hostname: Optional[str] = None
    container: Optional[str] = None  # id or name of the container, or its first program
    others: int = 0  # number of older cores that matched the request
    trust: Optional[Trust] = None  # for an entry in systemd's journal
    written_by: Optional[int] = None  # uid of the writer of an unverified entry

    @property
    def when(self) -> Optional[str]:
        """Return the time of the crash as ``2026-01-31 12:00:00 UTC``; None if unknown or out of range."""
        try:
            return None if self.time is None else strftime("%Y-%m-%d %H:%M:%S UTC", gmtime(self.time))
        except (OverflowError, ValueError, OSError):
            return None
