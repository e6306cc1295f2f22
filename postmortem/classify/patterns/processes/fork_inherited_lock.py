"""A forked process waits for a lock that another thread of its parent held when it was forked.

**What it looks like.** A child of a threaded process, made by fork without exec, waits for a lock at 0 % CPU. The lock is
held by a thread that the child does not have.

**Easily mistaken for** `lock-order-deadlock`, `orphaned-lock`, `self-deadlock`; `child-wait`, which the parent shows.

**Why it hangs.** fork copies the memory, held locks included, but only the thread that calls it. No thread of the child can
release a lock that another thread held at that moment; releasing it in the parent does not affect the copy.

**Remedy.** Start processes by spawn or forkserver (the default since 3.14), or before any thread; where fork is unavoidable,
re-create the locks in the child (`os.register_at_fork`), or fork and exec at once.
"""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from ....evidence import Process, PythonFrame, Resource, Thread, Waker
from ....findings import Culprit, Slot, Template, ThreadName
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.deeds import later, who_comes_to
from ...facts.knowledge import multiprocessing, own_frame
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern

PATTERN = Pattern(
    id="fork-inherited-lock",
    tier="specific",
    title="a forked process waits for a lock whose holder was not forked",
    explanation=(
        "The process was forked while another thread of its parent held this lock. The child has a copy of the locked lock, "
        "but not of the thread that would release it."
    ),
    remedy=(
        "Start child processes by spawn or forkserver (multiprocessing.set_start_method), with subprocess, or before the "
        "first thread starts. Where fork is unavoidable, re-create the lock in the child with "
        "os.register_at_fork(after_in_child=…)."
    ),
    needs=("python", "cores"),
    references=(
        "https://docs.python.org/3/library/os.html#os.fork",
        "https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods",
        "https://github.com/python/cpython/issues/50970",
    ),
)  # fmt: skip

#: The function in which a forked child of multiprocessing continues; the frames below are its parent's.
_FORKED_AT = (multiprocessing("popen_fork"), "_launch")

_SUMMARY = Template(
    "{thread} of the forked process {pid} waits{at} for {lock}, which {holder} of its parent{parent:+ @} held "
    "when it was forked{taken:+ (acquired at @)}"
)
_OWN_SUMMARY = Template(
    "{thread} of the forked process {pid} waits{at} for {lock}, which the thread that forked it held (acquired at {taken})"
)
_WAITS = Template("{thread} waits{at} for {lock}{forever}")
_TAKEN_BELOW = Template(
    "it was acquired at {taken}, in the part of the stack that belongs to the parent: the process was forked deeper in the "
    "stack, and ends without ever returning there ({basis:known})"
)
_ANOTHER_THREAD = Template("another thread")
_LEAVE_FIRST = Template("Start the process after leaving the `with` block of the lock, or by spawn or forkserver.")
_NO_LOCK = Template(
    "no lock in {forks:n forked process|forked processes} is held by a thread that stayed behind in the parent"
)


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each thread of a forked process that waits for a lock held by a thread of the parent."""
    found = False
    for process in view.pythons:
        resources = {r.id: r for r in process.resources}
        for thread in process.threads:
            resource = resources.get(thread.wait.resource or "") if thread.wait is not None else None
            waker = _before_fork(resource) if process.forked else None
            if waker is not None and waker.tid is None and not thread.is_main:
                waker = None  # a thread that began after the fork may have made the lock
            held = _below_fork(view, process, thread, resource)
            found = found or waker is not None or held is not None
            if resource is not None and waker is not None:
                yield _match(view, process, thread, resource, waker)
            elif resource is not None and held is not None:
                yield _own(view, process, thread, resource, held)
    forked = [p for p in view.pythons if p.forked]
    if forked and not found:
        yield No(_NO_LOCK(forks=len(forked)))


def _below_fork(view: View, process: Process, thread: Thread, resource: Optional[Resource]) -> Optional[PythonFrame]:
    """Return the parent's line that acquired the lock and then forked; None if there is none.

    The child has a copy of that frame but never returns to it.
    """
    owner = view.thread(process, resource.owner_tid) if resource is not None and resource.owner_pid is None else None
    depth = _depth(owner.python) if owner is not None else None
    waits = owner is thread or view.graph.stuck(Agent(process.pid, thread.tid)) is not None
    if resource is None or owner is None or depth is None or not waits:
        return None
    return next((h.frame for h in owner.holds if h.resource == resource.id and h.depth > depth), None)


def _own(view: View, process: Process, thread: Thread, resource: Resource, held: PythonFrame) -> Match:
    """Return the match of a lock held by the thread that forked."""
    owner = view.thread(process, resource.owner_tid) or thread
    wants, started = own_frame(thread.python), _started_at(owner.python)
    who, at, lock = clauses.named(thread), clauses.at(wants), resource.description
    frames = [f for f in (wants, started, held) if f is not None]
    return Match(
        confidence="proven" if resource.owner_basis != "inferred" and thread.wait and thread.wait.endless else "likely",
        summary=_OWN_SUMMARY(thread=who, pid=process.pid, at=at, lock=lock, taken=held),
        evidence=(
            _WAITS(thread=who, at=at, lock=lock, forever=None),
            _TAKEN_BELOW(taken=held, basis=resource.owner_basis),
        ),
        culprits=tuple(dict.fromkeys(view.culprit(process, f, thread) for f in frames)),
        victims=(view.victim(process, thread),),
        remedy=_LEAVE_FIRST(),
        pid=process.pid,
    )


def _before_fork(resource: Optional[Resource]) -> Optional[Waker]:
    """Return the parent's thread that held the lock at the fork; None if unknown."""
    return next((w for w in resource.wakers if w.role == "before-fork"), None) if resource is not None else None


