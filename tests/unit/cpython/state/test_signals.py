"""The table of signal handlers in made data."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Tuple

import pytest

from postmortem.cpython.state.signals import handlers
from postmortem.memory import MappedFile, Segments

DATA, DEFAULT, IGNORE, OWN, NONE, HANDLER = 0x100000, 0x9000, 0x9020, 0x9040, 0x9060, 0x9080
NAMES = {"SIG_DFL": DEFAULT, "SIG_IGN": IGNORE, "default_int_handler": OWN}
TYPES = {OWN: "builtin_function_or_method", NONE: "NoneType", HANDLER: "function"}


class Image(Segments):
    """Data of one file, and what lies behind it, which is missing."""

    @property
    def files(self) -> List[MappedFile]:
        return [MappedFile(DATA, DATA + 4096, 0, "/python")]

    @property
    def writable(self) -> List[Tuple[int, int]]:
        return [(DATA, DATA + 4096), (DATA + 4096, DATA + 12288)]  # of the second nothing is at hand


def python(entries: Dict[int, int], at: int = 512, tripped: int = 0) -> Any:
    functions = [0] + [entries.get(number, DEFAULT) for number in range(1, 65)]
    image = Image({DATA: b"\0" * 4096})
    image.put(DATA + at, b"".join(struct.pack("<iiQ", tripped, 0, function) for function in functions))
    return SimpleNamespace(
        memory=image,
        interpreters=[object()],
        runtime=SimpleNamespace(path="/python", address=DATA),
        objects=SimpleNamespace(type_name=TYPES.get),
        module_value=lambda _interpreter, _module, name: NAMES.get(name),
    )


def found(entries: Dict[int, int], **how: int) -> Optional[List[Tuple[int, int]]]:
    read = handlers(python(entries, **how))
    return None if read is None else [(one.signal, one.callable) for one in read]


def test_a_program_that_sets_none_has_none() -> None:
    """The interpreter's own handler of SIGINT, what is ignored, and what C code has taken over do not count."""
    assert found({2: OWN, 13: IGNORE, 32: NONE, 33: NONE}) == []


@pytest.mark.parametrize("signals", [[1], [64], [1, 2, 3, 64], list(range(1, 30))])
def test_handlers_are_found_by_number(signals: List[int]) -> None:
    """At either end of the table, and where many are set."""
    assert found(dict.fromkeys(signals, HANDLER)) == [(number, HANDLER) for number in signals]


@pytest.mark.parametrize("damage", [{5: 0}, {5: 0x7777}], ids=["an empty entry", "no object"])
def test_what_is_no_table_is_unknown(damage: Dict[int, int]) -> None:
    """None, never an empty list."""
    assert found(damage) is None


def test_a_table_with_strange_flags_is_none() -> None:
    """`tripped` is 0 or 1."""
    assert found({}, tripped=7) is None
    assert found({}, tripped=1) == []
