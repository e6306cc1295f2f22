"""Waits for file locks by polling: attempts with sleeps in between, and the file that they are about.

- An attempt to lock a file leaves no trace in the kernel: the call returns at once. So the
  code of the sleeping function is searched: it names the call, or a function or method that names it. The file is a
  path in one of its variables, or an open descriptor.
- SQLite sleeps inside its own call (busy_timeout: sqliteDefaultBusyCallback in main.c).
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterator, List, Set, Tuple

from ...memory import Fault
from ..frames.calls import callable_name
from ..frames.frame import Frame, Frames
from ..frames.functions import Functions
from ..objects.attributes import attribute, attributes, class_value
from ..objects.builtins import NotThat
from ..objects.code import Code

#: Names and C functions that try to lock a file without waiting (Modules/fcntlmodule.c).
_LOCKS = frozenset(("flock", "lockf", "LOCK_NB", "F_SETLK", "F_OFD_SETLK"))
#: Name of the flag with which a file is made only if there is none: whoever made it holds the lock (open(2)).
_EXCLUSIVELY = frozenset(("O_EXCL",))
#: (file ending, function, variable with its time limit in seconds, negative for none). filelock 3.0-3.16.
_LIMITS = (("filelock/_api.py", "acquire", "timeout"), ("/filelock.py", "acquire", "timeout"))
#: Most calls from the sleeping function to the one that tries.
_DEPTH = 3
_MOST_CODES, _MOST_NAMES, _MOST_VALUES = 60, 300, 200


def asks_for_file_locks(frames: Frames, frame: Frame) -> bool:
    """Return whether a function, or one that it names, tries to lock files."""
    return _asks(frames, frame, _LOCKS)


def makes_lock_files(frames: Frames, frame: Frame) -> bool:
    """Return whether a function, or one that it names, makes files only where there are none."""
    return _asks(frames, frame, _EXCLUSIVELY)


def _asks(frames: Frames, frame: Frame, names: FrozenSet[str]) -> bool:
    search = _Search(frames, frame, names)
    try:
        return search.asks(frame.code, frames.globals(frame) or 0, _DEPTH)
    except (Fault, NotThat):
        return False


def has_no_limit(frames: Frames, frame: Frame) -> bool:
    """Return whether a function is known to poll without a time limit."""
    name = next((local for file, function, local in _LIMITS if frame.is_in(function, file)), None)
    value = frames.local(frame, name) if name is not None else None
    try:
        return value is not None and frames.objects.number(value) < 0
    except (Fault, NotThat):
        return False


def texts(frames: Frames, frame: Frame) -> List[str]:
    """Return the strings, including paths, in a function's variables and in their attributes."""
    objects = frames.objects
    values = [value for _name, value in frames.locals(frame)][:_MOST_VALUES]
    for value in tuple(values):
        try:
            values += list(attributes(objects, value).values())[:_MOST_VALUES]
        except (Fault, NotThat):
            continue
    found = []
    for value in dict.fromkeys(values):
        text = objects.optional_text(value)
        if text is None:  # pathlib stores its parts, and the whole path once it was used
            part = attribute(objects, value, "_str")
            text = objects.optional_text(part) if part else None
        if text:
            found.append(text)
    return found


class _Search:
    """Search through the functions that a function names.

    Followed are methods of its ``self``, globals of its module, and functions of modules among these. A name need not
    be a call: that the function names the locking call is enough.
    """

    def __init__(self, frames: Frames, frame: Frame, wanted: FrozenSet[str]) -> None:
        self._wanted = wanted
        self._frames, self._objects = frames, frames.objects
        self._functions = Functions(frames)
        self._self = frames.local(frame, "self")
        self._seen: Set[int] = set()

    def asks(self, code: Code, namespace: int, depth: int) -> bool:
        """Return whether code, or code that it names, uses a locking name. Raises Fault or NotThat."""
        names = code.used_names()[:_MOST_NAMES]
        if self._wanted.intersection(names):
            return True
        if depth <= 1 or code.address in self._seen or len(self._seen) >= _MOST_CODES:
            return False
        self._seen.add(code.address)
        return any(self._leads(value, depth - 1) for value in self._named(names, namespace))

    def _leads(self, value: int, depth: int) -> bool:
        """Return whether a value is a locking C function, or a Python function that leads to one."""
        if self._objects.type_name(value) == "builtin_function_or_method":
            return (callable_name(self._objects, value) or "") in self._wanted
        function = self._functions.function(value)
        code = self._functions.code(function)
        return code is not None and self.asks(code, self._functions.globals(function or 0), depth)

    def _named(self, names: Tuple[str, ...], namespace: int) -> Iterator[int]:
        """Yield the values that names may refer to: methods of ``self``, globals, attributes of modules."""
        known: Dict[str, int] = self._objects.text_dict(namespace) if namespace else {}
        for name in names:
            method = class_value(self._objects, self._self, name) if self._self else None
            if method is not None:
                yield method
            value = known.get(name)
            if value is None:
                continue
            yield value
            if self._objects.type_name(value) == "module":
                inner = self._objects.text_dict(self._objects.field(value, 16))
                yield from (inner[other] for other in names if other in inner)
