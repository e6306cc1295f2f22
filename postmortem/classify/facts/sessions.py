"""Sessions of PostgreSQL servers on this machine, by the titles of their processes."""

from __future__ import annotations

import re
from typing import Dict, NamedTuple, Optional

from ...evidence import Resource
from .view import View

#: PostgreSQL's title of a session: "postgres: USER DATABASE HOST(PORT) COMMAND waiting" (src/backend/utils/misc/ps_status.c and
#: commands in src/backend/tcop/postgres.c, 9.6 to 17).
_TITLE = re.compile(r"^postgres: (?:[^:]+: )?(?P<user>\S+) (?P<database>\S+) (?P<client>\S+) (?P<doing>.*?)\s*$")
_WAITING, _OPEN, _IDLE = " waiting", "idle in transaction", "idle"


class Session(NamedTuple):
    """A session of a PostgreSQL server, by the title of its process."""

    pid: int
    title: str
    user: str
    database: str
    doing: str

    @property
    def waits(self) -> bool:
        """Return whether it waits for a lock."""
        return self.doing.endswith(_WAITING)

    @property
    def in_transaction(self) -> bool:
        """Return whether it has a transaction open, and no statement to work on."""
        return self.doing.startswith(_OPEN)

    @property
    def idle(self) -> bool:
        """Return whether it has neither a statement to work on nor a transaction open."""
        return self.doing == _IDLE


def sessions(view: View) -> Dict[int, Session]:
    """Return the sessions of PostgreSQL servers on this machine, by PID: captured ones, and the peers of captured ones."""
    key = ("sessions",)
    if key not in view.remembered:
        view.remembered[key] = _found(view)
    return view.remembered[key]  # type: ignore[return-value]


def session_of(view: View, resource: Optional[Resource]) -> Optional[Session]:
    """Return the session at the other end of a socket; None if that is none, or unknown."""
    found = sessions(view) if resource is not None else {}
    return next((found[end.pid] for end in resource.ends if end.pid in found), None) if resource is not None else None


def is_unasked(view: View, resource: Optional[Resource]) -> bool:
    """Return whether the other end of a socket is a session without a statement: a client waits for a notification there."""
    session = session_of(view, resource)
    return session is not None and session.idle


def _found(view: View) -> Dict[int, Session]:
    titles = {p.pid: p.argv[0] for p in view.processes if p.argv}
    for process in view.pythons:
        for resource in process.resources:
            titles.update({end.pid: end.program for end in resource.ends if end.program and end.pid not in titles})
    found: Dict[int, Session] = {}
    for pid, title in titles.items():
        known = _TITLE.match(title)
        if known is not None:
            found[pid] = Session(pid, title.strip(), known["user"], known["database"], known["doing"])
    return found
