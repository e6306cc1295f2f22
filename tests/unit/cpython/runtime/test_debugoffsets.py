"""What interpreters say of themselves, on synthesised memory: known ones, one of the future, and garbage."""

from __future__ import annotations

import struct
from typing import Dict, Tuple

import pytest

from postmortem.cpython.runtime.debugoffsets import DEBUG_COOKIE, SHAPES, Garbage, describe, read
from postmortem.cpython.runtime.layouts import Layout
from postmortem.cpython.runtime.releases import FREE_THREADED, LAYOUTS
from postmortem.memory import Segments

RUNTIME = 0x5000_0000
#: A table that suits the newest release, as far as anybody reads it.
SIZES = {
    "runtime": 350_000, "interpreter": 226_232, "thread": 888, "frame": 88, "code": 216, "object": 16, "type": 416,
    "heap_type": 920, "tuple": 32, "list": 40, "set": 200, "dict": 48, "float": 24, "long": 32, "bytes": 40, "str": 64,
    "gc": 300, "gen": 160,
}  # fmt: skip
KNOWN = {
    "object.type": 8, "tuple.ob_size": 16, "list.ob_size": 16, "bytes.ob_size": 16, "type.tp_name": 24,
    "frame.owner": 74, "code.firstlineno": 68, "str.state": 32, "gen.frame_state": 67,
}  # fmt: skip


def table(version: Tuple[int, int, int], free_threaded: int = 0, **changed: int) -> Segments:
    """An account in the newest shape; ``changed`` words are named ``section__word``."""
    said: Dict[str, int] = {}
    for section, words in SHAPES[max(SHAPES)]:
        for index, word in enumerate(words.split()):
            name = f"{section}.{word}"
            value = SIZES[section] if word == "size" else KNOWN.get(name, 8 * (index % 2))
            said[name] = changed.pop(f"{section}__{word}", value)
    assert not changed
    hex_version = version[0] << 24 | version[1] << 16 | version[2] << 8 | 0xF0
    numbers = [hex_version, free_threaded, *said.values()]
    return Segments({RUNTIME: DEBUG_COOKIE + struct.pack(f"<{len(numbers)}Q", *numbers)})


def test_an_unknown_version_is_read_by_its_own_offsets_with_a_warning() -> None:
    """An invented one that moved its fields: what it publishes counts, the rest is the newest row's, and one sentence
    names both versions."""
    newest = max(SHAPES)
    future = (3, newest[1] + 1, 2)
    memory = table(
        future, thread__next=48, thread__interp=56, code__filename=160, interpreter__gc=7000, gc__collecting=40
    )
    account = describe(memory, RUNTIME)
    assert account is not None and account.version == future and not account.free_threaded
    layout = account.layout
    assert (layout.ts_next, layout.ts_interp, layout.co_filename) == (48, 56, 160)
    assert layout.is_gc_collecting == 7040
    assert layout.ts_exc_info == LAYOUTS[max(LAYOUTS)].ts_exc_info
    assert len(account.warnings) == 1
    assert f"3.{future[1]}" in account.warnings[0] and f"3.{newest[1]}" in account.warnings[0]


def test_a_known_version_gives_no_warning() -> None:
    """The released shape, read as it is."""
    account = describe(table((3, 15, 1)), RUNTIME)
    assert account is not None and account.warnings == () and account.layout.fr_owner == 74


def test_a_free_threaded_build_has_a_larger_header() -> None:
    """All that is not published lies as much further back as the header that is."""
    memory = table(
        (3, 15, 0),
        1,
        object__size=32,
        object__type=24,
        tuple__size=48,
        tuple__ob_size=32,
        list__size=56,
        list__ob_size=32,
        bytes__size=56,
        bytes__ob_size=32,
        long__size=48,
        float__size=40,
        dict__size=64,
        str__size=80,
        frame__tlbc_index=72,
        frame__owner=78,
    )
    account = describe(memory, RUNTIME)
    assert account is not None and account.free_threaded
    assert (account.layout.ob_extra, account.layout.ob_type, account.layout.ob_size) == (16, 24, 32)
    assert account.layout.co_exceptiontable == LAYOUTS[(3, 15)].co_exceptiontable + 16
    assert account.layout.fr_tlbc_index == 72


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"thread__next": 1 << 40}, "next"),
        ({"thread__next": 12}, "no pointer"),
        ({"thread__size": 3}, "3 bytes"),
        ({"type__size": 1 << 30}, "type"),
        ({"object__type": 0}, "header"),
        ({"list__ob_size": 24}, "length"),
        ({"code__filename": 216}, "filename"),
        ({"gc__collecting": 1 << 63}, "collecting"),
    ],
)
def test_garbage_is_refused_with_a_sentence(changed: Dict[str, int], says: str) -> None:
    """An offset outside its struct, a struct of no size: nothing is believed, and it is said why."""
    memory = table((3, 16, 0), **changed)
    assert describe(memory, RUNTIME) is None
    with pytest.raises(Garbage, match=says):
        read(memory, RUNTIME)


@pytest.mark.parametrize("version", [(3, 12, 1), (2, 7, 18), (4, 0, 0), (0, 0, 0)])
def test_versions_that_publish_nothing_are_refused(version: Tuple[int, int, int]) -> None:
    """Before 3.13 there was no such table; whatever claims it is none."""
    assert describe(table(version), RUNTIME) is None


def test_a_table_that_is_cut_off_is_refused() -> None:
    """A page that is missing behind the cookie is garbage, a missing cookie is nobody's account."""
    with pytest.raises(Garbage, match="cannot be read"):
        read(Segments({RUNTIME: DEBUG_COOKIE + struct.pack("<2Q", 0x030D_0000, 0)}), RUNTIME)
    assert read(Segments({RUNTIME: b"\0" * 4096}), RUNTIME) is None


def test_every_row_of_a_free_threaded_build_differs_where_objects_do_and_nowhere_else() -> None:
    """A field of an object is 16 bytes further back, a field of a frame or a thread is not."""
    for minor, row in FREE_THREADED.items():
        plain: Layout = LAYOUTS[minor]
        assert row.co_filename == plain.co_filename + 16 and row.gen_iframe == plain.gen_iframe + 16
        assert row.str_length == plain.str_length + 16 and row.task_coro == plain.task_coro + 16
        assert (row.fr_code, row.ts_next, row.exc_value) == (plain.fr_code, plain.ts_next, plain.exc_value)
        assert row.dict_values_start == plain.dict_values_start and row.gen_created == plain.gen_created
