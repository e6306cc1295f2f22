"""A sparse core of each process of a tree, all of one moment, with the shortest pause that plain Python can do.

Before anything stops: files are opened, memory is looked through for its size, buffers are made and filled with
pages, what lies on a disk is read once. During the stop: registers, a fresh look at the maps and pages, the copy.
After it: the files are written. Only a copy too large to be held goes to the file while the processes stand still.
"""

from __future__ import annotations

import contextlib
import os
import platform
from typing import BinaryIO, Callable, ContextManager, Dict, List, NamedTuple, Sequence, Tuple

from ..errors import CaptureFailed, PermissionRefused, PostmortemError, TargetNotFound
from . import elfcore, memcopy, procfs, refusal
from .freeze import Freezer, Registers
from .pages import PageMap
from .segments import PAGE, Plan, plan

#: Room for what the processes touch between the look and the stop.
_SLACK = 1.25
_SPARE = 4 << 20
_SPARE_DISK = 16 << 20

Opener = Callable[[int], ContextManager[BinaryIO]]


class Source:
    """An open view of one process's memory. Raises PermissionRefused, TargetNotFound, OSError."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._files = contextlib.ExitStack()
        try:
            self.tid = procfs.living_thread(pid)
            self._base = f"/proc/{pid}/task/{self.tid}"
            self.memory = self._open("mem")
            self._pagemap = PageMap(self._open("pagemap"))
            self._maps = self._open("maps")
            self.auxv = procfs.read(f"{self._base}/auxv")
            self.identity = _identity(pid, self.tid)
        except PermissionError:
            self.close()
            raise refusal.explain(pid) from None
        except (FileNotFoundError, ProcessLookupError):
            self.close()
            raise TargetNotFound(f"process {pid} ended before its memory could be read") from None

    def _open(self, name: str) -> int:
        descriptor = os.open(f"{self._base}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        self._files.callback(os.close, descriptor)
        return descriptor

    def look(self) -> Look:
        """The mappings, and what of them goes into the core."""
        os.lseek(self._maps, 0, os.SEEK_SET)
        mappings = procfs.parse_maps(procfs.read_all(self._maps))
        return Look(mappings, plan(mappings, self._pagemap.touched(mappings)))

    @property
    def left_out(self) -> List[procfs.Mapping]:
        return self._pagemap.left_out

    def warm(self, look: Look) -> None:
        """Reads a byte of each page that a file may still hold, so that no disk is waited for during the stop."""
        stored = {segment.start: segment.stored for segment in look.plan.segments}
        for mapping in look.mappings:
            if mapping.inode and not mapping.shared:
                for address in range(mapping.start, mapping.start + stored.get(mapping.start, 0), PAGE):
                    with contextlib.suppress(OSError):
                        os.pread(self.memory, 1, address)

    def close(self) -> None:
        self._files.close()


class Look(NamedTuple):
    mappings: List[procfs.Mapping]
    plan: Plan


class Image:
    """One process as it was during the stop."""

    def __init__(self, source: Source, threads: List[Registers], unstoppable: List[int]) -> None:
        self._source = source
        self._threads = threads
        self._unstoppable = unstoppable
        self._mappings, self.plan = source.look()
        self._segments = self.plan.segments[: elfcore.MAX_SEGMENTS]
        self._copied = memcopy.Copied()
        self.on_disk = False

    def hold(self, arena: memcopy.Arena) -> None:
        """During the stop: copies into memory."""
        self._copied = memcopy.into_arena(self._source.memory, self._source.tid, self.plan.copies, arena)

    def stream_to(self, stream: BinaryIO, asked_to_end: Callable[[], bool]) -> None:
        """During the stop: memory goes straight to the file. Raises CaptureFailed when somebody wants an end."""
        put = self._begin(stream)
        self._copied = memcopy.into_file(self._source.memory, self.plan.copies, put, asked_to_end)
        self.on_disk = True

    def write(self, stream: BinaryIO) -> None:
        """After it: what was held is written, and given up."""
        put = self._begin(stream)
        for address, data in self._copied.parts:
            put(address, data)
        self._copied.parts.clear()
        self.on_disk = True

    @property
    def shortcomings(self) -> List[str]:
        """What the core lacks, one phrase each."""
        found = []
        if self._copied.unreadable_pages:
            found.append(f"{self._copied.unreadable_pages} pages could not be read")
        if self._unstoppable:
            found.append(f"{len(self._unstoppable)} threads did not stop and are left out")
        if self._source.left_out:
            found.append(f"{len(self._source.left_out)} reservations are too large to look through on this kernel")
        if len(self.plan.segments) > len(self._segments):
            found.append(f"{len(self.plan.segments) - len(self._segments)} mappings are more than a core can name")
        return found

    def _begin(self, stream: BinaryIO) -> Callable[[int, memoryview], None]:
        notes = elfcore.notes(self._source.identity, self._threads, self._source.auxv, self._mappings)
        offsets, size = elfcore.layout(self._segments, len(notes))
        os.ftruncate(stream.fileno(), size)
        os.pwrite(stream.fileno(), elfcore.head(platform.machine(), self._segments, notes, offsets), 0)
        return memcopy.Placement(self._segments, offsets).writer(stream)


class Limits(NamedTuple):
    """What a copy may use, in bytes; ``asked_to_end`` is looked at during a long one."""

    memory: int
    disk: int
    asked_to_end: Callable[[], bool]


class Frozen(NamedTuple):
    images: Dict[int, Image]
    refused: Dict[int, Exception]
    pause_s: float


def freeze_and_copy(freezer: Freezer, sources: Dict[int, Source], limits: Limits, open_core: Opener) -> Frozen:
    """The work during the stop; runs in the tracer's thread.

    Processes that the tree started meanwhile are added to ``sources``. ``open_core(pid)`` is called during the stop
    for large copies only. Raises CaptureFailed when the disk would not hold them.
    """
    looks = _first_looks(sources)
    expected = sum(look.plan.bytes for look in looks.values())
    if expected > limits.disk - _SPARE_DISK:
        raise CaptureFailed(
            f"the cores need {expected >> 20} MB, and {limits.disk >> 20} MB are free where the bundle lies",
            "choose another place with -o DIR",
        )
    for pid, look in looks.items():
        sources[pid].warm(look)
    arena = memcopy.Arena(int(expected * _SLACK) + _SPARE if expected <= limits.memory else _SPARE)

    freezer.stop(looks, also_children=True)
    images, refused = _images(freezer, sources)
    if sum(image.plan.bytes for image in images.values()) <= limits.memory:
        for image in images.values():
            image.hold(arena)
    else:
        for pid, image in images.items():
            with open_core(pid) as stream:
                image.stream_to(stream, limits.asked_to_end)
    freezer.release()

    refused.update({pid: refusal.explain(pid) for pid in freezer.refused})
    return Frozen(images, refused, freezer.pause_s)


def _first_looks(sources: Dict[int, Source]) -> Dict[int, Look]:
    """Of the processes that still are; one that ends meanwhile must not cost the cores of the others."""
    looks = {}
    for pid, source in sources.items():
        with contextlib.suppress(OSError):
            looks[pid] = source.look()
    return looks


def _images(freezer: Freezer, sources: Dict[int, Source]) -> Tuple[Dict[int, Image], Dict[int, Exception]]:
    images: Dict[int, Image] = {}
    refused: Dict[int, Exception] = {}
    for pid in freezer.pids:
        threads, unstoppable = freezer.registers(pid), freezer.unstoppable(pid)
        if not threads:
            refused[pid] = _no_registers(pid, unstoppable)
        elif len(threads[0].general) != freezer.general_size:
            refused[pid] = CaptureFailed(f"process {pid} is a 32-bit program, which is not supported", "gcore can")
        else:
            try:
                images[pid] = _image(pid, sources, threads, unstoppable)
            except (OSError, PostmortemError) as exc:
                refused[pid] = exc
    return images, refused


def _image(pid: int, sources: Dict[int, Source], threads: List[Registers], unstoppable: List[int]) -> Image:
    if pid in sources:
        image = Image(sources[pid], threads, unstoppable)
        if image.plan.segments:
            return image
        sources.pop(pid).close()  # it has run another program since: what was opened shows the old one's memory
    sources[pid] = Source(pid)
    return Image(sources[pid], threads, unstoppable)


def _no_registers(pid: int, unstoppable: Sequence[int]) -> Exception:
    if unstoppable:
        return PermissionRefused(
            f"process {pid} did not stop: {len(unstoppable)} of its threads are in uninterruptible I/O or frozen",
            f"see cat /proc/{pid}/stack, and the freezer of its cgroup (cat /proc/{pid}/cgroup)",
        )
    return TargetNotFound(f"process {pid} ended before it could be stopped")


def _identity(pid: int, tid: int) -> elfcore.Identity:
    stat = procfs.stat(f"/proc/{pid}")
    status = procfs.status(f"/proc/{pid}")
    return elfcore.Identity(
        pid, stat.ppid, stat.pgid, stat.sid,
        int(status["Uid"].split()[0]), int(status["Gid"].split()[0]),
        stat.state, stat.nice, stat.flags, stat.comm, procfs.read(f"/proc/{pid}/task/{tid}/cmdline"),
    )  # fmt: skip
