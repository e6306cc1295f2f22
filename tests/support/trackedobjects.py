"""Two objects that the collector tracks, in synthesised memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Optional

from postmortem.cpython.heap.owners import ReferenceHolders
from postmortem.cpython.objects.builtins import Objects
from postmortem.cpython.runtime.layouts import FLAG_TUPLE, FLAG_TYPE, TP_FLAGS, TP_NAME
from postmortem.cpython.runtime.releases import LAYOUTS
from postmortem.memory import Segments

TYPES, HEAP, HEAD = 0x10000, 0x20000, 0x30000
TYPE, TUPLE, OPAQUE = TYPES, TYPES + 1024, TYPES + 2048
FIRST, SECOND = HEAP + 0x100, HEAP + 0x200
GC = 1 << 14


class Target:
    """Two tracked objects in a ring with its head."""

    def __init__(self, kind: int = TUPLE) -> None:
        self.memory = Segments({TYPES: b"\0" * 4096, HEAP: b"\0" * 4096, HEAD: b"\0" * 64})
        self._type(TYPE, "type", FLAG_TYPE | GC, 40)
        self._type(TUPLE, "tuple", FLAG_TUPLE | GC, 24, 8)
        self._type(OPAQUE, "lib.Opaque", GC, 64)
        for at, after, before in ((FIRST, SECOND - 16, HEAD), (SECOND, HEAD, FIRST - 16)):
            self.memory.put_words(at - 16, after, before, 1, kind, 2, 0xAAA0, 0xBBB0, 0xAAA0)
        self.memory.put_words(HEAD, FIRST - 16, SECOND - 16)

    def _type(self, at: int, name: str, flags: int, size: int, itemsize: int = 0) -> None:
        self.memory.put_words(at + 8, TYPE)
        self.memory.put_words(at + TP_NAME, at + 512, size, itemsize)
        self.memory.put_words(at + TP_FLAGS, flags)
        self.memory.put(at + 512, name.encode())

    def holders(self) -> ReferenceHolders:
        layout = LAYOUTS[3, 12]
        python: Any = SimpleNamespace(
            memory=self.memory,
            layout=layout,
            objects=Objects(self.memory, layout),
            interpreters=[],
            frames=None,
            on_musl=False,
        )
        found = ReferenceHolders(python)
        found._heads = {HEAD}
        return found

    def counted(self, place: int) -> Optional[bool]:
        holders = self.holders()
        holder = holders.around(place)
        return holders.counts(holder, place)[0] if holder is not None else None
