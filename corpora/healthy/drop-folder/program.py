"""Looks for new files twice a second and counts their words in a process pool."""
import concurrent.futures
import multiprocessing
import os
import tempfile
import threading


def count(path):
    with open(path) as text:
        return len(text.read().split())


class DropFolder:
    def __init__(self, path, pool):
        self.path = path
        self.pool = pool
        self.stop = threading.Event()
        self.counts = {}

    def scan(self):
        new = sorted(set(os.listdir(self.path)) - set(self.counts))
        words = self.pool.map(count, [os.path.join(self.path, name) for name in new])
        self.counts.update(zip(new, words))

    def watch(self):
        while not self.stop.wait(0.5):
            self.scan()


def main():
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as path, concurrent.futures.ProcessPoolExecutor(2, context) as pool:
        with open(os.path.join(path, "a.txt"), "w") as text:
            text.write("one two three")
        folder = DropFolder(path, pool)
        folder.scan()
        print("ready", flush=True)
        folder.watch()


if __name__ == "__main__":
    main()
