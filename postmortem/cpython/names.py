"""What the program calls an object, as seen from the frames that use it: ``lock_a``, ``Account.lock``, ``desks[2]``.

A function's variables are called differently in each of those that have the object, so they only count where it has no
other name, and what is an attribute of theirs is called after its class.
What the modules that implement locks, queues and futures call it (``self``, ``cm``) tells nobody anything, so their
frames are passed over (Lib/threading.py, queue.py, contextlib.py, concurrent/futures, importlib of 3.8-3.15).
"""

from __future__ import annotations

from typing import Callable, Dict, List, Optional, Sequence, Set, Tuple

from ..memory import Fault
from . import layouts as L
from .attributes import attributes, class_value
from .frames import Frame, Frames
from .objects import NotThat, Objects

#: Whose frames only pass objects of the program on: endings of file names.
MACHINERY = (
    "/threading.py", "/contextlib.py", "/queue.py", "concurrent/futures/_base.py", "concurrent/futures/thread.py",
    "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>", "importlib/_bootstrap.py",
)  # fmt: skip
#: Packages of the standard library whose classes say less than the variables that have their objects.
_GENERAL = frozenset((
    "asyncio", "builtins", "collections", "concurrent", "contextlib", "logging", "multiprocessing", "queue", "threading",
    "types",
))  # fmt: skip
_MOST_BASES = 8
_MAX_LOCALS, _MAX_GLOBALS, _MAX_ITEMS, _MAX_KEY = 200, 2000, 200, 24

Same = Callable[[int], bool]


class Names:
    """Finds names in the frames of one interpreter."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._objects: Objects = frames.objects
        self._namespaces: Dict[int, Sequence[Tuple[str, int]]] = {}  # of classes
        self._searched: Set[int] = set()  # classes, for the object whose name is sought

    def find(self, same: Same, frames: Sequence[Frame]) -> Optional[str]:
        """The name of the object that ``same`` recognises by its address: of an attribute of a local variable, in the
        innermost frame that has one; else of a global, or an attribute of one; else of a local variable; else of an
        attribute's attribute, or of an item in a container of these."""
        frames = [f for f in frames if not f.code.filename.endswith(MACHINERY)]
        modules = list({self._frames.globals(frame): frame for frame in reversed(frames)}.values())[::-1]
        self._searched.clear()
        passes: Tuple[Tuple[Sequence[Frame], Callable[[Frame], Optional[str]]], ...] = (
            (frames, lambda frame: self._attribute_of(same, self._locals(frame), local=True)),
            (modules, lambda frame: self._among(same, self._globals(frame))),
            (frames, lambda frame: self._bare(same, self._locals(frame))),
            (frames, lambda frame: self._deeper(same, frame)),
        )
        found = (look(frame) for where, look in passes for frame in where)
        return next((name for name in found if name), None)

    def _deeper(self, same: Same, frame: Frame) -> Optional[str]:
        named = self._locals(frame)
        return self._two_dots(same, named) or self._within(same, named) or self._within(same, self._globals(frame))

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
                    return f"{self._owner(name, value)}.{part}.{found}"
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
        return self._bare(same, named) or self._attribute_of(same, named, local=False)

    @staticmethod
    def _bare(same: Same, named: Sequence[Tuple[str, int]]) -> Optional[str]:
        return next((name for name, value in named if same(value)), None)

    def _attribute_of(self, same: Same, named: Sequence[Tuple[str, int]], local: bool) -> Optional[str]:
        """Of an object or a class among these, that is not itself what is sought: a Condition has its lock inside."""
        for name, value in named:
            of_class = self._of_classes(same, value)
            if of_class is not None:
                return of_class
            if self._class_name(value) is None:
                continue
            found = next((attribute for attribute, item in self._instance(value) if same(item)), None)
            if found is not None and not same(value):
                return f"{self._owner(name, value) if local else name}.{found}"
        return None

    def _of_classes(self, same: Same, value: int) -> Optional[str]:
        """``Registry.lock``: what the class of an object, or a class itself, or a base of it, has under a name."""
        objects = self._objects
        try:
            info = objects.type_of(value)
            if info.flags & L.FLAG_TYPE:
                info = objects.type_at(value)
            for _ in range(_MOST_BASES):
                if not info.flags & L.FLAG_HEAP or info.address in self._searched:
                    return None
                self._searched.add(info.address)
                found = next((n for n, item in self._namespace(info.address) if same(item)), None)
                if found is not None:
                    return f"{info.name.rsplit('.', maxsplit=1)[-1]}.{found}"
                if not info.base:
                    return None
                info = objects.type_at(info.base)
        except (Fault, NotThat):
            pass
        return None

    def _namespace(self, cls: int) -> Sequence[Tuple[str, int]]:
        if cls not in self._namespaces:
            namespace = self._objects.memory.u64(cls + self._objects.layout.tp_dict)
            items = self._objects.text_dict(namespace).items() if namespace else ()
            self._namespaces[cls] = list(items)[:_MAX_GLOBALS]
        return self._namespaces[cls]

    def _owner(self, name: str, value: int) -> str:
        """What an object is called in the name of its attribute: ``self``, or whatever a function calls it, is an Account."""
        called = (self._objects.type_name(value) or name).rsplit(".", maxsplit=1)[-1]
        return called if name in ("self", "cls") or self._package(value) not in _GENERAL else name

    def _package(self, value: int) -> str:
        module = class_value(self._objects, value, "__module__")
        return ((module and self._objects.optional_text(module)) or "").partition(".")[0]

    def _class_name(self, value: int) -> Optional[str]:
        """Of an object whose attributes are worth a look: the classes of Python code, and some of C's, are made at run
        time. None for all others."""
        try:
            info = self._objects.type_of(value)
        except (Fault, NotThat):
            return None
        return info.name if info.flags & L.FLAG_HEAP and info.name and not info.flags & L.FLAG_TYPE else None

    def _within(self, same: Same, named: Sequence[Tuple[str, int]]) -> Optional[str]:
        """In a container that is a variable, or an attribute of ``self``."""
        for name, value in named:
            key = self._key(same, value)
            if key is not None:
                return f"{name}[{key}]"
            if name in ("self", "cls"):
                for attribute, item in self._instance(value):
                    key = self._key(same, item)
                    if key is not None:
                        return f"{self._owner(name, value)}.{attribute}[{key}]"
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
