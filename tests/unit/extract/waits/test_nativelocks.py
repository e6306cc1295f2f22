"""Native locks as resources: who waits, who holds, what they are called."""

from __future__ import annotations

import struct
from typing import Dict, List, Optional, Sequence, Tuple

import pytest

from postmortem.evidence import Gil, Interpreter, NativeFrame, PythonFrame, Resource, Thread, Wait
from postmortem.extract.process.gil import gil_id, gil_resources
from postmortem.extract.process.threadtable import ThreadTable
from postmortem.extract.waits.nativelocks import NativeLocks
from postmortem.libc import FutexCall
from postmortem.memory import ElfCore, MappedFile, Segments
from postmortem.memory.notes import CoreThread

from ....support.inwords import words

LIBC, UNITS, PYTHON = "/lib/libc.so.6", "/app/_units.so", "/usr/bin/python3.12"
AT, SHARED_AT = 0x50000, 0x90000
MUTEX, GUARD = (0x80, 2), (0, 0x10100)


class Core(ElfCore):
    """Threads, bytes and mappings, without a file."""

    def __init__(self, tids: Sequence[int], parts: Dict[int, bytes], files: Sequence[MappedFile] = ()) -> None:
        self.threads = [CoreThread(tid, 0, {"fs_base": tid << 12}) for tid in tids]
        self.truncated = False
        descriptors = {tid << 12: bytes(720) + struct.pack("<I", tid) for tid in tids}
        self._memory = Segments({**parts, **descriptors})
        self._mapped = list(files)

    def read(self, address: int, size: int) -> bytes:
        return self._memory.read(address, size)

    def u64(self, address: int) -> int:
        return int.from_bytes(self.read(address, 8), "little")

    def words(self, address: int, count: int) -> Tuple[int, ...]:
        return struct.unpack(f"<{count}Q", self.read(address, 8 * count))

    @property
    def files(self) -> List[MappedFile]:
        return self._mapped

    def mapped_file(self, address: int) -> Optional[MappedFile]:
        return next((f for f in self._mapped if f.start <= address < f.end), None)

    def elf(self, path: str) -> None:
        return None


def mutex(owner: int, kind: int = 0) -> bytes:
    return struct.pack("<IIIIIhhQQ", 2, 0, owner, 1, kind, 0, 0, 0, 0)


def native(function: Optional[str], module: str = UNITS, address: int = 0x100) -> NativeFrame:
    return NativeFrame(function, module, address)


def settled(core: Core, calls: Dict[int, Tuple[int, int, int]], stacks: Dict[int, List[NativeFrame]]) -> NativeLocks:
    """``calls``: TID → (word, operation, expected)."""
    waits = {tid: FutexCall.of((*call, 0, 0, 0)) for tid, call in calls.items()}
    native = {tid: tuple(frames) for tid, frames in stacks.items()}
    return NativeLocks(core, ThreadTable.of_core(core, None), waits, native)


def only(locks: NativeLocks) -> Resource:
    (resource,) = locks.resources()
    return resource


WANTING = [native("__lll_lock_wait", LIBC), native("pthread_mutex_lock", LIBC), native("table_put")]


def test_a_mutex_with_its_holder_and_all_who_wait() -> None:
    """Two threads want one mutex: one resource, which both waits name; without a symbol it is called after the function."""
    locks = settled(Core([1, 2, 3], {AT: mutex(3)}), {1: (AT, *MUTEX), 2: (AT, *MUTEX)}, {1: WANTING, 2: WANTING})
    resource = only(locks)
    assert (resource.kind, resource.owner_tid, resource.owner_basis, resource.waiters) == (
        "mutex",
        3,
        "recorded",
        (1, 2),
    )
    assert resource.description == "a mutex wanted in table_put of _units.so"
    wait = locks.wait(1, Wait("futex", "futex", endless=True))
    assert wait is not None and (wait.kind, wait.resource, wait.endless) == ("mutex", resource.id, True)
    assert locks.wait(3, None) is None


