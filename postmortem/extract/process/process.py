"""One process: its core, the native stacks and the raw facts of the capture → ``evidence.Process``."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ...cpython.frames.calls import first_number
from ...cpython.frames.frame import Frame as PyFrame
from ...cpython.frames.nativecalls import native_call
from ...cpython.state.interpreter import Python, ThreadState
from ...evidence import Calling, Gap, HeldLock, NativeFrame, PythonFrame, Thread, Wait
from ...evidence import replace as changed
from ...memory import CoreThread, ElfCore
from ..cross_process.forks import LockPlace, Trace
from ..cross_process.sharedwork import SharedWork
from ..ownership.acquires import Lines
from ..ownership.pools import FutureFacts
from ..recorded.raw import Raw, comm, last_call
from ..recorded.timelines import holders, timeline
from ..recorded.window import counters
from ..sourcecode.usages import Usages
from ..waits import threadwaits
from ..waits.aarch64_calls import Untold
from ..waits.buffered import BufferBook
from ..waits.endpoints import DescriptorBook
from ..waits.joins import joined_thread
from ..waits.locks import LockBook
from ..waits.nativelocks import NativeLocks
from ..waits.polls import Polls
from ..waits.tasks import TaskBook
from .collector import collectors
from .gil import gil_id
from .stacks import Stacks
from .threadtable import ThreadTable
from .variables import Variables, thread_exceptions


class Reader:
    """Reads one process out of a core. ``gaps`` collects what could not be had."""

    def __init__(
        self,
        core: ElfCore,
        python: Optional[Python],
        raw: Raw,
        pid: int,
        lines: Lines,
        with_locals: bool = False,
    ) -> None:
        self.core = core
        self.python = python
        self.raw = raw
        self.pid = pid
        self.gaps: List[Gap] = []
        self.usages = Usages(lines)
        self.table = ThreadTable.of_core(core, python)
        self.locks = LockBook(python, self.table, lines) if python else None
        self.shared = SharedWork(python, core, raw.process.get("maps"), self.table, lines, self.gaps)
        self.native_locks = NativeLocks(core, self.table)
        self.buffers = BufferBook(python, core, self.table)
        self.variables = Variables(python, self.gaps) if python and with_locals else None
        self.stacks = Stacks(python, self.variables, self.gaps)
        self.drafts: List[Tuple[Thread, Sequence[PyFrame]]] = []
        self.tasks = TaskBook(python, self, lines, self.gaps) if python else None
        self.descriptors = DescriptorBook(raw.descriptors)
        self.polls = Polls(python, self.descriptors)
        self._holders = holders(raw.window)

    # ------------------------------------------------------------------ threads

    def read(self) -> None:
        """All that needs no native stack: gdb unwinds meanwhile. To be called once, before ``summary.process_of``."""
        if self.tasks is not None:
            self.tasks.read()
            if self.locks is not None:
                tasks, shared = self.tasks, self.shared
                self.locks.futures.beside = lambda future: tasks.runner(future) or shared.runner(future)
        # after the tasks: what a suspended coroutine holds, its loop's thread holds
        self.drafts = [self._draft(thread) for thread in self.core.threads]
        if self.locks is not None:
            self.locks.settle()
        self.shared.settle()

    @property
    def files(self) -> List[str]:
        """The source files of every Python frame that was read."""
        frames = [frame for _thread, frames in self.drafts for frame in frames]
        tasks = self.tasks.tasks if self.tasks is not None else ()
        return sorted({frame.code.filename for frame in frames} | {f.file for task in tasks for f in task.stack})

    def threads(self, native: Mapping[int, Tuple[NativeFrame, ...]]) -> Tuple[Thread, ...]:
        self.native_locks.settle(native)
        running = collectors(self.python, self.table.states, native) if self.python else {}
        found = [self._finished(draft, native.get(draft.tid, ())) for draft, _frames in self.drafts]
        return tuple(
            changed(t, holds=(*self._holds(t.tid), *self.native_locks.held_by(t)), gc=running.get(t.tid)) for t in found
        )

    def _finished(self, draft: Thread, native: Tuple[NativeFrame, ...]) -> Thread:
        state = self.table.states.get(draft.tid)
        stack = self.stacks.of(state.chain if state else None, native, draft.tid)
        return changed(
            draft,
            gil=self._gil(state, draft.wait, native),
            wait=self.native_locks.wait(draft.tid, draft.wait),
            joins=draft.joins if draft.joins is not None else self.native_locks.joined(draft.tid),
            stack=stack.frames,
            recursion=stack.recursion,
            left_out=stack.left_out,
        )

    def _holds(self, tid: int) -> Tuple[HeldLock, ...]:
        held = self.locks.held_by(tid) if self.locks else ()
        held += self.shared.held_by(tid)
        return tuple(changed(lock, depth=self.stacks.depth(tid, lock.depth)) for lock in held)

    def _draft(self, thread: CoreThread) -> Tuple[Thread, Sequence[PyFrame]]:
        state = self.table.states.get(thread.tid)
        call = self._call(thread)
        if not threadwaits.is_known(call):
            reason = "it was stopped before, and which call the kernel restarts is not in the code that made it"
            self.gaps.append(
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
        self.shared.note(wait, frames)
        if state is not None and state.cut:
            self.gaps.append(Gap("cpython", f"Python stack of thread {thread.tid}", state.cut, code="stack-cut"))
        facts = self.raw.window.threads.get(thread.tid, {})
        joins = joined_thread(self.python, frames) if self.python and state else None
        if state is not None and state.chain is not None:
            self.stacks.prepare(state.chain)
        draft = Thread(
            tid=thread.tid,
            name=(state.name if state else None) or facts.get("name") or comm(self.raw, thread.tid),
            state=facts.get("state"),
            wait=wait,
            counters=counters(self.raw.window, thread.tid),
            samples=self.raw.samples.get(thread.tid) or (self.raw.samples.get(state.ident, ()) if state else ()),
            timeline=timeline(
                self.raw.window, thread.tid, state.address if state else None, self._holders, self._wants_gil
            ),
            is_main=thread.tid == self.pid,
            daemon=state.daemon if state else None,
            ident=state.ident if state else None,
            interpreter=state.interpreter if state else None,
            joins=self.table.tid_of_ident(joins) if joins is not None else self._joined(thread.tid),
            exceptions=thread_exceptions(self.python, state, self.variables) if self.python and state else (),
            calling=self._calling(state, frames),
        )
        return draft, frames

    def _call(self, thread: CoreThread) -> Optional[threadwaits.SystemCall]:
        """None, and a gap where that does not mean that it ran code."""
        try:
            return threadwaits.in_core(thread.regs, self._call_before(thread.tid), self.core)
        except Untold as exc:
            remedy = "pass --sysroot with the files of the core's machine"
            self.gaps.append(Gap("core", f"system call of thread {thread.tid}", str(exc), remedy, code="call-unread"))
            return None

    def _calling(self, state: Optional[ThreadState], frames: Sequence[PyFrame]) -> Optional[Calling]:
        found = native_call(self.python.frames, frames[0]) if self.python and frames else None
        if found is None or state is None:
            return None
        probe = self.raw.window.probes.get("calls")
        before = probe.get(str(state.address)) if isinstance(probe, dict) else None
        same = isinstance(before, list) and before == list(found.key)
        return Calling(found.function, found.detail, found.text, self.raw.window.seconds if same else None)

    def _joined(self, tid: int) -> Optional[int]:
        return self.locks.joined(tid) if self.locks else None

    def _call_before(self, tid: int) -> Optional[threadwaits.SystemCall]:
        return last_call(self.raw.window, tid)

    def frame(self, frame: PyFrame) -> PythonFrame:
        """Of a suspended coroutine."""
        shown = self.stacks.frame(frame)
        return changed(shown, locals=self.variables.of(frame)) if self.variables else shown

    # ------------------------------------------------------------------ waits

    def _wait(self, call: Optional[threadwaits.SystemCall], tid: int, frames: Sequence[PyFrame]) -> Optional[Wait]:
        if call is None:
            return None
        wait = threadwaits.describe(
            call, self.core, self.raw.descriptors, lambda word: self._futex(word, tid, frames), frames
        )
        wait = self.shared.told(wait, frames)
        if wait.kind in ("futex", "semaphore") and wait.resource is None:
            self.native_locks.note(tid, call.args)
        if wait.resource is None and not (self.tasks and self.tasks.runs(tid) and wait.kind == "event-loop"):
            wait = changed(wait, resource=self.descriptors.awaited(wait, call, self.core, tid))
        if wait.kind == "sleep" and self.python and frames:
            asks = self.polls.told(wait, tid, frames)
            if asks is not None:
                return asks
            asked = first_number(self.python.frames, frames[0], "sleep")
            # the kernel overwrites select's timeout with what remains of it
            if asked is not None and asked >= (wait.timeout_s or 0.0):
                return changed(wait, timeout_s=asked)
        return wait

    def _futex(self, word: int, tid: int, frames: Sequence[PyFrame]) -> Optional[threadwaits.FutexFacts]:
        if self.python is None:
            return None
        wanted = next((i for i in self.python.interpreters if i.gil and i.gil.word_is_wait(word)), None)
        if wanted is not None:
            return threadwaits.FutexFacts("gil", gil_id(wanted.id), "the interpreter lock (GIL)", "wants")
        shared = self.shared.futex(word, tid, frames)
        if shared is not None:
            return shared
        known = self.locks.wait(word, tid, frames) if self.locks is not None and frames else None
        return known or (self.buffers.futex(word, tid) if frames else None)

    def _wants_gil(self, word: int) -> Optional[bool]:
        """None: on musl a waiter's word lies on its own stack, and only those of the core's moment are known."""
        if self.python is None:
            return False
        wanted = any(i.gil and i.gil.word_is_wait(word) for i in self.python.interpreters)
        return wanted or (None if self.python.on_musl else False)

    def _gil(self, state: Optional[ThreadState], wait: Optional[Wait], native: Sequence[NativeFrame]) -> str:
        if self.python is None:
            return "unknown"
        if state is None:
            return "detached" if self.python.all_threads else "unknown"
        if any(i.gil and i.gil.holder == state.address for i in self.python.interpreters):
            return "holds"
        if (wait is not None and wait.kind == "gil") or any(f.function == "take_gil" for f in native[:6]):
            return "waits"
        if state.attached is False or wait is not None:
            return "detached"
        return "unknown"

    # ------------------------------------------------------------------ for tasks

    def tid(self, ident: Optional[int]) -> Optional[int]:
        """The kernel's id of a thread that the interpreter knows by its ident."""
        return self.table.tid_of_ident(ident)

    def probe(self, name: str) -> Dict[str, object]:
        """What was read of the running interpreter over the window."""
        found = self.raw.window.probes.get(name)
        return found if isinstance(found, dict) else {}

    def note_descriptor(self, fd: int) -> Optional[str]:
        return self.descriptors.note(fd)

    def sockets(self, resources: Sequence[str]) -> Tuple[str, ...]:
        """Those of some resources that are sockets."""
        return self.descriptors.sockets(resources)

    def work(self, future: int) -> Optional[FutureFacts]:
        """Who could finish a concurrent.futures.Future."""
        return self.locks.futures.future(future) if self.locks else None

    def tid_of_thread(self, thread: int) -> Optional[int]:
        return self.table.tid_of_object(thread)

    def suspended(self, tid: int, frames: Sequence[PyFrame]) -> None:
        """A coroutine that waits on a thread's event loop."""
        if self.locks is not None:
            self.locks.suspended(tid, frames)

    # ------------------------------------------------------------------ for other processes

    def trace(self) -> Trace:
        """What the evidence of other processes is completed with."""
        states = self.locks.states() if self.locks else {}
        places = {ident: LockPlace(state.address, state.owner_ident) for ident, state in states.items()}
        places.update({ident: LockPlace(at, None, tid) for ident, (at, tid) in self.native_locks.places().items()})
        idents = {ident: row.tid for ident, row in self.table.by_ident.items()}
        return self.shared.trace(idents, {**places, **self.buffers.places()})
