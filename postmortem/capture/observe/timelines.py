"""What each thread did during the window, look by look; the counters hold only totals.

An entry is made when a look differs from the one before, so that a waiting thread has one entry, however long the
window.
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from ..procfs import parsers

#: Most entries kept of one thread, whatever the window's length; later changes are dropped.
_MOST = 200
#: Entry of a look at which the thread had ended, or could not be read.
_GONE = (None, None, 0)

#: (letter of /proc, name of the system call or None, address of the futex or 0)
_Seen = Tuple[Optional[str], Optional[str], int]


class Course:
    """The course of one thread."""

    def __init__(self) -> None:
        self._entries: List[List[Any]] = []
        self._last: Optional[_Seen] = None

    def note(
        self, seconds: float, state: Optional[str], name: Optional[str], call: Optional[parsers.SystemCall]
    ) -> None:
        """Record one look, ``seconds`` after the window began; ``name``: the system call, "running", or None if unreadable."""
        word = call.args[0] if call is not None and name == "futex" else 0
        self._add(seconds, (state, name, word))

    def gone(self, seconds: float) -> None:
        """Record a look at which the thread had ended, or could not be read."""
        self._add(seconds, _GONE)

    def _add(self, seconds: float, seen: _Seen) -> None:
        if seen != self._last and len(self._entries) < _MOST:
            self._entries.append([round(seconds, 4), *seen])
            self._last = seen

    def as_json(self) -> List[List[Any]]:
        """Return ``[[seconds since the window began, state, call, futex], …]``.

        ``call`` is "running" outside of system calls, None where it could not be read; ``futex`` is its address, else
        0.
        """
        return self._entries
