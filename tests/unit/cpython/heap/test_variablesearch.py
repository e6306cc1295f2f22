"""What variables lead to: names, distances, bounds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, List, Optional

import pytest

from postmortem.cpython.heap import variablesearch
from postmortem.cpython.heap.variablesearch import Named, User, VariableSearch, users_of
from postmortem.timelimits import TimeLimit

from ....support.pythonheap import Frame, Heap

FAR = 60.0


class Search(VariableSearch):
    """Notes what it comes to: objects of a class whose name begins with Wanted."""

    def __init__(self, heap: Heap, seconds: float = FAR) -> None:
        python: Any = heap
        super().__init__(python, TimeLimit(seconds))
        self.names: Dict[int, str] = {}

    def found_at(self, name: str, value: int, kind: str, user: User) -> Optional[Named]:
        if kind.startswith("Wanted"):
            self.names.setdefault(value, name)
            return ()
        return None


@pytest.fixture(autouse=True)
def instances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variablesearch, "attributes", Heap.attributes)


def user(frame: Frame, thread: int = 1) -> User:
    made: Any = frame
    return User(thread, None, made)


def test_names_are_those_of_the_program() -> None:
    """A variable has its own name, an attribute its class's too, an item its container's; and the way there."""
    heap = Heap()
    direct, part, item = heap.make("Wanted"), heap.make("Wanted"), heap.make("Wanted")
    jobs = heap.make("list", [item])
    service = heap.make("app.Service", jobs=jobs, part=part)
    search = Search(heap)
    search.look([user(Frame("main", {"direct": direct, "service": service}))])
    assert search.names == {direct: "direct", part: "Service.part", item: "Service.jobs[…]"}
    assert [name for _at, name in search.way_to(item)] == ["Service.jobs[…]", "Service.jobs", "service"]
    assert search.reached(0) == {direct, service}
    assert item not in search.reached(1) and item in search.reached(2)


def test_the_shortest_name_wins() -> None:
    """An object that a variable names directly is not called by the attribute that was met before."""
    heap = Heap()
    wanted = heap.make("Wanted")
    holder = heap.make("Holder", it=wanted)
    search = Search(heap)
    search.look([user(Frame("main", {"holder": holder, "it": wanted}))])
    assert search.names == {wanted: "it"}


def test_it_goes_so_far_and_no_farther() -> None:
    """Three steps from a variable by default."""
    heap = Heap()
    chain = [heap.make("Wanted")]
    for _ in range(4):
        chain.append(heap.make("Link", next=chain[-1]))
    search = Search(heap)
    search.look([user(Frame("main", {"head": chain[-1]}))])
    assert search.names == {}
    search = Search(heap)
    search.look([user(Frame("main", {"head": chain[-2]}))])
    assert search.names == {chain[0]: "Link.next"}


def test_what_is_the_interpreters_is_not_entered() -> None:
    """Modules, functions and event loops have much inside that the program did not put there."""
    heap = Heap()
    wanted = heap.make("Wanted")
    names = {kind: heap.make(kind, it=wanted) for kind in ("module", "function", "_UnixSelectorEventLoop", "str")}
    search = Search(heap)
    search.look([user(Frame("main", names))])
    assert search.names == {}


def test_globals_are_looked_at_once_a_module() -> None:
    """The program's own, without the names that every module has; none of the standard library's."""
    heap = Heap()
    one, two = heap.make("Wanted"), heap.make("Wanted")
    module = heap.make("dict", {"one": one, "__spec__": two})
    library = heap.make("dict", {"two": two})
    search = Search(heap)
    frames = [Frame("f", namespace=module), Frame("g", namespace=module)]
    search.look([*map(user, frames), user(Frame("get", namespace=library, file="/usr/lib/python3.12/queue.py"))])
    assert search.names == {one: "one"}
    assert heap.looked_at.count(one) == 1


def test_data_is_not_searched() -> None:
    """A list of ten thousand and more is data; of a shorter one the first items tell."""
    heap = Heap()
    wanted = heap.make("Wanted")
    short, late, long = (
        heap.make("list", [wanted]),
        heap.make("list", [heap.make("int")] * 40 + [wanted]),
        heap.make("list", [wanted] * 10_001),
    )
    for container, found in ((short, True), (late, False), (long, False)):
        search = Search(heap)
        search.look([user(Frame("main", {"rows": container}))])
        assert bool(search.names) is found


def test_garbage_hides_only_itself() -> None:
    """A variable that points nowhere, a dict that is damaged: the rest is found all the same. Circles end."""
    heap = Heap()
    wanted = heap.make("Wanted")
    node = heap.make("Node")
    heap.parts[node] = {"me": node, "bad": 0x77777, "it": wanted}
    search = Search(heap)
    search.look([user(Frame("main", {"bad": 0x99999, "node": node}, namespace=0x88888))])
    assert search.names == {wanted: "Node.it"}


def test_it_ends_when_its_time_is_up() -> None:
    """Then nothing more is visited."""
    heap = Heap()
    search = Search(heap, seconds=-1)
    search.look([user(Frame("main", {"it": heap.make("Wanted")}))])
    assert search.spent
    assert heap.looked_at == []


def test_the_programs_own_frames_come_first() -> None:
    """An object is called by what the program calls it, though a library's frame lies above."""
    heap = Heap()
    wanted = heap.make("Wanted")
    library = Frame("get", {"self": wanted}, file="/usr/lib/python3.12/queue.py")
    search = Search(heap)
    search.look([user(library), user(Frame("main", {"jobs": wanted}))])
    assert search.names == {wanted: "jobs"}


def test_a_thousand_tasks_alike_are_a_few() -> None:
    """A few stand for all tasks that run the same code; every thread counts, with a bounded number of frames."""
    frame = Frame("work", code=0x10)
    tasks: List[Any] = [SimpleNamespace(address=n, frames=[frame]) for n in range(1000)]
    other: Any = SimpleNamespace(address=5000, frames=[Frame("other", code=0x20)])
    states: List[Any] = [SimpleNamespace(address=n, frames=[frame] * 100) for n in range(3)]
    found = users_of(states, [*tasks, other])
    assert {one.task for one in found if one.task is not None} == {0, 1, 2, 3, 5000}
    assert sum(one.thread == 1 for one in found) == 60
