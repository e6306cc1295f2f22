"""A pool of picture buffers for a gate camera; grabber threads lease buffers, the recorder hands them back."""
import ctypes
import threading

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]

SIZE = 96 * 64


class Buffer:
    def __init__(self, size):
        self.size = size
        self.address = libc.malloc(size)
        ctypes.memset(self.address, 0, size)

    def close(self):
        libc.free(self.address)  # CULPRIT


class Lease:
    def __init__(self, pool, buffer):
        self.pool = pool
        self.buffer = buffer

    def __enter__(self):
        return self.buffer

    def __exit__(self, kind, exc, traceback):
        self.pool.release(self.buffer, keep=kind is None)


class Pool:
    def __init__(self, size, count):
        self.lock = threading.Lock()
        self.buffers = [Buffer(size) for _ in range(count)]
        self.free = list(self.buffers)

    def lease(self):
        with self.lock:
            return Lease(self, self.free.pop())

    def release(self, buffer, keep):
        with self.lock:
            if keep:
                self.free.append(buffer)
            else:
                buffer.close()  # CULPRIT

    def close(self):
        with self.lock:
            for buffer in self.buffers:
                buffer.close()  # CULPRIT


class Grabber(threading.Thread):
    def __init__(self, pool, gate, pictures):
        super().__init__(name="gate-%d" % gate)
        self.pool = pool
        self.pictures = pictures
        self.lost = 0

    def run(self):
        for picture in self.pictures:
            try:
                with self.pool.lease() as buffer:
                    self.grab(buffer, picture)
            except ValueError:
                self.lost += 1

    def grab(self, buffer, picture):
        if len(picture) > buffer.size:
            raise ValueError("picture of %d bytes" % len(picture))
        ctypes.memmove(buffer.address, picture, len(picture))


def main():
    pool = Pool(SIZE, count=6)
    pictures = [bytes([number]) * (SIZE - 100 * number) for number in range(10)] + [b"x" * (SIZE + 1)]
    grabbers = [Grabber(pool, gate, pictures) for gate in range(2)]
    for grabber in grabbers:
        grabber.start()
    for grabber in grabbers:
        grabber.join()
    print("ready", flush=True)
    pool.close()
    print("%d lost" % sum(grabber.lost for grabber in grabbers))


if __name__ == "__main__":
    main()
