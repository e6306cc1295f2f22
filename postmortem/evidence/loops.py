"""Event loops and their tasks, thread pools and process pools. Numbers are those of the moment of capture."""

from __future__ import annotations

from typing import Optional, Tuple

import msgspec

from .stacks import PythonFrame
from .threads import HeldLock
from .vocabulary import LoopState, PoolKind, TaskState, TaskWaitKind


class Loop(msgspec.Struct, frozen=True):
    """An event loop. Numbers are those of the moment of capture."""

    id: str
    tid: Optional[int]
    kind: str = "asyncio"
    ready: Optional[int] = None  # length of the ready queue
    scheduled: Optional[int] = None  # timers
    running_task: Optional[str] = None
    spins_per_s: Optional[float] = None
    ready_callbacks: Tuple[PythonFrame, ...] = ()  # functions waiting in the ready queue, when not tasks
    readers: Optional[int] = None  # descriptors in the selector
    sockets: Tuple[str, ...] = ()  # ids in Process.resources of the sockets that it watches
    watchers: Tuple[
        PythonFrame, ...
    ] = ()  # functions called when a watched descriptor is ready, the loop's own left out
    watched: Optional[int] = None  # descriptors in the selector beside the loop's own wake-up pipe
    descriptors: Tuple[str, ...] = ()  # ids in Process.resources of those that are known
    next_timer_s: Optional[float] = None  # until the first timer is due; negative: overdue
    signals: Optional[Tuple[int, ...]] = None  # that it has handlers for
    state: Optional[LoopState] = None
    main_task: Optional[str] = None  # id of the task until whose end it runs
    turn_s: Optional[float] = None  # since its present turn began; None: it waits, or is not known
    turn_callbacks: Optional[int] = None  # that this turn is to run
    turn_done: Optional[int] = None  # of these: before the one that runs
    turned: Optional[bool] = None  # did it begin a new turn during the window?
    callback_lasts_s: Optional[float] = None  # the callback that runs has been the same for so long, and more
    spawned_at: Tuple[
        PythonFrame, ...
    ] = ()  # of one with much to do: where the program makes tasks and callbacks in loops


class TaskWait(msgspec.Struct, frozen=True):
    """What a suspended task waits for."""

    kind: TaskWaitKind
    resource: Optional[str] = None  # id in Process.resources
    tasks: Tuple[str, ...] = ()  # ids of awaited tasks
    any: bool = False  # the first of `tasks` to end will do
    endless: Optional[bool] = None  # True: nothing ends it by the clock
    detail: Optional[str] = None  # one phrase for people
    timeout_s: Optional[float] = None  # of a sleep: how long in all; else unknown

    @property
    def phrase(self) -> Optional[str]:
        """One phrase for people, as a thread's wait has it."""
        return self.detail


class Task(msgspec.Struct, frozen=True):
    id: str
    name: Optional[str]
    state: TaskState
    loop: Optional[str]
    stack: Tuple[PythonFrame, ...] = ()  # innermost await first
    awaiting: Optional[str] = None  # what the innermost frame awaits: "sleep(0)", "Future", "Task:NAME", …
    resource: Optional[str] = None  # id in Process.resources of the socket that it waits for
    wait: Optional[TaskWait] = None  # None: it runs, is ready to, or what it waits for is unknown
    holds: Tuple[HeldLock, ...] = ()  # asyncio locks that its coroutines hold; depth: index in `stack`
    ready: Optional[bool] = None  # True: it waits for nothing but its turn
    moved: Optional[bool] = None  # False: it waited for the very same when the window began; True: for something else


class Pool(msgspec.Struct, frozen=True):
    """Workers that take jobs from a queue."""

    id: str
    kind: PoolKind
    description: str
    limit: Optional[int] = None  # workers at most
    threads: Tuple[int, ...] = ()  # tids of workers
    processes: Tuple[int, ...] = ()  # pids of workers
    gone: Tuple[int, ...] = ()  # workers that it still counts on and that are no more
    idle: Tuple[int, ...] = ()  # those of the workers that wait for a job
    replaced: Optional[int] = None  # workers started in place of others that ended
    queued: Optional[int] = None  # jobs that no worker has taken
    pending: Optional[int] = None  # results that somebody may wait for
    broken: Optional[bool] = None
    shutdown: Optional[bool] = None
