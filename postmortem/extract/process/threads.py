"""The threads of one process as evidence: drafts without native stacks, then completed with them."""

from __future__ import annotations

from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...cpython.execution.library import Library, Limits
from ...cpython.execution.quiet import Quiet
from ...cpython.frames.frame import Frame as PyFrame
from ...cpython.frames.nativecalls import native_call
from ...cpython.frames.usednames import UsedNames
from ...cpython.state.interpreter import ThreadState
from ...evidence import Calling, Gap, HeldLock, NativeFrame, Rounds, Thread, Wait
from ...evidence import replace as changed
from ...evidence.vocabulary import Deed
from ...libc import FutexCall
from ...memory import CoreThread
from ...timelimits import TimeLimit
from ..recorded.raw import comm
from ..recorded.timelines import holders, timeline
from ..recorded.window import counters
from ..waits.endpoints import DescriptorBook
from ..waits.joins import joined_thread
from ..waits.nativelocks import NativeLocks
from .context import ProcessContext
from .gil import gil_state, is_gil
from .stacks import Stacks
from .variables import thread_exceptions
from .waiting import Books, WaitReader

#: Seconds for the evaluation of all loops of a process in which threads sleep.
QUIET_S = 0.3
#: Seconds for the search of all threads' code.
DEEDS_S = 0.5
#: Names of operations that read, release or end a transaction, of files, sockets, pipes, queues, locks and connections (the
#: documentation of io, socket, multiprocessing, fcntl, PEP 249).
_DEEDS: Dict[Deed, FrozenSet[str]] = {
    "reads": frozenset((
        "read", "read1", "readinto", "readline", "readlines", "readexactly", "readuntil", "recv", "recv_into", "recv_bytes",
        "recvmsg", "recvfrom", "get", "get_nowait", "communicate",
    )),
    "releases": frozenset(("release", "unlock", "flock", "lockf", "LOCK_UN", "close", "unlink")),
    "unlocks": frozenset(("release",)),
    "cancels": frozenset(("cancel", "cancel_futures")),
    "commits": frozenset(("commit", "rollback", "execute", "executemany", "executescript")),
    "ends": frozenset(("kill", "terminate", "send_signal", "killpg")),
    "continues": frozenset(("SIGCONT",)),
}  # fmt: skip
#: Fields that a reading of a loop's variables has.
_ROUNDS = frozenset(("function", "file", "first_line", "looks", "turns", "changed"))


class ThreadsRead(NamedTuple):
    """Threads without native stacks.

    - ``drafts``: each with its Python frames
    - ``calls``: by tid, futex waits that nothing in the interpreter explains
    """

    drafts: Sequence[Tuple[Thread, Sequence[PyFrame]]]
    calls: Mapping[int, FutexCall]


def read_threads(
    context: ProcessContext, books: Optional[Books], stacks: Stacks, descriptors: DescriptorBook
) -> ThreadsRead:
    """Read all threads.

    ``books``: None without an interpreter.
    """
    reader = _ThreadReader(context, books, stacks, descriptors)
    return ThreadsRead([reader.read(thread) for thread in context.core.threads], reader.calls)


class _ThreadReader:
    def __init__(
        self, context: ProcessContext, books: Optional[Books], stacks: Stacks, descriptors: DescriptorBook
    ) -> None:
        self._context = context
        self._python, self._table = context.python, context.threads
        self._raw, self._gaps = context.raw, context.gaps
        self._books, self._stacks = books, stacks
        self._waits = WaitReader(context, books, descriptors)
        self._holders = holders(context.raw.window)
        self._library: Optional[Library] = None
        self._limit = TimeLimit(QUIET_S)
        self._names: Optional[UsedNames] = None
        self._deeds_limit = TimeLimit(DEEDS_S)

    @property
    def calls(self) -> Mapping[int, FutexCall]:
        """Return the unexplained futex waits by tid."""
        return self._waits.calls

    def read(self, thread: CoreThread) -> Tuple[Thread, Sequence[PyFrame]]:
        """Return a thread without its native stack, and its Python frames."""
        state = self._table.states.get(thread.tid)
        frames = state.frames if state else []
        wait = self._waits.read(thread, frames)
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
            quiet=self._is_quiet(thread.tid, state, wait),
            rounds=self._rounds(state),
            deeds=self._will_do(frames, wait),
        )
        return draft, frames

    def _calling(self, state: Optional[ThreadState], frames: Sequence[PyFrame]) -> Optional[Calling]:
        found = native_call(self._python.frames, frames[0]) if self._python and frames else None
        if found is None or state is None:
            return None
        before = self._context.probe("calls").get(str(state.address))
        same = isinstance(before, list) and before == list(found.key)
        return Calling(found.function, found.detail, found.text, self._raw.window.seconds if same else None)

    def _rounds(self, state: Optional[ThreadState]) -> Optional[Rounds]:
        told = self._context.probe("rounds").get(str(state.address)) if state is not None else None
        if state is None or not isinstance(told, dict) or not told.keys() >= _ROUNDS:
            return None
        if not any((f.code.name, f.code.filename) == (told["function"], told["file"]) for f in state.frames):
            return None  # another thread's, or it has returned since
        numbers = {name: told[name] for name in ("first_line", "looks", "turns")}
        return Rounds(told["function"], told["file"], **numbers, same=told.get("same"), changed=tuple(told["changed"]))

    def _is_quiet(self, tid: int, state: Optional[ThreadState], wait: Optional[Wait]) -> Optional[bool]:
        """Return True if a thread only sleeps and counts for ever; None if not known, as of the main thread: signals."""
        asleep = wait is not None and wait.kind == "sleep" and tid != self._context.pid
        if not asleep or self._python is None or state is None or state.cut is not None:
            return None
        if self._library is None:
            self._library, self._limit = Library(self._python.frames, {}), TimeLimit(QUIET_S)  # it begins now
        if self._limit.passed():
            return None
        return Quiet(self._library, Limits(self._limit)).is_quiet(state.frames) or None

    def _will_do(self, frames: Sequence[PyFrame], wait: Optional[Wait]) -> Optional[Tuple[Deed, ...]]:
        """Return what the code of a thread names that runs, or whose wait has a time limit; None without one, or too late."""
        if self._python is None or not frames or (wait is not None and wait.endless is not False):
            return None
        if self._names is None:
            self._names, self._deeds_limit = UsedNames(self._python.frames), TimeLimit(DEEDS_S)
        if self._deeds_limit.passed():
            return None
        names = self._names.of(frames)
        return tuple(deed for deed, words in _DEEDS.items() if not words.isdisjoint(names))

    def _joined(self, tid: int) -> Optional[int]:
        return self._books.locks.joined(tid) if self._books is not None else None

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
    """Return the threads with their native stacks, without what they hold."""
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
    """Return the locks with depths that refer to the stack kept in evidence."""
    return tuple(changed(lock, depth=stacks.depth(tid, lock.depth)) for lock in held)
