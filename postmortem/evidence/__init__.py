"""Evidence, the facts known about the processes: the only input of classification and reports.

Every value is immutable and is read and written as JSON (``encode`` / ``decode``). ``None`` always means
*unknown*, never *no*; what could not be read is listed in ``Evidence.gaps`` with the reason and a remedy.

Units: seconds are floats, addresses are ints, ``tid``/``pid`` are the kernel's ids in the target's own pid
namespace. Lists of frames run from the most recent call to the oldest.

msgspec checks the types when evidence from another machine is read; on Python 3.8 it needs ``typing``'s
spelling of optional and tuple types.
"""

from __future__ import annotations

from .crashes import Abort, Crash
from .document import SCHEMA, Evidence, Gap, Timings, Trigger
from .encoding import decode, encode, json_bytes
from .facts import Because, Fact, fact
from .heap import Backlog, KeptException
from .interpreters import Collections, Gil, Interpreter, PythonInfo, StopTheWorld
from .loops import Cancellation, Loop, Pool, Task, TaskWait
from .machine import ControlGroup, Machine
from .origin import Origin
from .processes import Ended, LeftBehind, Process, SignalHandler
from .resources import SIGNALLED, End, Resource, Waker
from .stacks import Calling, Frame, LeftOut, Local, NativeFrame, PythonFrame, Recursion, Sample, ThreadException
from .structs import replace
from .threads import Counters, HeldLock, Rounds, Stretch, Thread, Wait
from .usable import MOST_BYTES

__all__ = [
    "MOST_BYTES", "SCHEMA", "SIGNALLED", "Abort", "Backlog", "Because", "Calling", "Cancellation", "Collections", "ControlGroup",
    "Counters", "Crash", "End", "Ended", "Evidence", "Fact", "Frame", "Gap", "Gil", "HeldLock", "Interpreter",
    "KeptException", "LeftBehind", "LeftOut", "Local", "Loop", "Machine", "NativeFrame", "Origin", "Pool", "Process",
    "PythonFrame", "PythonInfo", "Recursion", "Resource", "Rounds", "Sample", "SignalHandler", "StopTheWorld", "Stretch",
    "Task", "TaskWait", "Thread", "ThreadException", "Timings", "Trigger", "Wait", "Waker", "decode", "encode",
    "fact", "json_bytes", "replace",
]  # fmt: skip
