"""A callback of a toolkit's loop that joins a thread which waits for a slot, told from other waits of such threads."""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

import pytest

from postmortem.evidence import NativeFrame, PythonFrame, Thread, Wait
from postmortem.evidence import replace as changed

from .....support.make import counters, evidence, found, frame, lines, process, thread

QT = "/venv/lib/python3.11/site-packages/PyQt5/Qt5/lib/libQt5Core.so.5"
BLOCKED = Wait("futex", "futex", endless=True)


def qt(*functions: str) -> Tuple[NativeFrame, ...]:
    return tuple(NativeFrame(function, QT, 16) for function in functions)


def waits(tid: int, above: Tuple[NativeFrame, ...], at: PythonFrame, below: Tuple[NativeFrame, ...]) -> Thread:
    return thread(tid, (*above, at, *below), wait=BLOCKED, counters=counters())


CLOSES = waits(
    1,
    qt("QWaitCondition::wait(QMutex*, QDeadlineTimer)", "QThread::wait(QDeadlineTimer)"),
    frame("close", 76),
    qt("void doActivate<false>(QObject*, int, void**)", "QEventLoop::exec(QFlags<QEventLoop::ProcessEventsFlag>)"),
)
MEASURES = waits(
    2,
    qt("QSemaphore::acquire(int)", "void doActivate<false>(QObject*, int, void**)"),
    frame("run", 32),
    qt("QThreadPrivate::start(void*)"),
)
LOADS = waits(
    2, qt("QSemaphore::acquire(int)", "QReadLoader::wait()"), frame("run", 32), qt("QThreadPrivate::start(void*)")
)
RESTS = waits(1, (), frame("main", 90), qt("QEventLoop::exec(QFlags<QEventLoop::ProcessEventsFlag>)"))
PATIENT = changed(CLOSES, wait=Wait("futex", "futex", endless=False, timeout_s=2.0))
OTHER = waits(3, (), frame("crunch", 5), qt("QThreadPrivate::start(void*)"))
NATIVE = thread(4, qt("QEventLoop::exec(QFlags<QEventLoop::ProcessEventsFlag>)"), wait=BLOCKED, counters=counters())


@pytest.mark.parametrize(
    ("threads", "expected"),
    [
        ((CLOSES, MEASURES), "likely"),
        ((CLOSES, LOADS), None),  # a semaphore of something else
        ((RESTS, MEASURES), None),  # its loop is free to run the slot
        ((PATIENT, MEASURES), None),  # it gives up
        ((CLOSES, MEASURES, OTHER), None),  # it may join the other one
        ((CLOSES, MEASURES, NATIVE), None),  # the slot may be the other loop's
    ],
)
def test_a_slot_that_waits_for_a_thread_which_waits_for_a_slot(
    threads: Sequence[Thread], expected: Optional[str]
) -> None:
    """Both lines are named."""
    known = evidence(process(threads))
    assert found(known).get("loop-self-wait") == expected
    assert expected is None or lines(known) == [76, 32]
