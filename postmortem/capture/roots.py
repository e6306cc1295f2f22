"""Processes that see other files than we do: in containers, in a chroot, behind another mount namespace.

What the kernel calls their programs and libraries (/proc/PID/maps) are names below *their* root. Under the same name we may
have another file or none, so the bundle takes copies, as ``raw/roots/NUMBER/NAME``: what gdb and the reader need (the files
that the process executes) and the Python sources that its stacks name. Containers that run the same image have one root
each, and a copy each.

A root is held open from the first look on: it can be read when its processes have ended. Names are looked up with
openat2(2) and RESOLVE_IN_ROOT (Linux 5.6): a symbolic link that somebody has put there leads nowhere but below that root.
"""

# Paths below /proc are plain strings, formatted thousands of times:
# ruff: noqa: PTH116

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from ..bundle import Bundle, Step, core_name
from ..memory.procmem import below, root_prefix
from . import procfs

#: Of one program or library, and of all that one capture copies: bytes. Larger than the first are frameworks' (CUDA).
LARGEST, MOST = 256 << 20, 1 << 30
#: Of one Python source, and how many.
_LARGEST_SOURCE, _MOST_SOURCES = 1 << 20, 2000
_SPARE_DISK = 256 << 20
_PIECE = 1 << 20
_REMEDY = "analyze it with --sysroot and the files of that root"
_OPENAT2, _RESOLVE_IN_ROOT = 437, 0x10
_HOW = struct.Struct("QQQ")  # struct open_how: flags, mode, resolve
_libc = ctypes.CDLL(None, use_errno=True)

Sources = Callable[[int], Iterable[str]]
_File = Tuple[int, int]  # device, inode


class _Root(NamedTuple):
    number: int
    descriptor: int
    pids: List[int]


class Roots:
    """The other roots of one capture. To be closed."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._known: Dict[Tuple[int, int, int], _Root] = {}

    def note(self, pid: int, maps: Optional[List[str]]) -> Optional[int]:
        """The number of a process's root; None when it is ours, or may not be looked at. ``maps``: of /proc/PID/maps."""
        try:
            if not is_other(pid, maps):
                return None
            root = os.stat(f"/proc/{pid}/root")
            key = (root.st_dev, root.st_ino, os.stat(f"/proc/{pid}/ns/mnt").st_ino)
            if key not in self._known:
                held = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
                self._known[key] = _Root(len(self._known) + 1, held, [])
        except OSError:
            return None
        self._known[key].pids.append(pid)
        return self._known[key].number

    def keep(self, facts: Dict[int, Dict[str, Any]], sources: Sources, asked_to_end: Callable[[], bool]) -> None:
        """Copies what is needed of them. ``sources``: the files that a process's Python stacks name, read while it lives."""
        room = min(MOST, max(self._bundle.folder.free - _SPARE_DISK, 0)) if self._known else 0
        for root in self._known.values():
            with self._bundle.step("files", f"another root, of process {root.pids[0]}") as step:
                executed = {key: one for pid in root.pids for key, one in _executed(pid, facts.get(pid, {})).items()}
                room -= self._copy(root, executed, LARGEST, room, step, asked_to_end)
                named = {name for pid in root.pids for name in _quietly(sources, pid) if name.endswith(".py")}
                few = dict.fromkeys(sorted(named)[:_MOST_SOURCES])
                room -= self._copy(root, few, _LARGEST_SOURCE, room, None, asked_to_end)

    def _copy(
        self, root: _Root, names: Mapping[str, Optional[_File]], largest: int, room: int, step: Optional[Step],
        asked_to_end: Callable[[], bool],
    ) -> int:  # fmt: skip
        """Bytes that were copied: the small files first. What cannot be had is told of programs alone: a source may well be
        gone, or never have been a file."""
        opened, missing, copied = [], [], 0
        with contextlib.ExitStack() as files:
            for name, file in names.items():
                try:
                    descriptor = _open(root.descriptor, name, file)
                except OSError as exc:
                    missing.append(f"{name} ({exc.strerror})")
                    continue
                files.callback(os.close, descriptor)
                found = os.fstat(descriptor)
                if stat.S_ISREG(found.st_mode):
                    opened.append((found.st_size, name, descriptor))
            for size, name, descriptor in sorted(opened):
                if size > largest or copied + size > room or asked_to_end():
                    missing.append(f"{name} ({size >> 20} MB)")
                    continue
                self._write(f"raw/roots/{root.number}{name}", descriptor)
                copied += size
        if missing and step is not None:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            step.fail(f"these files of another root are not in the bundle: {sorted(missing)[0]}{more}", _REMEDY)
        return copied

    def _write(self, name: str, descriptor: int) -> None:
        with self._bundle.writing(name) as copy:
            for piece in iter(lambda: os.read(descriptor, _PIECE), b""):
                copy.write(piece)

    def close(self) -> None:
        for root in self._known.values():
            os.close(root.descriptor)
        self._known.clear()


