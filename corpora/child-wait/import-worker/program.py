"""Imports a catalogue in a process of its own, so that its memory is given back."""
import multiprocessing
import signal
import sys
import threading


class Catalogue:
    def __init__(self, path):
        self.path = path
        self.approved = threading.Event()

    def load(self):
        self.approved.wait()  # CULPRIT
        return len(self.path)


def import_catalogue(path):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    print("ready", flush=True)
    Catalogue(path).load()


class Importer:
    def __init__(self):
        self.context = multiprocessing.get_context("fork")

    def run(self, path):
        process = self.context.Process(target=import_catalogue, args=(path,), name="importer", daemon=True)
        process.start()
        process.join()  # CULPRIT
        return process.exitcode


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return Importer().run("catalogue.csv")


if __name__ == "__main__":
    sys.exit(main())
