"""Types whose names are lost with the file that had them, on synthesised memory."""

from __future__ import annotations

import pytest

from postmortem.cpython.objects.builtins import NotThat, Objects
from postmortem.cpython.runtime import layouts as L
from postmortem.cpython.runtime.releases import LAYOUTS
from postmortem.cpython.state.typenames import read_type_names
from postmortem.memory import Fault, Segments

LAYOUT = LAYOUTS[(3, 12)]
TYPE, METATYPE, OBJECT, NOWHERE = 0x10000, 0x11000, 0x20000, 0x700000


def _memory(flags_of_metatype: int = L.FLAG_TYPE) -> Segments:
    """An object, its type and the type's type; both names lie in a page that is not there."""
    memory = Segments({TYPE: b"\0" * 2048, METATYPE: b"\0" * 2048, OBJECT: b"\0" * 64})
    for address, flags in ((TYPE, L.FLAG_UNICODE), (METATYPE, flags_of_metatype)):
        memory.put_words(address + LAYOUT.ob_type, METATYPE)
        memory.put_words(address + LAYOUT.tp_name, NOWHERE)
        memory.put_words(address + LAYOUT.tp_basicsize, 64)
        memory.put_words(address + LAYOUT.tp_flags, flags)
    memory.put_words(OBJECT + LAYOUT.ob_type, TYPE)
    return memory


def test_a_type_is_one_without_its_name() -> None:
    """Its flags say what its objects are; what it is called is unknown, not the empty name."""
    objects = Objects(_memory(), LAYOUT)
    assert objects.type_of(OBJECT).flags & L.FLAG_UNICODE
    assert objects.type_name(OBJECT) is None


def test_the_interpreter_names_it_later() -> None:
    """A type that was met before its name was learnt is called by it from then on."""
    objects = Objects(_memory(), LAYOUT)
    assert objects.type_name(OBJECT) is None
    objects.type_names = {TYPE: "str"}
    assert objects.type_name(OBJECT) == "str"
    assert objects.is_instance(OBJECT, "str")


def test_what_only_looks_like_a_type_is_none() -> None:
    """Without a name, something must tell a type from other memory: its own type makes types."""
    with pytest.raises(NotThat):
        Objects(_memory(flags_of_metatype=0), LAYOUT).type_of(OBJECT)


def test_modules_that_are_lost_too_name_nothing() -> None:
    """No exception: unknown stays unknown."""
    objects = Objects(_memory(), LAYOUT)
    with pytest.raises(Fault):
        objects.memory.u64(NOWHERE)
    assert read_type_names(objects, NOWHERE) == {}
    assert read_type_names(objects, OBJECT) == {}
