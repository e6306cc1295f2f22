"""Reduces the colours of map tiles; as many processes as the machine has processors share the tiles."""
import ctypes
import multiprocessing
import os
import signal


class Palette:
    def __init__(self, colours):
        self.colours = [(n * 37 % 256, n * 91 % 256, n * 17 % 256) for n in range(colours)]

    def nearest(self, red, green, blue):
        return min(range(len(self.colours)), key=lambda n: self.distance(self.colours[n], red, green, blue))

    @staticmethod
    def distance(colour, red, green, blue):
        return (colour[0] - red) ** 2 + (colour[1] - green) ** 2 + (colour[2] - blue) ** 2


class Quantizer:
    def __init__(self, palette, side=256):
        self.palette = palette
        self.side = side

    def tile(self, number):
        out = bytearray()
        for place in range(self.side * self.side):
            out.append(self.palette.nearest(place % 256, place // 256 % 256, number % 256))  # CULPRIT
        return number, len(out)


class Farm:
    def __init__(self, quantizer, workers=None):
        self.started = multiprocessing.Semaphore(0)
        self.workers = workers or 2 * (os.cpu_count() or 1)  # CULPRIT
        self.pool = multiprocessing.Pool(self.workers, self.prepare, (quantizer, self.started))  # CULPRIT

    @staticmethod
    def prepare(quantizer, started):
        global current
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        current = quantizer
        started.release()

    @staticmethod
    def work(number):
        return current.tile(number)

    def tiles(self, numbers):
        for _ in range(self.workers):
            self.started.acquire()
        return self.pool.imap_unordered(Farm.work, numbers)


def main():
    multiprocessing.set_start_method("fork")
    farm = Farm(Quantizer(Palette(64)))
    tiles = farm.tiles(range(10000))
    print("ready", flush=True)
    for number, size in tiles:
        print("tile", number, size, "bytes", flush=True)


if __name__ == "__main__":
    main()
