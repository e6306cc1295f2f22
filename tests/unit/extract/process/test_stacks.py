"""Chains of frames as stacks of the evidence: cut, and put beside native frames."""

from __future__ import annotations

from typing import List, Optional, Tuple

from postmortem.cpython.frames.chains import Chain, LeftOut
from postmortem.cpython.frames.frame import Frame
from postmortem.cpython.objects.linetable import Location
from postmortem.evidence import Gap, NativeFrame, PythonFrame
from postmortem.extract.process.stacks import KEEP_INNER, KEEP_OUTER, Stacks

from ....support.inwords import reason, remedy


class FakeCode:
    filename, qualname, unread = "/app/deep.py", None, ()

    def __init__(self, name: str) -> None:
        self.name = name
        self.address = hash(name)

    def location(self, offset: int) -> Location:
        return Location(offset + 2, offset, offset, 4, 9)


def frames(count: int, entry: bool = False, name: str = "f") -> List[Frame]:
    return [Frame(n, FakeCode(name), n, 0, entry) for n in range(1, count + 1)]  # type: ignore[arg-type]


def stacks() -> Tuple[Stacks, List[Gap]]:
    gaps: List[Gap] = []
    return Stacks(None, None, gaps), gaps


def native(function: str) -> NativeFrame:
    return NativeFrame(function, "/usr/lib/libpython3.12.so", 1)


def test_a_frame_carries_its_expression() -> None:
    """Line and columns come from the same entry of the line table."""
    made, _gaps = stacks()
    (frame,) = made.of(Chain(frames(1), None, 1), (), 1).frames
    assert isinstance(frame, PythonFrame)
    assert (frame.line, frame.end_line, frame.column, frame.end_column) == (1, 1, 4, 9)


def test_a_short_stack_is_whole() -> None:
    """Nothing is left out, nothing is said."""
    made, gaps = stacks()
    found = made.of(Chain(frames(KEEP_INNER + KEEP_OUTER), None, KEEP_INNER + KEEP_OUTER), (), 1)
    assert len(found.frames) == KEEP_INNER + KEEP_OUTER and found.left_out is None and not gaps


def test_a_cut_stack_counts_what_no_one_kept() -> None:
    """What the reader counted only and what evidence does not keep are one number; frames that stand behind the hole
    have moved up in Thread.python."""
    made, gaps = stacks()
    found = made.of(Chain(frames(5_000), None, 100_000, LeftOut(4_000, 95_000, 0)), (), 7)
    assert len(found.frames) == KEEP_INNER + KEEP_OUTER
    assert found.left_out is not None and found.left_out.frames == 100_000 - KEEP_INNER - KEEP_OUTER
    assert len(gaps) == 1 and f"{found.left_out.frames} frames" in reason(gaps[0])
    assert made.depth(7, 3) == 3
    assert made.depth(7, 4_999) == KEEP_INNER + KEEP_OUTER - 1
    assert made.depth(7, 2_000) == KEEP_INNER
    last: Optional[object] = found.frames[-1]
    assert isinstance(last, PythonFrame) and last.line == 5_000


def test_the_outermost_frames_stay_beside_their_native_loops() -> None:
    """Each of 100 frames was entered from C; 50 in the middle were only counted: the oldest frame still stands right
    before the oldest loop."""
    made, _gaps = stacks()
    kept = [*frames(30, True, "inner"), *frames(20, True, "outer")]
    loops = [native(name) for _ in range(100) for name in ("_PyEval_EvalFrameDefault", "builtin_sorted")]
    chain = Chain(kept, None, 100, LeftOut(30, 50, 50))
    found = made.of(chain, [*loops, native("main")], 1).frames
    assert len(found) == 251
    names = [frame.function for frame in found]
    assert names[-4:] == ["outer", "_PyEval_EvalFrameDefault", "builtin_sorted", "main"]
    assert names[:3] == ["inner", "_PyEval_EvalFrameDefault", "builtin_sorted"]


def test_a_greenlet_is_not_the_whole_story() -> None:
    """The frames of suspended greenlets are on none of the stacks that are read: that is said, with what shows them."""
    made, gaps = stacks()
    entered = NativeFrame(
        None, "/venv/lib/python3.12/site-packages/greenlet/_greenlet.cpython-312-x86_64-linux-gnu.so", 2
    )
    made.of(Chain(frames(1), None, 1), (native("main"),), 1)
    assert not gaps
    made.of(Chain(frames(1), None, 1), (native("time_sleep"), entered), 7)
    (gap,) = gaps
    assert gap.subject == "stack of thread 7"
    assert "print_run_info" in (remedy(gap) or "")
