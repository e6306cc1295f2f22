"""Gauges at a canal lock: a thread measures, the Twisted reactor reports what it has measured."""

import sys
import threading
import time

from twisted.internet import defer, reactor


class Gauge:
    def __init__(self, name):
        self.name = name
        self.level = defer.Deferred()
        self.level.addCallback(self.report)

    def report(self, centimetres):
        print(self.name, centimetres, file=sys.stderr)
        reactor.callLater(0, self.close)

    def close(self):
        reactor.stop()

    def measure(self):
        while not in_poll():
            time.sleep(0.01)
        self.level.callback(214)  # CULPRIT
        print("ready", flush=True)


def in_poll():
    frame = sys._current_frames().get(threading.main_thread().ident)
    return frame is not None and frame.f_code.co_name == "doPoll"


def beat():
    while True:
        time.sleep(0.5)


def main():
    gauge = Gauge("upper gate")
    threading.Thread(target=beat, name="beat", daemon=True).start()
    threading.Thread(target=gauge.measure, name="measure", daemon=True).start()
    reactor.run()


if __name__ == "__main__":
    main()
