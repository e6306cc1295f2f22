"""Which entries of a journal systemd-coredump wrote itself.

Any user may write a message with any MESSAGE_ID and any COREDUMP_* fields. Only the fields whose names begin with an
underscore are journald's own: it takes them from the kernel, and drops those that a client sends (systemd.journal-fields(7)).

``_UID`` alone tells little: systemd-coredump gives up its rights before it writes, so the entry has the crashed program's
user, or the user ``systemd-coredump`` for system users (change_uid_gid of src/coredump/coredump.c). ``_EXE`` and ``_COMM``
tell little of other users: anybody may start that program, with a library of his own in LD_PRELOAD. The unit decides:
``_SYSTEMD_UNIT`` is read from the control group, and only systemd puts a process into a system unit; a unit of that name
in a user's manager or in a container has the manager's or the container's unit there. It is looked up by a number that may
be another process's by then, whereas ``_UID`` came with the message: so it has to be one of the two users above as well.

What root wrote may be systemd-coredump's without a unit: so before systemd 229, and for a crash of journald's own; and
journald misses all but the ids of a program that has ended by the time it looks. Then it counts unless the entry shows
another program, or a container. An entry of a user's that shows no unit stays unverified, though it may be genuine.
"""

from __future__ import annotations

import re
from typing import Callable, Optional, Tuple

from ..foreign.numbers import is_decimal
from . import containers

#: Fields that decide who wrote an entry.
FIELDS = ("COREDUMP_UID", "_TRANSPORT", "_UID", "_EXE", "_SYSTEMD_UNIT", "_SYSTEMD_CGROUP")
_UNIT = re.compile(r"systemd-coredump@[^/]+\.service")
_PROGRAM = "systemd-coredump"
#: systemd's SYSTEM_UID_MAX as it is built everywhere.
_LAST_SYSTEM_USER = 999

#: Matches for journalctl that leave out nearly all of what others wrote, so that no flood of it hides the rest: each alone
#: is enough. Instances of a template lie in a slice of its name (systemd.unit(5)).
WRITTEN_BY_IT: Tuple[Tuple[str, ...], ...] = (
    ("_TRANSPORT=journal", "_SYSTEMD_SLICE=system-systemd\\x2dcoredump.slice"),
    ("_TRANSPORT=journal", "_UID=0"),
)


def by_coredump(field: Callable[[str], Optional[str]]) -> bool:
    """Whether systemd-coredump wrote an entry; ``field`` gives the text of one of its fields."""
    if field("_TRANSPORT") != "journal":
        return False
    program = (field("_EXE") or _PROGRAM).rpartition("/")[2]
    if program != _PROGRAM:
        return False
    writer = field("_UID") or ""
    if _UNIT.fullmatch(field("_SYSTEMD_UNIT") or ""):
        return writer == field("COREDUMP_UID") or (is_decimal(writer) and int(writer) <= _LAST_SYSTEM_USER)
    return writer == "0" and containers.name(field("_SYSTEMD_CGROUP"), ()) is None
