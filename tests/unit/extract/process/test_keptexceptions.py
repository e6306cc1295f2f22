"""Kept exceptions as evidence: grouped by type and place, with who keeps them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Tuple

import pytest

from postmortem.cpython.heap import variablesearch
from postmortem.cpython.heap.keptexceptions import Found, Kept
from postmortem.cpython.heap.variablesearch import User
from postmortem.evidence import KeptException, PythonFrame
from postmortem.extract.process import keptexceptions as kept_module
from postmortem.extract.process.keptexceptions import KeptBook
from postmortem.extract.process.threadtable import ThreadTable
from postmortem.extract.recorded.window import NO_WINDOW

from ....support.contexts import made
from ....support.pythonheap import Frame, Heap

FILE = "/app/service.py"
SOURCE = """\
def run(tables):
    for table in tables:
        try:
            load(table)
        except ValueError as exc:
            failures.append(exc)
"""
RUN, LOAD = Frame("run", file=FILE, code=1), Frame("load", file="/app/store.py", code=2)


class Target(Heap):
    """With exceptions, of which the memory search would tell."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.exceptions: Dict[int, Kept] = {}
        self.total: Optional[int] = None
        self.raised: List[int] = []
        self.left_out: List[int] = []
        self.written: Any = ()
        target = self

        class Reader:
            def __init__(self, _python: Any) -> None:
                pass

            def leave_out(self, addresses: Any) -> None:
                target.left_out += addresses

            def kept(self, address: int) -> Optional[Kept]:
                return target.exceptions.get(address)

            def inside(self, value: int) -> Any:
                return target.inside.get(value) or list(target.parts.get(value, {}).values())

        def find(*_: Any) -> Found:
            return Found(list(target.exceptions), target.total or len(target.exceptions))

        monkeypatch.setattr(variablesearch, "attributes", Heap.attributes)
        monkeypatch.setattr(kept_module, "Reader", Reader)
        monkeypatch.setattr(kept_module, "find", find)
        monkeypatch.setattr(
            kept_module, "exceptions", lambda _frames, _state: [SimpleNamespace(address=at) for at in target.raised]
        )

    def exception(
        self,
        size: int = 1 << 20,
        kind: str = "ValueError",
        frames: Tuple[Frame, ...] = (RUN, LOAD),
        cyclic: bool = False,
    ) -> int:
        address = self.make(kind)
        lines: Any = [(frame, 4 + n) for n, frame in enumerate(frames)]
        self.exceptions[address] = Kept(address, kind, lines, cyclic, size, "rows in load")
        return address

    def groups(self, variables: Dict[str, int], probe: Any = None) -> Tuple[KeptException, ...]:
        python: Any = self
        core: Any = self
        shown: Any = lambda frame: PythonFrame(frame.code.filename, 1, frame.function)  # noqa: E731
        window = NO_WINDOW._replace(probes={"exceptions": probe} if probe is not None else {})
        state: Any = SimpleNamespace(address=0x10, ident=1, object=None, frames=[Frame("main", file=FILE)])
        threads = ThreadTable.of_states({41: state})
        context = made(python, threads, core=core, lines={FILE: SOURCE.splitlines()}.get, window=window)
        frame: Any = Frame("main", variables, file=FILE)
        return KeptBook(context, shown).groups([User(0x10, None, frame)])


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Target:
    return Target(monkeypatch)


def test_exceptions_of_one_place_are_one(target: Target) -> None:
    """By type, where it was raised and who caught it: how many, how many frames and bytes, and where each lies."""
    for _ in range(3):
        target.exception()
    target.exception(kind="OSError")
    many, one = target.groups({})
    assert (many.type, many.count, many.frames, many.bytes, many.variable) == (
        "ValueError",
        3,
        6,
        3 << 20,
        "rows in load",
    )
    assert (one.type, one.count) == ("OSError", 1)
    assert many.place is not None and many.caught is not None
    assert (many.place.function, many.place.line, many.caught.function, many.caught.line) == ("load", 5, "run", 4)


def test_who_keeps_them(target: Target) -> None:
    """The variable that leads to them, by what they are in, though it be deep inside; and the line that puts them there."""
    exceptions = [target.exception() for _ in range(2)]
    records = [target.make("Record", error=exception) for exception in exceptions]
    job = target.make("app.Job", failures=target.make("list", records))
    (found,) = target.groups({"job": job})
    assert found.keepers[0] == "Job.failures"
    assert [line.line for line in found.stored_at] == [6]


def test_what_is_under_way_is_not_kept(target: Target) -> None:
    """An exception that a thread is busy with has its traceback by right."""
    target.raised.append(target.exception())
    assert target.groups({}) == ()


def test_a_few_small_ones_are_in_every_program(target: Target) -> None:
    """Told are those that are many, or that keep much."""
    for _ in range(5):
        target.exception(size=100)
    assert target.groups({}) == ()
    for _ in range(20):
        target.exception(size=100)
    assert [one.count for one in target.groups({})] == [25]


def test_the_windows_probe_saves_the_search(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has found them in the running process; of some that were read the others are counted along."""
    addresses = [target.exception() for _ in range(4)]
    monkeypatch.setattr(kept_module, "find", lambda *_: pytest.fail("searched again"))
    (found,) = target.groups({}, {"addresses": [*addresses, "x"], "tracebacks": 40})
    assert (found.count, found.bytes) == (40, 40 << 20)


def test_what_is_gone_by_now_is_left_out(target: Target) -> None:
    """An address that is no exception any more counts for nothing."""
    assert target.groups({}, {"addresses": [0x77777], "tracebacks": 1}) == ()


def test_a_circle_is_told(target: Target) -> None:
    """How many are in one through their own frames."""
    target.exception(cyclic=True)
    target.exception()
    assert [one.cyclic for one in target.groups({})] == [1]
