"""Parts shared by the stores of cores: a core with the facts recorded beside it."""

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
    """A core in a store.

    - ``path``: of an open file, perhaps unnamed and perhaps compressed
    - ``named``: its name for the user
    """

    path: Path
    named: str
    origin: Origin
    argv: Tuple[str, ...] = ()
    exe: Optional[str] = None
    root: Optional[Path] = None  # root directory of its container, held open, where it can still be read
    gaps: Tuple[Gap, ...] = ()
    owner: Optional[int] = (
        None  # the user of the process, or the one who may have made it up; None: the owner of ``path``
    )


@contextlib.contextmanager
def refusals(named: str, whose: str, keeps: str) -> Iterator[None]:
    """Raise CoreGone, PermissionRefused or NotACore where a file named by a store cannot be opened.

    - ``whose``: such as ``the core of PID 7``
    - ``keeps``: the rules by which the store removes cores
    """
    try:
        yield
    except FileNotFoundError:
        raise CoreGone(f"{whose} is gone: {named} was removed", keeps) from None
    except PermissionError:
        raise PermissionRefused(
            f"{whose}, {named}, may not be read by this user", "run as root, or as its user"
        ) from None
    except (Unfit, IsADirectoryError):
        raise NotACore(f"{whose} is recorded in {named}, which is not a regular file", "name a core file") from None
    except (OSError, ValueError) as exc:  # ValueError: a NUL in its name
        reason = exc.strerror if isinstance(exc, OSError) else "no file can have this name"
        raise NotACore(f"{whose}, {named}, cannot be read: {reason}", "name a core file") from None


def lies_in(folder: str, name: str) -> bool:
    """Return whether a directory has an entry of that name that this user can see; the name may hold anything."""
    try:
        with Folder.at(folder) as held:
            return held.has(name)
    except (OSError, ValueError):
        return False


class Nothing(Exception):
    """A core that is stored without a single byte."""


def something(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the same pieces; raise Nothing when there is none."""
    first = next(pieces, None)
    if first is None:
        raise Nothing
    yield first
    yield from pieces


def exists(path: Path) -> bool:
    """Return whether a path exists for this user; the name may hold anything."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def words(command: Optional[str]) -> Tuple[str, ...]:
    """Split a command line stored as one text: quoted by systemd from 251 on, else joined by spaces."""
    if command is None:
        return ()
    try:
        return tuple(shlex.split(command.replace("$'", "'")))
    except ValueError:
        return tuple(command.split())


def signal_name(number: Optional[int]) -> Optional[str]:
    """Return ``SIGSEGV`` for 11; None if there is no such signal."""
    try:
        return signal.Signals(number).name if number is not None else None
    except ValueError:
        return None


def whose(origin: Origin) -> str:
    """Return ``the core of PID 4711 (python3, SIGSEGV, 2026-01-31 12:00:00 UTC)``, as far as known."""
    known = (origin.command, origin.signal, origin.when)
    told = ", ".join(text for text in known if text)
    pid = f" of PID {origin.pid}" if origin.pid is not None else ""
    return f"the core{pid}{f' ({told})' if told else ''}"


def shortened(texts: Sequence[str], most: int) -> str:
    """Return the first few texts, and how many more there are."""
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")
