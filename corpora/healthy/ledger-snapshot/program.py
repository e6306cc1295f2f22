"""A ledger's writer process; for every snapshot it is stopped for a moment, so that the copy is of one piece."""
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

WRITER = """
import itertools, sys, time
with open(sys.argv[1], "a") as ledger:
    for n in itertools.count():
        print(n, file=ledger, flush=True)
        if n == 0:
            print("writing", flush=True)
        time.sleep(0.005)
"""


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Writer:
    def __init__(self, path):
        self.path = path
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, preexec_fn=end_with_parent
        )
        self.process.stdout.readline()

    def snapshot(self, to):
        os.kill(self.process.pid, signal.SIGSTOP)
        try:
            shutil.copyfile(self.path, to)
        finally:
            os.kill(self.process.pid, signal.SIGCONT)
        return os.path.getsize(to)


def main():
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(os.path.join(folder, "ledger"))
        sizes = [writer.snapshot(os.path.join(folder, "copy"))]
        print("ready", flush=True)
        while True:
            time.sleep(0.2)
            sizes.append(writer.snapshot(os.path.join(folder, "copy")))


if __name__ == "__main__":
    main()
