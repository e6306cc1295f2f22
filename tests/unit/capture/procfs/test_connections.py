"""What ties descriptors together: pipes, socket pairs, locks and special files of this very process."""

from __future__ import annotations

import fcntl
import gc
import os
import pty
import select
import socket
import struct
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest

from postmortem.capture.procfs import connections, fdinfo, filelocks, peers, unixpeers
from postmortem.capture.procfs.buffered import Pidfds, fill
from postmortem.capture.procfs.facts import descriptors
from postmortem.capture.procfs.peers import DescriptorHolders

ME = os.getpid()


def links(*fds: int) -> Dict[int, Dict[str, str]]:
    return {ME: {str(fd): os.readlink(f"/proc/self/fd/{fd}") for fd in fds}}


def test_our_own_descriptors() -> None:
    """Both ends of a pipe with their direction and how full it is, a listening port."""
    reading, writing = os.pipe()
    os.write(writing, b"x" * 100)
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = connections.net_json(ME, links(reading, writing, server.fileno()))
        port = server.getsockname()[1]
    os.close(reading)
    os.close(writing)
    assert found["listening_ports"] == [port]
    (ends,) = found["pipes"].values()
    assert ends == [[ME, reading, "r"], [ME, writing, "w"]]
    (known,) = found["fill"].values()
    assert (known["bytes"], known["capacity"], known["alone"], known["side"]) == (100, 65536, False, "r")
    (row,) = found["sockets"].values()
    assert (row["proto"], row["local"], row["state"]) == ("tcp", f"127.0.0.1:{port}", "LISTEN")
    assert found["known"] == [ME]


def test_the_kernel_says_when_nobody_can_write_any_more() -> None:
    """An end without another side is alone, whoever might be hidden from us; asking leaves nothing open."""
    reading, writing = os.pipe()
    os.close(writing)
    gc.collect()  # files of earlier tests
    before = sorted(os.listdir("/proc/self/fd"))
    with Pidfds() as pidfds:
        known = fill(pidfds, ME, reading)
    assert sorted(os.listdir("/proc/self/fd")) == before
    os.close(reading)
    assert known is not None
    assert known["alone"] is True


def test_what_is_no_pipe_or_gone_is_unknown() -> None:
    """None, not nought."""
    with Pidfds() as pidfds:
        assert fill(pidfds, ME, 987) is None


def test_socket_pairs_and_connections_name_their_peer() -> None:
    """By inode: a pair's by the kernel's answer, a connection's by its addresses; a closed side is 0."""
    one, other = socket.socketpair()
    lonely, closed = socket.socketpair()
    closed.close()
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    accepted, _address = server.accept()
    other.send(b"12345")
    with one, other, lonely, server, client, accepted:
        inode = {s: str(os.fstat(s.fileno()).st_ino) for s in (one, other, lonely, client, accepted)}
        found = connections.net_json(ME, links(*(s.fileno() for s in (one, lonely, client))))["sockets"]
    assert str(found[inode[one]]["peer"]) == inode[other]
    assert found[inode[one]]["rx_queue"] == 5
    assert found[inode[lonely]]["peer"] == 0
    assert str(found[inode[client]]["peer"]) == inode[accepted]


def test_a_datagram_of_the_kernel_that_is_cut_or_nonsense() -> None:
    """No row, no endless loop; an error message ends the answer."""
    assert unixpeers.parse(b"") == ((), True)
    assert unixpeers.parse(b"\0" * 40) == ((), True)
    message = unixpeers._HEADER.pack(16 + 16 + 8, 20, 0, 1, 0) + unixpeers._MESSAGE.pack(1, 1, 1, 0, 77, 0, 0)
    assert unixpeers.parse(message + b"\x08\0\x02\0" + (78).to_bytes(4, "little")) == ((("77", {"peer": 78}),), False)
    assert unixpeers.parse(message + b"\x01\0\x02\0aaaa") == ((("77", {}),), False)


