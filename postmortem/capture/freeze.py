"""Stops every thread of a tree at once, and lets all go again.

Parents first; then again, until no thread and no child is found that is not stopped: a stopped thread starts
nothing, so what is found complete stays complete.

All of it happens in one thread made for it (``run``). ptrace belongs to a thread: whatever goes wrong in it, its end
lets every target go. A signal that was about to be delivered when its thread stopped is given back.
"""

from __future__ import annotations

import threading
import time
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, TypeVar

from . import procfs, ptrace, tree

#: How long to wait for threads that do not stop (uninterruptible I/O, a frozen cgroup), in all.
PATIENCE_S = 2.0
_NAP_S = 0.0002
_MOST_ROUNDS = 50

T = TypeVar("T")


class Registers(NamedTuple):
    tid: int
    general: bytes
    sets: Dict[int, bytes]  # note type → content


class Freezer:
    """Use inside the function that ``run`` is given."""

    def __init__(self, machine: str) -> None:
        self.general_size, self._sets = ptrace.REGISTER_SETS[machine]
        self._stopped: Dict[int, int] = {}  # tid → signal to give back
        self._pending: Dict[int, float] = {}  # tid → when it was asked to stop
        self._seen: Dict[int, List[int]] = {}  # pid → its seized tids
        self._gave_up = False
        self.refused: Dict[int, OSError] = {}  # pid → why it may not be traced
        self.began: Optional[float] = None
        self.pause_s = 0.0

    @property
    def pids(self) -> List[int]:
        return list(self._seen)

    def unstoppable(self, pid: int) -> List[int]:
        """Threads that were asked to stop and have not."""
        return [tid for tid in self._seen.get(pid, ()) if tid in self._pending]

    def stop(self, pids: Iterable[int], also_children: bool) -> None:
        """Stops the processes, in their order, and with ``also_children`` what they have started since."""
        queue = list(pids)
        self.began = time.monotonic()
        for _round in range(_MOST_ROUNDS):
            new = 0
            for pid in queue:
                new += self._seize_new(pid)
            self._await_stops()
            if also_children:
                known = set(queue)
                queue += [c for p in list(self._seen) for c in _children(p) if c not in known]
                new += len(queue) - len(known)
            if not new:
                return

    def release(self) -> None:
        """Lets everything go, children before parents. Safe to call more than once."""
        for tid in reversed(list(self._stopped)):
            ptrace.detach(tid, self._stopped.pop(tid))
        if self.began is not None and not self.pause_s:
            self.pause_s = time.monotonic() - self.began

    def registers(self, pid: int) -> List[Registers]:
        """Of every stopped thread, the leader first; threads that vanished are left out."""
        found = []
        for tid in self._seen.get(pid, ()):
            if tid not in self._stopped:
                continue
            try:
                general = ptrace.register_set(tid, ptrace.NT_PRSTATUS)
            except OSError:
                continue
            found.append(Registers(tid, general, self._further(tid)))
        return found

    def _further(self, tid: int) -> Dict[int, bytes]:
        sets = {}
        for kind in self._sets:
            try:
                sets[kind] = ptrace.register_set(tid, kind)
            except OSError:
                continue  # this CPU has no such set
        return sets

    def _seize_new(self, pid: int) -> int:
        """Asks the threads that are not known yet to stop; how many there were."""
        known = self._seen.get(pid, [])
        try:
            tids = [tid for tid in procfs.threads(pid) if tid not in known]
        except OSError:
            return 0
        count = 0
        for tid in tids:
            if pid in self.refused:
                return 0
            count += self._seize(pid, tid)
        return count

    def _seize(self, pid: int, tid: int) -> bool:
        try:
            ptrace.seize(tid)
            ptrace.interrupt(tid)
        except ProcessLookupError:
            return False
        except OSError as exc:
            if not _has_ended(pid, tid):
                self.refused[pid] = exc
            return False
        self._seen.setdefault(pid, []).append(tid)
        self._pending[tid] = time.monotonic()
        return True

    def _await_stops(self) -> None:
        while self._pending and not self._gave_up:
            before = len(self._pending)
            for tid in list(self._pending):
                stop = ptrace.poll_stop(tid)
                if stop is not None:
                    del self._pending[tid]
                    if not stop.gone:
                        self._stopped[tid] = stop.signal
            if len(self._pending) == before:
                self._gave_up = self.began is not None and time.monotonic() - self.began > PATIENCE_S
                time.sleep(_NAP_S)


def run(work: Callable[[Freezer], T], machine: str) -> T:
    """Calls ``work`` with a Freezer in a thread of its own; returns or raises what it does.

    When this returns, nothing is stopped any more, whatever ``work`` did.
    """
    results: List[T] = []
    errors: List[BaseException] = []

    def body() -> None:
        freezer = Freezer(machine)
        try:
            results.append(work(freezer))
        except BaseException as exc:
            errors.append(exc)
        finally:
            freezer.release()

    tracer = threading.Thread(target=body, name="postmortem-freeze")
    tracer.start()
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
    """SEIZE refuses a zombie with EPERM, as if it were forbidden."""
    try:
        return procfs.stat(f"/proc/{pid}/task/{tid}").state in "ZX"
    except (OSError, ValueError):
        return True
