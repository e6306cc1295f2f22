"""Serves requests; SIGUSR1 asks for a reload, which the loop then does itself."""
import os
import signal
import threading


class Catalogue:
    def __init__(self):
        self._lock = threading.Lock()
        self._items = list(range(100))
        self.wanted = False

    def serve(self, requests):
        with self._lock:
            for request in requests:
                if self.wanted:
                    self.refresh()  # CULPRIT
                self._items[request % len(self._items)] += 1

    def refresh(self):
        self.wanted = False
        with self._lock:  # CULPRIT
            self._items = sorted(self._items)


def main():
    catalogue = Catalogue()

    def ask(number, frame):
        catalogue.wanted = True

    signal.signal(signal.SIGUSR1, ask)
    print("ready", flush=True)
    os.kill(os.getpid(), signal.SIGUSR1)
    while True:
        catalogue.serve(range(1000))


if __name__ == "__main__":
    main()
