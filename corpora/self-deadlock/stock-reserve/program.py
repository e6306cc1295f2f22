"""Reserves goods in a warehouse; a thread looks after the main loop and ends the program if it shows no progress."""
import os
import signal
import threading
import time


class Watch(threading.Thread):
    def __init__(self, patience):
        super().__init__(name="watch", daemon=True)
        self.patience = patience
        self.seen = time.monotonic()

    def progress(self):
        self.seen = time.monotonic()

    def run(self):
        while time.monotonic() - self.seen < self.patience:
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGABRT)


class Stock:
    def __init__(self, goods):
        self.goods = dict(goods)
        self.reserved = {}
        self.lock = threading.Lock()  # CULPRIT

    def available(self, name):
        with self.lock:  # CULPRIT
            return self.goods.get(name, 0) - self.reserved.get(name, 0)

    def reserve(self, name, count):
        with self.lock:
            if self.reserved.get(name, 0) + count > self.goods.get(name, 0):
                raise LookupError("only %d of %s" % (self.available(name), name))  # CULPRIT
            self.reserved[name] = self.reserved.get(name, 0) + count


def serve(stock, orders, watch):
    refused = []
    for name, count in orders:
        watch.progress()
        try:
            stock.reserve(name, count)
        except LookupError as exc:
            refused.append(str(exc))
    return refused


def main():
    watch = Watch(patience=1.0)
    stock = Stock({"crate": 40, "pallet": 12})
    watch.start()
    print("ready", flush=True)
    refused = serve(stock, [("crate", 30), ("pallet", 8), ("crate", 15)], watch)
    print("\n".join(refused))


if __name__ == "__main__":
    main()
