"""A catalogue of recipes that is kept in memory and searched by several threads at a time."""
import threading
import time
import zlib


class Catalogue:
    def __init__(self, count):
        self.guard = threading.RLock()
        self.recipes = {n: " ".join("herb%d" % (n * k % 97) for k in range(30)) for n in range(count)}
        self.popular = {}

    def matching(self, herb):
        with self.guard:
            return [number for number, text in self.recipes.items() if herb in text.split()]

    def mark(self, numbers):
        with self.guard:
            for number in numbers:
                self.popular[number] = self.popular.get(number, 0) + 1

    def search(self, herb):
        with self.guard:  # CULPRIT
            found = self.matching(herb)  # CULPRIT
            self.mark(found)
            return found


class Kitchen(threading.Thread):
    def __init__(self, number, catalogue):
        super().__init__(name="kitchen-%d" % number, daemon=True)
        self.number = number
        self.catalogue = catalogue
        self.digest = 0

    def run(self):
        search = self.number
        while True:
            search += 1
            found = self.catalogue.search("herb%d" % (search % 97))
            self.digest = zlib.crc32(repr(found[:5]).encode(), self.digest)
            time.sleep(0.001)


def main():
    catalogue = Catalogue(12000)
    kitchens = [Kitchen(number, catalogue) for number in range(8)]
    for kitchen in kitchens:
        kitchen.start()
    print("ready", flush=True)
    for kitchen in kitchens:
        kitchen.join()


if __name__ == "__main__":
    main()
