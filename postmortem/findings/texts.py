"""Templates with typed slots: the texts of patterns before `report` puts them into words.

A pattern owns its templates; a match fills their slots with facts: a thread, a frame, a number, another text. Which words
stand for a fact, such as the name of a thread or the place of a frame, is decided in one place, ``report/phrases/wording``.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from functools import lru_cache
from typing import FrozenSet, NamedTuple, Optional, Tuple, Union

from ..evidence import Fact, PythonFrame
from ..waitgraph import Agent


class ThreadName(NamedTuple):
    """A thread as the slot of a text, in whichever process it is."""

    tid: int
    name: Optional[str] = None


@dataclass(frozen=True)
class Template:
    """Words with slots, ``{name}`` or ``{name:format}``; calling it with a value for each slot gives a text.

    Formats, beside those of Python for numbers:

    - ``{count:n thread}``, ``{count:n child|children}``: a number with its noun, "3 threads"
    - ``{count:v wait}``, ``{count:v has|have}``: the verb alone, in the form for that number
      (``@`` in a form is the number: ``{count:v once|@ times}``)
    - ``{more:+ and @ more}``: these words, ``@`` being the value; nothing for None, 0 or an empty tuple
    - ``{several: → }``: the separator between the items of a tuple; ", " if there is no format
    - ``{basis:known}``: how a holder or waker is known, in words

    ``None`` and an empty tuple become "": an optional clause is a slot whose value is a text of its own, or None.
    """

    words: str
    link: bool = False  # it says what one agent of a wait chain waits for, and who has that

    @property
    def names(self) -> FrozenSet[str]:
        """Return the names of the slots."""
        return _names(self.words)

    def __call__(self, **slots: Slot) -> Text:
        """Return the text with these slots; raises TypeError unless each slot of the template is given once."""
        if slots.keys() != self.names:
            raise TypeError(f"slots {sorted(slots)} for the template {self.words!r}")
        return Text(self, tuple(sorted(slots.items())))


@lru_cache(maxsize=None)
def _names(words: str) -> FrozenSet[str]:
    return frozenset(name for _text, name, _spec, _conversion in string.Formatter().parse(words) if name)


class Text(NamedTuple):
    """A template with the values of its slots, sorted by name. Equal texts read the same."""

    template: Template
    slots: Tuple[Tuple[str, Slot], ...] = ()


Slot = Union[None, str, int, float, ThreadName, Agent, PythonFrame, Text, Fact, Tuple["Slot", ...]]
