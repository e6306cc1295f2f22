"""The stop itself: all processes of a tree copied at one moment, with the shortest pause that pure Python allows.

- Before: files are opened, memory sizes measured, buffers allocated and populated, pages on disk read once.
- During: registers, a fresh look at mappings and pages where needed, the copy. A copy too large to be held in memory
  goes to its file.
- After: all other files are written.
"""

from __future__ import annotations

import contextlib
import time
from typing import BinaryIO, Callable, ContextManager, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...errors import CaptureFailed, PermissionRefused, PostmortemError, TargetNotFound
from . import image, memcopy, refusal
from .image import Image
from .pages import Range
from .stop import Freezer, Registers

#: Buffer size relative to the measured one: processes write new pages between the look and the stop.
_SLACK = 1.25
_SPARE = 4 << 20
_SPARE_DISK = 16 << 20

Opener = Callable[[int], ContextManager[BinaryIO]]
#: Called during the stop for one process: (its threads, tids of those that did not stop) → its image.
Maker = Callable[[List[Registers], List[int]], Image]


class Job(NamedTuple):
    """The copy to be made of one process; ``ranges``: what is copied besides the stacks."""

    source: image.Source
    look: image.Look
    ranges: List[Range]
    make: Maker

    @property
    def expected(self) -> int:
        """Bytes of ``ranges``."""
        return sum(end - start for start, end in self.ranges)


class Limits(NamedTuple):
    """Bytes of memory and disk that a copy may use; ``asked_to_end`` is polled during a long one."""

    memory: int
    disk: int
    asked_to_end: Callable[[], bool]


class Clocks(NamedTuple):
    """The clocks of this machine at the stop, in seconds: CLOCK_REALTIME and CLOCK_MONOTONIC."""

    realtime: float
    monotonic: float


class Frozen(NamedTuple):
    """The result of a stop: pid → image, pid → why it has none, and the length of the pause."""

    images: Dict[int, Image]
    refused: Dict[int, Exception]
    pause_s: float
    stopped_by: Dict[int, int]  # tid → the signal that had stopped its process before the freeze
    clocks: Clocks


def freeze_and_copy(
    freezer: Freezer,
    jobs: Dict[int, Job],
    limits: Limits,
    open_core: Opener,
    newcomer: Optional[Callable[[int], Job]],
    alone: bool = False,
) -> Frozen:
    """Stop the processes, copy them and release them; runs in the tracer's thread.

    - ``newcomer(pid)``: makes the job of a process that the tree started meanwhile, or that has called execve(2).
      Without it only the processes of ``jobs`` are stopped
    - ``alone``: do not stop their children
    - ``open_core(pid)``: called during the stop, for large copies only

    Raises CaptureFailed when the disk has no room for the cores.
    """
    expected = sum(job.expected for job in jobs.values())
    if expected > limits.disk - _SPARE_DISK:
        raise CaptureFailed(
            f"the cores need {expected >> 20} MB, but only {limits.disk >> 20} MB are free where the bundle is",
            "choose another place with -o DIR, or --core python",
        )
    for job in jobs.values():
        job.source.warm(job.ranges, job.look.mappings)
    arena = memcopy.Arena(min(int(expected * _SLACK), limits.memory) + _SPARE)

    freezer.stop({pid: job.source.start for pid, job in jobs.items()}, also_children=newcomer is not None and not alone)
    clocks = Clocks(time.time(), time.monotonic())
    images, refused = _images(freezer, jobs, newcomer)
    room = limits.memory
    for pid, each in sorted(images.items(), key=lambda item: item[1].bytes):  # small processes first
        room -= each.bytes
        if room >= 0:
            each.hold(arena)
            continue
        with open_core(pid) as stream:
            each.stream_to(stream, limits.asked_to_end)
    freezer.release()

    refused.update({pid: refusal.explain(pid) for pid in freezer.refused})
    return Frozen(images, refused, freezer.pause_s, dict(freezer.stopped_by), clocks)


def _images(
    freezer: Freezer, jobs: Dict[int, Job], newcomer: Optional[Callable[[int], Job]]
) -> Tuple[Dict[int, Image], Dict[int, Exception]]:
    images: Dict[int, Image] = {}
    refused: Dict[int, Exception] = {}
    for pid in freezer.pids:
        threads, unstoppable = freezer.registers(pid), freezer.unstoppable(pid)
        if not threads:
            refused[pid] = _no_registers(pid, unstoppable)
        elif len(threads[0].general) != freezer.general_size:
            refused[pid] = CaptureFailed(f"process {pid} is a 32-bit program, which is not supported", "use gcore")
        else:
            try:
                images[pid] = _image(pid, jobs, threads, unstoppable, newcomer)
            except (OSError, PostmortemError) as exc:
                refused[pid] = exc
    return images, refused


def _image(
    pid: int,
    jobs: Dict[int, Job],
    threads: List[Registers],
    unstoppable: List[int],
    newcomer: Optional[Callable[[int], Job]],
) -> Image:
    if pid in jobs:
        made = jobs[pid].make(threads, unstoppable)
        if not made.is_replaced:
            return made
        jobs.pop(pid).source.close()  # execve(2) since: what was opened shows the old program's memory
    if newcomer is None:
        raise TargetNotFound(f"process {pid} runs another program now")
    jobs[pid] = newcomer(pid)
    return jobs[pid].make(threads, unstoppable)


def _no_registers(pid: int, unstoppable: Sequence[int]) -> Exception:
    if unstoppable:
        are = "is" if len(unstoppable) == 1 else "are"
        return PermissionRefused(
            f"process {pid} did not stop: {len(unstoppable)} of its threads {are} in uninterruptible I/O or frozen",
            f"look at /proc/{pid}/stack, and at the freezer of its cgroup (/proc/{pid}/cgroup)",
        )
    return TargetNotFound(f"process {pid} ended before it could be stopped")


def looks(sources: Dict[int, image.Source]) -> Dict[int, image.Look]:
    """Return a look at each process; one that has ended meanwhile is left out."""
    found = {}
    for pid, source in sources.items():
        with contextlib.suppress(OSError):
            found[pid] = source.look()
    return found
