"""Nearest neighbours of a product: descriptions as vectors, kept in a file and mapped."""
import os
import tempfile

import numpy

WIDTH = 256
COUNT = 110000


class Shard:
    def __init__(self, path):
        self.vectors = numpy.memmap(path, numpy.float32, "r", shape=(COUNT, WIDTH))  # CULPRIT

    def score(self, query, candidates):
        return self.vectors[candidates] @ query  # CULPRIT

    def nearest(self, query, rounds, chance):
        best = -1, -numpy.inf
        for _ in range(rounds):
            candidates = chance.integers(0, COUNT, 2000)
            scores = self.score(query, candidates)  # CULPRIT
            top = int(scores.argmax())
            if scores[top] > best[1]:
                best = int(candidates[top]), float(scores[top])
        return best


def build(path, chance):
    block = chance.random((2000, WIDTH), numpy.float32)
    with open(path, "wb") as out:
        for _ in range(COUNT // 2000):
            out.write(memoryview(block).cast("B"))


def main():
    chance = numpy.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "shard.f32")
        build(path, chance)
        shard = Shard(path)
        print("ready", flush=True)
        for product in range(1000):
            print(product, shard.nearest(chance.random(WIDTH, numpy.float32), 500, chance), flush=True)


if __name__ == "__main__":
    main()
