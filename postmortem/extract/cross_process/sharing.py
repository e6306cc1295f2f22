"""Holders and wakers of semaphores across processes.

A multiprocessing lock is taken and released by the same process, which counts this in its own memory
(cpython/sync/semaphores.py). Three conclusions follow:

- A lock's semaphore is 0: the process with a count above 0 holds it; if there is none, its holder has ended.
- Any other semaphore can be released by exactly the processes that map its file: the file is unlinked or has a name
  known only to the program.
- A semaphore is 0, no live process has counted an acquisition, and every function that waits for it would also release it
  (it guards something, and is no signal): it was taken by a process that has ended, or never had a permit.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...evidence import Fact, Process, PythonFrame, Resource, Waker, fact
from ...evidence import replace as changed
from ...evidence.vocabulary import FactCode
from .forks import Trace
from .semaphores import KIND, Claim, semaphore_files

_NAMED = 6  # processes named in a sentence


class Sharers(NamedTuple):
    """The processes that map a semaphore."""

    read: Tuple[int, ...]  # PIDs of processes whose memory was read
    others: Tuple[int, ...]  # PIDs of processes that map it and were not read or not captured
    claims: Dict[int, Claim]
    all_known: bool  # False: there may be more processes
    settled: bool  # False: a process may have taken it without having counted that yet

    @property
    def certain(self) -> bool:
        """Return whether all processes that map it were read."""
        return self.all_known and not self.others


class _Machine(NamedTuple):
    """Notes about processes that were not captured."""

    beyond: Mapping[str, Any]
    all_known: bool

    @classmethod
    def of(cls, noted: Any) -> _Machine:
        """Return the notes as read from a capture."""
        if not isinstance(noted, dict):
            return cls({}, False)
        beyond = noted.get("beyond")
        complete = noted.get("unread") == 0 and noted.get("not_looked_at") == 0
        return cls(beyond if isinstance(beyond, dict) else {}, complete and isinstance(beyond, dict))

    def who_map(self, key: str) -> List[int]:
        """Return PIDs of processes outside the capture that map a semaphore."""
        pids = self.beyond.get(key.partition(":")[2])
        return [pid for pid in pids if isinstance(pid, int)] if isinstance(pids, list) else []


def with_sharers(
    processes: Sequence[Process], traces: Mapping[int, Trace], maps: Mapping[int, Any], noted: Any
) -> List[Process]:
    """Return the processes with the known holders of their semaphores.

    - ``maps``: lines of /proc/PID/maps, by PID
    - ``noted``: the capture's notes about all other processes of the machine (capture/procfs/sharers.py), or None
    """
    keys = {pid: set(semaphore_files(lines).values()) for pid, lines in maps.items() if isinstance(lines, list)}
    wanted = {r.key for p in processes for r in p.resources if r.kind == KIND and r.key}
    machine = _Machine.of(noted)
    known = {key: _sharers(key, processes, traces, keys, machine) for key in wanted}
    return [_with_holders(p, known) for p in processes]


def with_shared_owners(processes: Sequence[Process], traces: Mapping[int, Trace]) -> List[Process]:
    """Return the processes with the holders of native locks in shared memory that are threads of another of them."""
    process_of = {thread.tid: process.pid for process in processes for thread in process.threads}
    return [
        _with_shared_owners(p, traces[p.pid].shared_owners, process_of) if p.pid in traces else p for p in processes
    ]


def _with_shared_owners(process: Process, owners: Mapping[str, int], process_of: Mapping[int, int]) -> Process:
    if not owners:
        return process
    return changed(process, resources=tuple(_owned(r, owners.get(r.id), process_of) for r in process.resources))


def _owned(resource: Resource, tid: Optional[int], process_of: Mapping[int, int]) -> Resource:
    """Return a lock with its holder if that is a thread of a known process."""
    pid = process_of.get(tid) if tid is not None else None
    if pid is None:
        return resource
    because = (*resource.because, fact("shared-lock-records", owner=tid, pid=pid))
    return changed(resource, owner_tid=tid, owner_pid=pid, owner_basis="recorded", locked=True, because=because)


def _sharers(
    key: str, processes: Sequence[Process], traces: Mapping[int, Trace], keys: Mapping[int, Any], machine: _Machine
) -> Sharers:
    read: List[int] = []
    others = machine.who_map(key)
    claims: Dict[int, Claim] = {}
    settled = True
    for process in processes:
        if process.state in ("Z", "X"):
            continue
        trace = traces.get(process.pid)
        if trace is not None and key in trace.claims:
            claims[process.pid] = trace.claims[key]
            settled = settled and not trace.unsettled
        if process.pid not in keys or key in keys[process.pid]:  # its mappings are unknown, or include the semaphore
            certain = trace is not None and trace.complete and key in trace.claims
            (read if certain else others).append(process.pid)
    return Sharers(tuple(read), tuple(others), claims, machine.all_known, settled)


def _with_holders(process: Process, known: Mapping[str, Sharers]) -> Process:
    if not any(r.kind == KIND and r.key for r in process.resources):
        return process
    resources = tuple(
        _completed(process.pid, r, known[r.key]) if r.kind == KIND and r.key else r for r in process.resources
    )
    return changed(process, resources=resources)


def _completed(pid: int, resource: Resource, sharers: Sharers) -> Resource:
    claim = sharers.claims.get(pid)
    if resource.locked is not True or resource.owner_gone or claim is None:
        return resource
    if not claim.is_lock or any(_is_signal(c) for c in sharers.claims.values()):
        return _signalled(resource, sharers)
    holders = [(other, c) for other, c in sharers.claims.items() if c.taken > 0]
    if len(holders) > 1:
        return changed(resource, owner_tid=None, owner_basis=None)  # a plain os.fork has copied the count
    if holders:
        holder, held = holders[0]
        if held.holder is not None:
            return changed(
                resource,
                owner_pid=holder if holder != pid else None,
                owner_tid=held.holder.agent,
                owner_basis=held.holder.basis,
            )
        return changed(resource, owner_gone=True, because=(fact("taker-ended", pid=holder),))
    return _without_holder(resource, sharers)


def _is_signal(claim: Claim) -> bool:
    """Return whether a lock is used as a signal.

    It is if a process released it without having taken it, or waits for it after taking it by hand.
    """
    return claim.taken < 0 or (claim.holder is not None and claim.holder.basis == "inferred")


def _without_holder(resource: Resource, sharers: Sharers) -> Resource:
    """Return a lock that is taken although no process holds it."""
    if not sharers.certain or not sharers.settled:
        return resource
    return changed(
        resource,
        owner_gone=True,
        because=(
            fact("shared-taken"),
            _mapped_by("shared-none-has", sharers.read),
            fact("shared-taker-gone"),
        ),
    )


def _signalled(resource: Resource, sharers: Sharers) -> Resource:
    """Return a semaphore that any process mapping it may release: a plain one, or part of a condition, event or queue."""
    pids = (*sharers.read, *sharers.others)
    wakers = tuple(Waker("reach", "memory", pid, name="has it in memory") for pid in pids)
    step = _mapped_by("shared-mapped-by", pids)
    lent = _lent(sharers) if resource.value == 0 else ()
    if lent:
        steps = (fact("shared-none-took", count=len(pids)), fact("shared-guards"))
        return changed(resource, wakers=wakers, closed=True, because=(step, *steps), taken_at=lent)
    return changed(
        resource,
        owner_tid=None,
        owner_basis=None,
        wakers=wakers,
        closed=True if sharers.all_known else None,
        because=(step,) if sharers.all_known else (),
    )


def _lent(sharers: Sharers) -> Tuple[PythonFrame, ...]:
    """Return the places that wait for a semaphore and would release it.

    Empty unless all waiting functions would release it and no process has taken it.
    """
    claims = sharers.claims.values()
    if not (sharers.certain and sharers.settled) or any(c.taken != 0 or c.lent is None for c in claims):
        return ()
    return tuple(dict.fromkeys(frame for c in claims for frame in c.lent or ()))


def _mapped_by(code: FactCode, pids: Sequence[int]) -> Fact:
    return fact(code, count=len(pids), processes=tuple(pids[:_NAMED]), more=max(0, len(pids) - _NAMED))
