"""Runs inside an interpreter under test: reads its own objects through /proc/self/mem and compares.

Prints ``ok`` or raises. Only the standard library and what the package offers to it.
"""

import argparse
import asyncio
import asyncio.base_events
import collections
import concurrent.futures
import contextvars
import dis
import functools
import os
import subprocess
import sys
import threading
import types

from postmortem.cpython.frames.calls import callable_name
from postmortem.cpython.frames.functions import Functions
from postmortem.cpython.heap.parts import Parts
from postmortem.cpython.objects.attributes import Slots, attributes
from postmortem.cpython.objects.builtins import NotThat
from postmortem.cpython.objects.code import Code
from postmortem.cpython.state.interpreter import Python
from postmortem.frameworks.asyncio.futures import Futures
from postmortem.frameworks.asyncio.primitives import Primitives
from postmortem.frameworks.asyncio.tasklists import task_layout
from postmortem.memory import ProcMem


class Plain:
    def __init__(self):
        self.first, self.second = 1, "two"

    def method(self):
        return self


class Slotted:
    __slots__ = ("one", "two")


class Grown(Plain):
    """More attributes than shared keys hold, and one removed: forces an ordinary dict."""

    def __init__(self):
        super().__init__()
        for index in range(60):
            setattr(self, f"extra_{index}", index)
        del self.first


class Pair(tuple):
    """A tuple of varying length, with attributes behind its items."""


class Number(int):
    pass


def functions(module):
    for value in vars(module).values():
        if isinstance(value, types.FunctionType):
            yield value.__code__
        if isinstance(value, type):
            yield from (v.__code__ for v in vars(value).values() if isinstance(v, types.FunctionType))


def check_objects(objects):
    texts = ["", "plain", "käse", "\u20ac uro", "\U0001f40d", "x" * 3000]
    for text in texts:
        assert objects.text(id(text)) == text, text
    assert objects.text(id("\udc80")) == "\\udc80"
    for number in (0, 1, -1, 255, 256, 1 << 31, -(1 << 40), 123456789012345678901234567890):
        assert objects.integer(id(number)) == number, number
    assert objects.number(id(2.5)) == 2.5
    items = ["a", "b", ("c",)]
    assert objects.items(id(items)) == tuple(map(id, items))
    numbers = {1, 2, "three"}
    assert set(objects.set_items(id(numbers))) == set(map(id, numbers))
    mapping = {"a": 1, "b": None, 3: "c"}
    del mapping["a"]
    assert dict(objects.dict_items(id(mapping))) == {id(k): id(v) for k, v in mapping.items()}
    for count in (5, 6, 170, 171, 300, 43_690, 43_691, 90_000):  # on either side of where indices grow a byte
        large = {str(n): n for n in range(count)}
        assert dict(objects.dict_items(id(large))) == {id(k): id(v) for k, v in large.items()}, count
    try:
        objects.text(id(5))
    except NotThat:
        pass
    else:
        raise AssertionError("an int was read as a str")


def check_attributes(objects):
    for instance in (Plain(), Grown(), Plain()):
        assert attributes(objects, id(instance)) == {k: id(v) for k, v in vars(instance).items()}, type(instance)
    for made in (Pair(), Pair((1, 2, 3)), Number(0), Number(-(1 << 100))):
        made.first, made.second = 1, "two"
        assert attributes(objects, id(made)) == {"first": id(made.first), "second": id(made.second)}, made
    shown = Plain()
    vars(shown)  # makes the dict real
    assert attributes(objects, id(shown)) == {k: id(v) for k, v in vars(shown).items()}
    slotted = Slotted()
    slotted.one = "x"
    assert Slots(objects).get(id(slotted), "one") == id(slotted.one)
    assert Slots(objects).get(id(slotted), "two") is None


