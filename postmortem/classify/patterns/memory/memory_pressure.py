"""There is too little memory: pages are constantly evicted and read again from the disk.

**What it looks like.** Threads are stalled in the middle of plain code (a page fault, not a system call), in state D; the same
pages that were evicted a moment ago are read again (refaults), or come back from swap; the control group is at its limit, or
the machine has no memory left.

**Easily mistaken for** `disk-wait` and `python-busy-loop`; a program that reads a large file for the first time, which has page
faults too, but no refaults; a cache that fills its group to the limit, which costs nothing.

**Why it hangs.** The program uses more memory than it may have. The kernel evicts pages that the program needs next, its own
code included, so that each step waits for the disk, a thousand times slower than memory.

**Remedy.** Raise the limit, or use less memory at a time: fewer workers, smaller batches, no copies, parts of a file in order.
"""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional

from ....evidence import Machine, Process
from ....findings import Template, Text
from ...facts import clauses
from ...facts.suspended import Looks
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern

PATTERN = Pattern(
    id="memory-pressure",
    tier="outside",
    title="too little memory: pages are evicted and read again",
    explanation=(
        "When memory runs short, the kernel evicts pages that it can read again from the disk: pages of files, of the program's "
        "own code, and pages written to swap. If they are needed again at once, the program waits for the disk at every step. "
        "It looks busy or asleep, and gets next to nothing done."
    ),
    remedy=(
        "Give it more memory (memory.max, docker --memory, resources.limits.memory), or let it use less at a time: fewer "
        "workers, smaller batches, data read in order and once."
    ),
    needs=("window",),
    references=(
        "https://docs.kernel.org/admin-guide/cgroup-v2.html#memory",
        "https://docs.kernel.org/accounting/psi.html",
    ),
)  # fmt: skip

#: Least share of a thread's observations in a page fault. Measured: 0.44 to 0.69 for random reads of a mapped file of 200 MB
#: under a limit of 64 MB; 0 for one that fits.
STALLED = 0.3
#: Least share of the limit (or of the memory) that is read again in the window: 16 in that example, on a fast disk. And least
#: number of major page faults a second: 141 there; reading large files again with read(2) causes none.
TURNOVER, FAULTS = 0.5, 30
#: Least share of the memory limit in use: below it the group has room.
FULL = 0.9
#: Least share of the window in which tasks were stalled on memory (PSI). The example had 0.10 to 0.15.
PSI = 0.05
#: Bytes over the window: fewer, such as an idle machine's occasional refaults (0.1 MB/s measured), are no pressure.
LEAST = 1 << 20

_SUMMARY = Template("{process} has too little memory: {where} is full, and what it needs{at} is read again and again")
_ITS_GROUP = Template("its control group")
_THE_MACHINE = Template("the machine")
_GROUP_USES = Template("its control group {path} uses {used:.0f} MB of the {limit:.0f} MB that it may ({share:.0%})")
_READ_AGAIN = Template("{size:.0f} MB that had been evicted shortly before were read again in the window")
_KILLED = Template("{count:n process|processes} of the group {count:v was|were} killed for lack of memory meanwhile")
_MACHINE_HAS = Template("the machine has {left:.0f} MB left of {size:.0f} MB")
_FROM_SWAP = Template("{size:.0f} MB were read again in the window, {swapped:.0f} MB of them from swap")
_STALLED = Template(
    "{found} of {looks} observations found {process} stalled in a page fault; {faults} of its page faults waited for a disk"
)
_PSI = Template("in all, tasks were stalled for lack of memory for {share:.0%} of the window (PSI)")
_BEFORE = Template("whether the pages that process {pid} waits for had been in memory before")
_NOTHING_AGAIN = Template("{process} read nothing again that had been evicted from memory")


