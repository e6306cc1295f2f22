"""Publishes tide tables: a scheduler prepares them in the background, the program ends when all harbours are done."""
import queue
import threading

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler


class Publisher:
    """Sends out what is ready, in the order in which it is ready."""

    def __init__(self):
        self.outbox = queue.Queue()
        self.sent = []
        self.running = threading.Event()
        self.last = threading.Event()

    def publish(self, harbour, table):
        self.outbox.put((harbour, table))

    def send_all(self):
        self.running.set()
        while True:
            harbour, table = self.outbox.get()  # CULPRIT
            self.sent.append((harbour, len(table)))
            if len(self.sent) == 4:
                self.last.set()


class Tables:
    def __init__(self, publisher):
        self.publisher = publisher

    def prepare(self, harbour, metres):
        self.publisher.publish(harbour, [round(metres * (hour % 12) / 12, 1) for hour in range(24)])


def main():
    publisher = Publisher()
    tables = Tables(publisher)
    scheduler = BackgroundScheduler(executors={"default": ThreadPoolExecutor(4)}, timezone="UTC")
    scheduler.add_job(publisher.send_all)
    for harbour, metres in [("Brest", 6.1), ("Dover", 5.9), ("Esbjerg", 1.4), ("Leith", 4.8)]:
        scheduler.add_job(tables.prepare, args=(harbour, metres))
    scheduler.start()
    publisher.running.wait()
    publisher.last.wait()
    scheduler.shutdown(wait=False)  # CULPRIT
    print("ready", flush=True)


if __name__ == "__main__":
    main()
