"""The walk up from what somebody waits for, over made references."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Sequence

import pytest

from postmortem.cpython.heap import reachability
from postmortem.cpython.heap.owners import Holder
from postmortem.cpython.heap.reachability import MAX_LEVELS, Reach, ReferredTo, Surroundings, Walk, walk
from postmortem.cpython.heap.referrers import Reference, References
from postmortem.cpython.heap.registries import Registry
from postmortem.cpython.heap.slots import CALLBACK, DICT, FIELD, ITEM, WEAK, Slot
from postmortem.cpython.objects.builtins import NotThat, TypeInfo
from postmortem.cpython.objects.wordsearch import OutOfTime
from postmortem.cpython.state.interpreter import ThreadState

LOCK, DEQUE, QUEUE, REGISTRY, MODULE, TASK, OTHER = range(0x1000, 0x8000, 0x1000)
WAITER = ThreadState(1, 0, 1, 11, None, name="waiter")
STRANGER = ThreadState(2, 0, 2, 12, None, name="stranger")
NAMES = {
    LOCK: "_thread.lock",
    DEQUE: "collections.deque",
    QUEUE: "Queue",
    REGISTRY: "dict",
    TASK: "_asyncio.Task",
    OTHER: "_asyncio.Task",
}


class Objects:
    """As much of ``Objects`` as a walk asks for."""

    def type_name(self, address: int) -> Optional[str]:
        return NAMES.get(address)

    def is_instance(self, address: int, name: str) -> bool:
        return NAMES.get(address) == name


def held(by: int, how: Slot = ITEM, counted: bool = True, kind: Any = "all") -> Reference:
    info = TypeInfo(1, NAMES.get(by, "object"), 0, 64, 0, 0)
    return Reference(by + 32, counted, how, Holder(by, info, kind, by + 64))


def on_stack(thread: ThreadState) -> Reference:
    frame: Any = SimpleNamespace(function="work", code=SimpleNamespace(address=0x9000), is_in=lambda *_names: False)
    return Reference(8, True, Slot("local", "it"), None, thread, frame)


def kept(kind: Any, thread: Optional[ThreadState] = None) -> Reference:
    """A reference that C code keeps outside of objects."""
    return Reference(16, True, Slot("field"), registry=Registry(kind, thread))


class Memory:
    """``Referrers`` with made answers: each object's own count, and what was found."""

    registries: Any = None

    def __init__(self, known: Dict[int, References], namespaces: Optional[Dict[int, int]] = None) -> None:
        self._known = known
        self.holders: Any = SimpleNamespace(namespace=lambda holder: (namespaces or {}).get(holder.address))

    def of(self, addresses: Sequence[int]) -> Dict[int, References]:
        return {address: self._known[address] for address in addresses}


def where(way: Sequence[reachability.Step]) -> str:
    """A way as people read it."""
    return " → ".join(step.text for step in way)


def counted(*found: Reference, count: Optional[int] = None) -> References:
    return References(count if count is not None else sum(1 for r in found if r.counted), list(found))


def climbed(
    known: Dict[int, References],
    namespaces: Optional[Dict[int, int]] = None,
    main: Optional[ThreadState] = None,
    **around: Any,
) -> Reach:
    surroundings = Surroundings(**{"threads": {1}, "tasks": set(), "pending": set(), "subject": QUEUE, **around})
    python: Any = SimpleNamespace(objects=Objects(), main_thread=main)
    referrers: Any = Memory(known, namespaces)
    one = Walk(python, referrers, surroundings, {TASK: "mine", OTHER: "other"}, [LOCK])
    walk(referrers, [one])
    return one.reach


def own(**more: References) -> Dict[int, References]:
    """A lock in a deque in a queue that the waiting thread alone refers to."""
    return {
        LOCK: counted(on_stack(WAITER), held(DEQUE)),
        DEQUE: counted(held(QUEUE, Slot("attribute", "_waiters"))),
        QUEUE: counted(on_stack(WAITER)),
    }


def test_what_only_its_waiter_refers_to_is_out_of_reach() -> None:
    """Nobody is met, nothing is missing, and each object on the way has its sentence."""
    reach = climbed(own())
    assert reach.complete and reach.actors == [] and len(reach.steps) == 3
    assert ReferredTo("the Queue", 1, ("local it of work (on the waiting thread's own stack)",)) in reach.steps


@pytest.mark.parametrize("short", [LOCK, DEQUE, QUEUE])
def test_one_reference_that_is_not_found_spoils_the_proof(short: int) -> None:
    """Wherever on the way it is missing."""
    known = own()
    known[short].count = (known[short].count or 0) + 1
    reach = climbed(known)
    assert not reach.complete and reach.obstacle is not None and reach.obstacle.kind == "uncounted"


