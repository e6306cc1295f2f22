"""The program's name of an object, from the frames that use it: ``lock_a``, ``Account.lock``, ``desks[2]``.

- Local names differ between the functions that use an object, so they count only if it has no other name; an attribute
  is named after its object's class.
- Frames of the modules that implement locks, queues and futures are skipped: their names (``self``, ``cm``) are generic
  (Lib/threading.py, queue.py, contextlib.py, concurrent/futures, importlib of 3.8-3.15).
"""

from __future__ import annotations

from typing import Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

from ...memory import Fault
from ..objects.attributes import attributes, class_value
from ..objects.builtins import NotThat, Objects
from ..runtime import layouts as L
from .frame import Frame, Frames

#: File endings of frames that only pass the program's objects on.
MACHINERY = (
    "/threading.py", "/contextlib.py", "/queue.py", "concurrent/futures/_base.py", "concurrent/futures/thread.py",
    "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>", "importlib/_bootstrap.py",
)  # fmt: skip
#: Standard packages whose class names say less than the variables that hold their instances.
_GENERAL = frozenset((
    "asyncio", "builtins", "collections", "concurrent", "contextlib", "logging", "multiprocessing", "queue", "threading",
    "types",
))  # fmt: skip
#: Types of objects that cannot be waited for.
_NEVER = frozenset((
    "function", "str", "int", "float", "bool", "bytes", "NoneType", "type", "module", "property", "classmethod",
    "staticmethod", "builtin_function_or_method", "getset_descriptor", "member_descriptor", "wrapper_descriptor",
    "method_descriptor", "classmethod_descriptor", "dict", "list", "tuple", "set", "frozenset",
))  # fmt: skip
_MOST_BASES, _MOST_KNOWN = 8, 10_000
_MAX_LOCALS, _MAX_GLOBALS, _MAX_ITEMS, _MAX_KEY = 200, 2000, 200, 24

Same = Callable[[int], bool]


