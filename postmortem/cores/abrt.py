"""abrt's problem directories (``/var/spool/abrt/ccpp-*``) → the core inside.

Layout: one file for each item, the core in ``coredump``; ``environ`` is never read. Sources: abrt's
doc/problem-directory items and src/hooks/abrt-hook-ccpp.c (2.14).
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Iterator, Optional

from ..errors import CoreGone, NotACore, PermissionRefused
from ..evidence import Gap, Origin
from ..foreign.files import pieces
from ..foreign.held import Folder
from . import containers
from .store import Stored, refusals, signal_name, whose, words
from .unpacked import in_this_process

_MARKS = ("analyzer", "type", "reason", "time")
_CORES = ("coredump", "coredump.zst", "coredump.lz4", "coredump.xz", "coredump.gz")
_MOST = 64 << 10
_SIGNAL = re.compile(r"killed by SIG([A-Z0-9]+)|killed by signal (\d{1,3})")
_KEEPS = "abrt keeps at most MaxCrashReportsSize (/etc/abrt/abrt.conf), and abrt-action-trim-files removes the largest"


def is_problem(folder: Path) -> bool:
    """Return whether a directory has the items that all problem directories have."""
    try:
        with Folder.at(str(folder)) as held:
            return sum(map(held.has, _MARKS)) >= 2 and any(map(held.has, ("time", *_CORES)))
    except OSError:
        return False


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Stored]:
    """Open the core inside. Raises CoreGone, PermissionRefused, NotACore."""
    with contextlib.ExitStack() as files:
        try:
            folder = files.enter_context(Folder.at(str(path)))
        except OSError as exc:
            raise NotACore(f"{path} cannot be read: {exc.strerror}", "check the path and its permissions") from None
        items = _Items(folder, path)
        origin = _origin(path, items)
        last = next((name for name in _CORES if folder.has(name)), _CORES[0])
        kind = items["type"] or items["analyzer"] or "CCpp"
        if kind != "CCpp" and not folder.has(last):
            raise CoreGone(
                f"{path} is a problem of kind {kind}, which has no core", "its file `backtrace` says what happened"
            )
        named = f"{path / last}"
        with refusals(named, whose(origin), _KEEPS):
            descriptor = folder.open(last)
        files.callback(os.close, descriptor)
        root = _root(folder, items)
        gaps = []
        if root is not None:
            files.callback(os.close, root)
        elif origin.container is not None:
            gaps.append(Gap.of("core", named, "container-files", container=origin.container))
        held = None if root is None else in_this_process(root)
        yield Stored(
            in_this_process(descriptor),
            named,
            origin,
            words(items["cmdline"]),
            items["executable"],
            held,
            tuple(gaps),
            folder.owner or None,
        )


def _root(folder: Folder, items: _Items) -> Optional[int]:
    """Return a descriptor of the container's root directory, where it still exists.

    It is named by an item, which is believed only in a directory that no user but root and ourselves can have written.
    """
    status = os.fstat(folder.descriptor)
    named = items["rootdir"]
    if not named or named == "/" or status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
        return None
    return containers.root(None, None, named)


def _origin(folder: Path, items: _Items) -> Origin:
    exe, moment = items["executable"], items["time"] or ""
    pid = items["global_pid"] or items["pid"] or ""
    found = _SIGNAL.search(items["reason"] or "")
    container = items["container_id"] or items["container_uuid"]
    return Origin(
        store="abrt",
        core=str(folder),
        pid=int(pid) if re.fullmatch(r"\d{1,10}", pid) else None,
        command=Path(exe).name if exe else None,
        signal=(f"SIG{found[1]}" if found[1] else signal_name(int(found[2]))) if found else None,
        time=float(moment) if re.fullmatch(r"\d{1,12}", moment) else None,
        hostname=items["hostname"],
        container=container[:12] if container else None,
    )


class _Items:
    """The items of a problem directory as texts; None for one that is missing, empty, or no regular file."""

    def __init__(self, folder: Folder, path: Path) -> None:
        self._folder, self._path = folder, path

    def __getitem__(self, name: str) -> Optional[str]:
        try:
            descriptor = self._folder.open(name)
            try:
                return b"".join(pieces(descriptor, _MOST)).decode("utf-8", "replace").strip() or None
            finally:
                os.close(descriptor)
        except PermissionError:
            raise PermissionRefused(
                f"{self._path} may not be read by this user", "run as root, or as its user"
            ) from None
        except OSError:
            return None
