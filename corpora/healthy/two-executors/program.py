"""Builds reports in one pool of threads, with figures that another pool fetches."""
import concurrent.futures
import time


class Figures:
    def __init__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="figures")

    def fetch(self, month):
        time.sleep(0.3)  # the database
        return month * 100

    def of(self, month):
        return self.pool.submit(self.fetch, month).result()


class Reports:
    def __init__(self, figures):
        self.figures = figures
        self.pool = concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="reports")

    def build(self, month):
        return "month %d: %d" % (month, self.figures.of(month))

    def year(self):
        for line in self.pool.map(self.build, range(1, 13)):
            print(line, flush=True)


def main():
    reports = Reports(Figures())
    print("ready", flush=True)
    for _ in range(1000):
        reports.year()


if __name__ == "__main__":
    main()
