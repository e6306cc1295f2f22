"""What threads and tasks wait for, who has it, and who could end the wait."""

from __future__ import annotations

from typing import Optional, Tuple

import msgspec

from .stacks import PythonFrame
from .vocabulary import EndMode, OwnerBasis, ResourceKind, WakerBasis, WakerRole


class Waker(msgspec.Struct, frozen=True):
    """Somebody who could end a wait: by giving back what he holds, by doing the work, or by signalling the object.

    A thread, a task, a whole process, or (with only a ``name``) something else, such as a timer or a signal handler.
    """

    role: WakerRole
    basis: WakerBasis
    pid: Optional[int] = None  # None: the process that the resource belongs to
    tid: Optional[int] = None
    task: Optional[str] = None
    frame: Optional[PythonFrame] = None  # where it took the resource, or from where it refers to it
    name: Optional[str] = (
        None  # to people: "queue of ThreadPoolExecutor-0", "descriptor 7", "global REGISTRY of app.main"
    )


class End(msgspec.Struct, frozen=True):
    """A descriptor that some process holds of a pipe, a pair of sockets, …"""

    pid: int
    fd: int
    mode: EndMode
    in_tree: bool = True  # False: a process that was not captured
    program: Optional[str] = None  # of one that was not captured


class Resource(msgspec.Struct, frozen=True):
    """A thing that threads or tasks wait for. ``id`` is unique in its process and carries no address."""

    id: str
    kind: ResourceKind
    description: str
    owner_tid: Optional[int] = None
    owner_basis: Optional[OwnerBasis] = None
    waiters: Tuple[int, ...] = ()
    locked: Optional[bool] = None
    local: Optional[str] = None  # sockets: local and remote address
    remote: Optional[str] = None
    accepted: Optional[bool] = None  # sockets: the local port is one this tree listens on
    listening: Optional[bool] = None
    peer_in_tree: Optional[bool] = None
    waiting_tasks: Tuple[str, ...] = ()
    owner_task: Optional[str] = None  # the task that holds it: of asyncio's locks
    owner_pid: Optional[int] = None  # the process that holds it, when it is another one
    owner_gone: Optional[bool] = None  # True: its record names a thread or process that is no more
    wakers: Tuple[Waker, ...] = ()  # beside the owner
    closed: Optional[bool] = None  # True: nobody but owner and wakers can end a wait. None: others may, or unknown
    because: Tuple[str, ...] = ()  # how that is known, the conclusion first
    steps: Tuple[str, ...] = ()  # and what it rests on in full, for those who want to check it
    key: Optional[str] = None  # the same in every process that shares it: "pipe:[123]"
    value: Optional[int] = None  # permits of a semaphore, items in a queue, bytes in a pipe
    limit: Optional[int] = None  # places in all: of a queue (0: no bound), a pool, a pipe
    ends: Tuple[End, ...] = ()
    part_of: Optional[str] = None  # the resource, or the pool, that this one is a part of: of a condition its lock
    state: Optional[str] = None  # socket: "ESTABLISHED", …; future: "pending", …; terminal: "foreground", …
    received: Optional[int] = None  # bytes of a socket that wait to be read
    unsent: Optional[int] = None  # bytes of a socket that the other side has not taken
    taken_at: Tuple[
        PythonFrame, ...
    ] = ()  # of a locked lock that nobody here is known to hold: where the program takes it
    named: Optional[bool] = None  # False: no variable that was looked at leads to it, so nobody gets at it by a name
    module: Optional[str] = None  # of an import lock: the module that is imported
    released_at: Tuple[PythonFrame, ...] = ()  # of such a lock: functions that give it back without having taken it
