"""The deadline has passed: a bundle is made and filled, the tree is ended, the diagnosis follows."""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, NoReturn, Optional

from .. import errors
from ..bundle import Bundle
from . import procfs
from .command import ENDING, Command, Watch
from .options import Options
from .session import Session

Say = Callable[[str], None]


def capture_and_diagnose(command: Command, options: Options, say: Say, diagnose: Optional[Callable[..., Any]]) -> Path:
    """Returns the bundle's path. Raises CaptureFailed when there can be none; the tree is ended all the same."""
    watched = isinstance(command, Watch)
    bundle: Optional[Bundle] = None
    session: Optional[Session] = None
    try:
        bundle = _create(command, options)
        what = f"process {command.pid}" if watched else f"{_program(command, options)} has not ended in time"
        say(f"{what}: capturing into {bundle.path}")
        session = Session(command, options, bundle)
        session.capture()
    finally:
        if not watched:
            (session or Session(command, options, Bundle(Path(os.devnull)))).end()
    _diagnose(bundle, command, options, say, diagnose)
    return bundle.path


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


def _diagnose(
    bundle: Bundle, command: Command, options: Options, say: Say, diagnose: Optional[Callable[..., Any]]
) -> None:
    """The bundle is complete: whatever happens from here on, it stays and is named."""
    command.interrupted = None
    for number in ENDING:
        signal.signal(number, _interrupt)
    signal.pthread_sigmask(signal.SIG_SETMASK, command.original_mask)
    wishes: dict[str, Any] = {}
    if options.format is not None:
        wishes["format"] = options.format
    if options.report:
        wishes["reports"] = list(options.report)
    try:
        (diagnose or _pipeline())(bundle.path, stream=sys.stderr, **wishes)
    except KeyboardInterrupt:
        say(f"interrupted; postmortem analyze {bundle.path} diagnoses it later")
    except errors.PostmortemError as exc:
        say(f"{exc.sentence()}; the capture is kept: postmortem analyze {bundle.path}")
    except Exception as exc:  # the capture is worth more than its diagnosis
        say(f"the diagnosis failed ({type(exc).__name__}: {exc}); postmortem analyze {bundle.path} tries again")


def _pipeline() -> Callable[..., Any]:
    from ..pipeline import diagnose_captured  # noqa: PLC0415 - the capture itself needs none of it

    return diagnose_captured


def _interrupt(number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt(number)
