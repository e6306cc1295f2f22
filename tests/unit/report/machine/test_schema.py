"""The schema of report.json follows from the types."""

from __future__ import annotations

import json
from typing import Literal, Optional, get_type_hints

import pytest

from postmortem import evidence
from tools import schema


def test_the_schema_has_the_words_of_the_types() -> None:
    """`python -m tools.schema` would change nothing."""
    written = schema.PATH.read_text("utf-8")
    assert schema.text(schema.wanted(json.loads(written))) == written, "run `make docs`"


def test_every_vocabulary_of_a_class_is_an_enumeration() -> None:
    """No property whose type is a Literal is left a plain string."""
    known = json.loads(schema.PATH.read_text("utf-8"))["$defs"]
    for name, cls in schema.CLASSES.items():
        types = get_type_hints(cls)
        for field, said in known[name]["properties"].items():
            if field in types and schema.words(types[field]) is not None:
                assert said["enum"] == schema.words(types[field]), (name, field)
    assert "event" in known["wait"]["properties"]["kind"]["enum"]


@pytest.mark.parametrize(
    ("kind", "found"),
    [(Literal["a", "b"], ["a", "b"]), (Optional[Literal["a"]], ["a", None]), (Optional[int], None), (str, None)],
)
def test_words_of_a_type(kind: object, found: object) -> None:
    """The values of a Literal, with null where it is optional."""
    assert schema.words(kind) == found
    assert schema.words(get_type_hints(evidence.Wait)["verb"]) == ["waits", "wants", "asks", "call", None]
