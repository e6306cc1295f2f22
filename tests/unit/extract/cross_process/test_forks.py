"""Forked processes, and the locks that they took along: on cores made here."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest

from postmortem.evidence import HeldLock, LeftBehind, Process, PythonFrame, Resource, Thread, Wait
from postmortem.extract.cross_process.forks import (
    BEFORE_FORK,
    LockPlace,
    Trace,
    abandoned,
    origin_of,
    own_tids,
    spare_stacks,
    was_thread,
    with_kinship,
)
from postmortem.memory import ElfCore, Segments

from ....support.corefiles import core, note, prstatus
from ....support.inwords import words

BLOCKS = 0x7F00_0000
FORKER, OTHER = BLOCKS, BLOCKS + 0x100
LOCK = 0x5000


def child_core(folder: Path, random: bytes = b"r" * 16, threads: tuple[int, ...] = (FORKER, OTHER)) -> str:
    """A core with these bytes at AT_RANDOM, and control blocks of threads."""
    blocks = bytearray(0x200)
    for ident in threads:
        struct.pack_into("<Q", blocks, ident - BLOCKS, ident)
    notes = note(1, prstatus(2)) + note(6, struct.pack("<QQQQ", 25, 0x9000, 0, 0))
    path = folder / f"{len(list(folder.iterdir()))}.core"
    return str(core(path, notes, [(0x9000, random, 4096), (BLOCKS, bytes(blocks), 4096)]))


def made(folder: Path, child: Dict[str, Any], held: bool = True, **trace: Any) -> Process:
    """The child of a parent with two threads, one of which may hold the lock."""
    path = child_core(folder, threads=trace.pop("threads", (FORKER, OTHER)))
    lock = Resource("lock-1", "lock", "Lock x", locked=True, **child)
    holds = (HeldLock("lock-9", PythonFrame("/app/p.py", 7, "push"), 0, "with-slot"),) if held else ()
    parent = Process(1, threads=(Thread(10, is_main=True), Thread(11, "pusher", holds=holds)))
    others = trace.pop("others", ())
    mine = Process(2, 1, threads=(Thread(20, is_main=True), *others), resources=(lock,))
    owner: Optional[int] = trace.pop("owner", None)
    origin = trace.pop("origin", b"same")
    traces = {
        1: Trace(b"same", {FORKER: 10, OTHER: 11}, {"lock-9": LockPlace(LOCK, owner)}),
        2: Trace(origin, {FORKER: 20}, {"lock-1": LockPlace(LOCK, owner)}),
    }
    return with_kinship([parent, mine], traces, lambda _pid: ElfCore(path))[1]


def test_a_recorded_holder_was_not_forked(tmp_path: Path) -> None:
    """The RLock's own record names the parent's other thread."""
    found = made(tmp_path, {}, owner=OTHER)
    assert found.forked is True
    lock = found.resources[0]
    assert lock.owner_gone is True
    assert [(w.role, w.basis, w.pid, w.tid, w.name) for w in lock.wakers] == [
        (BEFORE_FORK, "recorded", 1, 11, "pusher")
    ]


def test_an_ident_that_was_given_to_a_later_thread(tmp_path: Path) -> None:
    """The lock records the parent's thread; another one of the child has its ident now, and no function that took the lock."""
    path = child_core(tmp_path)
    holder = Thread(11, "warm-up", holds=(HeldLock("lock-9", PythonFrame("/app/p.py", 7, "f"), 0, "recorded"),))
    parent = Process(1, threads=(Thread(10, is_main=True), holder))
    lock = Resource("lock-1", "rlock", "RLock x", 21, "inferred", (20,), True)
    mine = Process(2, 1, threads=(Thread(20, is_main=True), Thread(21, "heartbeat")), resources=(lock,))
    traces = {
        1: Trace(b"same", {FORKER: 10, OTHER: 11}, {"lock-9": LockPlace(LOCK, OTHER)}),
        2: Trace(b"same", {FORKER: 20, OTHER: 21}, {"lock-1": LockPlace(LOCK, OTHER)}),
    }
    found = with_kinship([parent, mine], traces, lambda _pid: ElfCore(path))[1].resources[0]
    assert (found.owner_tid, found.owner_gone, [(w.role, w.tid) for w in found.wakers]) == (
        None,
        True,
        [(BEFORE_FORK, 11)],
    )
    free = {**traces, 1: traces[1]._replace(locks={})}
    assert with_kinship([parent, mine], free, lambda _pid: ElfCore(path))[1].resources[0].owner_tid == 21


