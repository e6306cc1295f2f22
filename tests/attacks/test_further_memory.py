"""Memory that another user's target has prepared: objects that lie, and pages that block whoever reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Iterator

import pytest

from . import further
from .further import Place, captured, running

pytestmark = [pytest.mark.live, pytest.mark.skipif(os.geteuid() != 0, reason="needs root, and another user beside it")]

HANG = """
import threading, time
lock = threading.Lock()
lock.acquire()
def wait(held):
    lock.acquire()
threading.Thread(target=wait, args=(HELD,), daemon=True).start()
print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture
def place() -> Iterator[Place]:
    with further.place() as made:
        yield made


ABSURD_CODE = """
import ctypes, threading, time
def stand():
    time.sleep(600)
base = stand.__code__
codes = []
for first in (2**31 - 1, -2**31, -1, 0):
    try:
        codes.append(base.replace(co_firstlineno=first))
    except ValueError:  # written over then: the interpreter has its own idea of sense
        codes.append(base.replace(co_firstlineno=4711))
        words = ctypes.cast(id(codes[-1]), ctypes.POINTER(ctypes.c_int32))
        words[next(n for n in range(60) if words[n] == 4711)] = first
codes.append(base.replace(co_name="\\ud800\\x00\\x1b]0;x\\x07" + "n" * 200_000, co_filename="\\x00"))
codes.append(base.replace(co_filename="/" + "f" * 3_000_000 + ".py", co_name=""))
for table in (b"", b"\\xff" * 9000, bytes(range(256)) * 40, b"\\x80" * 3, b"\\xf8" + b"\\x7f" * 4000):
    field = "co_linetable" if hasattr(base, "co_linetable") else "co_lnotab"
    codes.append(base.replace(**{field: table}))
if hasattr(base, "co_qualname"):
    codes.append(base.replace(co_qualname="::error::\\n##vso[x]\\u202e" * 900))
for code in codes:
    stand.__code__ = code
    function = type(stand)(code, globals())
    threading.Thread(target=function, daemon=True, name="t" * 100_000).start()
time.sleep(0.2)
"""
HOSTILE_MODULES = """
import asyncio, collections, logging, sys, threading, time, types
class Loud(str):
    def __eq__(self, other): raise SystemExit
    __hash__ = str.__hash__
ring = []
ring.append(ring)
threading._active = {n: ring for n in range(50_000)}
threading._limbo = threading._active
threading._shutdown_locks = ring
threading._main_thread = Loud("x" * 1000)
asyncio.tasks._all_tasks = 7
asyncio.tasks._scheduled_tasks = Loud("y")
logging._handlers = type("M", (), {"__class__": dict, "data": ring})()
for name in ("queue", "concurrent.futures.thread", "multiprocessing.pool", "gevent.hub", "greenlet", "trio._core._run",
             "twisted.internet.reactor", "_pytest.runner", "gunicorn.arbiter", "celery.worker", "anyio"):
    module = types.ModuleType("\\ud800" * 99)
    module.__dict__.update(vars(threading))
    module.__file__ = "/proc/self/fd/0\\x00"
    sys.modules[name] = module
sys.modules["asyncio.base_events"] = ring
sys.modules["threading"] = Loud("not a module")
sys.modules[Loud("\\udcff\\x1b")] = None
"""
OTHER_CLASSES = """
import asyncio, collections, queue, threading, time
class Claims:
    @property
    def __class__(self): return type(threading.Lock())
def relatives(of):
    class Same(of):
        __slots__ = ()
    Same.__name__ = of.__name__
    Same.__qualname__ = of.__qualname__
    Same.__module__ = of.__module__
    return Same
ring = []
ring.append(ring)
deep = []
for _ in range(200_000):
    deep = [deep]
made = [Claims(), ring, deep]
condition = threading.Condition()
condition._waiters = collections.deque([ring, condition, 7, None] * 10_000)
condition._lock = condition
semaphore = threading.Semaphore()
semaphore._value, semaphore._cond = -10**400, semaphore
waits = queue.Queue()
waits.mutex = waits.not_empty = waits.not_full = waits
waits.maxsize, waits.unfinished_tasks = 10**4000, float("nan")
event = threading.Event()
event._cond, event._flag = event, 10**300
reentrant = threading._PyRLock()
reentrant._owner, reentrant._count, reentrant._block = 2**63 + 1, -1, reentrant
loop = asyncio.new_event_loop()
future = loop.create_future()
loop._ready = collections.deque([loop, future, ring] * 9999)
loop._scheduled = [loop] * 9999
loop._selector = loop
for kind in (dict, list, int, str, tuple, collections.deque):
    made.append(relatives(kind)())
held = [made, condition, semaphore, waits, event, reentrant, loop, future]
for thing in held:
    threading.Thread(target=lambda it=thing: time.sleep(600), daemon=True, name=str(10**300)).start()
HELD = held
"""
OVERWRITTEN_TYPES = """
import ctypes, threading, time
class Type:
    __slots__ = ("a", "b", "c")
things = [Type() for _ in range(64)]
words = [0, 1, 7, 2**64 - 1, 2**63, 0xDEAD0000, id(things), id(Type), id(type), id(threading)]
for number, thing in enumerate(things):
    slots = ctypes.cast(id(thing), ctypes.POINTER(ctypes.c_uint64))
    slots[0] = 2**30
    slots[2] = id(thing) if number % 3 else words[number % len(words)]
    slots[3] = words[(number * 7) % len(words)]
copies = ctypes.create_string_buffer(ctypes.string_at(id(Type), 400) * 2, 1000)
for number in range(0, 400, 8):
    word = ctypes.c_uint64.from_buffer(copies, number)
    if number not in (0, 8):
        word.value = words[(number // 8) % len(words)]
ctypes.cast(id(things[5]), ctypes.POINTER(ctypes.c_uint64))[1] = ctypes.addressof(copies)
HELD = things
"""
GRAPH = """
import threading, time
locks = [threading.Lock() for _ in range(400)]
started = threading.Barrier(401)
def circle(number):
    with locks[number]:
        started.wait()
        with locks[(number + 1) % 400]:
            pass
threading.stack_size(64 << 10)
for number in range(400):
    threading.Thread(target=circle, args=(number,), daemon=True).start()
started.wait()
"""
MEMORIES = {
    "absurd code objects": "HELD = 0\n" + ABSURD_CODE + HANG,
    "hostile modules": "HELD = 0\n" + HOSTILE_MODULES + "\nimport time\nprint('up', flush=True)\ntime.sleep(600)\n",
    "objects of other classes than they claim": OTHER_CLASSES + HANG,
    "objects and types that were written over": OVERWRITTEN_TYPES + HANG,
    "a circle of 400 locks": "HELD = 0\n" + GRAPH + HANG,
}


