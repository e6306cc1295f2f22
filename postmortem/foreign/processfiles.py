"""The files of a process by its own names: below its root directory, with the rights of its user.

The program chooses a name and what it leads to: a symbolic link, a device, a file system that never responds. So
sources are read by a child (``foreign.reader``) with the rights of the process's user, and only regular files that have
a Python source's suffix after all links. The reason why one was not read is kept, for a gap.

Places of the files:
- below ``--sysroot``, if given
- for a process with another root directory than its capturer: in ``raw/roots`` of the bundle, and nowhere else
- otherwise on this machine
"""

from __future__ import annotations

import ast
import errno
import functools
import os
import posixpath
import tokenize
from collections import OrderedDict
from io import BytesIO
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, MutableMapping, Optional, Tuple

from ..sourcepaths import is_stdlib
from . import rights as users
from .children import Lost
from .held import Folder
from .reader import Reader
from .rights import Rights
from .root import Root

SUFFIXES = (".py", ".pyw", ".pyi", ".pyx")
_MAX_FILE = 8 << 20
#: Limits of the cache: files, their bytes, their syntax trees (some hundred times as large).
_MOST_FILES, _MOST_BYTES, _MOST_TREES = 4096, 64 << 20, 64
#: Number of readers for one bundle, each a child: users times roots.
_MOST_READERS = 32

NOT_KEPT = "not-kept"
#: Why a file was not read: code → (reason, remedy).
REASONS = {
    "denied": ("the user of the process may not read it", "let that user read it, or analyze with --sysroot"),
    "late": ("it did not answer in time", "check that its file system (FUSE, NFS) still responds"),
    "large": (f"it is larger than {_MAX_FILE >> 20} MB", None),
    "no-file": ("it is not a regular file", None),
    "no-source": ("it leads to a file that is not Python source", None),
    "ids": (
        "the process runs with the rights of several users (set-user-id): no file is read on its behalf",
        "analyze with --sysroot and the program's sources",
    ),
    NOT_KEPT: (
        "the process saw other files than postmortem did, and the bundle has no copies of them",
        "analyze with --sysroot and the files of that root",
    ),
}  # fmt: skip
_CODES = {
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EFBIG: "large",
    errno.EINVAL: "no-file",
    errno.EBADF: "no-source",
}


class Files:
    """The files of processes that share a root directory and a user.

    - ``reader``: None: nothing is read; ``refused`` is the code of the reason
    - ``programs``: returns a reader with our rights, for files that the processes have mapped and ``reader`` cannot
      read
    - ``normal``: whether files lie under normalised names
    """

    def __init__(
        self,
        reader: Optional[Reader],
        refused: str = "",
        programs: Optional[Callable[[], Reader]] = None,
        *,
        normal: bool = False,
    ) -> None:
        self._reader, self._refused, self._programs, self._normal = reader, refused, programs, normal
        self._lines: OrderedDict[str, Tuple[Optional[List[str]], int]] = OrderedDict()  # with the bytes of the file
        self._trees: OrderedDict[str, Optional[ast.Module]] = OrderedDict()
        self._bytes = 0
        #: Name → code of the reason, for files that exist and were not read.
        self.unread: Dict[str, str] = {}

    def lines(self, name: str) -> Optional[List[str]]:
        """Return the lines of a Python source file by its absolute name; None if missing, or no source file."""
        if name in self._lines:
            self._lines.move_to_end(name)
            return self._lines[name][0]
        data = self.source(name)
        found = _text(data) if data is not None else None
        self._lines[name] = found, len(data or b"")
        self._bytes += len(data or b"")
        while len(self._lines) > 1 and (self._bytes > _MOST_BYTES or len(self._lines) > _MOST_FILES):
            self._bytes -= self._lines.popitem(last=False)[1][1]
        return found

    def parsed(self, name: str) -> Optional[ast.Module]:
        """Return the syntax tree of a source file of the program; None if it does not parse here.

        The source may have changed, or be for another version of Python. None for the
        standard library too, whose files are not parsed.
        """
        if is_stdlib(name):
            return None
        if name not in self._trees:
            self._trees[name] = _tree(self.lines(name))
            while len(self._trees) > _MOST_TREES:
                self._trees.popitem(last=False)
        return self._trees[name]

    def open(self, name: str) -> int:
        """Open any regular file for reading; return its descriptor. Raises OSError."""
        if self._reader is not None:
            return self._reader.open(posixpath.normpath(name) if self._normal else name)
        if self._programs is not None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)

    def open_mapped(self, name: str) -> int:
        """Open a file with our own rights; the caller checks that its content was mapped by the process. Raises OSError."""
        if self._programs is None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        return self._programs().open(name)

    def source(self, name: str, most: int = _MAX_FILE) -> Optional[bytes]:
        """Return the content of a Python source file; None as for ``lines``."""
        if not name.startswith("/") or not name.endswith(SUFFIXES):
            return None
        if self._reader is None:
            self._note(name, self._refused)
            return None
        try:
            return self._reader.read(posixpath.normpath(name) if self._normal else name, most, SUFFIXES)
        except Lost:
            self._note(name, "late")
        except OSError as exc:
            self._note(name, _CODES.get(exc.errno or 0, ""))
        except ValueError:
            pass  # not a file name
        return None

    def _note(self, name: str, code: str) -> None:
        if code and len(self.unread) < _MOST_FILES:
            self.unread[name] = code

    def why(self, name: str) -> Optional[str]:
        """Return why an existing file was not read, or None."""
        code = self.unread.get(name)
        return REASONS[code][0] if code is not None else None

    def close(self) -> None:
        """End the reader."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None


NO_FILES = Files(None)


class Kept(Root):
    """A root directory in a bundle, with normalised names and without links."""

    def rights(self) -> Optional[Rights]:
        """Return the rights of the owner of these copies: other users' files may be hard links."""
        owner = os.fstat(self.descriptor).st_uid
        return users.of_user(owner) if os.geteuid() == 0 and owner else None


