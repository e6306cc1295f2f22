"""Inference from source of locks taken by a plain ``x.acquire()``.

Memory does not record the caller of ``acquire``. A frame very likely holds a lock in either of two cases:

- its function acquires the lock before the current line and does not release it on the way, itself or in a function
  that it called and that has returned (``begin()``, ``hold_log()``)
- its function will release a lock that it has not acquired itself (``commit()``)

Both are inferences and are marked as such. An item taken out of a queue and not yet put back is treated in the same
way.
"""

from __future__ import annotations

import ast
from typing import (
    Callable,
    Collection,
    Dict,
    Hashable,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Set,
    Tuple,
    TypeVar,
)

from ...cpython.frames.frame import Frame, Frames
from ...cpython.frames.names import MACHINERY
from ...cpython.objects.attributes import attribute, class_value
from ...cpython.objects.builtins import NotThat
from ...memory import Fault
from ...sourcepaths import is_stdlib
from ..sourcecode.callsites import (
    CallSite,
    Function,
    Source,
    Span,
    calls_before,
    calls_from,
    function_at,
    function_from,
    named_methods,
    parameters,
    parse,
    spawned_calls,
    with_calls,
    with_paths,
)

Lines = Callable[[str], Optional[List[str]]]
Verbs = Mapping[str, bool]
K = TypeVar("K", bound=Hashable)

#: Methods that take something (True) or give it back (False).
LOCKS: Verbs = {"acquire": True, "release": False}
QUEUES: Verbs = {"get": True, "get_nowait": True, "put": False, "put_nowait": False}
#: Methods of contextlib.ExitStack that enter their argument (True) or leave everything entered (False).
_STACKS: Verbs = {"enter_context": True, "close": False, "pop_all": False}
#: Classes of locks, semaphores and queues: the standard library's, Twisted's, and gevent's where they are compiled or reentrant.
_OWN = (
    "Lock", "Condition", "Semaphore", "Queue", "SemLock", "_multiprocessing.SemLock",
    "gevent._gevent_c_semaphore.Semaphore", "gevent._gevent_cqueue.SimpleQueue", "gevent._gevent_cqueue.Queue", "RLock",
    "_RLock", "DeferredLock", "DeferredSemaphore", "DeferredQueue",
)  # fmt: skip
_MOST_FILES = 300
#: Levels of calls followed from a frame's function.
_DEPTH = 4
#: Offsets in a method object: im_func, im_self (Include/cpython/classobject.h).
_FUNC, _SELF = 16, 24


def _span(frame: Frame) -> Optional[Span]:
    """Return the source span that a frame evaluates; None up to 3.10 or if compiled without columns."""
    place = frame.code.location(frame.lasti)
    if place is None or place.line is None or place.column is None or place.end_column is None:
        return None
    return Span((place.line, place.column), (place.end_line or place.line, place.end_column))


class Event(NamedTuple):
    """An acquisition or release on one line."""

    line: int
    what: int  # address of the lock or queue
    taken: bool  # False: given back
    sure: bool = True  # False: the attempt may have failed


def outstanding(events: Iterable[Tuple[int, K, bool]]) -> List[Tuple[int, K]]:
    """Return (line, object) of everything taken and not given back, in the order of acquisition."""
    held: List[Tuple[int, K]] = []
    for line, what, taken in events:
        if taken:
            held.append((line, what))
        else:
            held = [one for one in held if one[1] != what]
    return held


class _Scope:
    """Name resolution in a frame, or in a function called with known arguments."""

    def __init__(self, frames: Frames, named: Callable[[str], Optional[int]], namespace: Optional[int]) -> None:
        self._objects = frames.objects
        self._named = named
        self._namespace = namespace

    def resolve(self, path: Tuple[str, ...]) -> Optional[int]:
        """Return the object that a dotted name refers to (local or global, then attributes); None if unresolved."""
        value = self._named(path[0])
        try:
            if value is None and self._namespace:
                value = self._objects.lookup(self._namespace, path[0])
            for name in path[1:]:
                if not value:
                    return None
                found = attribute(self._objects, value, name)
                value = found if found is not None else class_value(self._objects, value, name)
        except (Fault, NotThat):
            return None
        return value


class _Parsed(NamedTuple):
    sources: Dict[str, Source]  # by file
    sites: Dict[Tuple[int, int, Optional[Span], bool], List[CallSite]]


