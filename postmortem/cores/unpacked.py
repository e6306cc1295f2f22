"""A compressed core, unpacked into a sparse temporary file that no end of this process leaves behind.

The file has no name from the start: it is read, by gdb too, as ``/proc/PID/fd/N``, and the kernel frees it when the
last that has it open is gone, whatever ended it. It needs a /proc, mode 0600 does the rest. Runs of zeros, most of
what systemd keeps, become holes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO, Callable, Iterable, Iterator, NamedTuple, Optional, Tuple, cast

from ..errors import NotACore, PostmortemError, UsageError
from .codecs import Codec, Damaged, pieces, recognise

#: Names the most that a core may become: bytes, or with a suffix K, M, G, T. Holes count.
VARIABLE = "POSTMORTEM_MAX_UNPACKED"
DEFAULT_MAX = 1 << 40
#: Of the temporary folder's room, left to others.
SPARE = 64 << 20

_PAGE = 4096
_ZEROS = bytes(1 << 20)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

Progress = Callable[[str], None]


class Unpacked(NamedTuple):
    path: Path  # good as long as the block runs
    codec: str
    size: int  # bytes, holes included
    short: Optional[str]  # why the end is missing, None when all came out
    owner: int = 0  # the user whom the compressed file belongs to


def compressed(path: Path) -> Optional[Codec]:
    """How a file is compressed, by its first bytes; None when it is not, or is not there."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        with path.open("rb", buffering=0) as stream:
            return recognise(cast(BinaryIO, stream))
    except OSError:
        return None


@contextlib.contextmanager
def unpacked(path: Path, progress: Progress) -> Iterator[Unpacked]:
    """The core inside a compressed file. Damaged ends are kept up to there and told in ``short``.

    Raises OSError, NotACore (also for what outgrows the limit or the temporary folder), UsageError for a limit that is
    no size, ToolMissing.
    """
    limit = most()
    with contextlib.ExitStack() as files:
        source = cast(BinaryIO, files.enter_context(path.open("rb", buffering=0)))
        codec = recognise(source)
        if codec is None:
            raise NotACore(f"{path} is not compressed in a way that is known here", "unpack it first")
        folder, plain = _unnamed(files)
        sink, told, short = _Sparse(plain, path, folder, limit), _Teller(path, source, progress), None
        try:
            for piece in pieces(codec, source):
                sink.write(piece)
                told(sink.size)
        except Damaged as exc:
            short = str(exc)
        sink.finish()
        if not sink.size:
            raise NotACore(f"{path}: nothing can be unpacked: {short or 'it is empty'}", "copy the file again")
        yield Unpacked(
            Path(f"/proc/{os.getpid()}/fd/{plain}"), codec.name, sink.size, short, os.fstat(source.fileno()).st_uid
        )


@contextlib.contextmanager
def spooled(pieces: Iterable[bytes], named: str, *, core: bool = True) -> Iterator[Path]:
    """What a stream holds, in such a file of no name, which is good as long as the block runs.

    core: it has to be an ELF file. Raises NotACore as ``unpacked`` does, also for an empty stream, and UsageError.
    """
    limit = most()
    with contextlib.ExitStack() as files:
        folder, plain = _unnamed(files)
        sink = _Sparse(plain, Path(named), folder, limit, core)
        for piece in pieces:
            sink.write(piece)
        sink.finish()
        if not sink.size:
            raise NotACore(f"{named} is empty", "take it again from where it came")
        yield Path(f"/proc/{os.getpid()}/fd/{plain}")


def _unnamed(files: contextlib.ExitStack) -> Tuple[str, int]:
    """(the temporary folder, a descriptor of a new file in it that has no name)."""
    try:
        folder = tempfile.gettempdir()
        unnamed = tempfile.TemporaryFile(prefix="postmortem-core-", dir=folder, buffering=0)  # noqa: SIM115 - files closes it
    except OSError as exc:
        raise PostmortemError(
            f"no temporary file can be made: {exc.strerror}", "name a writable folder in TMPDIR"
        ) from None
    return folder, cast(BinaryIO, files.enter_context(unnamed)).fileno()


def most() -> int:
    """The configured limit in bytes. Raises UsageError."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return DEFAULT_MAX
    match = re.fullmatch(r"(\d{1,18})\s*([KMGT]?)(?:I?B)?", text.upper())
    if match is None:
        raise UsageError(f"{VARIABLE} is {text!r}, which is no size", "say bytes, or a number with K, M, G or T")
    return int(match[1]) * _UNITS[match[2]]


class _Sparse:
    """Writes pages that hold something, skips the others."""

    def __init__(self, fd: int, path: Path, folder: str, limit: int, elf: bool = True) -> None:
        self._fd, self._path, self._folder, self._limit, self._elf = fd, path, folder, limit, elf
        place = os.statvfs(folder)
        self._room = place.f_bavail * place.f_frsize - SPARE
        self.size = 0
        self._stored = 0
        self._rest = b""  # less than a page, so that pages stay aligned

    def write(self, data: bytes) -> None:
        if self._elf and not self.size and not self._rest and data[:4] != b"\x7fELF"[: len(data)]:
            raise NotACore(f"{self._path} holds no ELF file, so no core", "name a core file or a bundle")
        if self.size + len(data) > self._limit:
            raise NotACore(
                f"{self._path} unpacks to more than {self._limit} bytes",
                f"set {VARIABLE} higher if it is to be trusted",
            )
        self.size += len(data)
        data = self._rest + data if self._rest else data
        at = self.size - len(data)
        whole = len(data) // _PAGE * _PAGE
        for start in range(0, whole, len(_ZEROS)):
            self._block(data[start : min(start + len(_ZEROS), whole)], at + start)
        self._rest = data[whole:]

    def finish(self) -> None:
        if self._rest.strip(b"\0"):
            self._store(self._rest, self.size - len(self._rest))
        os.ftruncate(self._fd, self.size)

    def _block(self, block: bytes, at: int) -> None:
        """Whole pages, of which runs that are not zero are stored."""
        if block == _ZEROS[: len(block)]:
            return
        begin: Optional[int] = None
        for page in range(0, len(block), _PAGE):
            if block[page : page + _PAGE] == _ZEROS[:_PAGE]:
                if begin is not None:
                    self._store(block[begin:page], at + begin)
                begin = None
            elif begin is None:
                begin = page
        if begin is not None:
            self._store(block[begin:], at + begin)

    def _store(self, data: bytes, at: int) -> None:
        self._stored += len(data)
        if self._stored > self._room:
            raise self._full()
        view = memoryview(data)
        try:
            while view:
                written = os.pwrite(self._fd, view, at)
                view, at = view[written:], at + written
        except OSError as exc:
            if exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise self._full() from None
            raise

    def _full(self) -> NotACore:
        return NotACore(
            f"{self._path} does not fit into {self._folder}: {self.size >> 20} MB are unpacked and the room is used up",
            "name a larger folder in TMPDIR",
        )


class _Teller:
    """Progress, once a percent of the input."""

    def __init__(self, path: Path, source: BinaryIO, progress: Progress) -> None:
        self._name, self._source, self._progress = path.name, source, progress
        self._all = max(1, os.fstat(source.fileno()).st_size)
        self._last = -1

    def __call__(self, size: int) -> None:
        percent = min(100, self._source.tell() * 100 // self._all)
        if percent != self._last:
            self._last = percent
            self._progress(f"unpacking {self._name}: {percent} % read, {size / (1 << 30):.2f} GB written")
