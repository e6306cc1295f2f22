"""Look-up of names below another root directory: of a container, a chroot, a sysroot, or kept in a bundle.

Absolute names and absolute symbolic links start from that root, as for the processes inside, and nothing, not even
``..``, leads out of it. openat2(2) with RESOLVE_IN_ROOT does this (Linux 5.6). Where the kernel or a seccomp filter
refuses it, each component is opened by itself, links are followed here, and ``..`` returns to a directory that is still
held, never to one named by the file system.

Source: openat2(2).
"""

from __future__ import annotations

import errno
import os
import stat
from typing import List, Optional

from .files import reopen
from .kinds import PROC, kind_of
from .openat2 import IN_ROOT, NO_MAGICLINKS, NO_SYMLINKS, NotThere, openat2
from .ways import HeldDirectory

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
#: Symbolic links in one look-up, as the kernel's own limit (MAXSYMLINKS), and components of the name.
_MOST_LINKS, _MOST_PARTS = 40, 4096
#: Bytes of a name with its final NUL (PATH_MAX), and the inode of procfs's root directory (PROC_ROOT_INO).
_MOST_BYTES, _PROC_ROOT = 4096, 1


class Root(HeldDirectory):
    """A directory used as root. ``Root.at`` opens a path; close it, or use ``with``."""

    def __init__(self, descriptor: int, *, links: bool = True) -> None:
        """Take ownership of a directory's descriptor; ``links``: whether symbolic links below it are followed at all."""
        super().__init__(descriptor)
        self._links = links

    @classmethod
    def at(cls, path: str, *, links: bool = True, folder: Optional[int] = None) -> Root:
        """Open the root at a path given by the user, whose own links are followed. Raises OSError."""
        return cls(os.open(path, _FOLDER, dir_fd=folder), links=links)

    def open(self, name: str) -> int:
        """Open a regular file for reading by its name below this root; return its descriptor.

        Raises OSError; files.Unfit unless it is a regular file.
        """
        held = self.hold(name)
        try:
            return reopen(held, name)
        finally:
            os.close(held)

    def hold(self, name: str) -> int:
        """Return an O_PATH descriptor of anything by its name below this root. Raises OSError."""
        try:
            size = len(os.fsencode(name))
        except UnicodeEncodeError:  # no file system has such a name
            size = 0
        if not size or "\0" in name:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        if size >= _MOST_BYTES:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), name)
        try:
            resolve = IN_ROOT | NO_MAGICLINKS | (0 if self._links else NO_SYMLINKS)
            return openat2(self.descriptor, name, os.O_PATH, resolve)
        except NotThere:
            return self._hold_by_steps(name)

    def _hold_by_steps(self, name: str) -> int:
        """Do the same without openat2(2)."""
        way: List[int] = []  # the directories from the root down, each held
        parts = list(reversed(_parts(name)))
        links = 0
        try:
            found = os.dup(self.descriptor)
            way.append(found)
            while parts:
                part = parts.pop()
                if part == ".":
                    continue
                if part == "..":
                    if len(way) > 1:
                        os.close(way.pop())
                    continue
                held = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=way[-1])
                mode = os.fstat(held).st_mode
                if stat.S_ISLNK(mode):
                    try:
                        links += 1
                        if (
                            not self._links
                            or links > _MOST_LINKS
                            or len(parts) > _MOST_PARTS
                            or _is_magic(held, way[-1])
                        ):
                            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
                        target = os.readlink("", dir_fd=held)
                    finally:
                        os.close(held)
                    if target.startswith("/"):
                        while len(way) > 1:
                            os.close(way.pop())
                    parts.extend(reversed(_parts(target)))
                elif parts and not stat.S_ISDIR(mode):
                    os.close(held)
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
                else:
                    way.append(held)
            return way.pop()
        finally:
            for each in way:
                os.close(each)


def _is_magic(link: int, folder: int) -> bool:
    """Return whether a link of procfs leads to an inode, not a path (exe, cwd, root, fd/3): all but those directly in /proc."""
    return kind_of(link) == PROC and os.fstat(folder).st_ino != _PROC_ROOT


def _parts(name: str) -> List[str]:
    """Split a name into components; a final slash or dot, which requires a directory, becomes a last component "."."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return [*parts, "."] if name.endswith(("/", "/.")) else parts
