"""The course of the window, look by look."""

from __future__ import annotations

from postmortem.capture.observe import timelines
from postmortem.capture.procfs.parsers import parse_syscall


def test_only_changes_are_written() -> None:
    """An unchanged wait has one entry; the futex that it waits for is among what may change."""
    course = timelines.Course()
    one = parse_syscall(b"202 0x1000 0x80 0x0 0x0 0x0 0x0 0x7ffe 0x7fff")
    other = parse_syscall(b"202 0x2000 0x80 0x0 0x0 0x0 0x0 0x7ffe 0x7fff")
    assert one is not None and other is not None
    for at, call in ((0.0, one), (0.1, one), (0.2, other), (0.3, other)):
        course.note(at, "S", call.name, call)
    course.note(0.4, "R", "running", None)
    course.note(0.5, "S", None, other)  # its call may not be read any more
    course.gone(0.6)
    course.gone(0.7)
    assert course.as_json() == [
        [0.0, "S", "futex", 0x1000],
        [0.2, "S", "futex", 0x2000],
        [0.4, "R", "running", 0],
        [0.5, "S", None, 0],
        [0.6, None, None, 0],
    ]


def test_a_long_window_is_bounded() -> None:
    """A thread that changes at each look ends its course at some point, and not our memory."""
    course = timelines.Course()
    for number in range(5000):
        course.note(number / 10, "RS"[number % 2], "running", None)
    assert len(course.as_json()) == timelines._MOST
