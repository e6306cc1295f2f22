"""Event loops and their tasks, thread pools and process pools. Numbers are as of the moment of capture."""

from __future__ import annotations

from typing import Optional, Tuple

import msgspec

from .stacks import PythonFrame
from .threads import HeldLock
from .vocabulary import CancelBasis, LoopState, PoolKind, TaskState, TaskWaitKind


class Loop(msgspec.Struct, frozen=True):
    """An event loop. Numbers are as of the moment of capture."""

    id: str
    tid: Optional[int]
    kind: str = "asyncio"
    ready: Optional[int] = None  # length of the ready queue
    scheduled: Optional[int] = None  # number of timers
    running_task: Optional[str] = None
    spins_per_s: Optional[float] = None
    # functions in the ready queue that are not task steps; of a Twisted reactor without any: of its next timer
    ready_callbacks: Tuple[PythonFrame, ...] = ()
    readers: Optional[int] = None  # descriptors in the selector
    sockets: Tuple[str, ...] = ()  # ids in Process.resources of the watched sockets
    watchers: Tuple[PythonFrame, ...] = ()  # functions called when a watched descriptor is ready, except the loop's own
    watched: Optional[int] = None  # descriptors in the selector, except the loop's own wake-up pipe
    descriptors: Tuple[str, ...] = ()  # ids in Process.resources of the watched descriptors that are known
    next_timer_s: Optional[float] = None  # until the first timer is due; negative: overdue
    signals: Optional[Tuple[int, ...]] = None  # signals with a handler on this loop
    state: Optional[LoopState] = None
    main_task: Optional[str] = None  # id of the task passed to run_until_complete or run
    turn_s: Optional[float] = None  # age of the current turn; None: the loop waits, or unknown
    turn_callbacks: Optional[int] = None  # callbacks to run in this turn
    turn_done: Optional[int] = None  # callbacks of this turn that ran before the current one
    turned: Optional[bool] = None  # True: a new turn began during the window
    callback_lasts_s: Optional[float] = None  # lower bound: the current callback has run for at least this long
    # for a busy loop: where the program creates tasks and callbacks inside loops
    spawned_at: Tuple[PythonFrame, ...] = ()
    # for a loop that sleeps although callbacks are ready: where the program's plain functions may have made them so
    readied_at: Tuple[PythonFrame, ...] = ()


class TaskWait(msgspec.Struct, frozen=True):
    """The operation that a suspended task awaits."""

    kind: TaskWaitKind
    resource: Optional[str] = None  # id in Process.resources
    tasks: Tuple[str, ...] = ()  # ids of awaited tasks
    any: bool = False  # True: the first of `tasks` to end completes the wait
    endless: Optional[bool] = None  # True: no timeout ends it
    detail: Optional[str] = None  # one phrase for the reader
    timeout_s: Optional[float] = None  # total duration of a sleep; the limit given to wait_for; None: none, or unknown
    # seconds from the capture until a timer ends the wait; negative: overdue; None: no timer does, or unknown
    remaining_s: Optional[float] = None
    gate: Optional[str] = None  # as in Wait
    polls_s: Optional[float] = None  # as in Wait

    @property
    def phrase(self) -> Optional[str]:
        """Return the wait as a phrase, like ``Wait.phrase``; None if unknown."""
        return self.detail


class Cancellation(msgspec.Struct, frozen=True):
    """Requests to cancel a task that has not ended, as far as they were read."""

    requests: Optional[int] = None  # made and not withdrawn, Task.cancelling(); None: unknown, as before Python 3.11
    due: Optional[bool] = None  # True: not delivered yet, the task's next step raises CancelledError
    handled: Optional[bool] = None  # True: one of its coroutines is in an except or finally clause of a CancelledError
    basis: Optional[CancelBasis] = None  # how a request is known from others; None: only from the task
    # `except` clauses around its awaits that catch a cancellation, after which its loop goes round again
    caught_at: Tuple[PythonFrame, ...] = ()


class Task(msgspec.Struct, frozen=True):
    """A task of an event loop, asyncio's or trio's, or a greenlet: its hub, gevent's or eventlet's, is the loop."""

    id: str
    name: Optional[str]
    state: TaskState
    loop: Optional[str]
    stack: Tuple[PythonFrame, ...] = ()  # innermost await, or most recent call, first
    awaiting: Optional[str] = None  # operand of the innermost await: "sleep(0)", "Future", "Task:NAME", …
    resource: Optional[str] = None  # id in Process.resources of the awaited socket
    wait: Optional[TaskWait] = None  # None: running, ready to run, or unknown
    holds: Tuple[HeldLock, ...] = ()  # asyncio locks held by its coroutines; depth: index in `stack`
    ready: Optional[bool] = None  # True: waits only for its turn on the loop
    moved: Optional[bool] = None  # False: in the same wait since the window began; True: in another one
    cancellation: Optional[Cancellation] = None  # None: no request is known
    serves: Tuple[int, ...] = ()  # descriptors of the connection that the variables of its frames lead to


class Pool(msgspec.Struct, frozen=True):
    """A pool of worker threads or processes that take jobs from a queue."""

    id: str
    kind: PoolKind
    description: str
    limit: Optional[int] = None  # maximum number of workers
    threads: Tuple[int, ...] = ()  # tids of workers
    processes: Tuple[int, ...] = ()  # pids of workers
    gone: Tuple[int, ...] = ()  # workers that have ended but that the pool still counts on
    idle: Tuple[int, ...] = ()  # workers that wait for a job
    replaced: Optional[int] = None  # workers started to replace others that ended
    queued: Optional[int] = None  # jobs that no worker has taken yet
    pending: Optional[int] = None  # unfinished results that may be waited for
    broken: Optional[bool] = None  # True: a worker has ended abruptly, and the pool gives up all its jobs
    recycles: Optional[bool] = None  # True: workers end after a number of jobs, and are replaced
    helpers_ended: Tuple[str, ...] = ()  # functions of the pool's own threads that have ended although it is in use
    shutdown: Optional[bool] = None
