"""A command typed in gdb, as gdb's side sends it to the child."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Tuple


class Wrong(Exception):
    """Invalid command; the message is one sentence."""


class Asked(NamedTuple):
    """A command.

    - ``selected``: tid of gdb's selected thread
    - ``numbers``: gdb's thread numbers by tid
    """

    arguments: Tuple[str, ...]
    selected: Optional[int]
    numbers: Dict[int, int]

    @classmethod
    def of(cls, asked: Dict[str, Any]) -> Asked:
        """Convert a message from gdb."""
        selected = asked.get("selected")
        return cls(
            tuple(map(str, asked.get("arguments") or ())),
            None if selected is None else int(selected),
            {int(tid): int(number) for number, tid in asked.get("threads") or ()},
        )

    def number(self, tid: int) -> str:
        """Return gdb's number of a thread; "-" if gdb does not have it."""
        return str(self.numbers.get(tid, "-"))
