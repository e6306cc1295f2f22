"""Finds the longest trail through a network of huts that visits none of them twice; depth first."""
import sys


class Network:
    def __init__(self, side):
        self.side = side

    def neighbours(self, hut):
        row, column = divmod(hut, self.side)
        if column + 1 < self.side:
            yield hut + 1
        if row + 1 < self.side:
            yield hut + self.side
        if column:
            yield hut - 1
        if row:
            yield hut - self.side


class Search:
    def __init__(self, network):
        self.network = network
        self.visited = set()
        self.longest = 0

    def go(self, hut):
        self.visited.add(hut)
        self.longest = max(self.longest, len(self.visited))
        for other in self.network.neighbours(hut):  # CULPRIT
            if other not in self.visited:
                self.go(other)
        self.visited.discard(hut)


def main():
    sys.setrecursionlimit(2000)
    search = Search(Network(side=25))
    print("ready", flush=True)
    search.go(0)
    print("%d huts" % search.longest)


if __name__ == "__main__":
    main()
