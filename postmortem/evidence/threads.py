"""Threads: where they are, what they wait for, what they hold and did. Seconds are floats."""

from __future__ import annotations

from typing import Dict, Optional, Tuple

import msgspec

from .stacks import Calling, Frame, LeftOut, NativeFrame, PythonFrame, Recursion, Sample, ThreadException
from .vocabulary import Doing, GilState, OwnerBasis, WaitKind, WaitVerb


class Counters(msgspec.Struct, frozen=True):
    """What a thread or process did over the observation window (differences, not totals)."""

    seconds: float  # length of the window
    cpu_s: Optional[float] = None
    voluntary_switches: Optional[int] = None
    involuntary_switches: Optional[int] = None
    run_delay_s: Optional[float] = None  # runnable, but waiting for a CPU
    minor_faults: Optional[int] = None
    major_faults: Optional[int] = None  # pages that came from a disk
    io_delay_s: Optional[float] = None  # waiting for block devices; None where the kernel does not count it
    read_calls: Optional[int] = None  # read(2) and its like
    write_calls: Optional[int] = None
    states: Dict[str, int] = {}  # state letter → how many looks found it
    syscalls: Dict[str, int] = {}  # name ("running" for none) → how many looks found it
    wchan: Dict[str, int] = {}

    @property
    def switches_per_s(self) -> Optional[float]:
        """Voluntary ones: how often it went to sleep."""
        if self.voluntary_switches is None or self.seconds <= 0:
            return None
        return self.voluntary_switches / self.seconds


class Wait(msgspec.Struct, frozen=True):
    """What a thread waits for."""

    kind: WaitKind
    syscall: Optional[str] = None
    resource: Optional[str] = None  # id in Process.resources
    timeout_s: Optional[float] = None  # None: unknown or without end (see `endless`)
    endless: Optional[bool] = None  # True: no timeout at all
    fd: Optional[int] = None
    pid: Optional[int] = None  # the child waited for
    detail: Optional[str] = (
        None  # what follows the verb: "for a lock on a file"; of a call what kind of descriptor it is
    )
    polls_s: Optional[float] = None  # it does not wait, but asks again and again, and sleeps so long in between
    over: Optional[bool] = None  # True: it has been notified, and only has to wake. None: it was not, or is not known
    verb: Optional[WaitVerb] = None

    @property
    def phrase(self) -> Optional[str]:
        """One phrase for people: "waits for a lock on a file", "read on pipe (descriptor 3)"."""
        if self.verb == "call":
            what = f" on {self.detail} (descriptor {self.fd})" if self.detail else f" on descriptor {self.fd}"
            return f"{self.syscall}{what}"
        return f"{self.verb} {self.detail}" if self.verb is not None and self.detail else self.detail


class HeldLock(msgspec.Struct, frozen=True):
    """A lock that a frame of a thread holds."""

    resource: str
    frame: PythonFrame  # the frame whose `with` (or acquire) it is; line = where it was entered when known
    depth: int  # index of that frame in Thread.python, 0 = most recent call
    basis: OwnerBasis


class Stretch(msgspec.Struct, frozen=True):
    """What a thread was at from one look of the window to the next that differs."""

    first_s: float  # since the window began
    last_s: float
    doing: Doing


class Thread(msgspec.Struct, frozen=True):
    tid: int
    name: Optional[str] = None
    state: Optional[str] = None  # letter from /proc (R S D T t Z)
    gil: GilState = "unknown"
    wait: Optional[Wait] = None
    stack: Tuple[Frame, ...] = ()  # merged, most recent call first
    counters: Optional[Counters] = None
    samples: Tuple[Sample, ...] = ()
    timeline: Tuple[Stretch, ...] = ()  # over the observation window, without gaps; () when there was none
    holds: Tuple[HeldLock, ...] = ()
    is_main: bool = False
    daemon: Optional[bool] = None
    ident: Optional[int] = None  # threading.get_ident()
    interpreter: Optional[int] = None
    joins: Optional[int] = None  # tid of the thread that this one joins, when known
    exceptions: Tuple[ThreadException, ...] = ()  # the one on its way up first, then the one handled last
    gc: Optional[bool] = None  # does it run the cyclic garbage collector?
    recursion: Optional[Recursion] = None
    left_out: Optional[LeftOut] = None
    calling: Optional[Calling] = None

    @property
    def python(self) -> Tuple[PythonFrame, ...]:
        return tuple(f for f in self.stack if isinstance(f, PythonFrame))

    @property
    def native(self) -> Tuple[NativeFrame, ...]:
        return tuple(f for f in self.stack if isinstance(f, NativeFrame))
