"""Resources that threads and tasks wait for, with their holders and wakers."""

from __future__ import annotations

from typing import Optional, Tuple

import msgspec

from .facts import Because
from .stacks import PythonFrame
from .vocabulary import EndMode, OwnerBasis, ResourceKind, WakerBasis, WakerGrade, WakerRole


class Waker(msgspec.Struct, frozen=True):
    """An agent that could end a wait: by releasing a resource, doing the work, or signalling the object.

    A thread, a task, a whole process, or (with only a ``name``) something else, such as a timer or a signal handler.
    """

    role: WakerRole
    basis: WakerBasis
    pid: Optional[int] = None  # None: the process that owns the resource
    tid: Optional[int] = None
    task: Optional[str] = None
    frame: Optional[PythonFrame] = None  # where it acquired the resource, or the frame that refers to it
    # for the reader: "queue of ThreadPoolExecutor-0", "descriptor 7", "global REGISTRY of app.main"
    name: Optional[str] = None
    grade: Optional[WakerGrade] = (
        None  # of role "reach", and of a runner of queued jobs those of the jobs; None: unknown
    )
    site: Optional[PythonFrame] = None  # where the operation is applied, or the object handed on


class End(msgspec.Struct, frozen=True):
    """A descriptor held by a process on a pipe, socket pair or similar resource."""

    pid: int
    fd: int
    mode: EndMode
    in_tree: bool = True  # False: the process was not captured
    program: Optional[str] = None  # for a process that was not captured


#: State of a shared semaphore that nobody holds: a condition, event or barrier shared by processes is waited for.
SIGNALLED = "signalled"


class Resource(msgspec.Struct, frozen=True):
    """An object that threads or tasks wait for. ``id`` is unique in its process and contains no address."""

    id: str
    kind: ResourceKind
    description: str
    owner_tid: Optional[int] = None
    owner_basis: Optional[OwnerBasis] = None
    waiters: Tuple[int, ...] = ()
    locked: Optional[bool] = None
    local: Optional[str] = None  # sockets: local and remote address
    remote: Optional[str] = None
    accepted: Optional[bool] = None  # sockets; True: the local port is one this process tree listens on
    listening: Optional[bool] = None
    peer_in_tree: Optional[bool] = None
    waiting_tasks: Tuple[str, ...] = ()
    owner_task: Optional[str] = None  # the task that holds an asyncio lock
    owner_pid: Optional[int] = None  # the holding process, if it is another one
    owner_gone: Optional[bool] = None  # True: its record names a thread or process that has ended
    wakers: Tuple[Waker, ...] = ()  # in addition to the owner
    closed: Optional[bool] = None  # True: only the owner and wakers can end a wait; None: others may, or unknown
    because: Tuple[Because, ...] = ()  # why `closed` holds, the conclusion first
    steps: Tuple[Because, ...] = ()  # the complete derivation of `because`, for verification
    key: Optional[str] = None  # equal in every process that shares it: "pipe:[123]"
    value: Optional[int] = None  # permits of a semaphore, items in a queue, bytes in a pipe
    limit: Optional[int] = None  # capacity of a queue (0: unbounded), a pool, a pipe
    ends: Tuple[End, ...] = ()
    part_of: Optional[str] = None  # id of the resource or pool it belongs to: for a condition's lock: the condition
    # socket: "ESTABLISHED", …; future: "pending", …; terminal: "foreground", …; shared-semaphore: SIGNALLED
    state: Optional[str] = None
    received: Optional[int] = None  # bytes in a socket's receive queue
    unsent: Optional[int] = None  # bytes in a socket's send queue that the peer has not acknowledged
    taken_at: Tuple[
        PythonFrame, ...
    ] = ()  # where the program acquires a held lock without a known holder, or a spent semaphore
    named: Optional[bool] = None  # False: no examined variable refers to it, so no code can reach it by name
    file: Optional[str] = None  # for a native object that processes share: path of the mapped file that it lies in
    module: Optional[str] = None  # for an import lock: the module that is imported
    # True: a condition, semaphore or barrier of native code, of which only the wait is known, not what it is for; a
    # shared-semaphore of native code, of which only its name and value are
    native: Optional[bool] = None
    # True: closed but for places, such as globals, that are among the wakers and that no code which can still run names
    unnamed: Optional[bool] = None
    left_behind: Optional[bool] = None  # True: a thread that fork left behind has it in its frames, which nobody runs
    released_at: Tuple[PythonFrame, ...] = ()  # functions that release such an object without having acquired it
