"""What a store of cores noted → the evidence of its core."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Iterator

from ...cores.stores import Stored
from ...errors import PostmortemError
from ...evidence import Evidence, Gap, Process, replace


@contextlib.contextmanager
def named_as(stored: Stored) -> Iterator[None]:
    """What goes wrong with a file without a name is told of what the user knows it by."""
    try:
        yield
    except PostmortemError as exc:
        raise type(exc)(_named(str(exc), stored), exc.next) from None


def with_origin(found: Evidence, stored: Stored) -> Evidence:
    """With what was noted beside the core, and what the core alone did not tell."""
    gaps = [replace(g, subject=_named(g.subject, stored), reason=_named(g.reason, stored)) for g in found.gaps]
    gaps = [gap for gap in gaps if not (_cut_short(gap) and any(map(_cut_short, stored.gaps)))]
    ended = found.trigger.signal or stored.origin.signal
    return replace(
        found,
        origin=stored.origin,
        trigger=replace(found.trigger, signal=ended),
        processes=tuple(_completed(process, stored) for process in found.processes),
        gaps=(*stored.gaps, *gaps),
    )


def _completed(process: Process, stored: Stored) -> Process:
    """The kernel keeps eighty bytes of a command line in a core, joined by spaces."""
    exe = _named(process.exe, stored) if process.exe is not None else stored.exe
    return replace(process, argv=stored.argv or process.argv, exe=exe)


def _cut_short(gap: Gap) -> bool:
    return gap.code == "core-cut-short"


def _named(text: str, stored: Stored) -> str:
    """Paths by way of our descriptors → the name that the user knows, and names as they are below the container's root."""
    text = _replaced(text, stored.path, stored.named)
    return text if stored.root is None else _replaced(text, stored.root, "")


def _replaced(text: str, path: Path, named: str) -> str:
    return re.sub(rf"{re.escape(str(path))}(?!\d)", lambda _found: named, text)
