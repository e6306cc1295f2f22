"""Processes forked without exec, and the locks that the child inherited.

fork(2) copies the memory but only the calling thread: a lock held by another thread at that moment stays locked in the
child for ever. Three things are compared while both cores are available:

- Each execve(2) puts 16 new random bytes on the stack (getauxval(3), AT_RANDOM). Equal bytes at an equal address mean
  that no exec lies between the processes. They seed stack canaries, so evidence does not contain them.
- A thread that is not forked leaves its memory behind. The first word of a thread's control block is the block's own
  address (tcbhead_t.tcb of glibc's sysdeps/x86_64/nptl/tls.h, struct pthread.self of musl), which is also
  threading.get_ident(). A block in the child without a thread shows a thread at the time of the fork. The parent's
  threads may have ended since, or its core may be missing; if a child waits for a lock without a holder, or inside a native
  library, its memory is therefore searched for blocks of threads that neither run nor were about to end (``abandoned``).
- A lock lies at the same address in both.
"""

from __future__ import annotations

import contextlib
from array import array
from typing import (
    Callable,
    Collection,
    Final,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from ...errors import PostmortemError
from ...evidence import Fact, LeftBehind, Process, Resource, Thread, Waker, fact
from ...evidence import replace as changed
from ...evidence.vocabulary import ResourceKind, WaitKind
from ...libc.musl import is_musl, left_behind
from ...memory import ElfCore, Fault, Image, Memory, NotElf
from ...timelimits import TimeLimit
from .semaphores import Claim

AT_RANDOM = 25
_CLASS = 8  # PyObject.ob_type
#: Role of the Waker for the parent's thread that held a lock at the fork.
BEFORE_FORK: Final = "before-fork"
_LOCKS: FrozenSet[ResourceKind] = frozenset(("lock", "rlock", "condition", "import-lock", "mutex", "rwlock"))
#: Waits inside native libraries, whose threads may have stayed in the parent.
_NATIVE: FrozenSet[WaitKind] = frozenset(("futex", "condition", "semaphore", "mutex"))
_MOST_THREADS = 1_000
#: struct pthread of glibc 2.28 and later on x86-64 (nptl/descr.h), aligned to 64 bytes:
#: - header.tcb and header.self: its own address
#: - tid: after the header (704 bytes) and a list of 16 bytes
#: - cancelhandling: after robust_prev, robust_head, cleanup and cleanup_jmp_buf; start_thread sets EXITING_BIT when the
#:   thread's function has returned
_ALIGNED, _SELF, _TID, _CANCEL = 64, 0x10, 0x2D0, 0x308
_EXITING, _CANCEL_BITS = 0x10, 0x80
#: Alignment of musl's struct pthread: that of its pointers.
_ALIGNED_ON_MUSL = 8
_PIECE = 1 << 20
#: Seconds for the search of a child's memory, about 1 GB/s.
_SEARCH_S = 2.0


class LockPlace(NamedTuple):
    """The address and recorded owner of a lock."""

    address: int
    owner_ident: Optional[int]  # if recorded
    owner_tid: Optional[int] = None  # owner of a native lock, if recorded

    @property
    def recorded(self) -> bool:
        """Return whether the lock records an owner."""
        return self.owner_ident is not None or self.owner_tid is not None


class Trace(NamedTuple):
    """Facts of one process that complete the evidence of others; evidence does not contain them."""

    origin: Optional[bytes] = None
    idents: Mapping[int, int] = {}  # threading.get_ident() → tid
    locks: Mapping[str, LockPlace] = {}  # by resource id
    claims: Mapping[str, Claim] = {}  # semaphores, by key
    complete: bool = True  # False: semaphores may be missing
    pointers: Mapping[int, int] = {}  # thread pointer → tid, native threads included
    things: Mapping[str, int] = {}  # resource id → address of the object
    children: Mapping[int, Optional[str]] = {}  # PID → name of children that it records as running
    shared_owners: Mapping[str, int] = {}  # TIDs that native locks in shared memory record, by resource id
    unsettled: bool = False  # a thread may have taken a semaphore that it has not counted yet


def origin_of(core: ElfCore) -> Optional[bytes]:
    """Return bytes that are equal in processes without an exec between them; None if the core lacks them."""
    address = core.auxv.get(AT_RANDOM)
    try:
        return address.to_bytes(8, "little") + core.read(address, 16) if address else None
    except (Fault, OverflowError):
        return None


#: Opens the core of a process by PID. Raises OSError, NotElf, ValueError or PostmortemError.
Reopen = Callable[[int], ElfCore]


def with_kinship(processes: Sequence[Process], traces: Mapping[int, Trace], reopen: Reopen) -> List[Process]:
    """Return the processes with ``forked`` set and the facts of inherited locks added."""
    by_pid = {p.pid: p for p in processes}
    return [_with_parent(p, by_pid.get(p.ppid or 0), traces, reopen) for p in processes]


def _with_parent(process: Process, parent: Optional[Process], traces: Mapping[int, Trace], reopen: Reopen) -> Process:
    mine, theirs = traces.get(process.pid), traces.get(parent.pid) if parent is not None else None
    if mine is None:
        return process
    if theirs is None or mine.origin is None or theirs.origin is None:
        parent, theirs = None, None  # it has ended, or was not captured
    elif mine.origin != theirs.origin:
        return changed(process, forked=False)
    left_behind, others = _left_behind(process, mine, theirs, reopen)
    known: Tuple[LeftBehind, ...] = ()
    if parent is not None and theirs is not None:
        tids = {theirs.idents[ident] for ident in left_behind if ident in theirs.idents} | set(others)
        known = tuple(
            _described(thread, parent, mine, theirs)
            for thread in parent.threads
            if thread.tid in tids or thread.ident in left_behind
        )
        known += _replaced(process, parent, mine, theirs, tids)
    if not left_behind and not others and not known:
        return process
    resources = process.resources
    if left_behind:
        existed = _existed(process, parent, mine, reopen) if parent is not None else frozenset()
        fork = _Fork(process, parent, mine, theirs or Trace(), left_behind, existed)
        resources = tuple(map(fork.completed, process.resources))
    return changed(process, forked=True, resources=resources, left_behind=known)


def _replaced(
    process: Process, parent: Process, mine: Trace, theirs: Trace, tids: Collection[int]
) -> Tuple[LeftBehind, ...]:
    """Return the threads that were not forked and whose memory another thread of the child uses now.

    The parent's thread awaits an object whose copy at the same address is awaited in the child, or is a queue there that
    somebody joins: it existed before the fork.
    """
    again = {
        theirs.idents[ident] for ident, tid in mine.idents.items() if ident in theirs.idents and tid != process.pid
    }
    awaited = {r.id for r in process.resources if r.waiters or r.waiting_tasks}
    told = (_described(t, parent, mine, theirs) for t in parent.threads if t.tid in again and t.tid not in tids)
    return tuple(one for one in told if awaited & set(one.serves))


def _described(thread: Thread, parent: Process, mine: Trace, theirs: Trace) -> LeftBehind:
    """Return a thread that was not forked, with the objects of the child whose originals it awaits in the parent."""
    awaited = {theirs.things.get(r.id) for r in parent.resources if thread.tid in r.waiters} - {None}
    serves = tuple(ident for ident, address in mine.things.items() if address in awaited)
    return LeftBehind(thread.tid, thread.name, serves)


def _left_behind(
    process: Process, mine: Trace, theirs: Optional[Trace], reopen: Reopen
) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """Return idents of Python threads that existed at the fork and are not in the child, and tids of native ones."""
    others = [ident for ident in theirs.idents if ident not in mine.idents] if theirs is not None else []
    recorded = [lock.owner_ident for lock in mine.locks.values() if lock.owner_ident not in (None, *mine.idents)]
    if theirs is not None:
        recorded += [mine.locks[r.id].owner_ident for r in process.resources if _is_anothers(r, mine, theirs)]
    wanted = list(dict.fromkeys([*recorded, *others]))[:_MOST_THREADS] if theirs is not None else []
    named = set(theirs.idents.values()) if theirs is not None else set()
    native = {
        pointer: tid
        for pointer, tid in (theirs.pointers if theirs is not None else {}).items()
        if pointer not in mine.pointers and tid not in named
    }
    puzzling = any(_nobody_has(r) and r.waiters for r in process.resources if r.id in mine.locks)
    puzzling = puzzling or (theirs is None and any(_waits_natively(process, thread) for thread in process.threads))
    if not wanted and not puzzling and not native:
        return (), ()
    try:
        core = reopen(process.pid)
    except (OSError, NotElf, ValueError, PostmortemError):
        return (), ()
    try:
        unnamed = tuple(tid for at, tid in list(native.items())[:_MOST_THREADS] if was_thread(core, at))
        found = tuple(ident for ident in wanted if ident is not None and was_thread(core, ident))
        if not found and puzzling:
            found = abandoned(core, {*own_tids(core), *(t.tid for t in process.threads)})
        if not found and puzzling and theirs is not None:
            found = _reused(process, mine, theirs)
        return found, unnamed
    finally:
        core.close()


def _reused(process: Process, mine: Trace, theirs: Trace) -> Tuple[int, ...]:
    """Return idents of threads of the parent that are older than the child, and whose memory other threads of it use now.

    The kernel counts IDs of threads and processes together, so that a smaller one is older.
    """
    again = (ident for ident, tid in mine.idents.items() if ident in theirs.idents and tid != process.pid)
    return tuple(ident for ident in again if theirs.idents[ident] < process.pid)


def _existed(process: Process, parent: Process, mine: Trace, reopen: Reopen) -> FrozenSet[str]:
    """Return the locks of a child that existed at the fork: the parent has an object of the same class at the address."""
    wanted = {r.id: mine.locks[r.id].address for r in process.resources if r.id in mine.locks and _nobody_has(r)}
    found: Set[str] = set()
    try:
        child, before = reopen(process.pid), reopen(parent.pid)
    except (OSError, NotElf, ValueError, PostmortemError):
        return frozenset()
    with contextlib.closing(child), contextlib.closing(before):
        for ident, address in wanted.items():
            with contextlib.suppress(Fault):
                class_ = child.u64(address + _CLASS)
                found.update((ident,) if class_ and before.u64(address + _CLASS) == class_ else ())
    return frozenset(found)


def _nobody_has(resource: Resource) -> bool:
    return resource.kind in _LOCKS and resource.locked is True and resource.owner_tid is None


def _waits_natively(process: Process, thread: Thread) -> bool:
    """Return whether Python code called a native library that waits, without a limit, for what nobody is known to have."""
    wait = thread.wait
    if (
        wait is None
        or wait.kind not in _NATIVE
        or wait.syscall != "futex"
        or wait.endless is False
        or not thread.python
    ):
        return False
    wanted = next((r for r in process.resources if r.id == wait.resource), None)
    return wanted is None or (wanted.owner_tid is None and wanted.id.startswith("native-"))


def _is_anothers(resource: Resource, mine: Trace, theirs: Trace) -> bool:
    """Return whether a lock records a thread of the parent whose ident another thread of the child has now.

    The C library gives the memory of a thread that was not forked, and so its ident, to the next thread. No function of
    that thread accounts for the record, and the parent's lock at the same address records the same ident.
    """
    place = mine.locks.get(resource.id)
    if place is None or place.owner_ident is None or resource.owner_basis != "inferred":
        return False
    return place.owner_ident in theirs.idents and any(
        (other.address, other.owner_ident) == (place.address, place.owner_ident) for other in theirs.locks.values()
    )


def spare_stacks(core: ElfCore) -> List[int]:
    """Return the end addresses of the stacks of threads if there are more than a process has threads besides the main one.

    A stack is a writable mapping just above one without any right; its thread's control block lies at its end
    (allocate_stack in glibc's nptl/allocatestack.c, __pthread_create in musl's pthread_create.c).
    """
    ends = []
    for start, end in core.writable:
        guard = core.mapping(start - 1)
        if guard is not None and guard.flags == 0 and guard.end == start:
            ends.append(end)
    return ends if len(ends) >= len(core.threads) else []


def was_thread(memory: Memory, ident: int) -> bool:
    """Return whether a thread's control block lies at this address."""
    try:
        return ident % 8 == 0 and memory.u64(ident) == ident
    except Fault:
        return False


def own_tids(core: ElfCore) -> Set[int]:
    """Return the TIDs of a core's threads, in the outer and in their own PID namespace."""
    found = {thread.tid for thread in core.threads}
    for thread in core.threads:
        with contextlib.suppress(Fault):
            found.add(core.u32(thread.regs.get("fs_base", 0) + _TID))
    return found


def abandoned(image: Image, tids: Collection[int]) -> Tuple[int, ...]:
    """Return addresses of the control blocks of threads left behind by fork.

    These threads neither run (``tids``) nor had ended; glibc keeps the block of a thread that ended before for reuse.
    """
    limit = TimeLimit(_SEARCH_S)
    found: List[int] = []
    on_musl = is_musl(image.files)
    aligned = _ALIGNED_ON_MUSL if on_musl else _ALIGNED
    for low, high in image.written:
        for start in range(low & -aligned, high, _PIECE):
            if limit.passed() or len(found) >= _MOST_THREADS:
                return tuple(found)
            places = _own_addresses(image, max(start, low), min(start + _PIECE, high), aligned)
            found += [at for at in places if (left_behind(image, at) if on_musl else _left_running(image, at, tids))]
    return tuple(found)


def _own_addresses(memory: Memory, low: int, high: int, aligned: int) -> Iterator[int]:
    """Yield the multiples of ``aligned`` whose word is its own address."""
    try:
        words = array("Q", memory.read(low, (high - low) & -8))
    except Fault:
        return
    first = -low % aligned
    yield from (
        at for at, word in zip(range(low + first, high, aligned), words[first // 8 :: aligned // 8]) if at == word
    )


def _left_running(memory: Memory, block: int, tids: Collection[int]) -> bool:
    try:
        cancel = memory.u32(block + _CANCEL)
        known = memory.u64(block + _SELF) == block and cancel < _CANCEL_BITS
        return known and not cancel & _EXITING and memory.u32(block + _TID) not in tids
    except Fault:
        return False


class _Fork(NamedTuple):
    process: Process
    parent: Optional[Process]  # None: not read
    mine: Trace
    theirs: Trace
    left_behind: Tuple[int, ...]
    existed: FrozenSet[str] = frozenset()  # locks that are older than the child

    def completed(self, resource: Resource) -> Resource:
        """Return a lock with its conclusion if no thread of the child can have taken it."""
        place = self.mine.locks.get(resource.id)
        if _is_anothers(resource, self.mine, self.theirs):
            resource = changed(resource, owner_tid=None, owner_basis=None)
        if place is None or not _nobody_has(resource):
            return resource
        if self.parent is None and place.recorded and place.owner_ident not in self.left_behind:
            return resource  # its holder may have been a thread of this process
        waker, steps = self._holder(place, resource.id in self.existed)
        gone = place.recorded or len(self.process.threads) == 1
        return changed(
            resource,
            owner_gone=True if gone else resource.owner_gone,
            wakers=(waker, *(() if gone else resource.wakers)),
            because=(*resource.because, *self._fork_steps(), *steps, *self._own_steps(place)),
        )

    def _fork_steps(self) -> Tuple[Fact, ...]:
        count, pid = len(self.left_behind), self.process.pid
        if self.parent is None:
            return (fact("left-behind-here", count=count, pid=pid),)
        parent = self.parent.pid
        return (
            fact("forked-from", pid=pid, parent=parent),
            fact("left-behind", count=count, pid=pid, parent=parent),
        )

    def _own_steps(self, place: LockPlace) -> Tuple[Fact, ...]:
        threads, pid = len(self.process.threads), self.process.pid
        if place.recorded:
            return (fact("records-no-thread-here", threads=threads, pid=pid),)
        if threads > 1:
            return (fact("no-frame-holds", threads=threads, pid=pid),)
        return (fact("only-thread-waits", pid=pid),)

    def _holder(self, place: LockPlace, existed: bool) -> Tuple[Waker, Tuple[Fact, ...]]:
        """Return the thread that holds the lock in the parent, or did at the fork, and the reasons.

        A lock that existed then can only be held by a thread that was left behind: if there is one, by that.
        """
        if self.parent is None:
            step = fact("records-one-left") if place.recorded else fact("parent-unread")
            return Waker(BEFORE_FORK, "recorded" if place.recorded else "inferred"), (step,)
        parent = self.parent.pid
        if place.recorded:
            tid = place.owner_tid if place.owner_ident is None else self.theirs.idents.get(place.owner_ident)
            thread = next((t for t in self.parent.threads if t.tid == tid), None)
            if thread is None:
                step = fact("recorded-ended-in-parent", parent=parent)
                return Waker(BEFORE_FORK, "recorded", parent), (step,)
            step = fact("recorded-in-parent", thread=_label(thread), parent=parent)
            return Waker(BEFORE_FORK, "recorded", parent, thread.tid, name=thread.name), (step,)
        same = [ident for ident, other in self.theirs.locks.items() if other.address == place.address]
        for thread in self.parent.threads:
            for held in thread.holds:
                if held.resource in same:
                    where = f"{held.frame.file.rsplit('/', 1)[-1]}:{held.frame.line}"
                    step = fact("same-address-held", parent=parent, thread=_label(thread), place=where)
                    waker = Waker(BEFORE_FORK, "memory", parent, thread.tid, frame=held.frame, name=thread.name)
                    return waker, (step,)
        left = [t for t in self.parent.threads if t.ident in self.left_behind]
        only = left[0] if existed and len(left) == len(self.left_behind) == 1 else None
        tid, name = (only.tid, only.name) if only is not None else (None, None)
        return Waker(BEFORE_FORK, "inferred", parent, tid, name=name), (fact("same-address-free", parent=parent),)


def _label(thread: Thread) -> str:
    return f"{thread.name} ({thread.tid})" if thread.name else f"thread {thread.tid}"
