"""A bundle as one ``.zip``, unpacked into a private folder while it is read.

Names, types and sizes in an archive are untrusted: only plain files and directories below the folder are made, and no
more is unpacked than a bundle holds. The unpacked size must be in proportion to the archive: memory compresses to about
a tenth, an archive made to fill a disk to a thousandth. Zeros are left as holes: cores consist mostly of them.
"""

from __future__ import annotations

import contextlib
import os
import stat
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO, List, Optional, Set

from .errors import NotABundle
from .foreign.files import open_regular
from .foreign.held import Folder, parts_of
from .foreign.writing import write_all
from .supervision import private_folder

#: Entries of an archive: a tree of thousands of processes has some ten files each.
MAX_ENTRIES = 20_000
#: Directories above a file: those of a program in another root are three of the bundle's and the program's own path.
MAX_DEPTH = 64
#: Bytes stored on the disk: in all, up to which no proportion is required, and as a multiple of the archive's size.
MAX_STORED, FREELY_STORED, MAX_RATIO = 16 << 30, 256 << 20, 64
#: Bytes including the holes of sparse cores, and bytes to leave free on the disk.
MAX_APPARENT, _SPARE_DISK = 64 << 30, 64 << 20
_BLOCK, _HOLE = 1 << 20, 1 << 16
_ZEROS = bytes(_BLOCK)


class Unpacked:
    """A private folder with the content of an archive, whose owner is ``owner``; ``close`` removes it."""

    def __init__(self, path: Path) -> None:
        """Unpack an archive. Raises NotABundle."""
        try:
            self.place = private_folder()
            self.folder = Folder.take_over(str(self.place))
        except OSError as exc:
            raise NotABundle(
                f"{path} cannot be unpacked: the temporary folder: {exc.strerror}", "set TMPDIR to another folder"
            ) from None
        try:
            with open(open_regular(str(path)), "rb") as stream:
                self.owner = os.fstat(stream.fileno()).st_uid
                _extract(stream, self.folder)
        except NotABundle:
            self.close()
            raise
        except (
            OSError,
            zipfile.BadZipFile,
            NotImplementedError,
            RuntimeError,
            EOFError,
            ValueError,
            ArithmeticError,
            zlib.error,
        ) as exc:
            self.close()
            reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else exc
            raise NotABundle(f"{path} cannot be unpacked: {reason}", "name a bundle's directory or its .zip") from None
        except BaseException:
            self.close()
            raise

    def top(self) -> Optional[str]:
        """Return the only directory at the top, which contains the bundle; None when the bundle itself is at the top."""
        inside = self.folder.names()
        if len(inside) != 1 or inside[0] == "raw":
            return None
        try:
            self.folder.child(inside[0]).close()
        except OSError:  # a file
            return None
        return inside[0]

    def close(self) -> None:
        """Remove everything that was unpacked. Safe to call more than once."""
        if self.folder.descriptor >= 0:
            self.folder.empty()
            self.folder.close()
            with contextlib.suppress(OSError):
                self.place.rmdir()


def _extract(stream: BinaryIO, folder: Folder) -> None:
    size = os.fstat(stream.fileno()).st_size
    with zipfile.ZipFile(stream) as archive:
        entries = archive.infolist()
        if len(entries) > MAX_ENTRIES:
            raise NotABundle(f"the archive names {len(entries)} files, more than a bundle has")
        allowance = _Allowance(folder, max(FREELY_STORED, size * MAX_RATIO))
        seen: Set[str] = set()
        for entry in entries:
            name = "/".join(_safe_parts(entry))
            if entry.compress_type not in _METHODS:
                raise NotABundle(
                    f"the archive compresses {name!r} with an unsupported method", "compress it with deflate"
                )
            if entry.is_dir():
                folder.child(name, make=True).close()
                continue
            if name in seen:
                raise NotABundle(f"the archive names one file twice: {name!r}")
            seen.add(name)
            with archive.open(entry) as source, folder.writing(name) as sink:
                while True:
                    block = source.read(_BLOCK)
                    if not block:
                        break
                    _write(sink, block, allowance)
                sink.truncate()


class _Allowance:
    """The bytes that may still be unpacked."""

    def __init__(self, folder: Folder, most: int) -> None:
        self._stored_left = min(MAX_STORED, most, max(folder.free - _SPARE_DISK, 0))
        self._apparent_left = MAX_APPARENT

    def take(self, apparent: int, stored: int) -> None:
        """Count bytes; raise NotABundle beyond what a bundle may hold, or the disk has room for."""
        self._apparent_left -= apparent
        self._stored_left -= stored
        if self._apparent_left < 0 or self._stored_left < 0:
            raise NotABundle(
                "the archive unpacks to more than a bundle may hold, or than fits on the disk",
                "set TMPDIR to another folder",
            )


def _write(sink: BinaryIO, block: bytes, allowance: _Allowance) -> None:
    """Write a block; skip zeros, in pieces that file systems can leave out."""
    step = len(block) if block == _ZEROS[: len(block)] else _HOLE
    for at in range(0, len(block), step):
        piece = block[at : at + step]
        if piece == _ZEROS[: len(piece)]:
            allowance.take(len(piece), 0)
            sink.seek(len(piece), os.SEEK_CUR)
        else:
            allowance.take(len(piece), len(piece))
            write_all(sink, piece)


def _safe_parts(entry: zipfile.ZipInfo) -> List[str]:
    """Return the components of an entry's path. Raises NotABundle for one that leads out of the folder."""
    name = entry.filename
    kind = stat.S_IFMT(entry.external_attr >> 16)
    try:
        parts = parts_of(name.rstrip("/"))
    except ValueError:
        parts = []
    too_long = any(len(os.fsencode(part)) > 200 for part in parts)
    if not 0 < len(parts) <= MAX_DEPTH or too_long or "\\" in name or kind not in _KINDS:
        raise NotABundle(f"the archive has an entry that no bundle has: {name[:200]!r}")
    return parts


_KINDS = (0, stat.S_IFREG, stat.S_IFDIR)
#: The methods that zip programs use by default. For the others zipfile decompresses whole blocks at once, of any size
#: in memory.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