@pytest.mark.parametrize("joined", [True, False])
def test_a_lost_thread_whose_memory_is_used_again(tmp_path: Path, joined: bool) -> None:
    """The parent's consumer awaits the original of a queue that the child joins, so that it existed before the fork.

    Without such an object the two threads may merely have got the same memory, one after the other.
    """
    path = child_core(tmp_path, threads=(FORKER,))
    queue = Resource("queue-1", "queue", "Queue q", waiters=(11,))
    parent = Process(1, threads=(Thread(10, is_main=True), Thread(11, "consumer")), resources=(queue,))
    copy = Resource("queue-5", "queue", "Queue q", waiters=(21,) if joined else ())
    mine = Process(2, 1, threads=(Thread(2, is_main=True), Thread(21, "worker")), resources=(copy,))
    traces = {
        1: Trace(b"same", {FORKER: 10, OTHER: 11}, things={"queue-1": 0x7000}),
        2: Trace(b"same", {FORKER: 2, OTHER: 21}, things={"queue-5": 0x7000}),
    }
    found = with_kinship([parent, mine], traces, lambda _pid: ElfCore(path))[1]
    assert found.left_behind == ((LeftBehind(11, "consumer", ("queue-5",)),) if joined else ())


def test_threads_that_stayed_in_the_parent(tmp_path: Path) -> None:
    """Those whose control blocks the child has, native ones too; and what they await the original of."""
    native, path = BLOCKS + 0x180, child_core(tmp_path, threads=(FORKER, OTHER, BLOCKS + 0x180))
    queue = Resource("queue-1", "queue", "Queue q", waiters=(11,))
    threads = (Thread(10, is_main=True), Thread(11, "pusher"), Thread(12), Thread(13))
    parent, mine = Process(1, threads=threads, resources=(queue,)), Process(2, 1, threads=(Thread(20, is_main=True),))
    traces = {
        1: Trace(
            b"same", {FORKER: 10, OTHER: 11}, pointers={native: 12, BLOCKS + 0x1C0: 13}, things={"queue-1": 0x7000}
        ),
        2: Trace(b"same", {FORKER: 20}, pointers={FORKER: 20}, things={"queue-5": 0x7000, "event-1": 0x7100}),
    }
    found = with_kinship([parent, mine], traces, lambda _pid: ElfCore(path))[1]
    assert (found.forked, found.left_behind) == (True, (LeftBehind(11, "pusher", ("queue-5",)), LeftBehind(12)))


def test_a_plain_lock_is_held_by_the_parents_thread(tmp_path: Path) -> None:
    """At the same address, as its `with` says: the line is cited."""
    lock = made(tmp_path, {}).resources[0]
    assert lock.owner_gone is True
    assert lock.wakers[0].frame is not None
    assert (lock.wakers[0].basis, lock.wakers[0].frame.line) == ("memory", 7)
    assert any(
        "pusher (11) holds the lock at the same address, acquired at p.py:7" in step for step in words(lock.because)
    )


def test_without_a_holder_in_the_parent_it_is_inferred(tmp_path: Path) -> None:
    """Nobody in the child can have taken it, but who did is a guess."""
    lock = made(tmp_path, {}, held=False).resources[0]
    assert (lock.owner_gone, lock.wakers[0].basis, lock.wakers[0].tid) == (True, "inferred", None)


def test_a_child_with_threads_of_its_own_may_have_taken_it(tmp_path: Path) -> None:
    """A plain lock records nobody: one of them may have it."""
    lock = made(tmp_path, {}, others=(Thread(21),)).resources[0]
    assert lock.owner_gone is None


def test_a_lock_with_a_holder_in_the_child_is_left_alone(tmp_path: Path) -> None:
    """Whatever the parent does with its copy."""
    lock = made(tmp_path, {"owner_tid": 20, "owner_basis": "with-slot"}).resources[0]
    assert (lock.wakers, lock.owner_gone) == ((), None)


def test_an_exec_lies_between(tmp_path: Path) -> None:
    """Other random bytes: not forked, whatever lies at the same addresses."""
    found = made(tmp_path, {}, origin=b"other")
    assert (found.forked, found.resources[0].owner_gone) == (False, None)


@pytest.mark.parametrize("known", [{"threads": (FORKER,)}, {"origin": None}])
def test_a_parent_that_had_no_other_thread_left_none_behind(tmp_path: Path, known: Dict[str, Any]) -> None:
    """Its threads of today may be younger than the child; and without the bytes nothing is known."""
    found = made(tmp_path, {}, **known)
    assert (found.forked, found.resources[0].owner_gone) == (None, None)


def test_a_core_that_is_gone_says_nothing(tmp_path: Path) -> None:
    """No exception: unknown."""
    traces = {1: Trace(b"same", {FORKER: 10, OTHER: 11}), 2: Trace(b"same", {FORKER: 20})}
    assert (
        with_kinship([Process(1), Process(2, 1)], traces, lambda _pid: ElfCore(str(tmp_path / "none")))[1].forked
        is None
    )


