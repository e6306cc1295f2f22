"""The threads of one process: what each waits for before its native stack is there, and the evidence of it afterwards."""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...cpython.frames.calls import first_number
from ...cpython.frames.frame import Frame as PyFrame
from ...cpython.frames.nativecalls import native_call
from ...cpython.state.interpreter import ThreadState
from ...evidence import Calling, Gap, HeldLock, NativeFrame, Thread, Wait
from ...evidence import replace as changed
from ...libc import FutexCall
from ...memory import CoreThread
from ..cross_process.sharedwork import SharedWork
from ..recorded.raw import comm, last_call
from ..recorded.timelines import holders, timeline
from ..recorded.window import counters
from ..waits import threadwaits
from ..waits.aarch64_calls import Untold
from ..waits.buffered import BufferBook
from ..waits.endpoints import DescriptorBook
from ..waits.joins import joined_thread
from ..waits.locks import LockWaits
from ..waits.nativelocks import NativeLocks
from ..waits.polls import Polls
from ..waits.tasks import TasksRead
from .context import ProcessContext
from .gil import gil_state, is_gil, wanted_gil
from .stacks import Stacks
from .variables import thread_exceptions


class Books(NamedTuple):
    """Those who collect what threads wait for in an interpreter, in the order in which they are asked."""

    tasks: TasksRead
    shared: SharedWork
    locks: LockWaits
    buffers: BufferBook
    polls: Polls


class ThreadsRead(NamedTuple):
    """Each thread as far as it is known without its native stack, with its Python frames; and, by thread, the futex waits
    that nothing in the interpreter explains."""

    drafts: Sequence[Tuple[Thread, Sequence[PyFrame]]]
    calls: Mapping[int, FutexCall]


def read_threads(
    context: ProcessContext, books: Optional[Books], stacks: Stacks, descriptors: DescriptorBook
) -> ThreadsRead:
    """``books``: None without an interpreter."""
    reader = _ThreadReader(context, books, stacks, descriptors)
    return ThreadsRead([reader.read(thread) for thread in context.core.threads], reader.calls)


