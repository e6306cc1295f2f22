"""Processes with another root directory or mount namespace: in a container or a chroot.

/proc/PID/maps names their programs and libraries below *their* root directory. Ours may have another file of that name
or none, so the bundle takes copies, as ``raw/roots/NUMBER/NAME``: the files that the process executes, for gdb and the
reader, and the Python sources that its stacks name. Containers of the same image have a root and a copy each.

A root is held open from the first look on: it can be read after its processes have ended. It may lie on a file system
that never responds, and the process chooses every name in it. So all of it is read by children, below that root
directory, and sources with the rights of the process's user.
"""

# Paths below /proc are plain strings, since thousands of them are made:
# ruff: noqa: PTH116

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, MutableMapping, NamedTuple, Optional, Set, Tuple

from ..bundle import Bundle, Step, core_name
from ..foreign.children import Child, Lost
from ..foreign.files import pieces
from ..foreign.root import Root
from ..memory.procmem import below, root_prefix
from .freeze import rehearsal
from .isolation import read_apart
from .procfs import parsers

if TYPE_CHECKING:
    from ..foreign.processfiles import Files, Shelves
    from .readers import Reader

#: Bytes copied of one program or library, and in all; those larger than the first are a framework's (CUDA).
LARGEST, MOST = 256 << 20, 1 << 30
#: Bytes of one Python source, and the number of sources.
_LARGEST_SOURCE, _MOST_SOURCES = 1 << 20, 2000
_SPARE_DISK = 256 << 20
_REMEDY = "analyze it with --sysroot and the files of that root"
#: Seconds for looking at one root, whose file system may never respond.
_LOOK_S = 2.0
#: Seconds for reading the stacks in one process's core.
_READ_S = 10.0

_File = Tuple[int, int]  # device, inode


class _Known(NamedTuple):
    """A root directory; ``descriptor`` is None when its file system does not respond."""

    number: int
    descriptor: Optional[int]
    pids: List[int]


class Roots:
    """The root directories of one capture; to be closed.

    - ``reader``: see capture.readers
    - ``helpers``: see foreign.children.Child
    """

    def __init__(
        self, bundle: Bundle, reader: Reader, helpers: Optional[MutableMapping[int, Optional[int]]] = None
    ) -> None:
        self._bundle, self._reader, self._helpers = bundle, reader, helpers
        self._known: Dict[Tuple[int, ...], _Known] = {}
        self._looker: Optional[Child] = None
        self._shelves: Optional[Shelves] = None
        self._maker = os.getpid()

    def note(self, pid: int, maps: Optional[List[str]]) -> Optional[int]:
        """Return the number of a process's root; None when it is ours, or unreadable. ``maps``: lines of /proc/PID/maps."""
        key: Tuple[int, ...] = (pid,)  # the key of a root that does not respond
        descriptor = None
        try:
            if not _may_be_other(pid):
                return None
            namespace = os.stat(f"/proc/{pid}/ns/mnt").st_ino  # on the kernel's own file system, which always responds
            identity, descriptor = self._look_at(pid, maps)
            if descriptor is None:
                return None
            key = (*identity, namespace)
        except Lost:
            pass
        except OSError:
            return None
        if key not in self._known:
            self._known[key] = _Known(len(self._known) + 1, descriptor, [])
        elif descriptor is not None:
            os.close(descriptor)
        self._known[key].pids.append(pid)
        return self._known[key].number

    def _look_at(self, pid: int, maps: Optional[List[str]]) -> Tuple[_File, Optional[int]]:
        """Return (identity of the root, its descriptor or None if it is ours). Raises OSError, Lost."""
        if self._looker is None:
            self._looker = Child(_look, helpers=self._helpers)
        try:
            answer = self._looker.ask({"pid": pid, "names": list(_names(maps))}, time.monotonic() + _LOOK_S)
        except Lost:
            self._looker.close()
            self._looker = None
            raise
        device, inode = answer.value
        return (device, inode), answer.descriptor

    # ------------------------------------------------------------------ what is read of them

    def files(self, known: Optional[Mapping[str, Any]]) -> Files:
        """Return the files of the process with this ``process.json``, below its root, as its user can read them."""
        from ..foreign.processfiles import NO_FILES, Shelves  # noqa: PLC0415 - a capture that keeps every page needs none of this

        if known is None:
            return NO_FILES
        if self._maker != os.getpid():  # a forked child cannot use its parent's children
            self._maker, self._shelves, self._looker, self._helpers = os.getpid(), None, None, None
        if self._shelves is None:
            self._shelves = Shelves(self._place, helpers=self._helpers)
        return self._shelves.of(known)

    def _place(self, number: int) -> Optional[Root]:
        if not number:
            return Root.at("/")
        descriptor = next((root.descriptor for root in self._known.values() if root.number == number), None)
        return Root(os.dup(descriptor)) if descriptor is not None else None

    def keep(self, facts: Dict[int, Dict[str, Any]], asked_to_end: Callable[[], bool]) -> None:
        """Copy what is needed of all roots, while their processes live; ``facts``: pid → process.json."""
        if not self._known:
            return
        room = _Room(min(MOST, max(self._bundle.folder.free - _SPARE_DISK, 0)), asked_to_end)
        for root in self._known.values():
            with self._bundle.step("files", f"another root, of process {root.pids[0]}") as step:
                if root.descriptor is None:
                    step.fail("root-silent", "this root does not respond: none of its files is in the bundle", _REMEDY)
                    continue
                copies = _Copies(self._bundle, root.number, room)
                for pid in root.pids:
                    files = self.files(facts.get(pid))
                    copies.take_programs(files, _executed(pid, facts.get(pid, {})), self.files({}))
                    copies.take_sources(files, self._sources_of(pid, facts.get(pid)))
                copies.tell(step)

    def _sources_of(self, pid: int, known: Optional[Mapping[str, Any]]) -> List[str]:
        """Return the source files named by the Python stacks in a process's core, as paths below its root."""
        rehearsal.import_readers(self._reader)
        try:
            until = time.monotonic() + _READ_S
            found = read_apart(
                lambda: (_sources_of(self._bundle, pid, self.files(known), self._reader), b""), until, self._helpers
            ).value
        except OSError:  # the reading child failed: that must not cost the copies of programs
            return []
        return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []

    def close(self) -> None:
        """End the children and close the roots."""
        if self._shelves is not None:
            self._shelves.close()
        if self._looker is not None:
            self._looker.close()
        for root in self._known.values():
            if root.descriptor is not None:
                os.close(root.descriptor)
        self._known.clear()