def test_where_two_processes_come_from(tmp_path: Path) -> None:
    """The bytes and where they lie; None when the core has no auxiliary vector, or not the page."""
    assert origin_of(ElfCore(child_core(tmp_path))) == struct.pack("<Q", 0x9000) + b"r" * 16
    bare = core(tmp_path / "bare", note(1, prstatus(2)), [(0x9000, b"", 4096)])
    assert origin_of(ElfCore(str(bare))) is None


def test_a_control_block_begins_with_its_own_address() -> None:
    """Anything else is no thread; neither is what is not there."""
    memory = Segments({0x1000: struct.pack("<QQ", 0x1000, 0x1000)})
    assert [was_thread(memory, at) for at in (0x1000, 0x1008, 0x1004, 0x9000)] == [True, False, False, False]


def block(at: int, tid: int = 0, cancel: int = 0) -> bytes:
    """A control block of glibc's."""
    data = bytearray(0x400)
    struct.pack_into("<QQQ", data, 0, at, 0, at)
    struct.pack_into("<i", data, 0x2D0, tid)
    struct.pack_into("<i", data, 0x308, cancel)
    return bytes(data)


def deserted(folder: Path, data: bytes, waits: bool = True, **child: Any) -> Process:
    """A child, with these bytes in its memory, that waits for a lock; its parent has one thread today."""
    notes = note(1, prstatus(2)) + note(6, struct.pack("<QQQQ", 25, 0x9000, 0, 0))
    path = core(folder / "child.core", notes, [(0x9000, b"r" * 16, 4096), (BLOCKS, data, len(data))])
    known = {"locked": True, "waiters": (20,) if waits else (), **child}
    mine = Process(
        2, 1, threads=(Thread(20, is_main=True),), resources=(Resource("lock-1", "lock", "Lock x", **known),)
    )
    traces = {
        1: Trace(b"same", {FORKER: 10}),
        2: Trace(b"same", {FORKER: 20}, {"lock-1": LockPlace(LOCK, None)}),
    }
    return with_kinship([Process(1, threads=(Thread(10),)), mine], traces, lambda _pid: ElfCore(str(path)))[1]


def test_the_holder_may_have_ended_in_the_parent_since(tmp_path: Path) -> None:
    """Its control block is in the child, not marked as one of a thread at its end: it was there at the fork."""
    found = deserted(tmp_path, bytes(0x440) + block(BLOCKS + 0x440))
    lock = found.resources[0]
    assert (found.forked, lock.owner_gone, lock.wakers[0].basis) == (True, True, "inferred")
    assert any("the parent had it when it forked" in step for step in words(lock.because))


@pytest.mark.parametrize(
    ("data", "child"),
    [
        (block(BLOCKS, cancel=0x10), {}),  # it had ended before
        (block(BLOCKS, tid=20), {}),  # the child's own
        (block(BLOCKS, cancel=0x7F00), {}),  # not glibc's
        (block(BLOCKS)[:0x20], {}),  # cut short
        (bytes(8) + block(BLOCKS + 8), {}),  # never so
        (block(BLOCKS), {"waits": False}),
        (block(BLOCKS), {"locked": False}),
        (block(BLOCKS), {"owner_tid": 20, "owner_basis": "with-slot"}),
    ],
)
def test_what_tells_of_no_thread_at_the_fork(tmp_path: Path, data: bytes, child: Dict[str, Any]) -> None:
    """Threads that ended before, threads of the child, other memory; and where nothing is to be explained."""
    assert deserted(tmp_path, data, **child).forked is None


@pytest.mark.parametrize(("owner", "basis"), [(None, "inferred"), (BLOCKS, "recorded"), (BLOCKS + 0x800, None)])
def test_the_parent_may_have_ended_too(tmp_path: Path, owner: Optional[int], basis: Optional[str]) -> None:
    """The block alone tells of the fork; a lock that records a thread which has none is another matter."""
    child = deserted(tmp_path, block(BLOCKS))
    trace = Trace(b"same", {FORKER + 8: 20}, {"lock-1": LockPlace(LOCK, owner)})
    lock = Resource("lock-1", "lock", "Lock x", locked=True, waiters=(20,))
    alone = Process(2, 1, threads=child.threads, resources=(lock,))
    found = with_kinship([alone], {2: trace}, lambda _pid: ElfCore(str(tmp_path / "child.core")))[0]
    assert found.forked is True
    assert [(w.role, w.basis, w.pid) for w in found.resources[0].wakers] == (
        [(BEFORE_FORK, basis, None)] if basis else []
    )
    assert found.resources[0].owner_gone is (True if basis else None)