def test_without_any_native_stack() -> None:
    """No gdb: the owner is known all the same, the name is not."""
    resource = only(settled(Core([1, 3], {AT: mutex(3)}), {1: (AT, *MUTEX)}, {}))
    assert (resource.owner_tid, resource.description) == (3, "a mutex of native code")


def test_a_holder_that_is_no_more() -> None:
    """It is said as a step of a proof; in a core that was cut short the thread may only be missing."""
    core = Core([1], {AT: mutex(77)})
    resource = only(settled(core, {1: (AT, *MUTEX)}, {}))
    assert (resource.owner_tid, resource.owner_gone) == (None, True)
    assert words(resource.because) == ("the mutex records thread 77 as its owner, and the process has no such thread",)
    core.truncated = True
    resource = only(settled(core, {1: (AT, *MUTEX)}, {}))
    assert (resource.owner_gone, words(resource.because)) == (None, ())


def test_a_guard_is_held_by_whoever_is_in_the_same_function() -> None:
    """libstdc++ records nobody: the one other thread in that function of that module is inferred; of two, none."""
    core = Core([1, 2, 3], {AT: struct.pack("<Q", 0x10100)})
    waiting = [native("syscall", LIBC), native("__cxa_guard_acquire", "/lib/libstdc++.so.6"), native("tables()")]
    inside = [native("take_gil", PYTHON), native("read_rows()"), native("tables()"), native("convert")]
    outside = [native("poll", LIBC), native("convert"), native("tables()", "/app/_other.so")]
    resource = only(settled(core, {1: (AT, *GUARD)}, {1: waiting, 2: inside, 3: outside}))
    assert (resource.owner_tid, resource.owner_basis) == (2, "inferred")
    assert words(resource.because) and "only other thread inside the function" in words(resource.because)[0]
    resource = only(settled(core, {1: (AT, *GUARD)}, {1: waiting, 2: inside, 3: inside}))
    assert (resource.owner_tid, words(resource.because)) == (None, ())
    nameless = [[*waiting[:2], native(None)], [native(None)]]
    assert only(settled(core, {1: (AT, *GUARD)}, {1: nameless[0], 2: nameless[1]})).owner_tid is None


SEMAPHORE = (0x189, 0)
TAKING = [native("do_futex_wait", LIBC), native("__new_sem_wait", LIBC), native("PyThread_acquire_lock_timed", PYTHON)]
BUSY = [native("poll", LIBC), native("main", PYTHON)]


def test_a_lock_that_an_extension_takes_of_the_interpreters_kind() -> None:
    """A Cython lock records nobody: the one other thread inside the same library holds it; of two, none."""
    core = Core([1, 2, 3], {AT: bytes(32)})
    waiting, inside = [*TAKING, native("_acquire_lock"), native("dealloc")], [*BUSY, native("read_rows")]
    resource = only(settled(core, {1: (AT, *SEMAPHORE)}, {1: waiting, 2: inside, 3: BUSY}))
    assert (resource.kind, resource.owner_tid, resource.owner_basis, resource.native) == ("lock", 2, "inferred", None)
    assert resource.description == "a lock wanted in _acquire_lock of _units.so"
    assert words(resource.because) == (
        "it records no owner; thread 2 is the only other thread inside the library that wants it",
    )
    assert only(settled(core, {1: (AT, *SEMAPHORE)}, {1: waiting, 2: inside, 3: inside})).owner_tid is None
    unseen = only(settled(core, {1: (AT, *SEMAPHORE)}, {1: waiting, 2: inside}))
    assert (unseen.kind, unseen.owner_tid) == ("lock", None)  # the third thread may be inside as well


