"""Relays frames of a line camera: one thread takes them, one thread compresses and counts what it sends."""
import collections
import threading
import time
import zlib


class Relay:
    def __init__(self, width):
        self.width = width
        self.frames = collections.deque()  # CULPRIT
        self.arrived = threading.Event()
        self.sent = 0

    def take(self):
        number = 0
        while True:
            number += 1
            self.frames.append((number, number % 251))  # CULPRIT
            self.arrived.set()
            time.sleep(0.001)

    def send(self):
        while True:
            self.arrived.wait()
            while self.frames:
                number, level = self.frames.popleft()
                packed = zlib.compress(bytes((level + n * n) % 256 for n in range(self.width)), 1)
                self.sent += len(packed)
                time.sleep(0.01)
            self.arrived.clear()


def main():
    relay = Relay(2048)
    taking = threading.Thread(target=relay.take, name="take", daemon=True)
    sending = threading.Thread(target=relay.send, name="send", daemon=True)
    taking.start()
    sending.start()
    print("ready", flush=True)
    taking.join()


if __name__ == "__main__":
    main()
