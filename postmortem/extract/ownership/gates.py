"""Gates: pools, limiters and the like that agents wait for, found by structure, with the holders of their parts.

- An agent that waits inside a method of an object, up to the program's own frame, may want a part of that object.
- An agent holds a part if it is in a `with` body that began in such a method, if its frames lead to something that the
  object lent, or if the object lists the agent itself.

An object is a gate only if it has lent something: see ``frameworks.lending``. Conditions, events, queues and futures are
no gates around themselves, nor are the locks of the standard library and of the frameworks. A lock of another library or of the
program itself, such as one for readers and writers, is a gate that lends the whole: whose thread is in a `with` body of it, or is
recorded as its writer or owner, holds it.
"""

from __future__ import annotations

import ast
import itertools
from typing import Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.heap.parts import Parts
from ...evidence import HeldLock, PythonFrame, Resource, Waker, fact
from ...evidence import replace as changed
from ...evidence.vocabulary import ResourceKind, WakerBasis
from ...frameworks.lending import GIVES, Lending, Numbers, Taking
from ...sourcepaths import is_program, is_stdlib
from ...timelimits import TimeLimit
from ..process.context import PythonContext
from ..waits.numbering import numbered
from .ownership import plain
from .reached import Agent, Reached, Root

#: Kinds of inner objects that a pool's waiters sleep on; None: unknown, as in other frameworks' tasks.
_INNER: FrozenSet[Optional[ResourceKind]] = frozenset((
    "condition", "event", "semaphore", "queue", "future",
    "async-condition", "async-event", "async-semaphore", "async-queue", "async-future", None,
))  # fmt: skip
_NO_GATES = ("Condition", "Event", "Future", "Barrier", "Thread", "Task")
#: Ends of names of classes that are locks, and packages whose locks are read as such.
_LOCKS, _READ_ELSEWHERE = ("Lock", "Mutex"), frozenset(("asyncio", "anyio", "trio", "gevent", "eventlet", "threading"))
#: Parts of names of attributes that have a lock's holder.
_HOLDERS = ("owner", "writer", "holder")
#: Methods that end an object, or wait for its end: an agent in one wants no part of it.
_CLOSING = frozenset((
    "close", "aclose", "wait_closed", "shutdown", "stop", "join", "terminate", "disconnect", "quit", "dispose", "__exit__",
    "__aexit__", "__del__",
))  # fmt: skip
_MAX_DEPTH, _MOST_CANDIDATES, _MOST_OWN = 60, 8, 3
_MOST_GATES, _MOST_NESTED = 200, 3
_MAX_SEARCHED, _MOST_BODIES = 300, 20_000
#: Time for all gates of a process, without the walk from its frames.
SECONDS = 1.0


class Waiting(NamedTuple):
    """An agent that waits, with its frames, most recent call first.

    ``inner``: address of the object that it sleeps on; ``resource``: its id.
    """

    agent: Agent
    frames: Sequence[Frame]
    inner: Optional[int]
    kind: Optional[ResourceKind]


class _Wants(NamedTuple):
    """A waiter of an object; frames up to ``depth`` are inside of its methods."""

    waiting: Waiting
    depth: int


class _Claim(NamedTuple):
    """A part that an agent holds."""

    agent: Agent
    basis: WakerBasis
    root: Optional[Root]
    part: int = 0


