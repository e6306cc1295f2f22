"""Kinds of places that refer to an object, as the search for its references (``referrers``) names them."""

from __future__ import annotations

from typing import Literal, NamedTuple, Optional

SlotKind = Literal[
    "attribute", "value", "key", "item", "field", "slot", "dict",  # of an object
    "local", "stack", "own",  # of a frame: variable, value stack, the interpreter's own fields
    "weak", "callback", "weak-list",  # of weak references
    "gone", "word",  # no longer a reference; unknown
]  # fmt: skip

_TEXTS = {
    "dict": "__dict__",
    "stack": "value",
    "own": "its own",
    "weak": "weak reference",
    "weak-list": "its weak references",
    "word": "a word",
}


class Slot(NamedTuple):
    """A place that refers to an object.

    ``name``: of an attribute, key or variable; None if not read.
    """

    kind: SlotKind
    name: Optional[str] = None

    def __str__(self) -> str:
        if self.name is not None:
            return f"value of {self.name!r}" if self.kind == "value" else f"{self.kind} {self.name}"
        return _TEXTS.get(self.kind, self.kind)


WEAK, CALLBACK = Slot("weak"), Slot("callback")
ITEM, KEY, FIELD, SLOT, DICT, STACK, OWN = (
    Slot("item"), Slot("key"), Slot("field"), Slot("slot"), Slot("dict"), Slot("stack"), Slot("own")
)  # fmt: skip
