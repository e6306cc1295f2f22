"""Capture and diagnosis of a hung test process, each in a process of its own.

The diagnosis is imported while the other process captures. Unlike ``capture --pid`` this is urgent: the test suite
waits until it is done.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import List

from ..errors import PostmortemError
from ..narration import Narration

_BUDGET_S = 30.0


def main(arguments: List[str]) -> int:
    """Examine a process and return an exit status.

    ``arguments``: PID, an empty directory for the bundle, and the limit in seconds that has passed.
    """
    pid, place, limit = arguments
    until = time.monotonic() + _BUDGET_S
    child = os.fork()
    if not child:
        os._exit(_reported(lambda: capture(int(pid), place, float(limit))))
    from ..bundle import Bundle  # noqa: PLC0415 - not needed in the process that captures
    from ..pipeline import diagnose_captured  # noqa: PLC0415

    os.waitpid(child, 0)
    with open(os.devnull, "w") as nowhere:
        return _reported(lambda: diagnose_captured(Bundle.resume(Path(place)), stream=nowhere, until=until))


def capture(pid: int, place: str, limit: float) -> None:
    """Capture a process into a directory; raise PostmortemError if that fails."""
    from ..__main__ import reader  # noqa: PLC0415 - as in main: each process imports what it needs
    from ..capture.options import Options  # noqa: PLC0415
    from ..capture.run import conclusion, running  # noqa: PLC0415
    from ..capture.run.command import Watch  # noqa: PLC0415

    running.check(pid)
    options = Options()
    options.pid, options.output = pid, place
    command = Watch(pid)
    command.trigger = {"kind": "timeout", "seconds": limit, "signal": None}
    narration = Narration(sys.stderr)
    bundle = conclusion.create(command, options, None, narration.say)
    conclusion.fill(bundle, command, options, reader, lambda sentence: None, lambda step: None)


def _reported(work: object) -> int:
    """Run a function, and report a PostmortemError on stderr; return an exit status."""
    try:
        work()  # type: ignore[operator]
    except PostmortemError as exc:
        Narration(sys.stderr).say(exc.sentence())
        return 1
    return 0
