"""The entry point.

``capture`` runs from here, before anything heavy is imported: the command starts as soon as the interpreter is up. All
other commands are in ``cli``.
"""

# pathlib would take half of the time before the command's start:
# ruff: noqa: PTH100, PTH110, PTH112, PTH120

from __future__ import annotations

import sys

if __name__ == "__main__" and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    # `python -m postmortem` puts the working directory first, whose modules are untrusted. The package itself is found
    # by its own path from here on. (A `postmortem` folder there has been imported by now: the command `postmortem` is
    # safe.)
    del sys.path[0]

import errno
import gc
import os

from . import errors

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    from typing import Any, Callable

    from .bundle import Bundle
    from .capture.options import Options
    from .capture.run.command import Command

#: Bytes of a path: the kernel's limit is 4096, and files below the bundle's directory need some.
_LONGEST_PATH = 3800
_SHOWN = 60
#: Commands that read files made by others, and so run in a child.
_READS = ("analyze", "report", "debug")
#: Seconds before the detection of stalls is imported: shorter commands do without.
_FIRST_LOOK_S = 0.25


def main(argv: list[str] | None = None) -> int:
    """Run one command; return the exit status."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["capture"]:
        return capture(words[1:])
    # a run is short and most of what it reads lives to its end: a garbage collection every 700 objects would take a
    # tenth of its time
    gc.set_threshold(200_000, 20, 20)
    if words[:1] and words[0] in _READS:
        from .supervision import supervise  # noqa: PLC0415

        return supervise(lambda: _commands(words), interactive=words[0] == "debug")
    return _commands(words)


def _commands(words: list[str]) -> int:
    from .cli.commands import main as cli_main  # noqa: PLC0415 - click takes longer than all of the fast path

    return cli_main(words, capture)


def capture(words: list[str], diagnose: Callable[..., object] | None = None) -> int:
    """Run ``postmortem capture`` with the words after it; return the exit status.

    ``diagnose`` replaces the pipeline's diagnose_captured.
    """
    from .capture import options as line  # noqa: PLC0415

    try:
        options = line.parse(words)
        if options.help:
            return _print(line.help_text())
        return _run(options, diagnose)
    except errors.UsageError as exc:
        _say(exc.sentence())
        return errors.CaptureFailed.status  # as timeout(1)
    except errors.PostmortemError as exc:
        _say(exc.sentence())
        return exc.status


def _run(options: Options, diagnose: Callable[..., object] | None) -> int:
    from .capture.options import formats_known  # noqa: PLC0415
    from .capture.run import command as run  # noqa: PLC0415

    if options.output is not None:
        _refuse_early(options.output)
    if not formats_known(options):
        from .publish import plan  # noqa: PLC0415 - a wrong format must be reported before the deadline

        plan(options.format or "text", options.report)
    command: Command
    reason: dict[str, Any] | None = None
    if options.pid is not None:
        from .capture.run import running  # noqa: PLC0415 - a command needs none of it

        running.check(options.pid)
        command, reason = run.Watch(options.pid), {"kind": "pid", "seconds": None, "signal": None}
    else:
        command = run.start(options.command, foreground=options.foreground, demand=options.on_signal)
        command.captures_first = options.on_cancel == "capture"
        _adopt_orphans()
        status = command.wait(_quiet_s(options))
        if status is not None:
            command.end_alike()
            return status
        if options.stall is None and not command.demanded and command.cancelled is None:
            reason = {"kind": "timeout", "seconds": options.timeout, "signal": None}
    from .capture.run.lifecycle import Course  # noqa: PLC0415 - a command that ends in time needs none of it
    from .narration import Narration  # noqa: PLC0415

    return Course(command, options, Narration(sys.stderr), diagnose or _diagnose, reader).run(reason)


def _quiet_s(options: Options) -> float | None:
    """Return the seconds for which nothing but a signal needs further imports; None: to the command's end."""
    first_look = options.stall and min(options.stall / 10, _FIRST_LOOK_S)
    waits = [seconds for seconds in (options.timeout, first_look) if seconds]
    return min(waits) if waits else None


def _diagnose(bundle: Bundle, **asked: Any) -> object:
    from .pipeline import diagnose_captured  # noqa: PLC0415 - the capture itself needs none of it

    return diagnose_captured(bundle, **asked)


def reader() -> Any:
    """Return the reader, see capture.readers."""
    from .extract.assemble.rehearsed import read  # noqa: PLC0415 - as in _diagnose

    return read


def _adopt_orphans() -> None:
    from .capture.run.subreaper import become_subreaper  # noqa: PLC0415 - takes a moment: after the spawn

    become_subreaper()


def _refuse_early(path: str) -> None:
    """Raise CaptureFailed for an output that is certain to fail, before the command runs in vain."""
    if os.path.lexists(path):
        from pathlib import Path  # noqa: PLC0415 - seldom needed

        from .bundle import refuse_if_taken  # noqa: PLC0415

        refuse_if_taken(Path(path))
    parent = os.path.abspath(path)
    if len(os.fsencode(parent)) > _LONGEST_PATH or any(len(os.fsencode(part)) > 255 for part in parent.split("/")):
        raise errors.CaptureFailed(
            f"{path[:_SHOWN]}… cannot be written: File name too long", "choose a shorter name with -o DIR"
        )
    while not os.path.exists(parent):
        parent = os.path.dirname(parent)
    if not os.path.isdir(parent) or not os.access(parent, os.W_OK | os.X_OK):
        raise errors.CaptureFailed(f"nothing can be written to {parent}", "choose another place with -o DIR")


def _print(text: str) -> int:
    """Print to stdout; return the exit status. A closed pipe is ignored, any other error is reported."""
    try:
        if sys.stdout is None:  # closed by the parent
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        pass
    except OSError as exc:
        _say(f"stdout cannot be written: {exc.strerror}")
    else:
        return 0
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - else the interpreter flushes it again at its end
    return errors.CaptureFailed.status


def _say(sentence: str) -> None:
    if sys.stderr is None:  # closed by the parent
        return
    try:
        from .narration import escaped  # noqa: PLC0415 - there is seldom anything to say

        sys.stderr.write(f"postmortem: {escaped(sentence)}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # stderr was closed; the bundle has the same facts


if __name__ == "__main__":
    sys.exit(main())
