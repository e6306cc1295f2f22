"""A gdb for a person: on our terminal, with the pm-* commands loaded."""

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
    """What gdb opens. ``descriptor``: of the core, which is then not looked up by its path."""

    core: Path
    exe: Optional[Path]
    sysroot: Optional[Path]
    machine: Optional[str] = None  # as memory.elf calls it; None: this one
    descriptor: Optional[int] = None

    @property
    def file(self) -> CoreFile:
        return CoreFile(self.core.absolute(), self.descriptor)


def script() -> Path:
    """What `source` in any gdb loads the commands from."""
    return places.shipped("gdb") / "postmortem.py"


def command(gdb: Path, opened: Opened, more: Sequence[str]) -> List[str]:
    """gdb's argument list; ``more`` are the user's own arguments, which come last and so find the commands loaded."""
    arguments = programs.gdb(gdb)
    for setting in settings(opened.file, opened.sysroot):
        arguments += ["-iex", setting]
    if opened.exe is not None:
        arguments.append(f"--se={opened.exe.absolute()}")
    return [*arguments, f"--core={opened.file.for_gdb}", "-x", str(script()), *more]


def interact(opened: Opened, more: Sequence[str], variables: Dict[str, str]) -> int:
    """Runs gdb until it ends; its exit status, 128+N for signal N.

    variables: for its environment. Raises ToolMissing without gdb, ToolFailed when it cannot be run.
    """
    gdb = find_gdb(opened.machine)
    if gdb is None:
        missing = (
            "gdb is not there" if find_gdb() is None else f"the gdb that is there reads no cores of {opened.machine}"
        )
        raise ToolMissing(f"{missing}, and `postmortem debug` is nothing without it", remedy(opened.machine))
    with _signals():
        try:
            environment = programs.environment("gdb", variables, person=True)
            inherited = [] if opened.descriptor is None else [opened.descriptor]
            # where the person is: what they name in gdb is named from there
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
    """Ctrl-C is meant for gdb, which shares our terminal; being ended ends gdb too, and in order."""
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
    """Not SIG_IGN, which gdb would inherit."""


def _end(number: int, frame: Optional[FrameType]) -> NoReturn:
    raise SystemExit(128 + number)
