"""Check whether systemd's journal lists cores, read as `analyze coredumpctl:last` reads it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from ..errors import PermissionRefused, PostmortemError, ToolMissing
from .check import Check

if TYPE_CHECKING:
    from ..cores.journal import Found

_NAME = "coredumpctl"
_DEADLINE_S = 10.0


def coredumpctl() -> Check:
    """Check how many cores the journal lists, and whether the newest still exists."""
    from ..cores.journal import RIGHTS, Where, entries  # noqa: PLC0415 - the other checks need no evidence

    try:
        found = entries(Where(), deadline_s=_DEADLINE_S)
    except ToolMissing:
        return Check(
            _NAME,
            None,
            "journalctl is not found; only needed where systemd keeps the cores",
            "apt-get install systemd systemd-coredump",
        )
    except PermissionRefused as exc:
        return Check(_NAME, None, str(exc), exc.next)
    except PostmortemError as exc:
        return Check(_NAME, None, f"the journal cannot be read: {exc}", exc.next)
    rights = RIGHTS if found.hidden else ""
    hidden = "; cores of other users are not shown" if found.hidden else ""
    if not found.entries:
        own = "" if shutil.which("coredumpctl") else ", and coredumpctl is not installed"
        return Check(_NAME, None if hidden else True, f"the journal has no core so far{own}{hidden}", rights)
    return Check(_NAME, None if hidden else True, f"{_told(found)}{hidden}", rights)


def _told(found: Found) -> str:
    from ..cores import coredumpctl as cores  # noqa: PLC0415
    from ..cores.journal import Where  # noqa: PLC0415
    from ..cores.store import whose  # noqa: PLC0415

    newest, number = found.entries[0], len(found.entries)
    gone = "" if cores.is_there(newest, Where()) else ", which is gone"
    more = "more than " if found.more else ""
    last = whose(cores.origin_of(newest, 0, Where()))
    return f"the journal knows {more}{number} core{'s' if number > 1 else ''}, last {last}{gone}"