@pytest.mark.parametrize(
    ("between", "kind"),
    [
        (("acquire_timed", "lock_PyThread_acquire_lock", "cfunction_call"), "lock"),
        ((None, None, "PyObject_Call"), "lock"),  # a build without symbols
        (("acquire_timed", "lock_PyThread_acquire_lock", "_PyEval_EvalFrameDefault"), "semaphore"),
        (("_queue_SimpleQueue_get_impl", "_queue_SimpleQueue_get", "cfunction_call"), "semaphore"),
    ],
)
def test_a_lock_of_threading_that_an_extension_takes(between: Tuple[Optional[str], ...], kind: str) -> None:
    """By its method ``acquire``, as numpy's generators do; not where Python code called it, nor a queue's get."""
    frames = [*TAKING, *(native(name, PYTHON) for name in between), native("seed")]
    resource = only(settled(Core([1, 2], {AT: bytes(32)}), {1: (AT, *SEMAPHORE)}, {1: frames, 2: BUSY}))
    assert resource.kind == kind
    assert (resource.description == "a lock wanted in seed of _units.so") is (kind == "lock")


def test_a_library_that_calls_back_into_itself() -> None:
    """A thread alone in it, which has entered it twice, has what it wants; one that has entered it once waits for others."""
    core = Core([1, 2], {AT: bytes(32)})
    python = native("_PyEval_EvalFrameDefault", PYTHON)
    twice = [*TAKING, native("parse"), python, native("read"), native("parse"), python]
    resource = only(settled(core, {1: (AT, *SEMAPHORE)}, {1: twice, 2: BUSY}))
    assert (resource.owner_tid, resource.owner_basis) == (1, "inferred")
    through_c = [*TAKING, native("parse"), native("qsort", LIBC), native("parse"), python]
    for stacks in ({1: [*TAKING, native("parse"), python], 2: BUSY}, {1: twice}, {1: through_c, 2: BUSY}):
        assert only(settled(core, {1: (AT, *SEMAPHORE)}, stacks)).owner_tid is None


def test_a_semaphore_that_processes_open_by_name() -> None:
    """Its file names it: one object in all of them, with its permits."""
    file = MappedFile(AT & ~0xFFF, (AT & ~0xFFF) + 0x1000, 0, "/dev/shm/sem.press")
    resource = only(
        settled(Core([1], {AT: bytes(32)}, [file]), {1: (AT, 0x109, 0)}, {1: [*TAKING[:2], native("take")]})
    )
    assert (resource.kind, resource.value, resource.locked) == ("shared-semaphore", 0, True)
    assert (resource.description, resource.native) == ("semaphore /press, shared by processes", True)
    assert resource.key == "shared-semaphore:/dev/shm/sem.press+0x0"


def test_a_call_that_the_thread_of_a_window_is_to_make() -> None:
    """_tkinter hands it over and waits on a condition: for the one other thread inside of it, if there is one."""
    core = Core([1, 2, 3], {AT: bytes(48)})
    window = "/lib/_tkinter.so"
    waiting = [native("pthread_cond_wait", LIBC), native("Tkapp_ThreadSend", window), native("Tkapp_Call", window)]
    runs = [*BUSY, native("_tkinter_tkapp_mainloop", window)]
    resource = only(settled(core, {1: (AT, *SEMAPHORE)}, {1: waiting, 2: runs, 3: BUSY}))
    assert (resource.kind, resource.owner_tid, resource.owner_basis) == ("condition", 2, "inferred")
    assert words(resource.because) == (
        "the thread of the library's event loop makes the call; thread 2 is the only other one inside that library",
    )
    for others in ({2: runs, 3: runs}, {2: BUSY, 3: BUSY}, {2: runs}):
        assert only(settled(core, {1: (AT, *SEMAPHORE)}, {1: waiting, **others})).owner_tid is None
    other = [native("pthread_cond_wait", LIBC), native("Tcl_WaitForEvent", window)]
    assert only(settled(core, {1: (AT, *SEMAPHORE)}, {1: other, 2: runs, 3: BUSY})).native is True


def test_a_semaphore_says_neither_who_holds_it_nor_what_it_is_for() -> None:
    """No holder is inferred for a lock of the interpreter itself, or of a library that counts with it."""
    core = Core([1, 2], {AT: bytes(32)})
    for waiting in ([*TAKING, native("acquire_timed", PYTHON)], [*TAKING[:2], native("enter")]):
        resource = only(settled(core, {1: (AT, *SEMAPHORE)}, {1: waiting, 2: [*BUSY, native("enter")]}))
        assert (resource.kind, resource.owner_tid, resource.native) == ("semaphore", None, True)


