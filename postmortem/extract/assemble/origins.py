"""Evidence of a stored core, completed with the store's notes."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Callable, Iterator

from ...cores.stores import Stored
from ...errors import PostmortemError
from ...evidence import Evidence, Gap, Process, replace

Renamed = Callable[[str], str]


@contextlib.contextmanager
def errors_named(renamed: Renamed) -> Iterator[None]:
    """Rename the files that errors are about."""
    try:
        yield
    except PostmortemError as exc:
        if exc.path is not None:
            exc.path = renamed(exc.path)
        raise


def gaps_named(found: Evidence, renamed: Renamed) -> Evidence:
    """Return the evidence with the files that its gaps are about renamed."""
    return replace(found, gaps=tuple(_named(gap, renamed) for gap in found.gaps))


def name_of(path: Path, name: str) -> Renamed:
    """Return a function that replaces the path of a temporary file or descriptor by the name that the user knows."""
    return lambda text: _replaced(text, str(path), name)


def name_in_store(stored: Stored) -> Renamed:
    """Return a function that replaces paths of descriptors by the names that the user knows."""
    held = str(stored.root) if stored.root is not None else None

    def renamed(text: str) -> str:
        text = _replaced(text, str(stored.path), stored.named)
        return text if held is None else _replaced(text, held, "")

    return renamed


def _named(gap: Gap, renamed: Renamed) -> Gap:
    slots = {name: renamed(value) if isinstance(value, str) else value for name, value in gap.slots.items()}
    return replace(gap, subject=renamed(gap.subject), slots=slots)


def _replaced(text: str, path: str, name: str) -> str:
    """Return a path with its beginning replaced; any other text as it is."""
    return name + text[len(path) :] if text == path or text.startswith(f"{path}/") else text


def with_origin(found: Evidence, stored: Stored) -> Evidence:
    """Return the evidence with the notes of the store and what the core alone lacks."""
    renamed = name_in_store(stored)
    gaps = [_named(gap, renamed) for gap in found.gaps]
    gaps = [gap for gap in gaps if not (_cut_short(gap) and any(map(_cut_short, stored.gaps)))]
    ended = found.trigger.signal or stored.origin.signal
    return replace(
        found,
        origin=stored.origin,
        trigger=replace(found.trigger, signal=ended),
        processes=tuple(_completed(process, stored, renamed) for process in found.processes),
        gaps=(*stored.gaps, *gaps),
    )


def _completed(process: Process, stored: Stored, renamed: Renamed) -> Process:
    """Return the process with its full command line; the kernel keeps eighty bytes of it in a core."""
    exe = renamed(process.exe) if process.exe is not None else stored.exe
    return replace(process, argv=stored.argv or process.argv, exe=exe)


def _cut_short(gap: Gap) -> bool:
    return gap.code in ("core-cut-short", "core-cut-by-systemd")
