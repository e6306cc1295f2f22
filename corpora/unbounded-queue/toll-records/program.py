"""Toll records: the gantry's process reads plates, a second process prices them and keeps the accounts."""
import multiprocessing
import queue
import time


class Accounts:
    def __init__(self):
        self.cents = {}

    def charge(self, plate, axles):
        time.sleep(0.02)
        self.cents[plate] = self.cents.get(plate, 0) + 90 * axles


def price(passages, opened):
    accounts = Accounts()
    opened.set()
    while multiprocessing.parent_process().is_alive():
        try:
            passage = passages.get(timeout=2)
        except queue.Empty:
            continue
        if passage is None:
            break
        accounts.charge(passage["plate"], passage["axles"])


class Gantry:
    def __init__(self, passages):
        self.passages = passages

    def passage(self, number):
        return {"plate": "T-%04d" % (number % 9000), "axles": 2 + number % 4, "lane": number % 3, "image": b"\0" * 64}

    def run(self, count):
        for number in range(count):
            self.passages.put(self.passage(number))  # CULPRIT
            if number % 5 == 0:
                time.sleep(0.005)


def main():
    context = multiprocessing.get_context("fork")
    passages = context.Queue()  # CULPRIT
    opened = context.Event()
    pricing = context.Process(target=price, args=(passages, opened), name="pricing", daemon=True)
    pricing.start()
    opened.wait()
    print("ready", flush=True)
    Gantry(passages).run(500000)
    passages.put(None)
    pricing.join()


if __name__ == "__main__":
    main()
