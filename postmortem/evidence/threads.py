"""Threads: their stacks, waits, held locks and activity over the window. Seconds are floats."""

from __future__ import annotations

from typing import Dict, Optional, Tuple

import msgspec

from .stacks import Calling, Frame, LeftOut, NativeFrame, PythonFrame, Recursion, Sample, ThreadException
from .vocabulary import Deed, Doing, GilState, OwnerBasis, WaitKind, WaitVerb


class Counters(msgspec.Struct, frozen=True):
    """The activity of a thread or process over the observation window (differences, not totals)."""

    seconds: float  # length of the window
    cpu_s: Optional[float] = None
    voluntary_switches: Optional[int] = None
    involuntary_switches: Optional[int] = None
    run_delay_s: Optional[float] = None  # runnable, waiting for a CPU
    minor_faults: Optional[int] = None
    major_faults: Optional[int] = None  # pages read from disk
    io_delay_s: Optional[float] = None  # waiting for block devices; None: not counted by the kernel
    read_calls: Optional[int] = None  # calls of read(2) and its variants
    write_calls: Optional[int] = None
    states: Dict[str, int] = {}  # state letter → number of observations
    syscalls: Dict[str, int] = {}  # name ("running" for none) → number of observations
    wchan: Dict[str, int] = {}

    @property
    def switches_per_s(self) -> Optional[float]:
        """Return the voluntary context switches per second; None if unknown."""
        if self.voluntary_switches is None or self.seconds <= 0:
            return None
        return self.voluntary_switches / self.seconds


class Wait(msgspec.Struct, frozen=True):
    """The operation that a thread waits for."""

    kind: WaitKind
    syscall: Optional[str] = None
    resource: Optional[str] = None  # id in Process.resources
    timeout_s: Optional[float] = None  # the limit given; None: unknown or unlimited (see `endless`)
    endless: Optional[bool] = None  # True: no timeout
    fd: Optional[int] = None
    pid: Optional[int] = None  # the child waited for
    # the phrase after the verb: "for a lock on a file"; for the verb "call" the kind of descriptor
    detail: Optional[str] = None
    polls_s: Optional[float] = None  # sleep between attempts of a thread that polls instead of waiting
    over: Optional[bool] = None  # True: already notified, not yet woken; None: not notified, or unknown
    verb: Optional[WaitVerb] = None
    # seconds from the capture until the wait gives up; negative: overdue; None: no limit, or unknown
    remaining_s: Optional[float] = None
    # id in Process.resources of the pool, limiter or the like around `resource`, of which the thread wants a part
    gate: Optional[str] = None

    @property
    def phrase(self) -> Optional[str]:
        """Return the wait as a phrase: "waits for a lock on a file", "read on pipe (descriptor 3)"; None if unknown."""
        if self.verb == "call":
            what = f" on {self.detail} (descriptor {self.fd})" if self.detail else f" on descriptor {self.fd}"
            return f"{self.syscall}{what}"
        return f"{self.verb} {self.detail}" if self.verb is not None and self.detail else self.detail


class HeldLock(msgspec.Struct, frozen=True):
    """A lock held by a frame of a thread or task."""

    resource: str
    frame: PythonFrame  # the frame with the `with` statement or acquire call; line: of the acquisition, if known
    depth: int  # index of that frame in Thread.python, 0: most recent call
    basis: OwnerBasis


class Stretch(msgspec.Struct, frozen=True):
    """A span of the window in which every observation of a thread gave the same activity."""

    first_s: float  # since the start of the window
    last_s: float
    doing: Doing


class Rounds(msgspec.Struct, frozen=True):
    """What looks at a running thread showed of the loop that it computes in."""

    function: str  # the innermost function that was on its stack at every look
    file: str
    first_line: int
    looks: int
    turns: int  # how often the function, or one that called it, was seen to step back
    # True: all variables that were read returned to their values; False: one did not; None: that is not known
    same: Optional[bool] = None
    changed: Tuple[str, ...] = ()  # names of variables that did not return


class Thread(msgspec.Struct, frozen=True):
    """A thread of a process: its stack, wait, held locks and counters."""

    tid: int
    name: Optional[str] = None
    state: Optional[str] = None  # letter from /proc (R S D T t Z)
    gil: GilState = "unknown"
    wait: Optional[Wait] = None
    stack: Tuple[Frame, ...] = ()  # Python and native frames merged, most recent call first
    counters: Optional[Counters] = None
    samples: Tuple[Sample, ...] = ()
    timeline: Tuple[Stretch, ...] = ()  # covers the observation window without gaps; (): no window
    holds: Tuple[HeldLock, ...] = ()
    is_main: bool = False
    daemon: Optional[bool] = None
    ident: Optional[int] = None  # threading.get_ident()
    interpreter: Optional[int] = None
    joins: Optional[int] = None  # tid of the thread it joins, if known
    exceptions: Tuple[ThreadException, ...] = ()  # the propagating one first, then the one handled last
    gc: Optional[bool] = None  # True: runs the cyclic garbage collector
    recursion: Optional[Recursion] = None
    left_out: Optional[LeftOut] = None
    calling: Optional[Calling] = None
    # True: it sleeps in an endless loop, all code of which was evaluated, and only sleeps and counts; None: not known
    quiet: Optional[bool] = None
    rounds: Optional[Rounds] = None
    # of a thread that will go on: what its code names; None: not looked at
    deeds: Optional[Tuple[Deed, ...]] = None

    @property
    def python(self) -> Tuple[PythonFrame, ...]:
        """Return the Python frames of the stack, most recent call first."""
        return tuple(f for f in self.stack if isinstance(f, PythonFrame))

    @property
    def native(self) -> Tuple[NativeFrame, ...]:
        """Return the native frames of the stack, most recent call first."""
        return tuple(f for f in self.stack if isinstance(f, NativeFrame))
