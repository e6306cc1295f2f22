"""Stamps readings in strict turn: each of eight sensors' threads may write only after its neighbour."""
import threading


class Turns:
    """Whose turn it is, on one condition for all."""

    def __init__(self, count):
        self.count = count
        self.turn = 0
        self.changed = threading.Condition()

    def pass_on(self, number, work):
        with self.changed:
            while self.turn % self.count != number:  # CULPRIT
                self.changed.wait()  # CULPRIT
            work(self.turn)
            self.turn += 1
            self.changed.notify_all()  # CULPRIT


class Journal:
    def __init__(self):
        self.last = {}

    def stamp(self, number, turn):
        self.last[number] = turn


def sensor(number, turns, journal, readings):
    for _ in range(readings):
        turns.pass_on(number, lambda turn: journal.stamp(number, turn))


def main():
    turns, journal = Turns(8), Journal()
    threads = [
        threading.Thread(target=sensor, args=(number, turns, journal, 3_000_000), name="sensor-%d" % number, daemon=True)
        for number in range(turns.count)
    ]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    for thread in threads:
        thread.join()
    print(journal.last)


if __name__ == "__main__":
    main()
