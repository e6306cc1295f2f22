"""Packs map tiles in a child process; the parent expects a sign of life and sends SIGABRT when it has missed too many."""
import multiprocessing
import os
import select
import signal
import sys
import zlib


class Packer:
    """Runs in the child. Signs of life are sent once per zone."""

    def __init__(self, beat):
        self.beat = beat
        self.sizes = {}

    def run(self, zones):
        for zone, tiles in zones:
            self.pack(zone, tiles)
            os.write(self.beat, b".")

    def pack(self, zone, tiles):
        total = 0
        for number in range(tiles):  # CULPRIT
            total += self.tile(zone, number)
        self.sizes[zone] = total

    def tile(self, zone, number):
        rows = b"".join(b"%d/%d/%d;" % (zone, number, row * row % 9973) for row in range(1500))  # CULPRIT
        return len(zlib.compress(rows, 9))  # CULPRIT


class Supervisor:
    PATIENCE = 1.2

    def __init__(self):
        self.source, self.beat = os.pipe()
        context = multiprocessing.get_context("fork")
        self.child = context.Process(target=self.work, name="packer", daemon=True)

    def work(self):
        os.close(self.source)
        Packer(self.beat).run([(1, 5), (2, 5000000), (3, 10)])

    def watch(self):
        self.child.start()
        os.close(self.beat)
        beats = 0
        while select.select([self.source], [], [], self.PATIENCE)[0]:
            if not os.read(self.source, 1):
                break
            beats += 1
            print("ready", flush=True)
        else:
            os.kill(self.child.pid, signal.SIGABRT)  # CULPRIT
        self.child.join()
        return beats


def main():
    beats = Supervisor().watch()
    print("%d zones packed" % beats)
    return 1


if __name__ == "__main__":
    sys.exit(main())
