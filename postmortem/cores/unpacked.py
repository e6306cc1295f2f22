"""Compressed cores, unpacked into sparse temporary files that disappear with this process.

The file has no name from the start: it is read, by gdb too, as ``/proc/PID/fd/N``, and the kernel frees it when its
last descriptor is closed, however its process ends. It needs a /proc, and has mode 0600. Runs of zeros, most of what
systemd keeps, become holes.

A child unpacks: a codec that crashes, loops or fills the memory on hostile data ends only the child, and its output up
to then is kept. The parent asks it to continue, step by step; each step has a deadline, the whole has none.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict, Iterable, Iterator, NamedTuple, Optional, Tuple, Type, cast

from ..errors import NotACore, PostmortemError, ToolMissing
from ..foreign.children import Child, Lost
from ..foreign.files import open_regular
from ..foreign.unnamed import temporary_folder, unnamed
from ..sizes import configured
from .codecs import Codec, Damaged, pieces, recognise
from .sparse import Sparse

#: Environment variable with the size limit of an unpacked core: bytes, or with a suffix K, M, G, T. Holes count.
VARIABLE = "POSTMORTEM_MAX_UNPACKED"
#: The default limit in bytes: a constant plus a multiple of the compressed size, up to a maximum. Cores with many zeros
#: shrink to a fiftieth or a hundredth; a bomb of zeros to a thirty-thousandth.
_ALWAYS, _TIMES, _NEVER_MORE = 2 << 30, 1000, 1 << 40

#: Seconds that the child unpacks before it reports progress, and within which it must have reported.
_STEP_S, DEADLINE_S = 0.2, 60.0

Progress = Callable[[str], None]


class Unpacked(NamedTuple):
    """An unpacked core."""

    path: Path  # valid for the duration of the block
    codec: str
    size: int  # bytes, holes included
    short: Optional[str]  # why the end is missing; None when complete
    owner: int = 0  # owner of the compressed file


def compressed(path: Path) -> Optional[Codec]:
    """Return a file's codec by its first bytes; None if it is uncompressed, missing, or no regular file."""
    try:
        with open(open_regular(str(path)), "rb", buffering=0) as stream:
            return recognise(cast(BinaryIO, stream))
    except OSError:
        return None


@contextlib.contextmanager
def unpacked(path: Path, progress: Progress) -> Iterator[Unpacked]:
    """Open the core in a compressed file; if its end is damaged, up to there, with the reason in ``short``.

    Raises:
    - OSError, ToolMissing
    - NotACore: also for a core beyond the limit or the temporary folder's free space
    - UsageError: the configured limit is no size
    """
    with contextlib.ExitStack() as files:
        source = files.enter_context(open(open_regular(str(path)), "rb", buffering=0))
        codec = recognise(cast(BinaryIO, source))
        if codec is None:
            raise NotACore(f"{path} is not in a known compression format", "unpack it first")
        packed = os.fstat(source.fileno()).st_size
        folder, plain = _unnamed(files)
        work = _Work(codec, cast(BinaryIO, source), Sparse(plain, str(path), folder, most(packed), VARIABLE))
        size, short = _followed(work, (source.fileno(), plain), _Teller(source.fileno(), packed, progress))
        os.ftruncate(plain, size)
        if not size:
            raise NotACore(f"{path}: nothing can be unpacked: {short or 'it is empty'}", "copy the file again")
        yield Unpacked(in_this_process(plain), codec.name, size, short, os.fstat(source.fileno()).st_uid)


def _followed(work: _Work, keep: Tuple[int, int], told: _Teller) -> Tuple[int, Optional[str]]:
    """Return (bytes unpacked, why the end is missing or None)."""
    size = 0
    try:
        child = Child(work.go_on, keep=keep)
    except OSError as exc:
        raise PostmortemError(
            f"no process can be started to unpack it: {exc.strerror}", "end other processes"
        ) from None
    with child:
        while True:
            try:
                answer = child.ask({}, time.monotonic() + DEADLINE_S).value
            except Lost as exc:
                return size, f"while unpacking it, {exc.strerror}"
            if "refused" in answer:
                raise _ERRORS.get(answer["refused"], NotACore)(answer["sentence"], answer["next"])
            size = answer["size"]
            told(answer["read"], size)
            if answer["done"]:
                return size, answer["short"]