def is_other(pid: int, maps: Optional[List[str]]) -> bool:
    """Has a process another root than we, or other files mounted where its programs are? Raises OSError."""
    theirs, ours = os.stat(f"/proc/{pid}/root"), os.stat("/")
    if (theirs.st_dev, theirs.st_ino) != (ours.st_dev, ours.st_ino):
        return True
    if os.stat(f"/proc/{pid}/ns/mnt").st_ino == os.stat("/proc/self/ns/mnt").st_ino:
        return False
    return any(_identity(f"/proc/{pid}/root{name}") != _identity(name) for name in _names(maps))


def open_below(root: int, name: str) -> int:
    """A descriptor for a file, its absolute name and every link taken from ``root`` on. Raises OSError."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    how = ctypes.create_string_buffer(_HOW.pack(flags, 0, _RESOLVE_IN_ROOT), _HOW.size)
    path = ctypes.create_string_buffer(os.fsencode(name))
    found: int = _libc.syscall(
        ctypes.c_long(_OPENAT2), ctypes.c_int(root), path, how, ctypes.c_size_t(_HOW.size)
    )  # fmt: skip
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return found


def _open(root: int, name: str, file: Optional[_File]) -> int:
    """A file below a root; what is not there, but here, and the same that the process has mapped, was mapped before it went
    to its root. Raises OSError."""
    try:
        return open_below(root, name)
    except FileNotFoundError:
        if file is None or _identity(name) != file:
            raise
        return os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)


def _identity(path: str) -> Optional[_File]:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _executed(pid: int, known: Dict[str, Any]) -> Dict[str, _File]:
    """As they are now: libraries may have been loaded since the first look."""
    return _names(procfs.lines(f"/proc/{pid}/maps") or known.get("maps"), root_prefix(pid))


def _names(maps: Optional[List[str]], prefix: bytes = b"") -> Dict[str, _File]:
    """The files of which a process executes something, as it calls them. Deleted ones are found nowhere."""
    found = {}
    for mapping in procfs.parse_maps("\n".join(maps or ()).encode("utf-8", "surrogateescape")):
        if mapping.inode and "x" in mapping.perms and not mapping.name.endswith(b" (deleted)"):
            major, _colon, minor = mapping.device.partition(":")
            device = os.makedev(int(major, 16), int(minor, 16))
            found[os.fsdecode(below(mapping.name, prefix))] = (device, mapping.inode)
    return found


def _quietly(sources: Sources, pid: int) -> List[str]:
    try:
        return [name for name in sources(pid) if name.startswith("/")]
    except Exception:  # a defect of the reader must not cost the programs
        return []


def sources_of(bundle: Bundle, pid: int) -> List[str]:
    """The source files that the Python stacks in a process's core name, as it sees them."""
    from ..extract.bundles import raw_of  # noqa: PLC0415 - without another root none of this is needed
    from ..extract.reading import read  # noqa: PLC0415
    from ..extract.scripts import located  # noqa: PLC0415
    from ..memory import ElfCore  # noqa: PLC0415

    if not bundle.has_core(pid):
        return []
    core = ElfCore(str(bundle.place / core_name(pid)), lambda name: f"/proc/{pid}/root{name}")
    try:
        reader, directory = read(core, pid, raw_of(bundle.path, pid), f"/proc/{pid}/root", [], False)
        return [located(file, directory) for file in reader.files]
    finally:
        core.close()
