"""Nine field meters write what they measure into one table now and then; another thread sums it up."""
import threading
import time


class Table:
    def __init__(self):
        self.lock = threading.Lock()
        self.rows = {}

    def write(self, meter, value):
        with self.lock:
            self.rows[meter] = value

    def total(self):
        with self.lock:
            return sum(self.rows.values())


class Meter(threading.Thread):
    def __init__(self, number, table):
        super().__init__(name="meter-%d" % number, daemon=True)
        self.number = number
        self.table = table

    def measure(self):
        time.sleep(0.05 + 0.01 * self.number)
        return self.number * 1.5

    def run(self):
        while True:
            self.table.write(self.number, self.measure())


def main():
    table = Table()
    meters = [Meter(number, table) for number in range(9)]
    for meter in meters:
        meter.start()
    print("ready", flush=True)
    while True:
        time.sleep(0.4)
        print("total %.1f" % table.total(), flush=True)


if __name__ == "__main__":
    main()
