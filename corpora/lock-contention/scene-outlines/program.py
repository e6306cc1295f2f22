"""Computes the outlines of map scenes with a team of threads, each scene by whoever takes it first."""
import itertools
import threading
import time

from cached_property import threaded_cached_property


class Scene:
    def __init__(self, number, source):
        self.number = number
        self.source = source

    @threaded_cached_property  # CULPRIT
    def outline(self):
        return self.source.load(self.number)  # CULPRIT


class Source:
    """Stands in for the tile store behind the network: 60 ms for a scene."""

    def load(self, number):
        time.sleep(0.06)
        return [(number, number + 1), (number + 1, number)]


class Team:
    def __init__(self, size, source):
        self.numbers = itertools.count()
        self.source = source
        self.edges = 0
        self.threads = [threading.Thread(target=self.work, name="outline-%d" % n, daemon=True) for n in range(size)]

    def work(self):
        while True:
            scene = Scene(next(self.numbers), self.source)
            self.edges += len(scene.outline)

    def start(self):
        for thread in self.threads:
            thread.start()


def main():
    team = Team(8, Source())
    team.start()
    print("ready", flush=True)
    for thread in team.threads:
        thread.join()


if __name__ == "__main__":
    main()
