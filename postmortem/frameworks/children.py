"""Children that a process has started, as objects in its memory record them.

Sources:
- Lib/multiprocessing/process.py of 3.8-3.15: ``_children``, the set of Process objects that were not joined;
  ``_dangling``, a WeakSet of all that still exist; ``_process_counter``; ``BaseProcess._parent_pid``, ``_popen``, ``_name``.
- Lib/multiprocessing/popen_fork.py: ``Popen.pid``, ``returncode`` (minus the signal's number for one killed by it).
- Lib/subprocess.py: ``_active``, Popen objects that were dropped before their child had ended.
- Lib/multiprocessing/util.py: ``_afterfork_counter``, counted up by each semaphore of multiprocessing
  (synchronize.SemLock.__init__); Modules/itertoolsmodule.c: countobject.cnt follows the object's head.
- billiard's (celery) copy of multiprocessing has the same names.
"""

from __future__ import annotations

import contextlib
from typing import Dict, Iterator, List, Optional

from ..cpython.objects.attributes import attribute
from ..cpython.objects.builtins import NotThat
from ..cpython.state.interpreter import InterpreterState, Python
from ..memory import Fault
from .processpools import Worker, worker

_LIBRARIES = ("multiprocessing", "multiprocess", "billiard")
_MOST = 10_000
_AFTER_HEAD = 16  # size of PyObject, without free threading


def started_children(python: Python, own_pid: Optional[int]) -> List[Worker]:
    """Return the children that a process's own objects record, each once.

    ``own_pid``: its PID as the program sees it; a forked child also has its parent's objects, which are left out. None:
    all are taken.
    """
    found: Dict[int, Worker] = {}
    for interpreter in python.interpreters:
        for address in _objects(python, interpreter):
            parent = python.objects.integer_or_none(attribute(python.objects, address, "_parent_pid"))
            child = worker(python.objects, address)
            own = parent is not None and own_pid in (parent, None)
            if child.pid is not None and own and len(found) < _MOST:
                found[child.pid] = child
    return list(found.values())


def children_made(python: Python) -> Optional[int]:
    """Return how many Process objects a process has made, also those that are gone; None if unknown, 0 without the module.

    Source: Lib/multiprocessing/process.py of 3.8-3.15: ``_process_counter``, counted up by each; a child begins anew.
    """
    found = 0
    for interpreter in python.interpreters:
        for library in _LIBRARIES:
            counter = python.module_value(interpreter, f"{library}.process", "_process_counter")
            if not counter:
                continue
            following = _next_of(python, counter)
            if following is None:
                return None
            found += following - 1
    return found


def _next_of(python: Python, counter: int) -> Optional[int]:
    """Return the next number of an ``itertools.count``; None if unreadable."""
    if not (python.objects.type_name(counter) or "").endswith("count"):
        return None
    with contextlib.suppress(Fault, NotThat):
        count = python.objects.field(counter, _AFTER_HEAD)
        return count if 0 <= count < _MOST * _MOST else None
    return None


def registered_after_fork(python: Python) -> Optional[int]:
    """Return how many objects of multiprocessing asked to be told of forks: each Pool makes six; None if unknown."""
    found: Optional[int] = None
    for interpreter in python.interpreters:
        for library in _LIBRARIES[:2]:
            counter = python.module_value(interpreter, f"{library}.util", "_afterfork_counter")
            count = _next_of(python, counter) if counter else None
            if count is not None:
                found = (found or 0) + count
    return found


def _objects(python: Python, interpreter: InterpreterState) -> Iterator[int]:
    """Yield the Process objects of an interpreter; some may be yielded twice."""
    objects = python.objects
    for library in _LIBRARIES:
        children = python.module_value(interpreter, f"{library}.process", "_children")
        dangling = python.module_value(interpreter, f"{library}.process", "_dangling")
        references = attribute(objects, dangling, "data") if dangling else None
        with contextlib.suppress(Fault, NotThat):
            yield from list(objects.set_items(children))[:_MOST] if children else ()
        with contextlib.suppress(Fault, NotThat):
            for reference in list(objects.set_items(references))[:_MOST] if references else ():
                target = objects.field(reference, 16)  # PyWeakReference.wr_object, Include/cpython/weakrefobject.h
                if target and (objects.type_name(target) or "").endswith("Process"):
                    yield target
