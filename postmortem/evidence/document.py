"""Evidence: all processes of a capture, and what could not be read."""

from __future__ import annotations

from typing import Dict, Optional, Tuple

import msgspec

from .machine import Machine
from .origin import Origin
from .processes import Process
from .vocabulary import GapCode, TriggerKind

SCHEMA = "postmortem.evidence/2"


class Trigger(msgspec.Struct, frozen=True):
    kind: TriggerKind
    seconds: Optional[float] = None
    signal: Optional[str] = None


class Gap(msgspec.Struct, frozen=True):
    """Something that could not be read."""

    source: str  # "gdb", "py-spy", "ptrace", "core", "cpython", "proc", …
    subject: str
    reason: str
    remedy: Optional[str] = None
    code: Optional[GapCode] = None  # None: written before there were codes


class Timings(msgspec.Struct, frozen=True):
    observe_s: Optional[float] = None
    pause_s: Optional[float] = None
    extract_s: Optional[float] = None
    classify_s: Optional[float] = None


class Evidence(msgspec.Struct, frozen=True):
    trigger: Trigger
    processes: Tuple[Process, ...] = ()
    gaps: Tuple[Gap, ...] = ()
    sources: Dict[str, Dict[int, str]] = {}  # file → line → text, for the lines that stacks show
    loops: Dict[str, Dict[int, Tuple[int, ...]]] = {}  # file → line → lines of the `for`/`while` around it, inner first
    branches: Dict[
        str, Dict[int, Tuple[int, ...]]
    ] = {}  # of processes that run the same program: file → line → lines of
    # the conditions that decide whether it is reached, the nearest first
    timings: Timings = Timings()
    window_s: Optional[float] = None  # length of the observation window, None when there was none
    machine: Optional[Machine] = None
    origin: Optional[Origin] = None  # of a core that a store kept
    schema: str = SCHEMA
    tool_version: str = ""
    checkout: Optional[str] = None  # the folder of the sources, above the working directory, as the CI server called it

    def source(self, file: str, line: Optional[int]) -> Optional[str]:
        """The text of a source line, when it was at hand during extraction."""
        return self.sources.get(file, {}).get(line) if line is not None else None
