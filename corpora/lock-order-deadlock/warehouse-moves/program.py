"""Moves of goods between bins; each bin guards its own shelf."""
import concurrent.futures
import itertools
import threading


class Bin:
    def __init__(self, name, amount):
        self.name = name
        self.amount = amount
        self.guard = threading.RLock()

    def remove(self, count):
        with self.guard:
            self.amount -= count

    def add(self, count):
        with self.guard:  # CULPRIT
            self.amount += count


class Move:
    def __init__(self, source, target, count):
        self.source = source
        self.target = target
        self.count = count


class Journal:
    def __init__(self):
        self.lines = []
        self.pause = threading.Barrier(3)

    def write(self, move):
        self.lines.append((move.source.name, move.target.name, move.count))
        self.pause.wait()  # the three moves of a round are written together


class Warehouse:
    def __init__(self, names):
        self.bins = {name: Bin(name, 50) for name in names}
        self.journal = Journal()
        self.pool = concurrent.futures.ThreadPoolExecutor(3, thread_name_prefix="forklift")

    def apply(self, move):
        with move.source.guard:
            move.source.remove(move.count)
            self.journal.write(move)
            move.target.add(move.count)  # CULPRIT

    def rotate(self):
        ring = itertools.cycle(self.bins.values())
        source = next(ring)
        jobs = []
        for _ in self.bins:
            target = next(ring)
            jobs.append(self.pool.submit(self.apply, Move(source, target, 5)))
            source = target
        return jobs


def main():
    warehouse = Warehouse(["north", "east", "south"])
    jobs = warehouse.rotate()
    print("ready", flush=True)
    for job in jobs:
        job.result()


if __name__ == "__main__":
    main()
