"""A shop's till servers; what they log is handed to one thread, which passes it on to the log collector."""
import logging
import logging.handlers
import queue
import threading
import time

log = logging.getLogger("shop.till")


class CollectorHandler(logging.Handler):
    """Stands in for the HTTP handler of the collector: one request for each record."""

    def __init__(self):
        super().__init__()
        self.passed = 0

    def emit(self, record):
        self.format(record)
        time.sleep(0.04)
        self.passed += 1


def configure():
    records = queue.Queue(-1)  # CULPRIT
    handler = logging.handlers.QueueHandler(records)  # CULPRIT
    logging.getLogger("shop").addHandler(handler)
    logging.getLogger("shop").setLevel(logging.DEBUG)
    listener = logging.handlers.QueueListener(records, CollectorHandler())
    listener.start()
    return listener


class Till:
    def __init__(self, number):
        self.number = number
        self.sales = 0

    def sell(self, article):
        log.debug("till %d scans %s", self.number, article)
        self.sales += 1
        log.info("till %d sold %s, sale %d", self.number, article, self.sales)

    def open(self):
        while True:
            self.sell("A-%d" % (self.sales % 300))
            time.sleep(0.01)


def main():
    listener = configure()
    tills = [threading.Thread(target=Till(number).open, name="till-%d" % number, daemon=True) for number in range(5)]
    for till in tills:
        till.start()
    print("ready", flush=True)
    for till in tills:
        till.join()
    listener.stop()


if __name__ == "__main__":
    main()
