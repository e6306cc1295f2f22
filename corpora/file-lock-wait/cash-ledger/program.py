"""The cash ledger of a theatre: a bookkeeper process keeps it in order, the box office adds the evening's sales."""
import os
import subprocess
import sys
import tempfile

import portalocker


class Ledger:
    def __init__(self, path):
        self.path = path

    def open(self):
        return portalocker.Lock(self.path, "a+", flags=portalocker.LockFlags.EXCLUSIVE)  # CULPRIT


class Bookkeeper:
    """Sums the ledger whenever it is asked to; runs as a process of its own."""

    def __init__(self, ledger):
        self.ledger = ledger

    def serve(self, questions, answers):
        with self.ledger.open() as file:  # CULPRIT
            print("open", file=answers, flush=True)
            for _ in questions:
                file.seek(0)
                print(sum(int(line.split()[0]) for line in file), file=answers, flush=True)


class BoxOffice:
    def __init__(self, ledger, bookkeeper):
        self.ledger = ledger
        self.bookkeeper = bookkeeper

    def sell(self, seats, price):
        with self.ledger.open() as file:
            file.write("%d %s\n" % (len(seats) * price, ",".join(seats)))

    def total(self):
        self.bookkeeper.stdin.write("total\n")
        self.bookkeeper.stdin.flush()
        return int(self.bookkeeper.stdout.readline())


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cash.txt")
        command = [sys.executable, __file__, path]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        bookkeeper = subprocess.Popen(command, universal_newlines=True, **pipes)
        bookkeeper.stdout.readline()
        office = BoxOffice(Ledger(path), bookkeeper)
        print("ready", flush=True)
        office.sell(["B4", "B5"], 22)
        print(office.total())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Bookkeeper(Ledger(sys.argv[1])).serve(sys.stdin, sys.stdout)
    else:
        main()
