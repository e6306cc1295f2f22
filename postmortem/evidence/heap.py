"""What fills memory and grows: queues ahead of their consumers, exceptions that keep their frames alive."""

from __future__ import annotations

from typing import Optional, Tuple

import msgspec

from .resources import Waker
from .stacks import PythonFrame


class Backlog(msgspec.Struct, frozen=True):
    """A queue, or what is used as one, that frames of threads and tasks lead to, with what stands in it."""

    id: str
    kind: str  # class: "queue.Queue", "asyncio.Queue", "collections.deque", "list"
    name: str  # of the variable that leads to it: "Intake.jobs"
    items: int  # at the moment of capture
    limit: Optional[int] = None  # places in all, 0: no bound; None: unknown
    growth: Optional[int] = None  # items more than ``seconds`` before
    seconds: Optional[float] = None
    least: Optional[int] = None  # the fewest items that were seen meanwhile
    users: Tuple[Waker, ...] = ()  # threads and tasks whose frames lead to it
    made_at: Tuple[PythonFrame, ...] = ()  # where the program makes it, as its sources tell
    filled_at: Tuple[PythonFrame, ...] = ()
    emptied_at: Tuple[PythonFrame, ...] = ()

    @property
    def growth_per_s(self) -> Optional[float]:
        return self.growth / self.seconds if self.growth is not None and self.seconds else None


class KeptException(msgspec.Struct, frozen=True):
    """Exceptions of one type, raised at one place, that are kept alive with their tracebacks, beyond those that a thread
    is busy with."""

    type: str
    count: int
    frames: int  # kept alive by their tracebacks
    place: Optional[PythonFrame] = None  # where they were raised: the innermost frame of the traceback
    caught: Optional[PythonFrame] = None  # the outermost one: who caught it
    bytes: Optional[int] = None  # of what the variables of these frames refer to, as far as it was measured
    variable: Optional[str] = None  # that has the largest part of them: "rows in load"
    keepers: Tuple[str, ...] = ()  # what refers to them: "Importer.errors", "attribute last_error of Job"
    cyclic: Optional[int] = None  # how many are in a circle through a frame of their own traceback
    stored_at: Tuple[PythonFrame, ...] = ()  # where the program keeps them, as its sources tell
