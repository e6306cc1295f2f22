"""Loads the plugins of a converter; some of them take their time."""
import importlib
import os
import sys
import tempfile
import threading

PLUGIN = """
import time
time.sleep(0.3)  # reads its tables
NAME = %r
"""


class Plugins:
    def __init__(self, folder, count):
        self.names = ["format_%03d" % number for number in range(count)]
        for name in self.names:
            with open(os.path.join(folder, name + ".py"), "w") as module:
                module.write(PLUGIN % name)
        sys.path.insert(0, folder)
        self.loaded = {}

    def load(self):
        for name in self.names:
            self.loaded[name] = importlib.import_module(name).NAME


def main():
    with tempfile.TemporaryDirectory() as folder:
        plugins = Plugins(folder, count=60)
        threads = [threading.Thread(target=plugins.load, name="loader-%d" % n, daemon=True) for n in range(2)]
        print("ready", flush=True)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