class Pressure(NamedTuple):
    """A memory limit that was reached, of a control group or of the machine."""

    refaulted: int  # bytes over the window
    limit: int
    where: Text
    facts: List[Text]


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each process under memory pressure, or in page faults."""
    machine = view.evidence.machine
    for process in view.processes if view.window is not None else ():
        stalled, group = _stalls(process), process.cgroup
        pressure = _group(process) or _machine(machine)
        if pressure is None:
            known = [each.refaulted for each in (group, machine) if each is not None and each.refaulted is not None]
            if stalled.share >= STALLED and not known:
                yield CannotTell((_BEFORE(pid=process.pid),))
            elif group is not None and group.memory_limit:
                yield No(_NOTHING_AGAIN(process=clauses.process(process)))
            continue
        faults = sum(t.counters.major_faults or 0 for t in process.threads if t.counters is not None)
        if faults or stalled.found:
            yield _match(view, process, pressure, stalled, faults)


def _stalls(process: Process) -> Looks:
    """Return the observations in state D outside any system call, of the thread with the largest share of them."""
    counts = [t.counters for t in process.threads if t.counters is not None]
    looks = (Looks(min(c.states.get("D", 0), c.syscalls.get("none", 0)), sum(c.states.values())) for c in counts)
    return max(looks, key=lambda one: one.share, default=Looks(0, 0))


def _group(process: Process) -> Optional[Pressure]:
    """Return the pressure of the process's control group; None if it has room or is unknown."""
    group = process.cgroup
    if group is None or not group.memory_limit or group.memory_used is None:
        return None
    full, refaulted = group.memory_used / group.memory_limit, group.refaulted or 0
    if full < FULL or refaulted < LEAST:
        return None
    facts = [
        _GROUP_USES(path=group.path, used=group.memory_used / 1e6, limit=group.memory_limit / 1e6, share=full),
        _READ_AGAIN(size=refaulted / 1e6),
    ]
    if group.oom_kills:
        facts.append(_KILLED(count=group.oom_kills))
    return Pressure(refaulted, group.memory_limit, _ITS_GROUP(), facts)


def _machine(machine: Optional[Machine]) -> Optional[Pressure]:
    """Return the pressure of the machine; None if it has room or is unknown."""
    if machine is None or not machine.memory or machine.available is None:
        return None
    back = (machine.refaulted or 0) + (machine.swapped_in or 0)
    if machine.available > (1 - FULL) * machine.memory or back < LEAST:
        return None
    facts = [
        _MACHINE_HAS(left=machine.available / 1e6, size=machine.memory / 1e6),
        _FROM_SWAP(size=back / 1e6, swapped=(machine.swapped_in or 0) / 1e6),
    ]
    return Pressure(back, machine.memory, _THE_MACHINE(), facts)


def _match(view: View, process: Process, pressure: Pressure, stalled: Looks, faults: int) -> Match:
    turnover = pressure.refaulted / pressure.limit
    stalls = [*(view.evidence.machine.stalls.items() if view.evidence.machine else ())]
    stalls += process.cgroup.stalls.items() if process.cgroup is not None else ()
    psi = max((share for kind, share in stalls if kind.startswith("memory")), default=0.0)
    often = turnover >= TURNOVER and faults >= FAULTS * (view.window or 1.0)
    sure = stalled.share >= STALLED or often or (psi >= PSI and stalled.found > 0)
    threads = sorted(process.threads, key=lambda t: -((t.counters.major_faults or 0) if t.counters else 0))
    frames = [(t, f) for t in threads[:3] for f in [view.hot_frame(t)] if f is not None]
    facts = [
        *pressure.facts,
        _STALLED(found=stalled.found, looks=stalled.all, process=clauses.process(process), faults=faults),
    ]
    facts += [_PSI(share=psi)] if psi else []
    at = clauses.at(frames[0][1] if frames else None)
    return Match(
        confidence="likely" if sure and frames else "possible",
        summary=_SUMMARY(process=clauses.process(process), where=pressure.where, at=at),
        evidence=tuple(facts),
        culprits=tuple(dict.fromkeys(view.culprit(process, at, t) for t, f in frames for at in view.loops_around([f]))),
        victims=tuple(view.victim(process, main) for main in [view.main(process)] if main is not None),
        pid=process.pid,
    )
