"""Reads a tide gauge's log and reports the highest water."""
import os
import tempfile
import threading

import sh


class Gauge:
    def __init__(self, path):
        self.path = path
        self.levels = []
        self.first = threading.Event()

    def record(self, count):
        with open(self.path, "w") as file:
            for number in range(count):
                file.write("%03d %.2f\n" % (number, 2.1 + number % 7 / 10))

    def take(self, line):
        self.levels.append(float(line.split()[1]))
        if not self.first.is_set():
            self.first.set()
            print("ready", flush=True)

    def read(self):
        follow = sh.Command("tail").bake("-n", "+1", "-F", "--pid=%d" % os.getpid())
        follow(self.path, _out=self.take)  # CULPRIT

    def highest(self):
        self.read()  # CULPRIT
        return max(self.levels)


def main():
    with tempfile.TemporaryDirectory() as folder:
        gauge = Gauge(os.path.join(folder, "gauge.log"))
        gauge.record(40)
        print(gauge.highest(), "m")


if __name__ == "__main__":
    main()
