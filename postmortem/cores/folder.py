"""A directory that cores lie in, as ``core_pattern`` fills it → the newest."""

from __future__ import annotations

import contextlib
import stat
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Iterator, List, Optional, Tuple, cast

from ..errors import NotACore, PermissionRefused
from ..evidence import Gap, Origin
from .codecs import recognise
from .store import Stored

_ET_CORE = b"\x04\x00"
_MOST = 100_000  # names that are looked at


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Stored]:
    """The newest core in a directory. Raises NotACore when it has none, PermissionRefused."""
    found, refused = _cores(folder)
    if not found and refused:
        raise PermissionRefused(f"none of the {refused} files in {folder} may be read by this user", "run as root")
    if not found:
        raise NotACore(f"{folder} is neither a bundle nor a directory with cores", "name a core file or a bundle")
    moment, path = max(found)
    reason = f"{refused} files there may not be read by this user: one may be a newer core"
    gaps = (Gap("core", str(folder), reason, "run as root"),) if refused else ()
    yield Stored(path, str(path), Origin("directory", str(path), time=moment, others=len(found) - 1), gaps=gaps)


def _cores(folder: Path) -> Tuple[List[Tuple[float, Path]], int]:
    """(time of change and path of each core, how many files may not be read)."""
    found, refused = [], 0
    try:
        paths = list(islice(folder.iterdir(), _MOST))
    except PermissionError:
        raise PermissionRefused(f"{folder} may not be read by this user", "run as root, or as its user") from None
    for path in paths:
        try:
            info = path.stat()
            if stat.S_ISREG(info.st_mode) and _is_core(path):
                found.append((info.st_mtime, path))
        except PermissionError:
            refused += 1
        except OSError:
            continue
    return found, refused


def _is_core(path: Path) -> bool:
    """By its first bytes: an ELF core, or compressed under a name that says core."""
    with path.open("rb", buffering=0) as stream:
        head: Optional[bytes] = stream.read(18)
        if head is not None and head[:4] == b"\x7fELF":
            return head[16:18] == _ET_CORE
        stream.seek(0)
        return "core" in path.name and recognise(cast(BinaryIO, stream)) is not None
