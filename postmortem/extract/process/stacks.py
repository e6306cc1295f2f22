"""Stacks of threads as evidence: merged with native frames, bounded, recursion summarised."""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...cpython.frames.calls import is_signal_handler
from ...cpython.frames.chains import Chain
from ...cpython.frames.frame import Frame as PyFrame
from ...cpython.state.interpreter import Python
from ...evidence import Frame, Gap, LeftOut, NativeFrame, PythonFrame, Recursion
from ...evidence import replace as changed
from ...native.merge import merge
from .variables import Variables

#: Innermost and outermost frames kept per thread; those between are counted.
KEEP_INNER, KEEP_OUTER = 1_600, 400
_GREENLET = re.compile(r"/_?greenlet\.[^/]*so[^/]*$")


class Stack(NamedTuple):
    """A thread's stack as evidence."""

    frames: Tuple[Frame, ...] = ()
    left_out: Optional[LeftOut] = None
    recursion: Optional[Recursion] = None


class Stacks:
    """The stacks of one process.

    ``variables`` reads locals; None if they were not requested.
    """

    def __init__(self, python: Optional[Python], variables: Optional[Variables], gaps: List[Gap]) -> None:
        self._python = python
        self.variables = variables
        self._gaps = gaps
        self.greenlets_read = False  # suspended greenlets are known as tasks
        self._calls: Dict[int, List[Tuple[PythonFrame, int]]] = {}  # by id of the chain
        self._made: Dict[Tuple[int, int, Optional[int]], PythonFrame] = {}
        self._holes: Dict[
            int, Tuple[int, int]
        ] = {}  # tid → (Python frames before the omitted ones, number of Python frames omitted)

    def of(self, chain: Optional[Chain], native: Sequence[NativeFrame], tid: int) -> Stack:
        """Return the stack of a thread.

        ``chain``: None for a thread that no interpreter knows.
        """
        if chain is None:
            return Stack(tuple(native))
        merged = merge(self.prepare(chain), native)
        self._say_greenlets(native, tid)
        self._say_unread(chain, tid)
        unread = chain.left_out.frames if chain.left_out else 0
        left_out: Optional[LeftOut] = None
        if len(merged) > KEEP_INNER + KEEP_OUTER:
            left_out = LeftOut(KEEP_INNER, len(merged) - KEEP_INNER - KEEP_OUTER + unread)
            merged = merged[:KEEP_INNER] + merged[-KEEP_OUTER:]
            self._say(left_out, tid)
        before = sum(isinstance(frame, PythonFrame) for frame in merged[:KEEP_INNER])
        kept = sum(isinstance(frame, PythonFrame) for frame in merged)
        frames = chain.frames[:before] + chain.frames[len(chain.frames) - (kept - before) :]
        self._holes[tid] = before, len(chain.frames) - kept
        return Stack(self._with_variables(merged, frames), left_out, self._recursion(chain))

    def frame(self, frame: PyFrame) -> PythonFrame:
        """Return a frame as evidence; equal frames share one object, since similar threads have most in common."""
        namespace = self._python.frames.globals(frame) if self._python else None
        key = (frame.code.address, frame.lasti, namespace)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._make(frame)
        return made

    def suspended(self, frame: PyFrame) -> PythonFrame:
        """Return a frame of a suspended coroutine, with its variables."""
        shown = self.frame(frame)
        return changed(shown, locals=self.variables.of(frame)) if self.variables else shown

    def _make(self, frame: PyFrame) -> PythonFrame:
        python, code, place = self._python, frame.code, frame.code.location(frame.lasti)
        return PythonFrame(
            code.filename,
            place.line if place else None,
            code.name,
            code.qualname,
            python.frames.module(frame) if python else None,
            end_line=place.end_line if place else None,
            column=place.column if place else None,
            end_column=place.end_column if place else None,
        )

    def depth(self, tid: int, depth: int) -> int:
        """Return the index in Thread.python of a frame read at ``depth``; for an omitted frame, that of the cut."""
        before, swallowed = self._holes.get(tid, (depth + 1, 0))
        return depth if depth < before else max(before, depth - swallowed)

    def prepare(self, chain: Chain) -> List[Tuple[PythonFrame, int]]:
        """Return the input of merging, prepared before native stacks are available.

        The last frame before the omitted ones ends their number of native loops in addition to its own.
        """
        calls = self._calls.get(id(chain))
        if calls is None:
            calls = self._calls[id(chain)] = [(self._shown(frame), int(frame.entry)) for frame in chain.frames]
            if chain.left_out is not None and 0 < chain.left_out.behind <= len(calls):
                shown, entries = calls[chain.left_out.behind - 1]
                calls[chain.left_out.behind - 1] = shown, entries + chain.left_out.entries
        return calls

    def _shown(self, frame: PyFrame) -> PythonFrame:
        shown = self.frame(frame)
        if frame.entry and self._python and is_signal_handler(self._python.frames, frame):
            return changed(shown, role="signal-handler")
        return shown

    def _with_variables(self, merged: Sequence[Frame], frames: Sequence[PyFrame]) -> Tuple[Frame, ...]:
        if self.variables is None:
            return tuple(merged)
        own = iter(frames)
        return tuple(
            changed(frame, locals=self.variables.of(next(own))) if isinstance(frame, PythonFrame) else frame
            for frame in merged
        )

    def _recursion(self, chain: Chain) -> Optional[Recursion]:
        found = chain.recursion
        if found is None:
            return None
        cycle = tuple(self.frame(frame) for frame in found.frames)
        return Recursion(chain.depth, found.times, cycle, found.same_lines)

    def _say_greenlets(self, native: Sequence[NativeFrame], tid: int) -> None:
        """Note a gap if a greenlet runs: it has a separate stack."""
        if self.greenlets_read:
            return
        if any(frame.module is not None and _GREENLET.search(frame.module) for frame in native):
            self._gaps.append(Gap("cpython", f"stack of thread {tid}", code="greenlets"))

    def _say_unread(self, chain: Chain, tid: int) -> None:
        """Note a gap for frames whose name or line could not be read."""
        unread = [frame.code.unread for frame in chain.frames if frame.code.unread]
        if unread:
            what, subject = tuple(sorted({word for words in unread for word in words})), f"Python stack of thread {tid}"
            self._gaps.append(Gap.of("cpython", subject, "frames-unread", what=what, frames=len(unread)))

    def _say(self, left_out: LeftOut, tid: int) -> None:
        subject, frames = f"stack of thread {tid}", left_out.frames
        left = Gap.of("cpython", subject, "frames-left-out", frames=frames, inner=KEEP_INNER, outer=KEEP_OUTER)
        self._gaps.append(left)
