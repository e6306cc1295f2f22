"""The other ends of Unix sockets and their queues, from the kernel's sock_diag(7).

/proc/net/unix names no peer. No privileges are needed, for our own network namespace; inodes are unique across
namespaces. Sources: <linux/unix_diag.h>, <linux/netlink.h>; net/unix/diag.c.
"""

from __future__ import annotations

import socket
import struct
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY = 4, 20
_REQUEST_DUMP, _ERROR, _DONE = 0x1 | 0x300, 2, 3
_SHOW_PEER, _SHOW_QUEUES = 0x4, 0x10
_ATTRIBUTE_PEER, _ATTRIBUTE_QUEUES, _ATTRIBUTE_SHUTDOWN = 2, 4, 6
_ANY = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")  # nlmsghdr
_REQUEST = struct.Struct("=BBHIIIII")  # unix_diag_req
_MESSAGE = struct.Struct("=BBBBIII")  # unix_diag_msg
_PATIENCE_S = 0.5
_MOST = 64 << 20


def unix_peers(wanted: Set[str]) -> Dict[str, Dict[str, Any]]:
    """Return facts of the ``wanted`` sockets by inode; empty where the kernel does not answer.

    - ``peer``: its inode; 0: closed by the other side
    - ``rx_queue``, ``tx_queue``: bytes
    - ``shutdown``: bit 0: receiving was shut down, bit 1: sending
    """
    found: Dict[str, Dict[str, Any]] = {}
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as netlink:
            netlink.settimeout(_PATIENCE_S)
            body = _REQUEST.pack(socket.AF_UNIX, 0, 0, _ANY, 0, _SHOW_PEER | _SHOW_QUEUES, _ANY, _ANY)
            netlink.send(_HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0) + body)
            received = 0
            while received < _MOST:
                data = netlink.recv(1 << 16)
                received += len(data)
                rows, ended = parse(data)
                found.update((inode, row) for inode, row in rows if inode in wanted)
                if ended:
                    break
    except OSError:
        pass
    return found


def parse(data: bytes) -> Tuple[Tuple[Tuple[str, Dict[str, Any]], ...], bool]:
    """Return (rows of one datagram, whether it was the last)."""
    rows: List[Tuple[str, Dict[str, Any]]] = []
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, _flags, _number, _port = _HEADER.unpack_from(data, at)
        if kind in (_DONE, _ERROR) or length < _HEADER.size:
            return tuple(rows), True
        row = _row(data[at + _HEADER.size : at + length])
        if row is not None:
            rows.append(row)
        at += (length + 3) & ~3
    return tuple(rows), not data


def _row(body: bytes) -> Optional[Tuple[str, Dict[str, Any]]]:
    if len(body) < _MESSAGE.size:
        return None
    _family, _type, _state, _pad, inode, _low, _high = _MESSAGE.unpack_from(body)
    row: Dict[str, Any] = {}
    for kind, value in _attributes(body[_MESSAGE.size :]):
        if kind == _ATTRIBUTE_PEER and len(value) >= 4:
            row["peer"] = struct.unpack_from("=I", value)[0]
        elif kind == _ATTRIBUTE_QUEUES and len(value) >= 8:
            row["rx_queue"], row["tx_queue"] = struct.unpack_from("=II", value)
        elif kind == _ATTRIBUTE_SHUTDOWN and value:
            row["shutdown"] = value[0]
    return str(inode), row


def _attributes(data: bytes) -> Iterator[Tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            return
        yield kind, data[at + 4 : at + length]
        at += (length + 3) & ~3
