"""Mirrors the feeds of a publisher: two workers share a bounded pool of connections."""
import queue
import sys
import threading

from urllib3 import HTTPConnectionPool, Retry


class Publisher:
    def __init__(self, host, port):
        retries = Retry(total=5, status_forcelist=[429, 503], backoff_factor=0)
        self.pool = HTTPConnectionPool(host, port, maxsize=2, block=True, retries=retries)

    def stream(self, feed):
        answer = self.pool.request("GET", "/feeds/%s" % feed, preload_content=False)  # CULPRIT
        try:
            for block in answer.stream(4096):
                yield block
        finally:
            answer.release_conn()


class Mirror:
    def __init__(self, publisher):
        self.publisher = publisher
        self.feeds = queue.Queue()
        self.sizes = {}

    def copy(self, feed):
        return sum(len(block) for block in self.publisher.stream(feed))

    def worker(self):
        while True:
            feed = self.feeds.get()
            self.sizes[feed] = self.copy(feed)
            self.feeds.task_done()

    def run(self, feeds, workers=2):
        for feed in feeds:
            self.feeds.put(feed)
        for number in range(workers):
            threading.Thread(target=self.worker, name="mirror-%d" % number, daemon=True).start()
        self.feeds.join()


def main():
    host, _, port = sys.argv[1].rpartition(":")
    mirror = Mirror(Publisher(host, int(port)))
    print("ready", flush=True)
    mirror.run(["sport", "culture", "economy", "science", "local", "weather"])
    print(mirror.sizes)


if __name__ == "__main__":
    main()
