"""Pushes readings to a collector, with a retry policy."""
import functools
import threading
import time


class Backoff:
    def __init__(self, base=2.0, factor=8.0):
        self.base = base
        self.factor = factor

    def delay(self, attempt):
        return self.base * self.factor ** attempt

    def pause(self, attempt):
        time.sleep(self.delay(attempt))  # CULPRIT


def retrying(backoff, first=3):
    def decorate(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            attempt = first
            while True:
                try:
                    return function(*args, **kwargs)
                except ConnectionError:
                    backoff.pause(attempt)  # CULPRIT
                    attempt += 1

        return call

    return decorate


class Collector:
    def send(self, reading):
        raise ConnectionRefusedError("collector is down")


class Pusher:
    def __init__(self, collector):
        self.collector = collector
        self.pushed = 0

    @retrying(Backoff())
    def push(self, reading):
        self.collector.send(reading)
        self.pushed += 1


class Agent:
    def __init__(self):
        self.pusher = Pusher(Collector())
        self.threads = []

    def run(self, readings):
        for number, reading in enumerate(readings):
            thread = threading.Thread(target=self.pusher.push, args=(reading,), name="push-%d" % number, daemon=True)
            self.threads.append(thread)
            thread.start()
        print("ready", flush=True)
        for thread in self.threads:
            thread.join()


if __name__ == "__main__":
    Agent().run([20.5, 21.0])
