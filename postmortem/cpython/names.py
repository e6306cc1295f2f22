"""What the program calls an object, as seen from the frames that use it: ``lock_a``, ``Account.lock``, ``desks[2]``.

What the modules that implement locks, queues and futures call it (``self``, ``cm``) tells nobody anything, so their
frames are passed over (Lib/threading.py, queue.py, contextlib.py, concurrent/futures, importlib of 3.8-3.15).
"""

from __future__ import annotations

from typing import Callable, Iterator, List, Optional, Sequence, Tuple

from ..memory import Fault
from . import layouts as L
from .attributes import attributes, class_values
from .frames import Frame, Frames
from .objects import NotThat, Objects

#: Whose frames only pass objects of the program on: endings of file names.
MACHINERY = (
    "/threading.py", "/contextlib.py", "/queue.py", "concurrent/futures/_base.py", "concurrent/futures/thread.py",
    "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>", "importlib/_bootstrap.py",
)  # fmt: skip
_MAX_LOCALS, _MAX_GLOBALS, _MAX_ITEMS, _MAX_KEY = 200, 2000, 200, 24

Same = Callable[[int], bool]


class Names:
    """Finds names in the frames of one interpreter."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._objects: Objects = frames.objects

    def find(self, same: Same, frames: Sequence[Frame]) -> Optional[str]:
        """The name of the object that ``same`` recognises by its address: of a local variable or of an attribute of one,
        in the innermost frame that has it; else of a global; else of an attribute's attribute, or of an item in a container
        of these."""
        frames = [f for f in frames if not f.code.filename.endswith(MACHINERY)]
        for frame in frames:
            found = self._among(same, self._locals(frame))
            if found:
                return found
        for frame in frames:
            found = self._among(same, self._globals(frame))
            if found:
                return found
        for frame in frames:
            named = self._locals(frame)
            found = self._two_dots(same, named) or self._within(same, named) or self._within(same, self._globals(frame))
            if found:
                return found
        return None

    def _two_dots(self, same: Same, named: Sequence[Tuple[str, int]]) -> Optional[str]:
        """``self.fonts.lock``"""
        for name, value in named:
            owner = self._class_name(value)
            parts = self._instance(value) if owner is not None else ()
            for part, inner in parts:
                found = (
                    next((n for n, item in self._instance(inner) if same(item)), None)
                    if self._class_name(inner)
                    else None
                )
                if found and owner is not None:
                    return f"{_owner(name, owner)}.{part}.{found}"
        return None

    def _instance(self, value: int) -> List[Tuple[str, int]]:
        try:
            return list(attributes(self._objects, value).items())[:_MAX_LOCALS]
        except (Fault, NotThat):
            return []

    def _locals(self, frame: Frame) -> Sequence[Tuple[str, int]]:
        return list(self._frames.locals(frame))[:_MAX_LOCALS]

    def _globals(self, frame: Frame) -> Sequence[Tuple[str, int]]:
        namespace = self._frames.globals(frame)
        try:
            return list(self._objects.text_dict(namespace).items())[:_MAX_GLOBALS] if namespace else []
        except (Fault, NotThat):
            return []

    def _among(self, same: Same, named: Sequence[Tuple[str, int]]) -> Optional[str]:
        for name, value in named:
            if same(value):
                return name
        for name, value in named:
            owner = self._class_name(value)
            if owner is None:
                continue
            found = next((attr for attr, item in self._attributes(value) if same(item)), None)
            if found:
                return f"{_owner(name, owner)}.{found}"
        return None

    def _class_name(self, value: int) -> Optional[str]:
        """Of an object whose attributes are worth a look: the classes of Python code, and some of C's, are made at run
        time. None for all others."""
        try:
            info = self._objects.type_of(value)
        except (Fault, NotThat):
            return None
        return info.name if info.flags & L.FLAG_HEAP and info.name and not info.flags & L.FLAG_TYPE else None

    def _attributes(self, value: int) -> Iterator[Tuple[str, int]]:
        try:
            yield from attributes(self._objects, value).items()
        except (Fault, NotThat):
            return
        yield from class_values(self._objects, value).items()

    def _within(self, same: Same, named: Sequence[Tuple[str, int]]) -> Optional[str]:
        """In a container that is a variable, or an attribute of ``self``."""
        for name, value in named:
            key = self._key(same, value)
            if key is not None:
                return f"{name}[{key}]"
            if name in ("self", "cls"):
                owner = self._objects.type_name(value) or name
                for attribute, item in self._attributes(value):
                    key = self._key(same, item)
                    if key is not None:
                        return f"{_owner(name, owner)}.{attribute}[{key}]"
        return None

    def _key(self, same: Same, container: int) -> Optional[str]:
        objects = self._objects
        try:
            flags = objects.type_of(container).flags
            if flags & (L.FLAG_LIST | L.FLAG_TUPLE):
                if objects.length(container) > _MAX_ITEMS:
                    return None
                return next((str(i) for i, item in enumerate(objects.items(container)) if same(item)), None)
            if flags & L.FLAG_DICT and objects.length(container) <= _MAX_ITEMS:
                return next((self._spelled(key) for key, item in objects.dict_items(container) if same(item)), None)
        except (Fault, NotThat):
            pass
        return None

    def _spelled(self, key: int) -> str:
        text = self._objects.optional_text(key)
        if text is not None:
            return repr(text[:_MAX_KEY])
        try:
            return str(self._objects.integer(key))
        except (Fault, NotThat):
            return "…"


def _owner(name: str, type_name: str) -> str:
    return type_name.rsplit(".", maxsplit=1)[-1] if name in ("self", "cls") else name
