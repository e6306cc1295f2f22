"""Writes the bills of a day."""
import os
import sys
import threading


class Account:
    def __init__(self):
        self.lock = threading.Lock()  # CULPRIT
        self.total = 0
        self.largest = 0

    def add(self, amount):
        with self.lock:
            self.total += amount
            if amount > self.largest:
                self.note(amount)

    def note(self, amount):
        with self.lock:  # CULPRIT
            self.largest = amount


def end_with_the_batch():
    sys.stdin.read()
    os._exit(1)


threading.Thread(target=end_with_the_batch, name="batch", daemon=True).start()
account = Account()
for visit, amount in enumerate([40, 25, 130]):
    account.add(amount)
    print("bill", visit, amount, flush=True)
