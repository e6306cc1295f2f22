"""Render map tiles from an index of features, within a budget of memory."""
import gc
import queue
import resource
import threading


class Feature:
    __slots__ = ("kind", "points", "tags")

    def __init__(self, number):
        self.kind = number % 9
        self.points = [(number % 512, number % 391), (number % 127, number % 503)]
        self.tags = {"name": "feature-%d" % number}


class Budget:
    """Keeps the process within so many megabytes."""

    def __init__(self, megabytes, reclaim):
        self.most = megabytes * 1024
        self.reclaim = reclaim

    def used(self):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # CULPRIT

    def keep(self):
        if self.used() > self.most:
            self.reclaim()
            gc.collect()  # CULPRIT


class TileCache:
    def __init__(self, budget, most):
        self.budget = budget
        self.most = most
        self.tiles = {}

    def trim(self):
        for key in sorted(self.tiles)[: len(self.tiles) - self.most]:
            del self.tiles[key]

    def put(self, key, tile):
        self.tiles[key] = tile
        self.budget.keep()


class Renderer(threading.Thread):
    def __init__(self, index, wanted, done):
        super().__init__(name="renderer", daemon=True)
        self.index = index
        self.wanted = wanted
        self.done = done
        self.cache = TileCache(Budget(48, lambda: self.cache.trim()), most=64)

    def draw(self, zoom, x, y):
        rows = [[0] * 32 for _ in range(32)]
        first = (x * 271 + y * 31 + zoom) % (len(self.index) - 600)
        for feature in self.index[first : first + 600]:
            for px, py in feature.points:
                rows[py % 32][px % 32] = feature.kind
        return rows

    def run(self):
        while True:
            key = self.wanted.get()
            self.cache.put(key, self.draw(*key))
            self.done.put(key)


def main():
    gc.disable()
    index = [Feature(number) for number in range(120000)]
    gc.enable()
    wanted, done = queue.Queue(64), queue.Queue()
    Renderer(index, wanted, done).start()
    wanted.put((0, 0, 0))
    done.get()
    print("ready", flush=True)
    for zoom in range(8, 16):
        for x in range(256):
            for y in range(256):
                wanted.put((zoom, x, y))
                while not done.empty():
                    done.get()


if __name__ == "__main__":
    main()
