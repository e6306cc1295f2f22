"""Holds a lease while it runs: the work is done by others, this process only has to be there."""
import signal
import sys
import threading


class Lease:
    def __init__(self, name):
        self.name = name
        self.held = False

    def __enter__(self):
        self.held = True
        return self

    def __exit__(self, *exc):
        self.held = False


class Holder:
    def __init__(self, lease):
        self.lease = lease
        self.stop = threading.Event()
        signal.signal(signal.SIGTERM, self.on_term)

    def on_term(self, number, frame):
        self.stop.set()

    def run(self):
        with self.lease:
            print("ready", flush=True)
            self.stop.wait()
        return 0


if __name__ == "__main__":
    sys.exit(Holder(Lease("scheduler")).run())