@pytest.mark.parametrize("count", [None, 0])
def test_counts_that_tell_nothing_prove_nothing(count: Optional[int]) -> None:
    """An object without a count, and one of which more references were found than it has."""
    known = own()
    known[DEQUE].count = count
    assert not climbed(known).complete


def test_another_threads_frame_is_met() -> None:
    """The list is complete, and he is on it."""
    reach = climbed({**own(), QUEUE: counted(on_stack(WAITER), on_stack(STRANGER))})
    assert reach.complete and [actor.thread for actor in reach.actors] == [STRANGER]


def test_a_global_may_be_used_by_anybody() -> None:
    """The way to the object is told, without what the object consists of."""
    known = {
        **own(),
        QUEUE: counted(held(REGISTRY, Slot("value", "q"))),
        REGISTRY: counted(held(MODULE, Slot("value", "ALL"))),
    }
    reach = climbed(known, modules={MODULE: "app"})
    assert not reach.complete and [where(actor.way) for actor in reach.actors] == ["global ALL of app → the Queue"]


def test_a_task_that_does_not_wait_is_met_and_one_that_does_is_not() -> None:
    """A reference of the waiting task is no way out; of any other it is."""
    waiting = climbed({**own(), QUEUE: counted(held(TASK, FIELD))}, tasks={TASK}, pending={TASK, OTHER})
    assert waiting.complete and waiting.actors == []
    other = climbed({**own(), QUEUE: counted(held(OTHER, FIELD))}, tasks={TASK}, pending={TASK, OTHER})
    assert other.complete and [actor.task for actor in other.actors] == [OTHER]


def test_a_task_that_was_not_read_may_do_anything() -> None:
    """It is no mere object because it is not among those known."""
    assert not climbed({**own(), QUEUE: counted(held(OTHER, FIELD))}).complete


def test_weak_references_are_followed() -> None:
    """From one in asyncio's own list nothing follows, from any other the way goes on; one that cannot be read may be
    anywhere."""
    weak = held(REGISTRY, WEAK, counted=False)
    known = {**own(), QUEUE: counted(on_stack(WAITER), weak), REGISTRY: counted(held(MODULE))}
    assert climbed(known, registries={MODULE}).complete
    assert not climbed(known, modules={MODULE: "app"}).complete
    lost = own()
    lost[QUEUE].weak = 1
    assert not climbed(lost).complete


def test_the_callback_of_a_weak_reference_may_be_called_any_time() -> None:
    """By whoever drops what it refers to."""
    assert not climbed({**own(), QUEUE: counted(held(REGISTRY, CALLBACK))}).complete


def test_what_a_thread_was_started_with_is_its_own() -> None:
    """As its state is: the waiting thread itself cannot act, another one can."""
    for kind in ("start", "thread"):
        assert climbed({**own(), QUEUE: counted(kept(kind, WAITER))}).actors == []
        (actor,) = climbed({**own(), QUEUE: counted(kept(kind, STRANGER))}).actors
        assert actor.thread is STRANGER


def test_a_queued_job_is_met_by_the_workers_that_do_not_wait() -> None:
    """Only workers take jobs out of a pool's queue: other references to the queue are no actors."""
    known = {**own(), QUEUE: counted(on_stack(WAITER), held(OTHER, Slot("attribute", "fn")))}
    reach = climbed(known, queued={OTHER: (WAITER, STRANGER)})
    assert reach.complete and [actor.thread for actor in reach.actors] == [STRANGER]
    assert reach.queued == {OTHER} and where(reach.actors[0].way) == "a job in the queue of its pool → the Queue"


def test_callbacks_of_atexit_are_called_by_the_main_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """When its code has ended: never, if it is the one that waits; else what it then calls is not in its frames."""
    known, callables = {**own(), QUEUE: counted(kept("exit"))}, (0xA000,)
    monkeypatch.setattr(Memory, "registries", SimpleNamespace(exit_callables=lambda: callables))
    reach = climbed(known, main=WAITER)
    assert reach.complete and (reach.actors, reach.at_exit) == ([], ())
    reach = climbed(known, main=STRANGER)
    assert ([actor.thread for actor in reach.actors], reach.at_exit) == ([STRANGER], callables)


@pytest.mark.parametrize(("kind", "accounted"), [("signal", True), ("interpreter", True), ("static", False)])
def test_what_c_code_keeps_is_known_to_others(kind: str, accounted: bool) -> None:
    """Handlers of signals are agents of their own, and hooks wait for events; variables of C code run what nobody knows."""
    reach = climbed({**own(), QUEUE: counted(kept(kind))})
    assert not reach.complete and reach.accounted is accounted


