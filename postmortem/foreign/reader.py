"""Files of a process, read by a child: below the process's root, with the rights of its user, and never waited for.

The file that a name means is the target's choice: a symbolic link, a file system in user space that never answers, a
device. The child resolves the name, checks what it has come to, and hands over an open descriptor (programs and libraries)
or the content (sources). A file that lies in a file system of user space, or on the network, is handed over as a copy in
memory: reading it may block as well.
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

#: How long one file may take. A child that took longer is given up, and another one takes its place, so often.
_ANSWER_S = 2.0
_MOST_CHILDREN = 3
#: Bytes of a file that is copied into memory, because its file system may block.
_MOST_COPIED = 256 << 20


class Reader:
    """Reads below one root with one user's rights; None: this process's own. ``helpers``: see children.Child. The first
    child is made at once, before the caller has threads. Close it, or leave its ``with``."""

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
        """Return the content of a regular file of at most ``most`` bytes. ``suffixes``: what the name that it has after all
        links must end with. Raises OSError: files.Unfit, PermissionError, children.Lost, …"""
        return self._ask({"do": "read", "name": name, "most": most, "suffixes": suffixes}, most=most).data

    def copy(self, name: str, most: int, sink: Callable[[bytes], object], seconds: float = 30.0) -> None:
        """Hand a regular file of at most ``most`` bytes to ``sink``, piece by piece. Raises as ``read``."""
        self._ask({"do": "read", "name": name, "most": most, "suffixes": ()}, seconds, sink, most)

    def open(self, name: str) -> int:
        """Return a descriptor to read a regular file; of one whose file system may block, of a copy. Raises as ``read``."""
        answer = self._ask({"do": "open", "name": name})
        if answer.descriptor is None:
            raise Lost("its reader handed over no file")
        if not stat.S_ISREG(os.fstat(answer.descriptor).st_mode):
            os.close(answer.descriptor)
            raise Lost("its reader handed over what is no file")
        return answer.descriptor

    def size(self, name: str) -> int:
        """Return how many bytes a regular file has. Raises as ``read``."""
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
        except OSError:  # Lost, or the sink's own
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
        """End the child; the root stays the caller's."""
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
            if size <= 1 << 20:  # a failure to read it is to be told before the answer begins
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
    """A link called app.py may lead to anything; what it leads to must be what was asked for."""
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
