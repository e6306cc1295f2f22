"""Reading a process as the extraction will, to learn which pages that takes.

Done once while the process runs, before the stop, and again on the copied core, to learn which pages are missing there;
both in a child (``isolation``). The same code reads during the extraction (``readers``), so its needs are not guessed.
The first reading runs on memory that changes: a failure is no error, only a poorer selection.
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


#: py-spy reads a whole PyInterpreterState at once: bytes taken of each, and number of interpreters for which that is
#: done.
_INTERPRETER, _MOST_INTERPRETERS = 160 << 10, 4


class Rehearsed(NamedTuple):
    """The result of a rehearsal.

    - ``pages``: numbers of the pages that were read
    - ``moving``: the structures that the interpreter replaces all the time; None when no interpreter was found
    """

    pages: Set[int]
    moving: Optional[Moving]


class Reading(NamedTuple):
    """The way to read a process.

    - ``files``: returns where its sources and libraries are; called in the child
    - ``reader``: imports and returns the reader
    - ``until``: time.monotonic() seconds at which reading ends
    - ``helpers``: see foreign.children.Child
    """

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
    """Return the numbers of pages that the extraction reads, and that the process has but its core lacks.

    Raises foreign.children.Lost, OSError.
    """
    import_readers(how.reader)
    return _numbers(read_apart(lambda: (None, _packed(_missed(source, look, how))), how.until, how.helpers).data)


def import_readers(reader: Reader) -> None:
    """Import in the parent what the children need: each would take as long again."""
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
    """Read everything that an extraction reads, local variables included."""
    from ...cores.executable import main_program_of  # noqa: PLC0415 - as in import_readers

    moving = None
    with contextlib.suppress(Exception):  # changing memory may reveal any defect of the reader
        process = how.reader()(core, pid, how.bundle.folder, files, True)
        if process.python:
            moving = _moving().of(process.python)
            for interpreter in process.python.interpreters[:_MOST_INTERPRETERS]:
                _touch(core, interpreter.address, _INTERPRETER)
        process.finish()
    with contextlib.suppress(Fault, NotElf):
        program = main_program_of(core)
        base = core.base(program.path) if program is not None else None
        if base is not None:  # for gdb, to list the libraries
            linked_files(core, [base], lambda name: None)
    return moving


def _touch(core: ElfCore, address: int, size: int) -> None:
    for start in range(address, address + size, PAGE):
        with contextlib.suppress(Fault):
            core.read(start, 8)


@contextlib.contextmanager
def _head(source: Source, look: Look) -> Iterator[str]:
    """Yield the path of a memory file with the notes and headers that a core would have now, without content."""
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
    """Return the threads as /proc shows them; those running at the moment have no registers."""
    found = []
    for tid in parsers.threads(pid):
        call = None
        with contextlib.suppress(OSError, ValueError, IndexError):
            call = parsers.parse_syscall(parsers.read(f"/proc/{pid}/task/{tid}/syscall"))
        where = (call.number, call.args, call.sp, call.pc) if call is not None else (-1, (), 0, 0)
        found.append(Registers(tid, registers.from_syscall(machine, *where), {}))
    return found
