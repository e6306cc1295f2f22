"""Evidence from a single core file."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ...arch.registersets import READ
from ...cores.executable import find_executable, take_executable
from ...cores.located import Located
from ...errors import NotACore, PostmortemError, TargetNotFound, ToolFailed, ToolMissing
from ...evidence import Evidence, Gap, NativeFrame, Process, Timings, Trigger
from ...evidence import replace as changed
from ...evidence.facts import Value
from ...evidence.vocabulary import GapCode
from ...foreign.files import Unfit, open_regular
from ...foreign.processfiles import Files, Shelves, below
from ...memory import ElfCore, NotElf
from ...memory.elf import ET_CORE, OtherWidth
from ...native import CoreFile, NativeStacks, Unwinding, start
from ...native.evalloop import named
from ...native.nearest import without_guesses
from .crashes import fatal_signal, with_crash
from .how import How

if TYPE_CHECKING:
    from ..cross_process.forks import Trace
    from ..process.context import ProcessContext
    from ..process.process import Reading
    from ..recorded.raw import Raw


def from_core(path: Path, how: How = How(), *, owner: Optional[int] = None, tool_version: str = "") -> Evidence:  # noqa: B008 - a tuple
    """Return the evidence of a single core file.

    ``owner``: user of the process or creator of the file; None: owner of ``path``.

    Raises TargetNotFound, NotACore.
    """
    with extracted(path, how, owner=owner, tool_version=tool_version) as (found, _context):
        return found


@contextlib.contextmanager
def extracted(
    path: Path,
    how: How,
    *,
    owner: Optional[int] = None,
    tool_version: str = "",
    descriptor: Optional[int] = None,
) -> Iterator[Tuple[Evidence, ProcessContext]]:
    """Provide the evidence of a core and its context; the core stays open during the block.

    ``descriptor``: of the core, taken over; ``path`` is then only a name.

    Raises TargetNotFound, NotACore.
    """
    began = time.monotonic()
    descriptor = _open(path) if descriptor is None else descriptor
    with Shelves(below(how.sysroot), owner=_owner(descriptor) if owner is None else owner) as shelves:
        files = shelves.of({})
        core = open_to_read(path, files, descriptor=descriptor)
        yield _evidence(core, files, how, tool_version, began)


def _evidence(
    core: ElfCore, files: Files, how: How, tool_version: str, began: float
) -> Tuple[Evidence, ProcessContext]:
    pid = core.pid or (core.threads[0].tid if core.threads else 0)
    opened = with_program(core, pid, _estimated(how), files, how)._replace(crashed=True)
    begun = begin(opened, how, start_gdb([opened], how) if how.gdb_s else None)
    process, gaps, trace = finish(begun, how)
    from ...redaction.evidence import discreet  # noqa: PLC0415 - as in begin
    from ..cross_process.forks import with_kinship  # noqa: PLC0415
    from ..sourcecode.sources import read_sources  # noqa: PLC0415

    process = with_kinship([process], {process.pid: trace}, lambda _pid: open_core(Path(core.path), files))[0]
    sources = read_sources([process], lambda _pid: files)
    ended = process.fatal_signal
    found = Evidence(
        trigger=Trigger("core", None, signal.Signals(ended).name if ended is not None else None),
        processes=(process,),
        gaps=(*gaps, *sources.gaps),
        sources=sources.lines,
        loops=sources.loops,
        branches=sources.branches,
        timings=Timings(extract_s=round(time.monotonic() - began, 3)),
        tool_version=tool_version,
    )
    return discreet(found), begun.reading.context


def _estimated(how: How) -> Optional[Raw]:
    """Return the clocks of a lone core as its only raw facts; None if they are unknown."""
    if how.dumped_at is None:
        return None
    from ..recorded.clocks import Clocks  # noqa: PLC0415 - as in begin
    from ..recorded.raw import NO_RAW  # noqa: PLC0415

    return NO_RAW._replace(clocks=Clocks(*how.dumped_at, digits=0))


def open_core(path: Path, files: Files, *, descriptor: Optional[int] = None) -> ElfCore:
    """Open a core.

    - ``files``: locate what it maps
    - ``descriptor``: of the core, taken over; ``path`` is then only a name

    Raises TargetNotFound, NotACore.
    """
    located = Located(files)
    try:
        core = ElfCore(str(path), located, descriptor=_open(path) if descriptor is None else descriptor)
    except OSError as exc:
        raise unusable(path, exc) from None
    except OtherWidth as exc:
        if exc.kind != ET_CORE:
            raise NotACore(f"{{path}} is not a core file: {exc}", "name a core file or a bundle", path) from None
        raise _of_another_machine(path, exc.machine, "gdb-multiarch") from None
    except (NotElf, ValueError) as exc:
        raise NotACore(f"{{path}} is not a core file: {exc}", "name a core file or a bundle", path) from None
    located.core = core
    return core


def _open(path: Path) -> int:
    """Open a regular file. Raises TargetNotFound, NotACore."""
    try:
        return open_regular(str(path))
    except OSError as exc:
        raise unusable(path, exc) from None


def _owner(descriptor: int) -> Optional[int]:
    """Return the user of a core; if root owns it, as in the system's stores, the user of its process."""
    owner = os.fstat(descriptor).st_uid
    if owner or os.geteuid():
        return owner
    try:
        core = ElfCore("", lambda _name: None, descriptor=os.dup(descriptor))
    except (OSError, NotElf, ValueError):
        return owner
    uid = core.uid
    core.close()
    return uid


