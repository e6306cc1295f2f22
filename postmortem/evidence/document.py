"""The evidence document: all processes of a capture, and what could not be read."""

from __future__ import annotations

from typing import Dict, Optional, Tuple

import msgspec

from .facts import Value
from .machine import Machine
from .origin import Origin
from .processes import Process
from .vocabulary import GapCode, TriggerKind

SCHEMA = "postmortem.evidence/2"


class Trigger(msgspec.Struct, frozen=True):
    """The event that caused the capture, with its time limit or signal."""

    kind: TriggerKind
    seconds: Optional[float] = None
    signal: Optional[str] = None


class Gap(msgspec.Struct, frozen=True):
    """A fact that could not be read; the words for its code stand in ``report/phrases/gaps.py``."""

    source: str  # "gdb", "py-spy", "ptrace", "core", "cpython", "proc", …
    subject: str
    reason: Optional[str] = None  # the text of an error; else None, except where a version without codes wrote it
    remedy: Optional[str] = None  # likewise
    code: Optional[GapCode] = None  # None: written by a version without codes
    slots: Dict[str, Value] = {}  # of the template for the code

    @classmethod
    def of(cls, source: str, subject: str, code: GapCode, *, remedy: Optional[str] = None, **slots: Value) -> Gap:
        """Return a gap with these slots for the templates of its code; ``remedy`` replaces the code's, "" for none."""
        return cls(source, subject, None, remedy, code, slots)

    def __hash__(self) -> int:
        slots = tuple(sorted(self.slots.items(), key=lambda slot: slot[0]))
        return hash((self.source, self.subject, self.reason, self.remedy, self.code, slots))


class Timings(msgspec.Struct, frozen=True):
    """The duration of each phase of the capture and analysis, in seconds."""

    observe_s: Optional[float] = None
    pause_s: Optional[float] = None
    extract_s: Optional[float] = None
    classify_s: Optional[float] = None


class Evidence(msgspec.Struct, frozen=True):
    """All processes of a capture, with source lines, gaps and facts about the machine."""

    trigger: Trigger
    processes: Tuple[Process, ...] = ()
    gaps: Tuple[Gap, ...] = ()
    sources: Dict[str, Dict[int, str]] = {}  # file → line → text, for the lines shown in stacks
    loops: Dict[str, Dict[int, Tuple[int, ...]]] = {}  # file → line → lines of the `for`/`while` around it, inner first
    # for processes that run the same program: file → line → lines of the conditions that guard it, the nearest first
    branches: Dict[str, Dict[int, Tuple[int, ...]]] = {}
    timings: Timings = Timings()
    window_s: Optional[float] = None  # length of the observation window; None: no window
    machine: Optional[Machine] = None
    origin: Optional[Origin] = None  # for a core taken from a store
    schema: str = SCHEMA
    tool_version: str = ""
    checkout: Optional[str] = None  # root of the sources, above the working directory, as named by the CI server

    def source(self, file: str, line: Optional[int]) -> Optional[str]:
        """Return the text of a source line; None if it was not available during extraction."""
        return self.sources.get(file, {}).get(line) if line is not None else None
