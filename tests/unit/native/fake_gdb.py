"""A stand-in for gdb's Python module, as far as gdb/stacks.py uses it."""

from __future__ import annotations

import types
from typing import Any, Callable, Dict, List, Optional, Set


class Error(RuntimeError):
    """gdb.error"""


class Frame:
    """One frame; ``older_frame`` may be a frame, None, or an exception that unwinding raises."""

    def __init__(
        self,
        pc: int,
        name: object = "f",
        older: Any = None,
        stop: int = 0,
        kind: int = 0,
        symtab: Optional[str] = None,
        line: int = 0,
    ) -> None:
        self._pc, self._name, self.older_frame, self._stop, self._kind = pc, name, older, stop, kind
        self._symtab, self._line = symtab, line

    def pc(self) -> int:
        return self._pc

    def name(self) -> Any:
        if isinstance(self._name, Exception):
            raise self._name
        return self._name

    def type(self) -> int:
        return self._kind

    def find_sal(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(
            symtab=types.SimpleNamespace(filename=self._symtab) if self._symtab else None, line=self._line
        )

    def older(self) -> Any:
        if isinstance(self.older_frame, Exception):
            raise self.older_frame
        return self.older_frame() if callable(self.older_frame) else self.older_frame

    def unwind_stop_reason(self) -> int:
        return self._stop


def chain(*frames: Frame) -> Frame:
    """Links frames, most recent first."""
    for newer, older in zip(frames, frames[1:]):
        newer.older_frame = older
    return frames[0]


class Gdb(types.ModuleType):
    """``threads``: lwp → newest frame, or a function or exception that gives it. ``libraries``: pc → path.

    ``cores``: what other files hold, name → threads, or an exception that opening one raises.
    """

    error, Frame, InferiorThread = Error, Frame, object
    VERSION = "fake"
    NORMAL_FRAME, SIGTRAMP_FRAME = 0, 3
    FRAME_UNWIND_NO_REASON, FRAME_UNWIND_NULL_ID, FRAME_UNWIND_OUTERMOST, FRAME_UNWIND_MEMORY_ERROR = 0, 1, 2, 7

    def __init__(self, threads: Dict[int, object], libraries: Optional[Callable[[int], Optional[str]]] = None) -> None:
        super().__init__("gdb")
        self.threads, self.libraries = threads, libraries or (lambda pc: None)
        self.commands: List[str] = []
        self.loaded: Set[str] = set()
        self._selected = 0
        self.cores: Dict[str, object] = {}
        self._inferiors = 1

    def inferiors(self) -> List[types.SimpleNamespace]:
        return [types.SimpleNamespace(num=number) for number in range(1, self._inferiors + 1)]

    def objfiles(self) -> List[types.SimpleNamespace]:
        return [types.SimpleNamespace(filename="/bin/prog")]

    def solib_name(self, pc: int) -> Optional[str]:
        return self.libraries(pc)

    def execute(self, command: str, to_string: bool = False) -> None:
        self.commands.append(command)
        word, _space, rest = command.partition(" ")
        if word == "add-inferior":
            self._inferiors += 1
        elif word == "core-file":
            found: Any = self.cores[rest]
            if isinstance(found, Exception):
                raise found
            self.threads = found

    def selected_inferior(self) -> types.SimpleNamespace:
        made = [
            types.SimpleNamespace(num=number, ptid=(1, lwp, 0), switch=lambda lwp=lwp: self._switch(lwp))
            for number, lwp in enumerate(self.threads, 1)
        ]
        return types.SimpleNamespace(threads=lambda: tuple(reversed(made)))

    def _switch(self, lwp: int) -> None:
        self._selected = lwp

    def newest_frame(self) -> Any:
        newest = self.threads[self._selected]
        if isinstance(newest, Exception):
            raise newest
        return newest() if callable(newest) else newest

    def frame_stop_reason_string(self, reason: int) -> str:
        return f"reason {reason}"