def unusable(path: Path, exc: OSError) -> PostmortemError:
    """Return the error for a core that cannot be opened."""
    if isinstance(exc, FileNotFoundError):
        return TargetNotFound("there is no file {path}", "check the path, or name a bundle directory", path)
    if isinstance(exc, IsADirectoryError):
        return NotACore("{path} is a directory without a manifest.json", "name a core file or a bundle", path)
    if isinstance(exc, Unfit):
        return NotACore(f"{{path}} is not a core file: it {exc.strerror}", "name a core file or a bundle", path)
    return NotACore(f"{{path}} cannot be read: {exc.strerror}", "check its permissions", path)


def open_to_read(path: Path, files: Files, *, descriptor: Optional[int] = None) -> ElfCore:
    """Open a core as ``open_core`` does. Raises NotACore for machines that only gdb can read."""
    core = open_core(path, files, descriptor=descriptor)
    if core.machine_name in READ:
        return core
    core.close()
    raise _of_another_machine(path, core.machine_name, "`postmortem debug` with gdb-multiarch")


def _of_another_machine(path: Path, machine: str, how: str) -> NotACore:
    return NotACore(
        f"{{path}} is a core of {machine}: only {' and '.join(READ)} can be read",
        f"{how} shows its native stacks",
        path,
    )


class Opened(NamedTuple):
    """A core with its program and the files of its process.

    ``program``: None if unknown.
    """

    core: ElfCore
    pid: int
    raw: Optional[Raw]
    files: Files
    program: Optional[Path]
    gaps: List[Gap]
    crashed: bool = False  # a single core, which no capture asked for: its fatal signal is a crash

    @property
    def path(self) -> Path:
        """Return the path of the core."""
        return Path(self.core.path)

    @property
    def file(self) -> CoreFile:
        """Return the open core; its path may refer to another file by now."""
        return CoreFile(self.path, self.core.descriptor)


class Begun(NamedTuple):
    """A process whose Python side has been read, while gdb may still unwind its native stacks."""

    opened: Opened
    unwinding: Optional[Unwinding]
    reading: Reading
    directory: Optional[str]


class Finished(NamedTuple):
    """A process, its gaps, and the ``trace`` that completes the evidence of other processes."""

    process: Process
    gaps: List[Gap]
    trace: Trace


def with_program(core: ElfCore, pid: int, raw: Optional[Raw], files: Files, how: How) -> Opened:
    """Return a core with its program, and gaps for what is missing."""
    gaps: List[Gap] = []
    if core.truncated:
        gaps.append(Gap("core", core.path, code="core-cut-short"))
    if how.exe is not None:
        take_executable(core, how.exe)
    return Opened(core, pid, raw, files, how.exe or _executable(core, gaps, how.sysroot), gaps)


