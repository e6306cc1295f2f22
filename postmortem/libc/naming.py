"""Names of native locks: the variable if a symbol covers it, else the function that waits for the lock."""

from __future__ import annotations

from typing import NamedTuple, Optional

from ..memory import Image
from ..memory.symbols import readable, variable_at
from .nativewait import NativeWait

_WHAT = {
    "stream": "lock of a stream", "guard": "static guard", "once": "call_once", "condition": "condition variable",
    "parked": "lock of the interpreter",
}  # fmt: skip
#: Variable of the dynamic loader → name of the lock in it.
_KNOWN = {"_rtld_global": "the dynamic loader's lock (dlopen)", "_rtld_local": "the dynamic loader's lock (dlopen)"}


class Wanted(NamedTuple):
    """Call site of a wait: native function, its module, and the return address of its call."""

    function: Optional[str]
    module: Optional[str]
    address: int


def describe(image: Image, found: NativeWait, wanted: Optional[Wanted]) -> str:
    """Describe a native lock without its address.

    Examples: ``mutex `table_lock` of libshelves.so``, ``a mutex wanted in table_put of _tables.so``.
    """
    if found.kind == "thread":
        return f"thread {found.owner} (pthread_join)"
    what = _WHAT.get(found.kind, found.kind)
    variable = variable_at(image, found.address)
    name = variable.name if variable is not None else None
    if name in _KNOWN:
        return _KNOWN[name]
    if name is not None and variable is not None:
        called = f"{what} of `{readable(name)}`" if found.kind == "guard" else f"{what} `{readable(name)}`"
        inside = f" in {wanted.function}" if found.kind == "guard" and wanted and wanted.function else ""
        return f"{called}{inside} of {_base(variable.file)}"
    if wanted is not None and wanted.function is not None:
        return f"a {what} wanted in {wanted.function}" + (f" of {_base(wanted.module)}" if wanted.module else "")
    module = variable.file if variable is not None else wanted.module if wanted is not None else None
    return f"a {what} of {_base(module) if module else 'native code'}"


def _base(path: str) -> str:
    """Return the last component of a path."""
    return path.rsplit("/", 1)[-1]
