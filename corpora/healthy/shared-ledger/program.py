"""Six tills write into one ledger, one at a time."""
import threading
import time


class Ledger:
    def __init__(self):
        self.guard = threading.Lock()
        self.entries = 0

    def append(self, seconds):
        with self.guard:
            self.entries += 1
            time.sleep(seconds)  # the disk


class Till(threading.Thread):
    def __init__(self, number, ledger):
        super().__init__(name="till-%d" % number, daemon=True)
        self.ledger = ledger

    def run(self):
        while True:
            time.sleep(0.05)
            self.ledger.append(0.01)


def main():
    ledger = Ledger()
    for number in range(6):
        Till(number, ledger).start()
    print("ready", flush=True)
    while True:
        time.sleep(1)
        print("entries", ledger.entries, flush=True)


if __name__ == "__main__":
    main()