def test_special_descriptors() -> None:
    """An epoll's set; a pidfd's process, an eventfd's count and a timer's rest, as the kernel writes them."""
    reading, writing = os.pipe()
    with select.epoll() as epoll:
        epoll.register(reading, select.EPOLLIN)
        (fds,) = links(epoll.fileno()).values()
        found = fdinfo.special(ME, *next(iter(fds.items())))
    os.close(reading)
    os.close(writing)
    assert found is not None
    assert found == {"kind": "epoll", "watches": [(reading, found["watches"][0][1])]}
    assert found["watches"][0][1] & select.EPOLLIN
    assert fdinfo.kind_of("/etc/passwd") is None
    info = fdinfo.parse(
        "pos:\t0\nflags:\t02000002\neventfd-count:               a\nlock:\t1: FLOCK  ADVISORY  WRITE 5 0:1:2 0 EOF\n"
    )
    assert (info.mode, info.values["eventfd-count"], len(info.locks)) == ("rw", "a", 1)
    assert fdinfo._armed("(0, 0)") is False
    assert fdinfo._armed("(1, 20)") is True


def test_which_terminal_an_emulator_has() -> None:
    """The kernel says the number of the other end's name."""
    ours, theirs = pty.openpty()
    try:
        told = fdinfo.special(ME, str(ours), os.readlink(f"/proc/self/fd/{ours}"))
        assert told == {"kind": "pty", "index": int(os.ttyname(theirs).rpartition("/")[2])}
    finally:
        os.close(ours)
        os.close(theirs)


def test_the_table_of_locks() -> None:
    """Waiters stand below the holder; rows of strangers and damaged rows are left out."""
    rows = [
        "1: POSIX  ADVISORY  WRITE 30 fd:00:99 0 EOF",
        "1: -> POSIX  ADVISORY  READ 31 fd:00:99 10 20",
        "1:  -> POSIX  ADVISORY  READ 32 fd:00:99 0 EOF",
        "2: FLOCK  ADVISORY  WRITE 40 fd:00:98 0 EOF",
        "3: nonsense",
        "4: FLOCK  ADVISORY  WRITE x y z EOF",
    ]
    (lock,) = filelocks.parse(rows, {31})
    assert (lock["kind"], lock["pid"], lock["device"], lock["inode"]) == ("POSIX", 30, [0xFD, 0], 99)
    assert [(w["pid"], w["mode"], w["first"], w["last"]) for w in lock["waits"]] == [
        (31, "READ", 10, 20),
        (32, "READ", 0, None),
    ]


def test_locks_on_files_that_the_tree_has_open() -> None:
    """Any process may hold them; one that asks without waiting stands in no table."""
    rows = ["1: POSIX  ADVISORY  WRITE 30 fd:00:99 0 EOF", "2: FLOCK  ADVISORY  WRITE 40 fd:00:98 0 EOF"]
    (lock,) = filelocks.parse(rows, {31}, {(0xFD, 0, 98)})
    assert (lock["pid"], lock["waits"]) == (40, [])


def test_a_lock_that_a_thread_waits_for(tmp_path: Path) -> None:
    """The waiting row names this process, its path the file, and the descriptor through which it is held is found."""
    path = tmp_path / "state.lock"
    with path.open("w") as held, path.open("w") as wanted:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiter = threading.Thread(target=fcntl.flock, args=(wanted, fcntl.LOCK_EX), daemon=True)
        waiter.start()
        until = time.monotonic() + 20
        waits: List[Any] = []
        while not waits and time.monotonic() < until:
            found = connections.net_json(ME, links(held.fileno(), wanted.fileno()))
            waits = [lock["waits"] for lock in found["locks"] if lock["waits"]]
        fcntl.flock(held, fcntl.LOCK_UN)
        waiter.join(20)
        assert [w["pid"] for w in waits[0]] == [ME]
        assert [row[:2] for row in found["locked_files"][str(path)]["through"]] == [[ME, held.fileno()]]


def test_whether_a_pipe_is_full() -> None:
    """Less room than a page makes a writer wait."""
    reading, writing = os.pipe()
    try:
        assert not connections.is_one_full(connections.net_json(ME, links(reading, writing)))
        os.write(writing, b"x" * 65536)
        assert connections.is_one_full(connections.net_json(ME, links(reading, writing)))
    finally:
        os.close(reading)
        os.close(writing)


def test_how_long_a_socket_waits() -> None:
    """What setsockopt(2) has set for receiving and sending, 0 for no limit."""
    limited, other = socket.socketpair()
    with limited, other:
        limited.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 2, 500_000))
        found = connections.net_json(ME, links(limited.fileno(), other.fileno()))["timeouts"]
        inodes = [str(os.fstat(end.fileno()).st_ino) for end in (limited, other)]
        assert [found[inode] for inode in inodes] == [[2.5, 0.0], [0.0, 0.0]]


