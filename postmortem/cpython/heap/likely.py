"""Objects that are likely to be on the way to awaited ones: found by following references forwards.

A search of memory for referrers costs a pass a level. From frames, tasks and modules most of the way can be read in
the other direction, without a search, so that one pass finds the references to all objects on it. These are guesses:
what they lack costs further passes, and what they have in excess is searched for in vain.
"""

from __future__ import annotations

import contextlib
from collections import deque
from itertools import islice
from typing import Callable, Collection, Deque, Dict, Iterable, Iterator, List, Set, Tuple

from ...memory import Fault
from ..objects.attributes import attributes
from ..objects.builtins import NotThat
from ..runtime import layouts as L
from ..state.interpreter import Python
from .owners import Holder, ReferenceHolders

#: Most objects that are opened, items of each, steps from a root, and objects that are returned.
_MOST_OPENED, _MOST_ITEMS, _DEEPEST, MOST_LIKELY = 20_000, 256, 16, 4_000
_HEADER, _MOST_BYTES = 16, 2048
#: Most items of a dict or set that is opened: larger ones take longer than they are likely to save.
_LONG = 4096
#: Types that are known everywhere, or lead there.
_EVERYWHERE = frozenset(("module", "builtin_function_or_method", "method_descriptor", "wrapper_descriptor"))


class Likely:
    """A walk over references in one process, from roots forwards; ``check`` raises NotThat when its time is up."""

    def __init__(self, python: Python, holders: ReferenceHolders, check: Callable[[], None]) -> None:
        self._python = python
        self._objects = python.objects
        self._holders = holders
        self._check = check
        self._parents: Dict[int, List[int]] = {}

    def above(self, targets: Collection[int], roots: Iterable[int]) -> List[int]:
        """Return objects on the way from roots to any of the targets, nearest to a target first. Never raises."""
        with contextlib.suppress(NotThat):
            self._walk([*self._in_frames(), *roots], frozenset(targets))
        found: Dict[int, None] = {}
        wave: Collection[int] = targets
        while wave and len(found) < MOST_LIKELY:
            above = (parent for one in wave for parent in self._parents.get(one, ()))
            wave = [one for one in dict.fromkeys(above) if one not in found]
            found.update(dict.fromkeys(wave))
        return list(islice(found, MOST_LIKELY))

    def _walk(self, roots: Iterable[int], targets: Collection[int]) -> None:
        """Note who refers to whom, breadth first. Raises NotThat when the time is up."""
        seen: Set[int] = set()
        queue: Deque[Tuple[int, int]] = deque((root, 0) for root in dict.fromkeys(roots))
        while queue and len(seen) < _MOST_OPENED:
            address, depth = queue.popleft()
            if address in seen:
                continue
            seen.add(address)
            self._check()
            holder = self._holders.at(address)
            if holder is None or holder.kind == "type" or holder.info.name in _EVERYWHERE:
                continue
            for child in self._children(holder):
                if child in targets or self._is_container(child):
                    self._parents.setdefault(child, []).append(address)
                    if depth < _DEEPEST and child not in seen:
                        queue.append((child, depth + 1))

    def _is_container(self, address: int) -> bool:
        """Return whether an instance of a collectable type may be at an address."""
        if not 0x1000 <= address < 1 << 47 or address & 15:
            return False
        try:
            type_ = self._objects.memory.u64(address + self._python.layout.ob_type)
        except Fault:
            return False
        return self._holders.is_collectable(type_)

    def _in_frames(self) -> Iterator[int]:
        """Yield the words of the frames of all threads, each once."""
        layout, seen = self._python.layout, set()
        for frame in (f for i in self._python.interpreters for thread in i.threads for f in thread.frames):
            start = frame.address + layout.fr_localsplus
            try:
                words = self._objects.memory.words(
                    start, min(frame.code.nlocalsplus + frame.code.stacksize, _MOST_ITEMS)
                )
            except Fault:
                continue
            for word in words:
                if word not in seen and self._is_container(word):
                    seen.add(word)
                    yield word

    def _children(self, holder: Holder) -> List[int]:
        """Return the first objects that a holder may refer to."""
        try:
            return list(dict.fromkeys(islice(self._opened(holder), _MOST_ITEMS)))
        except (Fault, NotThat):
            return []

    def _opened(self, holder: Holder) -> Iterator[int]:
        """Yield what a holder may refer to, objects or not. Raises Fault or NotThat."""
        objects, flags, address = self._objects, holder.info.flags, holder.address
        if flags & (L.FLAG_LIST | L.FLAG_TUPLE):
            yield from objects.first_items(address, _MOST_ITEMS)
        elif (flags & L.FLAG_DICT or holder.kind == "set") and objects.length(address) > _LONG:
            return
        elif flags & L.FLAG_DICT:
            yield from (value for _key, value in objects.dict_items(address))
        elif holder.kind == "set":
            yield from objects.set_items(address)
        elif objects.is_instance(address, "collections.deque"):
            yield from objects.deque_items(address, _MOST_ITEMS)
        if flags & L.FLAG_MANAGED_DICT:
            yield objects.memory.u64(address + self._python.layout.managed_dict)
            yield from attributes(objects, address).values()
        words = objects.memory.words(address + _HEADER, max(0, min(holder.end - address, _MOST_BYTES) - _HEADER) // 8)
        if holder.info.name == "function":  # its closure; its globals belong to all code of their module
            words = tuple(word for word in words if objects.type_name(word) == "tuple")
        yield from words
