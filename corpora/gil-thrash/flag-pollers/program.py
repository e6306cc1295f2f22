"""Eight feeders wait for the price table, which the main thread computes."""
import threading
import time


class Table:
    def __init__(self):
        self.rows = {}
        self.complete = False

    def compute(self, size):
        for key in range(size):
            total = 0
            for year in range(40):
                total += (key * 31 + year) % 97
            self.rows[key % 5000] = total
        self.complete = True


def feed(table, region, out):
    while not table.complete:  # CULPRIT
        time.sleep(0)  # CULPRIT
    out[region] = sum(table.rows.values())


def main():
    table = Table()
    out = {}
    feeders = [threading.Thread(target=feed, args=(table, n, out), name="feeder-%d" % n, daemon=True) for n in range(8)]
    for feeder in feeders:
        feeder.start()
    print("ready", flush=True)
    table.compute(40_000_000)
    for feeder in feeders:
        feeder.join()


if __name__ == "__main__":
    main()
