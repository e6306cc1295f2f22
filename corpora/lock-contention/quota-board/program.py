"""A board of quotas: brokers reserve on it, and auditors read it, all through one Condition."""
import threading
import time


class Journal:
    """Stands in for a journal on a network share: one synchronous write of 30 ms for each entry."""

    def __init__(self):
        self.entries = 0

    def write(self, entry):
        time.sleep(0.03)
        self.entries += 1


class Board:
    def __init__(self, journal):
        self.changed = threading.Condition()
        self.journal = journal
        self.left = {"wheat": 500, "barley": 500}

    def reserve(self, crop, amount):
        with self.changed:  # CULPRIT
            self.changed.wait_for(lambda: self.left[crop] >= amount)
            self.left[crop] -= amount
            self.journal.write(("reserve", crop, amount))  # CULPRIT

    def give_back(self, crop, amount):
        with self.changed:
            self.left[crop] += amount
            self.journal.write(("give back", crop, amount))  # CULPRIT
            self.changed.notify_all()

    def total(self):
        with self.changed:
            return sum(self.left.values())


class Broker(threading.Thread):
    def __init__(self, number, board):
        super().__init__(name="broker-%d" % number, daemon=True)
        self.crop = ("wheat", "barley")[number % 2]
        self.board = board

    def run(self):
        while True:
            self.board.reserve(self.crop, 20)
            self.board.give_back(self.crop, 20)


def main():
    board = Board(Journal())
    brokers = [Broker(number, board) for number in range(14)]
    for broker in brokers:
        broker.start()
    print("ready", flush=True)
    while True:
        time.sleep(0.5)
        print("left", board.total(), flush=True)


if __name__ == "__main__":
    main()
