"""A cache of map tiles that tells its listeners about what it drops."""
import functools
import queue
import threading


def guarded(method):
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        with self._guard:  # CULPRIT
            return method(self, *args, **kwargs)

    return call


class Cache:
    def __init__(self, capacity):
        self._guard = threading.Lock()
        self._tiles = {}
        self._capacity = capacity
        self._listeners = []

    def subscribe(self, listener):
        self._listeners.append(listener)

    @guarded
    def put(self, key, tile):
        if len(self._tiles) >= self._capacity:
            self._drop()
        self._tiles[key] = tile

    @property
    @guarded
    def size(self):
        return len(self._tiles)

    def _drop(self):
        key = next(iter(self._tiles))
        del self._tiles[key]
        for listener in self._listeners:
            listener.dropped(self, key)  # CULPRIT


class Gauge:
    def __init__(self):
        self.history = []

    def dropped(self, cache, key):
        self.history.append((key, cache.size))  # CULPRIT


class Loader(threading.Thread):
    def __init__(self, cache, keys):
        super().__init__(name="tile-loader", daemon=True)
        self.cache = cache
        self.keys = keys

    def run(self):
        while True:
            key = self.keys.get()
            self.cache.put(key, b"\0" * 64)
            self.keys.task_done()


class Screen:
    def __init__(self):
        self.keys = queue.Queue()
        self.cache = Cache(capacity=16)
        self.cache.subscribe(Gauge())
        self.loaders = [Loader(self.cache, self.keys)]

    def show(self, count):
        for loader in self.loaders:
            loader.start()
        for number in range(count):
            self.keys.put((number // 8, number % 8))
        self.keys.join()


def main():
    print("ready", flush=True)
    Screen().show(40)


if __name__ == "__main__":
    main()
