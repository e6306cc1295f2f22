"""Output of pm-threads, pm-bt and pm-locals: threads, their stacks, their variables."""

from __future__ import annotations

from typing import Iterator, List

from ..cpython.state.values import Values
from ..evidence import PythonFrame, Thread
from ..foreign.numbers import is_decimal
from ..redaction.secrets import MASK, is_secret
from ..report.phrases.gaps import in_words
from ..report.phrases.labels import find_resource
from .asking import Asked, Wrong
from .show import Line, clean, place, place_of, stack, table
from .subject import Subject

MAX_LOCALS, MAX_VALUE = 100, 200
_GIL_STYLES = {"holds": "green", "waits": "yellow"}


def listed(subject: Subject, asked: Asked) -> Iterator[Line]:
    """List the threads by gdb's numbers."""
    rows, styles = [], []
    threads = _by_number(subject, asked)
    for thread in threads:
        mark = "*" if thread.tid == asked.selected else " "
        frame = next(iter(thread.python), None)
        rows.append(
            (
                f"{mark}{asked.number(thread.tid)}",
                str(thread.tid),
                clean(_name(subject, thread), 30),
                thread.gil,
                clean(waiting(subject, thread), 50),
                place_of(frame) if frame is not None else "(no Python frame)",
            )
        )
        styles.append(_GIL_STYLES.get(thread.gil, ""))
    python = subject.process.python
    yield (
        "",
        f"CPython {clean(python.version if python is not None else '?')}, {len(rows)} thread{'' if len(rows) == 1 else 's'}",
    )
    yield from table((" N", "TID", "NAME", "GIL", "WAITS FOR", "PYTHON"), rows, styles)
    yield from problems(subject)


def problems(subject: Subject) -> Iterator[Line]:
    """Yield what could not be read of the interpreter."""
    for problem in subject.python.problems[:10]:
        yield "", f"({clean(problem)})"


def backtrace(subject: Subject, asked: Asked) -> Iterator[Line]:
    """Show the stack of one thread, or of all."""
    native = "--native" in asked.arguments
    words = [word for word in asked.arguments if word != "--native"]
    if len(words) > 1 or any(word.startswith("-") for word in words):
        raise Wrong("Usage: pm-bt [--native] [all | TID]")
    for index, thread in enumerate(_chosen(subject, asked, words)):
        if index:
            yield "", ""
        yield "bold", _title(subject, asked, thread)
        yield from _merged(subject, thread) if native else _python(subject, thread)


def _python(subject: Subject, thread: Thread) -> Iterator[Line]:
    state = subject.states.get(thread.tid)
    if state is None or not state.frames:
        why = f": {clean(state.cut)}" if state is not None and state.cut else ""
        yield "", f"  (no Python frame{why})"
        return
    chain = state.chain
    lines = [("", f"  #{index:<3} {place(frame)}") for index, frame in enumerate(state.frames)]
    yield from stack(lines, chain.recursion if chain else None, chain.depth if chain else len(lines))
    if state.cut:
        yield "", f"  (ends early: {clean(state.cut)})"


def _merged(subject: Subject, thread: Thread) -> Iterator[Line]:
    lines: List[Line] = []
    for frame in thread.stack:
        if isinstance(frame, PythonFrame):
            lines.append(("green", f"  py  {place_of(frame)}"))
        else:
            where = f" at {clean(frame.file)}:{frame.line}" if frame.file else f" in {clean(frame.module or '?')}"
            lines.append(("", f"  C   {clean(frame.function or hex(frame.address))}{where}"))
    left_out = thread.left_out.frames if thread.left_out is not None else 0
    yield from stack(lines, None, len(lines) + left_out)
    for why in _shortcomings(subject, thread):
        yield "", f"  (C frames end early: {clean(why)})"


def _shortcomings(subject: Subject, thread: Thread) -> Iterator[str]:
    if thread.tid in subject.errors:
        yield subject.errors[thread.tid]
    elif not thread.native:
        found = (in_words(gap).reason or "" for gap in subject.evidence.gaps if gap.source == "gdb")
        yield next(found, "gdb unwound none")


def local_variables(subject: Subject, asked: Asked) -> Iterator[Line]:
    """Show the local variables of one frame of the selected thread."""
    if len(asked.arguments) > 1 or not all(is_decimal(word) for word in asked.arguments):
        raise Wrong("Usage: pm-locals [FRAME]")
    thread = _chosen(subject, asked, [])[0]
    index = int(asked.arguments[0]) if asked.arguments else 0
    state, python = subject.states.get(thread.tid), subject.python
    frames = state.frames if state is not None else []
    if index >= len(frames):
        raise Wrong(
            f"thread {thread.tid} has {len(frames)} Python frame{'' if len(frames) == 1 else 's'}; `pm-bt` numbers them from 0"
        )
    frame = frames[index]
    yield "bold", f"#{index} {place(frame)}"
    names = {each.ident: each.name for each in subject.states.values() if each.name}
    values = Values(python.frames, names)
    found = list(python.frames.locals(frame))
    for name, address in found[:MAX_LOCALS]:
        text = MASK if is_secret(name) else values.describe(address, MAX_VALUE)
        yield "", f"  {clean(name, 60)} = {clean(text, MAX_VALUE)}"
    if not found:
        yield "", "  (no local variable is bound)"
    if len(found) > MAX_LOCALS:
        yield "", f"  … {len(found) - MAX_LOCALS} more"


def waiting(subject: Subject, thread: Thread) -> str:
    """Return what a thread waits for: ``Lock first``, ``GIL``, ``read (fd 3)``, ``sleep``.

    Without a known wait: ``(runs)`` if it holds the GIL or may hold it, else "".
    """
    wait = thread.wait
    if wait is None:
        return "(runs)" if thread.gil in ("holds", "unknown") else ""
    resource = find_resource(subject.process, wait.resource)
    if wait.kind == "gil":
        return "GIL"
    if resource is not None:
        return resource.description
    if wait.kind == "sleep":
        return "sleep"
    call = wait.syscall or wait.kind
    if wait.fd is not None:
        return f"{call} (fd {wait.fd})"
    return wait.detail or call if call == "futex" else call


def _name(subject: Subject, thread: Thread) -> str:
    state = subject.states.get(thread.tid)
    return (state.name if state is not None else None) or thread.name or ""


def _title(subject: Subject, asked: Asked, thread: Thread) -> str:
    name = _name(subject, thread)
    said = f' "{clean(name, 60)}"' if name else ""
    wait = f", waits for {clean(waiting(subject, thread), 80)}" if thread.wait else ""
    gil = ", holds the GIL" if thread.gil == "holds" else ""
    return f"Thread {asked.number(thread.tid)} (TID {thread.tid}){said}{gil}{wait}"


def _chosen(subject: Subject, asked: Asked, words: List[str]) -> List[Thread]:
    if not words:
        if asked.selected is None:
            raise Wrong("no thread is selected: `pm-threads` lists them, `thread N` selects one")
        words = [str(asked.selected)]
    if words == ["all"]:
        return _by_number(subject, asked)
    found = [thread for tid, thread in subject.threads.items() if str(tid) == words[0]]
    if not found:
        raise Wrong(f"there is no thread with TID {clean(words[0], 40)}: `pm-threads` lists them")
    return found


def _by_number(subject: Subject, asked: Asked) -> List[Thread]:
    return sorted(subject.threads.values(), key=lambda thread: asked.numbers.get(thread.tid, 1 << 32))
