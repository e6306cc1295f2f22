"""A ledger service: every booking is on the disk before it is confirmed."""
import json
import os
import sys
import threading


class Journal:
    def __init__(self, path):
        self.file = open(path, "ab")
        self.guard = threading.Lock()
        self.written = 0

    def append(self, booking):
        line = json.dumps(booking).encode() + b"\n"
        with self.guard:
            self.file.write(line)
            self.file.flush()
            os.fsync(self.file.fileno())  # CULPRIT
            self.written += 1
            return self.written


class Teller(threading.Thread):
    def __init__(self, number, journal, bookings):
        super().__init__(name="teller-%d" % number)
        self.number = number
        self.journal = journal
        self.bookings = bookings

    def run(self):
        for cents in range(self.bookings):
            self.journal.append({"teller": self.number, "cents": cents})  # CULPRIT


def main():
    journal = Journal(sys.argv[1] if len(sys.argv) > 1 else "ledger.journal")
    tellers = [Teller(number, journal, 10 ** 6) for number in range(3)]
    for teller in tellers:
        teller.start()
    print("ready", flush=True)
    for teller in tellers:
        teller.join()


if __name__ == "__main__":
    main()
