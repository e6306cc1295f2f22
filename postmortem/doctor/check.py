"""One line of the examination."""

from __future__ import annotations

from typing import NamedTuple, Optional


class Check(NamedTuple):
    """``ok`` is None for what is neither good nor bad, only worth knowing."""

    name: str
    ok: Optional[bool]
    found: str
    remedy: str = ""
    needed: bool = False  # a capture or analysis lacks something without it

    @property
    def mark(self) -> str:
        return {True: "ok", False: "no", None: "note"}[self.ok]
