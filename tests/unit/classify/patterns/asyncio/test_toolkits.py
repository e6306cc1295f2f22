"""A callback of a toolkit's loop that joins a thread which waits for a slot, told from other waits of such threads."""

from __future__ import annotations

from typing import Optional, Tuple

import pytest

from postmortem.evidence import NativeFrame, PythonFrame, Thread, Wait

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
RESTS = waits(1, qt("QEventLoop::exec(QFlags<QEventLoop::ProcessEventsFlag>)"), frame("main", 90), ())


@pytest.mark.parametrize(
    ("main", "other", "expected"), [(CLOSES, MEASURES, "likely"), (CLOSES, LOADS, None), (RESTS, MEASURES, None)]
)
def test_a_slot_that_waits_for_a_thread_which_waits_for_a_slot(
    main: Thread, other: Thread, expected: Optional[str]
) -> None:
    """Both lines are named; a semaphore of something else, and a loop that is free to run the slot, are none."""
    known = evidence(process([main, other]))
    assert found(known).get("loop-self-wait") == expected
    assert expected is None or lines(known) == [76, 32]


def test_two_loops() -> None:
    """The signal may be for the other one, which is free."""
    third = waits(
        3,
        qt("QEventLoop::exec(QFlags<QEventLoop::ProcessEventsFlag>)")[:0],
        frame("third", 5),
        qt("QEventLoop::exec(X)"),
    )
    assert "loop-self-wait" not in found(evidence(process([CLOSES, MEASURES, third])))
