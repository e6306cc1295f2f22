"""Prints the labels of the samples: the names are sorted by a filter, a pair of pipes away."""
import os
import sys
import threading


class Sorter:
    """Sorts lines in a thread; what is written to it comes back in order."""

    def __init__(self):
        self.source, self.sink = os.pipe()
        self.lines = []
        self.thread = threading.Thread(target=self.run, name="sorter", daemon=True)
        self.thread.start()

    def run(self):
        with open(self.source) as file:
            self.lines = sorted(file)  # CULPRIT

    def write(self, lines):
        with open(os.dup(self.sink), "w") as file:  # CULPRIT
            file.writelines(line + "\n" for line in lines)

    def result(self):
        self.thread.join()
        return self.lines


def end_with_the_batch():
    sys.stdin.read()
    os._exit(1)


threading.Thread(target=end_with_the_batch, name="batch", daemon=True).start()
sorter = Sorter()
sorter.write(["serum 17", "blood 4", "serum 2"])
for label in sorter.result():
    print("label", label, end="", flush=True)