class _ThreadReader:
    def __init__(
        self, context: ProcessContext, books: Optional[Books], stacks: Stacks, descriptors: DescriptorBook
    ) -> None:
        self._context = context
        self._python, self._table = context.python, context.threads
        self._core, self._raw, self._gaps = context.core, context.raw, context.gaps
        self._books, self._stacks, self._descriptors = books, stacks, descriptors
        self._holders = holders(context.raw.window)
        self.calls: Dict[int, FutexCall] = {}

    def read(self, thread: CoreThread) -> Tuple[Thread, Sequence[PyFrame]]:
        state = self._table.states.get(thread.tid)
        call = self._call(thread)
        if not threadwaits.is_known(call):
            reason = "it was stopped before, and which call the kernel restarts is not in the code that made it"
            self._gaps.append(
                Gap(
                    "core",
                    f"system call of thread {thread.tid}",
                    reason,
                    "capture it before anybody stops it",
                    code="restarted-call",
                )
            )
        frames = state.frames if state else []
        wait = self._wait(call, thread.tid, frames)
        if self._books is not None:
            self._books.shared.note(wait, frames)
        if state is not None and state.cut:
            self._gaps.append(Gap("cpython", f"Python stack of thread {thread.tid}", state.cut, code="stack-cut"))
        facts = self._raw.window.threads.get(thread.tid, {})
        joins = joined_thread(self._python, frames) if self._python and state else None
        if state is not None and state.chain is not None:
            self._stacks.prepare(state.chain)
        draft = Thread(
            tid=thread.tid,
            name=(state.name if state else None) or facts.get("name") or comm(self._raw, thread.tid),
            state=facts.get("state"),
            wait=wait,
            counters=counters(self._raw.window, thread.tid),
            samples=self._raw.samples.get(thread.tid) or (self._raw.samples.get(state.ident, ()) if state else ()),
            timeline=timeline(
                self._raw.window, thread.tid, state.address if state else None, self._holders, self._is_gil
            ),
            is_main=thread.tid == self._context.pid,
            daemon=state.daemon if state else None,
            ident=state.ident if state else None,
            interpreter=state.interpreter if state else None,
            joins=self._table.tid_of_ident(joins) if joins is not None else self._joined(thread.tid),
            exceptions=thread_exceptions(self._python, state, self._stacks.variables) if self._python and state else (),
            calling=self._calling(state, frames),
        )
        return draft, frames

    def _call(self, thread: CoreThread) -> Optional[threadwaits.SystemCall]:
        """None, and a gap where that does not mean that it ran code."""
        try:
            return threadwaits.in_core(thread.regs, last_call(self._raw.window, thread.tid), self._core)
        except Untold as exc:
            remedy = "pass --sysroot with the files of the core's machine"
            self._gaps.append(Gap("core", f"system call of thread {thread.tid}", str(exc), remedy, code="call-unread"))
            return None

    def _calling(self, state: Optional[ThreadState], frames: Sequence[PyFrame]) -> Optional[Calling]:
        found = native_call(self._python.frames, frames[0]) if self._python and frames else None
        if found is None or state is None:
            return None
        before = self._context.probe("calls").get(str(state.address))
        same = isinstance(before, list) and before == list(found.key)
        return Calling(found.function, found.detail, found.text, self._raw.window.seconds if same else None)

    def _joined(self, tid: int) -> Optional[int]:
        return self._books.locks.joined(tid) if self._books is not None else None

    # ------------------------------------------------------------------ waits

    def _wait(self, call: Optional[threadwaits.SystemCall], tid: int, frames: Sequence[PyFrame]) -> Optional[Wait]:
        if call is None:
            return None
        books = self._books
        wait = threadwaits.describe(
            call, self._core, self._raw.descriptors, lambda word: self._futex(word, tid, frames), frames
        )
        wait = books.shared.told(wait, frames) if books is not None else wait
        if wait.kind in ("futex", "semaphore") and wait.resource is None:
            self.calls[tid] = FutexCall.of(call.args)
        runs_loop = books is not None and wait.kind == "event-loop" and books.tasks.runs(tid)
        if wait.resource is None and not runs_loop:
            wait = changed(wait, resource=self._descriptors.awaited(wait, call, self._core, tid))
        if wait.kind == "sleep" and books is not None and self._python and frames:
            asks = books.polls.told(wait, tid, frames)
            if asks is not None:
                return asks
            asked = first_number(self._python.frames, frames[0], "sleep")
            # the kernel overwrites select's timeout with what remains of it
            if asked is not None and asked >= (wait.timeout_s or 0.0):
                return changed(wait, timeout_s=asked)
        return wait

    def _futex(self, word: int, tid: int, frames: Sequence[PyFrame]) -> Optional[threadwaits.FutexFacts]:
        python, books = self._python, self._books
        if python is None or books is None:
            return None
        wanted = wanted_gil(python, word)
        if wanted is not None:
            return threadwaits.FutexFacts("gil", wanted, "the interpreter lock (GIL)", "wants")
        shared = books.shared.futex(word, tid, frames)
        if shared is not None or not frames:
            return shared
        return books.locks.wait(word, tid, frames) or books.buffers.futex(word, tid)

    def _is_gil(self, word: int) -> Optional[bool]:
        return is_gil(self._python, word)


# ---------------------------------------------------------------------- with the native stacks


def complete(
    context: ProcessContext,
    found: ThreadsRead,
    stacks: Stacks,
    native: Mapping[int, Tuple[NativeFrame, ...]],
    locks: NativeLocks,
) -> List[Thread]:
    """The threads, but for what they hold: how deep that lies only all stacks tell."""
    return [_completed(context, draft, stacks, native.get(draft.tid, ()), locks) for draft, _frames in found.drafts]


def _completed(
    context: ProcessContext, draft: Thread, stacks: Stacks, native: Tuple[NativeFrame, ...], locks: NativeLocks
) -> Thread:
    state = context.threads.states.get(draft.tid)
    stack = stacks.of(state.chain if state else None, native, draft.tid)
    return changed(
        draft,
        gil=gil_state(context.python, state, draft.wait, native),
        wait=locks.wait(draft.tid, draft.wait),
        joins=draft.joins if draft.joins is not None else locks.joined(draft.tid),
        stack=stack.frames,
        recursion=stack.recursion,
        left_out=stack.left_out,
    )


def with_depth(held: Sequence[HeldLock], stacks: Stacks, tid: int) -> Tuple[HeldLock, ...]:
    """Where the frames stand in the stack that evidence keeps."""
    return tuple(changed(lock, depth=stacks.depth(tid, lock.depth)) for lock in held)
