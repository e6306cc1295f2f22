"""The entry point. ``capture`` is served here, before anything heavy is imported: the command starts as soon as the
interpreter is up. Everything else is ``cli``'s.
"""

# Pathlib would be half of the fast path's time:
# ruff: noqa: PTH100, PTH110, PTH112, PTH120, PTH208

from __future__ import annotations

import gc
import os
import sys

from . import errors

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    from typing import Callable, TextIO

    from .capture.command import Command
    from .capture.options import Options

_TIMED_OUT = 124


def main(argv: list[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["capture"]:
        return capture(words[1:])
    # A run is short and most of what it reads lives to its end: looking for garbage after every 700 objects is a tenth
    # of its time.
    gc.set_threshold(200_000, 20, 20)
    from .cli import main as cli_main  # noqa: PLC0415 - click takes longer than all of the fast path

    return cli_main(words)


def capture(words: list[str], diagnose: Callable[..., object] | None = None) -> int:
    """``postmortem capture`` with the words after it; returns the exit status. ``diagnose`` takes the pipeline's place."""
    from .capture import options as line  # noqa: PLC0415

    try:
        if words[:1] in (["--help"], ["-h"]):
            sys.stdout.write(line.help_text() + "\n")
            return 0
        return _run(line.parse(words), diagnose)
    except errors.UsageError as exc:
        _say(exc.sentence())
        return errors.CaptureFailed.status  # as timeout(1)
    except errors.PostmortemError as exc:
        _say(exc.sentence())
        return exc.status


def _run(options: Options, diagnose: Callable[..., object] | None) -> int:
    from .capture import command as run  # noqa: PLC0415

    if options.output is not None:
        _refuse_early(options.output)
    if options.format is not None or options.report:
        from .publish import plan  # noqa: PLC0415 - a wrong format is not to be found out after the deadline

        plan(options.format or "text", options.report)
    if options.pid is not None:
        if not os.path.isdir(f"/proc/{options.pid}"):
            raise errors.CaptureFailed(f"there is no process {options.pid}", "ps -ef lists those that there are")
        return _after(run.Watch(options.pid), options, diagnose, 0)
    command = run.start(options.command, foreground=options.foreground)
    _adopt_orphans()
    status = command.wait(options.timeout or None)
    if status is not None:
        return status
    return _after(command, options, diagnose, _TIMED_OUT)


def _after(command: Command, options: Options, diagnose: Callable[..., object] | None, status: int) -> int:
    """The time is up."""
    from .capture.aftermath import attend_to_signals, capture_and_end  # noqa: PLC0415

    bundle = capture_and_end(command, options, _say)
    later = f"postmortem analyze {bundle}"
    try:
        attend_to_signals(command)
        stream = sys.stderr or _nowhere()
        asked = {"with_locals": True} if options.locals else {}
        (diagnose or _pipeline())(
            bundle, stream=stream, format=options.format or "text", reports=options.report, **asked
        )
    except KeyboardInterrupt:
        _say(f"interrupted; the capture is kept: {later}")
    except errors.PostmortemError as exc:
        _say(f"{exc.sentence()}; the capture is kept: {later}")
    except Exception as exc:  # the capture is worth more than its diagnosis
        _say(f"the diagnosis failed ({type(exc).__name__}: {exc}); the capture is kept: {later}")
    return status


def _pipeline() -> Callable[..., object]:
    from .pipeline import diagnose_captured  # noqa: PLC0415 - the capture itself needs none of it

    return diagnose_captured


def _adopt_orphans() -> None:
    from .capture.subreaper import become_subreaper  # noqa: PLC0415 - imports ctypes: after the spawn

    become_subreaper()


def _refuse_early(path: str) -> None:
    """What is certain to fail after the deadline fails before the command has run for nothing."""
    if os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path)):
        raise errors.CaptureFailed(
            f"{path} is there already and is never overwritten", "choose another name with -o DIR"
        )
    parent = os.path.abspath(path)
    while not os.path.exists(parent):
        parent = os.path.dirname(parent)
    if not os.path.isdir(parent) or not os.access(parent, os.W_OK | os.X_OK):
        raise errors.CaptureFailed(f"nothing can be written to {parent}", "choose another place with -o DIR")


def _nowhere() -> TextIO:
    """Where the report goes when stderr is closed: it stays in the bundle."""
    return open(os.devnull, "w")


def _say(sentence: str) -> None:
    if sys.stderr is None:  # closed by whoever started us
        return
    try:
        sys.stderr.write(f"postmortem: {sentence}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # nobody listens any more; the bundle says it too


if __name__ == "__main__":
    sys.exit(main())
