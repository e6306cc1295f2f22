"""Local variables and exceptions' messages; read on request only, since both may contain secrets."""

from __future__ import annotations

from typing import Iterable, List, Optional, Tuple

from ...cpython.frames.exceptions import exceptions
from ...cpython.frames.frame import Frame
from ...cpython.objects.builtins import NotThat
from ...cpython.state.interpreter import Python, ThreadState
from ...cpython.state.values import Values
from ...evidence import Gap, Local, ThreadException
from ...memory import Fault
from ...redaction.secrets import MASK, is_secret
from ...timelimits import TimeLimit

#: Most variables per frame and per process; most seconds per process, for cores with large or damaged containers.
PER_FRAME, PER_PROCESS, SECONDS = 50, 50_000, 20.0
#: Types of globals that say nothing about a module's state; a module's frame has its globals as locals.
_FURNITURE = ("module", "type", "function", "builtin_function_or_method")


class Variables:
    """A reader of variables, limited per process; notes one gap when the limit is reached."""

    def __init__(self, python: Python, gaps: List[Gap]) -> None:
        self._python = python
        self._gaps = gaps
        names = {t.ident: t.name for i in python.interpreters for t in i.threads if t.name}
        self._values = Values(python.frames, names)
        self._left = PER_PROCESS
        self._limit = TimeLimit(SECONDS)
        self._said = False

    def of(self, frame: Frame) -> Optional[Tuple[Local, ...]]:
        """Return the bound variables of a frame; None if unreadable or beyond the limit."""
        if self._left <= 0 or self._limit.passed():
            self._stop()
            return None
        try:
            found = tuple(self._local(name, address) for name, address in self._named(frame))
        except (Fault, NotThat) as exc:
            self._gaps.append(Gap("cpython", f"local variables of {frame.function}", str(exc), code="locals-unread"))
            return None
        self._left -= len(found)
        return found

    def message(self, exception: int) -> Optional[str]:
        """Return an exception's message; None if unreadable."""
        return self._values.message(exception)

    def _local(self, name: str, address: int) -> Local:
        text = MASK if is_secret(name) else self._values.describe(address)
        return Local(name, self._values.type(address), text)

    def _named(self, frame: Frame) -> Iterable[Tuple[str, int]]:
        found: Iterable[Tuple[str, int]] = self._python.frames.locals(frame)
        if frame.function == "<module>":
            found = self._globals(frame)
        count = 0
        for name, address in found:
            if not name.startswith((".", "__")) and count < PER_FRAME:
                count += 1
                yield name, address

    def _globals(self, frame: Frame) -> Iterable[Tuple[str, int]]:
        objects = self._python.objects
        namespace = self._python.frames.globals(frame)
        for name, address in (objects.text_dict(namespace) if namespace else {}).items():
            if objects.type_name(address) not in _FURNITURE:
                yield name, address

    def _stop(self) -> None:
        if not self._said:
            self._said = True
            self._gaps.append(
                Gap.of("cpython", "local variables", "locals-left-out", most=PER_PROCESS, seconds=SECONDS)
            )


def thread_exceptions(
    python: Python, state: ThreadState, variables: Optional[Variables]
) -> Tuple[ThreadException, ...]:
    """Return what a thread raises or handles; messages only if variables were requested."""
    return tuple(
        ThreadException(
            "handled" if found.handled else "raised",
            found.type,
            found.code.filename if found.code else None,
            found.line,
            found.code.name if found.code else None,
            variables.message(found.address) if variables and found.address else None,
        )
        for found in exceptions(python.frames, state.address)
    )
