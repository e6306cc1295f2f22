"""Memory channels of trio and memory object streams of anyio: what their two kinds of ends have in common.

All ends of a channel refer to one state, as ``_state``. The state counts the open ends and has the waiting tasks (trio) or
their events (anyio), and the buffer: ``data`` or ``buffer``.

Sources: trio/_channel.py of 0.20-0.35 (MemoryChannelState; ends with a ``__dict__``); anyio/streams/memory.py of
3.0-4.16 (MemoryObjectStreamState, since 4.13 with an underscore).
"""

from __future__ import annotations

import math
from typing import Optional

from ..cpython.heap.parts import Parts
from ..cpython.objects.builtins import NotThat, Objects
from ..memory import Fault
from .asyncio.primitives import Primitive

#: Attributes of every state.
_COUNTS = ("open_send_channels", "open_receive_channels", "max_buffer_size")
_BUFFERS = ("data", "buffer")
#: Classes of ends, by what they are for.
SENDING = frozenset(("MemorySendChannel", "MemoryObjectSendStream"))
RECEIVING = frozenset(("MemoryReceiveChannel", "MemoryObjectReceiveStream"))


def channel_of(objects: Objects, parts: Parts, end: Optional[int], library: str) -> Optional[Primitive]:
    """Return the channel of an end as a queue, whose address is that of the shared state; None if it is none."""
    state = parts.attributes(end).get("_state") if end else None
    return channel(objects, parts, state, library) if state else None


def channel(objects: Objects, parts: Parts, state: int, library: str) -> Optional[Primitive]:
    """Return the channel with a state as a queue; None for any other object.

    ``limit`` is 0 without a bound, as of queues, and None for a channel without a buffer.
    """
    values = parts.attributes(state)
    if any(name not in values for name in _COUNTS):
        return None
    buffer = next((values[name] for name in _BUFFERS if name in values), None)
    size = _number(objects, values["max_buffer_size"])
    limit = None if size is None or size <= 0 else 0 if math.isinf(size) else int(size)
    items = objects.length_or_none(buffer)
    called = "memory channel" if library == "trio" else "memory object stream"
    return Primitive(state, "queue", value=items, limit=limit, library=library, called=called, unbuffered=size == 0)


def _number(objects: Objects, address: int) -> Optional[float]:
    try:
        found = objects.number(address)
    except (Fault, NotThat):
        return None
    return None if math.isnan(found) else found