class _Work:
    """The work of the child."""

    def __init__(self, codec: Codec, source: BinaryIO, sink: Sparse) -> None:
        self._pieces, self._source, self._sink = pieces(codec, source), source, sink

    def go_on(self, _request: Any) -> Tuple[Dict[str, Any], Iterable[bytes], Optional[int]]:
        """Unpack for a while; return the progress, or the reason for stopping."""
        until = time.monotonic() + _STEP_S
        short = None
        try:
            for piece in self._pieces:
                self._sink.write(piece)
                if time.monotonic() >= until:
                    return self._told(self._sink.whole), (), None
        except Damaged as exc:
            short = str(exc)
        except PostmortemError as exc:
            return {"refused": type(exc).__name__, "sentence": str(exc), "next": exc.next}, (), None
        try:
            self._sink.finish()
        except PostmortemError as exc:
            return {"refused": type(exc).__name__, "sentence": str(exc), "next": exc.next}, (), None
        return self._told(self._sink.size, done=True, short=short), (), None

    def _told(self, size: int, done: bool = False, short: Optional[str] = None) -> Dict[str, Any]:
        return {"size": size, "read": self._source.tell(), "done": done, "short": short}


_ERRORS: Dict[str, Type[PostmortemError]] = {each.__name__: each for each in (NotACore, ToolMissing)}


@contextlib.contextmanager
def spooled(pieces: Iterable[bytes], named: str, *, core: bool = True) -> Iterator[Path]:
    """Yield the path of an unnamed file with the content of a stream, valid for the duration of the block.

    ``core``: whether it must be an ELF file. Raises NotACore as ``unpacked`` does, also for an empty stream, and
    UsageError.
    """
    with contextlib.ExitStack() as files:
        folder, plain = _unnamed(files)
        sink = Sparse(plain, named, folder, most(), VARIABLE, core)
        for piece in pieces:
            sink.write(piece)
        sink.finish()
        if not sink.size:
            raise NotACore(f"{named} is empty", "copy it again from where it came from")
        yield in_this_process(plain)


def in_this_process(descriptor: int) -> Path:
    """Return a path to an open file, for this process and those that it starts, independent of the file's name."""
    return Path(f"/proc/{os.getpid()}/fd/{descriptor}")


def _unnamed(files: contextlib.ExitStack) -> Tuple[str, int]:
    """Return (the temporary folder, a descriptor of a new unnamed file in it)."""
    folder = temporary_folder()
    try:
        descriptor = unnamed(folder)
    except OSError as exc:
        raise PostmortemError(
            f"no temporary file can be created in {folder}: {exc.strerror}", "set TMPDIR to a writable folder"
        ) from None
    files.callback(os.close, descriptor)
    return folder, descriptor


def most(packed: Optional[int] = None) -> int:
    """Return the limit in bytes: the configured one, else by the compressed size if there is one. Raises UsageError."""
    wanted = configured(VARIABLE)
    if wanted is not None:
        return wanted
    return _NEVER_MORE if packed is None else min(_NEVER_MORE, _ALWAYS + _TIMES * packed)


class _Teller:
    """Progress messages, one for each percent of the input."""

    def __init__(self, descriptor: int, size: int, progress: Progress) -> None:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        self._name = "the core" if name.endswith(" (deleted)") else name.rpartition("/")[2]
        self._all, self._progress = max(1, size), progress
        self._last = -1

    def __call__(self, read: int, size: int) -> None:
        percent = min(100, read * 100 // self._all)
        if percent != self._last:
            self._last = percent
            self._progress(f"unpacking {self._name}: {percent} % read, {size / (1 << 30):.2f} GB written")
