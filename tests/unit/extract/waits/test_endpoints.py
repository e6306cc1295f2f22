"""Holders of the other end: from the descriptors that a capture noted to resources with wakers."""

from __future__ import annotations

import struct
from typing import Any, Dict, Optional

from postmortem.evidence import Resource, Wait
from postmortem.extract.recorded.connections import Connections
from postmortem.extract.waits.descriptors import Descriptors
from postmortem.extract.waits.endpoints import DescriptorBook
from postmortem.extract.waits.threadwaits import SystemCall, polled
from postmortem.memory import Segments

from ....support.inwords import words

NOBODY_ELSE = {
    "ends": {},
    "processes": {},
    "looked_at": 40,
    "not_looked_at": 0,
    "unread": {"younger": 0, "older": 3},
    "all_visible": True,
}
PARENT, CHILD = 10, 11


def facts(pid: int, ppid: int, fds: Optional[Dict[str, str]], *argv: str, **more: Any) -> Dict[str, Any]:
    return {"ppid": ppid, "fds": fds, "argv": list(argv), "state": "S", **more}


def tree(net: Dict[str, Any], **fds: Dict[str, str]) -> Connections:
    known = {
        PARENT: facts(PARENT, 1, fds.get("parent", {}), "/usr/bin/python3", "-u", "/app/export.py"),
        CHILD: facts(CHILD, PARENT, fds.get("child", {}), "gzip"),
    }
    return Connections({"known": [PARENT, CHILD], "beyond": NOBODY_ELSE, "inherited": [], **net}, known)


def book(connections: Connections, pid: int = PARENT) -> DescriptorBook:
    fds = connections.fact(pid, "fds")
    return DescriptorBook(Descriptors(fds, connections.net, pid, connections))


def one(made: DescriptorBook) -> Resource:
    (resource,) = made.resources()
    return resource


PIPE = {
    "pipes": {"77": [[PARENT, 5, "r"], [CHILD, 1, "w"]]},
    "fill": {"77": {"bytes": 65536, "capacity": 65536, "alone": False, "side": "r"}},
    "fill_after": {"77": {"bytes": 65536, "capacity": 65536, "alone": False, "side": "r"}},
}
ENDS = {"parent": {"5": "pipe:[77]"}, "child": {"1": "pipe:[77]"}}


def test_a_full_pipe_names_who_could_empty_it() -> None:
    """The writer's resource: bytes and room, both ends, the reader as the only one who could end the wait."""
    made = book(tree(PIPE, **ENDS), CHILD)
    assert made.note(1, 11) == "pipe-1"
    pipe = one(made)
    assert (pipe.key, pipe.value, pipe.limit, pipe.closed) == ("pipe:[77]", 65536, 65536, True)
    assert [(w.pid, w.role, w.basis) for w in pipe.wakers] == [(PARENT, "end", "kernel")]
    assert {(end.pid, end.fd, end.mode) for end in pipe.ends} == {(PARENT, 5, "r"), (CHILD, 1, "w")}
    assert pipe.description == "stdout, a pipe read by PID 10 (export.py) (descriptor 1)"
    assert words(pipe.because)[0] == "PID 10 (export.py) holds its read end, as descriptor 5"


def test_a_reader_that_holds_the_write_end_itself() -> None:
    """It is its own waker: the end of the file that it waits for is withheld by its own process."""
    net = {"pipes": {"77": [[PARENT, 5, "r"], [PARENT, 6, "w"]]}}
    made = book(tree(net, parent={"5": "pipe:[77]", "6": "pipe:[77]"}))
    made.note(5, 10)
    pipe = one(made)
    assert [w.pid for w in pipe.wakers] == [PARENT]
    assert pipe.description == "pipe from this process alone (descriptor 5)"
    assert words(pipe.because)[0] == "this process itself holds its write end, as descriptor 6"


def closed(beyond: Optional[Dict[str, Any]] = None, **net: Any) -> Optional[bool]:
    told = {**PIPE, **net}
    if beyond is not None:
        told["beyond"] = {**NOBODY_ELSE, **beyond}
    made = book(tree(told, **ENDS))
    made.note(5, 10)
    return one(made).closed


