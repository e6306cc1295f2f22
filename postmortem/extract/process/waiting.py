"""The wait of each thread, as far as known without native stacks."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Sequence

from ...cpython.frames.calls import first_number
from ...cpython.frames.frame import Frame as PyFrame
from ...cpython.objects.attributes import attribute
from ...cpython.state.interpreter import Python
from ...cpython.sync.limits import child_poll, given
from ...evidence import Gap, Wait
from ...evidence import replace as changed
from ...libc import FutexCall
from ...memory import CoreThread
from ..cross_process.sharedwork import SharedWork
from ..recorded.raw import last_call
from ..waits import threadwaits
from ..waits.aarch64_calls import Untold
from ..waits.buffered import BufferBook
from ..waits.deadlines import remaining
from ..waits.endpoints import DescriptorBook
from ..waits.locks import LockWaits
from ..waits.polling import LONGEST_S, Polled, Polling, pauses
from ..waits.polls import polled_lock
from ..waits.tasks import TasksRead
from .context import ProcessContext
from .gil import wanted_gil

#: Calls whose argument is the limit that was given, in milliseconds.
_EXACT = ("poll", "epoll_wait", "epoll_pwait")
#: Seconds that trio's loop waits without a deadline (trio/_core/_run.py, _MAX_TIMEOUT: 0.20-0.35).
_TRIO_LIMIT_S = 86400.0
#: Files whose functions are a loop's selector.
_SELECTORS = ("/selectors.py", "/trio/_core/_io_epoll.py", "/twisted/internet/epollreactor.py", "/gevent/hub.py")
#: Functions that run one callback or task of a loop.
_STEPS = (
    ("_run", "asyncio/events.py"), ("unrolled_run", "trio/_core/_run.py"), ("runUntilCurrent", "twisted/internet/base.py"),
    ("_doReadOrWrite", "twisted/internet/epollreactor.py"), ("_doReadOrWrite", "twisted/internet/posixbase.py"),
)  # fmt: skip
#: Kinds of loops that switch between greenlets → the function of the greenlet that polls.
_HUBS = {"gevent": ("run", "gevent/hub.py"), "eventlet": ("run", "eventlet/hubs/hub.py")}


class Books(NamedTuple):
    """An interpreter and the collectors of waits in it."""

    python: Python
    tasks: TasksRead
    shared: SharedWork
    locks: LockWaits
    buffers: BufferBook
    polling: Polling


def _is_inside_step(frames: Sequence[PyFrame], tasks: TasksRead, tid: int) -> bool:
    """Return whether the code that a loop serves is in a native poll of its own, rather than the loop in its selector.

    gevent's and eventlet's hubs poll in a greenlet of their own: without its frame, another greenlet runs.
    """
    if not frames or frames[0].code.filename.endswith(_SELECTORS):
        return False
    loops = [loop.kind for loop in tasks.loops if loop.tid == tid]
    if loops and all(kind in _HUBS for kind in loops):
        return not any(frame.is_in(*hub) for frame in frames for hub in _HUBS.values())
    return any(frame.is_in(*step) for frame in frames for step in _STEPS)


class WaitReader:
    """A reader of waits and collector of their resources.

    - ``books``: None without an interpreter
    - ``calls``: by tid, futex waits that nothing in the interpreter explains
    """

    def __init__(self, context: ProcessContext, books: Optional[Books], descriptors: DescriptorBook) -> None:
        self._core, self._raw, self._gaps = context.core, context.raw, context.gaps
        self._books, self._descriptors = books, descriptors
        self.calls: Dict[int, FutexCall] = {}

    def read(self, thread: CoreThread, frames: Sequence[PyFrame]) -> Optional[Wait]:
        """Return a thread's wait; None if it runs or its call is unknown."""
        call = self._call(thread)
        wait = self._wait(call, thread.tid, frames)
        if wait is None and call is None:
            wait = self._between(thread.tid, frames)
        if wait is not None and call is not None:
            wait = self._limited(wait, call, thread, frames)
            wait = self._polling(wait, thread.tid, frames)
        if self._books is not None:
            self._books.shared.note(wait, frames)
        return wait

    def _call(self, thread: CoreThread) -> Optional[threadwaits.SystemCall]:
        """Return a thread's system call; None if it ran code or, with a gap, if it is unknown."""
        try:
            call = threadwaits.in_core(thread.regs, last_call(self._raw.window, thread.tid), self._core)
        except Untold as exc:
            self._gaps.append(Gap("core", f"system call of thread {thread.tid}", str(exc), code="call-unread"))
            return None
        if not threadwaits.is_known(call):
            self._gaps.append(Gap("core", f"system call of thread {thread.tid}", code="restarted-call"))
        return call

    def _wait(self, call: Optional[threadwaits.SystemCall], tid: int, frames: Sequence[PyFrame]) -> Optional[Wait]:
        if call is None:
            return None
        books = self._books
        wait = threadwaits.describe(
            call, self._core, self._raw.descriptors, lambda word: self._futex(word, tid, frames), frames
        )
        wait = books.shared.told(wait, frames) if books is not None else wait
        if wait.kind == "event-loop" and books is not None and _is_inside_step(frames, books.tasks, tid):
            wait = changed(wait, kind="other")
        if wait.kind in ("futex", "semaphore") and wait.resource is None:
            self.calls[tid] = FutexCall.of(call.args)
        runs_loop = books is not None and wait.kind == "event-loop" and books.tasks.runs(tid)
        if wait.resource is None and not runs_loop:
            wait = changed(wait, resource=self._descriptors.awaited(wait, call, self._core, tid))
        if wait.kind == "sleep" and books is not None and frames:
            asked = first_number(books.python.frames, frames[0], "sleep")
            asks = polled_lock(books.python, self._descriptors, wait, tid, frames, asked)
            if asks is not None:
                return asks
            # the kernel overwrites select's timeout with the remaining time
            if asked is not None and asked >= (wait.timeout_s or 0.0):
                return changed(wait, timeout_s=asked)
        return wait

    def _limited(self, wait: Wait, call: threadwaits.SystemCall, thread: CoreThread, frames: Sequence[PyFrame]) -> Wait:
        """Return a wait with the limit that it was given, and what remains of it."""
        if wait.endless is not False or wait.kind == "gil" or wait.polls_s is not None:
            return wait
        books, clocks = self._books, self._raw.clocks
        poll = child_poll(books.python.frames, frames) if books is not None and wait.kind == "sleep" else None
        if poll is not None:
            return changed(
                wait,
                kind="process",
                pid=poll.pid,
                timeout_s=poll.given,
                polls_s=wait.timeout_s or 0.0,
                remaining_s=clocks.until(poll.until),
            )
        if books is not None and self._merely_polls(wait, thread.tid, books):
            return changed(wait, endless=True, timeout_s=None)
        left = remaining(call, thread.regs, self._core, clocks, wait.timeout_s, bool(frames))
        if books is not None and wait.kind == "event-loop":
            timer = next((loop.next_timer_s for loop in books.tasks.loops if loop.tid == thread.tid), None)
            left = left if timer is None else timer
        asked = wait.timeout_s
        if books is not None and call.name not in _EXACT and wait.kind != "sleep":
            limit = given(books.python.frames, frames, left)
            asked = asked if limit is None else limit
        return changed(wait, timeout_s=asked, remaining_s=left)

    def _polling(self, wait: Wait, tid: int, frames: Sequence[PyFrame]) -> Wait:
        """Return a wait that a loop repeats until an object has come to its end as a wait for that object."""
        books = self._books
        if (
            books is None
            or not frames
            or wait.kind in ("gil", "file")
            or (wait.endless is not False and wait.kind != "sleep")
        ):
            return wait
        if wait.kind == "event-loop" and books.tasks.runs(tid):
            return wait
        length = wait.timeout_s
        if wait.kind == "sleep" and (wait.polls_s is not None or not length or length > LONGEST_S):
            return wait
        on: Optional[int] = None
        if wait.kind != "sleep":
            on = books.locks.address(wait.resource) or 0
            if wait.resource is None and wait.fd is None and wait.pid is None:
                return wait
        first = pauses(frames)
        child = any(frame.is_in("wait", "/subprocess.py") for frame in frames[:first])
        found = books.polling.of(frames, first, on, True if child else None)
        if found is None:
            return wait
        if found.thing is None:
            if child and wait.kind != "process":  # from 3.15 on it waits for a pidfd
                wait = changed(wait, kind="process", pid=_child(books.python, frames[:first]))
            return wait if found.endless is False else _repeated(wait, found)
        return self._asked(wait, found, tid, frames)

    def _between(self, tid: int, frames: Sequence[PyFrame]) -> Optional[Wait]:
        """Return the wait of a polling thread that was found between two pauses; None for others."""
        books = self._books
        found = books.polling.of(frames, pauses(frames), None, runs=True) if books is not None and frames else None
        if found is None or found.thing is None or found.endless is False or not found.length_s:
            return None
        if found.length_s > LONGEST_S:
            return None
        asks = self._asked(Wait("sleep", timeout_s=found.length_s), found, tid, frames)
        return asks if asks.polls_s is not None else None

    def _asked(self, wait: Wait, found: Polled, tid: int, frames: Sequence[PyFrame]) -> Wait:
        """Return the wait of a thread that asks an object again and again, and pauses in between."""
        books, every = self._books, wait.timeout_s or 0.0
        if found.kind == "process" and found.pid is not None:
            ident = self._descriptors.note_child(found.pid, tid)
            return _repeated(
                changed(wait, kind="process", pid=found.pid, resource=ident, fd=None, timeout_s=every), found
            )
        facts = books.locks.polled(found, tid, frames) if books is not None else None
        if books is None or facts is None:
            return wait
        if wait.resource is not None:
            books.locks.moved_on(wait.resource, tid)
        asks = changed(wait, kind=facts.kind, resource=facts.resource, fd=None, over=None, timeout_s=every)
        detail = f"every {every:g} s {facts.detail}" if facts.detail else None
        return _repeated(changed(asks, verb="asks" if detail else None, detail=detail), found)

    @staticmethod
    def _merely_polls(wait: Wait, tid: int, books: Books) -> bool:
        """Return whether a trio loop without any deadline waits, which it does with a limit all the same."""
        loop = next((loop for loop in books.tasks.loops if loop.tid == tid and loop.kind == "trio"), None)
        return wait.kind == "event-loop" and loop is not None and not loop.scheduled and wait.timeout_s == _TRIO_LIMIT_S

    def _futex(self, word: int, tid: int, frames: Sequence[PyFrame]) -> Optional[threadwaits.FutexFacts]:
        books = self._books
        if books is None:
            return None
        wanted = wanted_gil(books.python, word)
        if wanted is not None:
            return threadwaits.FutexFacts("gil", wanted, "the interpreter lock (GIL)", "wants")
        shared = books.shared.futex(word, tid, frames)
        if shared is not None or not frames:
            return shared
        return books.locks.wait(word, tid, frames) or books.buffers.futex(word, tid)


def _child(python: Python, frames: Sequence[PyFrame]) -> Optional[int]:
    """Return the pid of the Popen for which these frames wait; None if unknown."""
    for frame in frames:
        popen = python.frames.local(frame, "self") if frame.is_in("wait", "/subprocess.py") else None
        if popen is not None:
            return python.objects.integer_or_none(attribute(python.objects, popen, "pid"))
    return None


def _repeated(wait: Wait, found: Polled) -> Wait:
    """Return a wait without the limit of one attempt."""
    return changed(wait, endless=found.endless, polls_s=wait.timeout_s or 0.0, timeout_s=None, remaining_s=None)
