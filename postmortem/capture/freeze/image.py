"""One process's memory: looked at while it runs, copied while it stands still, written as a core afterwards.

Two ways: ``SparseImage`` has every page that the process ever wrote; ``SelectedImage`` the pages that the extraction asked
for, the stacks and the loader's data, megabytes even of a process of 100 GB.
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
from ..procfs import parsers
from . import elfcore, memcopy, memorybudget, refusal, selection
from .pages import PAGE, PageMap, Pages, Range
from .segments import Plan, Segment, plan, union
from .stop import REFUSED, Registers

AsksToEnd = Callable[[], bool]
#: What following the pointers of a busy interpreter may add to a stop.
_TOUCH_S = 0.01


class Source:
    """An open view of one process's memory. ``start``: when the process that is meant began (signalling.begun): its number
    may be another's by now; None: whoever has the number. Raises PermissionRefused, TargetNotFound, CaptureFailed, OSError."""

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
        """As they are now; none when the process is gone, or runs another program since this was opened."""
        os.lseek(self._maps, 0, os.SEEK_SET)
        found = parsers.parse_maps(parsers.read_all(self._maps))
        # as the process itself has the names of its files, and a core by the kernel
        return [m._replace(name=below(m.name, self._prefix)) for m in found] if self._prefix else found

    def look(self) -> Look:
        """The mappings, and the pages that were ever written."""
        mappings = self.mappings()
        return Look(mappings, self._pagemap.look(mappings))

    def sort(self, ranges: Sequence[Range]) -> Tuple[List[Range], List[Range]]:
        """(what of ranges exists by now, what was never written there)."""
        return self._pagemap.sort(ranges)

    def living(self, mappings: Sequence[parsers.Mapping]) -> LivePages:
        """Its pages, to be read while it runs or stands still."""
        anonymous = [(m.start, m.end) for m in mappings if not m.inode and not m.shared and "r" in m.perms]
        return LivePages(self.memory, self._pagemap.descriptor, anonymous)

    @property
    def left_out(self) -> List[parsers.Mapping]:
        return self._pagemap.left_out

    def warm(self, ranges: Sequence[Range], mappings: Sequence[parsers.Mapping]) -> None:
        """Reads a byte of each page that a file may still hold, so that no disk is waited for during the stop."""
        files = [(m.start, m.end) for m in mappings if m.inode and not m.shared]
        for start, end in selection.common(ranges, files):
            for address in range(start, end, PAGE):
                with contextlib.suppress(OSError):
                    os.pread(self.memory, 1, address)

    def close(self) -> None:
        self._files.close()


class Look(NamedTuple):
    mappings: List[parsers.Mapping]
    pages: Pages

    @property
    def bytes(self) -> int:
        """Of private memory that was ever written."""
        return sum(end - start for start, end in self.pages.touched)


