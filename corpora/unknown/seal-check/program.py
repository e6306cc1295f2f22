"""Checks the seals of a day's ballot boxes; a box whose seal is broken ends the count at once, with everything as it is."""
import hashlib
import os
import sys


class Box:
    def __init__(self, number, votes):
        self.number = number
        self.votes = votes
        self.seal = self.compute()

    def compute(self):
        return hashlib.sha256(("%d:%r" % (self.number, self.votes)).encode()).hexdigest()


class Count:
    def __init__(self, boxes):
        self.boxes = boxes
        self.total = 0

    def run(self):
        for box in self.boxes:
            self.check(box)
            self.total += sum(box.votes)

    def check(self, box):
        if box.compute() != box.seal:
            self.stop("seal of box %d does not match" % box.number)

    def stop(self, reason):
        print(reason, file=sys.stderr, flush=True)
        os.abort()


def main():
    boxes = [Box(number, [number * 7 % 50, number * 11 % 40]) for number in range(40)]
    boxes[23].votes.append(1)
    print("ready", flush=True)
    count = Count(boxes)
    count.run()
    print("%d votes" % count.total)


if __name__ == "__main__":
    main()
