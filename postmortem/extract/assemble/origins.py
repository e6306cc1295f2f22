"""Evidence of a stored core, completed with the store's notes."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Callable, Iterator

from ...cores.stores import Stored
from ...errors import PostmortemError
from ...evidence import Evidence, Gap, Process, replace


@contextlib.contextmanager
def named_as(stored: Stored) -> Iterator[None]:
    """Replace internal paths in errors by the name that the user knows."""
    try:
        yield
    except PostmortemError as exc:
        raise type(exc)(_named(str(exc), stored), exc.next) from None


@contextlib.contextmanager
def errors_named(path: Path, name: str) -> Iterator[None]:
    """Replace the path of a temporary file or descriptor in errors by the name that the user knows."""
    try:
        yield
    except PostmortemError as exc:
        raise type(exc)(_replaced(str(exc), path, name), exc.next) from None


def gaps_named(found: Evidence, path: Path, name: str) -> Evidence:
    """Return the evidence with the path of a temporary file or descriptor in its gaps replaced likewise."""
    gaps = (_renamed(gap, lambda text: _replaced(text, path, name)) for gap in found.gaps)
    return replace(found, gaps=tuple(gaps))


def _renamed(gap: Gap, renamed: Callable[[str], str]) -> Gap:
    """Return a gap with every text replaced."""
    slots = {name: renamed(value) if isinstance(value, str) else value for name, value in gap.slots.items()}
    reason = renamed(gap.reason) if gap.reason is not None else None
    return replace(gap, subject=renamed(gap.subject), reason=reason, slots=slots)


def with_origin(found: Evidence, stored: Stored) -> Evidence:
    """Return the evidence with the notes of the store and what the core alone lacks."""
    gaps = [_renamed(gap, lambda text: _named(text, stored)) for gap in found.gaps]
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
    """Return the process with its full command line; the kernel keeps eighty bytes of it in a core."""
    exe = _named(process.exe, stored) if process.exe is not None else stored.exe
    return replace(process, argv=stored.argv or process.argv, exe=exe)


def _cut_short(gap: Gap) -> bool:
    return gap.code in ("core-cut-short", "core-cut-by-systemd")


def _named(text: str, stored: Stored) -> str:
    """Replace paths of descriptors by the name that the user knows, and remove the container's root."""
    text = _replaced(text, stored.path, stored.named)
    return text if stored.root is None else _replaced(text, stored.root, "")


def _replaced(text: str, path: Path, named: str) -> str:
    return re.sub(rf"{re.escape(str(path))}(?!\d)", lambda _found: named, text)
