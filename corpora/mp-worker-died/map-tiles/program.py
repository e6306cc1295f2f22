"""Renders the tiles of a map in a pool of processes."""
import multiprocessing
import os
import signal


class Tile:
    def __init__(self, x, y, size):
        self.x, self.y, self.size = x, y, size


def render(tile):
    if tile.size > 4096:
        os.kill(os.getpid(), signal.SIGKILL)  # memory has run out
    return tile.x, tile.y, bytes(tile.size)


class Map:
    def __init__(self, workers):
        self.pool = multiprocessing.get_context("fork").Pool(workers)
        self.tiles = {}

    def draw(self, tiles):
        for x, y, pixels in self.pool.map(render, tiles, chunksize=1):  # CULPRIT
            self.tiles[x, y] = pixels


def main():
    street_map = Map(workers=3)
    street_map.draw([Tile(x, 0, 256) for x in range(8)])
    print("ready", flush=True)
    street_map.draw([Tile(x, 1, 1024 * x) for x in range(8)])
    print(len(street_map.tiles), "tiles")


if __name__ == "__main__":
    main()
