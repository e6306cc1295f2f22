"""pm-threads, pm-bt, pm-locals: where the threads are, and what their variables hold."""

from __future__ import annotations

from typing import Iterator, List, Optional, Sequence

import gdb
from postmortem.cpython.frames.frame import Frame
from postmortem.cpython.state.values import Values
from postmortem.redaction.secrets import MASK, is_secret

from .command import PmCommand, Store, problems
from .session import Row, Session
from .show import clean, place, stack, styled, table

MAX_LOCALS, MAX_VALUE = 100, 200
_GIL_STYLES = {"holds": "green", "waits": "yellow"}


class Threads(PmCommand):
    """List the threads: what each waits for, whether it holds the GIL, and its innermost Python frame.

    Usage: pm-threads

    The first column is gdb's number, for `thread N`; `*` marks the selected thread. GIL: holds, waits, detached
    (neither), unknown."""

    name = "pm-threads"

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        session = Store.get()
        selected = gdb.selected_thread()
        rows, styles = [], []
        for row in session.rows():
            mark = "*" if selected is not None and selected.num == row.number else " "
            rows.append(
                (
                    f"{mark}{row.number}",
                    str(row.tid),
                    clean(row.name, 30),
                    row.gil,
                    clean(_waiting(row), 50),
                    place(row.frames[0]) if row.frames else "(no Python frame)",
                )
            )
            styles.append(_GIL_STYLES.get(row.gil))
        runtime = session.python.runtime
        yield f"CPython {runtime.version_text}, {len(rows)} threads"
        yield from table((" N", "TID", "NAME", "GIL", "WAITS FOR", "PYTHON"), rows, styles)
        yield from problems(session)


class Backtrace(PmCommand):
    """Show the Python stack of the selected thread, of one with a given TID, or of all.

    Usage: pm-bt [--native] [all | TID]

    --native   show C frames too, merged with the Python ones
    The most recent call comes first. A recursion is shown once and counted."""

    name = "pm-bt"

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        native = "--native" in arguments
        words = [word for word in arguments if word != "--native"]
        if len(words) > 1 or any(word.startswith("-") for word in words):
            raise gdb.GdbError("Usage: pm-bt [--native] [all | TID]")
        session = Store.get()
        for index, row in enumerate(_chosen(session, words[0] if words else None)):
            if index:
                yield ""
            yield styled(_title(row), "bold")
            yield from self._merged(session, row) if native else self._python(row)

    @staticmethod
    def _python(row: Row) -> Iterator[str]:
        state = row.state
        if state is None or not state.frames:
            yield (
                "  (no Python frame)" if state is None or not state.cut else f"  (no Python frame: {clean(state.cut)})"
            )
            return
        chain = state.chain
        lines = [f"  #{index:<3} {place(frame)}" for index, frame in enumerate(state.frames)]
        yield from stack(lines, chain.recursion if chain else None, chain.depth if chain else len(lines))
        if state.cut:
            yield f"  (ends early: {clean(state.cut)})"

    @staticmethod
    def _merged(session: Session, row: Row) -> Iterator[str]:
        frames, cut = session.merged(row)
        lines = []
        for frame in frames:
            if isinstance(frame, Frame):
                lines.append(f"  py  {styled(place(frame), 'green')}")
            else:
                where = f" at {clean(frame.file)}:{frame.line}" if frame.file else f" in {clean(frame.module or '?')}"
                lines.append(f"  C   {clean(frame.function or hex(frame.address))}{where}")
        yield from stack(lines, None, len(lines))
        if cut:
            yield f"  (C frames end early: {clean(cut)})"


class Locals(PmCommand):
    """Show the local variables of a Python frame of the selected thread.

    Usage: pm-locals [FRAME]

    FRAME is a number that pm-bt shows, 0 without one. Values are read from memory and cut to a line; what looks
    like a secret is masked."""

    name = "pm-locals"

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        if len(arguments) > 1 or not all(word.isdigit() for word in arguments):
            raise gdb.GdbError("Usage: pm-locals [FRAME]")
        session = Store.get()
        row = session.current()
        index = int(arguments[0]) if arguments else 0
        if index >= len(row.frames):
            raise gdb.GdbError(f"thread {row.tid} has {len(row.frames)} Python frames; `pm-bt` numbers them from 0")
        frame = row.frames[index]
        yield styled(f"#{index} {place(frame)}", "bold")
        names = {r.state.ident: r.name for r in session.rows() if r.state and r.name}
        values = Values(session.python.frames, names)
        found = list(session.python.frames.locals(frame))
        for name, address in found[:MAX_LOCALS]:
            text = MASK if is_secret(name) else values.describe(address, MAX_VALUE)
            yield f"  {clean(name, 60)} = {clean(text, MAX_VALUE)}"
        if not found:
            yield "  (no local variable is bound)"
        if len(found) > MAX_LOCALS:
            yield f"  … {len(found) - MAX_LOCALS} more"


def _waiting(row: Row) -> str:
    if row.wait is not None:
        return row.wait.text
    return "(runs)" if row.gil in ("holds", "unknown") else ""


def _title(row: Row) -> str:
    name = f' "{clean(row.name, 60)}"' if row.name else ""
    wait = f", waits for {clean(row.wait.text, 80)}" if row.wait else ""
    gil = ", holds the GIL" if row.gil == "holds" else ""
    return f"Thread {row.number} (TID {row.tid}){name}{gil}{wait}"


def _chosen(session: Session, word: Optional[str]) -> List[Row]:
    if word is None:
        return [session.current()]
    if word == "all":
        return session.rows()
    found = [row for row in session.rows() if str(row.tid) == word]
    if not found:
        raise gdb.GdbError(f"there is no thread with TID {clean(word, 40)}: `pm-threads` lists them")
    return found
