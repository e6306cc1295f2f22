"""Eight feeders wait for the price table, which the main thread writes to disk row by row."""
import os
import tempfile
import threading
import time


class Table:
    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.rows = 0
        self.complete = False

    def export(self, count):
        for number in range(count):
            os.write(self.descriptor, b"%d;%d\n" % (number, number * 31 % 97))
            self.rows += 1
            if number % 10_000 == 0:
                os.lseek(self.descriptor, 0, os.SEEK_SET)
        self.complete = True


def feed(table, region, out):
    while not table.complete:  # CULPRIT
        time.sleep(0)  # CULPRIT
    out[region] = table.rows


def main():
    out = {}
    with tempfile.TemporaryFile() as file:
        table = Table(file.fileno())
        feeders = [threading.Thread(target=feed, args=(table, n, out), name="feeder-%d" % n, daemon=True) for n in range(8)]
        for feeder in feeders:
            feeder.start()
        print("ready", flush=True)
        table.export(3_000_000)
        for feeder in feeders:
            feeder.join()


if __name__ == "__main__":
    main()
