"""Texts in words: templates of patterns with their slots filled."""

from __future__ import annotations

import string
from typing import Callable, Dict, Optional, Union, cast

from ...evidence import PythonFrame
from ...evidence.vocabulary import WakerBasis
from ...findings import Slot, Text, ThreadName
from ...waitgraph import Agent, Places
from . import bases

_FORMATTER = string.Formatter()


class Wording:
    """A writer of texts about one evidence document."""

    def __init__(self, places: Places) -> None:
        self._places = places
        #: What stands for a slot, by the type of its value.
        self._names: Dict[type, Callable[..., str]] = {
            str: str,
            Text: self.text,
            Agent: self._places.label,
            ThreadName: thread_name,
            PythonFrame: place,
        }

    def text(self, said: Union[Text, str]) -> str:
        """Return a text in words."""
        if isinstance(said, str):
            return said
        slots = dict(said.slots)
        parts = []
        for words, name, spec, _conversion in _FORMATTER.parse(said.template.words):
            parts.append(words)
            if name is not None:
                parts.append(self._slot(slots[name], spec or ""))
        return "".join(parts)

    def _slot(self, value: Slot, spec: str) -> str:
        """Return the words for a slot's value; see Template for the formats."""
        if spec == "known":
            return bases.known(cast(Optional[WakerBasis], value))
        if value is None:
            return ""
        named = self._names.get(type(value))
        if named is not None:
            return named(value)
        if isinstance(value, tuple):
            return (spec or ", ").join(self._slot(item, "") for item in value)
        if spec.startswith("n "):
            return counted(value, spec[2:])
        if spec.startswith("v "):
            one, _bar, several = spec[2:].partition("|")
            return (one if several else f"{one}s") if value == 1 else several or one
        return format(value, spec)


def counted(number: object, noun: str) -> str:
    """Return a number with its noun, "process|processes", in singular or plural; "s" is added if only one form is given."""
    one, _bar, several = noun.partition("|")
    return f"{number} {one if number == 1 else several or one + 's'}"


def thread_name(thread: ThreadName) -> str:
    """Return "NAME (TID)", or "thread TID" if it has no name."""
    return f"{thread.name} ({thread.tid})" if thread.name else f"thread {thread.tid}"


def place(frame: PythonFrame) -> str:
    """Return a short location: ``testclient.py:153 in _asgi_receive``."""
    return f"{frame.file.rsplit('/', 1)[-1]}:{frame.line or '?'} in {frame.function}"