class Names:
    """Names of objects in the frames of one interpreter."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._objects: Objects = frames.objects
        self._namespaces: Dict[int, Sequence[Tuple[str, int]]] = {}  # of classes and modules
        self._instances: Dict[int, Sequence[Tuple[str, int]]] = {}
        self._searched: Set[int] = set()  # classes already searched for the current object

    def find(self, same: Same, frames: Sequence[Frame]) -> Optional[str]:
        """Return the name of the object that ``same`` recognises by its address; None if it has none.

        In order of preference:
        - attribute of a local variable, in the innermost frame that has one;
        - global variable, or attribute of one;
        - local variable;
        - attribute of an attribute, or item in a container.
        """
        frames = [f for f in frames if not f.code.filename.endswith(MACHINERY)]
        modules = list({self._frames.globals(frame): frame for frame in reversed(frames)}.values())[::-1]
        self._searched.clear()
        passes: Tuple[Tuple[Sequence[Frame], Callable[[Frame], Optional[str]]], ...] = (
            (frames, lambda frame: self._attribute_of(same, self._locals(frame))),
            (modules, lambda frame: self._bare(same, self._module(frame))),
            (frames, lambda frame: self._bare(same, self._locals(frame))),
            (frames, lambda frame: self._deeper(same, frame)),
        )
        found = (name for where, look in passes for name in map(look, where) if name)
        name = next(found, None)
        # a private attribute of a library's object: prefer a plain name of the program's, if there is one
        foreign = name is not None and "._" in name and name[0].islower()
        return next((own for own in found if "." not in own and "[" not in own), name) if foreign else name

    def _deeper(self, same: Same, frame: Frame) -> Optional[str]:
        """Name an attribute of an attribute, or an item of a container."""
        named = self._locals(frame)
        return self._two_dots(same, named) or self._within(same, named) or self._within(same, self._globals(frame))

    def _two_dots(self, same: Same, named: Sequence[Tuple[str, int]]) -> Optional[str]:
        """Name an attribute of an attribute: ``self.fonts.lock``."""
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

    def _instance(self, value: int) -> Sequence[Tuple[str, int]]:
        """Return (name, address) of an object's attributes, cached; empty if unreadable."""
        if value not in self._instances:
            if len(self._instances) >= _MOST_KNOWN:
                self._instances.clear()
            try:
                found = list(attributes(self._objects, value).items())[:_MAX_LOCALS]
            except (Fault, NotThat):
                found = []
            self._instances[value] = found
        return self._instances[value]

    def _locals(self, frame: Frame) -> Sequence[Tuple[str, int]]:
        return list(self._frames.locals(frame))[:_MAX_LOCALS]

    def _globals(self, frame: Frame) -> Sequence[Tuple[str, int]]:
        namespace = self._frames.globals(frame)
        try:
            return list(self._objects.text_dict(namespace).items())[:_MAX_GLOBALS] if namespace else []
        except (Fault, NotThat):
            return []

    def _module(self, frame: Frame) -> Sequence[Tuple[str, int]]:
        """Return a frame's globals, their attributes and their classes' attributes, without unwaitable objects."""
        namespace = self._frames.globals(frame) or 0
        if namespace not in self._namespaces:
            named = self._globals(frame)
            inner = [
                (f"{name}.{a}", v) for name, value in named if self._class_name(value) for a, v in self._instance(value)
            ]
            self._namespaces[namespace] = self._objects_among([*named, *inner, *self._class_attributes(named)])
        return self._namespaces[namespace]

    def _class_attributes(self, named: Sequence[Tuple[str, int]]) -> Iterator[Tuple[str, int]]:
        """Yield the attributes of the classes of these values."""
        for cls in dict.fromkeys(cls for _name, value in named for cls in self._classes(value)):
            yield from ((f"{self._called(cls)}.{name}", value) for name, value in self._namespace(cls))

    def _objects_among(self, named: Iterable[Tuple[str, int]]) -> Sequence[Tuple[str, int]]:
        """Filter out functions, strings and the like: most of a module's or class's contents, never waited for."""
        return [(name, value) for name, value in named if self._objects.type_name(value) not in _NEVER][:_MOST_KNOWN]

    @staticmethod
    def _bare(same: Same, named: Sequence[Tuple[str, int]]) -> Optional[str]:
        return next((name for name, value in named if same(value)), None)

    def _attribute_of(self, same: Same, named: Sequence[Tuple[str, int]]) -> Optional[str]:
        """Name an attribute of an object or class among these.

        An owner that is itself recognised does not count: a Condition holds its lock.
        """
        for name, value in named:
            for cls in self._classes(value):
                found = None if cls in self._searched else self._bare(same, self._namespace(cls))
                self._searched.add(cls)
                if found is not None:
                    return f"{self._called(cls)}.{found}"
            found = self._bare(same, self._instance(value)) if self._class_name(value) is not None else None
            if found is not None and not same(value):
                return f"{self._owner(name, value)}.{found}"
        return None

    def _classes(self, value: int) -> Sequence[int]:
        """Return the class of an object (or itself, if a class) and its bases, up to the first not made at run time."""
        objects = self._objects
        found: List[int] = []
        try:
            info = objects.type_of(value)
            if info.flags & L.FLAG_TYPE:
                info = objects.type_at(value)
            while info.flags & L.FLAG_HEAP and len(found) < _MOST_BASES:
                found.append(info.address)
                if not info.base:
                    break
                info = objects.type_at(info.base)
        except (Fault, NotThat):
            pass
        return found

    def _namespace(self, cls: int) -> Sequence[Tuple[str, int]]:
        """Return the attributes of a class, cached, without unwaitable objects."""
        if cls not in self._namespaces:
            try:
                namespace = self._objects.memory.u64(cls + self._objects.layout.tp_dict)
                items = list(self._objects.text_dict(namespace).items()) if namespace else []
            except (Fault, NotThat):
                items = []
            self._namespaces[cls] = self._objects_among(items[:_MAX_GLOBALS])
        return self._namespaces[cls]

    def _called(self, cls: int) -> str:
        """Return the unqualified name of a class."""
        return self._objects.type_at(cls).name.rsplit(".", maxsplit=1)[-1]

    def _owner(self, name: str, value: int) -> str:
        """Return the name of an attribute's owner: its class, or the variable for general standard classes."""
        called = (self._objects.type_name(value) or name).rsplit(".", maxsplit=1)[-1]
        return called if name in ("self", "cls") or self._package(value) not in _GENERAL else name

    def _package(self, value: int) -> str:
        """Return the top-level package of an object's class; empty if unknown."""
        module = class_value(self._objects, value, "__module__")
        return ((module and self._objects.optional_text(module)) or "").partition(".")[0]

    def _class_name(self, value: int) -> Optional[str]:
        """Return the class name of an object whose class was made at run time; None for all others.

        Such objects may have attributes worth a search: classes of Python code, and some of C.
        """
        try:
            info = self._objects.type_of(value)
        except (Fault, NotThat):
            return None
        return info.name if info.flags & L.FLAG_HEAP and info.name and not info.flags & L.FLAG_TYPE else None

    def _within(self, same: Same, named: Sequence[Tuple[str, int]]) -> Optional[str]:
        """Name an item of a container that is a variable, or an attribute of ``self``."""
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
        """Return the index or key of the object in a container; None if it is not there."""
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
        """Return the text of a key."""
        text = self._objects.optional_text(key)
        if text is not None:
            return repr(text[:_MAX_KEY])
        try:
            return str(self._objects.integer(key))
        except (Fault, NotThat):
            return "…"
