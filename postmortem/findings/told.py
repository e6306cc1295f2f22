"""Findings in words: the second half of ``report.json``, whose schema is public (INTERFACE in the README)."""

from __future__ import annotations

from typing import Literal, Optional, Tuple, get_args

import msgspec

SCHEMA = "postmortem.report/1"

#: Confidence of a finding, highest first. proven: all facts that show the cause were read, none was inferred.
Confidence = Literal["proven", "likely", "possible"]
CONFIDENCES: Tuple[Confidence, ...] = get_args(Confidence)


class Culprit(msgspec.Struct, frozen=True):
    """The place where to change the code; equal for any expression on the same line."""

    pid: int
    tid: Optional[int]
    task: Optional[str]
    file: str
    line: Optional[int]
    function: str
    source: Optional[str] = None
    end_line: Optional[int] = None  # of the running expression
    column: Optional[int] = None  # bytes of the line's UTF-8 before it
    end_column: Optional[int] = None  # bytes of end_line's UTF-8 up to its end

    def _place(self) -> Tuple[object, ...]:
        return (self.pid, self.tid, self.task, self.file, self.line, self.function, self.source)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Culprit) and self._place() == other._place()

    def __ne__(self, other: object) -> bool:
        return not self == other  # msgspec's own compares every field

    def __hash__(self) -> int:
        return hash(self._place())


class Victim(msgspec.Struct, frozen=True):
    """A process, thread or task that is blocked because of the finding."""

    pid: int
    tid: Optional[int] = None
    file: Optional[str] = None
    line: Optional[int] = None
    function: Optional[str] = None
    task: Optional[str] = None  # name of the task


class Finding(msgspec.Struct, frozen=True):
    """A recognised cause: what it is, what to do, and its evidence."""

    pattern: str
    confidence: Confidence
    summary: str
    explanation: str
    remedy: str
    references: Tuple[str, ...] = ()
    because_of: Tuple[str, ...] = ()
    culprits: Tuple[Culprit, ...] = ()
    victims: Tuple[Victim, ...] = ()
    evidence: Tuple[str, ...] = ()
    links: Tuple[int, ...] = ()  # positions in `evidence` of facts that each tell one link of a wait-for cycle


class Abstained(msgspec.Struct, frozen=True):
    """A pattern that could not be decided, and which evidence was missing."""

    pattern: str
    missing: Tuple[str, ...]


class RuledOut(msgspec.Struct, frozen=True):
    """A pattern that was excluded, and why, where that is worth reporting."""

    pattern: str
    because: str


#: What a process as a whole does. idle: it waits by design; progressing: something moves; waiting: for what does not come.
RootState = Literal["idle", "progressing", "waiting"]
#: What the wait that nobody owes is for; python, native: the code that runs; cycle: agents that wait for each other.
RootKind = Literal[
    "lock", "signal", "queue", "permits", "pool", "future", "task", "thread", "native-lock", "shared-lock", "file-lock", "gil",
    "process", "pipe", "socket", "terminal", "file", "loop", "sleep", "stopped", "python", "native", "cycle", "unknown",
]  # fmt: skip


class Root(msgspec.Struct, frozen=True):
    """The first wait that nobody owes on the way from the main thread, or from what does the program's work."""

    state: RootState
    kind: RootKind
    pid: int
    tid: Optional[int] = None
    task: Optional[str] = None  # name of the task
    file: Optional[str] = None  # the program's innermost line
    line: Optional[int] = None
    function: Optional[str] = None
    others: int = 0  # how many other threads and tasks end there, too


class Diagnosis(msgspec.Struct, frozen=True):
    """The diagnosis of one bundle or core."""

    verdict: Optional[str]
    signature: str
    findings: Tuple[Finding, ...] = ()
    abstained: Tuple[Abstained, ...] = ()
    ruled_out: Tuple[RuledOut, ...] = ()
    root: Optional[Root] = None  # None: no process could be read
