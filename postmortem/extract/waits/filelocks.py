"""Locks on files and their holders, from the kernel's table of locks.

- A POSIX lock belongs to a process.
- A flock or OFD lock belongs to an open file description, which children inherit. Every process with a descriptor of it
  can release the lock (flock(2), LOCK_UN), even if another process took it.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ...evidence import Resource, Waker, fact
from ..recorded.connections import Connections

_NAMES = {"FLOCK": "flock", "POSIX": "fcntl/lockf", "OFDLCK": "open file description lock"}
_SQLITE_LOCKS = 0x40000000
_MODES = {"WRITE": "exclusive", "READ": "shared"}


class _Lock(NamedTuple):
    row: Dict[str, Any]
    path: Optional[str]
    through: List[Tuple[int, int]]  # (pid, descriptor) pairs that hold it


def file_lock(
    known: Connections, pid: int, path: Optional[str], ident: str, waiters: Tuple[int, ...], polled: bool = False
) -> Resource:
    """Return the file lock that threads of a process wait for.

    ``polled``: the threads poll for it, so that the kernel does not list them as waiters.
    """
    lock = _in_the_way(known, pid, path) if polled else _waited_for(known, pid, path)
    if lock is None:
        return Resource(id=ident, kind="file-lock", description=f"lock on {path or 'a file'}", waiters=waiters)
    row = lock.row
    holders, whole = _holders(known, lock)
    how = f"{_NAMES.get(str(row.get('kind')), 'lock')}, {_MODES.get(str(row.get('mode')), 'held')}"
    kind, mode, taken_by = (str(row.get(key)) for key in ("kind", "mode", "pid"))
    because = [fact("kernel-lock", kind=kind, mode=mode, pid=taken_by)]
    because += [fact("held-through", process=known.called(p), fd=fd) for p, fd in lock.through[:4] if fd >= 0]
    taker = row.get("pid")
    if isinstance(taker, int) and taker > 0 and taker not in holders and holders:
        dead = _is_dead(known, taker, row)
        because.append(fact("taker-is-no-more" if dead else "taker-has-closed", process=known.called(taker)))
    major, minor = row["device"] if isinstance(row.get("device"), list) and len(row["device"]) == 2 else (0, 0)
    return Resource(
        id=ident,
        kind="file-lock",
        description=f"lock on {lock.path or path or 'a file'} ({how})",
        owner_pid=holders[0] if len(holders) == 1 and whole else None,
        owner_basis="recorded" if len(holders) == 1 and whole else None,
        closed=True if whole and holders else None,
        wakers=tuple(Waker("holder", "kernel", pid=holder, name=known.program(holder)) for holder in holders),
        because=tuple(because),
        locked=True,
        waiters=waiters,
        key=f"file:{major}:{minor}:{row.get('inode')}",
    )


def polled_file(known: Connections, pid: int, paths: Sequence[str], sqlite: bool = False) -> Optional[str]:
    """Return the first path whose file is locked against the process; locks of other processes come first."""
    rows = {path: [lock.row for lock in _locks(known) if lock.path == path] for path in paths}
    refused = [path for path in paths if any(not sqlite or _is_sqlite(path, row) for row in rows[path])]
    others = [path for path in refused if any(row.get("pid") != pid for row in rows[path])]
    return next(iter(others or refused), None)


def _is_sqlite(path: str, row: Dict[str, Any]) -> bool:
    """Return whether a lock covers the bytes that SQLite locks.

    - a database: 0x40000000 to 0x400001ff (sqlite.org/fileformat2.html, the lock-byte page)
    - the index of its write-ahead log: from 120 on (walformat.html)
    """
    first = row.get("first")
    if row.get("kind") not in ("POSIX", "OFDLCK") or not isinstance(first, int):
        return False
    return _SQLITE_LOCKS <= first < _SQLITE_LOCKS + 512 or (path.endswith("-shm") and 120 <= first < 128)


def _in_the_way(known: Connections, pid: int, path: Optional[str]) -> Optional[_Lock]:
    """Return the lock that keeps others from a file.

    Another process's lock precedes the process's own, then an exclusive lock a shared one.
    """
    locks = [lock for lock in _locks(known) if lock.path == path]
    return min(locks, key=lambda lock: (lock.row.get("pid") == pid, lock.row.get("mode") != "WRITE"), default=None)


def _waited_for(known: Connections, pid: int, path: Optional[str]) -> Optional[_Lock]:
    """Return the lock that the process waits for; of several, the one on this path."""
    found = []
    for lock in _locks(known, path):
        waits = lock.row.get("waits")
        if isinstance(waits, list) and any(isinstance(w, dict) and w.get("pid") in (pid, -1) for w in waits):
            found.append(lock)
    exact = [lock for lock in found if path is not None and lock.path == path]
    return (exact or found or [None])[0]  # type: ignore[list-item]


def _locks(known: Connections, path: Optional[str] = None) -> Iterator[_Lock]:
    """Yield all locks of the table; a file with several paths is shown under the given one."""
    files = known.net.get("locked_files")
    files = files if isinstance(files, dict) else {}
    rows = known.net.get("locks")
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict):
            continue
        same = {
            name: file
            for name, file in files.items()
            if isinstance(file, dict)
            and (file.get("device"), file.get("inode")) == (row.get("device"), row.get("inode"))
        }
        through = [
            (one[0], one[1])
            for file in same.values()
            for one in file.get("through") or ()
            if isinstance(one, list) and len(one) == 3 and str(row.get("kind")) in str(one[2])
        ]
        yield _Lock(row, path if path in same else next(iter(same), None), through)


def _holders(known: Connections, lock: _Lock) -> Tuple[Tuple[int, ...], bool]:
    """Return the processes that can release a lock, and whether these are all."""
    kind, taker = lock.row.get("kind"), lock.row.get("pid")
    took = (taker,) if isinstance(taker, int) and taker > 0 else ()
    if kind == "POSIX":
        return took, bool(took)
    holders = tuple(dict.fromkeys(pid for pid, _fd in lock.through))
    others = known.ends_beyond(lock.path) if lock.path is not None else ()
    strangers = {
        end.pid for end in others
    }  # each may have opened the file separately, or have inherited this very lock
    everyone, _how = known.all_holders((lock.path or "",), others)
    return holders or took, everyone and strangers <= (set() if holders else set(took))


def _is_dead(known: Connections, pid: int, row: Dict[str, Any]) -> bool:
    if known.in_tree(pid):
        return str(known.fact(pid, "state"))[:1] in ("Z", "X")
    return row.get("alive") is not True
