"""Directories held by descriptor, and what is written into them.

A path is looked up anew by every call; whoever may write to one of its directories can put another directory, or a
symbolic link, in between two calls. So a directory is opened once, checked, and everything in it is made, written, renamed
and read relative to its descriptor, never through a link, and only ever downwards: a name with ``..`` is refused. What we
made exclusively and hold is ours in any parent directory.

Names below a held directory are resolved by openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, and component by
component with O_NOFOLLOW where the kernel lacks it.
"""

# Paths are strings here: what is below them is looked up by descriptor, and abspath follows no link.
# ruff: noqa: PTH100, PTH120

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import BinaryIO, Iterator, List, Optional, Tuple

from .files import Unfit, open_regular, read_descriptor
from .openat2 import BENEATH, NO_MAGICLINKS, NO_SYMLINKS, NotThere, openat2
from .ways import HeldDirectory, Unsafe, walk
from .writing import NEW, write_all

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Folder(HeldDirectory):
    """A directory that is held. Make one with ``create``, ``take_over`` or ``at``; close it, or leave its ``with``."""

    # ------------------------------------------------------------------ making and opening

    @classmethod
    def create(cls, path: str) -> Folder:
        """Make a directory that was not there, mode 0700, and its parents; hold it. Raises OSError: FileExistsError when
        there is something, Unsafe when a link of another user's leads there."""
        parent, name = os.path.split(os.path.abspath(path))
        above = walk(parent, make=True)
        try:
            os.mkdir(name, 0o700, dir_fd=above)
            folder = cls(os.open(name, _FOLDER, dir_fd=above))
        finally:
            os.close(above)
        try:
            folder._check(path)  # it might have been replaced in between, by another one of ours, too
            if folder.names(most=1):
                raise Unsafe("was replaced while it was made", path)
            os.fchmod(folder.descriptor, 0o700)  # whatever the umask says
        except BaseException:
            folder.close()
            raise
        return folder

    @classmethod
    def take_over(cls, path: str) -> Folder:
        """Hold a directory that is there, provided that it is ours and nobody else may write to it. Raises OSError;
        Unsafe when it is not."""
        descriptor = walk(os.path.abspath(path))
        try:
            folder = cls(os.open(".", _FOLDER, dir_fd=descriptor))
        finally:
            os.close(descriptor)
        try:
            folder._check(path)
        except BaseException:
            folder.close()
            raise
        return folder

    def empty(self) -> None:
        """Remove all that is in it, following nothing; what cannot be removed stays."""
        for name in self.names():
            self.remove(name)
            self.remove_tree(name)

    @classmethod
    def at(cls, path: str, folder: Optional[int] = None) -> Folder:
        """Hold a directory to read from it, whosever it is: links on the way are the user's own choice. Raises OSError."""
        return cls(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder))

    def _check(self, path: str) -> None:
        found = os.fstat(self.descriptor)
        if found.st_uid != os.geteuid():
            raise Unsafe(f"it belongs to user {found.st_uid}", path)
        if found.st_mode & 0o022:
            raise Unsafe("other users may write to it", path)

    @property
    def path(self) -> str:
        """A path to this very directory, for this process and the children that it forks, as long as it is held."""
        return f"/proc/self/fd/{self.descriptor}"

    @property
    def free(self) -> int:
        """Bytes that are free on its disk. Raises OSError."""
        found = os.fstatvfs(self.descriptor)
        return found.f_bavail * found.f_frsize

    def unnamed(self) -> int:
        """Return a descriptor of a new file on its disk that has no name, so that nothing of it is left behind. Raises
        OSError."""
        try:
            return os.open(".", os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600, dir_fd=self.descriptor)
        except OSError as exc:  # a file system without O_TMPFILE (NFS, overlay on an old kernel)
            if exc.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
        name = f".unnamed-{os.getpid()}"
        descriptor = os.open(name, NEW, 0o600, dir_fd=self.descriptor)
        os.unlink(name, dir_fd=self.descriptor)
        return descriptor

    @property
    def owner(self) -> int:
        """The user that it belongs to."""
        return os.fstat(self.descriptor).st_uid

    # ------------------------------------------------------------------ what is below it

    def below(self, name: str, *, make: bool = False) -> Tuple[int, str]:
        """Return (descriptor of the directory that a relative name lies in, its last component); the caller closes the
        descriptor. ``make``: directories on the way that are missing, mode 0700. Raises OSError; ValueError for a name that
        is absolute, empty, or leads upwards."""
        parts = parts_of(name)
        if len(parts) == 1:
            return os.dup(self.descriptor), parts[0]
        with contextlib.suppress(NotThere, FileNotFoundError):
            way = "/".join(parts[:-1])
            return openat2(self.descriptor, way, _FOLDER, BENEATH | NO_SYMLINKS | NO_MAGICLINKS), parts[-1]
        at = os.dup(self.descriptor)
        for part in parts[:-1]:
            try:
                at = _step(at, part, make)
            except BaseException:
                os.close(at)
                raise
        return at, parts[-1]

    def child(self, name: str, *, make: bool = False) -> Folder:
        """Hold a directory below this one; no link is followed. Raises as ``below``."""
        at, last = self.below(name, make=make)
        try:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(last, 0o700, dir_fd=at)
            return Folder(os.open(last, _FOLDER, dir_fd=at))
        finally:
            os.close(at)

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """A new file, mode 0600, under a temporary name beside ``name``; it takes that name when the block ends, and is removed
        when it fails. Raises as ``below``."""
        at, last = self.below(name, make=True)
        temporary = f".{last}.part"
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=at)  # an interrupted run of ours left it
            descriptor = os.open(temporary, NEW, 0o600, dir_fd=at)
            try:
                with open(descriptor, "r+b", buffering=0) as stream:
                    os.fchmod(descriptor, 0o600)
                    yield stream
                os.rename(temporary, last, src_dir_fd=at, dst_dir_fd=at)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=at)
                raise
        finally:
            os.close(at)

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file. Raises as ``writing``."""
        with self.writing(name) as stream:
            write_all(stream, data)

    def link(self, old: str, new: str) -> None:
        """Give a file of this folder a second name. Raises as ``below``."""
        before, last = self.below(old)
        try:
            after, name = self.below(new, make=True)
            try:
                os.link(last, name, src_dir_fd=before, dst_dir_fd=after, follow_symlinks=False)
            finally:
                os.close(after)
        finally:
            os.close(before)

    def open(self, name: str) -> int:
        """Return a descriptor to read a regular file below this one; no link is followed. In another user's directory, only a
        file of that user's: it may have been given a second name there (a hard link), which shows nothing of whose it is.
        Raises as ``below``, and files.Unfit."""
        at, last = self.below(name)
        try:
            descriptor = open_regular(last, folder=at, follow=False)
        finally:
            os.close(at)
        owner = self.owner
        if owner != os.geteuid() and os.fstat(descriptor).st_uid != owner:
            os.close(descriptor)
            raise Unfit("does not belong to the user whose directory it lies in", name)
        return descriptor

    def read(self, name: str, most: int) -> bytes:
        """Return the content of a regular file below this one, of at most ``most`` bytes. Raises as ``open``."""
        descriptor = self.open(name)
        try:
            return read_descriptor(descriptor, most, name)
        finally:
            os.close(descriptor)

    def names(self, name: str = "", most: int = 100_000) -> List[str]:
        """Return the names in a directory below this one, sorted, the first ``most`` that the system tells; none when it
        is not there."""
        try:
            # Opened anew: descriptors that were duplicated, in this process or another, share their place in the list.
            held = self.child(name) if name else Folder(os.open(".", _FOLDER, dir_fd=self.descriptor))
        except (OSError, ValueError):
            return []
        with held, os.scandir(held.descriptor) as entries:
            return sorted(entry.name for entry, _count in zip(entries, range(most)))

    def has(self, name: str) -> bool:
        """Whether a regular file or a directory of that name lies below this one, reached without a link."""
        try:
            at, last = self.below(name)
        except (OSError, ValueError):
            return False
        try:
            mode = os.stat(last, dir_fd=at, follow_symlinks=False).st_mode
        except OSError:
            return False
        finally:
            os.close(at)
        return stat.S_ISREG(mode) or stat.S_ISDIR(mode)

    def remove(self, name: str) -> None:
        """Remove what is not a directory below this one; nothing when it cannot be."""
        with contextlib.suppress(OSError, ValueError):
            at, last = self.below(name)
            try:
                os.unlink(last, dir_fd=at)
            finally:
                os.close(at)

    def remove_tree(self, name: str) -> None:
        """Remove a directory below this one with all that is in it, following nothing; what cannot be removed stays."""
        try:
            inside = self.child(name)
        except (OSError, ValueError):
            return
        with inside, contextlib.suppress(OSError, RecursionError):  # deeper than descriptors and the stack go
            with os.scandir(inside.descriptor) as entries:
                found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            for entry, is_folder in found:
                if is_folder:
                    inside.remove_tree(entry)
                else:
                    inside.remove(entry)
        with contextlib.suppress(OSError):
            at, last = self.below(name)
            try:
                os.rmdir(last, dir_fd=at)
            finally:
                os.close(at)


def own(path: str) -> Folder:
    """Hold a directory that is ours, made when it is missing, in a place that nobody else can change: every directory on the way
    to it is ours or root's, and others may write to it only where they cannot rename what is not theirs (the sticky bit).
    Raises OSError; Unsafe when it is not so."""
    way = os.path.abspath(path)
    os.close(walk(os.path.dirname(way), make=True, trusted=True))
    try:
        return Folder.create(way)
    except FileExistsError:
        return Folder.take_over(way)


def parts_of(name: str) -> List[str]:
    """Return the components of a relative name. Raises ValueError for one that is absolute, empty, or leads upwards."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise ValueError(f"not a name below a folder: {name!r}")
    return parts


def _step(at: int, part: str, make: bool) -> int:
    """Go down one directory; closes ``at`` when it succeeds."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, 0o700, dir_fd=at)
    found = os.open(part, _FOLDER, dir_fd=at)
    os.close(at)
    return found
