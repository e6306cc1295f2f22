"""Describes the sensor trees of many greenhouses, with a thread for each; stacks are kept small because there are hundreds."""
import threading


class Node:
    def __init__(self, kind, inner=None):
        self.kind = kind
        self.inner = inner

    def __repr__(self):
        return "%s(%r)" % (self.kind, self.inner) if self.inner is not None else self.kind  # CULPRIT


def tree(depth):
    node = Node("probe")
    for level in range(depth):
        node = Node("hub%d" % (level % 4), node)
    return node


class Describer(threading.Thread):
    def __init__(self, house, depth, begin):
        super().__init__(name="house-%d" % house, daemon=True)
        self.root = tree(depth)
        self.begin = begin
        self.text = None

    def run(self):
        self.begin.wait()
        self.text = repr(self.root)


class Station:
    STACK = 64 * 1024

    def __init__(self, depths):
        threading.stack_size(self.STACK)  # CULPRIT
        self.begin = threading.Event()
        self.describers = [Describer(house, depth, self.begin) for house, depth in enumerate(depths)]

    def describe(self):
        for describer in self.describers:
            describer.start()
        print("ready", flush=True)
        self.begin.set()
        for describer in self.describers:
            describer.join()
        return [len(describer.text) for describer in self.describers]


def main():
    station = Station([2] * 20 + [240] + [3] * 20)
    print("characters: %d" % sum(station.describe()))


if __name__ == "__main__":
    main()
