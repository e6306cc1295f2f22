"""Relaxes a plate's temperature on four processes, one strip each."""
import multiprocessing


class Group:
    """What the processes do together. Each value has its own slot per rank."""

    def __init__(self, size):
        self.size = size
        self.slots = multiprocessing.Array("d", size, lock=False)
        self.reducing = multiprocessing.Barrier(size)
        self.passing = multiprocessing.Barrier(size)

    def all_reduce(self, rank, value):
        self.slots[rank] = value
        self.reducing.wait()
        total = sum(self.slots)
        self.reducing.wait()
        return total

    def barrier(self, rank):
        self.passing.wait()


class Strip:
    def __init__(self, rank, width):
        self.rank = rank
        self.cells = [100.0 if rank == 0 else 0.0] + [0.0] * (width - 1)

    def relax(self):
        before = list(self.cells)
        for index in range(1, len(before) - 1):
            self.cells[index] = (before[index - 1] + before[index + 1]) / 2.0
        return max(abs(a - b) for a, b in zip(before, self.cells))


def solve(rank, group, started, tolerance):
    strip = Strip(rank, width=300)
    started.wait()
    for step in range(100_000):
        change = strip.relax()
        if change < tolerance:  # CULPRIT
            break  # CULPRIT
        if group.all_reduce(rank, change) < tolerance:
            break
    group.barrier(rank)
    return step


def main():
    group = Group(4)
    started = multiprocessing.Event()
    ranks = [
        multiprocessing.Process(target=solve, args=(rank, group, started, 1e-3), name="rank-%d" % rank, daemon=True)
        for rank in range(group.size)
    ]
    for process in ranks:
        process.start()
    print("ready", flush=True)
    started.set()
    for process in ranks:
        process.join()


if __name__ == "__main__":
    main()