def test_descriptors_on_their_way() -> None:
    """One that was sent and not received yet is nobody's; plain bytes carry none."""
    one, other = socket.socketpair()
    with one, other:
        one.sendmsg([b"x"])
        assert connections.net_json(ME, links(one.fileno(), other.fileno()))["in_flight"] == []
        one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", one.fileno()))])
        found = connections.net_json(ME, links(one.fileno(), other.fileno()))["in_flight"]
        assert found == [str(os.fstat(other.fileno()).st_ino)]
        other.recv(2)


def test_what_a_running_process_may_have_inherited() -> None:
    """With an end that is closed on exec it was made here; without one it may come from whoever started the program."""
    own = os.pipe()
    given = os.pipe()
    os.set_inheritable(given[0], True)
    os.set_inheritable(given[1], True)
    try:
        perhaps = connections._perhaps_inherited(
            ME, [(ME, str(f), os.readlink(f"/proc/self/fd/{f}")) for f in own + given]
        )
        assert perhaps == {os.readlink(f"/proc/self/fd/{given[0]}")}
    finally:
        for descriptor in own + given:
            os.close(descriptor)


def test_a_fifo_is_a_pipe_with_a_path(tmp_path: Path) -> None:
    """Known by its path, with its ends."""
    path = tmp_path / "orders"
    os.mkfifo(path)
    both = os.open(path, os.O_RDWR)
    try:
        assert connections.net_json(ME, links(both))["pipes"] == {str(path): [[ME, both, "rw"]]}
    finally:
        os.close(both)


def test_holders_beyond_the_tree() -> None:
    """A child that is not of the tree is found with its descriptor and name; who could not be asked is counted."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.read(reading, 1)
        os._exit(0)
    try:
        found = DescriptorHolders({os.readlink(f"/proc/self/fd/{writing}")}, {ME}, 0)
        found.look()
        told = found.as_json()
    finally:
        os.write(writing, b"x")
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)
    (ends,) = told["ends"].values()
    assert [child, writing, "w"] in ends
    assert told["processes"][str(child)]["ppid"] == ME
    assert told["not_looked_at"] == 0
    early = DescriptorHolders({"pipe:[1]"}, set(), 0)
    early.look(seconds=-1)
    assert early.as_json()["not_looked_at"] > 0


@pytest.mark.parametrize(
    ("comm", "cmdline", "title"),
    [
        (b"postgres", b"postgres: ann shop [local] UPDATE waiting\0\0\0", "postgres: ann shop [local] UPDATE waiting"),
        (b"nginx", b"nginx: worker process  ", "nginx: worker process"),
        (b"mysql", b"mysql\0--password=hunter2\0", None),
        (b"mysql", b"mysql: --password\0hunter2\0", None),
        (b"python", b"/usr/bin/python -c print()", None),
        (b"kworker", b"", None),
    ],
)  # fmt: skip
def test_a_title_is_kept_and_arguments_are_not(
    tmp_path: Path, comm: bytes, cmdline: bytes, title: Optional[str]
) -> None:
    """A server says in its title what it does; arguments of strangers may be secrets."""
    (tmp_path / "cmdline").write_bytes(cmdline)
    assert peers._title(str(tmp_path), comm) == title


STAT = "{pid} (x) S {ppid} 1 1 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 {start} 0 0\n"


def test_who_may_not_be_read_and_could_have_inherited(tmp_path: Path) -> None:
    """A young stranger counts when it was adopted by an ancestor of the tree, not when somebody else started it."""
    table = {  # pid: (parent, began, kernel thread?)
        1: (0, 0, 0),
        50: (1, 5, 0),
        100: (50, 90, 0),
        60: (1, 6, 0),
        200: (50, 120, 0),
        201: (60, 120, 0),
        202: (201, 130, 0),
        203: (60, 10, 0),
        204: (2, 120, 0x200000),
        205: (100, 140, 0),
    }
    holders = DescriptorHolders({"pipe:[1]"}, {100}, 100, str(tmp_path))
    for pid, (ppid, start, flags) in table.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(STAT.format(pid=pid, ppid=ppid, start=start, flags=flags))
    for pid in (200, 201, 202, 203, 204, 205):
        holders._note_unread(str(tmp_path / str(pid)))
    assert holders.as_json()["unread"] == {"younger": 2, "unrelated": 2, "older": 1}


def test_descriptors_that_could_not_be_read_are_not_known() -> None:
    """A process whose table is hidden may hold anything."""
    assert connections.net_json(ME, {ME: None})["known"] == []
    assert descriptors("/proc/0") is None
