"""A target's memory behind one small protocol: ``read(address, size) -> bytes``, which raises ``Fault``.

- ``ElfCore`` reads cores.
- ``ProcMem`` reads a running process without stopping it.
- ``Segments`` is the synthetic memory of the tests.

Uses the standard library alone, Python 3.8.
"""

from __future__ import annotations

from .base import Fault, Image, MappedFile, Memory
from .elf import Elf, NotElf
from .elfcore import ElfCore
from .notes import CoreThread
from .procmem import ProcMem
from .segments import Segments

__all__ = ["CoreThread", "Elf", "ElfCore", "Fault", "Image", "MappedFile", "Memory", "NotElf", "ProcMem", "Segments"]
