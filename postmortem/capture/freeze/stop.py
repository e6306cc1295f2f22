"""Stopping every thread of a tree at once, and releasing them again.

Parents are stopped first; rounds repeat until no unstopped thread or child is found. A stopped thread starts nothing,
so a complete result stays complete.

Everything happens in one thread made for it (``run``): ptrace attachments belong to a thread, and its end detaches
every target, whatever went wrong. A signal about to be delivered when its thread stopped is passed on at release.

Some threads cannot be stopped, but run no code anyway: those in uninterruptible sleep, or in a frozen control group
(version 1: a frozen task does not stop for a tracer, Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst; version
2 lets tracers attach). Their registers are read from /proc/PID/task/TID/syscall. So are those of a process that can
be read but not traced (a seccomp filter on our side): it continues to run, and its waiting threads are read as they
wait.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Set, TypeVar

from ... import signalling
from ...arch import registers
from ..procfs import cgroups, parsers, tree
from . import ptrace

#: Seconds to wait for threads that do not stop, in all.
PATIENCE_S = 2.0
#: Seconds to wait when only threads in uninterruptible sleep are missing: all others are stopped meanwhile.
_PATIENCE_ASLEEP_S = 0.25
#: Seconds to wait for a thread found after PATIENCE_S is over.
_PATIENCE_LATE_S = 0.05
_NAP_S = 0.0002
_LOOK_EVERY_S = 0.01
_MOST_ROUNDS = 50
#: Seconds after which no further round begins: a tree that starts processes faster than they are stopped must not
#: prolong the pause of those already stopped.
_LONGEST_S = 3.0
_FROZEN = "its control group is frozen"
_ASLEEP = "uninterruptible sleep"
_BUSY = "it did not answer in time"
REFUSED = "ptrace is refused"
_UNTRACED = (_FROZEN, REFUSED)

T = TypeVar("T")


class Registers(NamedTuple):
    """The registers of one thread."""

    tid: int
    general: bytes
    sets: Dict[int, bytes]  # note type → content
    #: Why the thread did not stop, else None. If set, ``general`` has only the registers of its system call; ``sets``
    #: is empty.
    unstopped: Optional[str] = None


class Freezer:
    """The threads of a tree, stopped and released; to be used inside the function that ``run`` is given."""

    def __init__(self, machine: str) -> None:
        self._machine = machine
        self.general_size, self._sets = ptrace.REGISTER_SETS[machine]
        self._stopped: Dict[int, int] = {}  # tid → signal to pass on
        self._pending: Dict[int, float] = {}  # tid → time.monotonic() of the request to stop
        self._unstopped: Dict[int, str] = {}  # tid → why it is no longer waited for
        self._seen: Dict[int, List[int]] = {}  # pid → its tids
        self._mounts = cgroups.own_mounts()
        self._frozen: Dict[int, bool] = {}
        #: Called each round, returns further processes of the tree: orphans that were reparented to us.
        self.adopted: Callable[[], Iterable[int]] = tuple
        self._readable: Set[int] = set()  # pids whose memory is open
        self._untraceable: Dict[int, OSError] = {}  # pid → why it cannot be traced, although its memory is open
        self._starts: Mapping[int, Optional[int]] = {}
        self.refused: Dict[int, OSError] = {}  # pid → why nothing can be read of it
        self.stopped_by: Dict[int, int] = {}  # tid → the signal that had stopped its process before the freeze
        self.began: Optional[float] = None
        self.pause_s = 0.0
        #: Whether new processes or threads were still found when time was up.
        self.overtaken = False

    @property
    def pids(self) -> List[int]:
        """Processes found so far, in the order in which they were stopped."""
        return list(self._seen)

    def unstoppable(self, pid: int) -> List[int]:
        """Return the threads that have not stopped and whose registers are unknown."""
        tids = [tid for tid in self._seen.get(pid, ()) if tid in self._unstopped]
        return [tid for tid in tids if self._told(pid, tid) is None]

    def stop(self, starts: Mapping[int, Optional[int]], also_children: bool) -> None:
        """Stop processes, whose memory is open, in order, and with ``also_children`` the children started since.

        ``starts``: pid → when the process began (signalling.begun), None if unknown.
        """
        queue = list(starts)
        self._starts = starts
        self._readable = set(queue)
        for pid in queue:
            self._is_frozen(pid)  # before anything is stopped
        known = set(queue)
        self.began = time.monotonic()
        for _round in range(_MOST_ROUNDS):
            # a process whose threads were all stopped before this look has no other threads, and starts no more
            # children
            moving = [pid for pid in queue if self._seize_new(pid)]
            self._await_stops()
            if also_children:
                found = [child for pid in queue if pid in self._seen for child in _children(pid)]
                moving += [pid for pid in dict.fromkeys([*found, *self.adopted()]) if pid not in known]
                known.update(moving)
            if not moving:
                return
            if time.monotonic() - self.began > _LONGEST_S:
                break
            queue = moving
        self.overtaken = True

    def release(self) -> None:
        """Let every thread continue, children before parents. Safe to call more than once."""
        for tid in [tid for tid, reason in self._unstopped.items() if reason not in _UNTRACED]:
            stop = ptrace.poll_stop(tid)  # it may have stopped late
            if stop is not None and not stop.gone:
                self._stopped[tid] = stop.signal
        stood_still = bool(self._stopped)
        for tid in reversed(list(self._stopped)):
            ptrace.detach(tid, self._stopped.pop(tid))
        if self.began is not None and stood_still:
            self.pause_s = time.monotonic() - self.began

    def registers(self, pid: int) -> List[Registers]:
        """Return the registers of every stopped thread, the leader first; threads that have ended are left out."""
        found = []
        for tid in self._seen.get(pid, ()):
            each = self._read(tid) if tid in self._stopped else self._told(pid, tid)
            if each is not None:
                found.append(each)
        if not found and pid in self._untraceable:
            self.refused[pid] = self._untraceable[pid]
        return found

    def _read(self, tid: int) -> Optional[Registers]:
        try:
            return Registers(tid, ptrace.register_set(tid, ptrace.NT_PRSTATUS), self._further(tid))
        except OSError:
            return None

    def _told(self, pid: int, tid: int) -> Optional[Registers]:
        """Return the registers in /proc of a thread that did not stop; None when it runs, or is gone."""
        if tid not in self._unstopped:
            return None
        try:
            call = parsers.parse_syscall(parsers.read(f"/proc/{pid}/task/{tid}/syscall"))
        except (OSError, ValueError, IndexError):
            return None
        if call is None:
            return None
        return Registers(
            tid,
            registers.from_syscall(self._machine, call.number, call.args, call.sp, call.pc),
            {},
            self._unstopped[tid],
        )

    def _further(self, tid: int) -> Dict[int, bytes]:
        sets = {}
        for kind in self._sets:
            try:
                sets[kind] = ptrace.register_set(tid, kind)
            except OSError:
                continue  # this CPU has no such set
        return sets

    def _seize_new(self, pid: int) -> int:
        """Ask the threads not yet known to stop; return how many there were."""
        known = self._seen.get(pid, [])
        if not known and self._is_another(pid):
            return 0
        try:
            tids = [tid for tid in parsers.threads(pid) if tid not in known]
        except OSError:
            return 0
        if known and self._unstopped.get(known[0]) in _UNTRACED:
            return 0
        if not known and self._is_frozen(pid):
            return self._leave(pid, tids, _FROZEN)
        count = 0
        for tid in tids:
            count += self._seize(pid, tid)
            if pid in self._untraceable:
                return self._leave(pid, tids, REFUSED)
            if pid in self.refused:
                return 0
        return count

    def _is_another(self, pid: int) -> bool:
        """Return whether the pid has been reused since; such a process is left alone."""
        start = self._starts.get(pid)
        return start is not None and signalling.begun(pid) != start

    def _leave(self, pid: int, tids: List[int], reason: str) -> int:
        """Record the threads as unstopped without tracing them; return how many there are."""
        self._seen[pid] = tids
        self._unstopped.update(dict.fromkeys(tids, reason))
        return len(tids)

    def _is_frozen(self, pid: int) -> bool:
        if pid not in self._frozen:
            self._frozen[pid] = cgroups.is_frozen(pid, self._mounts)
        return self._frozen[pid]

    def _seize(self, pid: int, tid: int) -> bool:
        try:
            ptrace.seize(tid)
            ptrace.interrupt(tid)
        except ProcessLookupError:
            return False
        except OSError as exc:
            if not _has_ended(pid, tid):
                first = pid not in self._seen
                kept = self._untraceable if first and pid in self._readable and not _is_traced(pid) else self.refused
                kept[pid] = exc
            return False
        self._seen.setdefault(pid, []).append(tid)
        self._pending[tid] = time.monotonic()
        return True

    def _await_stops(self) -> None:
        looked = time.monotonic()
        while self._pending:
            before = len(self._pending)
            for tid in list(self._pending):
                stop = ptrace.poll_stop(tid)
                if stop is not None:
                    del self._pending[tid]
                    if not stop.gone:
                        self._stopped[tid] = stop.signal
                    if stop.stopped_by:
                        self.stopped_by[tid] = stop.stopped_by
            if len(self._pending) == before:
                now = time.monotonic()
                if now - looked > _LOOK_EVERY_S:
                    looked = now
                    self._give_up(now)
                time.sleep(_NAP_S)

    def _give_up(self, now: float) -> None:
        """Stop waiting for pending threads once their patience is over."""
        over = self.began is not None and now - self.began > PATIENCE_S
        least = _PATIENCE_LATE_S if over else _PATIENCE_ASLEEP_S
        if any(now - asked < least for asked in self._pending.values()):
            return
        if over or all(map(_is_asleep, self._pending)):
            self._unstopped.update((tid, _ASLEEP if _is_asleep(tid) else _BUSY) for tid in self._pending)
            self._pending.clear()


def run(work: Callable[[Freezer], T], machine: str) -> T:
    """Call ``work`` with a Freezer in a thread of its own; return its result or raise its exception.

    Afterwards no thread is stopped any more, whatever ``work`` did.
    """
    results: List[T] = []
    errors: List[BaseException] = []

    def body(hurry: bool = True) -> None:
        freezer = Freezer(machine)
        if hurry:
            with contextlib.suppress(OSError):  # needs privileges; applies to this thread alone (setpriority(2))
                os.setpriority(os.PRIO_PROCESS, 0, -20)
        try:
            results.append(work(freezer))
        except BaseException as exc:
            errors.append(exc)
        finally:
            freezer.release()

    tracer = threading.Thread(target=body, name="postmortem-freeze")
    try:
        tracer.start()
    except RuntimeError:  # no thread can be started: the end of this process releases the threads instead
        body(hurry=False)
    else:
        tracer.join()
    if errors:
        raise errors[0]
    return results[0]


def _children(pid: int) -> List[int]:
    try:
        return tree.children_of(pid)
    except OSError:
        return []


def _has_ended(pid: int, tid: int) -> bool:
    """Return whether a thread is a zombie or gone: SEIZE of a zombie fails with EPERM, as if it were forbidden."""
    try:
        return parsers.stat(f"/proc/{pid}/task/{tid}").state in "ZX"
    except (OSError, ValueError):
        return True


def _is_asleep(tid: int) -> bool:
    try:
        return parsers.stat(f"/proc/{tid}").state == "D"
    except (OSError, ValueError):
        return False


def _is_traced(pid: int) -> bool:
    """Return whether a debugger traces the process already."""
    try:
        return parsers.status(f"/proc/{pid}").get("TracerPid", "0") != "0"
    except OSError:
        return False
