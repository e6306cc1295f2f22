"""Locks on files, from the kernel's table: who has the one that a thread waits for.

A POSIX lock belongs to a process. A flock or an OFD lock belongs to an open file, which children inherit: whoever has a
descriptor of that can give the lock back (flock(2), LOCK_UN), be it the process that took it or not.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..evidence import Resource, Waker
from .connections import Connections

_NAMES = {"FLOCK": "flock", "POSIX": "fcntl/lockf", "OFDLCK": "open file description lock"}
_MODES = {"WRITE": "exclusive", "READ": "shared"}


class _Lock(NamedTuple):
    row: Dict[str, Any]
    path: Optional[str]
    through: List[Tuple[int, int]]  # (pid, descriptor) through which it is held


def file_lock(known: Connections, pid: int, path: Optional[str], ident: str, waiters: Tuple[int, ...]) -> Resource:
    """The lock on a file that threads of a process wait for."""
    lock = _waited_for(known, pid, path)
    if lock is None:
        return Resource(id=ident, kind="file-lock", description=f"lock on {path or 'a file'}", waiters=waiters)
    row = lock.row
    holders, whole = _holders(known, lock)
    how = f"{_NAMES.get(str(row.get('kind')), 'lock')}, {_MODES.get(str(row.get('mode')), 'held')}"
    because = [f"the kernel's table of locks has it as {row.get('kind')} {row.get('mode')} of PID {row.get('pid')}"]
    because += [f"{known.called(p)} holds it through its descriptor {fd}" for p, fd in lock.through[:4] if fd >= 0]
    taker = row.get("pid")
    if isinstance(taker, int) and taker > 0 and taker not in holders and holders:
        fate = "is no more" if _is_dead(known, taker, row) else "no longer has it open"
        because.append(f"{known.called(taker)} took it and {fate}; the lock went on with the descriptor")
    major, minor = row["device"] if isinstance(row.get("device"), list) and len(row["device"]) == 2 else (0, 0)
    return Resource(
        id=ident, kind="file-lock", description=f"lock on {lock.path or path or 'a file'} ({how})",
        owner_pid=holders[0] if len(holders) == 1 and whole else None,
        owner_basis="recorded" if len(holders) == 1 and whole else None, closed=True if whole and holders else None,
        wakers=tuple(Waker("holder", "kernel", pid=holder, name=known.program(holder)) for holder in holders),
        because=tuple(because), locked=True, waiters=waiters,
        key=f"file:{major}:{minor}:{row.get('inode')}",
    )  # fmt: skip


def _waited_for(known: Connections, pid: int, path: Optional[str]) -> Optional[_Lock]:
    """Of several files that the process waits for, the one with this path."""
    files = known.net.get("locked_files")
    files = files if isinstance(files, dict) else {}
    found = []
    rows = known.net.get("locks")
    for row in rows if isinstance(rows, list) else ():
        waits = row.get("waits") if isinstance(row, dict) else None
        if not isinstance(waits, list) or not any(isinstance(w, dict) and w.get("pid") in (pid, -1) for w in waits):
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
        found.append(_Lock(row, path if path in same else next(iter(same), None), through))
    exact = [lock for lock in found if path is not None and lock.path == path]
    return (exact or found or [None])[0]  # type: ignore[list-item]


def _holders(known: Connections, lock: _Lock) -> Tuple[Tuple[int, ...], bool]:
    """Who can give it back, and whether these are all."""
    kind, taker = lock.row.get("kind"), lock.row.get("pid")
    took = (taker,) if isinstance(taker, int) and taker > 0 else ()
    if kind == "POSIX":
        return took, bool(took)
    holders = tuple(dict.fromkeys(pid for pid, _fd in lock.through))
    others = known.ends_beyond(lock.path) if lock.path is not None else ()
    strangers = {
        end.pid for end in others
    }  # each may have opened the file for itself, or have inherited this very lock
    everyone, _how = known.all_holders((lock.path or "",), others)
    return holders or took, everyone and strangers <= (set() if holders else set(took))


def _is_dead(known: Connections, pid: int, row: Dict[str, Any]) -> bool:
    if known.in_tree(pid):
        return str(known.fact(pid, "state"))[:1] in ("Z", "X")
    return row.get("alive") is not True
