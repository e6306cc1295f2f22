"""Reads a process as the extraction will, to learn which pages that takes: once while it runs, before anything stops, and
again out of the core that was copied, to learn which are missing there. Both in a child (``isolation``).

The same code reads both times and later on (``readers``), so what it needs is not guessed. It runs on memory that moves:
that it fails is no error, only a poorer selection.
"""

from __future__ import annotations

import array
import contextlib
import os
import platform
from typing import TYPE_CHECKING, Callable, Iterable, Iterator, List, NamedTuple, Optional, Set, Type

from ...arch import registers
from ...bundle import Bundle, core_name
from ...memory import ElfCore, Fault, NotElf
from ...memory.linkmap import linked_files
from ...memory.live import LiveCore, WatchedCore
from ..isolation import Found, Helpers, read_apart
from ..procfs import parsers
from . import elfcore
from .image import Look, Source
from .pages import PAGE
from .segments import Segment, flags_of, is_skipped
from .stop import Registers

if TYPE_CHECKING:
    from ...cpython.state.volatile import Moving
    from ...foreign.processfiles import Files
    from ..readers import Reader


#: py-spy reads a whole PyInterpreterState at once, of which little is asked for here: up to so many bytes of the first few.
_INTERPRETER, _MOST_INTERPRETERS = 160 << 10, 4


class Rehearsed(NamedTuple):
    """``pages``: numbers of those that were read; ``moving``: what the interpreter makes anew all the time, None
    when there is none, or it was not found."""

    pages: Set[int]
    moving: Optional[Moving]


class Reading(NamedTuple):
    """How a process is read. ``files``: where its sources and libraries are, called in the child; ``until``: in
    time.monotonic() seconds, when the reading ends at the latest; ``helpers``: see foreign.children.Child."""

    bundle: Bundle
    files: Callable[[int], Files]
    reader: Reader
    until: float
    helpers: Optional[Helpers] = None


def rehearse(source: Source, look: Look, how: Reading) -> Rehearsed:
    """Read a running process. Raises foreign.children.Lost, OSError."""
    import_readers(how.reader)
    found = read_apart(lambda: _rehearsed(source, look, how), how.until, how.helpers)
    try:
        moving = _moving().of_json(found.value) if found.value is not None else None
    except (ValueError, TypeError, KeyError, AttributeError):
        moving = None
    return Rehearsed(_numbers(found.data), moving)


def missed(source: Source, look: Look, how: Reading) -> Set[int]:
    """Numbers of the pages that the extraction asks for, that the process has, and its core does not. Raises
    foreign.children.Lost, OSError."""
    import_readers(how.reader)
    return _numbers(read_apart(lambda: (None, _packed(_missed(source, look, how))), how.until, how.helpers).data)


def import_readers(reader: Reader) -> None:
    """Import in the parent what its children need: each would take as long again."""
    from ...cores import executable, located  # noqa: PLC0415, F401 - a capture that keeps every page needs none

    reader()
    _moving()


def _moving() -> Type[Moving]:
    from ...cpython.state.volatile import Moving  # noqa: PLC0415 - as in import_readers

    return Moving


def _packed(pages: Iterable[int]) -> bytes:
    return array.array("Q", sorted(pages)).tobytes()


def _numbers(data: bytes) -> Set[int]:
    found = array.array("Q")
    found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return set(found)


# ---------------------------------------------------------------------- in the child


def _rehearsed(source: Source, look: Look, how: Reading) -> Found:
    from ...cores.located import Located  # noqa: PLC0415 - as in import_readers

    files = how.files(source.pid)
    located = Located(files)
    try:
        with _head(source, look) as path:
            core = LiveCore(path, source.living(look.mappings), located, how.until)
    except (OSError, NotElf, ValueError):
        return None, b""
    try:
        located.core = core
        moving = _read(core, source.pid, how, files)
        return moving.as_json() if moving is not None else None, _packed(core.pages)
    finally:
        core.close()


def _missed(source: Source, look: Look, how: Reading) -> Set[int]:
    from ...cores.located import Located  # noqa: PLC0415 - as in import_readers

    files = how.files(source.pid)
    located, name = Located(files), core_name(source.pid)
    try:
        living, descriptor = source.living(look.mappings), how.bundle.folder.open(name)
        core = WatchedCore(name, living, how.until, locate=located, descriptor=descriptor)
    except (OSError, NotElf, ValueError):
        return set()
    try:
        located.core = core
        _read(core, source.pid, how, files)
        return core.missed
    finally:
        core.close()


def _read(core: ElfCore, pid: int, how: Reading, files: Files) -> Optional[Moving]:
    """Everything that an extraction reads, local variables too."""
    from ...cores.executable import main_program_of  # noqa: PLC0415 - as in import_readers

    moving = None
    with contextlib.suppress(Exception):  # moving memory may show any defect of the reader; the capture goes on
        process = how.reader()(core, pid, how.bundle.folder, files, True)
        if process.python:
            moving = _moving().of(process.python)
            for interpreter in process.python.interpreters[:_MOST_INTERPRETERS]:
                _touch(core, interpreter.address, _INTERPRETER)
        process.finish()
    with contextlib.suppress(Fault, NotElf):
        program = main_program_of(core)
        base = core.base(program.path) if program is not None else None
        if base is not None:  # what gdb needs to know the libraries
            linked_files(core, [base], lambda name: None)
    return moving


def _touch(core: ElfCore, address: int, size: int) -> None:
    for start in range(address, address + size, PAGE):
        with contextlib.suppress(Fault):
            core.read(start, 8)


@contextlib.contextmanager
def _head(source: Source, look: Look) -> Iterator[str]:
    """The path of a file in memory with what a core would say of the process now, its content left out."""
    machine = platform.machine()
    segments = [Segment(m.start, m.end, 0, flags_of(m.perms)) for m in look.mappings if not is_skipped(m)]
    notes = elfcore.notes(source.identity, _threads(source.pid, machine), source.auxv, look.mappings)
    offsets, size = elfcore.layout(segments, len(notes))
    descriptor = os.memfd_create("postmortem-rehearsal", os.MFD_CLOEXEC)
    try:
        os.ftruncate(descriptor, size)
        os.pwrite(descriptor, elfcore.head(machine, segments, notes, offsets), 0)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _threads(pid: int, machine: str) -> List[Registers]:
    """As /proc shows them: of those that run at the moment it knows no registers."""
    found = []
    for tid in parsers.threads(pid):
        call = None
        with contextlib.suppress(OSError, ValueError, IndexError):
            call = parsers.parse_syscall(parsers.read(f"/proc/{pid}/task/{tid}/syscall"))
        where = (call.number, call.args, call.sp, call.pc) if call is not None else (-1, (), 0, 0)
        found.append(Registers(tid, registers.from_syscall(machine, *where), {}))
    return found
