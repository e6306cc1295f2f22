"""Digests delivery notes with the C library's crypt-like mixing; lets other threads run meanwhile, through cffi."""
import queue
import threading

from cffi import FFI

ffi = FFI()
ffi.cdef("""
    void *PyEval_SaveThread(void);
    void PyEval_RestoreThread(void *state);
    unsigned int a64l(const char *text);
    void *memfrob(void *memory, size_t size);
""")
runtime = ffi.dlopen(None)


class Unlocked:
    """With this, the interpreter is free for other threads."""

    def __enter__(self):
        self.state = runtime.PyEval_SaveThread()  # CULPRIT
        return self

    def __exit__(self, *exc):
        runtime.PyEval_RestoreThread(self.state)


class Digester:
    def digest(self, note):
        memory = ffi.new("char[]", note.encode())
        with Unlocked():  # CULPRIT
            runtime.memfrob(memory, len(note))
        return sum(bytes(ffi.buffer(memory)))


class Desk:
    def __init__(self, desks):
        self.notes = queue.Queue()
        self.digests = queue.Queue()
        self.threads = [threading.Thread(target=self.work, name="desk-%d" % n, daemon=True) for n in range(desks)]

    def work(self):
        digester = Digester()
        for note in iter(self.notes.get, None):
            self.digests.put((note, digester.digest(note)))


def main():
    desk = Desk(3)
    for thread in desk.threads:
        thread.start()
    print("ready", flush=True)
    desk.notes.put("pallet 12, dock 4")
    note, digest = desk.digests.get()
    print(note, digest)


if __name__ == "__main__":
    main()