def test_nobody_else_is_claimed_only_when_everybody_was_looked_at() -> None:
    """A hidden process, a lack of time, a strange young process, a pipe that others gave: unknown, each of them."""
    assert closed() is True
    assert closed({"not_looked_at": 1}) is None
    assert closed({"unread": {"younger": 1, "older": 0}}) is None
    assert closed(known=[PARENT]) is None
    assert closed(inherited=["pipe:[77]"]) is None
    assert closed(in_flight=["78"]) is None
    given = {"ends": {"pipe:[77]": [[900, 3, "w"]]}, "processes": {"900": {"name": "make"}}}
    assert closed(given) is None
    assert closed({**given, "unread": {"younger": 0, "older": 0}}) is True
    assert closed({**given, "unread": {"younger": 0, "older": 0}, "all_visible": False}) is None


def test_the_kernel_knows_of_an_end_that_no_process_shows() -> None:
    """Without POLLHUP somebody can write, whoever that is."""
    lonely = {"77": [[PARENT, 5, "r"]]}
    assert closed(pipes=lonely) is None
    gone = {"77": {"bytes": 0, "capacity": 65536, "alone": True, "side": "r"}}
    assert closed(pipes=lonely, fill=gone) is True


def test_a_bundle_of_before_claims_nothing() -> None:
    """Pipes with their ends, and no more: wakers, but nothing closed; without a process.json nothing at all."""
    made = book(Connections({"pipes": PIPE["pipes"]}, {PARENT: facts(PARENT, 1, {"5": "pipe:[77]"}, "x")}))
    made.note(5, 10)
    assert ([w.pid for w in one(made).wakers], one(made).closed) == ([CHILD], None)
    assert (
        DescriptorBook(None).awaited(Wait("process", "wait4"), SystemCall("wait4", (0,) * 6), Segments({}), 1) is None
    )


def test_a_fifo_may_be_opened_by_anybody() -> None:
    """Complete as the list of its holders is, another may come."""
    made = book(tree({"pipes": {"/run/orders": [[PARENT, 5, "rw"]]}}, parent={"5": "/run/orders"}))
    made.note(5, 10)
    assert (one(made).key, one(made).closed, [w.pid for w in one(made).wakers]) == ("fifo:/run/orders", None, [PARENT])


def test_holders_beyond_the_tree_and_what_they_do() -> None:
    """By name, with the call that they were in."""
    beyond = {
        "ends": {"pipe:[77]": [[900, 1, "w"]]},
        "processes": {"900": {"name": "cat", "call": "read", "file": "/dev/pts/1"}},
    }
    made = book(
        tree({"pipes": {"77": [[PARENT, 0, "r"]]}, "beyond": {**NOBODY_ELSE, **beyond}}, parent={"0": "pipe:[77]"})
    )
    made.note(0, 10)
    pipe = one(made)
    assert pipe.description == "stdin, a pipe written by PID 900 (cat) (descriptor 0)"
    assert words(pipe.because)[0] == "PID 900 (cat) holds its write end, as descriptor 1; it is in read on /dev/pts/1"
    assert [(end.in_tree, end.program) for end in pipe.ends] == [(True, None), (False, "cat")]


def test_a_connection_that_was_not_accepted_belongs_to_the_listener() -> None:
    """The queue of the one that listens there has it; an empty queue, or a peer that is known, says otherwise."""
    client = {"proto": "tcp", "local": "127.0.0.1:40", "remote": "127.0.0.1:80", "state": "ESTABLISHED"}
    listens = {"proto": "tcp", "local": "0.0.0.0:80", "remote": "0.0.0.0:0", "state": "LISTEN", "rx_queue": 1}

    def pair(**more: Any) -> Resource:
        net = {"sockets": {"50": {**client, **more.get("client", {})}, "51": {**listens, **more.get("listens", {})}}}
        made = book(tree(net, parent={"4": "socket:[50]"}, child={"3": "socket:[51]"}))
        made.note(4, PARENT)
        return one(made)

    assert ([w.pid for w in pair().wakers], pair().peer_in_tree) == ([CHILD], True)
    assert pair().description.endswith("PID 11 (gzip), which has not accepted it (descriptor 4)")
    for other in (
        {"listens": {"rx_queue": 0}},
        {"listens": {"local": "10.0.0.1:80"}},
        {"client": {"state": "SYN_SENT"}},
    ):
        assert pair(**other).wakers == ()


