"""Scans of archive boxes: at most three at a time, each on a slot of a semaphore."""

import threading
import time


class Scanner:
    def __init__(self, slots):
        self.slots = threading.Semaphore(slots)
        self.pages = 0

    def scan(self, box):
        self.slots.acquire()  # CULPRIT
        if box % 4 == 3:
            return None  # an empty box
        time.sleep(0.01)
        self.pages += 12
        self.slots.release()
        return box


def clerk(scanner, boxes):
    for box in boxes:
        scanner.scan(box)


def count(scanner):
    while True:
        time.sleep(0.5)
        if scanner.pages < 0:
            raise ValueError(scanner.pages)


def main():
    scanner = Scanner(3)
    threading.Thread(target=count, args=(scanner,), name="count", daemon=True).start()
    clerks = [threading.Thread(target=clerk, args=(scanner, range(first, 48, 4)), name=f"clerk-{first}") for first in range(4)]
    for one in clerks:
        one.start()
    print("ready", flush=True)
    for one in clerks:
        one.join()
    print(scanner.pages, "pages")


if __name__ == "__main__":
    main()
