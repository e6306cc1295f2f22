"""The process in gdb, extracted once: from a core as by `postmortem analyze`, a bundle's evidence, or live."""

from __future__ import annotations

import contextlib
import os
import re
import time
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, NoReturn, Optional, Tuple

from .. import __version__
from ..cores.executable import take_executable
from ..cores.located import Located
from ..cpython.state.interpreter import Python, ThreadState
from ..errors import NotACore
from ..evidence import Evidence, Gap, Process, Thread, Timings, Trigger, replace
from ..extract.assemble.cores import extracted
from ..extract.assemble.how import How
from ..extract.assemble.origins import errors_named, gaps_named, name_of
from ..extract.process import reading
from ..extract.process.context import ProcessContext
from ..extract.process.summary import process_of
from ..extract.sourcecode.sources import read_sources
from ..findings import Diagnosis
from ..foreign.processfiles import Place, Shelves, below
from ..foreign.root import Root
from ..memory import NotElf
from ..native.evalloop import named
from ..native.nearest import without_guesses
from ..pipeline import classified, load_bundle
from ..redaction.evidence import discreet
from .inferior import Inferior, native_stacks
from .wire import Link

_DESCRIPTOR = re.compile(r"/proc/self/fd/(\d+)")


class Named(NamedTuple):
    """A core with which `postmortem debug` started gdb.

    - ``core``: gdb's name for it
    - ``path``: its file
    - ``name``: the user's name for it
    - ``bundle``, ``pid``: the bundle that contains it, and its process there
    """

    core: str = ""
    path: str = ""
    name: str = ""
    exe: Optional[str] = None
    sysroot: Optional[str] = None
    owner: Optional[int] = None
    bundle: Optional[str] = None
    pid: int = 0


class NotPython(Exception):
    """Missing or unreadable interpreter; the message gives the reason."""


class Subject:
    """The process in gdb.

    ``errors``: reasons why native stacks end early, by tid.
    """

    def __init__(self, found: Evidence, context: ProcessContext, of: Named, errors: Dict[int, str]) -> None:
        self.context, self.named, self.errors = context, of, errors
        self._alone = found

    @cached_property
    def _diagnosed(self) -> Tuple[Evidence, Diagnosis]:
        return load_bundle(Path(self.named.bundle)) if self.named.bundle else classified(self._alone)

    @property
    def evidence(self) -> Evidence:
        """Return the evidence of the report."""
        return self._diagnosed[0]

    @property
    def diagnosis(self) -> Diagnosis:
        """Return the diagnosis of the report."""
        return self._diagnosed[1]

    @cached_property
    def process(self) -> Process:
        """Return the process as in the report. Raises NotPython."""
        own = self._alone.processes[0]
        if self.python and self.named.bundle is None:
            return own
        tids = {thread.tid for thread in own.threads}
        of_bundle = (p for p in self.evidence.processes if p.pid == self.named.pid)
        return next((p for p in of_bundle if tids & {thread.tid for thread in p.threads}), own)

    @cached_property
    def threads(self) -> Dict[int, Thread]:
        """Return the threads by tid."""
        return {thread.tid: thread for thread in self.process.threads}

    @property
    def states(self) -> Mapping[int, ThreadState]:
        """Return the interpreter's thread states by tid."""
        return self.context.threads.states

    @property
    def python(self) -> Python:
        """Return the interpreter. Raises NotPython."""
        if self.context.python is None:
            why = next((gap.reason for gap in self._alone.gaps if gap.code == "no-interpreter"), "none is there")
            raise NotPython(f"no Python interpreter can be read here: {why}")
        return self.context.python


@contextlib.contextmanager
def opened(link: Link, told: Dict[str, Any], known: Named) -> Iterator[Subject]:
    """Extract the process in gdb.

    - ``told``: gdb's first frame
    - ``known``: the core of `postmortem debug`

    Raises PostmortemError.
    """
    if told.get("core") is None:
        with _live(link, told) as subject:
            yield subject
        return
    core = str(told["core"])
    if core != known.core:  # another core than gdb was started with, or a gdb started by hand
        known = Named(core, core, core, told.get("exe"), told.get("sysroot"))
    how = How(_path(known.exe), _path(known.sysroot))
    if known.bundle is not None:
        how = how._replace(gdb_s=0)  # its report has the native stacks
    number = _DESCRIPTOR.fullmatch(core)
    descriptor = os.dup(int(number[1])) if number is not None else None
    path, owner = Path(known.path), known.owner
    with contextlib.ExitStack() as held:
        renamed = name_of(path, known.name)
        with errors_named(renamed):
            reading = extracted(path, how, owner=owner, tool_version=__version__, descriptor=descriptor)
            found, context = held.enter_context(reading)
        yield Subject(gaps_named(found, renamed), context, known, {})


def _path(name: Optional[str]) -> Optional[Path]:
    return Path(name) if name else None


@contextlib.contextmanager
def _live(link: Link, told: Dict[str, Any]) -> Iterator[Subject]:
    began = time.monotonic()
    pid, exe = int(told["pid"]), _path(told.get("exe"))
    gaps: List[Gap] = []
    owner = _owner(told)
    with Shelves(_place(told), owner=owner) as shelves:
        files = shelves.of({} if owner is not None else {"rights": None})
        located = Located(files)
        try:
            core = Inferior(link, told, located)
        except (OSError, NotElf, ValueError, KeyError, TypeError) as exc:
            _refuse(exc)
        located.core = core
        with contextlib.closing(core):
            if exe is not None and not told.get("local"):
                take_executable(core, exe)
            read, directory = reading.read(core, pid, None, files, gaps, False)
            stacks, errors = native_stacks(link, [thread.tid for thread in core.threads])
            process = process_of(read, without_guesses(named(stacks, core), core)).process
            process = replace(process, directory=directory, exe=process.exe or (str(exe) if exe else None))
            sources = read_sources([process], lambda _pid: files)
            found = Evidence(
                trigger=Trigger("pid"),
                processes=(process,),
                gaps=(*gaps, *read.context.gaps, *sources.gaps),
                sources=sources.lines,
                loops=sources.loops,
                branches=sources.branches,
                timings=Timings(extract_s=round(time.monotonic() - began, 3)),
                tool_version=__version__,
            )
            yield Subject(discreet(found), read.context, Named(name=f"process {pid}"), errors)


def _place(told: Dict[str, Any]) -> Place:
    """Return where the files of a live process are: below its own root if it is on this machine."""
    sysroot, pid = _path(told.get("sysroot")), int(told["pid"])
    if sysroot is not None or not told.get("local"):
        return below(sysroot)

    def place(_number: int) -> Root:
        with contextlib.suppress(OSError):
            return Root.at(f"/proc/{pid}/root")
        return Root.at("/")

    return place


def _owner(told: Dict[str, Any]) -> Optional[int]:
    """Return the user of the process, whose rights apply to its sources; None for several or unknown."""
    uids = {int(uid) for uid in told.get("uids") or ()}
    return uids.pop() if len(uids) == 1 else None


def _refuse(exc: Exception) -> NoReturn:
    why = f"gdb's answer about the process makes no sense ({type(exc).__name__}: {exc})"
    raise NotACore(why, "`postmortem capture --pid` reads it without gdb") from None
