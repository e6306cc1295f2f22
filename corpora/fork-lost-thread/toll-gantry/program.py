"""Counts cars at a toll gantry; each lane is a process, and its counts are sent in the background."""
import os
import threading
import time


class Sender:
    """Sends what has been collected when it is asked to, in a thread of its own."""

    def __init__(self, send):
        self._send = send
        self._batch = []
        self._asked = threading.Event()
        self._empty = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)
        self._thread.start()

    def _run(self):
        while True:
            self._asked.wait()
            self._asked.clear()
            batch, self._batch = self._batch, []
            self._send(batch)
            self._empty.set()

    def add(self, item):
        self._batch.append(item)

    def flush(self):
        self._empty.clear()
        self._asked.set()
        self._empty.wait()  # CULPRIT


class Lane:
    def __init__(self, number, sender):
        self.number = number
        self.sender = sender

    def count(self, cars):
        for car in range(cars):
            self.sender.add((self.number, car))
        self.sender.flush()


class Gantry:
    def __init__(self, lanes):
        self.sent = []
        self.sender = Sender(self.sent.extend)
        self.lanes = [Lane(number, self.sender) for number in range(lanes)]

    def open(self):
        self.lanes[0].count(2)
        children = []
        for lane in self.lanes[1:]:
            child = os.fork()  # CULPRIT
            if child == 0:
                lane.count(5)
                os._exit(0)
            children.append(child)
        time.sleep(0.1)
        print("ready", flush=True)
        for child in children:
            os.waitpid(child, 0)


if __name__ == "__main__":
    Gantry(lanes=3).open()
