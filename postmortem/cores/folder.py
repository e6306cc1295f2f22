"""The newest core of a directory, such as the one that ``core_pattern`` names (core(5))."""

from __future__ import annotations

import contextlib
import os
from io import RawIOBase
from pathlib import Path
from typing import BinaryIO, Iterator, List, Sequence, Tuple, cast

from ..errors import NotACore, PermissionRefused
from ..evidence import Gap, Origin
from ..foreign.held import Folder
from .codecs import recognise
from .store import Stored, refusals
from .unpacked import in_this_process

_ET_CORE = b"\x04\x00"
_MOST = 100_000  # names examined


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Stored]:
    """Open the newest core in a directory. Raises NotACore when it has none, PermissionRefused."""
    with contextlib.ExitStack() as files:
        try:
            folder = files.enter_context(Folder.at(str(path)))
            names = folder.names(most=_MOST)
            found, refused = _cores(folder, names)
        except PermissionError:
            raise PermissionRefused(f"{path} may not be read by this user", "run as root, or as its user") from None
        except OSError as exc:
            raise NotACore(f"{path} cannot be read: {exc.strerror}", "check the path") from None
        if not found and refused:
            raise PermissionRefused(f"this user may not read any of the files in {path} ({refused})", "run as root")
        if not found:
            raise NotACore(f"{path} is neither a bundle nor a directory with cores", "name a core file or a bundle")
        moment, name = max(found)
        named = f"{path / name}"
        with refusals(named, "the newest core there", "choose another one"):
            descriptor = folder.open(name)
        files.callback(os.close, descriptor)
        gaps = (Gap.of("core", str(path), "folder-refused", files=refused),) if refused else ()
        origin = Origin("directory", named, time=moment, others=len(found) - 1)
        yield Stored(in_this_process(descriptor), named, origin, gaps=gaps)


def _cores(folder: Folder, names: Sequence[str]) -> Tuple[List[Tuple[float, str]], int]:
    """Return ((modification time, name) of each core, number of unreadable files)."""
    found, refused = [], 0
    for name in names:
        try:
            with open(folder.open(name), "rb", buffering=0) as stream:
                if _is_core(name, stream):
                    found.append((os.fstat(stream.fileno()).st_mtime, name))
        except PermissionError:
            refused += 1
        except (OSError, ValueError):
            continue
    return found, refused


def _is_core(name: str, stream: RawIOBase) -> bool:
    """Return whether a file is an ELF core, or compressed and named like a core, judged by its first bytes."""
    head = stream.read(18) or b""
    if head[:4] == b"\x7fELF":
        return head[16:18] == _ET_CORE
    stream.seek(0)
    return "core" in name and recognise(cast(BinaryIO, stream)) is not None