class _Room:
    """The number of bytes that may still be copied."""

    def __init__(self, left: int, asked_to_end: Callable[[], bool]) -> None:
        self._left, self._asked_to_end = left, asked_to_end

    def take(self, size: int) -> bool:
        """Reserve ``size`` bytes; return False when too few are left, or the capture is to end."""
        if size > self._left or self._asked_to_end():
            return False
        self._left -= size
        return True


class _Copies:
    """The copies of one root, and the files that are missing among them."""

    def __init__(self, bundle: Bundle, number: int, room: _Room) -> None:
        self._bundle, self._number, self._room = bundle, number, room
        self._seen: Set[str] = set()
        self._count = 0
        self._missing: Dict[str, str] = {}  # name → why

    def take_programs(self, files: Files, executed: Mapping[str, _File], ours: Files) -> None:
        """Copy the files that a process executes, the small ones first.

        ``ours``: our own files, for those that it had mapped before it changed its root directory.
        """
        opened: List[Tuple[int, str, int]] = []
        with contextlib.ExitStack() as descriptors:
            for name, file in executed.items():
                if name in self._seen:
                    continue
                self._seen.add(name)
                try:
                    kept = self._name(name)
                    descriptor = _opened(files, ours, name, file)
                except ValueError:
                    self._missing[name] = "not a path below a root"
                    continue
                except OSError as exc:
                    if exc.errno != errno.EINVAL:  # a device is no file to be copied
                        self._missing[name] = exc.strerror or "cannot be opened"
                    continue
                descriptors.callback(os.close, descriptor)
                opened.append((os.fstat(descriptor).st_size, kept, descriptor))
            for size, kept, descriptor in sorted(opened):
                if size > LARGEST or not self._room.take(size):
                    self._missing[kept] = f"{size >> 20} MB, no room"
                    continue
                with self._bundle.writing(kept) as copy:
                    for piece in pieces(descriptor, size):
                        copy.write(piece)

    def take_sources(self, files: Files, names: List[str]) -> None:
        """Copy Python sources; record those that are unreadable or have no room.

        A missing one is not recorded: it may never have been a file.
        """
        for name in sorted(set(names) - self._seen):
            if self._count >= _MOST_SOURCES:
                return
            self._seen.add(name)
            data = files.source(name, _LARGEST_SOURCE)
            why = files.why(name)
            if why is not None:
                self._missing[name] = why
            if data is None:
                continue
            try:
                kept = self._name(name)
            except ValueError:
                continue
            plain = posixpath.normpath(name)
            if plain != name and files.source(plain, _LARGEST_SOURCE) != data:
                continue  # a directory on the path is a link: the bundle would have the other file under that name
            if not self._room.take(len(data)):
                self._missing[name] = "no room"
                continue
            self._bundle.write(kept, data)
            self._count += 1

    def _name(self, name: str) -> str:
        """Return the name in the bundle of a file of this root. Raises ValueError unless the name is absolute."""
        if not name.startswith("/") or "\0" in name:
            raise ValueError(name)
        parts = [part for part in posixpath.normpath(name).split("/") if part]  # no ".." is left in an absolute name
        if not parts or any(len(os.fsencode(part)) > 240 for part in parts):
            raise ValueError(name)
        return "/".join(("raw/roots", str(self._number), *parts))

    def tell(self, step: Step) -> None:
        """Add the missing files to the step."""
        if self._missing:
            name, why = min(self._missing.items())
            more = f" and {len(self._missing) - 1} more" if len(self._missing) > 1 else ""
            said = f"these files of another root are not in the bundle: {name} ({why}){more}"
            step.fail("files-missing", said, _REMEDY, files=len(self._missing))