def start_gdb(several: Sequence[Opened], how: How) -> Optional[Unwinding]:
    """Start one gdb for several cores; None if that fails.

    More than one core must be of one program (native.may_share).
    """
    first, others = several[0], several[1:]
    ended = fatal_signal(first.core) is not None if first.crashed else False
    crashed = first.core.threads[0].tid if ended and first.core.threads else None
    how.progress(f"native stacks of {sum(len(o.core.threads) for o in several)} threads with gdb")
    try:
        if how.sysroot is not None:
            _refuse_endless(first, how.sysroot)
        return start(
            first.file,
            first.program,
            deadline_s=how.gdb_s,
            sysroot=how.sysroot,
            others=[o.file for o in others],
            crashed=crashed,
            machine=first.core.machine_name,
        )
    except (ToolMissing, ToolFailed) as exc:
        for opened in several:
            opened.gaps.append(_no_native_stacks(exc))
        return None


def _no_native_stacks(exc: PostmortemError) -> Gap:
    return of_error("gdb", "native stacks", "no-native-stacks", exc)


def of_error(source: str, subject: str, code: GapCode, exc: PostmortemError) -> Gap:
    """Return a gap that results from an error; the file that the error is about is a slot of its text."""
    slots: Dict[str, Value] = {"path": exc.path} if exc.path is not None else {}
    return Gap(source, subject, exc.message, exc.next or None, code, slots)


def _refuse_endless(opened: Opened, sysroot: Path) -> None:
    """Raise ToolFailed for a sysroot with files that would block gdb until its deadline."""
    from ...native.debuglinks import endless  # noqa: PLC0415 - few analyses have a sysroot

    found = endless(opened.core, opened.program, sysroot)
    if found is not None:
        raise ToolFailed(
            "{path}, named as debug information, is not a regular file: gdb would wait for it", "remove it", found
        )


def begin(opened: Opened, how: How, unwinding: Optional[Unwinding]) -> Begun:
    """Read the Python side of a process."""
    from ..process import reading, summary  # noqa: PLC0415, F401 - gdb works while the reader is imported: 40 ms

    read, directory = reading.read(opened.core, opened.pid, opened.raw, opened.files, opened.gaps, how.with_locals)
    return Begun(opened, unwinding, read, directory)


def finish(begun: Begun, how: How) -> Finished:
    """Wait for gdb and combine both sides.

    A core that gdb missed is given to another gdb alone, for ``how.gdb_s`` seconds.
    """
    how.meanwhile()
    core, gaps = begun.opened.core, begun.opened.gaps
    native = _collect(begun, how)
    from ..process import summary  # noqa: PLC0415 - as in begin

    read, trace = summary.process_of(begun.reading, _named(native, core) if native else {})
    process = changed(read, directory=begun.directory)
    if begun.opened.crashed:
        process = with_crash(process, core, native, gaps)
    if process.exe is None and begun.opened.program is not None:
        process = changed(process, exe=str(begun.opened.program))
    gaps.extend(begun.reading.context.gaps)
    gaps.extend(
        Gap("core", file, why.text, code="file-unusable")
        for file, why in sorted(core.unusable.items())
        if core.is_program(file) and why.is_elf
    )
    gaps.extend(Gap("core", file, code="file-changed") for file in core.altered)
    return Finished(process, gaps, trace)


def _named(native: NativeStacks, core: ElfCore) -> Dict[int, Tuple[NativeFrame, ...]]:
    return without_guesses(named(native.stacks, core), core)


def _executable(core: ElfCore, gaps: List[Gap], sysroot: Optional[Path]) -> Optional[Path]:
    path, gap = find_executable(core, sysroot)
    if gap is not None:
        gaps.append(gap)
    return path


def _collect(begun: Begun, how: How) -> Optional[NativeStacks]:
    opened, unwinding = begun.opened, begun.unwinding
    if unwinding is not None and unwinding.missed(opened.path):
        unwinding = start_gdb([opened], how) if how.gdb_s else None
    if unwinding is None:
        return None
    try:
        native = unwinding.collect(opened.path)
    except (ToolMissing, ToolFailed) as exc:
        opened.gaps.append(_no_native_stacks(exc))
        return None
    opened.gaps.extend(native.gaps)
    return native
