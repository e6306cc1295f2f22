"""Copies settings between two stores, with a heartbeat beside it."""
import threading
import time


class Heartbeat(threading.Thread):
    def __init__(self, every):
        super().__init__(name="heartbeat")
        self.every = every
        self.beats = 0

    def run(self):
        while True:  # CULPRIT
            self.beats += 1
            time.sleep(self.every)  # CULPRIT


def copy(source, target):
    for key, value in source.items():
        target[key] = value


def main():
    Heartbeat(0.5).start()
    target = {}
    copy({"theme": "dark", "size": 12}, target)
    print("ready", flush=True)


if __name__ == "__main__":
    main()
