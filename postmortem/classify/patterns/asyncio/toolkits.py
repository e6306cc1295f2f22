"""Event loops of graphical toolkits, which are native code: a callback that waits for a thread which waits for that loop.

Qt: a signal over a ``BlockingQueuedConnection`` returns only when the receiver's loop has run the slot; ``QThread::wait`` returns
only when the thread has ended (src/corelib/kernel/qobject.cpp and thread/qthread_unix.cpp, Qt 5.15 and 6). Names of functions are
those that the libraries export, so that they are known without debug information.
"""

from __future__ import annotations

import itertools
from typing import Iterator, List, Optional, Sequence

from ....evidence import NativeFrame, Process, PythonFrame, Thread
from ....findings import Template
from ...facts import clauses
from ...facts.knowledge import own_frame
from ...facts.view import View
from ...pattern import Match

_LOOPS = ("QEventLoop::exec(", "QCoreApplication::exec(")
_JOINS, _ENTRY = ("QThread::wait(",), ("QThreadPrivate::start(",)
#: What emits a signal, and what it waits in until a slot of another thread has run.
_EMITS, _UNTIL_RUN = ("void doActivate<", "QMetaObject::activate(", "QMetaMethod::invoke"), ("QSemaphore::acquire(",)

_SUMMARY = Template(
    "{thread} runs an event loop and blocks it{at}: it waits for the end of {other}, which waits until that loop has run a slot"
)
_INSIDE = Template("{thread} is in {function}, called inside a callback of its event loop ({loop})")
_WAITS = Template(
    "{thread} is in {function}, called by {emit}: a signal that returns when its slot has run on another thread"
)
_ONLY = Template(
    "{thread} is the only thread of the process that runs such a loop, {other} the only one that Qt has started"
)
_REMEDY = Template(
    "Do not wait for a thread inside a callback of the loop that it needs: let its `finished` signal do the rest, or connect the "
    "signal with a queued connection, which does not wait."
)


def blocked_toolkits(view: View, process: Process) -> Iterator[Match]:
    """Yield a match for the only Qt loop of a process, if its callback joins the only Qt thread, which waits for a slot."""
    runs = [thread for thread in process.threads if _found(thread.native, _LOOPS) is not None]
    begun = [thread for thread in process.threads if _found(thread.native, _ENTRY) is not None]
    if len(runs) != 1 or len(begun) != 1 or not _is_endless(view, runs[0]):
        return
    thread, who = runs[0], clauses.named(runs[0])
    joins, loop = _found(_above(thread), _JOINS), _found(_outside(thread), _LOOPS)
    other, frame = begun[0], own_frame(thread.python)
    if joins is None or loop is None or not _emits(other) or not _is_endless(view, other):
        return
    until, emit = _found(_above(other), _UNTIL_RUN), _found(_above(other), _EMITS)
    places = ((thread, frame), (other, own_frame(other.python)))
    yield Match(
        confidence="likely",
        summary=_SUMMARY(thread=who, at=clauses.at(frame), other=clauses.named(other)),
        evidence=(
            _INSIDE(thread=who, function=joins, loop=loop),
            _WAITS(thread=clauses.named(other), function=until, emit=emit),
            _ONLY(thread=who, other=clauses.named(other)),
        ),
        culprits=tuple(view.culprit(process, at, one) for one, at in places if at is not None),
        remedy=_REMEDY(),
        pid=process.pid,
    )


def _is_endless(view: View, thread: Thread) -> bool:
    """Return whether a thread waits without a time limit, and did not go on."""
    return thread.wait is not None and thread.wait.endless is True and not view.moves(thread)


def _emits(thread: Thread) -> bool:
    """Return whether a thread is in a signal that waits for its slot."""
    above = _above(thread)
    at = next((i for i, frame in enumerate(above) if (frame.function or "").startswith(_UNTIL_RUN)), None)
    called = above[at + 1 : at + 2] if at is not None else []
    return _found(called, _EMITS) is not None


def _above(thread: Thread) -> List[NativeFrame]:
    """Return the native frames that the innermost Python frame called."""
    return [f for f in itertools.takewhile(_is_native, thread.stack) if isinstance(f, NativeFrame)]


def _outside(thread: Thread) -> List[NativeFrame]:
    """Return the native frames that called the innermost Python frame, most recent call first."""
    inside = itertools.dropwhile(_is_native, thread.stack)
    return [frame for frame in inside if isinstance(frame, NativeFrame)]


def _is_native(frame: object) -> bool:
    return not isinstance(frame, PythonFrame)


def _found(frames: Sequence[NativeFrame], names: Sequence[str]) -> Optional[str]:
    """Return the name of the first function that is one of these."""
    return next((f.function for f in frames if (f.function or "").startswith(tuple(names))), None)
