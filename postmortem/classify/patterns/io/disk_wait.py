"""Waits for a disk, or for a file system that depends on a network or another program.

**What it looks like.** A thread is in a call on a file (`read`, `fsync`, `stat`, `open`, `execve`) and in state D,
uninterruptible sleep, in one observation after another; or the kernel shows that it waits for the answer of a file system
(NFS, CIFS, FUSE).

**Easily mistaken for** `file-lock-wait`, where the file is locked, not slow; `memory-pressure`, whose page faults read a disk as
well; a backup at work, which waits for the disk too, but for milliseconds each time; frozen processes, also in state D.

**Why it hangs.** The server of a mounted share is gone, a program behind a FUSE mount is stuck, a disk fails or is overloaded:
the kernel waits for an answer, and the thread can neither be interrupted nor, in state D, killed.

**Remedy.** Check the mount that holds the path, and the kernel's log; mount shares with `soft,timeo=`; keep such calls out of
threads that others wait for without a timeout.
"""

from __future__ import annotations

from typing import Iterator, List, Tuple

from ....evidence import Process, Thread
from ....findings import Culprit, Template, Text
from ....findings.found import Said
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.alike import THREADS_WAIT, Alike, told_once
from ...facts.knowledge import NO_STORAGE, STORAGE, own_frame
from ...facts.suspended import Looks, states, victims, waiting, waiting_lines
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern

PATTERN = Pattern(
    id="disk-wait",
    tier="specific",
    title="waits for a disk or a mounted file system",
    explanation=(
        "The program uses a file, and the kernel has to wait for a disk, for a server on the network (NFS, a Windows share) or "
        "for another program (FUSE) to answer. Meanwhile the thread sleeps and does not react to signals: the kernel calls "
        "that uninterruptible sleep (state D)."
    ),
    remedy=(
        "Check the file system that holds the path (df, mount, dmesg): does its server or its disk still answer? Mount shares so "
        "that requests time out (NFS: soft,timeo=), and make such calls in a thread or process that no other one waits for "
        "without a timeout."
    ),
    needs=("window",),
    references=(
        "https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html",
        "https://man7.org/linux/man-pages/man5/nfs.5.html",
    ),
)  # fmt: skip

#: Least share of the observations.
OFTEN = 0.5
#: Least average length of one wait, as a share of the window. Local disks answer in 0.1 to 15 ms, so a program that keeps one
#: busy wakes at least 60 times a second; one that waited for a dead share did not wake at all.
LONG = 0.05