class Image:
    """One process as it was during the stop. ``bytes``: how much is to be copied."""

    def __init__(self, source: Source, threads: List[Registers], unstoppable: List[int]) -> None:
        self._source = source
        self._threads = threads
        self._unstoppable = unstoppable
        self._mappings: List[parsers.Mapping] = []
        self._ranges: List[Range] = []
        self._unnamed = 0
        self._copied = memcopy.Copied()
        self.on_disk = False
        #: What the core does not hold on purpose, one sentence; None: everything is there.
        self.left_out: Optional[str] = None

    @property
    def bytes(self) -> int:
        return sum(end - start for start, end in self._ranges)

    @property
    def is_replaced(self) -> bool:
        """It runs another program since its memory was opened."""
        return not self._mappings

    def hold(self, arena: memcopy.Arena) -> None:
        """During the stop: copies into memory."""
        self._copied = memcopy.into_arena(self._source.memory, self._source.tid, self._ranges, arena)

    def stream_to(self, stream: BinaryIO, asked_to_end: AsksToEnd) -> None:
        """During the stop: memory goes straight to the file. Raises CaptureFailed when somebody wants an end."""
        put = self._begin(stream, self._ranges)
        self._copied = memcopy.into_file(self._source.memory, self._ranges, put, asked_to_end)
        self.on_disk = True

    def write(self, stream: BinaryIO) -> None:
        """After it: what was held is written, and given up."""
        put = self._begin(stream, [(address, address + len(data)) for address, data in self._copied.parts])
        for address, data in self._copied.parts:
            put(address, data)
        self._copied.parts.clear()
        self.on_disk = True

    @property
    def shortcomings(self) -> List[str]:
        """What the core lacks though it should be there, one phrase each."""
        found = []
        if self._copied.unreadable_pages:
            found.append(f"{self._copied.unreadable_pages} pages could not be read")
        if self._unstoppable:
            found.append(f"{len(self._unstoppable)} threads did not stop and are left out")
        for reason, count in Counter(t.unstopped for t in self._threads if t.unstopped).items():
            found.append(
                f"{count} threads did not stop ({reason}): their memory was copied all the same, and of their registers "
                "those of the system call that they are in are known"
            )
        if self._source.left_out:
            found.append(f"{len(self._source.left_out)} reservations are too large to look through on this kernel")
        if self._unnamed:
            found.append(f"{self._unnamed} mappings are more than a core can name")
        return found

    @property
    def was_refused(self) -> bool:
        """It might be read, and not stopped."""
        return any(thread.unstopped == REFUSED for thread in self._threads)

    def _segments(self, copied: Sequence[Range]) -> List[Segment]:
        """``copied``: what was read, or is going to be."""
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
    """All private pages; with ``full`` also what files and shared memory hold. To be made during the stop."""

    def __init__(self, source: Source, threads: List[Registers], unstoppable: List[int], full: bool = False) -> None:
        super().__init__(source, threads, unstoppable)
        look = source.look()
        self._mappings = look.mappings
        self._plan: Plan = plan(look.mappings, look.pages, full)
        self._ranges = self._plan.copies

    def _segments(self, copied: Sequence[Range]) -> List[Segment]:
        return self._plan.segments


class Wanted(NamedTuple):
    """What a selection of pages was made from, before the stop. ``touch`` reads, during it, what the process makes anew all
    the time."""

    look: Look
    needed: selection.Needed
    touch: Optional[Callable[[Memory, float], None]]


def wanted(look: Look, pages: Collection[int], touch: Optional[Callable[[Memory, float], None]] = None) -> Wanted:
    """``pages``: numbers of those that the extraction reads."""
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
        if stacks is None:  # a thread that is younger than the look
            self._mappings = source.mappings()
            stacks = selection.stacks(places, self._mappings) or []
        written, self._zeros = source.sort(chosen.needed.zeros)  # it may have written there since
        stacks, _absent = source.sort(stacks)
        self._ranges = union([*chosen.needed.copies, *written], stacks)
        left = chosen.look.bytes - self.bytes
        if left > 0:
            self.left_out = (
                f"{_megabytes(left)} of the {_megabytes(chosen.look.bytes)} MB of memory that it has written are not in the "
                "core: the diagnosis does not read them"
            )

    def hold(self, arena: memcopy.Arena) -> None:
        super().hold(arena)
        if self._chosen.touch is not None:
            until = time.monotonic() + _TOUCH_S
            held = HeldPages(self._copied.parts, self._source.living(self._mappings), until)
            self._chosen.touch(held, until)
            further = [(number * PAGE, memoryview(page)) for number, page in held.further.items()]
            self._copied.parts = sorted([*self._copied.parts, *further], key=lambda part: part[0])

    @property
    def is_replaced(self) -> bool:
        try:
            return not os.pread(self._source.memory, 1, self._mappings[0].start)
        except (OSError, IndexError):
            return not self._source.mappings()

    def _segments(self, copied: Sequence[Range]) -> List[Segment]:
        return selection.segments(self._mappings, union(copied, self._zeros))


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
