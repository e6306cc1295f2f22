"""The deadline has passed: a bundle is made and filled, the tree is ended."""

from __future__ import annotations

import contextlib
import re
import signal
import tempfile
import time
from pathlib import Path
from typing import Callable, NoReturn, Optional

from .. import errors
from ..bundle import Bundle, Step
from . import ending, procfs
from .command import ENDING, Command, Watch
from .options import Options
from .session import Session, to_end

Say = Callable[[str], None]


def capture_and_end(command: Command, options: Options, say: Say) -> Path:
    """Returns the bundle's path. Raises CaptureFailed when there can be none; the tree is ended all the same."""
    bundle: Optional[Bundle] = None
    try:
        bundle = _create(command, options)
        watched = isinstance(command, Watch)
        what = f"process {command.pid}" if watched else f"{_program(command, options)} has not ended in time"
        say(f"{what}: capturing into {bundle.path}")
        Session(command, options, bundle).capture()
    except OSError as exc:
        raise errors.CaptureFailed(f"the bundle cannot be written: {exc}", "choose another place with -o DIR") from None
    finally:
        _end(command, options, bundle, say)
    return bundle.path


def _end(command: Command, options: Options, bundle: Optional[Bundle], say: Say) -> None:
    """Ends what the command started, and notes how that went, if there is a place for notes."""
    if isinstance(command, Watch):
        return
    began = time.monotonic()
    left = ending.end_tree(command, lambda: to_end(command), options.signal, options.kill_after)
    if command.terminal is not None:
        command.terminal.take_back()
    step = Step("end", "the tree")
    step.seconds = time.monotonic() - began
    if left:
        step.fail(
            f"these processes did not end: {', '.join(map(str, left))}", f"look at ps -o pid,stat,wchan,cmd {left[0]}"
        )
        say(f"{step.error}; {step.remedy}")
    if bundle is not None:
        with contextlib.suppress(OSError):
            bundle.record(step)


def _create(command: Command, options: Options) -> Bundle:
    if options.output is not None:
        return Bundle.create(Path(options.output))
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    name = f"postmortem-{_program(command, options)}-{now}-{command.pid}"
    try:
        return Bundle.create(Path(name))
    except errors.CaptureFailed:
        # a read-only folder is no reason to lose what took so long to come about
        return Bundle.create(Path(tempfile.gettempdir()) / name)


def _program(command: Command, options: Options) -> str:
    if options.command:
        name = Path(options.command[0]).name
    else:
        try:
            name = procfs.text(procfs.read(f"/proc/{command.pid}/comm")).strip()
        except OSError:
            name = "process"
    return re.sub(r"[^A-Za-z0-9._+-]+", "_", name)[:64].lstrip("-.") or "command"


def attend_to_signals(command: Command) -> None:
    """Gives the signals back to the interpreter: what asks for an end raises KeyboardInterrupt from now on."""
    for number in ENDING:
        signal.signal(number, _interrupt)
    signal.pthread_sigmask(signal.SIG_SETMASK, command.original_mask)


def _interrupt(number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt(number)
