"""Blends map tiles from a small cache of page-aligned slabs; one thread loads, one blends, one writes the result."""
import ctypes
import queue
import threading

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

PROT_READ, PROT_WRITE = 1, 2
MAP_PRIVATE, MAP_ANONYMOUS = 2, 32
TILE = 512 * 512 * 4


class Slab:
    def __init__(self, key):
        self.key = key
        self.address = libc.mmap(None, TILE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        ctypes.memset(self.address, sum(key) % 251, TILE)

    def release(self):
        libc.munmap(self.address, TILE)


class SlabCache:
    """Keeps the most recent slabs; the oldest one goes when there are too many."""

    def __init__(self, limit):
        self.limit = limit
        self.slabs = {}

    def slab(self, key):
        if key not in self.slabs:
            self.slabs[key] = Slab(key)
            while len(self.slabs) > self.limit:
                oldest = next(iter(self.slabs))
                self.slabs.pop(oldest).release()  # CULPRIT
        return self.slabs[key]


class Layer:
    def __init__(self, cache, zoom, level):
        self.cache = cache
        self.zoom = zoom
        self.level = level

    def tile(self, x, y):
        return self.cache.slab((self.level, self.zoom, x, y))


class Blender:
    def __init__(self, layers):
        self.layers = layers

    def blend(self, x, y, out):
        tiles = [layer.tile(x, y) for layer in self.layers]  # CULPRIT
        for row, tile in enumerate(tiles):
            self.copy_band(tile, out, row)

    def copy_band(self, tile, out, row):
        band = TILE // len(self.layers)
        ctypes.memmove(ctypes.byref(out, row * band), tile.address + row * band, band)  # CULPRIT


class Pipeline:
    def __init__(self, blender):
        self.blender = blender
        self.requests = queue.Queue()
        self.results = queue.Queue()
        self.threads = [threading.Thread(target=work, name=name, daemon=True)
                        for name, work in (("blend", self.blend), ("write", self.write))]

    def start(self):
        for thread in self.threads:
            thread.start()

    def blend(self):
        while True:
            x, y = self.requests.get()
            out = ctypes.create_string_buffer(TILE)
            self.blender.blend(x, y, out)
            self.results.put((x, y, out))
            self.requests.task_done()

    def write(self):
        while True:
            x, y, out = self.results.get()
            print("tile %d/%d: %d bytes" % (x, y, len(out)))


def main():
    cache = SlabCache(limit=3)
    layers = [Layer(cache, zoom=7, level=level) for level in range(4)]
    pipeline = Pipeline(Blender(layers))
    pipeline.start()
    print("ready", flush=True)
    for x in range(3):
        pipeline.requests.put((x, 0))
    pipeline.requests.join()


if __name__ == "__main__":
    main()
