"""Counts the visits at a museum's doors; an audit thread writes every one of them to standard output, for whoever reads along."""
import atexit
import os
import queue
import sys
import threading


class Reader:
    """Stands at the other end of standard output, as a pager does: takes a page, then waits for a key."""

    PAGE = 512

    def __init__(self):
        self.source, sink = os.pipe()
        sys.stdout = os.fdopen(sink, "w")

    def page(self):
        return os.read(self.source, self.PAGE).decode()


class Audit:
    GRACE = 0.5

    def __init__(self):
        self.entries = queue.Queue()
        self.thread = threading.Thread(target=self.write, name="audit", daemon=True)  # CULPRIT
        self.thread.start()
        atexit.register(self.close)

    def add(self, door, minute):
        self.entries.put("%-8s %02d:%02d\n" % (door, minute // 60 % 24, minute % 60))

    def close(self):
        self.entries.put(None)
        self.thread.join(self.GRACE)  # CULPRIT

    def write(self):
        batch = []
        for entry in iter(self.entries.get, None):
            batch.append(entry)
        for entry in batch:
            sys.stdout.write(entry)  # CULPRIT
        sys.stdout.flush()


class Museum:
    def __init__(self, audit):
        self.audit = audit
        self.visits = {}

    def enter(self, door, minute):
        self.visits[door] = self.visits.get(door, 0) + 1
        self.audit.add(door, minute)


def main():
    print("ready", flush=True)
    reader = Reader()
    print("visits of the day", flush=True)
    museum = Museum(Audit())
    for minute in range(12000):
        museum.enter("north" if minute % 3 else "garden", minute)
    page = reader.page()
    return 0 if page and museum.visits["garden"] == 4000 else 1


if __name__ == "__main__":
    sys.exit(main())
