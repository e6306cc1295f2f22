"""A small order service that writes an audit record of everything it does in a thread of its own."""
import queue
import threading
import time


class AuditWriter(threading.Thread):
    def __init__(self, sink):
        super().__init__(name="audit", daemon=True)
        self.sink = sink
        self.records = queue.Queue()  # CULPRIT

    def note(self, action, **facts):
        self.records.put((time.time(), action, tuple(facts.items())))  # CULPRIT

    def run(self):
        while True:
            self.sink.store(self.records.get())


class SlowSink:
    """Stands in for the table of the audit database, one commit per record."""

    def __init__(self):
        self.stored = 0

    def store(self, record):
        time.sleep(0.02)
        self.stored += 1


class Orders:
    def __init__(self, audit):
        self.audit = audit
        self.open = {}

    def accept(self, number, article):
        self.open[number] = article
        self.audit.note("accepted", order=number, article=article)

    def ship(self, number):
        article = self.open.pop(number)
        self.audit.note("shipped", order=number, article=article)


class Counter(threading.Thread):
    """One of the counters where customers order."""

    def __init__(self, orders, number):
        super().__init__(name="counter-%d" % number, daemon=True)
        self.orders = orders
        self.first = number * 10 ** 7

    def run(self):
        for number in range(self.first, self.first + 10 ** 7):
            self.orders.accept(number, "A-%d" % (number % 50))
            self.orders.ship(number)
            time.sleep(0.004)


def main():
    sink = SlowSink()
    audit = AuditWriter(sink)
    audit.start()
    counters = [Counter(Orders(audit), number) for number in range(4)]
    for counter in counters:
        counter.start()
    print("ready", flush=True)
    for counter in counters:
        counter.join()


if __name__ == "__main__":
    main()
