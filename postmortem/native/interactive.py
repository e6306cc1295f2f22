"""An interactive gdb on the terminal, with the pm-* commands loaded."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path
from types import FrameType
from typing import Dict, Iterator, List, NamedTuple, NoReturn, Optional, Sequence

from .. import places, programs
from ..errors import ToolFailed, ToolMissing
from .corefile import CoreFile
from .ending import DIES_S, ended
from .locate import REMEDY, find_gdb, remedy
from .settings import settings


class Opened(NamedTuple):
    """The files that gdb opens.

    ``descriptor``: of the core, used instead of its path.
    """

    core: Path
    exe: Optional[Path]
    sysroot: Optional[Path]
    machine: Optional[str] = None  # as in memory.elf; None: this machine
    descriptor: Optional[int] = None

    @property
    def file(self) -> CoreFile:
        """Return the core's file."""
        return CoreFile(self.core.absolute(), self.descriptor)


def script() -> Path:
    """Return the script that loads the commands with `source` in any gdb."""
    return places.shipped("gdb") / "postmortem.py"


def command(gdb: Path, opened: Opened, more: Sequence[str]) -> List[str]:
    """Return gdb's command line.

    ``more``: the user's arguments; they come last, when the commands are loaded.
    """
    arguments = programs.gdb(gdb)
    for setting in settings(opened.file, opened.sysroot):
        arguments += ["-iex", setting]
    if opened.exe is not None:
        arguments.append(f"--se={opened.exe.absolute()}")
    return [*arguments, f"--core={opened.file.for_gdb}", "-x", str(script()), *more]


def interact(opened: Opened, more: Sequence[str], variables: Dict[str, str]) -> int:
    """Run gdb until it ends; return its exit status, 128+N for signal N.

    ``variables``: added to its environment.

    Raises:

    - ToolMissing: without gdb
    - ToolFailed: gdb cannot be run
    """
    gdb = find_gdb(opened.machine)
    if gdb is None:
        missing = (
            "gdb is not installed" if find_gdb() is None else f"the installed gdb cannot read cores of {opened.machine}"
        )
        raise ToolMissing(f"{missing}, and `postmortem debug` needs it", remedy(opened.machine))
    with _signals():
        try:
            environment = programs.environment("gdb", variables, person=True)
            inherited = [] if opened.descriptor is None else [opened.descriptor]
            # the user's directory: relative names in gdb refer to it
            words = command(gdb, opened, more)
            process = programs.start(
                "gdb", words, folder=None, env=environment, pass_fds=inherited, preexec_fn=programs.ending_with_parent()
            )
        except OSError as exc:
            raise ToolFailed(f"{gdb} cannot be run: {exc.strerror or exc}", REMEDY) from exc
        try:
            status = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                if not ended(process, DIES_S):
                    process.kill()
                    ended(process, DIES_S)
    return status if status >= 0 else 128 - status


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Leave Ctrl-C to gdb, which shares the terminal; end gdb in order on other signals."""
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, _leave_to_gdb),
        signal.SIGTERM: signal.signal(signal.SIGTERM, _end),
        signal.SIGHUP: signal.signal(signal.SIGHUP, _end),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave_to_gdb(number: int, frame: Optional[FrameType]) -> None:
    """Ignore the signal; gdb would inherit SIG_IGN."""


def _end(number: int, frame: Optional[FrameType]) -> NoReturn:
    raise SystemExit(128 + number)
