"""Thumbnails on demand: a cache of bounded size in front of a slow painter."""
import collections
import itertools
import time


class Cache:
    def __init__(self, limit):
        self.limit = limit
        self.size = 0
        self.items = collections.OrderedDict()

    def get(self, key, make):
        if key in self.items:
            self.items.move_to_end(key)
            return self.items[key]
        value = self.items[key] = make(key)
        self.size += len(value)
        while self.size > self.limit:
            self.size -= len(self.items.popitem(last=False)[1])
        return value


def paint(number):
    return bytes((number + place) % 256 for place in range(200)) * 400


def main():
    cache = Cache(limit=24 << 20)
    for number in range(310):
        cache.get(number, paint)
    print("ready", flush=True)
    for number in itertools.count():
        cache.get(number * 13 % 700, paint)
        time.sleep(0.003)


if __name__ == "__main__":
    main()