def test_what_fork_left_behind_can_be_used_by_nobody() -> None:
    """It accounts for a reference, and is said; that the place holds just that reference is presumed, which proves nothing."""
    left = kept("lost")._replace(presumed=True)
    reach = climbed({**own(), QUEUE: counted(left)})
    assert (reach.actors, reach.left_behind, reach.accounted, reach.complete) == ([], True, True, False)


def test_a_global_is_no_end_of_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What else refers to the object is counted all the same; a global that leads through a generator runs its code."""
    known = {
        **own(),
        QUEUE: counted(held(REGISTRY), held(OTHER)),
        REGISTRY: counted(held(MODULE, Slot("value", "KEPT"))),
    }
    monkeypatch.setitem(NAMES, OTHER, "list")
    reach = climbed({**known, OTHER: counted()}, modules={MODULE: "app"})
    assert reach.accounted and not reach.complete
    assert not climbed({**known, OTHER: counted(count=1)}, modules={MODULE: "app"}).accounted
    monkeypatch.setitem(NAMES, REGISTRY, "generator")
    assert not climbed({**known, OTHER: counted()}, modules={MODULE: "app"}).accounted


def test_the_dict_of_an_instance_is_a_way_to_its_values() -> None:
    """Where they lie in the instance, nothing of the dict refers to them."""
    known = {**own(), REGISTRY: counted(held(QUEUE, DICT), held(MODULE, Slot("value", "KEPT")))}
    assert climbed(known).complete
    assert not climbed(known, {QUEUE: REGISTRY}, modules={MODULE: "app"}).complete


def test_a_way_without_end_is_given_up() -> None:
    """Objects that refer to each other in a row longer than is followed: unknown, and no hang."""
    known = {0x1000 * n: counted(held(0x1000 * (n + 1))) for n in range(1, MAX_LEVELS + 10)}
    assert not climbed(known).complete


def test_a_circle_has_an_end() -> None:
    """Objects that refer only to each other are out of reach."""
    assert climbed({**own(), QUEUE: counted(held(DEQUE))}).complete


def test_a_search_that_fails_says_why() -> None:
    """Nothing is raised."""

    class Failing(Memory):
        def of(self, addresses: Sequence[int]) -> Dict[int, References]:
            raise NotThat("no time")

    referrers: Any = Failing({})
    python: Any = SimpleNamespace(objects=Objects())
    walks: List[Walk] = [Walk(python, referrers, Surroundings({1}, set(), set()), {}, [LOCK])]
    walk(referrers, walks)
    assert walks[0].reach.obstacle == reachability.Obstacle("unreadable", "no time") and not walks[0].reach.complete


def test_a_search_that_runs_out_of_time_says_that() -> None:
    """It is another reason than memory that cannot be read: more time, or a faster search, would help."""

    class Late(Memory):
        def of(self, addresses: Sequence[int]) -> Dict[int, References]:
            raise OutOfTime("late")

    referrers: Any = Late({})
    python: Any = SimpleNamespace(objects=Objects())
    walks: List[Walk] = [Walk(python, referrers, Surroundings({1}, set(), set()), {}, [LOCK])]
    walk(referrers, walks)
    assert walks[0].reach.obstacle == reachability.Obstacle("late")


def test_what_stands_in_the_ready_queue_waits_for_the_thread_of_its_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else takes it from there. Of a loop that no thread runs, and of what the program keeps on it, anybody may."""
    loop, running = 0x9000, {"_thread_id": 0xABC}
    monkeypatch.setitem(NAMES, loop, "BaseEventLoop")
    monkeypatch.setattr(reachability, "attribute", lambda _objects, _address, name: running.get(name))
    monkeypatch.setattr(Objects, "integer_or_none", lambda _self, at: STRANGER.ident if at else None, raising=False)
    ready = {**own(), QUEUE: counted(held(loop, Slot("attribute", "_ready")))}
    reach = climbed(ready, of_threads={1: WAITER, 2: STRANGER})
    assert reach.complete and [(where(a.way), a.thread) for a in reach.actors] == [
        ("the ready queue of its event loop → the Queue", STRANGER)
    ]
    inside = {**own(), QUEUE: counted(held(REGISTRY, Slot("value", "_ready"))), REGISTRY: counted(held(loop, DICT))}
    reach = climbed(inside, of_threads={2: STRANGER})
    assert [actor.thread for actor in reach.actors] == [STRANGER]
    assert not climbed(
        {**own(), QUEUE: counted(held(loop, Slot("attribute", "app")))}, of_threads={2: STRANGER}
    ).complete
    running.clear()
    assert not climbed(ready, of_threads={2: STRANGER}).complete
