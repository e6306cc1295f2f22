"""Three trams write their stops to one log file; a file lock keeps the lines apart."""
import multiprocessing
import os
import tempfile
import time

import portalocker


class Log:
    def __init__(self, path):
        self.path = path

    def stop(self, line, place):
        with portalocker.Lock(self.path, "a", flags=portalocker.LockFlags.EXCLUSIVE) as file:
            file.write("%s stops at %d\n" % (line, place))
            file.flush()
            time.sleep(0.02)  # the disk is far away


class Tram:
    def __init__(self, line, log):
        self.line = line
        self.log = log

    def drive(self):
        place = 0
        while os.path.exists(self.log.path):
            place += 1
            self.log.stop(self.line, place % 20)


def main():
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trams.log")
        open(path, "w").close()
        trams = [context.Process(target=Tram(line, Log(path)).drive, daemon=True) for line in ("D", "O", "38")]
        for tram in trams:
            tram.start()
        print("ready", flush=True)
        while os.path.getsize(path) < 10000000:
            time.sleep(0.5)


if __name__ == "__main__":
    main()
