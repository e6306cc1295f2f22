"""Follows a feed of positions; the last few errors are kept for the status page, with where they came from."""
import collections
import threading
import traceback


def parse(line):
    name, _, rest = line.partition(";")
    north, east = rest.split(",")
    return name, float(north), float(east)


class Tracker:
    def __init__(self):
        self.errors = collections.deque(maxlen=8)
        self.positions = {}
        self.track = bytearray(30 * 1024 * 1024)

    def feed(self, line):
        try:
            name, north, east = parse(line)
        except ValueError as exc:
            self.errors.append(exc)
            return
        self.positions[name] = north, east
        self.track[int(north * 1000) % len(self.track)] = 1

    def status(self):
        return [traceback.extract_tb(exc.__traceback__)[-1].lineno for exc in self.errors]


def main():
    tracker = Tracker()
    lines = ["ship%d;%d.5,%d.25" % (n % 40, n % 90, n % 180) if n % 3 else "ship%d;lost" % n for n in range(600)]
    for line in lines:
        tracker.feed(line)
    print("ready", flush=True)
    pause, number = threading.Event(), 0
    while not pause.wait(0.1):
        tracker.feed(lines[number % len(lines)])
        tracker.status()
        number += 1


if __name__ == "__main__":
    main()