def _match(view: View, process: Process, thread: Thread, resource: Resource, waker: Waker) -> Match:
    endless = thread.wait is not None and thread.wait.endless is not False
    sure = bool(resource.owner_gone) and waker.basis != "inferred"
    wants = own_frame(thread.python)
    who, at, lock = clauses.named(thread), clauses.at(wants), resource.description
    holder: Slot = ThreadName(waker.tid, waker.name) if waker.tid else _ANOTHER_THREAD()
    unlocking = who_comes_to(view, process, "unlocks", thread)
    return Match(
        confidence="possible" if not endless or unlocking else "proven" if sure else "likely",
        summary=_SUMMARY(
            thread=who,
            pid=process.pid,
            at=at,
            lock=lock,
            holder=holder,
            parent=waker.pid,
            taken=waker.frame,
        ),
        evidence=(
            _WAITS(thread=who, at=at, lock=lock, forever=clauses.forever(endless)),
            *resource.because,
            *later("unlocks", unlocking),
        ),
        culprits=tuple(dict.fromkeys(_culprits(view, process, thread, wants, waker))),
        victims=(view.victim(process, thread),),
        pid=process.pid,
    )


def _culprits(
    view: View, process: Process, thread: Thread, wants: Optional[PythonFrame], waker: Waker
) -> Iterator[Culprit]:
    """Yield the waiting line, the line that started the process, and the current line of the holder in the parent."""
    yield from (view.culprit(process, f, thread) for f in (wants, _started_at(thread.python)) if f is not None)
    parent = view.by_pid.get(waker.pid or 0)
    holder = view.thread(parent, waker.tid) if parent is not None else None
    held = own_frame(holder.python) if holder is not None and waker.frame is not None else None
    if parent is not None and held is not None:
        yield view.culprit(parent, held, holder)


def _started_at(frames: Tuple[PythonFrame, ...]) -> Optional[PythonFrame]:
    """Return the program's line that started the process, from the child's copy of its parent's stack."""
    depth = _depth(frames)
    return own_frame(frames[depth:]) if depth is not None else None


def _depth(frames: Tuple[PythonFrame, ...]) -> Optional[int]:
    """Return the index of the frame that forked; None if the process was not forked by multiprocessing."""
    file, function = _FORKED_AT
    return next((i for i, f in enumerate(frames) if f.function == function and f.file.endswith(file)), None)
