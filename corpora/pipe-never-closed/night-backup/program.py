"""Nightly backup of a museum: starts a copier, which goes on in the background, and notes its first line."""
import os
import sys

from plumbum import local


class Copier:
    def __init__(self, python):
        self.start = local[python]["copier.py", str(os.getpid())]

    def begin(self, collection):
        return self.start[collection]().strip()  # CULPRIT


class Backup:
    def __init__(self, copier):
        self.copier = copier
        self.journal = []

    def collection(self, name):
        self.journal.append((name, self.copier.begin(name)))  # CULPRIT

    def run(self, names):
        for name in names:
            self.collection(name)


def main():
    backup = Backup(Copier(sys.executable))
    print("ready", flush=True)
    backup.run(["coins", "maps", "herbarium"])
    for name, line in backup.journal:
        print(name, line)


if __name__ == "__main__":
    main()
