"""Parts of a running interpreter that change all the time: thread states, frames, their code, names.

Read while the process is stopped, pointer by pointer and nothing else, so that the stop stays short.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import asdict
from typing import Any, Dict, Iterator

from ...memory import Fault, Memory
from ..objects.attributes import attributes
from ..objects.builtins import NotThat, Objects
from ..objects.links import linked
from ..runtime.layouts import Layout
from .interpreter import Python

_MOST_INTERPRETERS, _MOST_THREADS, _MOST_FRAMES = 100, 10_000, 1_000
#: Bytes read of each. PyThreadState has 240 to 800 (Include/cpython/pystate.h, 3.8 to 3.15); a frame depends on its
#: variables; of a code object the head.
_STATE, _FRAME, _CODE = 512, 256, 192


class Moving:
    """Starting points from which ``touch`` reads the changing parts, during the stop of a process that was read before it.

    ``address``: of _PyRuntime; ``active``: of ``threading._active``, whose address is constant; 0 if unknown.
    """

    def __init__(self, address: int, layout: Layout, type_names: Dict[int, str], active: int) -> None:
        self._address, self._layout = address, layout
        self._type_names, self._active = type_names, active

    @classmethod
    def of(cls, python: Python) -> Moving:
        """Record the starting points of an interpreter that was read."""
        main = next(iter(python.interpreters), None)
        active = python.module_value(main, "threading", "_active") if main else None
        return cls(python.runtime.address, python.runtime.layout, python.objects.type_names, active or 0)

    def as_json(self) -> Dict[str, Any]:
        """Return a JSON representation for another process; ``of_json`` reads it."""
        names = {str(address): name for address, name in self._type_names.items()}
        return {"address": self._address, "layout": asdict(self._layout), "types": names, "active": self._active}

    @classmethod
    def of_json(cls, told: Any) -> Moving:
        """Build from the result of ``as_json``. Raises ValueError, TypeError or KeyError if it is malformed."""
        fields: Any = {name: tuple(each) if isinstance(each, list) else each for name, each in told["layout"].items()}
        names = {int(address): str(name) for address, name in told["types"].items()}
        return cls(int(told["address"]), Layout(**fields), names, int(told["active"]))

    def touch(self, memory: Memory, until: float) -> None:
        """Read all parts once, for ``memory`` to record or copy their pages; the values are discarded.

        until: time.monotonic() seconds at which the reading ends. Parts that cannot be read are skipped.
        """
        for state in list(_states(memory, self._address, self._layout)):
            if time.monotonic() > until:
                return
            with contextlib.suppress(Fault, NotThat):
                _touch_frames(memory, self._layout, state)
        self._touch_names(memory, until)

    def _touch_names(self, memory: Memory, until: float) -> None:
        """Read the names of threads."""
        objects = Objects(memory, self._layout)
        objects.type_names = self._type_names
        with contextlib.suppress(Fault, NotThat):
            for _key, thread in objects.dict_items(self._active):
                if time.monotonic() > until:
                    return
                with contextlib.suppress(Fault, NotThat):
                    objects.optional_text(attributes(objects, thread).get("_name", 0))


def _states(memory: Memory, address: int, layout: Layout) -> Iterator[int]:
    """Yield the addresses of all thread states."""
    with contextlib.suppress(Fault, NotThat):
        first = memory.u64(address + layout.rt_interpreters_head)
        for interpreter in _list(memory, first, layout.is_next, _MOST_INTERPRETERS):
            with contextlib.suppress(Fault, NotThat):
                newest = memory.u64(interpreter + layout.is_threads_head)
                yield from _list(memory, newest, layout.ts_next, _MOST_THREADS)


def _touch_frames(memory: Memory, layout: Layout, state: int) -> None:
    """Read a thread state, its frames, and the heads of their code objects."""
    memory.read(state, _STATE)
    holder = memory.u64(state + layout.ts_cframe) if layout.ts_cframe >= 0 else state
    for frame in _list(memory, memory.u64(holder + layout.ts_current_frame), layout.fr_previous, _MOST_FRAMES):
        with contextlib.suppress(Fault):
            memory.read(frame, _FRAME)
            memory.read(memory.u64(frame + layout.fr_code) & ~7, _CODE)


def _list(memory: Memory, first: int, link: int, most: int) -> Iterator[int]:
    """Yield the nodes of a linked list. Raises Fault or NotThat."""
    return linked(first, lambda node: memory.u64(node + link), most)
