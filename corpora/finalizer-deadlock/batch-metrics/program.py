"""Grades batches of apples, and leaves the counts for the node exporter to pick up."""
import collections
import gc
import os
import random
import tempfile

from prometheus_client import REGISTRY, Counter, write_to_textfile

APPLES = Counter("apples_graded", "Apples by grade", ["grade"])


class Apple:
    def __init__(self, weight, tree):
        self.weight = weight
        self.tree = tree
        tree.apples.append(self)

    @property
    def grade(self):
        return "a" if self.weight > 160 else "b" if self.weight > 110 else "juice"


class Tree:
    def __init__(self, row):
        self.row = row
        self.apples = []


class Grader:
    def __init__(self, path):
        self.path = path
        self.random = random.Random(20)
        self.trees = collections.deque(maxlen=10)

    def batch(self, size):
        tree = Tree(self.random.randrange(40))
        for _ in range(size):
            Apple(self.random.gauss(140, 30), tree)
        return tree

    def grade(self, batches):
        for _ in range(batches):
            self.trees.append(self.batch(self.random.randrange(100, 200)))
            for apple in self.trees[-1].apples:
                APPLES.labels(apple.grade).inc()
            write_to_textfile(self.path, REGISTRY)  # CULPRIT


def main():
    gc.set_threshold(150, 5, 5)  # keeps the memory of the small computer low
    print("ready", flush=True)
    Grader(os.path.join(tempfile.mkdtemp(prefix="textfile-"), "apples.prom")).grade(1000000)


if __name__ == "__main__":
    main()
