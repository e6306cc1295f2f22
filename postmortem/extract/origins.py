"""What a store of cores noted → the evidence of its core."""

from __future__ import annotations

import contextlib
from typing import Iterator

from ..cores.stores import Stored
from ..errors import PostmortemError
from ..evidence import Evidence, Gap, Process, replace


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
    return replace(process, argv=stored.argv or process.argv, exe=process.exe or stored.exe)


def _cut_short(gap: Gap) -> bool:
    return "cut short" in gap.reason


def _named(text: str, stored: Stored) -> str:
    return text.replace(str(stored.path), stored.named)