def check_callables(python):
    """Their code, and all that they bring along, through methods and partials; of what is written in C what it is bound
    to."""
    objects, found = python.objects, Functions(python.frames)
    kept, other = Plain(), ["x"]

    def inner(argument):
        return kept, other, argument

    assert found.code(id(inner)).address == id(inner.__code__)
    assert found.closure(id(inner)) == {"kept": id(kept), "other": id(other)}
    assert found.closure(id(lines)) == {} and found.function(id(len)) is None
    method, partial = kept.method, functools.partial(inner, other)
    nested = functools.partial(method, kept)
    assert found.function(id(nested)) == id(Plain.method) and found.bound(id(method)) == id(kept)
    assert set(found.carried(id(nested))) == {id(kept)} and found.bound(id(other.append)) is not None
    assert set(found.carried(id(partial))) == {id(other), id(kept)}
    assert found.carried(id(kept)) == [] and found.code(8) is None and objects is not None
    in_context = functools.partial(contextvars.copy_context().run, kept.method, other)  # as asyncio.to_thread does
    for called, name in ((in_context, "Plain.method"), (nested, "Plain.method"), (len, "len"), (int, "int")):
        assert callable_name(objects, id(called)) == name, name


def check_futures(python):
    """Futures in C and in Python: kinds, states, and callbacks."""
    loop = asyncio.new_event_loop()
    futures = Futures(python.objects, Functions(python.frames), python.layout)
    for made in (asyncio.Future(loop=loop), asyncio.futures._PyFuture(loop=loop)):
        assert (futures.kind(id(made)), futures.state(id(made)), futures.loop(id(made))) == (
            "future",
            "pending",
            id(loop),
        )
        assert futures.callbacks(id(made)) == []
        for called in (print, lines):
            made.add_done_callback(called)
        assert futures.callbacks(id(made)) == [id(print), id(lines)]
        made.set_result(None)
        assert futures.state(id(made)) == "done"
    followed, gathered = concurrent.futures.Future(), asyncio.Future(loop=loop)
    assert futures.kind(id(followed)) == "concurrent" and futures.state(id(followed)) == "pending"
    wrapped = asyncio.wrap_future(followed, loop=loop)
    assert futures.linked(id(wrapped), "_call_check_cancel", "source") == id(followed)
    assert futures.linked(id(gathered), "_call_check_cancel", "source") is None
    assert futures.kind(id(loop)) is None and futures.kind(id("text")) is None
    loop.close()


def check_cancellations(python):
    """Requests to cancel a task, in C and in Python; whether it is still to be told; whether it handles one."""
    futures = Futures(python.objects, Functions(python.frames), task_layout(python.memory, python.layout))
    counts = hasattr(asyncio.Task, "cancelling")

    async def stubborn(clean):
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            if clean:
                await asyncio.sleep(3600)
        await asyncio.sleep(3600)

    async def told():
        for task_class in (asyncio.Task, asyncio.tasks._PyTask):
            for clean in (True, False):
                coroutine = stubborn(clean)
                task = task_class(coroutine, loop=asyncio.get_running_loop())
                await asyncio.sleep(0)
                asked = [(futures.cancel_requests(id(task)), futures.must_cancel(id(task)))]
                task.cancel()
                asked.append((futures.cancel_requests(id(task)), futures.must_cancel(id(task))))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                asked.append((futures.cancel_requests(id(task)), futures.must_cancel(id(task))))
                assert asked == [(n if counts else None, False) for n in (0, 1, 1)], (task_class, asked)
                assert futures.handles_cancellation(id(coroutine)) == clean, (task_class, clean)
                task.cancel()
                await asyncio.wait([task], timeout=5)
            fresh_one = stubborn(False)
            fresh = task_class(fresh_one, loop=asyncio.get_running_loop())
            fresh.cancel()
            assert futures.must_cancel(id(fresh)) and not futures.handles_cancellation(id(fresh_one))
            await asyncio.wait([fresh], timeout=5)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(told())
    loop.close()


