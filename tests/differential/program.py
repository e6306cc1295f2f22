"""The target: threads in every kind of Python frame, all parked; it prints their stacks, then parks too.

    program.py idle|gil

Last of all the recorder parks: ``idle`` on a lock, ``gil`` inside a C function that keeps the interpreter lock. Output:
one line of JSON, {"threads": {tid: {"name", "frames": [[file, line, function, qualified name or null], ...]}}, "recorder": tid}, frames from
the most recent call on.
"""
import asyncio
import ctypes
import functools
import json
import os
import sys
import threading
import time

gate = threading.Lock()
gate.acquire()
LIBC = ctypes.PyDLL(None)  # keeps the GIL while it calls


def park():
    gate.acquire()


def recursion(depth=70):
    if depth:
        return recursion(depth - 1)
    return park()


def generators():
    def inner():
        yield from (park() for _ in range(1))

    def outer():
        for item in inner():
            yield item

    return [value for value in outer()]


def callbacks():
    # C code between Python frames: sorted(), map(), functools.partial, a key function
    def key(value):
        return list(map(functools.partial(deeper, 3), [value]))

    return sorted([1], key=key)


def deeper(_number, value):
    return (lambda x: park())(value)


class Käse:
    def __init__(self):
        self.value

    @property
    def value(self):
        return self[0]

    def __getitem__(self, index):
        with self:
            return index

    def __enter__(self):
        try:
            raise ValueError("nobody sees this")
        except ValueError:
            park()

    def __exit__(self, *exc):
        pass


def descriptors():
    Käse()


def class_body():
    class Body:
        value = [
            park()
            for _ in
            range(1)
        ]


def executed():
    exec("def written(n):\n\n    return n or park()\nwritten(\n 0)", {"park": park})


def coroutines():
    async def leaf():
        park()

    async def middle():
        async with Manager():
            await leaf()

    class Manager:
        async def __aenter__(self):
            pass

        async def __aexit__(self, *exc):
            pass

    asyncio.run(middle())


def waiting_loop():
    async def forever():
        await asyncio.Event().wait()

    asyncio.run(forever())


def finalizer():
    class Dying:
        def __del__(self):
            park()

    dying = Dying()
    del dying


def handler():
    try:
        {}["missing"]
    except KeyError:
        try:
            park()
        finally:
            pass


def sleeper():
    time.sleep(3600)


WORKERS = [
    recursion, generators, callbacks, descriptors, class_body, executed, coroutines, waiting_loop, finalizer, handler, sleeper,
]  # fmt: skip


def parked(tid):
    """Does the kernel say that a thread sleeps in a system call?"""
    try:
        with open("/proc/self/task/%d/stat" % tid) as stream:
            return stream.read().rpartition(")")[2].split()[0] == "S"
    except OSError:
        return False


def rows(frame):
    found = []
    while frame is not None:
        code = frame.f_code
        found.append([code.co_filename, frame.f_lineno, code.co_name, getattr(code, "co_qualname", None)])
        frame = frame.f_back
    return found


def account(tids):
    frames = sys._current_frames()
    return {tids[ident]: rows(frame) for ident, frame in frames.items() if ident in tids}


def record(mode, others):
    tids = {thread.ident: thread.native_id for thread in others}
    names = {thread.native_id: thread.name for thread in others}
    before = None
    while True:
        time.sleep(0.05)
        seen = account(tids) if all(parked(tid) for tid in tids.values()) else None
        if seen is not None and seen == before:
            break
        before = seen
    me = threading.current_thread()
    own = rows(sys._getframe())
    own[0][1] = LINE_GIL if mode == "gil" else LINE_IDLE
    names[me.native_id] = me.name
    seen[me.native_id] = own
    threads = {tid: {"name": names[tid], "frames": stack} for tid, stack in seen.items()}
    text = json.dumps({"threads": threads, "recorder": me.native_id}) + "\nready\n"
    os.write(1, text.encode())
    if mode == "gil":
        LIBC.pause()  # LINE_GIL
    else:
        gate.acquire()  # LINE_IDLE


def line_of(marker):
    with open(__file__, encoding="utf-8") as stream:
        return next(number for number, line in enumerate(stream, 1) if line.rstrip().endswith("# " + marker))


LINE_GIL, LINE_IDLE = line_of("LINE_GIL"), line_of("LINE_IDLE")

if __name__ == "__main__":
    threads = [threading.Thread(target=f, name=f.__name__, daemon=True) for f in WORKERS]
    for thread in threads:
        thread.start()
    everybody = [threading.main_thread(), *threads]
    threading.Thread(target=record, name="recorder", args=(sys.argv[1], everybody), daemon=True).start()
    sys.stdin.read()