class Acquires:
    """Locks and queues that frames have acquired, according to their source.

    Each source file is parsed once, and each place in it analysed once: threads are many, the lines where they stand
    few.
    """

    def __init__(
        self, frames: Frames, lines: Lines, files: Iterable[str] = (), parsed: Optional[_Parsed] = None
    ) -> None:
        """Create an analysis.

        - ``files``: the program's files, searched for functions that acquire for their callers; those of the standard
          library are left out, since their helpers guard their own objects
        - ``parsed``: results shared with another analysis
        """
        self._frames = frames
        self._lines = lines
        self._parsed = parsed if parsed is not None else _Parsed({}, {})
        self._helpers: Dict[bool, Set[str]] = {}
        self._files = tuple(f for f in dict.fromkeys(files) if not is_stdlib(f))[:_MOST_FILES]

    def among(self, files: Iterable[str]) -> Acquires:
        """Return an analysis of other files that shares what is parsed."""
        return Acquires(self._frames, self._lines, files, self._parsed)

    def source(self, file: str) -> Source:
        """Return the parsed source of a file."""
        sources = self._parsed.sources
        if file not in sources:
            sources[file] = parse(self._lines(file))
        return sources[file]

    def function(self, frame: Frame) -> Optional[Function]:
        """Return the source of a frame's function; None if unavailable."""
        line = frame.line
        return None if line is None else function_at(self.source(frame.code.filename), frame.function, line)

    # ------------------------------------------------------------------ answers

    def of(self, frame: Frame, verbs: Verbs = LOCKS) -> List[Tuple[int, int]]:
        """Return (line, address) of what a frame's function acquired before its current line and still holds."""
        if not self._concerns(frame, verbs):
            return []
        scope, events = self._scope(frame), []
        before = self._before(frame)
        sites = self._now(frame) if before else []
        now = {event.what for event in self._events(scope, sites, verbs, 0) if event.taken}
        for event in self._events(scope, before, verbs, _DEPTH):
            if event.sure or event.what not in now:  # a thread that waits for it now has failed to take it before
                events.append(event[:3])
        return outstanding(events)

    def released(self, frame: Frame) -> Iterator[int]:
        """Yield addresses of what a frame's function released before its current line, even if taken again later."""
        for event in self._events(self._scope(frame), self._before(frame), LOCKS, 0):
            if not event.taken:
                yield event.what

    def given_back(self, frame: Frame) -> Set[int]:
        """Return addresses of what a frame's function releases at or after its current line.

        Releases in functions that it calls count, whether or not it holds the object yet. A thread that waits here
        to take such an object does not use it as a signal.
        """
        sites = self._from(frame) if self._concerns(frame, LOCKS) else []
        return {event.what for event in self._events(self._scope(frame), sites, LOCKS, _DEPTH) if not event.taken}

    def pending(self, frame: Frame, verbs: Verbs = LOCKS) -> Set[int]:
        """Return addresses of what a frame's function will give back without taking it first.

        Only its own calls count for locks: a function called later may take a lock before giving it back.
        """
        function = self.function(frame) if self._concerns(frame, verbs) else None
        if function is None or frame.line is None:
            return set()
        sites = [s for s in self._from(frame) if s.path not in with_paths(function)]
        span, scope = _span(frame), self._scope(frame)
        found: Dict[int, bool] = {}
        for site in sites:
            behind = (site.line, site.column) >= span.end if span else site.line > frame.line
            for event in self._events(scope, [site], verbs, 0 if verbs is LOCKS else _DEPTH):
                found.setdefault(event.what, not event.taken and behind)
        return {what for what, pending in found.items() if pending}

    def borrowed(self, frame: Frame, thing: int, takes: Collection[str], returns: Collection[str]) -> List[int]:
        """Return the lines where a frame's function took parts of an object that it has not given back.

        ``takes`` and ``returns``: names of the object's methods. Calls in a `with` statement are left out: its slot on
        the value stack shows what they hold; and those of which tasks are made, which take parts for themselves.
        """
        function = self.function(frame) if not set(takes).isdisjoint(frame.code.used_names()) else None
        if function is None:
            return []
        others = [*with_calls(function), *spawned_calls(function)]
        items = {(node.lineno, node.col_offset) for node in others}
        scope, lines = self._scope(frame), []
        for site in self._before(frame):
            if not site.path or (site.name not in takes and site.name not in returns):
                continue
            if (site.line, site.column) in items or scope.resolve(site.path) != thing:
                continue
            if site.name in takes:
                lines.append(site.line)
            elif lines:
                lines.pop()
        return lines

    def pairs(self, file: str, takes: Collection[str], returns: Collection[str]) -> bool:
        """Return whether a function of a file calls methods of both kinds on the same object, as users of a pool do.

        Those who take jobs from a queue are not those who fill it.
        """
        for function in self.source(file).functions:
            paths: Dict[Tuple[str, ...], Set[bool]] = {}
            for site in calls_before(function):
                if site.path and (site.name in takes or site.name in returns):
                    paths.setdefault(site.path, set()).add(site.name in takes)
            if any(len(kinds) == 2 for kinds in paths.values()):
                return True
        return False

    def gives(self, file: str, name: str, first: int, used: Collection[str], verbs: Collection[str]) -> bool:
        """Return whether a method applies one of some verbs to an attribute of a given name, or counts it up or down.

        True if its source is not available.
        """
        function = function_from(self.source(file), name, first)
        if function is None:
            return True
        calls = any(s.name in verbs and len(s.path) == 2 and s.path[1] in used for s in calls_before(function))
        counts = (node.target for node in ast.walk(function) if isinstance(node, ast.AugAssign))
        return calls or any(isinstance(target, ast.Attribute) and target.attr in used for target in counts)

    def entered(self, manager: int, verbs: Verbs = LOCKS) -> List[int]:
        """Return addresses of what a context manager takes and keeps when it is entered, and gives back when it is left."""
        found: List[int] = []
        for enter, leave in (("__enter__", "__exit__"), ("__aenter__", "__aexit__")):
            taken = [event.what for event in self._method(manager, enter, verbs) if event.taken]
            back = {event.what for event in self._method(manager, leave, verbs) if not event.taken} if taken else ()
            found += [what for what in taken if what in back]
        return found

    def _method(self, receiver: int, name: str, verbs: Verbs) -> Iterator[Event]:
        called = self._bound(class_value(self._frames.objects, receiver, name), receiver, [])
        if called is not None:
            yield from self._kept(*called, verbs, _DEPTH)

    def unread(self, frame: Frame) -> bool:
        """Return whether a frame's function may have acquired something that its source does not show.

        True if its source is unavailable although it names ``acquire``, or if columns are unknown and the current line
        takes something before doing something else.
        """
        if not self._concerns(frame, LOCKS):
            return False
        if self.function(frame) is None:
            return "acquire" in frame.code.used_names()
        now = self._now(frame) if _span(frame) is None else []
        takes = [site for site in now if site.name == "acquire" or site.name in self._helping(LOCKS)]
        return any((first.end, first.end_column) <= other[:2] for first in takes for other in now)

    def passes_on(self, frame: Frame, name: str) -> List[int]:
        """Return the objects whose method of this name a frame's function passes on without calling it."""
        function = self.function(frame) if name in frame.code.used_names() else None
        paths = named_methods(function, name) if function is not None else ()
        return [value for value in map(self._scope(frame).resolve, paths) if value is not None]

    # ------------------------------------------------------------------ syntax

    def _concerns(self, frame: Frame, verbs: Verbs) -> bool:
        """Return whether a frame's function uses any of these methods; the source of others is not analysed."""
        if frame.code.filename.endswith(MACHINERY):
            return False
        used = frame.code.used_names()
        return any(verb in used for verb in (*verbs, "enter_context")) or not self._helping(verbs).isdisjoint(used)

    def _helping(self, verbs: Verbs) -> Set[str]:
        """Return names of the program's functions that take or give back something, directly or through calls."""
        known = self._helpers.get(verbs is LOCKS)
        if known is None:
            calls = [
                (f.name, {site.name for site in calls_before(f)})
                for file in self._files
                for f in self.source(file).functions
                if not isinstance(f, ast.Module)
            ]
            known = set()
            for _ in range(_DEPTH):
                known |= {name for name, called in calls if not called.isdisjoint({*verbs, *known})}
            self._helpers[verbs is LOCKS] = known
        return known

    def _before(self, frame: Frame) -> List[CallSite]:
        return self._known(frame, True)

    def _from(self, frame: Frame) -> List[CallSite]:
        return self._known(frame, False)

    def _now(self, frame: Frame) -> List[CallSite]:
        """Return the calls of the current expression; without columns, all calls of the current line."""
        line, span = frame.line or 0, _span(frame)
        sites = [site for site in self._from(frame) if site.line <= line <= site.end]
        return [site for site in sites if (site.line, site.column) < span.end] if span else sites

    def _known(self, frame: Frame, before: bool) -> List[CallSite]:
        line = frame.line
        if line is None:
            return []
        span = _span(frame)
        place, sites = (frame.code.address, line, span, before), self._parsed.sites
        if place not in sites:
            function = self.function(frame)
            look = calls_before if before else calls_from
            sites[place] = look(function, line, span) if function is not None else []
        return sites[place]

    # ------------------------------------------------------------------ objects

    def _scope(self, frame: Frame) -> _Scope:
        return _Scope(self._frames, lambda name: self._frames.local(frame, name), self._frames.globals(frame))

    def _events(self, scope: _Scope, sites: Iterable[CallSite], verbs: Verbs, depth: int) -> Iterator[Event]:
        entered: List[Tuple[int, int]] = []  # (ExitStack, lock)
        for site in sites:
            value = scope.resolve(site.path) if site.path and (site.name in verbs or site.name in _STACKS) else None
            if value is not None and site.name in _STACKS and self._frames.objects.type_name(value) == "ExitStack":
                lock = scope.resolve(site.arguments[0]) if site.arguments and site.arguments[0] else None
                if _STACKS[site.name] and lock is not None and self._is_own(lock):
                    entered.append((value, lock))
                    yield Event(site.line, lock, True)
                elif not _STACKS[site.name]:
                    yield from (Event(site.line, inner, False) for stack, inner in entered if stack == value)
            elif value is not None and site.name in verbs and self._is_own(value):
                yield Event(site.line, value, verbs[site.name], site.bare)
            elif depth and (site.name in self._helping(verbs) or (value and verbs is LOCKS and site.name in LOCKS)):
                yield from self._within(scope, site, verbs, depth)

    def _is_own(self, value: int) -> bool:
        """Return whether an object is a lock, semaphore or queue, rather than a program's class with such a method."""
        objects = self._frames.objects
        name = objects.type_name(value) or ""
        return name in ("_thread.lock", "_thread.RLock") or any(objects.is_instance(value, kind) for kind in _OWN)

    def _within(self, scope: _Scope, site: CallSite, verbs: Verbs, depth: int) -> Iterator[Event]:
        """Yield what a function that was called and has returned took and kept, or gave back."""
        called = self._callee(scope, site)
        for event in self._kept(*called, verbs, depth) if called is not None else ():
            yield event._replace(line=site.line)

    def _kept(self, scope: _Scope, function: Function, verbs: Verbs, depth: int) -> Iterator[Event]:
        """Yield the net effect of a complete run of a function."""
        events = [e[:3] for e in self._events(scope, calls_before(function), verbs, depth - 1)]
        kept = {what for _line, what in outstanding(events)}
        for what in dict.fromkeys(what for _line, what, _taken in events):
            first = next(taken for _line, other, taken in events if other == what)
            if what in kept or not first:
                yield Event(0, what, what in kept)

    def _callee(self, scope: _Scope, site: CallSite) -> Optional[Tuple[_Scope, Function]]:
        """Return the function that a call refers to and the values of its parameters; None if unresolved."""
        receiver = scope.resolve(site.path) if site.path else None
        if site.path and receiver is None:
            return None
        objects = self._frames.objects
        found = class_value(objects, receiver, site.name) if receiver is not None else scope.resolve((site.name,))
        arguments = [scope.resolve(path) if path else None for path in site.arguments]
        return self._bound(found, receiver, arguments)

    def _bound(
        self, called: Optional[int], receiver: Optional[int], arguments: List[Optional[int]]
    ) -> Optional[Tuple[_Scope, Function]]:
        """Return the source of a function or method object and the values of its parameters; None if unavailable."""
        frames, objects = self._frames, self._frames.objects
        try:
            if called is not None and objects.type_name(called) == "method":
                receiver, called = objects.field(called, _SELF), objects.field(called, _FUNC)
            if called is None or objects.type_name(called) != "function":
                return None
            code = frames.codes.get(objects.memory.u64(called + objects.layout.func_code))
            # before 3.10 the globals follow the code (Include/cpython/funcobject.h)
            namespace = objects.field(called, 16 if objects.layout.func_code - objects.layout.ob_extra > 16 else 24)
        except (Fault, NotThat):
            return None
        function = function_from(self.source(code.filename), code.name, code.firstlineno)
        if function is None:
            return None
        values = arguments if receiver is None else [receiver, *arguments]
        bound = {name: value for name, value in zip(parameters(function), values) if value is not None}
        return _Scope(frames, bound.get, namespace), function
