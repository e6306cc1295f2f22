"""Evidence with one fact made unknown: a frame, a holder, a waker, a descriptor, an observation."""

from __future__ import annotations

import random
from functools import partial
from typing import Callable, Iterator, List, Optional, Tuple

from postmortem.evidence import Evidence, Process, Resource, Thread
from postmortem.evidence import replace as changed

#: What is made unknown, and the evidence without it.
Deletion = Tuple[str, Evidence]


def deletions(evidence: Evidence, count: int, seed: int) -> Iterator[Deletion]:
    """Yield up to ``count`` different deletions of single facts, chosen by chance; equal for an equal seed."""
    chance = random.Random(seed)
    possible: List[Callable[[], Deletion]] = [one for process in evidence.processes for one in _of(evidence, process)]
    for make in chance.sample(possible, min(count, len(possible))):
        yield make()


def _of(evidence: Evidence, process: Process) -> Iterator[Callable[[], Deletion]]:
    for thread in process.threads:
        for at in range(min(4, len(thread.stack))):
            yield partial(_without_frame, evidence, process, thread, at)
        if thread.wait is not None and thread.wait.resource is not None:
            yield partial(_without_resource, evidence, process, thread)
        for at in range(len(thread.holds)):
            yield partial(_without_hold, evidence, process, thread, at)
    for resource in process.resources:
        if resource.owner_tid is not None or resource.owner_pid is not None or resource.owner_task is not None:
            yield partial(_without_owner, evidence, process, resource)
        for at in range(min(4, len(resource.wakers))):
            yield partial(_without_waker, evidence, process, resource, at)
        if resource.ends:
            yield partial(_without_ends, evidence, process, resource)


def _with(evidence: Evidence, old: Process, new: Process) -> Evidence:
    return changed(evidence, processes=tuple(new if one is old else one for one in evidence.processes))


def _with_thread(evidence: Evidence, process: Process, old: Thread, new: Thread) -> Evidence:
    threads = tuple(new if one is old else one for one in process.threads)
    return _with(evidence, process, changed(process, threads=threads))


def _with_resource(evidence: Evidence, process: Process, old: Resource, new: Optional[Resource]) -> Evidence:
    found = (new if one is old else one for one in process.resources)
    return _with(evidence, process, changed(process, resources=tuple(one for one in found if one is not None)))


def _without_frame(evidence: Evidence, process: Process, thread: Thread, at: int) -> Deletion:
    stack = (*thread.stack[:at], *thread.stack[at + 1 :])
    return f"frame {at} of {thread.tid}", _with_thread(evidence, process, thread, changed(thread, stack=stack))


def _without_resource(evidence: Evidence, process: Process, thread: Thread) -> Deletion:
    assert thread.wait is not None
    wait = changed(thread.wait, resource=None)
    return f"what {thread.tid} waits for", _with_thread(evidence, process, thread, changed(thread, wait=wait))


def _without_hold(evidence: Evidence, process: Process, thread: Thread, at: int) -> Deletion:
    gone = thread.holds[at].resource
    holds = (*thread.holds[:at], *thread.holds[at + 1 :])
    found = _with_thread(evidence, process, thread, changed(thread, holds=holds))
    now = next(one for one in found.processes if one.pid == process.pid)
    known = next((r for r in now.resources if r.id == gone), None)
    if known is not None and known.owner_tid == thread.tid:
        found = _with_resource(found, now, known, changed(known, owner_tid=None, owner_basis=None))
    return f"that {thread.tid} holds {gone}", found


def _without_owner(evidence: Evidence, process: Process, resource: Resource) -> Deletion:
    unknown = changed(
        resource, owner_tid=None, owner_pid=None, owner_task=None, owner_basis=None, closed=None, because=()
    )
    found = _with_resource(evidence, process, resource, unknown)
    now = next(one for one in found.processes if one.pid == process.pid)
    threads = tuple(changed(t, holds=tuple(h for h in t.holds if h.resource != resource.id)) for t in now.threads)
    return f"the holder of {resource.id}", _with(found, now, changed(now, threads=threads))


def _without_waker(evidence: Evidence, process: Process, resource: Resource, at: int) -> Deletion:
    wakers = (*resource.wakers[:at], *resource.wakers[at + 1 :])
    unknown = changed(resource, wakers=wakers, closed=None, because=())  # what is not known to be all is not closed
    return f"waker {at} of {resource.id}", _with_resource(evidence, process, resource, unknown)


def _without_ends(evidence: Evidence, process: Process, resource: Resource) -> Deletion:
    unknown = changed(resource, ends=(), wakers=(), closed=None, because=())
    return f"the ends of {resource.id}", _with_resource(evidence, process, resource, unknown)