def test_a_pair_of_sockets_is_matched_by_its_peer() -> None:
    """Each side's holders; what waits to be read, and what was not taken."""
    net = {
        "sockets": {
            "50": {"proto": "unix", "local": None, "remote": None, "state": "ESTABLISHED", "peer": 51, "rx_queue": 7},
            "51": {"proto": "unix", "local": None, "remote": None, "state": "ESTABLISHED", "peer": 50},
        }
    }
    made = book(tree(net, parent={"4": "socket:[50]"}, child={"3": "socket:[51]"}))
    made.note(4, 10)
    pair = one(made)
    assert ([w.pid for w in pair.wakers], pair.closed, pair.received, pair.state) == ([CHILD], True, 7, "ESTABLISHED")
    assert (pair.key, pair.peer_in_tree) == ("socket:[50]", True)
    assert pair.description == "socket with PID 11 (gzip) (descriptor 4)"


def test_children_are_who_could_end_a_wait_for_them() -> None:
    """One by its pid; any by all that there are; a child that nobody captured leaves it open."""
    made = book(tree({}))
    call = SystemCall("wait4", (0,) * 6)
    ids = [made.awaited(Wait("process", "wait4", pid=pid), call, Segments({}), 10) for pid in (CHILD, None, 99)]
    assert ids == ["process-1", "process-2", "process-3"]
    child, every, stranger = made.resources()
    assert (child.key, child.description, child.closed) == ("process:11", "child process PID 11 (gzip)", True)
    assert ([w.pid for w in every.wakers], every.closed) == ([CHILD], True)
    assert ([w.pid for w in stranger.wakers], stranger.closed) == ([99], None)


def test_a_wait_for_the_first_of_several() -> None:
    """poll over two pipes: whoever holds an end of either; parts know the whole."""
    net = {"pipes": {"77": [[PARENT, 5, "r"], [CHILD, 1, "w"]], "78": [[PARENT, 6, "r"], [CHILD, 2, "w"]]}}
    made = book(tree(net, parent={"5": "pipe:[77]", "6": "pipe:[78]"}))
    memory = Segments({0x1000: struct.pack("<ihhihh", 5, 1, 0, 6, 1, 0)})
    call = SystemCall("poll", (0x1000, 2, 0xFFFFFFFF, 0, 0, 0))
    assert polled(call, memory) == [5, 6]
    whole = made.awaited(Wait("pipe", "poll"), call, memory, 10)
    known = {resource.id: resource for resource in made.resources()}
    both = known[whole or ""]
    assert ([w.pid for w in both.wakers], both.closed, both.waiters) == ([CHILD, CHILD], True, (10,))
    assert {r.part_of for r in known.values() if r is not both} == {both.id}
    assert polled(call, Segments({})) == []


def test_a_poll_with_one_unknown_descriptor_is_unknown() -> None:
    """It might be the one that becomes ready."""
    made = book(tree(PIPE, **ENDS))
    assert made.note_several((5, 99), 10) is None


def lock(**more: Any) -> Dict[str, Any]:
    row = {
        "kind": "FLOCK",
        "mode": "WRITE",
        "pid": CHILD,
        "device": [8, 1],
        "inode": 5,
        "first": 0,
        "last": None,
        **more,
    }
    return {"locks": [{**row, "waits": [{**row, "pid": PARENT}]}]}


FILE = {
    "locked_files": {
        "/tmp/a.lock": {"device": [8, 1], "inode": 5, "through": [[CHILD, 4, "1: FLOCK ADVISORY WRITE 11 8:1:5"]]}
    }
}


def waited_lock(net: Dict[str, Any]) -> Resource:
    made = book(tree(net, parent={"3": "/tmp/a.lock"}))
    made.awaited(Wait("file", "flock", fd=3), SystemCall("flock", (3, 2, 0, 0, 0, 0)), Segments({}), 10)
    return one(made)


def test_the_holder_of_a_lock_on_a_file() -> None:
    """From the kernel's table, with the descriptor through which it is held."""
    found = waited_lock({**lock(), **FILE})
    assert (found.kind, found.owner_pid, found.owner_basis, found.key) == ("file-lock", CHILD, "recorded", "file:8:1:5")
    assert found.description == "lock on /tmp/a.lock (flock, exclusive)"
    assert "PID 11 (gzip) holds it through its descriptor 4" in words(found.because)


def test_a_flock_outlives_who_took_it() -> None:
    """The holder is whoever inherited the descriptor; the table names a process that is no more."""
    found = waited_lock({**lock(pid=999), **FILE})
    assert found.owner_pid == CHILD
    assert words(found.because)[-1] == "PID 999 acquired it and has ended; the lock lives on with the descriptor"


