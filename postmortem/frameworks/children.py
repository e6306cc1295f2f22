"""Children that a process has started, as objects in its memory record them.

Sources:
- Lib/multiprocessing/process.py of 3.8-3.15: ``_children``, the set of Process objects that were not joined;
  ``_dangling``, a WeakSet of all that still exist; ``BaseProcess._parent_pid``, ``_popen``, ``_name``.
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


def registered_after_fork(python: Python) -> Optional[int]:
    """Return how many objects of multiprocessing asked to be told of forks: each Pool makes six; None if unknown."""
    found: Optional[int] = None
    for interpreter in python.interpreters:
        for library in _LIBRARIES[:2]:
            counter = python.module_value(interpreter, f"{library}.util", "_afterfork_counter")
            if counter and (python.objects.type_name(counter) or "").endswith("count"):
                with contextlib.suppress(Fault, NotThat):
                    count = python.objects.field(counter, _AFTER_HEAD)
                    found = (found or 0) + count if count < _MOST * _MOST else None
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
