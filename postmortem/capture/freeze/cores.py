"""The cores of a tree: processes are prepared while they run, stopped all at once, copied, released, written.

Modes:
- ``sparse``: every private page that was ever written
- ``python``: the pages that the extraction reads, found by a rehearsal. When the copy lacks pages, a further short stop
  copies the whole selection anew, so that a core always shows one moment
- ``full``: pages of files and shared memory too
- ``auto``: ``sparse`` for small processes, else ``python``
"""

from __future__ import annotations

import os
import platform
import time
from typing import TYPE_CHECKING, BinaryIO, Callable, ContextManager, Dict, List, NamedTuple, Optional, Set, Tuple

from ...bundle import Bundle, core_name
from ...errors import TargetNotFound
from ...memory import Memory
from ..procfs.facts import boot_id
from ..procfs.tree import Member, children_of
from ..run.command import Command, Watch
from . import image, memorybudget, moment, ptrace, refusal, rehearsal, selection, stop
from .image import Image, Look, Source
from .segments import plan
from .stop import Registers

if TYPE_CHECKING:
    from ...cpython.state.volatile import Moving
    from ..readers import How

#: Bytes of one process, and of a whole tree, up to which "auto" copies every page.
SMALL = 64 << 20
SMALL_TREE = 256 << 20
#: Maximum number of stops for one selection of pages.
_MOST_STOPS = 4
#: Pages copied on either side of a missed one: new objects lie close to those made last.
_AROUND = 8
#: Share of the verdict's budget for all rehearsals before the stop; the same again for checking whether the cores are
#: complete. The second value is the minimum in seconds.
_SHARE, _LEAST_S = 0.25, 0.5
_MORE = "postmortem capture --core sparse takes all of it"

Pages = Set[int]


def capture(
    bundle: Bundle,
    command: Command,
    members: Callable[[], List[Member]],
    note: Callable[[int, Optional[int]], None],
    mode: str = "auto",
    budget: float = 30.0,
    *,
    how: How,
) -> Optional[float]:
    """Write the cores of a tree; return the longest pause in seconds, None when nothing was stopped.

    - ``members``: returns the processes of the tree
    - ``note(pid, signal)``: called for each process with a core, after all were released; ``signal`` is the one that
      had stopped the process before, None if it was running
    - ``budget``: seconds within which a verdict is wanted
    - ``how``: how processes are read
    """
    machine = platform.machine()
    if mode == "none":
        with bundle.step("core", "the tree") as step:
            said = "no cores were requested (--core none)"
            step.leave_out("no-core-wanted", said, "postmortem capture --core auto takes them")
        return None
    if machine not in ptrace.REGISTER_SETS:
        with bundle.step("core", "the tree") as step:
            step.fail(
                "no-core-here",
                f"postmortem cannot write cores on {machine} yet",
                "take one with gcore",
                machine=machine,
            )
        return None
    with Sources(bundle, command.pid) as sources:
        for member in members():
            if member.alive:
                sources.open(member.pid, member.start)
        if not sources.open_ones:
            return None
        return Capture(bundle, command, sources.open_ones, mode, machine, budget, how).run(note)


class Sources:
    """Open views of the tree's processes, as a context manager that closes all of them."""

    def __init__(self, bundle: Bundle, root: int) -> None:
        self._bundle, self._root = bundle, root
        self.open_ones: Dict[int, Source] = {}

    def open(self, pid: int, start: int) -> None:
        """Open the process that began at ``start``; a failure becomes a step of the manifest.

        Raises TargetNotFound when the root of the tree has ended.
        """
        with self._bundle.step("core", f"process {pid}", only_failure=True):
            try:
                self.open_ones[pid] = Source(pid, start)
            except TargetNotFound:
                if pid == self._root:
                    raise
                # short-lived children end all the time: no shortcoming of the capture

    def __enter__(self) -> Sources:
        return self

    def __exit__(self, *_: object) -> None:
        for source in self.open_ones.values():
            source.close()


class Chosen(NamedTuple):
    """The mode chosen for one process.

    - ``pages``: for a selection, numbers of the pages that the extraction reads
    - ``touch``: what to read during the stop, see image.Wanted
    """

    mode: str
    pages: Pages
    touch: Optional[Callable[[Memory, float], None]] = None


