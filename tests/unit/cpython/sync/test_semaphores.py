"""Semaphores that processes share, on synthesised memory."""

from __future__ import annotations

import struct
from typing import Any, List, Tuple

import pytest

from postmortem.cpython.objects.builtins import NotThat, Objects
from postmortem.cpython.runtime.releases import LAYOUTS
from postmortem.cpython.sync.semaphores import find_semlocks, read_count, role_of, semlock
from postmortem.memory import Fault, MappedFile, Segments

LAYOUT = LAYOUTS[(3, 12)]
TYPE, NAME, OBJECT, SEMAPHORE, TEXT = 0x10000, 0x18000, 0x20000, 0x40000, 0x50000


class Core(Segments):
    """Memory that knows its files and what of it was written."""

    files: Tuple[MappedFile, ...] = ()

    @property
    def written(self) -> List[Tuple[int, int]]:
        return [(OBJECT, OBJECT + 0x100)]


def core(count: int = 1, kind: int = 1, limit: int = 1, name: int = TEXT) -> Core:
    memory = Core(
        {
            TYPE: b"\0" * 2048,
            NAME: b"_multiprocessing.SemLock\0" + b"\0" * 100,
            OBJECT: b"\0" * 0x100,
            SEMAPHORE: b"\0" * 32,
            TEXT: b"/mp-0a1b\0" + b"\0" * 100,
        }
    )
    memory.put_words(TYPE + LAYOUT.ob_type, TYPE)
    memory.put_words(TYPE + LAYOUT.tp_name, NAME)
    memory.put_words(TYPE + LAYOUT.tp_basicsize, 56)
    fields = struct.pack("<QQiiiiQ", SEMAPHORE, 0x7F00, count, limit, kind, 0, name)
    memory.put_words(OBJECT + LAYOUT.ob_type, TYPE)
    memory.put(OBJECT + 16, fields)
    return memory


def read(memory: Core) -> Any:
    return semlock(Objects(memory, LAYOUT), OBJECT)


def test_its_fields_are_read() -> None:
    """Where the semaphore is, who took it last, how often, and what it is."""
    found = read(core(count=2, kind=0))
    assert (found.handle, found.ident, found.taken, found.recursive, found.name) == (
        SEMAPHORE,
        0x7F00,
        2,
        True,
        "/mp-0a1b",
    )


@pytest.mark.parametrize(
    ("kind", "limit", "is_lock"), [(0, 1, True), (1, 1, True), (1, 5, False), (1, 2**31 - 1, False)]
)
def test_a_lock_has_one_permit(kind: int, limit: int, is_lock: bool) -> None:
    """Events, conditions and queues are made of semaphores with more."""
    assert read(core(kind=kind, limit=limit)).is_lock is is_lock


def test_a_name_that_is_gone_is_unknown() -> None:
    """It was unlinked, or its page is missing."""
    assert read(core(name=0)).name is None
    assert read(core(name=0x999000)).name is None


@pytest.mark.parametrize("damage", [{"kind": 7}, {"limit": 0}])
def test_damage_is_no_semaphore(damage: Any) -> None:
    """Values that none has."""
    with pytest.raises(NotThat):
        read(core(**damage))


def test_other_objects_are_none() -> None:
    """By the name of the type; what is not there faults or is no object."""
    memory = core()
    memory.put(NAME, b"str\0")
    with pytest.raises(NotThat):
        read(memory)
    with pytest.raises((NotThat, Fault)):
        semlock(Objects(core(), LAYOUT), 0x777000)


def test_its_value_and_waiters() -> None:
    """Low half and high half; unknown where the page is missing or the value impossible. musl says -1, or sets a bit, while
    somebody waits."""
    memory = core()
    memory.put_words(SEMAPHORE, 3 << 32)
    found = read_count(memory, SEMAPHORE)  # type: ignore[arg-type]
    assert found is not None
    assert (found.value, found.waiters) == (0, 3)
    assert read_count(memory, 0x777000) is None  # type: ignore[arg-type]
    memory.put_words(SEMAPHORE, 0xFFFFFFFF)
    assert read_count(memory, SEMAPHORE) is None  # type: ignore[arg-type]
    memory.put_words(SEMAPHORE, 1)
    memory.files = (MappedFile(0x1000, 0x2000, 0, "/lib/ld-musl-x86_64.so.1"),)
    for word, value in ((5, 5), (0xFFFFFFFF, 0), (0x80000000, 0), (0x80000002, 2)):
        memory.put_words(SEMAPHORE, word | 2 << 32)
        assert read_count(memory, SEMAPHORE) == (value, 2)  # type: ignore[arg-type]


class Python:
    """What of an interpreter a search needs."""

    def __init__(self, memory: Core) -> None:
        self.interpreters, self.layout, self.objects = [None], LAYOUT, Objects(memory, LAYOUT)

    def module_value(self, _interpreter: object, module: str, name: str) -> int:
        return TYPE if (module, name) == ("_multiprocessing", "SemLock") else 0


def test_all_are_found_by_the_address_of_their_type() -> None:
    """In written memory; only those whose semaphore is mapped count, so that old copies of objects do not."""
    memory = core()
    python: Any = Python(memory)
    image: Any = memory
    found, complete = find_semlocks(python, image, {SEMAPHORE: "key"})
    assert ([lock.address for lock in found], complete) == ([OBJECT], True)
    assert find_semlocks(python, image, {0x123000: "key"}) == ([], True)


def test_what_a_part_is_to_people() -> None:
    """The last attribute that says something."""
    assert role_of(("_semlock",)) is None
    assert role_of(("_rlock", "_semlock")) == "its lock for reading"
    assert role_of(("_cond", "_wait_semaphore", "_semlock")) == "its notification"