def test_a_flock_that_several_inherited_has_no_single_holder() -> None:
    """Each of them can give it back, whoever took it; one beyond the tree that has the file open may have it, too."""
    through = [[CHILD, 4, "1: FLOCK ADVISORY WRITE 11 8:1:5"], [12, 3, "1: FLOCK ADVISORY WRITE 11 8:1:5"]]
    shared = {"locked_files": {"/tmp/a.lock": {"device": [8, 1], "inode": 5, "through": through}}}
    found = waited_lock({**lock(), **shared})
    assert (found.owner_pid, found.closed, [w.pid for w in found.wakers]) == (None, True, [CHILD, 12])
    beyond = {**NOBODY_ELSE, "ends": {"/tmp/a.lock": [[900, 3, "rw"]]}}
    found = waited_lock({**lock(), **FILE, "beyond": beyond})
    assert (found.owner_pid, found.closed, [w.pid for w in found.wakers]) == (None, None, [CHILD])


def test_who_took_a_flock_and_closed_the_file_still_lives() -> None:
    """It is not said to be no more."""
    through = [[CHILD, 4, "1: FLOCK ADVISORY WRITE 10 8:1:5"]]
    net = {"locked_files": {"/tmp/a.lock": {"device": [8, 1], "inode": 5, "through": through}}}
    found = waited_lock({**lock(pid=PARENT), **net})
    assert words(found.because)[-1].startswith("PID 10 (export.py) acquired it and no longer has it open")
    assert "no longer has it open" in words(waited_lock({**lock(pid=999, alive=True), **FILE}).because)[-1]


def test_a_posix_lock_belongs_to_its_process() -> None:
    """Whatever descriptors others have; a lock of nobody known has no owner."""
    assert waited_lock({**lock(kind="POSIX"), **FILE}).owner_pid == CHILD
    assert waited_lock({**lock(kind="OFDLCK", pid=-1)}).owner_pid is None
    assert waited_lock({}).owner_pid is None


def asked_for(net: Dict[str, Any], *paths: str, sqlite: bool = False) -> Optional[Resource]:
    made = book(tree(net, parent={"3": "/tmp/a.lock"}))
    ident = made.note_polled_lock(paths, sqlite, 10)
    return None if ident is None else one(made)


def unwaited(**more: Any) -> Dict[str, Any]:
    return {**FILE, "locks": [{**row, "waits": []} for row in lock(**more)["locks"]]}


def test_a_lock_that_is_asked_for_again_and_again() -> None:
    """No row says so: the file is one that the function knows, or one that is open; its holder stands in the table."""
    for paths in ((), ("/tmp/other", "/tmp/a.lock")):
        found = asked_for(unwaited(), *paths)
        assert found is not None
        assert (found.kind, found.owner_pid, found.waiters) == ("file-lock", CHILD, (10,))
    assert asked_for(unwaited(), "/tmp/other") is None
    assert asked_for({}) is None


def test_a_database_is_locked_at_places_of_its_own() -> None:
    """SQLite's locks lie beyond a gigabyte; another lock on the same file is none of them."""
    found = asked_for(unwaited(kind="POSIX", first=0x40000000, last=0x400001FF), sqlite=True)
    assert found is not None
    assert found.owner_pid == CHILD
    assert asked_for(unwaited(kind="POSIX"), sqlite=True) is None
    assert asked_for(unwaited(first=0x40000000), sqlite=True) is None


def test_who_has_the_other_end_of_a_terminal() -> None:
    """A process of the tree, as with pexpect; any other terminal's other end is a stranger's."""
    special = {str(PARENT): {"5": {"kind": "pty", "index": 3}, "6": {"kind": "pty", "index": 4}}}
    made = book(
        tree({"special": special}, parent={"5": "/dev/ptmx"}, child={"1": "/dev/pts/3", "2": "/dev/pts/7"}), CHILD
    )
    made.note(1, 11)
    made.note(2, 11)
    ours, other = made.resources()
    assert ([(w.pid, w.name) for w in ours.wakers], ours.closed) == ([(PARENT, "descriptor 5")], None)
    assert words(ours.because) == ("PID 10 (export.py) has its other end, as descriptor 5",)
    assert other.wakers == ()


def test_whose_terminal_it_is() -> None:
    """In the foreground of its controlling terminal, in the background, or somebody else's."""
    states = []
    for device, front in ((34819, 10), (34819, 7), (34820, 10), (0, -1)):
        known = facts(PARENT, 1, {"0": "/dev/pts/3"}, "x", terminal=device, foreground=front, pgid=10)
        made = book(Connections({}, {PARENT: known}))
        made.note(0, 10)
        states.append(one(made).state)
    assert states == ["foreground", "background", "foreign", "foreign"]
