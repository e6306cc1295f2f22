"""Counts calls, and writes a report every now and then by an interval timer."""
import collections
import contextlib
import signal
import sys
import threading


class Usage:
    def __init__(self):
        self.guard = threading.Lock()
        self.calls = collections.Counter()

    @contextlib.contextmanager
    def counting(self, name):
        with self.guard:
            self.calls[name] += 1
            yield

    def report(self, stream):
        with self.guard:  # CULPRIT
            for name, count in self.calls.most_common():
                stream.write("%s %d\n" % (name, count))


class Reporter:
    def __init__(self, usage, every):
        self.usage = usage
        signal.signal(signal.SIGALRM, self)
        signal.setitimer(signal.ITIMER_REAL, every, every)

    def __call__(self, number, frame):  # CULPRIT
        self.usage.report(sys.stderr)  # CULPRIT


def work(usage):
    total = 0
    with usage.counting("sum"):
        for number in range(100_000_000):
            total += number % 7
    return total


def main():
    usage = Usage()
    Reporter(usage, 0.2)
    print("ready", flush=True)
    print(work(usage))


if __name__ == "__main__":
    main()
