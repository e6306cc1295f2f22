"""Frames of which only a part can be read."""

from __future__ import annotations

from typing import Any, List

from postmortem.cpython.frames.chains import Chain
from postmortem.cpython.objects.linetable import Location
from postmortem.evidence import Gap
from postmortem.extract.process.stacks import Stacks

from ....support.inwords import reason


class FakeCode:
    def __init__(self, name: str, *unread: str) -> None:
        self.address = id(self)
        self.filename, self.name, self.qualname = "/a.py", name, None
        self.unread = list(unread)

    def location(self, _offset: int) -> Any:
        return None if "lines" in self.unread else Location(8, 3)


class FakeFrame:
    def __init__(self, code: FakeCode) -> None:
        self.code, self.lasti, self.entry = code, 0, False


def stack(*codes: FakeCode) -> List[Gap]:
    gaps: List[Gap] = []
    frames: Any = [FakeFrame(code) for code in codes]
    Stacks(None, None, gaps).of(Chain(frames, None, len(frames)), (), 7)
    return gaps


def test_frames_without_name_or_line_are_a_gap() -> None:
    """They are shown, for they are there, and one gap of the thread says what is not known of how many."""
    gaps = stack(FakeCode("a"), FakeCode("<unknown>", "name"), FakeCode("b", "lines"), FakeCode("c", "lines"))
    assert [(gap.subject, reason(gap)) for gap in gaps] == [
        ("Python stack of thread 7", "lines and name of 3 frames: not in the core, or damaged")
    ]
    assert stack(FakeCode("a"), FakeCode("b")) == []