_SUMMARY = Template("{thread} waits{at} for a disk or a mounted file system (system call {call})")
_FOUND = Template("{found} of {all} observations found {thread} waiting for storage{at} (system call {call})")
_A_CALL = Template("unknown")
_CHANNELS = Template("in the kernel it waits in {channels}")
_BEHIND = Template("{agent} of process {pid} waits for it")
_WAKES_UNKNOWN = Template("how often it woke is not known")
_NEVER_WOKE = Template("it did not wake once in the window")
_WOKE = Template("wake-ups in the window: {waits:.0f}; a wait lasted {ms:.0f} ms on average")
_MOVED_NOTHING = Template("the process read and wrote nothing meanwhile")
_MOVED = Template("the process read or wrote {megabytes:.1f} MB meanwhile")
_NEEDS_WINDOW = Template("an observation window: how long {thread} has been in state D")
_COMPUTES = Template("{thread} waits for a disk at times, but computes in between")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each thread that waits for storage in most observations."""
    for process in view.processes:
        if process.cgroup is not None and process.cgroup.frozen:
            continue  # cgroup v1 shows frozen tasks in state D
        found = []
        for thread in process.threads:
            looks, who = _looks(thread), clauses.named(thread)
            if thread.counters is None and thread.state == "D":
                yield CannotTell((_NEEDS_WINDOW(thread=who),))
            elif looks.share >= OFTEN and not view.rests(thread):
                yield No(_COMPUTES(thread=who))
            elif looks.share >= OFTEN and not _in_fault(thread):
                one = _match(view, process, thread, looks)
                found.append(Alike((*[(c.file, c.line) for c in one.culprits[:1]], one.confidence), who, one))
        yield from told_once(found, THREADS_WAIT)


def _looks(thread: Thread) -> Looks:
    """Return the observations that show a thread waiting for storage.

    It is in state D, though not for another known reason, or sleeps interruptibly in a file system's code.
    """
    in_d = states([thread], "D")
    channels = thread.counters.wchan if thread.counters is not None else {}
    others = sum(count for name, count in channels.items() if _is(name, NO_STORAGE))
    asleep = sum(count for name, count in channels.items() if _is(name, STORAGE))
    return Looks(max(in_d.found - others, min(asleep, in_d.all)), in_d.all)


def _is(channel: str, table: Tuple[str, ...]) -> bool:
    return channel.split(".", 1)[0] in table  # kernels have names such as x.constprop.0


def _in_fault(thread: Thread) -> bool:
    """Return whether a thread waits mostly outside system calls: for a page fault, which is `memory-pressure` or start-up."""
    calls = thread.counters.syscalls if thread.counters is not None else {}
    return calls.get("none", 0) > sum(calls.values()) / 2


def _match(view: View, process: Process, thread: Thread, looks: Looks) -> Match:
    frame = own_frame(thread.python)
    agents = [*view.graph.behind(frozenset((Agent(process.pid, thread.tid),))), *waiting(view, {process.pid})]
    lines: Tuple[Culprit, ...] = waiting_lines(view, agents)
    if frame is not None:
        lines = (view.culprit(process, frame, thread),)
    who, at = clauses.named(thread), clauses.at(frame)
    call = thread.wait.syscall if thread.wait is not None else _most_seen(thread)
    long, each = _long(view, thread, looks)
    sure = long and (view.matters(process, thread) or bool(agents)) and bool(lines)
    channels = sorted(thread.counters.wchan if thread.counters else (), key=lambda n: -_count(thread, n))
    facts: List[Said] = [
        _FOUND(found=looks.found, all=looks.all, thread=who, call=call, at=at),
        *([_CHANNELS(channels=tuple(channels[:2]))] if channels else []),
        each,
        *_moved(process),
        *(_BEHIND(agent=agent, pid=agent.pid) for agent in agents[:4]),
    ]
    if thread.wait is not None and thread.wait.phrase:
        facts.insert(1, thread.wait.phrase)
    return Match(
        confidence="likely" if sure else "possible",
        summary=_SUMMARY(thread=who, at=at, call=call),
        evidence=tuple(facts),
        culprits=lines,
        victims=victims(view, agents),
        pid=process.pid,
    )


def _most_seen(thread: Thread) -> Said:
    """Return the system call of a thread in most observations."""
    calls = thread.counters.syscalls if thread.counters is not None else {}
    return max(calls, key=lambda n: _count(thread, n)) if calls else _A_CALL()


def _count(thread: Thread, name: str) -> int:
    return thread.counters.wchan.get(name, 0) + thread.counters.syscalls.get(name, 0) if thread.counters else 0


def _long(view: View, thread: Thread, looks: Looks) -> Tuple[bool, Text]:
    """Return whether a thread's waits are long rather than many and short, and a text with their length."""
    switches, window = view.switches(thread), view.window or 1.0
    if switches is None:
        return True, _WAKES_UNKNOWN()
    waits = switches * window
    each = looks.share * window / max(waits, 1.0)
    if waits < 1:
        return True, _NEVER_WOKE()
    return each >= LONG * window, _WOKE(waits=waits, ms=1e3 * each)


def _moved(process: Process) -> List[Text]:
    """Return a text on the bytes that the process read or wrote, if known."""
    io = process.io or {}
    moved = [io[key] for key in ("read_bytes", "write_bytes", "rchar", "wchar") if key in io]
    if not moved:
        return []
    return [_MOVED(megabytes=max(moved) / 1e6) if any(moved) else _MOVED_NOTHING()]
