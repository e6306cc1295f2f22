"""A command as gdb passes it on."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Tuple


class Wrong(Exception):
    """A question that has no answer; the message is one sentence."""


class Asked(NamedTuple):
    """``selected``: tid of gdb's selected thread; ``numbers``: gdb's numbers by tid."""

    arguments: Tuple[str, ...]
    selected: Optional[int]
    numbers: Dict[int, int]

    @classmethod
    def of(cls, asked: Dict[str, Any]) -> Asked:
        selected = asked.get("selected")
        return cls(
            tuple(map(str, asked.get("arguments") or ())),
            None if selected is None else int(selected),
            {int(tid): int(number) for number, tid in asked.get("threads") or ()},
        )

    def number(self, tid: int) -> str:
        """Return gdb's number of a thread; "-" for one that gdb does not have."""
        return str(self.numbers.get(tid, "-"))
