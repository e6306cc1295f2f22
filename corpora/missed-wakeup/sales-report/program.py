"""Adds up sales per region: a reader thread parses the rows, the main thread sums them."""
import collections
import queue
import threading

ROWS = ["north,12", "south,30", "east,7", "west,n/a", "north,5"]
END = None


class RowReader(threading.Thread):
    def __init__(self, rows, out):
        super().__init__(name="row-reader", daemon=True)
        self.rows = rows
        self.out = out

    def run(self):
        for row in self.rows:
            region, amount = row.split(",")
            self.out.put((region, int(amount)))
        self.out.put(END)  # CULPRIT


class Report:
    def __init__(self, source):
        self.source = source
        self.totals = collections.Counter()

    def build(self):
        while True:
            item = self.source.get()  # CULPRIT
            if item is END:
                return self.totals
            region, amount = item
            self.totals[region] += amount


def main():
    parsed = queue.Queue(maxsize=100)
    reader = RowReader(ROWS, parsed)
    reader.start()
    print("ready", flush=True)
    for region, total in sorted(Report(parsed).build().items()):
        print(region, total)


if __name__ == "__main__":
    main()
