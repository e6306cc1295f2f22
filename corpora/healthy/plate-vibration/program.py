"""Vibration of a plate on three processes. The one with the clamped edge has the most to compute."""
import multiprocessing


class Group:
    def __init__(self, size):
        self.size = size
        self.slots = multiprocessing.Array("d", size, lock=False)
        self.gate = multiprocessing.Barrier(size)

    def all_reduce(self, rank, value):
        self.slots[rank] = value
        self.gate.wait()
        total = sum(self.slots)
        self.gate.wait()
        return total

    def barrier(self):
        self.gate.wait()


class Part:
    def __init__(self, rank, points, sweeps):
        self.rank = rank
        self.sweeps = sweeps
        self.heights = [float((n * 37 + rank) % 11) for n in range(points)]

    def advance(self):
        energy = 0.0
        for _ in range(self.sweeps):
            for index in range(1, len(self.heights) - 1):
                mean = (self.heights[index - 1] + self.heights[index + 1]) / 2.0
                self.heights[index] += (mean - self.heights[index]) * 0.3
                energy += mean * mean
        return energy / self.sweeps


def simulate(rank, group, steps):
    part = Part(rank, points=3000, sweeps=800 if rank == 2 else 4)
    group.barrier()
    if rank == 0:
        print("ready", flush=True)
    for step in range(steps):
        energy = group.all_reduce(rank, part.advance())
        if rank == 0:
            print("step %d: %.3f" % (step, energy), flush=True)
    group.barrier()


def main():
    group = Group(3)
    ranks = [multiprocessing.Process(target=simulate, args=(rank, group, 500), daemon=True) for rank in range(group.size)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()


if __name__ == "__main__":
    main()
