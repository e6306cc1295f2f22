"""Stores readings in a C library's ring, which has a mutex of its own."""
import ctypes
import threading
import time


class Ring:
    """The library's mutex; long calls let go of the interpreter, short ones do not."""

    def __init__(self):
        self.mutex = ctypes.create_string_buffer(64)
        self.long_calls = ctypes.CDLL(None)
        self.short_calls = ctypes.PyDLL(None)  # CULPRIT
        self.readings = []

    def begin(self):
        self.long_calls.pthread_mutex_lock(self.mutex)

    def end(self):
        self.long_calls.pthread_mutex_unlock(self.mutex)

    def last(self):
        self.short_calls.pthread_mutex_lock(self.mutex)  # CULPRIT
        reading = self.readings[-1]
        self.short_calls.pthread_mutex_unlock(self.mutex)
        return reading


class Recorder(threading.Thread):
    def __init__(self, ring, started):
        super().__init__(name="recorder", daemon=True)
        self.ring = ring
        self.started = started

    def run(self):
        while True:
            self.ring.begin()
            self.ring.readings.append(len(self.ring.readings))
            self.started.set()
            time.sleep(0.1)  # CULPRIT
            self.ring.end()


def main():
    ring, started = Ring(), threading.Event()
    Recorder(ring, started).start()
    started.wait()
    print("ready", flush=True)
    while True:
        print("last", ring.last(), flush=True)  # CULPRIT
        time.sleep(0.03)


if __name__ == "__main__":
    main()
