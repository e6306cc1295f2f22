"""Directories held by descriptor, and the files written into them.

A path is looked up anew by every call; any user with write permission to a directory on it can replace a component by
another directory or a symbolic link between two calls. So a directory is opened once and checked, and everything in it
is made, written, renamed and read relative to its descriptor, never through a link, and only downwards: a name with
``..`` is refused. A directory that we created exclusively and hold is safe in any parent directory.

Names below a held directory are resolved by openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, and component by
component with O_NOFOLLOW where the kernel lacks it.
"""

# Paths are strings here: names below them are looked up by descriptor, and abspath follows no link.
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
    """A held directory, made by ``create``, ``take_over`` or ``at``; close it, or use ``with``."""

    # ------------------------------------------------------------------ making and opening

    @classmethod
    def create(cls, path: str) -> Folder:
        """Make a new directory, mode 0700, and its parents; hold it.

        Raises OSError: FileExistsError when the name is taken, Unsafe when another user's link leads there.
        """
        parent, name = os.path.split(os.path.abspath(path))
        above = walk(parent, make=True)
        try:
            os.mkdir(name, 0o700, dir_fd=above)
            folder = cls(os.open(name, _FOLDER, dir_fd=above))
        finally:
            os.close(above)
        try:
            folder._check(path)  # it may have been replaced in between, by another directory of ours, too
            if folder.names(most=1):
                raise Unsafe("was replaced while it was created", path)
            os.fchmod(folder.descriptor, 0o700)  # independent of the umask
        except BaseException:
            folder.close()
            raise
        return folder

    @classmethod
    def take_over(cls, path: str) -> Folder:
        """Hold an existing directory that is ours and that no other user can write to.

        Raises OSError; Unsafe for any other.
        """
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
        """Remove everything in it, following no link; what cannot be removed stays."""
        for name in self.names():
            self.remove(name)
            self.remove_tree(name)

    @classmethod
    def at(cls, path: str, folder: Optional[int] = None) -> Folder:
        """Hold a directory of any user for reading; links on the path, the user's own choice, are followed. Raises OSError."""
        return cls(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder))

    def _check(self, path: str) -> None:
        found = os.fstat(self.descriptor)
        if found.st_uid != os.geteuid():
            raise Unsafe(f"it belongs to user {found.st_uid}", path)
        if found.st_mode & 0o022:
            raise Unsafe("other users may write to it", path)

    @property
    def path(self) -> str:
        """Path of this very directory, valid in this process and its forked children while it is held."""
        return f"/proc/self/fd/{self.descriptor}"

    @property
    def free(self) -> int:
        """Free bytes on its disk. Raises OSError."""
        found = os.fstatvfs(self.descriptor)
        return found.f_bavail * found.f_frsize

    def unnamed(self) -> int:
        """Create an unnamed file on its disk, which disappears with its descriptor; return that. Raises OSError."""
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
        """Uid of its owner."""
        return os.fstat(self.descriptor).st_uid

    # ------------------------------------------------------------------ what is below it

    def below(self, name: str, *, make: bool = False) -> Tuple[int, str]:
        """Return (descriptor of the directory that contains a relative name, its last component); the caller closes it.

        ``make``: make missing directories on the way, mode 0700. Raises OSError; ValueError for a name that is
        absolute, empty, or leads upwards.
        """
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
        """Hold a directory below this one, following no link. Raises as ``below``."""
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
        """Open a new file, mode 0600, under a temporary name in the directory of ``name``.

        It is renamed to ``name`` when the block ends, and removed when the block fails. Raises as ``below``.
        """
        at, last = self.below(name, make=True)
        temporary = f".{last}.part"
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=at)  # left by an interrupted run
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
        """Give a file in this directory a second name. Raises as ``below``."""
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
        """Open a regular file below this directory for reading, following no link; return its descriptor.

        In another user's directory only that user's files are opened: another one may be a hard link that was put
        there. Raises as ``below``, and files.Unfit.
        """
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
        """Return the names in a directory below this one, sorted, at most ``most``; none when it is missing."""
        try:
            # opened anew: duplicates of a descriptor, also in other processes, share the position in the listing
            held = self.child(name) if name else Folder(os.open(".", _FOLDER, dir_fd=self.descriptor))
        except (OSError, ValueError):
            return []
        with held, os.scandir(held.descriptor) as entries:
            return sorted(entry.name for entry, _count in zip(entries, range(most)))

    def has(self, name: str) -> bool:
        """Return whether a regular file or a directory of that name is below this one, reached without a link."""
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
        """Remove anything but a directory below this one; does nothing when that fails."""
        with contextlib.suppress(OSError, ValueError):
            at, last = self.below(name)
            try:
                os.unlink(last, dir_fd=at)
            finally:
                os.close(at)

    def remove_tree(self, name: str) -> None:
        """Remove a directory below this one with its content, following no link; what cannot be removed stays."""
        try:
            inside = self.child(name)
        except (OSError, ValueError):
            return
        with inside, contextlib.suppress(OSError, RecursionError):  # too deep for descriptors or the stack
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
    """Hold a directory of ours, made when missing, on a path that no other user can change.

    Every directory on the path is ours or root's; others may write to it only with the sticky bit, which keeps them
    from renaming files of others. Raises OSError; Unsafe for any other path.
    """
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
    """Return the descriptor of the next directory down, and close ``at``."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, 0o700, dir_fd=at)
    found = os.open(part, _FOLDER, dir_fd=at)
    os.close(at)
    return found