#: Root number → root directory, 0: our own; None when its files are unavailable. Raises OSError.
Place = Callable[[int], Optional[Root]]


def below(sysroot: Optional[Path], kept: Optional[Folder] = None) -> Place:
    """Return the place of each root directory: ``sysroot`` if given, else in the bundle, or on this machine."""

    def place(number: int) -> Optional[Root]:
        if sysroot is not None:
            return Root.at(str(sysroot))
        if not number:
            return Root.at("/")
        if kept is None:
            return None
        with kept.child(f"raw/roots/{number}") as folder:
            return Kept(os.dup(folder.descriptor), links=False)

    return place


class Shelves:
    """The files of all processes of one target.

    - ``owner``: uid of the bundle's or core's owner; rights recorded in a bundle are believed if that is us or root
    - ``helpers``: see foreign.children.Child

    Create what is needed before other threads are started; close it, or use ``with``.
    """

    def __init__(
        self, place: Place, *, owner: Optional[int] = None, helpers: Optional[MutableMapping[int, Optional[int]]] = None
    ) -> None:
        self._place, self._helpers = place, helpers
        self._is_root = os.geteuid() == 0
        self._owner = users.of_user(owner) if self._is_root and owner else None
        self._roots: Dict[int, Optional[Root]] = {}
        self._files: Dict[Tuple[int, Optional[Rights], bool], Files] = {}
        self._ours: Dict[int, Reader] = {}  # readers with our own rights

    def of(self, facts: Mapping[str, Any]) -> Files:
        """Return the files of the process with this ``process.json``; of any process of a lone core, if empty."""
        rights, mixed = self._owner, False
        if self._is_root and self._owner is None:
            rights, mixed = noted_rights(facts)
        number = facts.get("root")
        key = (number if type(number) is int else 0, rights, mixed)
        if key not in self._files:
            self._files[key] = self._made(*key)
        return self._files[key]

    def _made(self, number: int, rights: Optional[Rights], mixed: bool) -> Files:
        root = self._root(number)
        if root is None or len(self._files) >= _MOST_READERS:
            return Files(None, NOT_KEPT if number else "")
        if isinstance(root, Kept):  # copies: everything that its user could read was copied
            rights, mixed = root.rights(), False
        ours = functools.partial(self._reader_of_ours, number, root) if rights is not None or mixed else None
        if mixed:
            return Files(None, "ids", ours)
        try:
            return Files(Reader(root, rights, helpers=self._helpers), "", ours, normal=isinstance(root, Kept))
        except OSError:  # no child can be started
            return Files(None)

    def _root(self, number: int) -> Optional[Root]:
        if number not in self._roots:
            try:
                self._roots[number] = self._place(number)
            except (OSError, ValueError):
                self._roots[number] = None
        return self._roots[number]

    def _reader_of_ours(self, number: int, root: Root) -> Reader:
        """Return a reader with our own rights; raise OSError when no child can be started."""
        if number not in self._ours:
            self._ours[number] = Reader(root, helpers=self._helpers)
        return self._ours[number]

    def close(self) -> None:
        """End the readers and close the roots."""
        for files in self._files.values():
            files.close()
        for reader in self._ours.values():
            reader.close()
        for root in self._roots.values():
            if root is not None:
                root.close()

    def __enter__(self) -> Shelves:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def noted_rights(facts: Mapping[str, Any]) -> Tuple[Optional[Rights], bool]:
    """Return (the rights in ``process.json`` or None, whether the process has those of several users)."""
    if "rights" not in facts:
        return None, False
    rights = users.of_json(facts["rights"])
    if rights is None:
        return None, True
    return rights._replace(reads_all=facts.get("reads_all") is True), False


def _text(data: bytes) -> List[str]:
    try:
        encoding, _lines = tokenize.detect_encoding(BytesIO(data).readline)
        return data.decode(encoding, "backslashreplace").splitlines()
    except (SyntaxError, LookupError):
        return data.decode("utf-8", "backslashreplace").splitlines()


def _tree(texts: Optional[List[str]]) -> Optional[ast.Module]:
    try:
        return ast.parse("\n".join(texts), filename="") if texts is not None else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
