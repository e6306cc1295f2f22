"""Keeps the most wanted map tiles in memory; what cannot be drawn is logged and shown as an empty tile."""
import collections
import random
import threading
import traceback

TILE = 1024 * 1024


class TileCache:
    def __init__(self, places):
        self.places = places
        self.tiles = collections.OrderedDict()
        self.log = collections.deque(maxlen=100)

    def draw(self, number):
        canvas = bytearray(TILE)
        if number % 5 == 0:
            raise ValueError("tile %d has no source" % number)
        canvas[0] = number % 256
        return canvas

    def get(self, number):
        if number in self.tiles:
            self.tiles.move_to_end(number)
            return self.tiles[number]
        try:
            tile = self.draw(number)
        except ValueError:
            self.log.append(traceback.format_exc())
            return None
        self.tiles[number] = tile
        if len(self.tiles) > self.places:
            self.tiles.popitem(last=False)
        return tile


def main():
    cache = TileCache(places=60)
    for number in range(100):
        cache.get(number)
    print("ready", flush=True)
    dice, pause = random.Random(3), threading.Event()
    while not pause.wait(0.05):
        cache.get(dice.randrange(150))


if __name__ == "__main__":
    main()
