"""A target's memory as gdb sees it, a core or a live process: the same Image that the reader knows from elsewhere."""

from __future__ import annotations

import json
import os
import re
from typing import List, Optional, Tuple

import gdb
from postmortem.memory import Elf, ElfCore, Fault, Image, MappedFile, NotElf, ProcMem
from postmortem.memory.base import MAX_READ

AT_PHDR = 3
_CORE_FILE = re.compile(r"^\s*`(.*)', file type elf", re.M)
#: START END SIZE OFFSET [PERMS] FILE; what has no file has fewer columns.
_MAPPING = re.compile(
    r"^\s*0x([0-9a-f]+)\s+0x([0-9a-f]+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+)\s+(?:([-rwxsp]{4,5})\s+)?(/.*)?$"
)


class GdbMemory(Image):
    """Reads through gdb; which files are mapped it knows from the core's notes, /proc or `info proc mappings`."""

    def __init__(self, inferior: gdb.Inferior) -> None:
        self._inferior = inferior
        self.about = _about(inferior)

    def read(self, address: int, size: int) -> bytes:
        if not 0 <= size <= MAX_READ or not 0 <= address <= (1 << 64) - size:
            raise Fault(address, size, "not an address, or not a size")
        if size == 0:
            return b""
        try:
            data = bytes(self._inferior.read_memory(address, size))
        except (gdb.error, RuntimeError, ValueError, OverflowError) as exc:  # gdb.MemoryError is a RuntimeError
            raise Fault(address, size, str(exc) or "gdb cannot read it") from None
        if len(data) != size:
            raise Fault(address, size, "ends early")
        return data

    @property
    def files(self) -> List[MappedFile]:
        return self.about.files

    @property
    def writable(self) -> List[Tuple[int, int]]:
        return self.about.writable

    def elf(self, path: str) -> Optional[Elf]:
        return self.about.elf(path)


def core_path() -> Optional[str]:
    """The core file that gdb has open, None for a process."""
    try:
        match = _CORE_FILE.search(gdb.execute("info target", to_string=True).split("Local core dump file:", 1)[1])
    except (gdb.error, IndexError):
        return None
    return match[1] if match else None


def called(core: str) -> str:
    """How `postmortem debug` calls a core that gdb has by its descriptor."""
    try:
        return str(json.loads(os.environ["POSTMORTEM_CALLED"])[core])
    except (KeyError, ValueError, TypeError):
        return core


def located(path: str) -> str:
    """A file of the target on this machine: under gdb's sysroot, when one is set."""
    sysroot = gdb.parameter("sysroot") or ""
    return path if sysroot.startswith("target:") or sysroot in ("", "/") else sysroot.rstrip("/") + path


def _about(inferior: gdb.Inferior) -> Image:
    core = core_path()
    if core is not None:
        try:
            return _core(core)
        except (OSError, NotElf, ValueError) as exc:
            why = getattr(exc, "strerror", None) or exc
            raise gdb.GdbError(f"the core {called(core)} cannot be read: {why}") from None
    if not inferior.pid:
        raise gdb.GdbError("there is no core and no process: name one with `core-file FILE` or `attach PID`")
    if _is_local(inferior):
        try:
            return ProcMem(inferior.pid)
        except OSError:
            pass
    return Mappings()


def _is_local(inferior: gdb.Inferior) -> bool:
    connection = getattr(inferior, "connection", None)  # since gdb 11
    return getattr(connection, "type", None) == "native"


def _core(path: str) -> ElfCore:
    """The core's notes, with the files that gdb has opened standing for those that it names."""
    core = ElfCore(path, located)
    program = core.mapped_file(core.auxv.get(AT_PHDR, -1))
    exe = gdb.current_progspace().filename
    if program is not None and exe:
        core.stand_in(program.path, exe)
    return core


class Mappings(Image):
    """What gdb says of a process on another machine; the files are those of gdb's sysroot."""

    def __init__(self) -> None:
        self._files: List[MappedFile] = []
        self._writable: List[Tuple[int, int]] = []
        self._elves: dict = {}
        try:
            text = gdb.execute("info proc mappings", to_string=True)
        except gdb.error:
            text = ""
        for line in text.splitlines():
            match = _MAPPING.match(line)
            if match:
                start, end, offset = (int(match[n], 16) for n in (1, 2, 3))
                if match[5]:
                    self._files.append(MappedFile(start, end, offset, match[5]))
                if match[4] is None or "w" in match[4]:
                    self._writable.append((start, end))

    @property
    def files(self) -> List[MappedFile]:
        return self._files

    @property
    def writable(self) -> List[Tuple[int, int]]:
        return self._writable

    def elf(self, path: str) -> Optional[Elf]:
        if path not in self._elves:
            try:
                self._elves[path] = Elf(located(path))
            except (OSError, NotElf, ValueError):
                self._elves[path] = None
        return self._elves[path]
