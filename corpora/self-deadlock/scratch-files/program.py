"""Scratch files that account for themselves when they are dropped."""
import threading


class Quota:
    def __init__(self):
        self._guard = threading.Lock()
        self.used = 0

    def add(self, count):
        with self._guard:
            self.used += count
            self._check()  # CULPRIT

    def _check(self):
        if self.used <= 0:
            self.reset()  # CULPRIT

    def reset(self):
        with self._guard:  # CULPRIT
            self.used = 0


class Scratch:
    def __init__(self, quota, size):
        self.quota = quota
        self.size = size
        quota.add(size)

    def __del__(self):
        self.quota.add(-self.size)


def render(quota):
    layers = [Scratch(quota, 100) for _ in range(3)]
    return len(layers)


quota = Quota()
print("ready", flush=True)
print(render(quota))
