"""Computes offers in forked children, with a cache of prices that a thread keeps fresh."""
import os
import threading
import time


class PriceCache:
    def __init__(self):
        self._lock = threading.RLock()
        self._prices = {}
        self.loading = threading.Event()

    def refresh(self):
        while True:
            with self._lock:  # CULPRIT
                self.loading.set()
                for article in range(20):
                    self._prices[article] = article * 1.5
                    time.sleep(0.01)  # asks the supplier
            self.loading.clear()
            time.sleep(1)

    def price(self, article):
        with self._lock:  # CULPRIT
            return self._prices.get(article, 0)


class Offers:
    def __init__(self, cache):
        self.cache = cache

    def compute(self, articles):
        """In a child, whose memory is given back afterwards. Returns its status."""
        child = os.fork()  # CULPRIT
        if child == 0:
            total = sum(self.cache.price(article) for article in articles)  # CULPRIT
            os._exit(0 if total else 1)
        return os.waitpid(child, 0)[1]


def main():
    cache = PriceCache()
    threading.Thread(target=cache.refresh, name="refresh", daemon=True).start()
    cache.loading.wait()
    print("ready", flush=True)
    print("status", Offers(cache).compute(range(5)))


if __name__ == "__main__":
    main()
