"""Redaction of evidence: the one gate between what was read and whatever is shown or written.

Command lines and source lines have rules of their own; in every other text named secrets are masked. A secret found on
a command line (``--token X``) is masked everywhere else too: in a thread's name, in a local variable. Names of files
and functions stay: frames and sources are looked up by them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Dict, List, Optional, Set

import msgspec

from ..evidence import Counters, Evidence, Local, NativeFrame, PythonFrame, Stretch, ThreadException, Timings, replace
from .commands import masked_argv
from .secrets import MASK, masked
from .sources import masked_sources

#: Types without text of the program.
_PLAIN = (NativeFrame, Counters, Stretch, Timings)
#: Fields with paths, and with keys into these; argv has its own rules.
_KEPT = {"sources", "loops", "branches", "schema", "tool_version", "exe", "directory", "argv"}
_SHORTEST = 6
_ORDINARY = 12
_MOST = 100


def discreet(found: Evidence) -> Evidence:
    """Return the evidence with secrets masked; the same object if there are none. Idempotent."""
    secrets: Set[str] = set()
    commands = {process.pid: masked_argv(process.argv, secrets.add) for process in found.processes}
    clean = _Clean(secrets).struct(found)
    processes = tuple(
        process if process.argv == commands[process.pid] else replace(process, argv=commands[process.pid])
        for process in clean.processes
    )
    sources = masked_sources(found.sources)
    if processes == clean.processes and sources is found.sources:
        return clean  # type: ignore[no-any-return]
    return replace(clean, processes=processes, sources=sources)  # type: ignore[no-any-return]


def without_locals(found: Evidence) -> Evidence:
    """Return the evidence without what is read on request only: variables, and the messages of exceptions."""
    return _Bare().struct(found)  # type: ignore[no-any-return]


def has_locals(found: Evidence) -> bool:
    """Return whether any variable was read."""
    return any(frame.locals is not None for p in found.processes for t in p.threads for frame in t.python)


class _Walk:
    """A walk over values of any type of evidence; unchanged ones are returned as they are, not copied."""

    def __init__(self) -> None:
        self._fields: Dict[type, List[str]] = {}

    def text(self, text: str) -> str:
        """Return the replacement of a text."""
        return text

    def frame(self, frame: PythonFrame) -> PythonFrame:
        """Return the replacement of a frame that has variables."""
        raise NotImplementedError

    def struct(self, value: Any) -> Any:
        """Return the replacement of a struct, the same object if unchanged."""
        names = self._fields.get(type(value))
        if names is None:
            names = self._fields[type(value)] = [n for n in value.__struct_fields__ if n not in _KEPT]
        changes = {}
        for name in names:
            before = getattr(value, name)
            after = self._any(before)
            if after is not before:
                changes[name] = after
        return replace(value, **changes) if changes else value

    def _any(self, value: Any) -> Any:
        if isinstance(value, str):
            shown = self.text(value)
            return value if shown == value else shown
        if isinstance(value, PythonFrame):
            return value if value.locals is None else self.frame(value)
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, msgspec.Struct):
            return self.struct(value)
        if isinstance(value, tuple):
            items = tuple(map(self._any, value))
            return items if any(a is not b for a, b in zip(items, value)) else value
        if isinstance(value, dict):
            slots = {key: self._any(item) for key, item in value.items()}
            return slots if any(slots[key] is not item for key, item in value.items()) else value
        return value


class _Clean(_Walk):
    def __init__(self, secrets: Set[str]) -> None:
        super().__init__()
        known = _known(secrets)
        self._mask = lru_cache(maxsize=65536)(lambda text: masked(known.sub(MASK, text) if known is not None else text))

    def text(self, text: str) -> str:
        return self._mask(text)

    def frame(self, frame: PythonFrame) -> PythonFrame:
        found = frame.locals or ()
        shown = tuple(Local(local.name, local.type, self.text(local.text)) for local in found)
        same = all(a.text == b.text for a, b in zip(found, shown))
        return frame if same else replace(frame, locals=shown)


class _Bare(_Walk):
    def frame(self, frame: PythonFrame) -> PythonFrame:
        return replace(frame, locals=None)

    def struct(self, value: Any) -> Any:
        if isinstance(value, ThreadException):
            return value if value.message is None else replace(value, message=None)
        return super().struct(value)


def _known(secrets: Set[str]) -> Optional[re.Pattern[str]]:
    """Return a pattern of the secrets found on command lines, as whole words.

    Without those that may be ordinary words (``--auth basic``).
    """
    words = sorted((word for word in secrets if _is_telling(word)), key=len, reverse=True)[:_MOST]
    return re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words)) if words else None


def _is_telling(word: str) -> bool:
    return len(word) >= _ORDINARY or (
        len(word) >= _SHORTEST and not word.isalpha() and not word.replace(".", "").isdigit()
    )
