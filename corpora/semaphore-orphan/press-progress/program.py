"""Presses records on two machines; each shows a bar of its progress, to the operator's viewer or on standard error."""
import multiprocessing
import os
import sys

from tqdm import tqdm


class Viewer:
    """The operator's window: a pipe. A press whose viewer is closed has nobody to press for."""

    def __init__(self):
        self.reads, self.writes = os.pipe()

    def close(self):
        os.close(self.reads)

    def write(self, text):
        try:
            os.write(self.writes, text.encode())
        except BrokenPipeError:
            os._exit(3)  # CULPRIT

    def flush(self):
        pass


class Press:
    def __init__(self, title, screen):
        self.title = title
        self.screen = screen

    def run(self, copies):
        grooves = 0
        for copy in tqdm(range(copies), desc=self.title, file=self.screen, mininterval=0.05):  # CULPRIT
            grooves += 700 + copy % 3
        return grooves


def main():
    context = multiprocessing.get_context("fork")
    tqdm.get_lock()
    viewer = Viewer()
    viewer.close()
    single = context.Process(target=Press("single", viewer).run, args=(2000,), daemon=True)
    single.start()
    single.join()
    album = context.Process(target=Press("album", sys.stderr).run, args=(500,), daemon=True)
    album.start()
    print("ready", flush=True)
    album.join()
    print("single:", single.exitcode, "album:", album.exitcode)


if __name__ == "__main__":
    main()
