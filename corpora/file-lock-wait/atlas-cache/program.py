"""A cache of atlas pages on disk: a page is fetched under a file lock, so that programs can share the folder."""
import concurrent.futures
import os
import tempfile
import threading

from filelock import FileLock


class Cache:
    def __init__(self, folder):
        self.folder = folder
        self.lock = FileLock(os.path.join(folder, "pages.lock"))  # CULPRIT

    def begin(self):
        self.lock.acquire()  # CULPRIT

    def done(self, page):
        number, pixels = page.result()
        with open(os.path.join(self.folder, "%d.page" % number), "wb") as file:
            file.write(pixels)
        self.lock.release()  # CULPRIT


class Fetcher:
    def __init__(self, cache, threads):
        self.cache = cache
        self.pool = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="fetch")

    def page(self, number, wanted):
        wanted.wait()
        return number, bytes(number)

    def fetch(self, number):
        self.cache.begin()
        wanted = threading.Event()
        page = self.pool.submit(self.page, number, wanted)
        page.add_done_callback(self.cache.done)
        wanted.set()
        return page.result()


class Reader(threading.Thread):
    def __init__(self, fetcher, numbers):
        super().__init__(name="reader-%d" % numbers[0], daemon=True)
        self.fetcher = fetcher
        self.numbers = numbers

    def run(self):
        self.pages = [self.fetcher.fetch(number) for number in self.numbers]


def main():
    with tempfile.TemporaryDirectory() as folder:
        fetcher = Fetcher(Cache(folder), threads=3)
        first = Reader(fetcher, [100])
        first.start()
        first.join()
        print("ready", flush=True)
        second = Reader(fetcher, [101, 102])
        second.start()
        second.join()
        print(len(first.pages) + len(second.pages), "pages")


if __name__ == "__main__":
    main()
