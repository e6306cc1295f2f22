"""Dispatches tours with ten worker threads; everything is logged to the control room's terminal line."""
import logging
import threading
import time

log = logging.getLogger("tours")


class LineHandler(logging.StreamHandler):
    """Writes records to the serial line of the control room, 9600 baud."""

    def __init__(self, line):
        super().__init__(line)

    def flush(self):
        pass


class SerialLine:
    def __init__(self, baud):
        self.baud = baud
        self.sent = 0

    def write(self, text):
        self.sent += len(text)
        time.sleep(len(text) * 10.0 / self.baud)  # CULPRIT


class Dispatcher:
    def __init__(self, name):
        self.name = name
        self.tours = 0

    def plan(self):
        return sum(n * n % 7 for n in range(500))

    def dispatch(self):
        cost = self.plan()
        self.tours += 1
        log.info("%s sent tour %d on its way, cost %d", self.name, self.tours, cost)

    def run(self):
        while True:
            self.dispatch()


def configure():
    handler = LineHandler(SerialLine(9600))
    handler.setFormatter(logging.Formatter("%(asctime)s %(threadName)s %(message)s"))
    log.addHandler(handler)  # CULPRIT
    log.setLevel(logging.INFO)


def main():
    configure()
    dispatchers = [Dispatcher("D%d" % n) for n in range(10)]
    workers = [threading.Thread(target=dispatcher.run, name=dispatcher.name, daemon=True) for dispatcher in dispatchers]
    for worker in workers:
        worker.start()
    print("ready", flush=True)
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
