"""Loads themes as plugins, each a module of its own; a thread loads those of guests while the shop is open."""
import importlib
import importlib.util
import os
import sys
import tempfile
import threading
import time

SOURCE = '"""Theme %(number)d."""\nimport colorsys\nCOLOURS = [colorsys.hsv_to_rgb(n / 500.0, 0.5, %(number)d / 1000.0) for n in range(500)]\n'


class Themes:
    def __init__(self, folder):
        self.folder = folder
        self.loaded = {}

    def write(self, number):
        with open(os.path.join(self.folder, "theme_%d.py" % number), "w") as file:
            file.write(SOURCE % {"number": number})
        importlib.invalidate_caches()

    def load(self, number):
        module = importlib.import_module("theme_%d" % number)
        self.loaded[number] = module.COLOURS[3]


def guests(themes):
    for number in range(100, 900):
        themes.write(number)
        themes.load(number)
        time.sleep(0.1)


def main():
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        themes = Themes(folder)
        for number in range(20):
            themes.write(number)
            themes.load(number)
        print("ready", flush=True)
        visitor = threading.Thread(target=guests, args=(themes,), name="guests")
        visitor.start()
        visitor.join()


if __name__ == "__main__":
    main()
