"""What the reader reads of a clean core, and which line of it asked: that is where damage finds something."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from typing import Any, Dict, List, NamedTuple, Set, Tuple

from postmortem.memory.elfcore import ElfCore

from .bases import Base
from .damage import Map

#: Of each line; a stack of 240 frames asks the same thing 240 times.
MOST = 400
_MEMORY = os.path.join("postmortem", "memory", "")


class Slot(NamedTuple):
    """Bytes that the reader read in one go, and that the core itself holds."""

    address: int
    offset: int  # into the file
    size: int


class Trace(NamedTuple):
    slots: Dict[str, List[Slot]]  # by the line that reads them: "frames.visit:88"
    pointers: List[int]  # addresses that were read from, of objects therefore


class _Recorder:
    """Stands before a class's reading methods."""

    def __init__(self) -> None:
        self.seen: Dict[str, Set[Tuple[int, int]]] = {}

    def note(self, address: int, size: int) -> None:
        frame = sys._getframe(2)
        while frame.f_back is not None and _MEMORY in frame.f_code.co_filename:
            frame = frame.f_back
        module = os.path.basename(frame.f_code.co_filename)[:-3]
        rows = self.seen.setdefault(f"{module}.{frame.f_code.co_name}:{frame.f_lineno}", set())
        if len(rows) < MOST and 0 < size < 1 << 24:
            rows.add((address, size))

    def install(self) -> None:
        recorder = self
        plain: Dict[str, Any] = {name: getattr(ElfCore, name) for name in ("read", "u64", "words")}

        def read(core: ElfCore, address: int, size: int) -> Any:
            recorder.note(address, size)
            return plain["read"](core, address, size)

        def u64(core: ElfCore, address: int) -> Any:
            recorder.note(address, 8)
            return plain["u64"](core, address)

        def words(core: ElfCore, address: int, count: int) -> Any:
            recorder.note(address, 8 * count)
            return plain["words"](core, address, count)

        ElfCore.read, ElfCore.u64, ElfCore.words = read, u64, words  # type: ignore[assignment,method-assign]


def trace(base: Base, layout: Map) -> Trace:
    """Analyses the clean core in a process of its own and notes what that reads, locals included."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            recorder = _Recorder()
            recorder.install()
            from .cases import analysed  # noqa: PLC0415 - cases needs mutations, which needs this

            analysed(base.core, with_locals=True)
            with os.fdopen(writer, "wb") as stream:
                pickle.dump(recorder.seen, stream)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    if os.waitpid(child, 0)[1]:
        raise RuntimeError(f"{base.core} cannot be analysed undamaged")
    return _in_core(pickle.loads(data), layout)


def _in_core(seen: Dict[str, Set[Tuple[int, int]]], layout: Map) -> Trace:
    slots: Dict[str, List[Slot]] = {}
    pointers: Set[int] = set()
    for label, rows in sorted(seen.items()):
        for address, size in sorted(rows):
            offset = layout.offset(address)
            if offset is not None and offset + size <= layout.size:
                slots.setdefault(label, []).append(Slot(address, offset, size))
                pointers.add(address)
    return Trace(slots, sorted(pointers))
