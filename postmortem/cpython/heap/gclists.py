"""The garbage collector's lists: every container of an interpreter, referenced or not.

- Each generation is a ring of PyGC_Head (``_gc_next``, ``_gc_prev``), 16 bytes before each object; the ring's head is
  in the collector's state.
- Number and place of the generations change with almost every release, so heads are found by their neighbours, which
  point back.

Limits: free-threaded builds have no lists; during a collection the rings are open and not found.

Source: Include/internal/pycore_gc.h of 3.8-3.15.
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
#: Bytes searched on either side of the collector's flag ``collecting``.
_REACH = 1024
#: Bytes of gc_generation_stats: three generations of three words.
_STATS = 72
_MOST_COLLECTIONS = 1 << 48
_FLAGS = 3  # lowest two bits of a link, used by the collector


def tracked(python: Python, interpreter: InterpreterState) -> Iterator[int]:
    """Yield the addresses of all tracked objects; a damaged ring ends early.

    Raises: NotThat if no ring was found.
    """
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
    """Map each type name to its number of tracked objects. Raises NotThat as ``tracked``."""
    found: Dict[str, int] = {}
    for address in tracked(python, interpreter):
        name = python.objects.type_name(address) or "?"
        found[name] = found.get(name, 0) + 1
    return found


def ring_heads(python: Python, interpreter: InterpreterState) -> List[int]:
    """Return the heads of the collector's rings; empty during a collection, and in free-threaded builds."""
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
    """Return the address of the collector's ``collecting`` flag; None if the layout has none.

    ``interpreter``: address of a PyInterpreterState.
    """
    layout = runtime.layout
    if layout.rt_gc_collecting >= 0:
        return runtime.address + layout.rt_gc_collecting
    return interpreter + layout.is_gc_collecting if layout.is_gc_collecting >= 0 else None


def collections(memory: Memory, runtime: Runtime, flag: int) -> Optional[Tuple[int, ...]]:
    """Return the number of collections of each generation, youngest first; None if unknown.

    Up to 3.14 three ``gc_generation_stats`` (collections, collected, uncollectable) precede the flag
    (Include/internal/pycore_gc.h, pycore_mem.h of 3.8). 3.15 has them behind a pointer in another form: unknown.

    Raises: Fault.
    """
    if runtime.layout.version >= (3, 15):
        return None
    words = memory.words(flag - _STATS, _STATS // 8)
    found = words[0::3]
    return found if all(count < _MOST_COLLECTIONS for count in found) else None


def _closes(python: Python, place: int, after: int, before: int) -> bool:
    """Return whether both neighbours of a possible head point back to it."""
    try:
        return _next(python, before) == place and python.memory.u64(after + 8) & ~_FLAGS == place
    except Fault:
        return False


def _next(python: Python, node: int) -> int:
    """Return the next node of a ring. Raises Fault."""
    return python.memory.u64(node) & ~_FLAGS


def _after(python: Python, node: int, head: int) -> int:
    """Return the next node of a ring; 0 after its last. Raises Fault."""
    following = _next(python, node)
    return 0 if following == head else following
