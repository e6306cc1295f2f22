"""What ties the tree's descriptors to each other and to the rest of the machine: ``net.json``.

Read while everything runs, just before the freeze; how full the pipes are, once more right after it. Nothing is stopped
for it. 500 processes with 2,000 descriptors take 0.1 s.
"""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Iterator, List, Mapping, Optional, Set, Tuple

from . import fdinfo, filelocks, filestat, network, parsers
from .buffered import Pidfds, fill, timeouts
from .facts import MOST_DESCRIPTORS, open_descriptors
from .peers import Holders

Descriptors = Mapping[int, Optional[Mapping[str, str]]]  # pid → descriptor → what it is; None: not to be read
Ends = Dict[str, List[List[Any]]]  # inode, or a FIFO's path → [pid, descriptor, mode]

_MOST_FILES = 4096  # that are asked what they are
_FILLING_S = 0.3
_PAGE = 4096


def net_json(root: int, descriptors: Descriptors, attached: bool = False) -> Dict[str, Any]:
    """All of it, of the processes in ``descriptors``. Tables that cannot be read are left out. ``attached``: the root was
    not started by us, so that it may have inherited what we do not have."""
    named = list(_named(descriptors))
    sockets = network.find_sockets(f"/proc/{root}/net", {_inode(t) for _p, _f, t in named if t.startswith("socket:[")})
    files = _files(named)
    pipes = _pipes(named, files)
    members = set(descriptors)
    locks = filelocks.file_locks(members, {(file.major, file.minor, file.inode) for file in files.values()})
    locked = {target for target, file in files.items() for lock in locks if _is(file, lock)}
    return {
        "sockets": sockets,
        "listening_ports": network.listening_ports(sockets),
        "pipes": pipes,
        "fill": fills(pipes),
        "timeouts": _timeouts(named),
        "known": sorted(
            pid for pid, table in descriptors.items() if table is not None and len(table) < MOST_DESCRIPTORS
        ),
        "special": _special(named),
        "inherited": sorted(_ours(named) | (_perhaps_inherited(root, named) if attached else set())),
        "in_flight": _in_flight(named, sockets),
        "locks": locks,
        "locked_files": _locked_files(named, files, locked),
        "beyond": _beyond(root, members, sockets, pipes, locked),
    }


def fills(pipes: Ends) -> Dict[str, Dict[str, Any]]:
    """How full each pipe is; see filling.fill. What there was no time for is left out."""
    until = time.monotonic() + _FILLING_S
    found: Dict[str, Dict[str, Any]] = {}
    with Pidfds() as pidfds:
        for name, ends in pipes.items():
            if time.monotonic() > until:
                break
            # the reader's side tells whether anybody can still write
            for pid, fd, mode in sorted(ends, key=lambda end: str(end[2]))[:4]:
                known = fill(pidfds, pid, fd)
                if known is not None:
                    found[name] = {**known, "side": mode}
                    break
    return found


def is_one_full(ties: Mapping[str, Any]) -> bool:
    """Is there a pipe with no room for a page, so that who writes to it may have to wait? ``ties``: as ``net_json`` gave."""
    return any(known["bytes"] > known["capacity"] - _PAGE for known in ties["fill"].values())


def _timeouts(named: List[Tuple[int, str, str]]) -> Dict[str, List[float]]:
    """A socket's inode → see filling.timeouts. What there was no time for is left out."""
    until = time.monotonic() + _FILLING_S
    found: Dict[str, List[float]] = {}
    with Pidfds() as pidfds:
        for pid, fd, target in named:
            if time.monotonic() > until:
                break
            if target.startswith("socket:[") and _inode(target) not in found:
                told = timeouts(pidfds, pid, int(fd))
                if told is not None:
                    found[_inode(target)] = told
    return found


def _named(descriptors: Descriptors) -> Iterator[Tuple[int, str, str]]:
    for pid, table in descriptors.items():
        for fd, target in (table or {}).items():
            yield pid, fd, target


def _inode(target: str) -> str:
    return target.partition("[")[2].rstrip("]")


def _files(named: List[Tuple[int, str, str]]) -> Dict[str, filestat.File]:
    """Path → file, of what has a path and is no device."""
    found: Dict[str, filestat.File] = {}
    for pid, fd, target in named:
        if target.startswith("/") and not target.startswith("/dev/") and target not in found:
            file = filestat.file_of(pid, fd)
            if file is not None:
                found[target] = file
            if len(found) >= _MOST_FILES:
                break
    return found


