"""Memory of a running process, read through /proc/PID/mem without stopping it.

Values may change between two reads: readers must validate. The kernel requires the permission to ptrace.
"""

from __future__ import annotations

import os
import time
from typing import AnyStr, Dict, List, Optional, Tuple, Type

from .base import MAX_READ, Fault, Image, MappedFile
from .elf import Elf, NotElf


class ProcMem(Image):
    """Memory and mapped files of a running process.

    Raises: PermissionError or FileNotFoundError if the process cannot be opened.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        #: Deadline in time.monotonic(); later reads raise Fault.
        self.until = float("inf")
        self._fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        self._files: Optional[List[MappedFile]] = None
        self._elves: Dict[str, Optional[Elf]] = {}
        self._prefix = root_prefix(pid)

    @property
    def files(self) -> List[MappedFile]:
        """Mapped files as the process names them; read once."""
        if self._files is None:
            try:
                with open(f"/proc/{self.pid}/maps", "rb") as stream:
                    found = [m for m in map(_mapped, stream) if m is not None]
            except OSError:  # the process has ended
                return []
            self._files = [m._replace(path=below(m.path, os.fsdecode(self._prefix))) for m in found]
        return self._files

    @property
    def writable(self) -> List[Tuple[int, int]]:
        """(start, end) of the writable mappings, ordered by address; empty if the process has ended."""
        try:
            with open(f"/proc/{self.pid}/maps", "rb") as stream:
                fields = [line.split(None, 2) for line in stream]
        except OSError:  # the process has ended
            return []
        ranges = [area.split(b"-") for area, modes, _rest in fields if modes.startswith(b"rw")]
        return [(int(start, 16), int(end, 16)) for start, end in ranges]

    def elf(self, path: str) -> Optional[Elf]:
        """Return the file behind a mapping, opened through the process's own root; None if unusable."""
        if path not in self._elves:
            try:
                self._elves[path] = Elf(f"/proc/{self.pid}/root{path}")
            except (OSError, NotElf, ValueError):
                self._elves[path] = None
        return self._elves[path]

    def read(self, address: int, size: int) -> bytes:
        """Return exactly ``size`` bytes. Raises Fault, also past the deadline."""
        if not 0 <= size <= MAX_READ:
            raise Fault(address, size, "not a size")
        if time.monotonic() > self.until:
            raise Fault(address, size, "no time is left")
        try:
            data = os.pread(self._fd, size, address)
        except (OSError, OverflowError) as exc:
            raise Fault(address, size, getattr(exc, "strerror", None) or "not an address") from None
        if len(data) != size:
            raise Fault(address, size, "ends early")
        return data

    def close(self) -> None:
        """Close /proc/PID/mem."""
        os.close(self._fd)

    def __enter__(self) -> ProcMem:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: object, trace: object) -> None:
        self.close()


def root_prefix(pid: int) -> bytes:
    """Return the prefix of a process's file names in /proc/PID/maps: the path of its chroot.

    Empty if its root is ours, or if no path of ours leads there, as with containers.
    """
    try:
        root = os.readlink(f"/proc/{pid}/root".encode())
    except OSError:
        return b""
    return b"" if root == b"/" else root


def below(name: AnyStr, prefix: AnyStr) -> AnyStr:
    """Strip a root's prefix from a file name, if present."""
    rest = name[len(prefix) :] if name.startswith(prefix) else name
    return rest if rest[:1] == name[:1] else name


def _mapped(line: bytes) -> Optional[MappedFile]:
    """Parse a line of /proc/PID/maps; None if it names no file."""
    parts = line.split(None, 5)
    if len(parts) < 6 or not parts[5].startswith(b"/"):
        return None
    start, end = (int(x, 16) for x in parts[0].split(b"-"))
    return MappedFile(start, end, int(parts[2], 16), os.fsdecode(parts[5].rstrip(b"\n")))
