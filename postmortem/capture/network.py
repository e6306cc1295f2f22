"""Sockets and pipes that a tree holds: ``net.json``. Only inodes that its descriptors name are looked up.

Sources: /proc/PID/net/{tcp,udp,unix} (Documentation/networking/proc_net_tcp.rst), /proc/PID/fdinfo.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Set, Tuple

from . import procfs

_STATES = {
    1: "ESTABLISHED", 2: "SYN_SENT", 3: "SYN_RECV", 4: "FIN_WAIT1", 5: "FIN_WAIT2", 6: "TIME_WAIT",
    7: "CLOSE", 8: "CLOSE_WAIT", 9: "LAST_ACK", 10: "LISTEN", 11: "CLOSING", 12: "NEW_SYN_RECV",
}  # fmt: skip
_UNIX_STATES = {1: "UNCONNECTED", 2: "CONNECTING", 3: "ESTABLISHED", 4: "DISCONNECTING"}
_UNIX_ACCEPTS = 1 << 16  # __SO_ACCEPTCON
_INTERNET = ("tcp", "tcp6", "udp", "udp6", "raw", "raw6")
_NAMED = re.compile(r"^(socket|pipe):\[(\d+)\]$")
_LARGEST = 32 << 20

Descriptors = Mapping[int, Mapping[str, str]]  # pid → descriptor → what it is


def net_json(root: int, descriptors: Descriptors) -> Dict[str, Any]:
    """``sockets``, ``listening_ports`` and ``pipes`` of the tree. Tables that cannot be read are left out."""
    wanted = {inode for kind, inode, _pid, _fd in _named(descriptors) if kind == "socket"}
    sockets = find_sockets(f"/proc/{root}/net", wanted) if wanted else {}
    listening = {_port(s["local"]) for s in sockets.values() if s["state"] == "LISTEN" and s["proto"][:3] == "tcp"}
    return {
        "sockets": sockets,
        "listening_ports": sorted(port for port in listening if port is not None),
        "pipes": _pipes(descriptors),
    }


def find_sockets(folder: str, wanted: Set[str]) -> Dict[str, Dict[str, Any]]:
    found: Dict[str, Dict[str, Any]] = {}
    for table in (*_INTERNET, "unix"):
        parse: Callable[[List[str]], Tuple[str, Dict[str, Any]]] = _unix if table == "unix" else _internet
        for line in _lines(f"{folder}/{table}"):
            try:
                inode, row = parse(line.split(None, 7 if table == "unix" else -1))
            except (ValueError, IndexError, OSError):
                continue
            if inode in wanted:
                found[inode] = {"proto": table, **row}
    return found


def _lines(path: str) -> Iterator[str]:
    try:
        return iter(procfs.text(procfs.read(path, _LARGEST)).splitlines()[1:])
    except OSError:
        return iter(())


def _internet(fields: List[str]) -> Tuple[str, Dict[str, Any]]:
    sent, _colon, received = fields[4].partition(":")
    return fields[9], {
        "local": address(fields[1]),
        "remote": address(fields[2]),
        "state": _STATES.get(int(fields[3], 16), fields[3]),
        "rx_queue": int(received, 16),
        "tx_queue": int(sent, 16),
    }


def _unix(fields: List[str]) -> Tuple[str, Dict[str, Any]]:
    listens = int(fields[3], 16) & _UNIX_ACCEPTS
    path = fields[7] if len(fields) > 7 else None
    return fields[6], {
        "local": path,
        "remote": None,
        "state": "LISTEN" if listens else _UNIX_STATES.get(int(fields[5], 16), fields[5]),
        "path": path,
    }


def address(text: str) -> str:
    """``0100007F:1F90`` → ``127.0.0.1:8080``; IPv6 in brackets. The words are in the machine's byte order."""
    host, _colon, port = text.partition(":")
    words = [int(host[i : i + 8], 16).to_bytes(4, sys.byteorder) for i in range(0, len(host), 8)]
    family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    name = socket.inet_ntop(family, b"".join(words))
    return f"{name}:{int(port, 16)}" if family == socket.AF_INET else f"[{name}]:{int(port, 16)}"


def _port(local: Optional[str]) -> Optional[int]:
    return int(local.rpartition(":")[2]) if local else None


def _named(descriptors: Descriptors) -> Iterator[Tuple[str, str, int, str]]:
    """(kind, inode, pid, descriptor) of each socket and pipe."""
    for pid, table in descriptors.items():
        for fd, target in table.items():
            match = _NAMED.match(target)
            if match:
                yield match[1], match[2], pid, fd


def _pipes(descriptors: Descriptors) -> Dict[str, List[List[Any]]]:
    ends: Dict[str, List[List[Any]]] = {}
    for kind, inode, pid, fd in _named(descriptors):
        mode = _mode(pid, fd) if kind == "pipe" else None
        if mode is not None:
            ends.setdefault(inode, []).append([pid, int(fd), mode])
    return ends


def _mode(pid: int, fd: str) -> Optional[str]:
    """``r`` or ``w``; ``rw`` for an end opened for both."""
    try:
        rows = procfs.text(procfs.read(f"/proc/{pid}/fdinfo/{fd}")).splitlines()
        flags = next(int(row.split()[1], 8) for row in rows if row.startswith("flags:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    return {os.O_RDONLY: "r", os.O_WRONLY: "w"}.get(flags & os.O_ACCMODE, "rw")
