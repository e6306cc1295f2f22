"""A process and everything known about it.

Ids (``pid``, ``tid``) are those of the pid namespace that the process was captured from; in a lone core, its own.
"""

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
from .vocabulary import EndBasis


class SignalHandler(msgspec.Struct, frozen=True):
    """A Python function that the program installed for a signal; the interpreter's own handlers are left out."""

    signal: int
    function: Optional[PythonFrame] = None  # at its first line
    # True: all its code was evaluated, and only stores numbers and texts, as a handler that sets a flag; None: not known
    quiet: Optional[bool] = None


class Ended(msgspec.Struct, frozen=True):
    """A child process that has ended."""

    pid: int
    basis: EndBasis
    name: Optional[str] = None  # its name in the program: "ForkPoolWorker-3"
    status: Optional[int] = None  # exit status, or minus the number of the signal that ended it; None: unknown


class LeftBehind(msgspec.Struct, frozen=True):
    """A thread of the parent that was there when this process was forked, and that this process therefore lacks."""

    tid: int  # in the parent
    name: Optional[str] = None
    # ids in this process's resources of objects of which that thread awaits the original in the parent
    serves: Tuple[str, ...] = ()


class Process(msgspec.Struct, frozen=True):
    """A process with its threads, tasks, resources and interpreters."""

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
    age_s: Optional[float] = None  # seconds from the process's start to the start of the window
    cpus_allowed: Optional[int] = None  # number of CPUs in its affinity mask
    io: Optional[Dict[str, int]] = None  # differences of /proc/PID/io over the window
    rss_growth: Optional[int] = None  # bytes over the window
    fatal_signal: Optional[int] = None  # from a core: the signal that ended the process
    crash: Optional[Crash] = None  # for a core left by a fatal signal: the fault
    listening: Optional[Tuple[int, ...]] = None  # TCP ports for which it has listening sockets, inherited ones included
    cwd: Optional[str] = None  # its working directory at capture
    directory: Optional[str] = None  # the directory of its script, if frames name files by relative paths
    counters: Optional[Counters] = None  # of the whole process
    tracer: Optional[int] = None  # pid of its tracer, or tid of the tracing thread
    tracer_name: Optional[str] = None
    stopped_by: Optional[int] = None  # the signal that had stopped it at capture; None: not stopped, or unknown
    stops: Tuple[PythonFrame, ...] = ()  # where the program's sources send a signal that stops a process
    cgroup: Optional[ControlGroup] = None
    pools: Tuple[Pool, ...] = ()
    signal_handlers: Optional[Tuple[SignalHandler, ...]] = None  # None: unknown
    forked: Optional[bool] = None  # True: forked, without exec, from a parent with threads besides the forking one
    # signals it catches, except those that runtimes catch by default; None: unknown, as for a lone core
    catches: Optional[Tuple[int, ...]] = None
    # names in the program's own code that cancel tasks: "cancel", "all_tasks"
    cancels: Optional[Tuple[str, ...]] = None

    backlogs: Tuple[Backlog, ...] = ()  # the longest first
    kept_exceptions: Tuple[KeptException, ...] = ()  # largest first
    left_behind: Tuple[LeftBehind, ...] = ()  # known threads of its parent that were not forked with it
    ended: Tuple[Ended, ...] = ()  # children that have ended, as far as known
    # number of multiprocessing's Process objects that it has made over its life; None: unknown
    children_made: Optional[int] = None
    exit_status: Optional[int] = None  # of a zombie: as in ``Ended``
    own_pid: Optional[int] = None  # its pid in its own pid namespace; None: the same as ``pid``, or unknown

    @property
    def gil(self) -> Optional[Gil]:
        """Return the main interpreter's GIL; None if unknown."""
        return self.interpreters[0].gil if self.interpreters else None
