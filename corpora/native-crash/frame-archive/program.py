"""Archives camera frames: a pool of threads compresses them with one shared zstandard compressor."""
import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor

import zstandard


class Archive:
    def __init__(self, level):
        self.compressor = zstandard.ZstdCompressor(level=level)  # CULPRIT
        self.lock = threading.Lock()
        self.sizes = {}

    def store(self, number, frame):
        packed = self.compressor.compress(frame)  # CULPRIT
        with self.lock:
            self.sizes[number] = len(packed)


def frame(number):
    """A picture: a noisy row, repeated with the number of the frame mixed in."""
    row = b"".join(hashlib.sha256(b"%d/%d" % (number, part)).digest() for part in range(30))
    return row * (20 + number * 37 % 400)


def archive_all(archive, frames):
    with ThreadPoolExecutor(max_workers=6, thread_name_prefix="pack") as pool:
        for _ in range(400):
            for result in [pool.submit(archive.store, number, data) for number, data in frames.items()]:
                if result.exception() is not None:
                    archive.sizes.clear()


def main():
    frames = {number: frame(number) for number in range(60)}
    archive = Archive(level=3)
    print("ready", flush=True)
    archive_all(archive, frames)
    print("%d frames, %d bytes" % (len(archive.sizes), sum(archive.sizes.values())))


if __name__ == "__main__":
    main()
