"""The child's end of the socket: whole frames, or the end."""

from __future__ import annotations

import json
import socket
from typing import Tuple

import pytest

from postmortem.gdbchild.wire import LENGTH, MOST_BYTES, Gone, Link


@pytest.fixture
def ends() -> Tuple[socket.socket, Link]:
    """gdb's socket, and the link."""
    ours, theirs = socket.socketpair()
    return ours, Link(theirs.detach())


def test_a_question_and_its_answer(ends: Tuple[socket.socket, Link]) -> None:
    """A frame that comes in pieces is one."""
    gdb, link = ends
    data = json.dumps({"command": "pm-bt"}).encode()
    gdb.sendall(LENGTH.pack(len(data)) + data[:5])
    gdb.sendall(data[5:])
    assert link.receive() == {"command": "pm-bt"}
    link.send({"end": True})
    (size,) = LENGTH.unpack(gdb.recv(4))
    assert json.loads(gdb.recv(size)) == {"end": True}


@pytest.mark.parametrize(
    "data",
    [b"", b"\1", LENGTH.pack(9) + b"{}", LENGTH.pack(2) + b"[]", LENGTH.pack(2) + b"{{", LENGTH.pack(MOST_BYTES + 1)],
)
def test_what_is_no_frame_is_the_end(ends: Tuple[socket.socket, Link], data: bytes) -> None:
    """Cut off, of another type, no JSON, too long."""
    gdb, link = ends
    gdb.sendall(data)
    gdb.close()
    with pytest.raises(Gone):
        link.receive()


def test_a_gdb_that_is_gone(ends: Tuple[socket.socket, Link]) -> None:
    """Nobody is there to be told."""
    gdb, link = ends
    gdb.close()
    with pytest.raises(Gone):
        link.ask({"read": [0, 1]})
