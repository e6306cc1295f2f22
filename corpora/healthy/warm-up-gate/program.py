"""Holds requests back until the tables are loaded; a lock serves as the gate, and another thread opens it."""
import threading
import time


class Gate:
    def __init__(self):
        self._closed = threading.Lock()
        self._closed.acquire()

    def open(self):
        self._closed.release()

    def pass_through(self):
        self._closed.acquire()
        self._closed.release()


class Loader(threading.Thread):
    def __init__(self, gate, tables):
        super().__init__(name="loader", daemon=True)
        self.gate = gate
        self.tables = tables
        self.loaded = []

    def run(self):
        for table in self.tables:
            time.sleep(0.3)  # the disk
            self.loaded.append(table)
            print("loaded", table, flush=True)
        self.gate.open()


def main():
    gate = Gate()
    Loader(gate, ["table-%d" % n for n in range(40)]).start()
    print("ready", flush=True)
    gate.pass_through()
    print("serving")


if __name__ == "__main__":
    main()
