"""A compressed core, unpacked into a sparse temporary file that no end of this process leaves behind.

The file has no name from the start: it is read, by gdb too, as ``/proc/PID/fd/N``, and the kernel frees it when the
last that has it open is gone, whatever ended it. It needs a /proc, mode 0600 does the rest. Runs of zeros, most of
what systemd keeps, become holes.

A child unpacks: what the codec does with hostile data (crash, loop, fill the memory) ends the child and no more, and what
had come out by then is kept. The parent asks it to go on, again and again; each step has a deadline, the whole has none.
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

#: Names the most that a core may become: bytes, or with a suffix K, M, G, T. Holes count.
VARIABLE = "POSTMORTEM_MAX_UNPACKED"
#: Without it: so much, and what is so many times the compressed size. Cores shrink to a fiftieth or a hundredth where much
#: of them is zero; a bomb of zeros to a thirty-thousandth.
_ALWAYS, _TIMES, _NEVER_MORE = 2 << 30, 1000, 1 << 40

#: Seconds that the child unpacks before it tells how far it has come, and within which it must have told.
_STEP_S, DEADLINE_S = 0.2, 60.0

Progress = Callable[[str], None]


class Unpacked(NamedTuple):
    path: Path  # good as long as the block runs
    codec: str
    size: int  # bytes, holes included
    short: Optional[str]  # why the end is missing, None when all came out
    owner: int = 0  # the user whom the compressed file belongs to


def compressed(path: Path) -> Optional[Codec]:
    """How a file is compressed, by its first bytes; None when it is not, is no regular file, or is not there."""
    try:
        with open(open_regular(str(path)), "rb", buffering=0) as stream:
            return recognise(cast(BinaryIO, stream))
    except OSError:
        return None


@contextlib.contextmanager
def unpacked(path: Path, progress: Progress) -> Iterator[Unpacked]:
    """The core inside a compressed file. Damaged ends are kept up to there and told in ``short``.

    Raises OSError, NotACore (also for what outgrows the limit or the temporary folder), UsageError for a limit that is
    no size, ToolMissing.
    """
    with contextlib.ExitStack() as files:
        source = files.enter_context(open(open_regular(str(path)), "rb", buffering=0))
        codec = recognise(cast(BinaryIO, source))
        if codec is None:
            raise NotACore(f"{path} is not compressed in a way that is known here", "unpack it first")
        packed = os.fstat(source.fileno()).st_size
        folder, plain = _unnamed(files)
        work = _Work(codec, cast(BinaryIO, source), Sparse(plain, str(path), folder, most(packed), VARIABLE))
        size, short = _followed(work, (source.fileno(), plain), _Teller(source.fileno(), packed, progress))
        os.ftruncate(plain, size)
        if not size:
            raise NotACore(f"{path}: nothing can be unpacked: {short or 'it is empty'}", "copy the file again")
        yield Unpacked(in_this_process(plain), codec.name, size, short, os.fstat(source.fileno()).st_uid)


def _followed(work: _Work, keep: Tuple[int, int], told: _Teller) -> Tuple[int, Optional[str]]:
    """(bytes that came out, why the end is missing)."""
    size = 0
    try:
        child = Child(work.go_on, keep=keep)
    except OSError as exc:
        raise PostmortemError(f"no child can be started to unpack it: {exc.strerror}", "end other processes") from None
    with child:
        while True:
            try:
                answer = child.ask({}, time.monotonic() + DEADLINE_S).value
            except Lost as exc:
                return size, f"while it was unpacked, {exc.strerror}"
            if "refused" in answer:
                raise _ERRORS.get(answer["refused"], NotACore)(answer["sentence"], answer["next"])
            size = answer["size"]
            told(answer["read"], size)
            if answer["done"]:
                return size, answer["short"]


class _Work:
    """What the child does."""

    def __init__(self, codec: Codec, source: BinaryIO, sink: Sparse) -> None:
        self._pieces, self._source, self._sink = pieces(codec, source), source, sink

    def go_on(self, _request: Any) -> Tuple[Dict[str, Any], Iterable[bytes], Optional[int]]:
        """Unpack for a while; tell how far it has come, or why it goes no further."""
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
    """What a stream holds, in such a file of no name, which is good as long as the block runs.

    core: it has to be an ELF file. Raises NotACore as ``unpacked`` does, also for an empty stream, and UsageError.
    """
    with contextlib.ExitStack() as files:
        folder, plain = _unnamed(files)
        sink = Sparse(plain, named, folder, most(), VARIABLE, core)
        for piece in pieces:
            sink.write(piece)
        sink.finish()
        if not sink.size:
            raise NotACore(f"{named} is empty", "take it again from where it came")
        yield in_this_process(plain)


def in_this_process(descriptor: int) -> Path:
    """A path to an open file, for this process and those that it starts, whatever becomes of the file's name."""
    return Path(f"/proc/{os.getpid()}/fd/{descriptor}")


def _unnamed(files: contextlib.ExitStack) -> Tuple[str, int]:
    """(the temporary folder, a descriptor of a new file in it that has no name)."""
    folder = temporary_folder()
    try:
        descriptor = unnamed(folder)
    except OSError as exc:
        raise PostmortemError(
            f"no temporary file can be made in {folder}: {exc.strerror}", "name a writable folder in TMPDIR"
        ) from None
    files.callback(os.close, descriptor)
    return folder, descriptor


def most(packed: Optional[int] = None) -> int:
    """The limit in bytes: the configured one, else by the compressed size where there is one. Raises UsageError."""
    wanted = configured(VARIABLE)
    if wanted is not None:
        return wanted
    return _NEVER_MORE if packed is None else min(_NEVER_MORE, _ALWAYS + _TIMES * packed)


class _Teller:
    """Progress, once a percent of the input."""

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