class Gates:
    """A search for the gates of one process; used once."""

    def __init__(self, context: PythonContext) -> None:
        self._context, self._python = context, context.python
        self._parts = Parts(context.python.objects)
        self._lending = Lending(context.python.frames, self._parts)
        self._shown = plain(context.python.frames)
        self._stacks: Dict[Agent, Sequence[Frame]] = {}
        self._tasks: Mapping[int, str] = {}
        self._reached: Optional[Reached] = None
        self._bodies: List[Tuple[int, Root]] = []
        #: Agent → id of the resource.
        self.gates: Dict[Agent, str] = {}
        #: tid → gates that are locks and that the thread holds.
        self.held: Dict[int, List[HeldLock]] = {}
        self._owned: Dict[int, _Claim] = {}  # lock → the only claim to it
        self.resources: Tuple[Resource, ...] = ()

    def find(self, waiting: Sequence[Waiting], stacks: Dict[Agent, Sequence[Frame]], tasks: Mapping[int, str]) -> None:
        """Find all gates.

        - ``stacks``: frames of every agent
        - ``tasks``: address of a task → its id
        """
        self._stacks, self._tasks = stacks, tasks
        wanted: Dict[int, List[_Wants]] = {}
        for one in waiting:
            for thing, depth in self._candidates(one) if one.kind in _INNER else ():
                wanted.setdefault(thing, []).append(_Wants(one, depth))
        found: Dict[int, Resource] = {}
        if wanted:
            self._bodies = list(itertools.islice(self._entered(), _MOST_BODIES))
            self._reach()
        limit = TimeLimit(SECONDS)
        # those with the most waiters first: an object that each thread has for itself is no pool
        for thing, wants in sorted(wanted.items(), key=lambda one: -len(one[1]))[:_MOST_GATES]:
            if limit.passed():
                break
            made = self._lock(thing, wants) if self._is_lock(thing) else self._gate(thing, wants)
            if made is not None:
                found[thing] = made
        self._settle(wanted, found)

    def _settle(self, wanted: Dict[int, List[_Wants]], found: Dict[int, Resource]) -> None:
        """Give each waiter its innermost gate, and number the gates that anybody waits for."""
        inmost: Dict[Agent, Tuple[int, int]] = {}
        for thing in found:
            for want in wanted[thing]:
                known = inmost.get(want.waiting.agent)
                if known is None or want.depth < known[0]:
                    inmost[want.waiting.agent] = (want.depth, thing)
        resources: List[Resource] = []
        for thing, resource in found.items():
            agents = [agent for agent, (_depth, chosen) in inmost.items() if chosen == thing]
            if not agents:
                continue
            ident = f"pool-{len(resources) + 1}"
            self.gates.update(dict.fromkeys(agents, ident))
            self._note_held(thing, ident)
            resources.append(
                changed(
                    resource,
                    id=ident,
                    waiters=tuple(agent.tid for agent in agents if agent.tid is not None),
                    waiting_tasks=tuple(agent.task for agent in agents if agent.task is not None),
                )
            )
        self.resources = tuple(numbered(resources))

    def _note_held(self, thing: int, ident: str) -> None:
        """Note who holds a lock, if a frame shows since when."""
        claim = self._owned.get(thing)
        since = self._since(claim) if claim is not None and claim.root is not None else None
        if claim is not None and claim.agent.tid is not None and claim.root is not None and since is not None:
            held = HeldLock(ident, since, claim.root.depth, "inferred")
            self.held.setdefault(claim.agent.tid, []).append(held)

    # ------------------------------------------------------------------ candidates

    def _candidates(self, waiting: Waiting) -> Iterator[Tuple[int, int]]:
        """Yield (object, index of its outermost frame) of the objects in whose methods an agent waits, innermost first."""
        own, seen = 0, {waiting.inner}
        for depth, frame in enumerate(waiting.frames[:_MAX_DEPTH]):
            thing = self._self(frame)
            program = _is_own(frame)
            if thing is not None and thing not in seen and not is_stdlib(frame.code.filename):
                seen.add(thing)
                until = self._until(waiting.frames, depth, thing)
                if self._may_lend(thing) and waiting.frames[until].code.name not in _CLOSING:
                    yield thing, until
                if len(seen) > _MOST_CANDIDATES:
                    return
            own += program
            if own > _MOST_OWN or (program and thing is None):
                return

    def _until(self, frames: Sequence[Frame], depth: int, thing: int) -> int:
        """Return the index of the outermost frame up to which an agent is inside an object's methods.

        A method that runs a second time further out took its part then: a retry that calls itself, for example.
        """
        last, codes = depth, {frames[depth].code.address}
        for index, frame in enumerate(frames[depth + 1 : _MAX_DEPTH], depth + 1):
            if self._self(frame) == thing:
                if frame.code.address in codes:
                    break
                codes.add(frame.code.address)
                last = index
            elif _is_own(frame):
                break
        return last

    def _self(self, frame: Frame) -> Optional[int]:
        return self._python.frames.local(frame, "self")

    def _may_lend(self, thing: int) -> bool:
        kind = self._parts.type_of(thing)
        name = (self._python.objects.type_name(thing) or "").rpartition(".")[2]
        if kind is None or not self._parts.is_plain(thing) or not name or name.endswith(_NO_GATES):
            return False
        return not name.endswith(_LOCKS) or self._parts.module(kind).partition(".")[0] not in _READ_ELSEWHERE

    def _is_lock(self, thing: int) -> bool:
        return (self._python.objects.type_name(thing) or "").endswith(_LOCKS)

    # ------------------------------------------------------------------ locks

    def _lock(self, thing: int, wants: Sequence[_Wants]) -> Optional[Resource]:
        """Return the resource of a lock that threads hold, without id and waiters; None if nobody is known to hold it.

        What entering it means is inferred from its name: of a lock for readers and writers, who reads holds it, too.
        """
        inside = {want.waiting.agent: want.depth for want in wants if want.waiting.agent.tid is not None}
        taking = self._taking(thing, wants)
        claims = [
            _Claim(root.agent, "inferred", root, manager)
            for manager, root in self._bodies
            if root.agent.tid is not None and root.depth > inside.get(root.agent, -1) and self._enters(manager, taking)
        ]
        agents = dict.fromkeys(claim.agent for claim in claims) or dict.fromkeys(self._recorded(thing))
        if not inside or not agents:
            return None
        made = Resource("", "lock", self._named(thing, wants), locked=True)
        if len(agents) > 1:
            return changed(made, wakers=tuple(map(self._waker, claims)))
        (agent,) = agents
        self._owned[thing] = next((claim for claim in claims if claim.agent == agent), _Claim(agent, "inferred", None))
        return changed(made, owner_tid=agent.tid, owner_basis="inferred")

    def _enters(self, manager: int, taking: Taking) -> bool:
        """Return whether a method of the lock made a context manager, or entering it did what others now wait in."""
        generator = self._python.locks.generator_frame(manager)
        made = generator is not None and self._self(generator) == taking.thing
        return made or self._lending.begins(manager, generator, taking)

    def _recorded(self, thing: int) -> Iterator[Agent]:
        """Yield the threads that the lock's own attributes name as its holder."""
        for name, value in self._parts.attributes(thing).items():
            agent = self._agent(value) if any(part in name for part in _HOLDERS) else None
            if agent is not None and agent.tid is not None:
                yield agent

    # ------------------------------------------------------------------ one gate

    def _gate(self, thing: int, wants: Sequence[_Wants]) -> Optional[Resource]:
        """Return the resource of an object, without id and waiters; None if nothing shows that it lends."""
        taking = self._taking(thing, wants)
        inside = {want.waiting.agent: want.depth for want in wants}
        numbers, idle = self._lending.numbers(thing), self._lending.idle(thing)
        requests = self._requests(thing, wants)
        by_with = list(self._by_with(taking, inside))
        listed = list(self._themselves(thing, inside, numbers.limits))
        several = [by_with, listed]
        if any(self._is_called(want) for want in wants):
            several += self._by_reference(taking, inside, requests, numbers.limits, idle, numbers.empty)
            several += self._by_list(taking, inside, requests, numbers.limits, idle)
        claims = _most(several) or list(self._by_call(taking, wants, inside))
        # that all is out may be known although nobody's frames lead to it
        asked = not idle and any(map(self._is_called, wants))
        full = self._lending.is_full(taking, requests, lambda one: self._agent(one) is not None) if asked else None
        if not claims and full is None and asked and self._returns(taking):
            full = self._lending.emptied(taking, {want.waiting.inner for want in wants})
        if not claims and full is None:
            return None
        limit = _limit(numbers.limits, len(claims)) or full
        left = 0 if full is not None else _left(numbers, idle, limit, len(claims))
        closed = limit is not None and len(claims) == limit and not left
        return Resource(
            "",
            "pool",
            self._described(thing, wants, limit, limit if full is not None and limit else len(claims)),
            wakers=tuple(self._waker(claim) for claim in claims),
            closed=True if closed else None,
            because=(fact("parts-held", limit=limit, held=len(claims)),) if closed else (),
            value=left,
            limit=limit,
        )

    def _taking(self, thing: int, wants: Sequence[_Wants]) -> Taking:
        """Return the methods of an object in which agents wait."""
        inside = [f for w in wants for f in w.waiting.frames[: w.depth + 1] if self._self(f) == thing]
        codes = {frame.code.address: frame for frame in inside}
        return Taking(thing, frozenset(codes), frozenset(f.code.name for f in inside), tuple(codes.values()))

    def _is_called(self, want: _Wants) -> bool:
        """Return whether the program called the object's method: not the loop of a thread or task of its own."""
        return any(not is_stdlib(frame.code.filename) for frame in want.waiting.frames[want.depth + 1 :])

    def _requests(self, thing: int, wants: Sequence[_Wants]) -> Set[int]:
        """Return the classes of requests for parts: what waiters have inside the object's methods, or sleep on a part of."""
        found: Set[int] = set()
        for want in wants:
            for around in self._reach().referring(want.waiting.inner or 0):
                kind = self._parts.type_of(around) if around != thing else None
                if kind is not None:
                    found.add(kind)
            for frame in want.waiting.frames[: want.depth + 1]:
                for _name, value in list(self._python.frames.locals(frame))[:50]:
                    kind = self._parts.type_of(value) if value != thing and self._parts.is_plain(value) else None
                    if kind is not None:
                        found.add(kind)
        return found

    # ------------------------------------------------------------------ holders

    def _by_with(self, taking: Taking, inside: Mapping[Agent, int]) -> Iterator[_Claim]:
        """Yield the agents in `with` bodies that the object began."""
        for manager, root in self._bodies:
            if root.depth > inside.get(root.agent, -1) and self._lends(manager, taking, _MOST_NESTED):
                yield _Claim(root.agent, "with-slot", root, manager)

    def _entered(self) -> Iterator[Tuple[int, Root]]:
        """Yield the context managers of all `with` bodies; while one is being entered, no handler occupies its slot yet."""
        for agent, frames in self._stacks.items():
            for depth, frame in enumerate(frames[:_MAX_SEARCHED]):
                for manager, line in self._python.locks.managers(frame):
                    if line is not None:
                        yield manager, Root(agent, depth, None, line)

    def _lends(self, manager: int, taking: Taking, nested: int) -> bool:
        generator = self._python.locks.generator_frame(manager)
        if self._lending.begins(manager, generator, taking):
            return True
        inner = self._python.locks.managers(generator) if generator is not None and nested else ()
        return any(self._lends(one, taking, nested - 1) for one, _line in inner)

    def _themselves(self, thing: int, inside: Mapping[Agent, int], limits: Sequence[int]) -> Iterator[_Claim]:
        """Yield the agents that the object itself lists as holders, as many as it lends: tasks, threads or idents."""
        for members in self._lending.members(thing):
            found = [agent for agent in map(self._agent, members) if agent is not None]
            if len(set(found)) in limits and inside.keys().isdisjoint(found):
                yield from (_Claim(agent, "recorded", None) for agent in dict.fromkeys(found))
                return

    def _agent(self, value: int) -> Optional[Agent]:
        task = self._tasks.get(value)
        if task is not None:
            return Agent(task=task)
        tid = self._context.threads.tid_of_object(value)
        if tid is None and self._python.objects.type_name(value) == "int":
            number = self._python.objects.integer_or_none(value)
            tid = self._context.threads.tid_of_ident(number) if number is not None and number > 1 << 16 else None
        return Agent(tid=tid) if tid is not None else None

    def _by_reference(
        self,
        taking: Taking,
        inside: Mapping[Agent, int],
        requests: Set[int],
        limits: Sequence[int],
        idle: Set[int],
        empty: bool,
    ) -> Iterator[List[_Claim]]:
        """Yield, for each class of objects that the object made and that refer to it, who has them."""
        reached, returns = self._reach(), self._returns(taking)
        kinds: Dict[int, List[int]] = {}
        known = reached.referring(taking.thing)
        for lent in known:
            kind = self._parts.type_of(lent)
            if kind is None or kind in requests or self._agent(lent) is not None:
                continue
            if not self._lending.opens(lent, taking.thing):
                kinds.setdefault(kind, []).append(lent)
        for kind, things in kinds.items():
            made = self._lending.makes(taking, kind)
            if made is False and self._lending.marks(taking, set.intersection(*(known[lent] for lent in things))):
                made = None
            claims = self._held(self._lending.out(things, idle), taking.thing, inside) if made is not False else []
            if limits and len(claims) > max(limits):
                continue
            if made or (returns and (len(claims) in limits or (len(claims) > 1 and empty and not idle))):
                yield claims

    def _by_call(self, taking: Taking, wants: Sequence[_Wants], inside: Mapping[Agent, int]) -> Iterator[_Claim]:
        """Yield the agents whose functions, according to their source, took a part and did not give it back."""
        takes = {want.waiting.frames[want.depth].code.name for want in wants}
        returns = self._returns(taking) - takes
        for agent, frames in self._stacks.items() if returns else ():
            for depth, frame in enumerate(frames[:_MAX_SEARCHED]):
                if depth <= inside.get(agent, -1) or is_stdlib(frame.code.filename):
                    continue
                lines = self._context.acquires.borrowed(frame, taking.thing, takes, returns)
                if lines and self._context.acquires.pairs(frame.code.filename, takes, returns):
                    yield from (_Claim(agent, "inferred", Root(agent, depth, None, line)) for line in lines)

    def _returns(self, taking: Taking) -> Set[str]:
        """Return the names of an object's methods that give back what those in which others wait took."""
        acquires = self._context.acquires
        return {
            name
            for name, code, used in self._lending.returns(taking)
            if acquires.gives(code.filename, code.name, code.firstlineno, used, GIVES)
        }

    def _by_list(
        self, taking: Taking, inside: Mapping[Agent, int], requests: Set[int], limits: Sequence[int], idle: Set[int]
    ) -> Iterator[List[_Claim]]:
        """Yield, for each class of objects that the object lists as its parts, who has them."""
        for listed in self._lending.listed(taking.thing, idle):
            if listed.kind in requests or not listed.out or any(map(self._agent, listed.out)):
                continue
            used = listed.sure or not listed.names.isdisjoint(self._lending.uses(taking))
            if (used and len(listed.out) in limits) or (listed.sure and not limits and self._returns(taking)):
                yield self._held(listed.out, taking.thing, inside)

    def _held(self, things: Sequence[int], thing: int, inside: Mapping[Agent, int]) -> List[_Claim]:
        """Return who has each of some lent objects: the one agent whose frames lead to it in the fewest steps.

        Of several one that is in the body of a `with` statement that leads to it.
        """
        reached, claims = self._reach(), []
        for lent in things:
            nearest: List[Tuple[int, Root]] = []
            by_with: Set[Agent] = set()
            for agent in reached.agents(lent):
                ways = [
                    (way.steps, -way.root.depth, way.root)
                    for way in reached.ways(agent, lent, thing)
                    if way.root.depth > inside.get(agent, -1) and not (way.steps == 0 and way.root.name == "self")
                ]
                if ways:
                    steps, _depth, root = min(ways, key=lambda way: way[:2])
                    nearest.append((steps, root))
                    if any(root.name is None and root.line is not None for _steps, _depth, root in ways):
                        by_with.add(agent)
            least = min((steps for steps, _root in nearest), default=0)
            roots = [root for steps, root in nearest if steps == least]
            if len(roots) > 1:  # a variable may be left from a `with` statement that is over
                roots = [root for root in roots if root.agent in by_with]
            if len(roots) == 1:
                claims.append(_Claim(roots[0].agent, "memory", roots[0], lent))
        return claims

    def _reach(self) -> Reached:
        if self._reached is None:
            self._reached = Reached(self._python, self._parts, self._stacks)
        return self._reached

    # ------------------------------------------------------------------ results

    def _waker(self, claim: _Claim) -> Waker:
        return Waker("holder", claim.basis, tid=claim.agent.tid, task=claim.agent.task, frame=self._since(claim))

    def _since(self, claim: _Claim) -> Optional[PythonFrame]:
        """Return the line of the program since which an agent holds its part; None if unknown."""
        frames = self._stacks.get(claim.agent, ())
        if claim.root is None:
            own = next((frame for frame in frames if _is_own(frame)), None)
            return self._shown(own) if own is not None else None
        at = claim.root.depth
        depth = next((i for i in range(at, len(frames)) if _is_own(frames[i])), at)
        frame = frames[depth]
        line = claim.root.line if depth == at else None
        if line is None and depth == at and claim.root.name is not None:
            line = self._assigned(frame, claim.root.name)
        return self._shown(frame).at(line or frame.line)

    def _assigned(self, frame: Frame, name: str) -> Optional[int]:
        """Return the last line before a frame's current one that binds a variable; None if the source is not available."""
        function, now = self._context.acquires.function(frame), frame.line
        if function is None or now is None:
            return None
        bound = (
            node.lineno
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
        )
        return max((line for line in bound if line <= now), default=None)

    def _described(self, thing: int, wants: Sequence[_Wants], limit: Optional[int], held: int) -> str:
        size = f"size {limit}, " if limit is not None else ""
        return f"{self._named(thing, wants)} ({size}{held} in use)"

    def _named(self, thing: int, wants: Sequence[_Wants]) -> str:
        objects = self._python.objects
        kind = self._parts.type_of(thing)
        module = self._parts.module(kind) if kind is not None else ""
        name = (objects.type_name(thing) or "object").rpartition(".")[2]
        called = f"{module}.{name}" if module and module != "__main__" else name
        users = [f for want in wants[:3] for f in want.waiting.frames[want.depth + 1 : want.depth + 6]]
        of_program = self._context.names.find(lambda value: value == thing, users)
        if of_program is not None and "._" in of_program:
            of_program = None  # an attribute of something that it lent
        return f"{called}{f' {of_program}' if of_program else ''}"


