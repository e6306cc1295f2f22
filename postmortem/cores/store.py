"""What the stores of cores have in common: a core with what was noted beside it."""

from __future__ import annotations

import contextlib
import shlex
import signal
from pathlib import Path
from typing import Iterator, NamedTuple, Optional, Sequence, Tuple

from ..errors import CoreGone, NotACore, PermissionRefused
from ..evidence import Gap, Origin
from ..foreign.files import Unfit
from ..foreign.held import Folder


class Stored(NamedTuple):
    """``path`` may be compressed, and is that of an open file, which may have no name: ``named`` is what a user knows it
    by."""

    path: Path
    named: str
    origin: Origin
    argv: Tuple[str, ...] = ()
    exe: Optional[str] = None
    root: Optional[Path] = None  # of the container that it ran in, where that can still be looked into: held open
    gaps: Tuple[Gap, ...] = ()
    owner: Optional[int] = (
        None  # the user whose process it was, or who may have made it up; None: whom ``path`` belongs to
    )


@contextlib.contextmanager
def refusals(named: str, whose: str, keeps: str) -> Iterator[None]:
    """Raises CoreGone, PermissionRefused or NotACore where a file that a store names cannot be opened as one. whose:
    ``the core of PID 7``. keeps: what the store removes by."""
    try:
        yield
    except FileNotFoundError:
        raise CoreGone(f"{whose} is gone: {named} was removed", keeps) from None
    except PermissionError:
        raise PermissionRefused(
            f"{whose}, {named}, may not be read by this user", "run as root, or as its user"
        ) from None
    except (Unfit, IsADirectoryError):
        raise NotACore(f"{whose} is said to be {named}, which is no regular file", "name a core file") from None
    except (OSError, ValueError) as exc:  # ValueError: a NUL in its name
        reason = exc.strerror if isinstance(exc, OSError) else "no file can have such a name"
        raise NotACore(f"{whose}, {named}, cannot be read: {reason}", "name a core file") from None


def lies_in(folder: str, name: str) -> bool:
    """Whether a directory has an entry of that name, for this user; whatever the name holds."""
    try:
        with Folder.at(folder) as held:
            return held.has(name)
    except (OSError, ValueError):
        return False


class Nothing(Exception):
    """There is a place for the core, and no byte in it."""


def something(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces; raises Nothing when there is none."""
    first = next(pieces, None)
    if first is None:
        raise Nothing
    yield first
    yield from pieces


def exists(path: Path) -> bool:
    """Is it there for this user? Whatever its name holds."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def words(command: Optional[str]) -> Tuple[str, ...]:
    """A command line that a store keeps as one text: quoted by systemd from 251 on, else joined by spaces."""
    if command is None:
        return ()
    try:
        return tuple(shlex.split(command.replace("$'", "'")))
    except ValueError:
        return tuple(command.split())


def signal_name(number: Optional[int]) -> Optional[str]:
    """``SIGSEGV`` for 11; None where there is no such signal."""
    try:
        return signal.Signals(number).name if number is not None else None
    except ValueError:
        return None


def whose(origin: Origin) -> str:
    """``the core of PID 4711 (python3, SIGSEGV, 2026-01-31 12:00:00 UTC)``, of what is known."""
    known = (origin.command, origin.signal, origin.when)
    told = ", ".join(text for text in known if text)
    pid = f" of PID {origin.pid}" if origin.pid is not None else ""
    return f"the core{pid}{f' ({told})' if told else ''}"


def shortened(texts: Sequence[str], most: int) -> str:
    """The first of several, and how many more there are."""
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")
