"""A process: all that is known of it. ``tid``/``pid`` are the kernel's ids in the target's own pid namespace."""

from __future__ import annotations

from typing import Dict, Optional, Tuple

import msgspec

from .crashes import Crash
from .heap import Backlog, KeptException
from .interpreters import Gil, Interpreter, PythonInfo
from .loops import Loop, Pool, Task
from .machine import ControlGroup
from .resources import Resource
from .stacks import PythonFrame
from .threads import Counters, Thread


class SignalHandler(msgspec.Struct, frozen=True):
    """A Python function that the program has set for a signal; the interpreter's own are left out."""

    signal: int
    function: Optional[PythonFrame] = None  # at its first line


class Process(msgspec.Struct, frozen=True):
    pid: int
    ppid: Optional[int] = None
    argv: Tuple[str, ...] = ()
    exe: Optional[str] = None
    state: Optional[str] = None
    python: Optional[PythonInfo] = None
    interpreters: Tuple[Interpreter, ...] = ()
    threads: Tuple[Thread, ...] = ()
    resources: Tuple[Resource, ...] = ()
    loops: Tuple[Loop, ...] = ()
    tasks: Tuple[Task, ...] = ()
    age_s: Optional[float] = None  # seconds since it began, when the window began
    cpus_allowed: Optional[int] = None  # how many CPUs the scheduler may use for it
    io: Optional[Dict[str, int]] = None  # differences of /proc/PID/io over the window
    rss_growth: Optional[int] = None  # bytes over the window
    fatal_signal: Optional[int] = None  # from a core: the signal that ended it
    crash: Optional[Crash] = None  # of a core that a fatal signal left: what happened where
    listening: Optional[Tuple[int, ...]] = None  # TCP ports on which its process tree listens
    cwd: Optional[str] = None  # its working directory when it was captured
    directory: Optional[str] = None  # of its script, when frames name files by relative names
    counters: Optional[Counters] = None  # of the process as a whole
    tracer: Optional[int] = None  # pid of whoever traces it, or the tid of that thread
    tracer_name: Optional[str] = None
    stopped_by: Optional[int] = (
        None  # it was stopped when it was captured: the signal that did it. None: unknown, or not
    )
    stops: Tuple[PythonFrame, ...] = ()  # where its program's sources send a signal that stops a process
    cgroup: Optional[ControlGroup] = None
    pools: Tuple[Pool, ...] = ()
    signal_handlers: Optional[Tuple[SignalHandler, ...]] = None  # None: unknown
    forked: Optional[bool] = (
        None  # True: made by fork, without exec, of a parent that had more threads than the forking one
    )
    catches: Optional[Tuple[int, ...]] = (
        None  # signals that it catches, but for those that runtimes catch of themselves; None: unknown, as of a lone core
    )
    cancels: Optional[Tuple[str, ...]] = (
        None  # names in the program's own code that cancel tasks: "cancel", "all_tasks"
    )

    backlogs: Tuple[Backlog, ...] = ()  # the longest first
    kept_exceptions: Tuple[KeptException, ...] = ()  # those that keep the most first
    own_pid: Optional[int] = None  # by which it knows itself, in a pid namespace of its own; None: the same, or unknown

    @property
    def gil(self) -> Optional[Gil]:
        """The main interpreter's lock."""
        return self.interpreters[0].gil if self.interpreters else None
