"""Settlement service of a power grid: scheduled jobs read the meters, sum them up by district and keep the books."""
import queue
import threading
import time

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.blocking import BlockingScheduler


class Meters:
    def __init__(self, districts):
        self.districts = districts

    def read(self, district):
        return [len(district) * hour % 37 for hour in range(24)]


class Books:
    """Entries are written by a thread of their own."""

    def __init__(self):
        self.entries = queue.Queue()
        self.written = []
        threading.Thread(target=self.write, name="books", daemon=True).start()

    def write(self):
        while True:
            self.written.append(self.entries.get())


class Later:
    """A value that a job is going to deliver."""

    def __init__(self):
        self.here = threading.Event()
        self.value = None

    def set(self, value):
        self.value = value
        self.here.set()

    def get(self):
        self.here.wait()  # CULPRIT
        return self.value


class Jobs:
    """Runs functions as jobs of the service's scheduler."""

    def __init__(self, scheduler):
        self.scheduler = scheduler

    def run(self, function, *args):
        later = Later()
        self.scheduler.add_job(lambda: later.set(function(*args)))  # CULPRIT
        return later


class Settlement:
    def __init__(self, jobs, meters, books):
        self.jobs = jobs
        self.meters = meters
        self.books = books

    def settle(self):
        print("ready", flush=True)
        readings = [(district, self.jobs.run(self.meters.read, district)) for district in self.meters.districts]
        for district, reading in readings:
            self.books.entries.put((district, sum(reading.get())))  # CULPRIT


class Heart:
    def __init__(self):
        self.beats = []

    def beat(self):
        self.beats.append(time.time())


def main():
    pools = {"default": ThreadPoolExecutor(1), "housekeeping": ThreadPoolExecutor(2)}
    scheduler = BlockingScheduler(executors=pools, timezone="UTC")
    settlement = Settlement(Jobs(scheduler), Meters(["north", "harbour", "hill"]), Books())
    scheduler.add_job(Heart().beat, "interval", seconds=0.5, executor="housekeeping")
    scheduler.add_job(settlement.settle)
    scheduler.start()


if __name__ == "__main__":
    main()
