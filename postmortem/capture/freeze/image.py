"""The memory of one process: examined while it runs, copied while it is stopped, written as a core afterwards.

- ``SparseImage``: every page that the process ever wrote
- ``SelectedImage``: the pages that the extraction asked for, the stacks and the loader's data; megabytes even for a
  process of 100 GB
"""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections import Counter
from typing import BinaryIO, Callable, Collection, List, NamedTuple, Optional, Sequence, Tuple

from ... import signalling
from ...arch import registers
from ...errors import TargetNotFound
from ...memory import Memory
from ...memory.live import HeldPages, LivePages
from ...memory.procmem import below, root_prefix
from ..procfs import facts, parsers
from . import elfcore, memcopy, memorybudget, refusal, selection
from .pages import PAGE, PageMap, Pages, Range
from .segments import Plan, Segment, plan, union
from .stop import REFUSED, Registers

AsksToEnd = Callable[[], bool]
#: Seconds by which following the pointers of a busy interpreter may prolong a stop.
_TOUCH_S = 0.01


class Source:
    """An open view of one process's memory.

    ``start``: when the process began (signalling.begun), since its pid may have been reused; None accepts any process.
    Raises PermissionRefused, TargetNotFound, CaptureFailed, OSError.
    """

    def __init__(self, pid: int, start: Optional[int] = None) -> None:
        self.pid = pid
        self._files = contextlib.ExitStack()
        try:
            self.start = signalling.begun(pid)
            if start is not None and self.start != start:
                raise ProcessLookupError
            self.tid = parsers.living_thread(pid)
            self._base = f"/proc/{pid}/task/{self.tid}"
            self.memory = self._open("mem")
            self._pagemap = PageMap(self._open("pagemap"))
            self._maps = self._open("maps")
            memorybudget.refuse_last_descriptors(self._maps)
            self.auxv = parsers.read(f"{self._base}/auxv")
            self.identity = _identity(pid, self.tid)
            self._prefix = root_prefix(pid)
            self.shares_clocks = facts.shares_clocks(pid, self.tid)
        except PermissionError:
            self.close()
            raise refusal.explain(pid) from None
        except (FileNotFoundError, ProcessLookupError):
            self.close()
            raise TargetNotFound(f"process {pid} ended before its memory could be read") from None
        except BaseException:
            self.close()
            raise

    def _open(self, name: str) -> int:
        descriptor = os.open(f"{self._base}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        self._files.callback(os.close, descriptor)
        return descriptor

    def mappings(self) -> List[parsers.Mapping]:
        """Return the current mappings; none when the process is gone, or has called execve(2) since this was opened."""
        os.lseek(self._maps, 0, os.SEEK_SET)
        found = parsers.parse_maps(parsers.read_all(self._maps))
        # file names below the process's own root directory, as a core by the kernel has them
        return [m._replace(name=below(m.name, self._prefix)) for m in found] if self._prefix else found

    def look(self) -> Look:
        """Return the current mappings and the pages that were ever written."""
        mappings = self.mappings()
        return Look(mappings, self._pagemap.look(mappings))

    def sort(self, ranges: Sequence[Range]) -> Tuple[List[Range], List[Range]]:
        """Return (the parts of ``ranges`` that exist by now, the parts that were never written)."""
        return self._pagemap.sort(ranges)

    def living(self, mappings: Sequence[parsers.Mapping]) -> LivePages:
        """Return the pages of the process, readable whether it runs or is stopped."""
        anonymous = [(m.start, m.end) for m in mappings if not m.inode and not m.shared and "r" in m.perms]
        return LivePages(self.memory, self._pagemap.descriptor, anonymous)

    @property
    def left_out(self) -> List[parsers.Mapping]:
        """Mappings that were too large to look through."""
        return self._pagemap.left_out

    def warm(self, ranges: Sequence[Range], mappings: Sequence[parsers.Mapping]) -> None:
        """Read a byte of each page that may still be on disk, so that the stop does not wait for the disk."""
        files = [(m.start, m.end) for m in mappings if m.inode and not m.shared]
        for start, end in selection.common(ranges, files):
            for address in range(start, end, PAGE):
                with contextlib.suppress(OSError):
                    os.pread(self.memory, 1, address)

    def close(self) -> None:
        """Close every descriptor of the process."""
        self._files.close()


class Look(NamedTuple):
    """The mappings of a process and its existing pages, at one time."""

    mappings: List[parsers.Mapping]
    pages: Pages

    @property
    def bytes(self) -> int:
        """Bytes of private memory that was ever written."""
        return sum(end - start for start, end in self.pages.touched)


class Image:
    """The memory of one process as it was during the stop."""

    def __init__(self, source: Source, threads: List[Registers], unstoppable: List[int]) -> None:
        self._source = source
        self._threads = threads
        self._unstoppable = unstoppable
        self._mappings: List[parsers.Mapping] = []
        self._ranges: List[Range] = []
        self._unnamed = 0
        self._copied = memcopy.Copied()
        self.on_disk = False
        #: What the core omits on purpose, as one sentence; None if nothing.
        self.left_out: Optional[str] = None

    @property
    def bytes(self) -> int:
        """Number of bytes to be copied."""
        return sum(end - start for start, end in self._ranges)

    @property
    def is_replaced(self) -> bool:
        """Whether the process has called execve(2) since its memory was opened."""
        return not self._mappings

    def hold(self, arena: memcopy.Arena) -> None:
        """Copy the memory into ``arena``; called during the stop."""
        self._copied = memcopy.into_arena(self._source.memory, self._source.tid, self._ranges, arena)

    def stream_to(self, stream: BinaryIO, asked_to_end: AsksToEnd) -> None:
        """Copy the memory directly to a file; called during the stop.

        Raises CaptureFailed when ``asked_to_end`` returns true.
        """
        put = self._begin(stream, self._ranges)
        self._copied = memcopy.into_file(self._source.memory, self._ranges, put, asked_to_end)
        self.on_disk = True

    def write(self, stream: BinaryIO) -> None:
        """Write the held copy and free it; called after the stop."""
        put = self._begin(stream, [(address, address + len(data)) for address, data in self._copied.parts])
        for address, data in self._copied.parts:
            put(address, data)
        self._copied.parts.clear()
        self.on_disk = True

    @property
    def shortcomings(self) -> List[str]:
        """What the core lacks although it should be there, one phrase each."""
        found = []
        if self._copied.unreadable_pages:
            found.append(f"{_counted(self._copied.unreadable_pages, 'page')} could not be read")
        if self._unstoppable:
            found.append(f"{_counted(len(self._unstoppable), 'thread')} did not stop: left out")
        for reason, count in Counter(t.unstopped for t in self._threads if t.unstopped).items():
            found.append(
                f"{_counted(count, 'thread')} did not stop ({reason}): memory was copied anyway, but of the registers only "
                "those of the current system call are known"
            )
        if self._source.left_out:
            found.append(
                f"{_counted(len(self._source.left_out), 'memory reservation')} too large to search on this kernel"
            )
        if self._unnamed:
            found.append(f"{_counted(self._unnamed, 'mapping')} beyond the number that a core can list")
        return found

    @property
    def was_refused(self) -> bool:
        """Whether the process could be read but not stopped."""
        return any(thread.unstopped == REFUSED for thread in self._threads)

    def _segments(self, copied: Sequence[Range]) -> List[Segment]:
        """Return the core's segments; ``copied``: ranges that have been or will be read."""
        raise NotImplementedError

    def _begin(self, stream: BinaryIO, copied: Sequence[Range]) -> Callable[[int, memoryview], None]:
        every = self._segments(copied)
        segments = every[: elfcore.MAX_SEGMENTS]
        self._unnamed = len(every) - len(segments)
        notes = elfcore.notes(self._source.identity, self._threads, self._source.auxv, self._mappings)
        offsets, size = elfcore.layout(segments, len(notes))
        os.ftruncate(stream.fileno(), size)
        os.pwrite(stream.fileno(), elfcore.head(platform.machine(), segments, notes, offsets), 0)
        return memcopy.Placement(segments, offsets).writer(stream)


class SparseImage(Image):
    """All private pages; with ``full`` also those of files and shared memory. To be made during the stop."""

    def __init__(self, source: Source, threads: List[Registers], unstoppable: List[int], full: bool = False) -> None:
        super().__init__(source, threads, unstoppable)
        look = source.look()
        self._mappings = look.mappings
        self._plan: Plan = plan(look.mappings, look.pages, full)
        self._ranges = self._plan.copies

    def _segments(self, copied: Sequence[Range]) -> List[Segment]:
        return self._plan.segments


class Wanted(NamedTuple):
    """The basis of a selection of pages, made before the stop.

    ``touch(memory, until)``: reads, during the stop, the structures that the process replaces all the time.
    """

    look: Look
    needed: selection.Needed
    touch: Optional[Callable[[Memory, float], None]]


def wanted(look: Look, pages: Collection[int], touch: Optional[Callable[[Memory, float], None]] = None) -> Wanted:
    """Return the selection for ``pages``, the numbers of those that the extraction reads."""
    return Wanted(look, selection.needed(look.mappings, look.pages, pages), touch)


class SelectedImage(Image):
    """The wanted pages and the stacks of all threads. To be made during the stop."""

    def __init__(self, source: Source, threads: List[Registers], unstoppable: List[int], chosen: Wanted) -> None:
        super().__init__(source, threads, unstoppable)
        machine = platform.machine()
        places = [registers.places(machine, thread.general) for thread in threads]
        self._chosen = chosen
        self._mappings = chosen.look.mappings
        stacks = selection.stacks(places, self._mappings)
        if stacks is None:  # a thread that began after the look
            self._mappings = source.mappings()
            stacks = selection.stacks(places, self._mappings) or []
        written, self._zeros = source.sort(chosen.needed.zeros)  # the process may have written there since
        stacks, _absent = source.sort(stacks)
        self._ranges = union([*chosen.needed.copies, *written], stacks)
        left = chosen.look.bytes - self.bytes
        if left > 0:
            self.left_out = (
                f"{_megabytes(left)} of the {_megabytes(chosen.look.bytes)} MB of memory that it has written are not in the "
                "core: the diagnosis does not read them"
            )

    def hold(self, arena: memcopy.Arena) -> None:
        """Copy the memory into ``arena``, and the pages that ``touch`` reads beyond the selection."""
        super().hold(arena)
        if self._chosen.touch is not None:
            until = time.monotonic() + _TOUCH_S
            held = HeldPages(self._copied.parts, self._source.living(self._mappings), until)
            self._chosen.touch(held, until)
            further = [(number * PAGE, memoryview(page)) for number, page in held.further.items()]
            self._copied.parts = sorted([*self._copied.parts, *further], key=lambda part: part[0])

    @property
    def is_replaced(self) -> bool:
        """Whether the process has called execve(2) since its memory was opened."""
        try:
            return not os.pread(self._source.memory, 1, self._mappings[0].start)
        except (OSError, IndexError):
            return not self._source.mappings()

    def _segments(self, copied: Sequence[Range]) -> List[Segment]:
        return selection.segments(self._mappings, union(copied, self._zeros))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.0f}"


def _identity(pid: int, tid: int) -> elfcore.Identity:
    stat = parsers.stat(f"/proc/{pid}")
    status = parsers.status(f"/proc/{pid}")
    return elfcore.Identity(
        pid,
        stat.ppid,
        stat.pgid,
        stat.sid,
        int(status["Uid"].split()[0]),
        int(status["Gid"].split()[0]),
        stat.state,
        stat.nice,
        stat.flags,
        stat.comm,
        parsers.read(f"/proc/{pid}/task/{tid}/cmdline"),
    )
