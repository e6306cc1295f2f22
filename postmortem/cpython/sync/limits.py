"""The time limit that a program gave to a wait, from the frames of the standard library and the arguments of C functions.

What is given to several layers, as ``Queue.get`` hands what is left to its condition, is what the program gave to the
outermost one.

Sources, each with a parameter ``timeout`` in seconds that the outermost function leaves as it was: Lib/threading.py,
queue.py, subprocess.py, concurrent/futures/_base.py, multiprocessing/{connection,popen_fork,process,pool,queues,
synchronize,managers}.py of 3.8-3.15.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Optional, Sequence

from ...memory import Fault
from ..frames.frame import Frame, Frames
from ..frames.nativecalls import native_call
from ..objects.attributes import attribute
from ..objects.builtins import NotThat

_FILES = (
    "/threading.py", "/queue.py", "/subprocess.py", "concurrent/futures/_base.py", "multiprocessing/connection.py",
    "multiprocessing/managers.py", "multiprocessing/pool.py", "multiprocessing/popen_fork.py",
    "multiprocessing/process.py", "multiprocessing/queues.py", "multiprocessing/synchronize.py",
)  # fmt: skip
_SELECTORS = "/selectors.py"
_SUBPROCESS = "/subprocess.py"
#: Most layers of the standard library above a wait.
_MOST_LAYERS = 12
_IN_MILLISECONDS = "select.poll.poll"


def given(frames: Frames, stack: Sequence[Frame], least: Optional[float]) -> Optional[float]:
    """Return the limit in seconds that the program gave to a timed wait; None if unknown.

    - ``stack``: most recent call first
    - ``least``: what remains of it, if known: no smaller number is meant
    """
    found: Optional[float] = None
    layered = False
    for frame in stack[:_MOST_LAYERS]:
        file = frame.code.filename
        if not file.endswith(_FILES) and not file.endswith(_SELECTORS):
            break
        layered = True
        if file.endswith(_SELECTORS):
            continue  # rounds its timeout to the unit of the call
        limit = _number(frames, frames.local(frame, "timeout"), least)
        found = found if limit is None else limit
    return _argument(frames, stack[0], least) if stack and not layered else found


def _number(frames: Frames, address: Optional[int], least: Optional[float]) -> Optional[float]:
    """Return a number that is no less than what remains; None for any other object."""
    try:
        if not address or frames.objects.type_name(address) not in ("float", "int"):
            return None
        value = float(frames.objects.number(address))
    except (Fault, NotThat, OverflowError):
        return None
    return value if math.isfinite(value) and value >= max(least or 0.0, 0.0) else None


def _argument(frames: Frames, frame: Frame, least: Optional[float]) -> Optional[float]:
    """Return the only such number among the arguments of a frame's C call.

    Slots behind the arguments may be stale: without ``least`` there is no telling them apart.
    """
    call = native_call(frames, frame) if least is not None else None
    if call is None or least is None:
        return None
    unit = 1e3 if call.function == _IN_MILLISECONDS else 1.0
    found = [_number(frames, address, unit * least) for address in call.arguments]
    numbers = {number / unit for number in found if number is not None}
    return numbers.pop() if len(numbers) == 1 else None


class ChildPoll(NamedTuple):
    """A ``Popen.wait`` with a limit, which looks for the end of its child again and again.

    Fields:
    - ``pid``: of the child; None if unknown
    - ``given``: its limit in seconds
    - ``until``: when it gives up, in seconds of time.monotonic(); None if unknown
    """

    pid: Optional[int]
    given: Optional[float]
    until: Optional[float]


def child_poll(frames: Frames, stack: Sequence[Frame]) -> Optional[ChildPoll]:
    """Return the limited wait for a child in whose pause a thread sleeps; None for other sleeps.

    Source: Lib/subprocess.py, Popen._wait of POSIX: 3.8-3.14.
    """
    if not stack or not stack[0].is_in("_wait", _SUBPROCESS):
        return None
    frame = stack[0]
    popen, limit = frames.local(frame, "self"), _number(frames, frames.local(frame, "timeout"), None)
    if popen is None or limit is None:
        return None
    pid = frames.objects.integer_or_none(attribute(frames.objects, popen, "pid"))
    return ChildPoll(pid, limit, _number(frames, frames.local(frame, "endtime"), None))