def _opened(files: Files, ours: Files, name: str, file: _File) -> int:
    """Open a file that a process has mapped, with its user's rights; else, if it is the identical file, with ours.

    Raises OSError.
    """
    try:
        return files.open(name)
    except PermissionError:
        return _identical(files.open_mapped(name), file)
    except FileNotFoundError:
        return _identical(ours.open(name), file)


def _identical(descriptor: int, file: _File) -> int:
    found = os.fstat(descriptor)
    if (found.st_dev, found.st_ino) != file:
        os.close(descriptor)
        raise FileNotFoundError(errno.ENOENT, "is not the file that the process has mapped")
    return descriptor


def _may_be_other(pid: int) -> bool:
    """Return whether a process has another root directory or mount namespace than ours.

    Reads no file system but proc. Raises OSError.
    """
    same = os.stat(f"/proc/{pid}/ns/mnt").st_ino == os.stat("/proc/self/ns/mnt").st_ino
    return not same or os.readlink(f"/proc/{pid}/root") != "/"


def _look(request: Any) -> Tuple[Any, Tuple[()], Optional[int]]:
    """Return the identity of a process's root directory and its descriptor; called in the child.

    The descriptor is None if the root is ours: the same directory, with the same files under the names of its programs.
    """
    held = os.open(f"/proc/{request['pid']}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    found, ours = os.fstat(held), os.stat("/")
    identity = found.st_dev, found.st_ino
    if identity == (ours.st_dev, ours.st_ino):
        with Root.at("/") as here:
            theirs = Root(held)
            if all(_identity(theirs, name) == _identity(here, name) for name in request["names"]):
                os.close(held)
                return identity, (), None
    return identity, (), held


def _identity(root: Root, name: str) -> Optional[_File]:
    try:
        held = root.hold(name)
    except OSError:
        return None
    found = os.fstat(held)
    os.close(held)
    return found.st_dev, found.st_ino


def _executed(pid: int, known: Mapping[str, Any]) -> Dict[str, _File]:
    """Return the files executed now: libraries may have been loaded since the first look."""
    return _names(parsers.lines(f"/proc/{pid}/maps") or known.get("maps"), root_prefix(pid))


def _names(maps: Optional[List[str]], prefix: bytes = b"") -> Dict[str, _File]:
    """Return the files that a process has mapped as executable, by its own names for them.

    Without deleted files, which have no path, and without sources, which are read with the user's rights only.
    """
    found = {}
    for mapping in parsers.parse_maps("\n".join(maps or ()).encode("utf-8", "surrogateescape")):
        name = os.fsdecode(below(mapping.name, prefix))
        if mapping.inode and "x" in mapping.perms and not name.endswith((" (deleted)", ".py", ".pyw", ".pyi", ".pyx")):
            major, _colon, minor = mapping.device.partition(":")
            found[name] = os.makedev(int(major, 16), int(minor, 16)), mapping.inode
    return found


def _sources_of(bundle: Bundle, pid: int, files: Files, reader: Reader) -> List[str]:
    from ..cores.located import Located  # noqa: PLC0415 - without another root none of this is needed
    from ..memory import ElfCore  # noqa: PLC0415

    if not bundle.has_core(pid):
        return []
    locate = Located(files)
    core = ElfCore(core_name(pid), locate, descriptor=bundle.folder.open(core_name(pid)))
    try:
        locate.core = core
        return reader()(core, pid, bundle.folder, files, False).sources
    finally:
        core.close()
