"""Builds route graphs, full of cycles, one region after the other, and keeps only their lengths."""
import random


class Place:
    __slots__ = ("name", "ways", "region")

    def __init__(self, name, region):
        self.name = name
        self.ways = []
        self.region = region


class Region:
    def __init__(self, number, size):
        dice = random.Random(number)
        self.places = [Place(name, self) for name in range(size)]
        for place in self.places:
            for _ in range(4):
                other = dice.choice(self.places)
                place.ways.append((other, dice.random()))
                other.ways.append((place, dice.random()))

    def length(self):
        return sum(way for place in self.places for _, way in place.ways)


def main():
    lengths = []
    atlas = [Region(number, 2000) for number in range(4)]
    for number in range(100_000):
        lengths.append(Region(number, 1500).length())
        if number == 2:
            print("ready", flush=True)
        if number % 50 == 0:
            print("%d regions, mean %.1f, atlas of %d" % (len(lengths), sum(lengths) / len(lengths), len(atlas)), flush=True)


if __name__ == "__main__":
    main()
