"""Ships log records to a file; they come from the standard input, or from a pipe that is named."""
import json
import os
import sys


class Source:
    def __init__(self, path=None):
        if path:
            pipe = os.open(path, os.O_RDONLY)
            os.dup2(pipe, 0)
            os.close(pipe)

    def text(self):
        return sys.stdin.read()  # CULPRIT


class Shipper:
    def __init__(self, source, target):
        self.source = source
        self.target = target
        self.shipped = 0

    def ship(self):
        for line in self.source.text().splitlines():  # CULPRIT
            self.target.write(json.dumps({"message": line}) + "\n")
            self.shipped += 1


def main(arguments):
    source = Source(*arguments[:1])
    print("ready", flush=True)
    with open(os.devnull, "w") as target:
        shipper = Shipper(source, target)
        shipper.ship()
    print("shipped", shipper.shipped)


if __name__ == "__main__":
    main(sys.argv[1:])
