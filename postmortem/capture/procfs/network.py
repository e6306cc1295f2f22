"""Sockets that a tree has open; only inodes named by its descriptors are looked up.

Sources: /proc/PID/net/{tcp,udp,unix} (Documentation/networking/proc_net_tcp.rst).
"""

from __future__ import annotations

import socket
import sys
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Set, Tuple

from . import parsers
from .unixpeers import unix_peers

_STATES = {
    1: "ESTABLISHED", 2: "SYN_SENT", 3: "SYN_RECV", 4: "FIN_WAIT1", 5: "FIN_WAIT2", 6: "TIME_WAIT",
    7: "CLOSE", 8: "CLOSE_WAIT", 9: "LAST_ACK", 10: "LISTEN", 11: "CLOSING", 12: "NEW_SYN_RECV",
}  # fmt: skip
_UNIX_STATES = {1: "UNCONNECTED", 2: "CONNECTING", 3: "ESTABLISHED", 4: "DISCONNECTING"}
_UNIX_ACCEPTS = 1 << 16  # __SO_ACCEPTCON
_INTERNET = ("tcp", "tcp6", "udp", "udp6", "raw", "raw6")
_MAPPED = "0000000000000000FFFF0000"  # prefix ::ffff:0:0/96, in the byte order of x86-64 and aarch64
_LARGEST = 32 << 20


def listening_ports(sockets: Mapping[str, Mapping[str, Any]]) -> List[int]:
    """Return the TCP ports on which any of the sockets listens, sorted."""
    found = {_port(s["local"]) for s in sockets.values() if s["state"] == "LISTEN" and s["proto"][:3] == "tcp"}
    return sorted(port for port in found if port is not None)


def find_sockets(folder: str, wanted: Set[str]) -> Dict[str, Dict[str, Any]]:
    """Return inode → row, for the ``wanted`` inodes.

    ``peer`` in a row: the inode of the other end if it is on this machine; 0 when a Unix socket's other end was closed.
    """
    if not wanted:
        return {}
    found: Dict[str, Dict[str, Any]] = {}
    ends: Dict[Tuple[str, str, str], str] = {}  # (protocol, local, remote) → inode, of all sockets
    connected: Dict[str, Tuple[str, str, str]] = {}
    for table in (*_INTERNET, "unix"):
        parse: Callable[[List[str]], Tuple[str, Dict[str, Any]]] = _unix if table == "unix" else _internet
        for line in _lines(f"{folder}/{table}"):
            fields = line.split(None, 7 if table == "unix" else -1)
            if table != "unix" and len(fields) > 9 and fields[9] != "0":
                one, other = _plain(fields[1]), _plain(fields[2])
                ends.setdefault((table[:3], one, other), fields[9])
                if fields[9] in wanted:
                    connected[fields[9]] = table[:3], other, one
            try:
                inode, row = parse(fields)
            except (ValueError, IndexError, OSError):
                continue
            if inode in wanted:
                found[inode] = {"proto": table, **row}
    _note_peers(found, {inode: ends[pair] for inode, pair in connected.items() if pair in ends})
    return found


def _note_peers(found: Dict[str, Dict[str, Any]], internet: Dict[str, str]) -> None:
    for inode, peer in internet.items():
        if inode in found and peer != inode:
            found[inode]["peer"] = int(peer)
    local = {inode for inode, row in found.items() if row["proto"] == "unix"}
    for inode, row in (unix_peers(local) if local else {}).items():
        found[inode].update(row)


def _plain(text: str) -> str:
    """Shorten an IPv4 address shown as ::ffff:a.b.c.d by an IPv6 socket to the form of an IPv4 socket."""
    return text[24:] if text.startswith(_MAPPED) else text


def _lines(path: str) -> Iterator[str]:
    try:
        return iter(parsers.text(parsers.read(path, _LARGEST)).splitlines()[1:])
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
    """Return ``127.0.0.1:8080`` for ``0100007F:1F90``, whose words are in native byte order; IPv6 in brackets."""
    host, _colon, port = text.partition(":")
    words = [int(host[i : i + 8], 16).to_bytes(4, sys.byteorder) for i in range(0, len(host), 8)]
    family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    name = socket.inet_ntop(family, b"".join(words))
    return f"{name}:{int(port, 16)}" if family == socket.AF_INET else f"[{name}]:{int(port, 16)}"


def _port(local: Optional[str]) -> Optional[int]:
    return int(local.rpartition(":")[2]) if local else None
