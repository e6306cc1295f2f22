"""One run of gdb over a core, or several of one program: started, left alone while Python stacks are read, then collected.

Core and executable are untrusted, and so is every file that the core names: gdb runs without its start-up
files, auto-loaded scripts, debuginfod and terminal, in a session of its own, and is killed at the deadline. It
runs none of the target's code. What it had unwound until then is kept.
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

#: Of gdb's stderr; it is read to its end, so that a talkative gdb does not stall.
_KEPT_STDERR = 16 << 10
#: gdb is asked to stop by itself a little before it is killed: then it ends in order and its cache is written.
_OWN_SHARE = 0.9
#: What only a run that nobody watches can do without.
_QUICKER = ("set confirm off", "set print frame-arguments none", "set auto-solib-add off", NO_THREAD_DB)


def unwind(core: AnyCore, exe: Optional[Path], *, deadline_s: float, sysroot: Optional[Path] = None) -> NativeStacks:
    """The native stacks of a core.

    exe: the main program on this machine; without it gdb finds few frames. deadline_s: seconds for all of it.
    sysroot: folder that holds the libraries under the paths that the core names.
    Raises ToolMissing without gdb, ToolFailed when it gave not a single thread; less than all of them is a gap.
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
    """Starts gdb and returns at once. Use the result as a context manager: leaving it ends gdb.

    core: its path, or a CoreFile, the descriptor of which stays the caller's and may be closed as soon as this returns.
    others: further cores of the same program that gdb reads after the first, much faster than alone; see ``may_share``.
    crashed: the thread of a lone core that a fatal signal hit: gdb/crash.py looks at it. machine: what the core is of, by
    the name that memory.elf has for it; None: this one.
    """
    gdb = find_gdb(machine)
    if gdb is None:
        missing = "gdb is not there" if find_gdb() is None else f"the gdb that is there reads no cores of {machine}"
        raise ToolMissing(f"{missing}, so there are no native stacks", remedy(machine))
    return Unwinding(gdb, [core, *others], exe, deadline_s, sysroot, crashed)


def may_share(core: AnyCore, exe: Optional[Path], sysroot: Optional[Path]) -> bool:
    """Can gdb open this core beside others of the same program? Where files come from elsewhere each has its settings."""
    return exe is not None and sysroot is None and plain(Path(absolute(core).for_gdb)) and plain(exe.absolute())


class Unwinding:
    """A running gdb. ``collect`` waits for it and cleans up; ``close`` (or leaving the ``with``) ends it unheard,
    and so does the end of this process.
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
        # without names: nothing stays behind, however we end
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
        # A hostile core can crash gdb; that crash needs no core of its own.
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
        """Waits until gdb has ended or its time is over. Call it once for each core (none named: the first); see
        ``unwind`` for what it raises."""
        ending = self._wait()
        wanted = self._cores[0] if core is None else self._named(core)
        return assess(self._found[wanted.path], wanted, self._exe, self._sysroot, ending)

    def missed(self, core: Path) -> bool:
        """Waits as ``collect`` does: has gdb ended of its own accord without a word of this core, which was not the
        first? Then it is to be had alone: an older gdb takes one at a time, or another core has crashed it."""
        return self._unheard(core) and self._named(core) != self._cores[0] and not self._out_of_time()

    def too_late_for(self, core: Path) -> bool:
        """Waits as ``collect`` does: was the time over before gdb came to this core?"""
        return self._unheard(core) and self._out_of_time()

    def _unheard(self, core: Path) -> bool:
        self._wait()
        return not self._found[core.absolute()].announced

    def _named(self, core: Path) -> CoreFile:
        return next(each for each in self._cores if each.path == core.absolute())

    def _out_of_time(self) -> bool:
        """Killed at the deadline, or ended by itself a little before it."""
        return self._wait().seconds >= (self._until - self._began) * _OWN_SHARE

    def _wait(self) -> Ending:
        if self._ending is not None:
            return self._ending
        late = False
        # Popen.wait(timeout) looks every 50 ms; the end of gdb's stderr tells at once.
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
        """Ends gdb if it still runs, after which no core can be collected any more. May be called again."""
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
    """The core with a descriptor of our own, where it has one."""
    return core if core.descriptor is None else core._replace(descriptor=os.dup(core.descriptor))


def _close_all(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def command(gdb: Path, core: CoreFile, exe: Optional[Path], sysroot: Optional[Path]) -> List[str]:
    """gdb's argument list."""
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