def _pipes(named: List[Tuple[int, str, str]], files: Dict[str, filestat.File]) -> Ends:
    ends: Ends = {}
    for pid, fd, target in named:
        if target.startswith("pipe:["):
            name = _inode(target)
        elif target in files and files[target].fifo:
            name = target
        else:
            continue
        try:
            mode = fdinfo.read(pid, fd).mode
        except OSError:
            continue
        if mode is not None:
            ends.setdefault(name, []).append([pid, int(fd), mode])
    return ends


def _special(named: List[Tuple[int, str, str]]) -> Dict[str, Dict[str, Any]]:
    found: Dict[str, Dict[str, Any]] = {}
    for pid, fd, target in named:
        told = fdinfo.special(pid, fd, target)
        if told is not None:
            found.setdefault(str(pid), {})[fd] = told
    return found


def _ours(named: List[Tuple[int, str, str]]) -> Set[str]:
    """Those that we have ourselves: the command got them from whoever started us."""
    ours = open_descriptors(os.getpid()) or {}
    return {target for _pid, _fd, target in named} & set(ours.values())


def _perhaps_inherited(root: int, named: List[Tuple[int, str, str]]) -> Set[str]:
    """Pipes and sockets that a process may have got from whoever started it: all of which nobody of the tree has an end
    that is closed on exec, as those are that Python makes. Of a process whose parent may not be looked into, all: it may
    have been forked without exec."""
    shared = {target for _pid, _fd, target in named if target.startswith(("pipe:[", "socket:["))}
    try:
        parent = parsers.stat(f"/proc/{root}").ppid
    except (OSError, ValueError):
        return shared
    if parent > 0 and open_descriptors(parent) is None:
        return shared
    for pid, fd, target in named:
        if target in shared:
            try:
                if fdinfo.read(pid, fd).is_own:
                    shared.discard(target)
            except OSError:
                continue
    return shared


def _in_flight(named: List[Tuple[int, str, str]], sockets: Mapping[str, Mapping[str, Any]]) -> List[str]:
    """Inodes of Unix sockets in which descriptors are on their way to somebody (unix(7), SCM_RIGHTS), or may be: nobody
    has these open."""
    found: Set[str] = set()
    for pid, fd, target in named:
        row = sockets.get(_inode(target), {}) if target.startswith("socket:[") else {}
        if row.get("proto") != "unix":
            continue
        if row.get("tx_queue") and str(row.get("peer")) not in sockets:
            found.add(_inode(target))  # to somebody beyond the tree
        try:
            waiting = fdinfo.read(pid, fd).in_flight
        except OSError:
            waiting = None
        if waiting or (waiting is None and row.get("rx_queue")):
            found.add(_inode(target))
    return sorted(found)


def _is(file: filestat.File, lock: Mapping[str, Any]) -> bool:
    return bool(file.inode == lock["inode"] and [file.major, file.minor] == lock["device"])


def _locked_files(
    named: List[Tuple[int, str, str]], files: Dict[str, filestat.File], locked: Set[str]
) -> Dict[str, Dict[str, Any]]:
    """Path → its device and inode, and the descriptors through which it is locked: a flock outlives who took it."""
    found: Dict[str, Dict[str, Any]] = {
        path: {"device": [files[path].major, files[path].minor], "inode": files[path].inode, "through": []}
        for path in sorted(locked)
    }
    for pid, fd, target in named:
        if target in found:
            try:
                held = fdinfo.read(pid, fd).locks
            except OSError:
                continue
            found[target]["through"] += [[pid, int(fd), line] for line in held]
    return found


def _beyond(
    root: int, members: Set[int], sockets: Mapping[str, Mapping[str, Any]], pipes: Ends, locked: Set[str]
) -> Dict[str, Any]:
    wanted = {name if name.startswith("/") else f"pipe:[{name}]" for name in pipes}
    peers = {str(row["peer"]) for row in sockets.values() if row.get("peer")}
    wanted |= {f"socket:[{inode}]" for inode in peers - set(sockets)} | locked
    try:
        began = parsers.stat(f"/proc/{root}").start
    except (OSError, ValueError):
        began = 0  # nobody is older: all that is unread counts
    found = Holders(wanted, members, began)
    found.look()
    return found.as_json()