def _is_own(frame: Frame) -> bool:
    """Return whether a frame is the program's, with a file: libraries generate code without one."""
    return is_program(frame.code.filename) and not frame.code.filename.startswith("<")


def _most(several: Sequence[Sequence[_Claim]]) -> List[_Claim]:
    """Return, for each agent, the longest list of its claims; parts that several ways show are counted once."""
    best: Dict[Agent, List[_Claim]] = {}
    for claims in several:
        by_agent: Dict[Agent, Dict[int, _Claim]] = {}
        for number, claim in enumerate(claims):
            by_agent.setdefault(claim.agent, {}).setdefault(claim.part or -number - 1, claim)
        for agent, own in by_agent.items():
            if len(own) > len(best.get(agent, ())):
                best[agent] = list(own.values())
    return [claim for own in best.values() for claim in own]


def _left(numbers: Numbers, idle: Set[int], limit: Optional[int], held: int) -> Optional[int]:
    """Return the number of parts that nobody has; None if unknown."""
    if numbers.left is not None:
        return numbers.left
    if limit is not None:
        return max(0, limit - held)
    return len(idle) if idle or numbers.empty else None


def _limit(limits: Sequence[int], held: int) -> Optional[int]:
    """Return the limit among the numbers that may be it: the one that the found parts reach, else the only one."""
    if held in limits:
        return held
    above = [number for number in limits if number > held]
    return above[0] if len(above) == 1 else None
