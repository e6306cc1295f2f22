"""A run of gdb over one core, or over several of one program.

gdb is started, runs while Python stacks are read, and is then collected.

Core and executable are untrusted, and so is every file named by the core: gdb runs without its start-up files,
auto-loaded scripts, debuginfod and terminal, in a session of its own, and is killed at the deadline. It runs none of
the target's code. The stacks unwound by then are kept.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import tempfile
import threading
import time
import weakref
from pathlib import Path
from types import TracebackType
from typing import IO, Dict, List, Optional, Sequence, Type, cast

from .. import places, programs, quiet
from ..errors import ToolFailed, ToolMissing
from .assess import Ending, assess
from .corefile import AnyCore, CoreFile, absolute
from .ending import Child
from .locate import REMEDY, find_gdb, remedy
from .mapped import plain, unlisted
from .settings import NO_THREAD_DB, settings
from .stacks import NativeStacks, Transcript, read_transcript

#: Bytes kept of gdb's stderr; the rest is read and dropped, so that gdb does not block.
_KEPT_STDERR = 16 << 10
#: Share of the time after which gdb is asked to stop by itself, so that it ends in order and writes its cache.
_OWN_SHARE = 0.9
#: Faster settings, suited only to a run without a user.
_QUICKER = ("set confirm off", "set print frame-arguments none", "set auto-solib-add off", NO_THREAD_DB)


def unwind(core: AnyCore, exe: Optional[Path], *, deadline_s: float, sysroot: Optional[Path] = None) -> NativeStacks:
    """Return the native stacks of a core.

    - ``exe``: the main program on this machine; without it gdb finds few frames
    - ``deadline_s``: seconds for the whole call
    - ``sysroot``: folder with the libraries under the paths named by the core

    Raises ToolMissing without gdb, ToolFailed without a single thread; fewer than all threads are a gap.
    """
    with start(core, exe, deadline_s=deadline_s, sysroot=sysroot) as running:
        return running.collect()


def start(
    core: AnyCore,
    exe: Optional[Path],
    *,
    deadline_s: float,
    sysroot: Optional[Path] = None,
    others: Sequence[AnyCore] = (),
    crashed: Optional[int] = None,
    machine: Optional[str] = None,
) -> Unwinding:
    """Start gdb and return at once; the result is a context manager that ends gdb.

    - ``core``: its path, or a CoreFile, whose descriptor the caller may close after this call
    - ``others``: further cores of the same program, read after the first, much faster than alone; see ``may_share``
    - ``crashed``: tid hit by a fatal signal, in a lone core: gdb/crash.py examines it
    - ``machine``: of the core, by memory.elf's name; None: this one
    """
    gdb = find_gdb(machine)
    if gdb is None:
        missing = "gdb is not installed" if find_gdb() is None else f"the installed gdb cannot read cores of {machine}"
        raise ToolMissing(f"{missing}, so there are no native stacks", remedy(machine))
    return Unwinding(gdb, [core, *others], exe, deadline_s, sysroot, crashed)


def may_share(core: AnyCore, exe: Optional[Path], sysroot: Optional[Path]) -> bool:
    """Return whether gdb can open this core in one run with others of the same program; not with a sysroot."""
    return exe is not None and sysroot is None and plain(Path(absolute(core).for_gdb)) and plain(exe.absolute())


class Unwinding:
    """A running gdb.

    ``collect`` waits for it and cleans up; ``close`` (or leaving the ``with``) ends it and drops its output, and so
    does the end of this process.
    """

    def __init__(
        self,
        gdb: Path,
        cores: Sequence[AnyCore],
        exe: Optional[Path],
        deadline_s: float,
        sysroot: Optional[Path],
        crashed: Optional[int] = None,
    ) -> None:
        self._cores = [_held(absolute(core)) for core in cores]
        inherited = [core.descriptor for core in self._cores if core.descriptor is not None]
        self._let_go = weakref.finalize(self, _close_all, inherited)
        self._exe = exe.absolute() if exe else None
        self._sysroot = sysroot.absolute() if sysroot else None
        self._crashed = crashed
        self._began = time.monotonic()
        self._until = self._began + deadline_s
        self._ending: Optional[Ending] = None
        self._found: Dict[Path, Transcript] = {}
        arguments = command(gdb, self._cores[0], self._exe, self._sysroot)
        if crashed is not None:
            arguments += ["-x", str(places.shipped("gdb") / "crash.py")]
        # unnamed: nothing remains, however this process ends
        files = [tempfile.TemporaryFile(prefix="postmortem-stacks-", buffering=0) for _core in self._cores]  # noqa: SIM115
        self._outputs = {core: Path(f"/proc/self/fd/{file.fileno()}") for core, file in zip(self._cores, files)}
        try:
            self._process = programs.start(
                "gdb",
                arguments,
                env=self._environment(self._began + deadline_s * _OWN_SHARE),
                pass_fds=[*inherited, *(file.fileno() for file in files)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as exc:
            _close(files)
            raise ToolFailed(f"{gdb} cannot be run: {exc.strerror or exc}", REMEDY) from exc
        self._child = Child(self._process)
        self._end = weakref.finalize(self, _end, self._child, files)
        quiet.pass_on(self._process.pid)
        # a hostile core can crash gdb, which needs no core of its own
        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(self._process.pid, resource.RLIMIT_CORE, (0, 0))
        self._stderr = bytearray()
        stream = cast(IO[bytes], self._process.stderr)
        self._reader = threading.Thread(target=_drain, args=(stream, self._stderr), daemon=True)
        self._reader.start()

    def _environment(self, until: float) -> Dict[str, str]:
        (_first, output), *others = self._outputs.items()
        own = {
            "POSTMORTEM_STACKS": str(output),
            "POSTMORTEM_STACKS_UNTIL": repr(until),
            "POSTMORTEM_STACKS_FILES": json.dumps(unlisted(self._cores[0], self._sysroot)),
        }
        if self._crashed is not None:
            own["POSTMORTEM_CRASHED"] = str(self._crashed)
        if others:
            further = [[core.for_gdb, str(path), unlisted(core, self._sysroot)] for core, path in others]
            own["POSTMORTEM_STACKS_NEXT"] = json.dumps([str(self._exe), further])
        return programs.environment("gdb", {**own, "TERM": "dumb", "LC_ALL": "C.UTF-8"})

    def collect(self, core: Optional[Path] = None) -> NativeStacks:
        """Wait until gdb has ended or its time is over; return the stacks of one core, by default the first.

        Call it once for each core. Raises as ``unwind``.
        """
        ending = self._wait()
        wanted = self._cores[0] if core is None else self._named(core)
        return assess(self._found[wanted.path], wanted, self._exe, self._sysroot, ending)

    def missed(self, core: Path) -> bool:
        """Wait as ``collect`` does; return whether gdb ended early without output about this core. False for the first.

        It can then be read alone: an older gdb reads one core only, or another core has crashed it.
        """
        return self._unheard(core) and self._named(core) != self._cores[0] and not self._out_of_time()

    def too_late_for(self, core: Path) -> bool:
        """Wait as ``collect`` does; return whether the time was over before gdb read this core."""
        return self._unheard(core) and self._out_of_time()

    def _unheard(self, core: Path) -> bool:
        self._wait()
        return not self._found[core.absolute()].announced

    def _named(self, core: Path) -> CoreFile:
        return next(each for each in self._cores if each.path == core.absolute())

    def _out_of_time(self) -> bool:
        """Return whether gdb was killed at the deadline, or stopped by itself a little before."""
        return self._wait().seconds >= (self._until - self._began) * _OWN_SHARE

    def _wait(self) -> Ending:
        if self._ending is not None:
            return self._ending
        late = False
        # Popen.wait(timeout) polls every 50 ms; the end of gdb's stderr is seen at once
        self._reader.join(max(0.0, self._until - time.monotonic()))
        try:
            self._process.wait(max(0.0, self._until - time.monotonic()))
        except subprocess.TimeoutExpired:
            late = True
            self._child.end()
        seconds = time.monotonic() - self._began
        self._reader.join(1.0)
        try:
            self._found = {core.path: read_transcript(path) for core, path in self._outputs.items()}
        finally:
            self._end()
        said = bytes(self._stderr).decode("utf-8", "replace")
        for core in self._cores:
            said = core.renamed(said)
        self._ending = Ending(seconds, late, self._process.returncode, said)
        return self._ending

    def close(self) -> None:
        """End gdb if it still runs; no core can be collected then. Safe to call more than once."""
        self._end()
        self._let_go()
        self._reader.join(1.0)

    def __enter__(self) -> Unwinding:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


def _end(child: Child, files: Sequence[IO[bytes]]) -> None:
    child.end()
    _close(files)


def _close(files: Sequence[IO[bytes]]) -> None:
    for file in files:
        file.close()


def _held(core: CoreFile) -> CoreFile:
    """Return the core with a duplicate of its descriptor, if it has one."""
    return core if core.descriptor is None else core._replace(descriptor=os.dup(core.descriptor))


def _close_all(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def command(gdb: Path, core: CoreFile, exe: Optional[Path], sysroot: Optional[Path]) -> List[str]:
    """Return gdb's argument list."""
    arguments = [*programs.gdb(gdb), "-batch"]
    for setting in (*settings(core, sysroot), *_QUICKER):
        arguments += ["-iex", setting]
    if exe is not None:
        arguments.append(f"--se={exe}")
    return [*arguments, f"--core={core.for_gdb}", "-x", str(places.shipped("gdb") / "stacks.py")]


def _drain(stream: IO[bytes], kept: bytearray) -> None:
    with stream:
        while True:
            piece = os.read(stream.fileno(), 4096)
            if not piece:
                return
            if len(kept) < _KEPT_STDERR:
                kept += piece
