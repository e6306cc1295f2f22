"""Objects that fill memory: queues that outgrow their consumers, exceptions that keep their frames alive."""

from __future__ import annotations

from typing import Optional, Tuple

import msgspec

from .resources import Waker
from .stacks import PythonFrame


class Backlog(msgspec.Struct, frozen=True):
    """A queue, or a container used as one, reachable from frames of threads or tasks, with its length."""

    id: str
    kind: str  # its class: "queue.Queue", "asyncio.Queue", "collections.deque", "list"
    name: str  # of the variable that refers to it: "Intake.jobs"
    items: int  # at the time of capture
    limit: Optional[int] = None  # capacity, 0: unbounded; None: unknown
    growth: Optional[int] = None  # items added over the preceding ``seconds``
    seconds: Optional[float] = None
    least: Optional[int] = None  # the fewest items seen during that time
    users: Tuple[Waker, ...] = ()  # threads and tasks whose frames refer to it
    made_at: Tuple[PythonFrame, ...] = ()  # where the program creates it, according to its sources
    filled_at: Tuple[PythonFrame, ...] = ()
    emptied_at: Tuple[PythonFrame, ...] = ()

    @property
    def growth_per_s(self) -> Optional[float]:
        """Return the growth in items per second; None if unknown."""
        return self.growth / self.seconds if self.growth is not None and self.seconds else None


class KeptException(msgspec.Struct, frozen=True):
    """Exceptions of one type, raised at one place, kept alive with their tracebacks.

    An exception that a thread is still handling or propagating is not counted.
    """

    type: str
    count: int
    frames: int  # frames kept alive by their tracebacks
    place: Optional[PythonFrame] = None  # where they were raised: the innermost frame of the traceback
    caught: Optional[PythonFrame] = None  # where they were caught: the outermost frame
    bytes: Optional[int] = None  # size of what these frames' variables refer to, as far as it was measured
    variable: Optional[str] = None  # the variable with the largest share: "rows in load"
    keepers: Tuple[str, ...] = ()  # what refers to them: "Importer.errors", "attribute last_error of Job"
    cyclic: Optional[int] = None  # how many are part of a reference cycle through a frame of their own traceback
    stored_at: Tuple[PythonFrame, ...] = ()  # where the program stores them, according to its sources
