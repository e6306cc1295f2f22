"""Handles of a native library, registered by number."""
import threading

guard = threading.Lock()
registry = {}
freed = []


class Handle:
    def __init__(self, number):
        self.number = number

    def __del__(self):
        with guard:  # CULPRIT
            freed.append(self.number)


def register(number):
    handle = Handle(number)
    with guard:
        registry[number] = handle  # CULPRIT


register(1)
print("ready", flush=True)
register(1)
