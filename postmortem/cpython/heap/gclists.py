"""The garbage collector's own lists: every container of an interpreter, whether anything still leads to it or not.

Each generation is a ring of PyGC_Head (``_gc_next``, ``_gc_prev``; Include/internal/pycore_gc.h of 3.8-3.15), 16 bytes
in front of each object, and the ring's head lies in the collector's state. How many generations there are, and where,
changed with almost every version; that a head's neighbours point back to it did not, so heads are found by that.
Free-threaded builds keep no lists. While a collection runs its rings are open, and not found.
"""

from __future__ import annotations

import struct
from typing import Dict, Iterator, List, Optional, Tuple

from ...memory import Fault, Memory
from ..objects.builtins import NotThat
from ..objects.links import linked
from ..runtime.discovery import Runtime
from ..state.interpreter import InterpreterState, Python

MAX_TRACKED = 2_000_000
_HEAD = 16
_LINKS = struct.Struct("<QQ")
#: How far from its flag ``collecting`` the collector's state is looked through, in bytes either way.
_REACH = 1024
#: Three generations of three words.
_STATS = 72
_MOST_COLLECTIONS = 1 << 48
_FLAGS = 3  # of a link the lowest two bits are the collector's


def tracked(python: Python, interpreter: InterpreterState) -> Iterator[int]:
    """The addresses of all tracked objects. A damaged ring ends early; NotThat when no ring was found at all."""
    heads = ring_heads(python, interpreter)
    if not heads:
        raise NotThat("the collector's lists were not found: a free-threaded build, or a collection in progress")
    left = MAX_TRACKED
    for head in heads:
        try:
            for node in linked(_next(python, head), lambda node, head=head: _after(python, node, head), left):  # type: ignore[misc]
                if node == head:
                    break  # an empty ring
                left -= 1
                yield node + _HEAD
        except (Fault, NotThat):
            continue


def counts(python: Python, interpreter: InterpreterState) -> Dict[str, int]:
    """How many tracked objects there are of each type. Raises NotThat as ``tracked`` does."""
    found: Dict[str, int] = {}
    for address in tracked(python, interpreter):
        name = python.objects.type_name(address) or "?"
        found[name] = found.get(name, 0) + 1
    return found


def ring_heads(python: Python, interpreter: InterpreterState) -> List[int]:
    """Where the collector's rings begin and end; none while it collects, and in free-threaded builds."""
    flag = collecting_flag(python.runtime, interpreter.address)
    if flag is None or python.runtime.free_threaded:
        return []
    start = (flag & ~7) - _REACH
    try:
        data = python.memory.read(start, 2 * _REACH + 16)
    except Fault:
        return []
    found = []
    for offset in range(0, 2 * _REACH, 4):  # 3.13.18 packs the state: its heads are aligned to 4
        after, before = (link & ~_FLAGS for link in _LINKS.unpack_from(data, offset))
        if after and before and _closes(python, start + offset, after, before):
            found.append(start + offset)
    return found


def collecting_flag(runtime: Runtime, interpreter: int) -> Optional[int]:
    """Where the collector's state says whether it is at work; ``interpreter``: address of a PyInterpreterState."""
    layout = runtime.layout
    if layout.rt_gc_collecting >= 0:
        return runtime.address + layout.rt_gc_collecting
    return interpreter + layout.is_gc_collecting if layout.is_gc_collecting >= 0 else None


def collections(memory: Memory, runtime: Runtime, flag: int) -> Optional[Tuple[int, ...]]:
    """How often each generation has been collected so far, the youngest first: three ``gc_generation_stats`` (collections,
    collected, uncollectable) right before the flag (Include/internal/pycore_gc.h, pycore_mem.h of 3.8; 3.8-3.14). 3.15
    keeps them behind a pointer, in another form: unknown."""
    if runtime.layout.version >= (3, 15):
        return None
    words = memory.words(flag - _STATS, _STATS // 8)
    found = words[0::3]
    return found if all(count < _MOST_COLLECTIONS for count in found) else None


def _closes(python: Python, place: int, after: int, before: int) -> bool:
    try:
        return _next(python, before) == place and python.memory.u64(after + 8) & ~_FLAGS == place
    except Fault:
        return False


def _next(python: Python, node: int) -> int:
    return python.memory.u64(node) & ~_FLAGS


def _after(python: Python, node: int, head: int) -> int:
    """The next node of a ring, 0 behind its last."""
    following = _next(python, node)
    return 0 if following == head else following