def check_locks_of_tasks(objects):
    """asyncio's says whether it is locked; anyio's, which has slots, who has it; one that is only called like that is none."""
    slots = {"__slots__": ("_owner_task", "_waiters"), "__module__": "anyio._backends._asyncio"}
    free, held, other = (type("Lock", (), {**slots, **more})() for more in ({}, {}, {"__module__": "elsewhere"}))
    for one in (free, held, other):
        one._owner_task, one._waiters = None, []
    held._owner_task = objects  # any object
    found = [Primitives(objects).at(id(one)) for one in (asyncio.Lock(), free, held)]
    assert [(p.kind, p.locked, p.owner, p.library) for p in found] == [
        ("lock", False, None, "asyncio"),
        ("lock", False, None, "anyio"),
        ("lock", True, id(objects), "anyio"),
    ]
    assert Primitives(objects).at(id(other)) is None
    info = type("TaskInfo", (), {"__slots__": ("_name", "id", "coro")})()
    info.id, info.coro = id(objects), objects
    older = type("Lock", (), {"__module__": "anyio"})
    before, taken = older(), older()
    before._waiters, taken._waiters, taken._owner_task = [], [], info
    found = [Primitives(objects).at(id(one)) for one in (before, taken, older())]
    assert [p and (p.locked, p.owner, p.owner_runs) for p in found] == [
        (False, None, None),
        (True, id(objects), id(objects)),
        None,
    ]


def check_locks_in_python(python):
    """threading._RLock records its owner, as the one in C does; a program's own class derived from it, too."""
    own = type("StrictLock", (threading._RLock,), {})
    for one in (threading._RLock(), own()):
        free = python.locks.at(id(one))
        assert (free.kind, free.locked, free.owner_ident) == ("rlock", False, None)
        with one:
            taken = python.locks.at(id(one))
            assert (taken.kind, taken.locked, taken.owner_ident) == ("rlock", True, threading.get_ident())
            assert taken.word == python.locks.at(id(one._block)).word


def check_parts(objects):
    """An object's attributes and slots, also those of a base; what containers have; a class's module."""
    parts, base = Parts(objects), type("Base", (), {"__slots__": ("_pool", "unset")})
    both = type("Both", (base,), {"__slots__": ("record", "__dict__"), "__module__": "a.library"})()
    both._pool, both.record, both.plain = Plain(), Plain(), 5
    assert parts.attributes(id(both)) == {"_pool": id(both._pool), "record": id(both.record), "plain": id(both.plain)}
    assert parts.module(id(type(both))) == "a.library"
    for items in (
        [both, 1],
        (both, 1),
        {both, 1},
        collections.deque([both, 1]),
        {both: 1},
        collections.OrderedDict({both: 1}),
    ):
        assert sorted(parts.items(id(items)) or ()) == sorted([id(both), id(1)])
    assert parts.items(id(both)) is None and parts.attributes(5) == {}


def lines(code):
    """(start, end, line) as the interpreter itself says."""
    if hasattr(code, "co_lines"):
        return list(code.co_lines())
    starts = list(dis.findlinestarts(code))
    return [(at, end, line) for (at, line), (end, _) in zip(starts, [*starts[1:], (len(code.co_code), 0)])]


def check_lines(objects):
    count = 0
    for module in (threading, subprocess, argparse, asyncio.base_events):
        for code in functions(module):
            read = Code(objects, id(code))
            qualname = getattr(code, "co_qualname", None)
            assert (read.filename, read.name, read.qualname) == (code.co_filename, code.co_name, qualname)
            assert read.local_names()[: code.co_nlocals] == code.co_varnames[: code.co_nlocals]
            assert set(read.local_names()) == {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
            assert read.used_names() == code.co_names
            for start, end, line in lines(code):
                for offset in range(start, end, 2):
                    assert read.line(offset) == line, (code, offset)
                    count += 1
    assert count > 10_000


def main():
    memory = ProcMem(os.getpid())
    python = Python(memory)
    assert python.runtime.version == sys.version_info[:3], python.runtime.version
    assert not python.problems, python.problems
    gil = python.interpreters[0].gil
    assert (gil is not None) == getattr(sys, "_is_gil_enabled", lambda: True)()
    assert gil is None or abs(gil.interval_s - sys.getswitchinterval()) < 1e-9
    check_objects(python.objects)
    check_attributes(python.objects)
    check_callables(python)
    check_futures(python)
    check_cancellations(python)
    check_locks_of_tasks(python.objects)
    check_locks_in_python(python)
    check_parts(python.objects)
    check_lines(python.objects)
    print("ok")


main()
