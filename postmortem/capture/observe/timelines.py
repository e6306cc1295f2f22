"""What threads were at, look by look: the course of the window, of which counters only keep the sum.

An entry is written when something differs from the look before, so that a thread that waits has one, whatever the window.
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from ..procfs import parsers

#: Entries of one thread: a window of minutes has no more than one of seconds.
_MOST = 200
#: ``wanted`` of a look that found no such thread, or may not read it.
_GONE = (None, None, 0)

#: (letter of /proc, name of the system call or None, address of the futex or 0)
_Seen = Tuple[Optional[str], Optional[str], int]


class Course:
    """One thread's. ``as_json()`` is ``[[seconds since the window began, state, call, futex], …]``; call is "running" outside
    of system calls, and None where it may not be read."""

    def __init__(self) -> None:
        self._entries: List[List[Any]] = []
        self._last: Optional[_Seen] = None

    def note(
        self, seconds: float, state: Optional[str], name: Optional[str], call: Optional[parsers.SystemCall]
    ) -> None:
        word = call.args[0] if call is not None and name == "futex" else 0
        self._add(seconds, (state, name, word))

    def gone(self, seconds: float) -> None:
        self._add(seconds, _GONE)

    def _add(self, seconds: float, seen: _Seen) -> None:
        if seen != self._last and len(self._entries) < _MOST:
            self._entries.append([round(seconds, 4), *seen])
            self._last = seen

    def as_json(self) -> List[List[Any]]:
        return self._entries
