"""Where sources make, fill and empty something, and keep an exception: by name, as plain syntax tells."""

from __future__ import annotations

from typing import Dict, List, Tuple

import pytest

from postmortem.evidence import PythonFrame
from postmortem.extract.sourcecode.usages import Usages

QUEUES = """\
import asyncio, queue
jobs = queue.Queue()
class Intake:
    def __init__(self):
        self.jobs: queue.Queue = queue.Queue(maxsize=5)
        self.seen = {}
        self.others = [Queue(), Queue()]
    def accept(self, job):
        self.jobs.put(job)
        self.seen[job] = 1
        self.others[0].append(job)
    async def work(self):
        while True:
            job = self.jobs.get()
            self.other.get()
            jobs_of_others.put(job)
"""
KEEPING = """\
def load(tables):
    for table in tables:
        try:
            try:
                read(table)
            finally:
                close(table)
        except OSError as exc:
            print(exc)
            failures.append((table, exc))
            last = exc.__traceback__
        except ValueError as exc:
            words.append(str(exc))
            more.append(f"{exc}")
            name = type(exc)
            future.set_exception(exc)
        except KeyError:
            failures.append(table)
"""
SPAWNING = """\
import asyncio
async def main(rows):
    first = asyncio.create_task(evaluate(rows[0]))
    for row in rows:
        asyncio.ensure_future(evaluate(row))
    await asyncio.gather(*(evaluate(row) for row in rows))
    await asyncio.gather(evaluate(1), evaluate(2))
    return [asyncio.create_task(evaluate(row)) for row in rows]
"""
FILE, LIBRARY, PACKAGE = "/app/a.py", "/usr/lib/python3.12/queue.py", "/v/lib/python3.12/site-packages/p/q.py"


def usages(**sources: str) -> Usages:
    texts: Dict[str, List[str]] = {FILE: QUEUES.splitlines()}
    texts.update({"/app/" + name + ".py": source.splitlines() for name, source in sources.items()})
    texts.update({LIBRARY: QUEUES.splitlines(), PACKAGE: QUEUES.splitlines()})
    return Usages(texts.get)


def places(frames: Tuple[PythonFrame, ...]) -> List[Tuple[int, str]]:
    return [(frame.line or 0, frame.function) for frame in frames]


def test_what_is_done_with_a_name() -> None:
    """As a variable or an attribute, whatever it belongs to: made, filled, emptied; other names are others."""
    found = usages().of("jobs", [FILE])
    assert places(found.made) == [(2, "<module>"), (5, "__init__")]
    assert places(found.filled) == [(9, "accept")]
    assert places(found.emptied) == [(14, "work")]


def test_an_item_is_filled_too() -> None:
    """`seen[job] = …`, and a list of queues, one of which is appended to."""
    known = usages()
    assert places(known.of("seen", [FILE]).filled) == [(10, "accept")]
    assert places(known.of("others", [FILE]).filled) == [(11, "accept")]


def test_the_standard_librarys_own_lines_are_nobodys() -> None:
    """Nobody changes them; those of packages may be to blame."""
    known = usages()
    assert known.of("jobs", [LIBRARY]).made == ()
    assert known.of("jobs", [PACKAGE]).made != ()
    assert known.making("Queue", [LIBRARY]) == ()


def test_where_objects_of_a_class_are_made() -> None:
    """By the class's name, each line once."""
    assert [line for line, _function in places(usages().making("Queue", [FILE, FILE]))] == [2, 5, 7]


def test_where_an_exception_is_kept() -> None:
    """Itself, in a tuple, by its traceback, in a future; not its text or its type. Those clauses whose `try` the line is
    in, the outer ones too."""
    assert places(usages(keeping=KEEPING).handlers("/app/keeping.py", 5)) == [(10, "load"), (11, "load"), (16, "load")]
    assert usages(keeping=KEEPING).handlers("/app/keeping.py", 2) == ()


def test_where_work_is_made_in_numbers() -> None:
    """In a loop, a comprehension, or handed over all together; a single task is none."""
    found = usages(spawning=SPAWNING).spawning(["/app/spawning.py"])
    assert sorted(line for line, _function in places(found)) == [5, 6, 8]


@pytest.mark.parametrize("source", ["def broken(:", "\0", "x = " + "(" * 500 + ")" * 500])
def test_what_cannot_be_parsed_tells_nothing(source: str) -> None:
    """Another release's grammar, a binary file, nesting without end: no places, no error; nor of a file that is missing."""
    known = usages(bad=source)
    assert known.of("x", ["/app/bad.py", "/app/missing.py"]).made == ()
    assert known.handlers("/app/bad.py", 1) == ()