def test_threads_that_only_wait_for_the_guard_do_not_hold_it() -> None:
    """All in the same function, all waiting: the one that initialises is not among the threads."""
    core = Core([1, 2], {AT: struct.pack("<Q", 0x10100)})
    waiting = [native("syscall", LIBC), native("__cxa_guard_acquire", "/lib/libstdc++.so.6"), native("tables()")]
    resource = only(settled(core, {1: (AT, *GUARD), 2: (AT, *GUARD)}, {1: waiting, 2: waiting}))
    assert (resource.owner_tid, resource.waiters) == (None, (1, 2))


def test_what_a_thread_holds_has_the_line_from_which_it_went_there() -> None:
    """The oldest call into the module that wants the lock, and the Python frame below it."""
    locks = settled(Core([1, 3], {AT: mutex(3)}), {1: (AT, *MUTEX)}, {1: WANTING})
    inner, outer = PythonFrame("/app/rows.py", 5, "row"), PythonFrame("/app/run.py", 9, "run")
    stack = (native("take_gil", PYTHON), inner, native("table_put"), native("table_all"), outer, native("main", PYTHON))
    (held,) = locks.held_by(Thread(3, stack=stack))
    assert (held.frame, held.depth, held.basis) == (outer, 1, "recorded")
    assert locks.held_by(Thread(1, stack=(*WANTING, outer))) == ()
    assert locks.held_by(Thread(3, stack=(inner,))) == ()


def test_a_shared_mutex_has_a_key_that_every_process_finds() -> None:
    """By file and offset; memory without a name of its own has none."""
    for path, key in (("/dev/shm/table", "shared-mutex:/dev/shm/table+0x40"), ("/dev/zero (deleted)", None)):
        core = Core([1], {SHARED_AT: bytes(64) + mutex(77, 128)}, [MappedFile(SHARED_AT, SHARED_AT + 4096, 0, path)])
        resource = only(settled(core, {1: (SHARED_AT + 64, 0, 2)}, {}))
        assert (resource.key, resource.owner_tid, resource.owner_gone) == (key, None, None)


def test_a_join_in_c_is_no_lock() -> None:
    """The thread that is waited for is named; there is no resource that anybody could hold."""
    locks = settled(Core([1, 3], {AT: struct.pack("<I", 3)}), {1: (AT, 0x109, 3)}, {})
    wait = locks.wait(1, Wait("semaphore", "futex", endless=True))
    assert locks.joined(1) == 3 and locks.resources() == ()
    assert wait is not None and (wait.resource, wait.phrase) == (None, "waits for thread 3 to end (pthread_join)")


def test_equal_names_get_numbers() -> None:
    """Two mutexes that one function wants are two."""
    core = Core([1, 2, 3], {AT: mutex(3), SHARED_AT: mutex(3)})
    locks = settled(core, {1: (AT, *MUTEX), 2: (SHARED_AT, *MUTEX)}, {1: WANTING, 2: WANTING})
    assert [r.description[-2:] for r in locks.resources()] == ["#1", "#2"]


def test_the_gil_is_a_resource_of_those_who_wait_for_it() -> None:
    """With its holder and waiters; nobody wants it, and it is not listed."""
    threads = [Thread(1, wait=Wait("gil", "futex", gil_id(0))), Thread(2)]
    interpreters = [Interpreter(0, Gil(True, 2)), Interpreter(1, Gil(False))]
    (gil,) = gil_resources(interpreters, threads)
    assert (gil.id, gil.kind, gil.owner_tid, gil.owner_basis, gil.waiters) == ("gil-0", "gil", 2, "recorded", (1,))
    assert gil_resources(interpreters, threads[1:]) == ()
    (free,) = gil_resources([Interpreter(0, Gil(False))], threads)
    assert (free.owner_tid, free.owner_basis, free.locked) == (None, None, False)
