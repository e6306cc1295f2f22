"""One line of the examination."""

from __future__ import annotations

from typing import NamedTuple, Optional


class Check(NamedTuple):
    """The result of a check; ``ok`` is None for a note that is neither good nor bad."""

    name: str
    ok: Optional[bool]
    found: str
    remedy: str = ""
    needed: bool = False  # a capture or analysis is incomplete without it

    @property
    def mark(self) -> str:
        """``ok``, ``no`` or ``note``."""
        return {True: "ok", False: "no", None: "note"}[self.ok]