class Capture:
    """The capture of one tree, which stops it once or a few times."""

    def __init__(
        self,
        bundle: Bundle,
        command: Command,
        sources: Dict[int, Source],
        mode: str,
        machine: str,
        budget: float,
        how: How,
    ) -> None:
        self._how = how
        self._bundle, self._command, self._machine = bundle, command, machine
        self._sources, self._mode = sources, mode
        self._chosen: Dict[int, Chosen] = {}
        self._small = 0  # bytes of the processes that "auto" copies whole
        self._kin: Dict[Tuple[int, ...], Pages] = {}
        self._moving: Dict[int, Moving] = {}
        self._share = max(_SHARE * budget, _LEAST_S)
        self._rehearse_until = time.monotonic() + self._share
        self._pauses: List[float] = []
        self._overtaken = False
        self._alone = isinstance(command, Watch) and command.alone

    def run(self, note: Callable[[int, Optional[int]], None]) -> Optional[float]:
        """Stop, copy and write the tree; return the longest pause in seconds, None when nothing was stopped.

        ``note``: see ``capture``.
        """
        with self._bundle.step("freeze", "the tree") as step:
            for pid, look in moment.looks(self._sources).items():
                self._choose(pid, look)
            # look once more: choosing takes a while, and the processes have written to new pages since
            jobs = {
                pid: self._job(pid, look) for pid, look in moment.looks(self._sources).items() if pid in self._chosen
            }
            frozen = self._stop(jobs, True)
            told = {step["subject"] for step in self._bundle.failed_steps if step["step"] == "core"}
            if self._overtaken:
                said = "processes started faster than they could be stopped: the cores do not all show one moment"
                step.fail("overtaken", said)
            for pid, error in frozen.refused.items():
                if f"process {pid}" not in told:  # refused before the stop, and recorded then
                    with self._bundle.step("core", f"process {pid}"):
                        raise error
            for pid, each in frozen.images.items():
                note(pid, frozen.stopped_by.get(pid))
                self._write(pid, each)
                self._note_clocks(pid, frozen.clocks)
            self._complete([pid for pid in frozen.images if self._chosen[pid].mode == "python"])
        self._bundle.manifest["stops_s"] = self._pauses
        return max(self._pauses, default=None) or None

    # ------------------------------------------------------------------ before the stop

    def _choose(self, pid: int, look: Look, in_stop: bool = False) -> None:
        mode = self._mode
        if mode == "auto":
            mode = self._mode_of(plan(look.mappings, look.pages).bytes)
        pages: Pages = set()
        if mode == "python":
            try:
                pages = self._pages_of(self._sources[pid], look, in_stop)
            except OSError as exc:  # a defect of the reader, whatever it was: copy every page
                mode = "sparse"
                with self._bundle.step("rehearsal", f"process {pid}") as step:
                    said = f"its memory could not be read before the stop: {exc.strerror}"
                    step.fail("not-rehearsed", said, errno=exc.errno or 0)
        self._chosen[pid] = Chosen(mode, pages)

    def _job(self, pid: int, look: Look) -> moment.Job:
        source, chosen = self._sources[pid], self._chosen[pid]
        if chosen.mode == "python":
            wanted = image.wanted(look, chosen.pages, chosen.touch)
            return moment.Job(source, look, wanted.needed.copies, _selected(source, wanted))
        full = chosen.mode == "full"
        return moment.Job(source, look, plan(look.mappings, look.pages, full).copies, _sparse(source, full))

    def _mode_of(self, size: int) -> str:
        """Choose the mode under "auto"; ``size``: bytes of all pages that a sparse core would hold."""
        if size <= SMALL and self._small + size <= SMALL_TREE:
            self._small += size
            return "sparse"
        return "python"

    def _pages_of(self, source: Source, look: Look, in_stop: bool) -> Pages:
        """Return the pages that a rehearsal reads.

        Without time for a rehearsal: those read of a process with the same memory layout, usually forked from one
        parent.
        """
        kin = _layout(look)
        if in_stop or time.monotonic() > self._rehearse_until:
            return set(self._kin.get(kin, ()))
        read = rehearsal.rehearse(source, look, self._reading(self._rehearse_until))
        if read.moving is not None:
            self._moving[source.pid] = read.moving
        self._kin.setdefault(kin, set()).update(read.pages)
        return read.pages

    def _reading(self, until: float) -> rehearsal.Reading:
        return rehearsal.Reading(self._bundle, self._how.files, self._how.reader, until, self._command.helpers)

    def _newcomer(self, pid: int) -> moment.Job:
        """Make the job of a process that began during the stop, or that has called execve(2) since."""
        known = self._sources.get(pid)
        self._sources[pid] = Source(pid, known.start if known is not None else None)
        look = self._sources[pid].look()
        self._choose(pid, look, in_stop=True)
        return self._job(pid, look)

    # ------------------------------------------------------------------ the stop

    def _stop(self, jobs: Dict[int, moment.Job], also_children: bool) -> moment.Frozen:
        def work(freezer: stop.Freezer) -> moment.Frozen:
            if not isinstance(self._command, Watch):
                freezer.adopted = self._orphans
            free = self._bundle.folder.free
            limits = moment.Limits(
                memorybudget.memory_to_hold(
                    most=memorybudget.HOLD_LIMIT if self._mode == "auto" else memorybudget.HOLD_ALL
                ),
                free,
                self._command.asked_to_end,
            )
            frozen = moment.freeze_and_copy(
                freezer, jobs, limits, self._open_core, self._newcomer if also_children else None, alone=self._alone
            )
            self._overtaken = self._overtaken or freezer.overtaken
            return frozen

        frozen = stop.run(work, self._machine)
        self._pauses.append(round(frozen.pause_s, 6))
        return frozen

    def _orphans(self) -> List[int]:
        """Return our children that are no helpers: orphans of the tree, which we adopt as subreaper."""
        return [pid for pid in children_of(os.getpid()) if pid not in self._command.helpers]

    def _open_core(self, pid: int) -> ContextManager[BinaryIO]:
        return self._bundle.writing(core_name(pid))

    # ------------------------------------------------------------------ after it

    def _write(self, pid: int, each: Image) -> None:
        with self._bundle.step("core", f"process {pid}") as step:
            if not each.on_disk:
                with self._open_core(pid) as stream:
                    each.write(stream)
            if each.left_out:
                step.leave_out("core-left-out", each.left_out, _MORE)
            if each.shortcomings:
                remedy = refusal.explain(pid).next if each.was_refused else "the rest of the core is correct"
                step.fail("core-incomplete", "; ".join(each.shortcomings), remedy)

    def _note_clocks(self, pid: int, clocks: moment.Clocks) -> None:
        """Write stop.json of a core: when it was taken, by the clocks that its processes' deadlines are set by."""
        source = self._sources.get(pid)
        same = source is not None and source.shares_clocks
        known = {
            "realtime": round(clocks.realtime, 6),
            "monotonic": round(clocks.monotonic, 6) if same else None,
            "boot_id": boot_id(),
        }
        with self._bundle.step("core", f"process {pid}", only_failure=True):
            self._bundle.write_json(f"raw/proc/{pid}/stop.json", known)

    def _complete(self, pids: List[int]) -> None:
        """Stop processes again whose cores lack pages, until none is missing or time is up."""
        until = time.monotonic() + self._share
        for _stop in range(_MOST_STOPS - 1):
            jobs: Dict[int, moment.Job] = {}
            for pid in pids:
                if time.monotonic() > until:
                    break
                job = self._job_for_missed(pid, until)
                if job is not None:
                    jobs[pid] = job
            if not jobs:
                return
            frozen = self._stop(jobs, False)
            for pid, each in frozen.images.items():
                with self._bundle.step("core", f"process {pid}", only_failure=True), self._open_core(pid) as stream:
                    each.write(stream)
                self._note_clocks(pid, frozen.clocks)
            pids = list(jobs)

    def _touch(self, pid: int) -> Optional[Callable[[Memory, float], None]]:
        """Return a function that follows thread states and frames during the stop; None without an interpreter.

        A busy interpreter changes these faster than they can be read while it runs.
        """
        moving = self._moving.get(pid)
        return moving.touch if moving is not None else None

    def _job_for_missed(self, pid: int, until: float) -> Optional[moment.Job]:
        """Return a job that copies the missing pages too; None when none is missing, or the process is gone."""
        known = self._chosen[pid].pages
        try:
            before = self._sources[pid].look()
            missed = rehearsal.missed(self._sources[pid], before, self._reading(until)) - known
            look = self._sources[pid].look()  # reading takes a while: new pages were written since
        except OSError:
            return None
        if not missed:
            return None
        more = selection.around(missed, _AROUND, look.pages.touched)
        self._chosen[pid] = Chosen("python", known | more, self._touch(pid))
        return self._job(pid, look)


def _sparse(source: Source, full: bool) -> moment.Maker:
    def make(threads: List[Registers], unstoppable: List[int]) -> Image:
        return image.SparseImage(source, threads, unstoppable, full)

    return make


def _selected(source: Source, wanted: image.Wanted) -> moment.Maker:
    def make(threads: List[Registers], unstoppable: List[int]) -> Image:
        return image.SelectedImage(source, threads, unstoppable, wanted)

    return make


def _layout(look: Look) -> Tuple[int, ...]:
    """Return the start addresses of program and heap: equal in forked processes, hardly ever in others (ASLR)."""
    program = next((m.start for m in look.mappings if m.inode), 0)
    heap = next((m.start for m in look.mappings if m.name == b"[heap]"), 0)
    return program, heap
