"""Authorship of journal entries: whether systemd-coredump wrote one itself.

Any user can write a message with any MESSAGE_ID and any COREDUMP_* fields. Only fields whose names begin with an
underscore are journald's own: it takes them from the kernel, and drops those that a client sends
(systemd.journal-fields(7)).

- ``_UID`` alone is not enough: systemd-coredump drops its privileges before it writes, so the entry has the crashed
  program's user, or the user ``systemd-coredump`` for system users (change_uid_gid of src/coredump/coredump.c).
- ``_EXE`` and ``_COMM`` are not enough for other users: anybody can start that program with a library of their own in
  LD_PRELOAD.
- ``_SYSTEMD_UNIT`` decides: it is read from the control group, and only systemd puts a process into a system unit; a
  unit of that name in a user's manager or in a container shows the unit of that manager or container. It is looked up
  by a pid that may be reused by then, whereas ``_UID`` came with the message: so ``_UID`` must be one of the two users
  above as well.
- An entry by root may be systemd-coredump's without a unit: before systemd 229, and for a crash of journald itself; for
  a program that has ended by the time of the look-up, journald has nothing but the ids. It counts unless it shows
  another program, or a container.
- An entry by a user without a unit stays unverified, though it may be genuine.
"""

from __future__ import annotations

import re
from typing import Callable, Optional, Tuple

from ..foreign.numbers import is_decimal
from . import containers

#: Fields that decide whether an entry is genuine.
FIELDS = ("COREDUMP_UID", "_TRANSPORT", "_UID", "_EXE", "_SYSTEMD_UNIT", "_SYSTEMD_CGROUP")
_UNIT = re.compile(r"systemd-coredump@[^/]+\.service")
_PROGRAM = "systemd-coredump"
#: systemd's SYSTEM_UID_MAX in every distribution.
_LAST_SYSTEM_USER = 999

#: Alternative matches for journalctl that exclude nearly all entries by others, so that a flood of them hides no
#: genuine one. Instances of a template are in a slice of its name (systemd.unit(5)).
WRITTEN_BY_IT: Tuple[Tuple[str, ...], ...] = (
    ("_TRANSPORT=journal", "_SYSTEMD_SLICE=system-systemd\\x2dcoredump.slice"),
    ("_TRANSPORT=journal", "_UID=0"),
)


def by_coredump(field: Callable[[str], Optional[str]]) -> bool:
    """Return whether systemd-coredump wrote an entry; ``field`` returns the text of one of its fields."""
    if field("_TRANSPORT") != "journal":
        return False
    program = (field("_EXE") or _PROGRAM).rpartition("/")[2]
    if program != _PROGRAM:
        return False
    writer = field("_UID") or ""
    if _UNIT.fullmatch(field("_SYSTEMD_UNIT") or ""):
        return writer == field("COREDUMP_UID") or (is_decimal(writer) and int(writer) <= _LAST_SYSTEM_USER)
    return writer == "0" and containers.name(field("_SYSTEMD_CGROUP"), ()) is None
