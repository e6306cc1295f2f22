"""Names of types whose ``tp_name`` is lost.

``tp_name`` of a type declared in C points into read-only data of its file. Cores omit that data, and the file may have
been upgraded or deleted since. The type objects are in the core, and the interpreter's own modules refer to them, or to
an instance, under known names.

Sources: Lib/types.py (how each type is obtained); Modules/_threadmodule.c (LockType, RLock);
Lib/importlib/_bootstrap.py (``_wrap``, the first function of every interpreter; the module is frozen and always
imported).
"""

from __future__ import annotations

import contextlib
from typing import Dict, Iterator, Tuple

from ...memory import Fault
from ..objects.builtins import NotThat, Objects
from ..runtime import layouts as L

#: Module whose types, exceptions included, are named like their variables.
_BUILTINS = "builtins"
#: (module, variable that holds the type, tp_name)
_TYPES = (
    ("types", "GeneratorType", "generator"),
    ("types", "CoroutineType", "coroutine"),
    ("types", "AsyncGeneratorType", "async_generator"),
    ("types", "MethodType", "method"),
    ("types", "CellType", "cell"),
    ("types", "FrameType", "frame"),
    ("types", "TracebackType", "traceback"),
    ("types", "MemberDescriptorType", "member_descriptor"),
    ("types", "GetSetDescriptorType", "getset_descriptor"),
    ("types", "SimpleNamespace", "types.SimpleNamespace"),
    ("_thread", "LockType", "_thread.lock"),
    ("_thread", "RLock", "_thread.RLock"),
    ("collections", "deque", "collections.deque"),
    ("_queue", "SimpleQueue", "_queue.SimpleQueue"),
)
#: (module, variable that holds an object of the type, tp_name)
_EXAMPLES = (
    ("builtins", "len", "builtin_function_or_method"),
    ("builtins", "None", "NoneType"),
    ("_frozen_importlib", "sys", "module"),
    ("_frozen_importlib", "_wrap", "function"),
)


def read_type_names(objects: Objects, modules: int) -> Dict[int, str]:
    """Map addresses of types to tp_name, as far as ``sys.modules`` leads to them. Never raises.

    ``modules``: address of ``sys.modules``.
    """
    spaces = _Namespaces(objects, modules)
    found: Dict[int, str] = {}
    for name, value in spaces.items(_BUILTINS):
        if _is_type(objects, value):
            found[value] = name
    for module, variable, name in _TYPES:
        value = spaces.get(module, variable)
        if value and _is_type(objects, value):
            found[value] = name
    for module, variable, name in _EXAMPLES:
        value = spaces.get(module, variable)
        if value:
            _note(objects, found, value, name)
    function = spaces.get("_frozen_importlib", "_wrap")
    if function:
        _note_code(objects, found, function)
    return found


class _Namespaces:
    """Variables of modules, each module read once."""

    def __init__(self, objects: Objects, modules: int) -> None:
        self._objects = objects
        self._known: Dict[str, Dict[str, int]] = {}
        try:
            self._modules = objects.text_dict(modules)
        except (Fault, NotThat):
            self._modules = {}

    def items(self, module: str) -> Iterator[Tuple[str, int]]:
        """Return (name, address) of a module's variables."""
        if module not in self._known:
            self._known[module] = self._read(module)
        return iter(self._known[module].items())

    def get(self, module: str, variable: str) -> int:
        """Return the address of a module's variable; 0 if missing."""
        return dict(self.items(module)).get(variable, 0)

    def _read(self, module: str) -> Dict[str, int]:
        try:
            # PyModuleObject.md_dict, Include/internal/pycore_moduleobject.h
            return self._objects.text_dict(self._objects.field(self._modules[module], L.MODULE_DICT))
        except (KeyError, Fault, NotThat):
            return {}


def _is_type(objects: Objects, address: int) -> bool:
    """Return whether an object is a type."""
    try:
        return bool(objects.type_of(address).flags & L.FLAG_TYPE)
    except (Fault, NotThat):
        return False


def _note(objects: Objects, found: Dict[int, str], address: int, name: str) -> None:
    """Record the name of an object's type."""
    with contextlib.suppress(Fault, NotThat):
        found.setdefault(objects.type_of(address).address, name)


def _note_code(objects: Objects, found: Dict[int, str], function: int) -> None:
    """Record the name of the type of a function's code object."""
    with contextlib.suppress(Fault):
        _note(objects, found, objects.memory.u64(function + objects.layout.func_code), "code")
