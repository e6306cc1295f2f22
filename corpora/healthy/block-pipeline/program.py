"""Compresses a stream of blocks: a reader, two compressors and a writer, joined by queues."""
import queue
import threading
import time
import zlib


class Pipeline:
    def __init__(self):
        self.raw = queue.Queue(maxsize=8)
        self.packed = queue.Queue(maxsize=8)
        self.written = 0

    def read(self):
        block = bytes(range(256)) * 800
        while True:
            self.raw.put(block)

    def compress(self):
        while True:
            self.packed.put(zlib.compress(self.raw.get(), 6))

    def write(self):
        while True:
            self.written += len(self.packed.get())

    def start(self):
        roles = [("reader", self.read), ("packer-0", self.compress), ("packer-1", self.compress), ("writer", self.write)]
        for name, role in roles:
            threading.Thread(target=role, name=name, daemon=True).start()


def main():
    pipeline = Pipeline()
    pipeline.start()
    print("ready", flush=True)
    while True:
        before = pipeline.written
        time.sleep(1)
        print("written", pipeline.written - before, flush=True)


if __name__ == "__main__":
    main()
