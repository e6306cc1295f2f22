"""The store to which a target belongs: systemd's journal, apport's or abrt's reports, a directory with cores."""

from __future__ import annotations

from pathlib import Path
from typing import ContextManager, Optional

from ..foreign.files import is_folder
from . import apport
from .journal import PREFIX, Where
from .store import Stored, exists

__all__ = ["Stored", "Where", "opened"]

_BUNDLE = ("manifest.json", "evidence.json", "raw")


def opened(target: str, where: Where) -> Optional[ContextManager[Stored]]:
    """Return the core that a target in a store stands for; None for a plain file or a bundle.

    ``where``: the journal to search. Entering the result may raise PostmortemError.
    """
    if target.startswith(PREFIX):
        from . import coredumpctl  # noqa: PLC0415 - a plain core, the usual case, needs none of them

        return coredumpctl.opened(target[len(PREFIX) :], where)
    path = Path(target)
    if is_folder(str(path)):
        if any(exists(path / name) for name in _BUNDLE):
            return None
        from . import abrt, folder  # noqa: PLC0415

        return abrt.opened(path) if abrt.is_problem(path) else folder.opened(path)
    return apport.opened(path) if apport.is_report(path) else None