@pytest.mark.parametrize("program", list(MEMORIES.values()), ids=list(MEMORIES))
def test_memory_that_lies(place: Place, program: str) -> None:
    """Lines, names, classes, modules and graphs that no program has: captured and diagnosed in bounded time, shown escaped."""
    with running(place, program) as pid:
        report = captured(pid, place.base / "bundle")
        (process,) = report["processes"]
        assert process["threads"]


# ---------------------------------------------------------------------- pages that block their readers

#: A page that faults for whoever touches it, until somebody answers, and nobody does (userfaultfd(2)). ``HELD`` has an
#: attribute that is an object in it.
BLOCKING = """
import ctypes, fcntl, gc, mmap, os, struct, threading, time
gc.disable()  # it would wait itself
libc = ctypes.CDLL(None, use_errno=True)
faults = libc.syscall(323, 0o2000000)
assert faults >= 0, os.strerror(ctypes.get_errno())
fcntl.ioctl(faults, 0xC018AA3F, struct.pack("QQQ", 0xAA, 0, 0))  # UFFDIO_API
view = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
at = ctypes.addressof(ctypes.c_char.from_buffer(view))
def block(at, size):
    fcntl.ioctl(faults, 0xC020AA00, struct.pack("QQQQ", at, size, 1, 0))  # UFFDIO_REGISTER
block(at, 1 << 20)
class Held:
    __slots__ = ("inner",)
HELD = Held()
ctypes.cast(id(HELD), ctypes.POINTER(ctypes.c_void_p))[2] = at + 4096
"""


@pytest.mark.parametrize("mode", ["auto", "python", "full"])
def test_memory_that_never_answers(place: Place, mode: str) -> None:
    """A page of user faults that nobody serves, where the reader follows a pointer to: it is not waited for without end, and
    the target goes on. (Root's process: others may not make such pages unless the machine allows it.)"""
    with running(place, BLOCKING + HANG, user=0) as pid:
        captured(pid, place.base / "bundle", "--core", mode, "--budget", "5")
        assert Path(f"/proc/{pid}").exists()