@pytest.mark.parametrize(
    ("wait", "forked"),
    [
        (Wait("futex", "futex", endless=True), True),
        (Wait("condition", "futex", endless=True, resource="native-condition-1"), True),
        (Wait("futex", "futex", endless=False, timeout_s=2.0), None),
        (Wait("lock", "futex", endless=True, resource="lock-1"), None),
        (Wait("condition", "futex", endless=True, resource="condition-1"), None),
    ],
)
def test_a_wait_inside_a_native_library(tmp_path: Path, wait: Wait, forked: Optional[bool]) -> None:
    """In a lone core a pool of native threads may have stayed in the parent. Waits of Python's own objects tell more."""
    notes = note(1, prstatus(2)) + note(6, struct.pack("<QQQQ", 25, 0x9000, 0, 0))
    path = core(tmp_path / "lone.core", notes, [(0x9000, b"r" * 16, 4096), (BLOCKS, block(BLOCKS), 0x400)])
    waits = Thread(20, stack=(PythonFrame("/app/p.py", 7, "total"),), wait=wait, is_main=True)
    kept = (Resource("native-condition-1", "condition", "c"), Resource("condition-1", "condition", "d"))
    alone = Process(2, 1, threads=(waits,), resources=kept)
    found = with_kinship([alone], {2: Trace(b"same", {FORKER + 8: 20})}, lambda _pid: ElfCore(str(path)))[0]
    assert found.forked is forked


def test_control_blocks_are_found_wherever_they_lie(tmp_path: Path) -> None:
    """In several ranges, at any multiple of 64, across the pieces that are read at once; and they are not many."""
    at = BLOCKS + (1 << 20) - 0x40
    parts: List[Tuple[int, bytes, int]] = [(BLOCKS, bytes(at - BLOCKS) + block(at), 2 << 20), (LOCK, block(LOCK), 4096)]
    image = ElfCore(str(core(tmp_path / "core", note(1, prstatus(2)), parts)))
    assert sorted(abandoned(image, ())) == [LOCK, at]
    assert abandoned(image, (0,)) == ()


def test_a_thread_in_a_pid_namespace_is_not_left_behind(tmp_path: Path) -> None:
    """Its block has the number by which it knows itself, 7; we know it as 4711."""
    image = ElfCore(
        str(core(tmp_path / "core", note(1, prstatus(4711, fs_base=BLOCKS)), [(BLOCKS, block(BLOCKS, 7), 4096)]))
    )
    assert own_tids(image) == {4711, 7}
    assert abandoned(image, (4711,)) == (BLOCKS,)
    assert abandoned(image, own_tids(image)) == ()


@pytest.mark.parametrize("stacks", [0, 2])
def test_stacks_of_threads_that_are_not_there(stacks: int, tmp_path: Path) -> None:
    """Above a guard; a mapping below none is no thread's stack."""
    guarded = [(0x10_0000 * n + 0x1000, b"", 4096) for n in range(1, stacks + 1)]
    guards = [0x10_0000 * n for n in range(1, stacks + 1)]
    path = core(tmp_path / "x.core", note(1, prstatus(2)), [(0x9000, b"x", 4096), *guarded], guards=guards)
    with contextlib.closing(ElfCore(str(path))) as known:
        assert spare_stacks(known) == [0x10_0000 * n + 0x2000 for n in range(1, stacks + 1)]


@pytest.mark.parametrize(("child", "class_", "holder"), [(20, 0xABC0, 11), (5, 0xABC0, None), (20, 0xDEF0, None)])
def test_a_lock_of_a_lost_thread_whose_memory_is_used_again(
    tmp_path: Path, child: int, class_: int, holder: Optional[int]
) -> None:
    """The parent's thread is older than the child, which took its memory for one of its own: with a lock that is as old.

    A thread that is younger than the child was not there at the fork, and where the parent has another object, the lock
    was made later.
    """
    paths = {
        pid: core(tmp_path / f"{pid}.core", note(1, prstatus(pid)), [(LOCK, struct.pack("<QQ", 1, kind), 4096)])
        for pid, kind in ((1, 0xABC0), (child, class_))
    }
    lock = Resource("lock-1", "lock", "Lock book.lock", locked=True, waiters=(21,))
    parent = Process(1, threads=(Thread(1, ident=FORKER, is_main=True), Thread(11, "tariffs", ident=OTHER)))
    threads = (Thread(child, ident=FORKER, is_main=True), Thread(21, "worker", ident=OTHER))
    mine = Process(child, 1, threads=threads, resources=(lock,))
    traces = {
        1: Trace(b"same", {FORKER: 1, OTHER: 11}),
        child: Trace(b"same", {FORKER: child, OTHER: 21}, {"lock-1": LockPlace(LOCK, None)}),
    }
    found = with_kinship([parent, mine], traces, lambda pid: ElfCore(str(paths[pid])))[1].resources[0]
    assert [w.tid for w in found.wakers if w.role == BEFORE_FORK and w.tid is not None] == ([holder] if holder else [])
