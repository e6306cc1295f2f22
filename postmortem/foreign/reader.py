"""A child that reads files of a process: below its root directory, with its user's rights, within a deadline.

The target chooses which file a name means: a symbolic link, a file on a user-space file system that never responds, a
device. The child resolves the name, checks the result, and passes an open descriptor (programs and libraries) or the
content (sources). A file on a user-space or network file system is passed as a copy in memory, since reading it may
block as well.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from typing import Any, Callable, Iterable, MutableMapping, Optional, Tuple

from .children import Answer, Child, Lost
from .files import Unfit, pieces, read_descriptor, readable
from .kinds import may_block
from .rights import Rights, take
from .root import Root

#: Seconds for one file; and the number of children, since one that took longer is killed and replaced.
_ANSWER_S = 2.0
_MOST_CHILDREN = 3
#: Bytes of a file that is copied into memory because its file system may block.
_MOST_COPIED = 256 << 20


class Reader:
    """A reader below one root directory with one user's rights; None: this process's own.

    ``helpers``: see children.Child. The first child is started at once, before the caller has threads. Close it, or use
    ``with``.
    """

    def __init__(
        self,
        root: Root,
        rights: Optional[Rights] = None,
        *,
        helpers: Optional[MutableMapping[int, Optional[int]]] = None,
    ) -> None:
        self._root, self._rights, self._helpers = root, rights, helpers
        self._made = 0
        self._child: Optional[Child] = None
        self._start()

    def read(self, name: str, most: int, suffixes: Tuple[str, ...] = ()) -> bytes:
        """Return the content of a regular file of at most ``most`` bytes.

        ``suffixes``: allowed ends of its name after all links. Raises OSError: files.Unfit, PermissionError,
        children.Lost, …
        """
        return self._ask({"do": "read", "name": name, "most": most, "suffixes": suffixes}, most=most).data

    def copy(self, name: str, most: int, sink: Callable[[bytes], object], seconds: float = 30.0) -> None:
        """Pass a regular file of at most ``most`` bytes to ``sink``, piece by piece. Raises as ``read``."""
        self._ask({"do": "read", "name": name, "most": most, "suffixes": ()}, seconds, sink, most)

    def open(self, name: str) -> int:
        """Return a descriptor for reading a regular file, or a copy if its file system may block. Raises as ``read``."""
        answer = self._ask({"do": "open", "name": name})
        if answer.descriptor is None:
            raise Lost("its reader passed no file")
        if not stat.S_ISREG(os.fstat(answer.descriptor).st_mode):
            os.close(answer.descriptor)
            raise Lost("its reader passed something that is not a file")
        return answer.descriptor

    def size(self, name: str) -> int:
        """Return the size of a regular file in bytes. Raises as ``read``."""
        size = self._ask({"do": "size", "name": name}).value
        if not isinstance(size, int) or size < 0:
            raise Lost("its reader's answer made no sense")
        return size

    def _ask(
        self,
        request: Any,
        seconds: float = _ANSWER_S,
        sink: Optional[Callable[[bytes], object]] = None,
        most: int = 0,
    ) -> Answer:
        if self._child is None:
            raise Lost("files that the program names did not answer in time")
        try:
            return self._child.ask(request, time.monotonic() + seconds, sink, most)
        except OSError:  # Lost, or raised by the sink
            if self._child.lost:
                with contextlib.suppress(OSError):
                    self._start()
            raise

    def _start(self) -> None:
        self._child = None
        if self._made < _MOST_CHILDREN:
            self._made += 1
            self._child = Child(
                self._serve, prepare=self._prepare, keep=(self._root.descriptor,), helpers=self._helpers
            )

    def close(self) -> None:
        """End the child; the root still belongs to the caller."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ in the child

    def _prepare(self) -> None:
        if self._rights is not None:
            take(self._rights)

    def _serve(self, request: Any) -> Tuple[Any, Iterable[bytes], Optional[int]]:
        descriptor = self._root.open(request["name"])
        keep = False
        try:
            if request["do"] == "open":
                if may_block(descriptor):
                    return True, (), _copied(descriptor)
                keep = True
                return True, (), descriptor
            size = os.fstat(descriptor).st_size
            if request["do"] == "size":
                return size, (), None
            _check_name(descriptor, tuple(request["suffixes"]))
            if size > request["most"]:
                raise Unfit(f"is larger than {readable(request['most'])}", code=errno.EFBIG)
            if size <= 1 << 20:  # a failure to read it must be known before the answer begins
                return size, (read_descriptor(descriptor, request["most"]),), None
            keep = True
            return size, _closing(descriptor, size), None
        finally:
            if not keep:
                os.close(descriptor)


def _closing(descriptor: int, size: int) -> Iterable[bytes]:
    try:
        yield from pieces(descriptor, size)
    finally:
        os.close(descriptor)


def _check_name(descriptor: int, suffixes: Tuple[str, ...]) -> None:
    """Raise Unfit unless the file that a name leads to has one of the suffixes: a link app.py may lead to anything."""
    if suffixes and not os.readlink(f"/proc/self/fd/{descriptor}").endswith(suffixes):
        raise Unfit(f"leads to a file whose name does not end in {suffixes[0]}", code=errno.EBADF)


def _copied(descriptor: int) -> int:
    size = os.fstat(descriptor).st_size
    if size > _MOST_COPIED:
        raise Unfit("is too large to be copied from its file system", code=errno.EFBIG)
    copy = os.memfd_create("postmortem-copy", os.MFD_CLOEXEC)
    for piece in pieces(descriptor, size):
        view = memoryview(piece)
        while view:
            view = view[os.write(copy, view) :]
    return copy
